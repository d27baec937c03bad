# SPDX-License-Identifier: BSD-3-Clause
"""A sweep's page: figures over its axes, what failed, what lies apart from its own kind."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from urllib.parse import quote

import numpy as np
import polars as pl

from weir.analysis import folder, spread
from weir.analysis.spread import Value
from weir.base import units
from weir.base.errors import UserError
from weir.base.page import (
    Bullets,
    Heading,
    Link,
    Page,
    Part,
    Status,
    Table,
    Text,
    Word,
    Words,
    section,
)
from weir.many import sweep_figures
from weir.many.sweep_figures import HREF, Choice
from weir.many.sweep_table import Axis, Metric, SweepTable, file_of, load
from weir.report import document
from weir.report.figure import Figure, named
from weir.report.page import address

NAME = "report.html"
SHOWN = ("goodput", "delay", "delay_p99", "jfi", "rtt", "retransmits")
HEATED = ("goodput", "delay")
JUDGED = ("goodput", "delay", "jfi")
OUTLYING = 8.0  # times the spread of all cells around the median of their own seeds
SEEDS_MIN = 3  # of a combination in which a cell may lie apart
ROWS_MAX = 20
STATES = ("done", "reused", "failed")


@dataclass(frozen=True)
class Base:
    """A baseline: a value of a parameter that varies."""

    axis: Axis
    value: Value

    @property
    def name(self) -> str:
        return self.axis.names[self.axis.values.index(self.value)]


def write(path: Path, out: Path | None = None, baseline: str | None = None) -> Path:
    """Writes the page into the sweep's folder, or `out`, and returns its path.

    baseline is a value of a parameter, such as cc=cubic. UserError: the sweep has it not.
    """
    table = load(path)
    base = None if baseline is None else base_of(table, baseline)
    place = (path if path.is_dir() else path.parent) if out is None else out
    place.mkdir(parents=True, exist_ok=True)
    whole = place / NAME
    folder.write_report(whole, page(table, place, base))
    return whole


def base_of(table: SweepTable, text: str) -> Base:
    """Returns what a text such as cc=cubic names. UserError: nothing, or too much for a figure."""
    axis, (value, *_) = table.chosen("--baseline", text)
    if len(axis.values) > sweep_figures.LINES_MAX:
        many, most = len(axis.values), sweep_figures.LINES_MAX
        raise UserError(f"--baseline: {axis.key} has {many} values: at most {most}")
    return Base(axis, value)


def page(table: SweepTable, place: Path, base: Base | None = None) -> str:
    """Returns the document, to be written into a folder `place`."""
    choice, left = sweep_figures.suggested(table.axes, None if base is None else base.axis)
    links = pl.Series(HREF, addresses(table, place), pl.String)
    shown, fixed = replace(table, frame=table.frame.with_columns(links)), []
    for one in left:
        shown = shown.where([f"{one.key}={one.values[0]}"])
        fixed.append(f"{one.key} = {one.names[0]}")
    far = outliers(table, place)
    figures = document.figures(draw(shown, choice, base) if choice is not None else [])
    parts = [
        Table(("parameter", "values", ""), [axis_row(one) for one in table.axes], left=3),
        Text(
            f"The figures are of {', '.join(fixed)}: more parameters vary than a figure has room"
            f" for. weir plot {table.path} --where chooses another value." if fixed else "",
            "note",
        ),
        *section("Cells that failed", Bullets(failed(table, place))),
        *(effects(shown, choice, base) if choice is not None and base is not None else []),
        *section("Figures", figures),
        Heading(f"Cells that lie apart{'' if far else ': none'}"),
        Text(
            "A cell lies apart if its goodput, delay or Jain's index is farther from the median of"
            " its parameters' seeds, three at least, than eight times the spread of all cells"
            " around theirs.",
            "small",
        ),
        Bullets(far),
        Heading("Data", "data"),
        Text([Link("The table, a row for each cell (Parquet)",
                   address(file_of(table.path), place))]),
    ]  # fmt: skip
    title = f"Sweep {table.path.resolve().name}"
    return document.render(Page(title, parts, status(table), headline(table)))


def headline(table: SweepTable) -> list[tuple[str, str]]:
    """Returns how many cells, combinations, seeds and axes there are."""
    combinations = table.frame.select(table.keys).n_unique() if table.keys else 1
    return [
        ("cells", units.count(table.frame.height)),
        ("combinations", units.count(combinations)),
        ("seeds", units.count(table.frame["seed"].n_unique())),
        ("parameters that vary", units.count(len(table.axes))),
    ]


def status(table: SweepTable) -> Status:
    """Returns how many cells have ended well."""
    counts = Counter(table.frame["status"])
    said = ", ".join(f"{counts[one]:,} {one}" for one in STATES if counts[one])
    return Status("warn" if counts["failed"] else "good", f"{said}.")


def axis_row(one: Axis) -> list[str]:
    names = one.names if len(one.names) <= ROWS_MAX else (*one.names[:10], "…", *one.names[-5:])
    return [one.key, ", ".join(names), f"{len(one.values)} values"]


def addresses(table: SweepTable, place: Path) -> list[str | None]:
    """Returns for each cell the address of its report, or of its folder; None: it is not there."""
    home = cache(lambda folder: address(folder, place))
    found: list[str | None] = []
    for run in map(table.run, range(table.frame.height)):
        own = f"{home(run.parent)}/{quote(run.name)}".removeprefix("./")
        report = (run / NAME).exists()
        found.append(f"{own}/{NAME}" if report else f"{own}/" if run.exists() else None)
    return found


def effects(table: SweepTable, choice: Choice, base: Base) -> list[Part]:
    """Returns the table of what differs from the baseline, at each combination that is shown."""
    named = [one for one in table.axes if one.key in choice.keys]
    names = {one.key: dict(zip(one.values, one.names, strict=True)) for one in named}
    rows = []
    for metric in filter(None, map(table.known, JUDGED)):
        show = partial(units.shown, unit=metric.unit)
        apart = table.beside(metric, choice.keys, base.axis.key, base.value)
        for row in apart.iter_rows(named=True):
            mean, low, high = row["mean"], row["low"], row["high"]
            share = mean / row["base"] if row["base"] else math.nan
            rows.append(
                [
                    *(names[key][row[key]] for key in names),
                    metric.label,
                    show(row["base"]),
                    show(row["own"]),
                    spread.stated(show, mean, low, high) if math.isfinite(low) else units.NONE,
                    units.percent(share if math.isfinite(share) else None, 1),
                ]
            )
    what = (f"{base.axis.label} {base.name}", "mean", "change", "share")
    left = len(rows) - ROWS_MAX
    more = f" The first {ROWS_MAX} of {len(rows):,}; the figures have all." if left > 0 else ""
    said = f"Changes of means over seeds, with their {spread.WELCH}.{more}"
    shown = Table((*(one.label for one in named), "number", *what), rows[:ROWS_MAX], len(named) + 1)
    return section(f"Beside {base.axis.label} {base.name}", Text(said, "small"), shown)


def draw(table: SweepTable, choice: Choice, base: Base | None) -> Iterator[Figure]:
    """Yields the figures with their captions."""
    for name in JUDGED if base is not None else ():
        metric = table.known(name)
        if metric is not None and base is not None:
            made = sweep_figures.beside(table, metric, choice, base.axis, base.value)
            yield named(f"{name}-beside", made, beside_caption(metric, choice, base))
    for name in SHOWN:
        metric = table.known(name)
        if metric is not None:
            yield named(name, sweep_figures.lines(table, metric, choice), caption(metric, choice))
    for name in HEATED:
        metric, field = table.known(name), heat_choice(choice)
        if metric is not None and field is not None:
            made = sweep_figures.heat(table, metric, field)
            yield named(f"{name}-heat", made, heat_caption(metric, field))


def heat_choice(choice: Choice) -> Choice | None:
    """Returns the axes of a heat map, a third as panels. None: no two have numbers."""
    others = [one for one in (choice.by, choice.facet) if one is not None]
    numeric = [one for one in others if one.numbers is not None and len(one.values) > 1]
    if choice.x.numbers is None or not numeric:
        return None
    rest = [one for one in others if one is not numeric[-1]]
    return replace(choice, by=numeric[-1], facet=rest[0] if rest else None)


def caption(metric: Metric, choice: Choice) -> str:
    """Returns the caption of a figure of lines."""
    by = "" if choice.by is None else f", by {choice.by.label}"
    facet = "" if choice.facet is None else f", in a panel for each value of {choice.facet.label}"
    return (
        f"{capital(metric.label)} over {choice.x.label}{by}{facet}. Points are means over seeds,"
        f" and strokes their {spread.STATED}."
    )


def beside_caption(metric: Metric, choice: Choice, base: Base) -> str:
    """Returns the caption of a figure of differences from a baseline."""
    return (
        f"Change of {metric.label} from {base.axis.label} {base.name}, over {choice.x.label}."
        f" Differences of means over seeds; strokes are their {spread.WELCH}."
    )


def heat_caption(metric: Metric, choice: Choice) -> str:
    """Returns the caption of a heat map."""
    by = "" if choice.by is None else choice.by.label
    return (
        f"{capital(metric.label)} over {choice.x.label} and {by}. Each square is a mean over seeds."
    )


def capital(text: str) -> str:
    """Returns a text with a capital letter first."""
    return text[:1].upper() + text[1:]


def outliers(table: SweepTable, place: Path) -> list[Words]:
    """Returns cells that lie far from the median of their own combination, farthest first."""
    found: dict[int, tuple[float, str]] = {}
    for name in JUDGED:
        metric = table.known(name)
        if metric is None:
            continue
        for row, (far, median) in apart(table, metric).items():
            if far > found.get(row, (0.0, ""))[0]:
                value = units.shown(float(metric.values[row]), metric.unit)
                other = units.shown(median, metric.unit)
                text = f"{metric.label} {value}, where the median over seeds is {other}"
                found[row] = far, text
    farthest = sorted(found, key=lambda row: -found[row][0])[:ROWS_MAX]
    return [linked(table, row, found[row][1], place) for row in farthest]


def apart(table: SweepTable, metric: Metric) -> dict[int, tuple[float, float]]:
    """Finds values whose distance from their median is OUTLYING times the common spread.

    Returns by row how many spreads it is away, and the median. The spread is 1.48 times the median
    of all distances that are not 0: that of normal values.
    """
    frame = table.frame.with_columns(
        row=pl.int_range(pl.len()), value=pl.Series(metric.values)
    ).select(*table.keys, "row", "value")
    median = pl.col("value").median()
    count = pl.col("value").count()
    kept = frame.filter(pl.col("value").is_finite())
    of = kept.with_columns(
        middle=median.over(table.keys) if table.keys else median,
        n=count.over(table.keys) if table.keys else count,
    ).filter((pl.col("n") >= SEEDS_MIN) & (pl.col("middle") != 0))
    of = of.with_columns(far=((pl.col("value") - pl.col("middle")) / pl.col("middle")).abs())
    spread = of.filter(pl.col("far") > 0)["far"].median()
    if not isinstance(spread, float) or spread == 0:
        return {}
    beyond = of.with_columns(far=pl.col("far") / (1.4826 * spread)).filter(pl.col("far") > OUTLYING)
    return {row: (far, middle) for row, far, middle in beyond.select("row", "far", "middle").rows()}


def failed(table: SweepTable, place: Path) -> list[Words]:
    """Returns the first cells that failed, and why."""
    rows = np.flatnonzero((table.frame["status"] == "failed").to_numpy())[:ROWS_MAX]
    messages = table.frame["message"] if "message" in table.frame.columns else None
    return [
        linked(table, int(row), str(messages[int(row)]) if messages is not None else "", place)
        for row in rows
    ]


def linked(table: SweepTable, row: int, text: str, place: Path) -> list[Word]:
    """Returns a cell and what is said of it, with a link to its report or to its folder."""
    run = table.run(row)
    if not run.exists():  # only its row was kept
        return [run.name, f": {text}" if text else ""]
    report = run / NAME
    there = report.exists()
    link = Link(run.name, address(report if there else run, place))
    return [link, f": {text}" if text else "", "" if there else " (weir report writes its page)"]
