# SPDX-License-Identifier: BSD-3-Clause
"""A sweep's figures: a number against a parameter with its interval, and heat maps of two."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from weir.analysis.spread import Floats, Value
from weir.base import units
from weir.base.errors import UserError
from weir.many.sweep_table import Axis, Metric, SweepTable
from weir.report import axes as shared
from weir.report import many_figures, theme
from weir.report.theme import Style

PANELS_MAX = 12
LINES_MAX = 20
BESIDE = 3  # panels in a row
PANEL_IN = 1.9  # height of a row of panels
TICKS_MAX = 8  # values that all have a tick
TEXTS_MAX = 12  # fields in a row, of all panels beside each other, with their numbers in them
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
    """Draws means over seeds with their 95 % intervals, in a panel for each value of facet."""
    figure, grid = panels(choice.facet)
    means = table.means(metric, choice.keys)
    divisor, unit = scale(metric, means)
    for axes, part, name in zip(grid, *parts(means, choice.facet), strict=True):
        line_panel(axes, part, choice, divisor)
        axes.set_title(name, loc="left")
        axes.set_xlabel(choice.x.label)
        if choice.logy:
            axes.set_yscale("log")
    top = max(axes.get_ylim()[1] for axes in grid)
    for place, axes in enumerate(grid):
        if not choice.logy:
            axes.set_ylim(0, 1.05 * top)
        if place % BESIDE == 0:
            axes.set_ylabel(f"{metric.label} ({unit})" if unit else metric.label)
        if place + BESIDE < len(grid):
            axes.set_xlabel("")
    shared.legend(figure)
    return figure


def line_panel(axes: Axes, means: pl.DataFrame, choice: Choice, divisor: float = 1.0) -> None:
    """Draws the lines of one panel; means comes from SweepTable.means."""
    places = places_of(choice.x)
    values = [None] if choice.by is None else list(choice.by.values)
    for value, style in zip(values, styles(choice.by), strict=True):
        own = means if choice.by is None else means.filter(pl.col(choice.by.key) == value)
        shown = own.with_columns(
            x=pl.Series([places[v] for v in own[choice.x.key]], dtype=pl.Float64)
        ).sort("x")
        x, y = shown["x"].to_numpy(), shown["mean"].to_numpy() / divisor
        axes.plot(
            x,
            y,
            color=style.colour,
            linestyle=style.dash,
            marker=style.marker,
            markersize=3.5,
            label=style.label if choice.by is not None else None,
        )
        intervals(axes, x, shown, divisor, style.colour)
    x_axis(axes, choice)


def intervals(axes: Axes, x: Floats, shown: pl.DataFrame, divisor: float, colour: str) -> None:
    """Draws upright strokes from low to high, as one artist."""
    gap = np.full(x.size, np.nan)
    low, high = (shown[name].to_numpy() / divisor for name in ("low", "high"))
    ends = np.column_stack([low, high, gap]).ravel()
    axes.plot(np.repeat(x, 3), ends, color=colour, linewidth=0.9)


def places_of(axis: Axis) -> dict[Value, float]:
    """Places values at their number, or one after the other."""
    numbers = axis.numbers or range(len(axis.values))
    return {value: float(n) for value, n in zip(axis.values, numbers, strict=True)}


def x_axis(axes: Axes, choice: Choice) -> None:
    """Sets the scale, and ticks at the values where they are few."""
    axis = choice.x
    if choice.logx:
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter("{x:g}")
    if axis.numbers is None or len(axis.values) <= TICKS_MAX:
        names = axis.names if axis.numbers is None else [f"{n:g}" for n in axis.numbers]
        axes.set_xticks(list(places_of(axis).values()), names)
        axes.xaxis.set_minor_locator(NullLocator())
    if axis.numbers is None:
        axes.set_xlim(-0.4, len(axis.values) - 0.6)
        if max(map(len, axis.names)) > 9:
            axes.tick_params(axis="x", rotation=30)


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


def panels(facet: Axis | None) -> tuple[Figure, list[Axes]]:
    """Makes a panel for each value; those below each other have the same axes."""
    count = 1 if facet is None else len(facet.values)
    columns = min(BESIDE, count)
    rows = -(-count // columns)
    height = 2.35 if rows == 1 else PANEL_IN * rows
    figure = Figure(figsize=(shared.WIDTH_IN, height))
    grid = list(figure.subplots(rows, columns, squeeze=False).ravel())
    for axes in grid[count:]:
        axes.set_visible(False)
    return figure, grid[:count]


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
    return units.step(shared.maximum(means.fill_nan(None), "mean"), units.STEPS[metric.unit])


def heat(table: SweepTable, metric: Metric, choice: Choice) -> Figure:
    """Draws means over seeds as colours, over two parameters; one scale for all panels."""
    if choice.by is None:
        raise UserError("a heat map has two parameters: --x and --heat")
    figure, grid = panels(choice.facet)
    means = table.means(metric, choice.keys)
    divisor, unit = scale(metric, means)
    known = means["mean"].to_numpy() / divisor
    ends = (float(np.nanmin(known)), float(np.nanmax(known))) if known.size else (0.0, 1.0)
    if not math.isfinite(ends[0]):
        raise UserError(f"{table.path} has no {metric.label}", 1)
    meshes = []
    for place, (axes, part, name) in enumerate(zip(grid, *parts(means, choice.facet), strict=True)):
        meshes.append(heat_panel(axes, part, choice, divisor, ends))
        axes.set_title(name, loc="left")
        axes.set_xlabel(choice.x.label if place + BESIDE >= len(grid) else "")
        axes.set_ylabel(choice.by.label if place % BESIDE == 0 else "")
    label = f"{metric.label} ({unit})" if unit else metric.label
    figure.colorbar(meshes[-1], ax=grid, label=label, aspect=30, pad=0.01).outline.set_visible(
        False
    )
    return figure


def heat_panel(
    axes: Axes, means: pl.DataFrame, choice: Choice, divisor: float, ends: tuple[float, float]
) -> QuadMesh:
    """Draws a heat map: x and by as columns and rows in their order, numbers if they are few."""
    assert choice.by is not None
    columns = {value: i for i, value in enumerate(choice.x.values)}
    rows = {value: i for i, value in enumerate(choice.by.values)}
    field = np.full((len(rows), len(columns)), np.nan)
    for x, y, mean in means.select(choice.x.key, choice.by.key, "mean").iter_rows():
        field[rows[y], columns[x]] = mean / divisor
    mesh = axes.pcolormesh(field, cmap="viridis", vmin=ends[0], vmax=ends[1], rasterized=True)
    for axis, of in ((axes.xaxis, choice.x), (axes.yaxis, choice.by)):
        step = -(-len(of.values) // 12)
        names = of.names if of.numbers is None else [f"{n:g}" for n in of.numbers]
        axis.set_ticks([i + 0.5 for i in range(0, len(names), step)], names[::step])
    axes.grid(visible=False)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    beside = 1 if choice.facet is None else min(BESIDE, len(choice.facet.values))
    if len(columns) * beside <= TEXTS_MAX and len(rows) <= TEXTS_MAX:
        for (row, column), value in np.ndenumerate(field):
            dark = value < (ends[0] + ends[1]) / 2 or ends[0] == ends[1]
            axes.text(
                column + 0.5,
                row + 0.5,
                units.number(None if math.isnan(value) else float(value)),
                ha="center",
                va="center",
                fontsize=7,
                color="white" if dark else theme.INK,
            )
    return mesh


def suggested(found: Sequence[Axis]) -> tuple[Choice | None, list[Axis]]:
    """Chooses what a page shows over what, and returns the axes that are left too."""
    if not found:
        return None, []
    numeric = [one for one in found if one.numbers is not None]
    x = max(numeric or found, key=lambda one: len(one.values))
    rest = [one for one in found if one is not x]
    rest.sort(key=lambda one: (not one.key.endswith("cc"), len(one.values)))
    by = next((one for one in rest if len(one.values) <= LINES_MAX), None)
    rest = [one for one in rest if one is not by]
    facet = next((one for one in rest if len(one.values) <= PANELS_MAX), None)
    left = [one for one in rest if one is not facet]
    wide = x.numbers is not None and min(x.numbers) > 0
    logx = wide and max(x.numbers or (1,)) >= LOG_FROM * min(x.numbers or (1,))
    return Choice(x, by, facet, logx), left
