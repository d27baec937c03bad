# SPDX-License-Identifier: BSD-3-Clause
"""Steps: the rate, delay and loss of a link over time, and the file in which `replay` reads them.

switch/stage/trace_file.c describes the file.
"""

from __future__ import annotations

import csv
from array import array
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path

import numpy as np
import numpy.typing as npt

from weir.base import foreign, units
from weir.base.errors import UserError

Floats = npt.NDArray[np.float64]
RATE_MIN_BPS = 1000.0  # the stage's; what is less is an outage
NS_PER_S = 1e9
# Factors of numbers in columns whose names have no unit.
PLAIN = {"loss": 1.0, "limit_pkts": 1.0}
PARSERS = {
    "at": units.config_time_ns,
    "delay": units.config_time_ns,
    "rate": units.config_rate_bps,
    "loss": units.config_ratio,
}
STEPS_MAX = 3_000_000  # a file of the stage replay has no more
WRITTEN = ("at_us", "rate_bps", "delay_us", "loss", "limit_pkts")


@dataclass(frozen=True)
class Steps:
    """Steps that hold until the next one's time, the last one to end_ns. Times begin with 0."""

    at_ns: Floats
    rate_bps: Floats
    delay_ns: Floats
    loss: Floats
    limit_pkts: Floats
    end_ns: float

    @property
    def lengths_ns(self) -> Floats:
        return np.diff(self.at_ns, append=self.end_ns)

    def mean_rates(self, edges_ns: Floats) -> Floats:
        """Returns the mean rate between each two of these times."""
        bits = np.concatenate(([0.0], np.cumsum(self.rate_bps * self.lengths_ns)))
        at = np.append(self.at_ns, self.end_ns)
        return np.asarray(np.diff(np.interp(edges_ns, at, bits)) / np.diff(edges_ns))

    def series(self, step_ns: float) -> Floats:
        """Returns the mean rate of each whole interval of this length."""
        count = int(self.end_ns / step_ns + 1e-9)
        if count < 1:
            raise UserError(f"the trace has {units.time(self.end_ns)}, less than one --step", 2)
        return self.mean_rates(np.arange(count + 1, dtype=np.float64) * step_ns)


def make(
    at_ns: npt.ArrayLike,
    end_ns: float,
    rate_bps: npt.ArrayLike,
    delay_ns: npt.ArrayLike = 0.0,
    loss: npt.ArrayLike = 0.0,
    limit_pkts: npt.ArrayLike = 0.0,
) -> Steps:
    """Makes steps of arrays, or of a number for all; rates below the stage's least are outages."""
    at = np.asarray(at_ns, dtype=np.float64)
    rate, delay, lost, limit = (
        np.broadcast_to(np.asarray(values, dtype=np.float64), at.shape)
        for values in (rate_bps, delay_ns, loss, limit_pkts)
    )
    return Steps(
        at,
        np.where((rate >= 0) & (rate < RATE_MIN_BPS), 0.0, np.round(rate)),
        delay,
        lost,
        limit,
        float(end_ns),
    )


def write(steps: Steps, out: Path) -> None:
    """Writes a line for each step that differs from the one before it, and one for the end."""
    rows = np.column_stack(
        (steps.at_ns / 1e3, steps.rate_bps, steps.delay_ns / 1e3, steps.loss, steps.limit_pkts)
    )
    new = np.append(True, (np.diff(rows[:, 1:], axis=0) != 0).any(axis=1))
    lines = [",".join(WRITTEN)]
    lines += [",".join(plain(value) for value in row) for row in rows[new]]
    out.write_text("\n".join([*lines, plain(steps.end_ns / 1e3)]) + "\n", encoding="utf-8")


def plain(value: float) -> str:
    """Returns a number with as many digits as the stage can tell apart: 1 ns of 10^6 s, 1 bit/s."""
    return str(int(value)) if value == int(value) else f"{value:.9f}".rstrip("0").rstrip(".")


def read(file: Path) -> Steps:
    """Returns the steps of a file with a header."""
    text = (line for _, line in foreign.text_lines(file, lines_max=STEPS_MAX))
    stripped = enumerate(([cell.strip() for cell in row] for row in csv.reader(text)), 1)
    rows = ((n, row) for n, row in stripped if row and row[0] and row[0][0] != "#")
    names = next(rows, (0, []))[1]
    first = list(islice(rows, 2))
    if len(first) < 2 or not any(name.startswith("at_") for name in names):
        raise UserError(
            f"{file}: no steps with a header such as {','.join(WRITTEN[:3])}: say with --from what"
            " it is",
            2,
        )
    columns = {name: array("d") for name in names}
    last, end = first[0]
    for following in chain(first[1:], rows):
        (n, row), (last, end) = (last, end), following
        if len(row) != len(names):
            raise UserError(f"{file}:{n}: {len(row)} columns, and the header has {len(names)}", 2)
        for name, cell in zip(names, row, strict=True):
            columns[name].append(value(name, cell, f"{file}:{n}"))
    if len(end) != 1:
        raise UserError(f"{file}:{last}: the last line has only a time, that of the end", 2)
    at = next(name for name in names if name.startswith("at_"))
    columns[at].append(value(at, end[0], f"{file}:{last}"))
    return of_columns(columns, str(file))


def of_columns(columns: Mapping[str, array[float] | list[float]], place: str) -> Steps:
    """Returns the steps of columns in base units; that of times also has the end."""
    found = {name.split("_")[0]: np.asarray(values) for name, values in columns.items()}
    if len(found) < len(columns):
        raise UserError(f"{place}: two columns are one and the same: {', '.join(columns)}", 2)
    if "rate" not in found:
        raise UserError(f"{place}: no column is a rate, such as rate_bps", 2)
    at = found["at"]
    if at[0] != 0 or (np.diff(at) <= 0).any():
        raise UserError(f"{place}: times begin with 0 and rise from line to line", 2)
    zero = np.zeros(1)
    others = (found.get(name, zero) for name in ("delay", "loss", "limit"))
    return make(at[:-1], at[-1], found["rate"], *others)


def value(name: str, cell: str, place: str) -> float:
    """Returns the value of a column's cell, in ns, bit/s, a ratio or packets."""
    try:
        return float(cell) * factor(name)
    except ValueError:
        pass
    parse = PARSERS.get(name.split("_")[0])
    found = parse(cell) if parse is not None else None
    if found is None:
        raise UserError(f"{place}: {name}: '{cell}' is not a number", 2)
    return found


def factor(name: str) -> float:
    """Returns what a number without a unit is multiplied by: 1000 in delay_us."""
    if name in PLAIN:
        return PLAIN[name]
    stem, _, unit = name.partition("_")
    kind = {"at": "ns", "delay": "ns", "rate": "bit/s"}.get(stem)
    if kind is None or unit not in units.SUFFIXES[kind]:
        raise UserError(f"'{name}' is not a column: there are {', '.join(WRITTEN)}", 2)
    return units.SUFFIXES[kind][unit]
