# SPDX-License-Identifier: BSD-3-Clause
"""weir diff: which combinations of two sweeps differ beyond their spread over seeds."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from rich.console import Console

from weir.analysis import spread
from weir.analysis.spread import USED, Floats, Value
from weir.base import terminal, units
from weir.base.errors import UserError
from weir.base.page import Table
from weir.many.sweep import short
from weir.many.sweep_table import Axis, SweepTable

LEVEL = 0.05
DEFAULT = ("goodput", "delay")
Run = tuple[int, bool | None]  # what tells it from others, and whether its seed was used
Runs = dict[tuple[Value, ...], list[Run]]
ORDER = ("changed", "one seed", "within", "identical", "missing")
SAID = {
    "changed": "changed",
    "one seed": "differ, of one seed or a few equal ones: nothing to judge it by",
    "within": "within their spread",
    "identical": "identical: the same digests and figures",
    "missing": "without a run in both",
}


@dataclass(frozen=True)
class Compared:
    """A number of one combination of parameters in both sweeps."""

    point: tuple[Value, ...]
    metric: str
    unit: str
    a: Floats
    b: Floats
    kind: str
    p: float = math.nan  # raised by Holm's method

    @property
    def change(self) -> float:
        """The change relative to the first sweep; NaN: unknown."""
        if not (self.a.size and self.b.size) or self.a.mean() == 0:
            return math.nan
        return float(self.b.mean() / self.a.mean() - 1)


@dataclass(frozen=True)
class Difference:
    """The result of comparing two sweeps."""

    keys: list[str]
    rows: list[Compared]
    only_a: int  # combinations
    only_b: int
    tests: int
    detectable: float  # the relative change that a typical combination must have; NaN: unknown


def compare(a: SweepTable, b: SweepTable, metrics: Sequence[str] = DEFAULT) -> Difference:
    """Compares each combination of parameters. UserError: the sweeps have other parameters."""
    if set(a.keys) != set(b.keys):
        odd = sorted(set(a.keys) ^ set(b.keys))
        raise UserError(f"{a.path} and {b.path} have not the same parameters: {', '.join(odd)}")
    keys = a.keys
    columns = [name for name in a.figures if name in b.figures]
    runs = [runs_of(one, keys, columns) for one in (a, b)]
    points = [point for point in runs[0] if point in runs[1]]
    rows, p = [], []
    for name in metrics:
        of_a, of_b = a.metric(name), b.metric(name)
        in_a, in_b = a.parts(of_a, keys), b.parts(of_b, keys)
        for point in points:
            values = in_a[point], in_b[point]
            said = kind(runs[0][point], runs[1][point], *values)
            rows.append(Compared(point, of_a.label, of_a.unit, *values, said))
            p.append(spread.welch(*values) if said == "within" else math.nan)
    raised = [judged(row, value) for row, value in zip(rows, spread.holm(p), strict=True)]
    tests = sum(not math.isnan(value) for value in p)
    only_a, only_b = (len(one) - len(points) for one in runs)
    return Difference(keys, raised, only_a, only_b, tests, least(raised, tests))


def runs_of(table: SweepTable, keys: Sequence[str], columns: Sequence[str]) -> Runs:
    """Returns the runs that are samples, by their combination."""
    found: Runs = {}
    frame = table.frame
    used = frame[USED] if USED in frame.columns else [None] * frame.height
    rows = frame.select(*keys).rows() if keys else [()] * frame.height
    each = zip(rows, table.prints(columns), used, table.replicas, strict=True)
    for row, same, drawn, sample in each:
        if sample:
            found.setdefault(row, []).append((same, drawn))
    return found


def kind(a: Sequence[Run], b: Sequence[Run], in_a: Floats, in_b: Floats) -> str:
    """Returns what can be said of two sets of runs before any test."""
    if not (in_a.size and in_b.size):
        return "missing"
    if sorted(same for same, _ in a) == sorted(same for same, _ in b):
        return "identical"
    if min(in_a.size, in_b.size) > 1:
        return "within"
    if any(used is not False for _, used in (*a, *b)):
        return "one seed"
    same = in_a.size == in_b.size and np.array_equal(in_a, in_b)
    return "within" if same else "changed"  # nothing random: a difference is one


def judged(row: Compared, p: float) -> Compared:
    """Judges a row by its raised p value: below the level it changed."""
    few = row.kind == "within" and np.ptp(row.a) == np.ptp(row.b) == 0 and row.a[0] != row.b[0]
    kind = "changed" if p < LEVEL else "one seed" if few else row.kind
    return Compared(row.point, row.metric, row.unit, row.a, row.b, kind, p)


def least(rows: Sequence[Compared], tests: int) -> float:
    """Returns the change that is found in a combination of median spread and number of seeds."""
    parts = [row.a for row in rows if row.a.size > 1 and row.a.mean() != 0]
    if not parts or not tests:
        return math.nan
    relative = float(np.median([part.std(ddof=1) / abs(part.mean()) for part in parts]))
    n = int(np.median([part.size for part in parts]))
    return spread.detectable(relative, n, tests, LEVEL)


def show(found: Difference, axes: Sequence[Axis], out: Console, every: bool) -> None:
    """Shows a line for each change, or for everything, and how many of each kind there are."""
    shown = [row for row in found.rows if every or row.kind in ("changed", "one seed")]
    varied = [axis.key for axis in axes]
    named = {axis.key: dict(zip(axis.values, axis.names, strict=True)) for axis in axes}
    columns = (*short(varied), "number", "A", "B", "change", "p (Holm)", "seeds", "verdict")
    rows = [
        [
            *(named[key][row.point[found.keys.index(key)]] for key in varied),
            row.metric,
            *(units.shown(part.mean() if part.size else None, row.unit) for part in (row.a, row.b)),
            units.NONE if math.isnan(row.change) else f"{100 * row.change:+.2f} %",
            units.NONE if math.isnan(row.p) else f"{row.p:.2g}",
            f"{row.a.size}, {row.b.size}",
            row.kind,
        ]
        for row in sorted(shown, key=lambda row: ORDER.index(row.kind))
    ]
    if rows:
        terminal.print_table(out, Table(columns, rows, left=len(varied) + 1))
    for line in sentences(found):
        out.print(line, soft_wrap=True, markup=False)


def sentences(found: Difference) -> list[str]:
    """Says how many of each kind there are, and what the tests could find."""
    counts = Counter(row.kind for row in found.rows)
    of = ", ".join(f"{counts[kind]:,} {SAID[kind]}" for kind in ORDER if counts[kind])
    lines = [f"{len(found.rows):,} comparisons: {of or 'none'}"]
    for count, name in ((found.only_a, "first"), (found.only_b, "second")):
        if count:
            lines.append(f"{count:,} combinations are only in the {name} sweep")
    if found.tests:
        lines.append(
            f"tested: {found.tests:,}, by Welch's t test over seeds, p raised by Holm's method,"
            f" level {100 * LEVEL:g} %; a change of {units.percent(found.detectable, 1)} is found"
            " where the spread is the median one"
        )
    return lines


def as_json(found: Difference) -> dict[str, object]:
    """Returns the comparison for --json."""
    rows = [
        {
            **dict(zip(found.keys, row.point, strict=True)),
            "metric": row.metric,
            "unit": row.unit,
            "a": row.a.mean() if row.a.size else None,
            "b": row.b.mean() if row.b.size else None,
            "change": None if math.isnan(row.change) else row.change,
            "p_holm": None if math.isnan(row.p) else row.p,
            "seeds": [row.a.size, row.b.size],
            "kind": row.kind,
        }
        for row in found.rows
    ]
    counted = {"only_a": found.only_a, "only_b": found.only_b, "tests": found.tests}
    return {"rows": rows, **counted, "level": LEVEL}
