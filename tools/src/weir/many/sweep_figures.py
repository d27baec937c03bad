# SPDX-License-Identifier: BSD-3-Clause
"""A sweep's figures: a number against a parameter with its interval, and heat maps of two."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from weir.analysis.spread import Value
from weir.base import units
from weir.base.errors import UserError
from weir.many.sweep_table import Axis, Metric, SweepTable
from weir.report import figure as values
from weir.report import many_figures, theme
from weir.report.figure import Field, Figure, Line, Mark, Panel, Rule, Strokes, alike, floats
from weir.report.scene import maximum
from weir.report.theme import Style

PANELS_MAX = 12
LINES_MAX = 20
BESIDE = 3  # panels in a row
PANEL_IN = 1.9  # height of a row of panels
TICKS_MAX = 8  # values that all have a tick
TEXTS_MAX = 12  # fields in a row, of all panels beside each other, with their numbers in them
HREF = "href"  # a column: the address of a cell's run
LOG_FROM = 20.0  # an axis that spans more is logarithmic where nobody says


@dataclass(frozen=True)
class Choice:
    """The parameters over which a figure is drawn."""

    x: Axis
    by: Axis | None = None  # a line for each value; of a heat map the other axis
    facet: Axis | None = None  # a panel for each
    logx: bool = False
    logy: bool = False

    @property
    def keys(self) -> list[str]:
        """The parameters that are shown."""
        return [one.key for one in (self.facet, self.by, self.x) if one is not None]


def check(table: SweepTable, choice: Choice) -> None:
    """Refuses a choice that leaves out a parameter that varies, or has too much of one."""
    for one in table.axes:
        if one.key not in choice.keys:
            raise UserError(
                f"{one.key} varies too ({', '.join(one.names[:6])}): choose it with --by or"
                f" --facet, or one value with --where {one.key}={one.names[0]}"
            )
    if len(set(choice.keys)) < len(choice.keys):
        raise UserError("--x, --by and --facet are three different parameters")
    for what, found, most in (
        ("--by", choice.by, LINES_MAX),
        ("--facet", choice.facet, PANELS_MAX),
    ):
        if found is not None and len(found.values) > most:
            raise UserError(f"{what}: {found.key} has {len(found.values)} values: at most {most}")
    if choice.logx and (choice.x.numbers is None or min(choice.x.numbers) <= 0):
        raise UserError(f"--logx: {choice.x.key} has values that are no numbers above 0")


def lines(table: SweepTable, metric: Metric, choice: Choice) -> Figure:
    """Shows means over seeds with their 95 % intervals, in a panel for each value of facet."""
    means = linked(table, table.means(metric, choice.keys))
    divisor, unit = scale(metric, means)
    label = f"{metric.label} ({unit})" if unit else metric.label
    y = values.Axis(label, scale="log") if choice.logy else values.Axis(label, 0)
    made = panels(means, choice, y, divisor)
    return figure(made if choice.logy else alike(made, x=False, y=True))


def beside(table: SweepTable, metric: Metric, choice: Choice, base: Axis, value: Value) -> Figure:
    """Shows the differences from the means at one value of a parameter, with their intervals."""
    apart = linked(table, table.beside(metric, choice.keys, base.key, value))
    divisor, unit = scale(metric, apart.with_columns(pl.col("mean").abs()))
    y = values.Axis(f"change ({unit})" if unit else "change")
    made = panels(apart, choice, y, divisor)
    ruled = [replace(one, marks=[Rule(0.0), *one.marks]) for one in made if one.marks]
    return figure(alike(ruled, x=False, y=True))


def linked(table: SweepTable, points: pl.DataFrame) -> pl.DataFrame:
    """Adds the addresses of each point's runs, if the table has those of its cells."""
    keys = [name for name in points.columns if name in table.keys]
    if HREF not in table.frame.columns:
        return points
    runs = table.frame.group_by(keys, maintain_order=True).agg(pl.col(HREF).drop_nulls())
    return points.join(runs, on=keys, how="left", nulls_equal=True, maintain_order="left")


def panels(means: pl.DataFrame, choice: Choice, y: values.Axis, divisor: float) -> list[Panel]:
    """Returns a panel for each value of facet."""
    return [
        Panel(x_axis(choice), y, marks_of(part, choice, divisor), name)
        for part, name in zip(*parts(means, choice.facet), strict=True)
    ]


def marks_of(means: pl.DataFrame, choice: Choice, divisor: float = 1.0) -> list[Mark]:
    """Returns the lines of one panel with their intervals; means comes from SweepTable.means."""
    places = places_of(choice.x)
    chosen = [None] if choice.by is None else list(choice.by.values)
    marks: list[Mark] = []
    for value, style in zip(chosen, styles(choice.by), strict=True):
        own = means if choice.by is None else means.filter(pl.col(choice.by.key) == value)
        if own.is_empty():
            continue
        shown = own.with_columns(
            x=pl.Series([places[v] for v in own[choice.x.key]], dtype=pl.Float64)
        ).sort("x")
        x, mean, low, high = (floats(shown[name]) for name in ("x", "mean", "low", "high"))
        solid = replace(style, dash="-")
        hrefs = shown[HREF].to_list() if HREF in shown.columns else ()
        marks.append(Line(x, mean / divisor, style, markers=1, hrefs=hrefs))
        marks.append(Strokes(x, low / divisor, high / divisor, solid))
    return marks


def places_of(axis: Axis) -> dict[Value, float]:
    """Places values at their number, or one after the other."""
    numbers = axis.numbers or range(len(axis.values))
    return {value: float(n) for value, n in zip(axis.values, numbers, strict=True)}


def x_axis(choice: Choice) -> values.Axis:
    """Returns the axis, with ticks at the values where they are few."""
    axis = choice.x
    scale: values.Scale = "log" if choice.logx else "linear"
    names = axis.names if axis.numbers is None else [f"{n:g}" for n in axis.numbers]
    ticks = list(zip(places_of(axis).values(), names, strict=True))
    if axis.numbers is None:
        return values.Axis(axis.label, -0.4, len(names) - 0.6, ticks=ticks)
    few = ticks if len(ticks) <= TICKS_MAX else []
    return values.Axis(axis.label, scale=scale, ticks=few)


def styles(axis: Axis | None) -> list[Style]:
    """Returns the look of each value: a control's own, or the next of the cycle."""
    if axis is None:
        return [theme.style("", "", 0)]
    if axis.key.endswith(("cc", "queue")):
        return many_figures.styles(axis.names)
    return theme.styles_of([(labelled(axis, name), "") for name in axis.names])


def labelled(axis: Axis, name: str) -> str:
    """Returns a value with the name of its parameter, where it is a number."""
    return f"{axis.label.partition(' (')[0]} {name}" if axis.numbers is not None else name


def figure(panels: Sequence[Panel]) -> Figure:
    """Returns a figure of panels, in rows of BESIDE."""
    rows = -(-len(panels) // BESIDE)
    height = values.HEIGHT_IN if rows == 1 else PANEL_IN * rows
    return Figure(panels, columns=BESIDE, height_in=height)


def parts(means: pl.DataFrame, facet: Axis | None) -> tuple[list[pl.DataFrame], list[str]]:
    """Returns the rows of each panel, and its name."""
    if facet is None:
        return [means], [""]
    names = [style.label for style in styles(facet)]
    return [means.filter(pl.col(facet.key) == value) for value in facet.values], names


def scale(metric: Metric, means: pl.DataFrame) -> tuple[float, str]:
    """Returns divisor and unit of the axis."""
    if metric.unit not in units.STEPS:
        return 1.0, metric.unit
    return units.step(maximum(means.fill_nan(None), "mean"), units.STEPS[metric.unit])


def heat(table: SweepTable, metric: Metric, choice: Choice) -> Figure:
    """Shows means over seeds as colours, over two parameters; one scale for all panels."""
    if choice.by is None:
        raise UserError("a heat map has two parameters: --x and --heat")
    means = linked(table, table.means(metric, choice.keys))
    divisor, unit = scale(metric, means)
    known = means["mean"].to_numpy() / divisor
    ends = (float(np.nanmin(known)), float(np.nanmax(known))) if known.size else (0.0, 1.0)
    if not math.isfinite(ends[0]):
        raise UserError(f"{table.path} has no {metric.label}", 1)
    label = f"{metric.label} ({unit})" if unit else metric.label
    found, names = parts(means, choice.facet)
    x, y = heat_axis(choice.x), heat_axis(choice.by)
    beside = min(BESIDE, len(found))
    written = len(choice.x.values) * beside <= TEXTS_MAX and len(choice.by.values) <= TEXTS_MAX
    made = []
    for part, name in zip(found, names, strict=True):
        field, hrefs = field_of(part, choice.x, choice.by)
        mark = Field(field / divisor, label, *ends, written=written, hrefs=hrefs)
        made.append(Panel(x, y, [mark], name))
    return figure(made)


def heat_axis(axis: Axis) -> values.Axis:
    """Returns an axis of a heat map: the parameter's values in their order, at most 12 named."""
    step = -(-len(axis.values) // 12)
    names = axis.names if axis.numbers is None else [f"{n:g}" for n in axis.numbers]
    ticks = [(place + 0.5, name) for place, name in enumerate(names)][::step]
    return values.Axis(axis.label, 0, len(names), ticks=ticks)


def field_of(means: pl.DataFrame, x: Axis, y: Axis) -> tuple[values.Floats, list[list[str]]]:
    """Returns means as a rectangle, x and y as columns and rows in their order, and addresses."""
    columns = {value: i for i, value in enumerate(x.values)}
    rows = {value: i for i, value in enumerate(y.values)}
    field = np.full((len(rows), len(columns)), np.nan)
    for across, up, mean in means.select(x.key, y.key, "mean").iter_rows():
        field[rows[up], columns[across]] = mean
    if HREF not in means.columns:
        return field, []
    hrefs: list[list[str]] = [[] for _ in range(field.size)]
    for across, up, own in means.select(x.key, y.key, HREF).iter_rows():
        hrefs[rows[up] * len(columns) + columns[across]] = own
    return field, hrefs


def suggested(found: Sequence[Axis], base: Axis | None = None) -> tuple[Choice | None, list[Axis]]:
    """Chooses what a page shows over what, base by lines; returns the axes that are left too."""
    if not found:
        return None, []
    free = [one for one in found if one is not base] or found
    numeric = [one for one in free if one.numbers is not None]
    x = max(numeric or free, key=lambda one: len(one.values))
    rest = [one for one in found if one is not x]
    rest.sort(key=lambda one: (one is not base, not one.key.endswith("cc"), len(one.values)))
    by = next((one for one in rest if len(one.values) <= LINES_MAX), None)
    rest = [one for one in rest if one is not by]
    facet = next((one for one in rest if len(one.values) <= PANELS_MAX), None)
    left = [one for one in rest if one is not facet]
    wide = x.numbers is not None and min(x.numbers) > 0
    logx = wide and max(x.numbers or (1,)) >= LOG_FROM * min(x.numbers or (1,))
    return Choice(x, by, facet, logx), left
