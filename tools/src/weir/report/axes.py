# SPDX-License-Identifier: BSD-3-Clause
"""The parts that figures share: scene, subplots, axes of time, legend, looks of flows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from weir.base import units
from weir.report import theme
from weir.report.theme import FAINT, INK, Style

WIDTH_IN = 7.2
FEW = 10  # as many flows are drawn one by one; more as median and band
HIDING = 2.5  # a start with a peak of more times what comes later hides that
BANDS = len(theme.CYCLE)  # as many groups have a band of their own; those of more hide each other
WIDE = 92  # characters of a legend over the whole width
ROW_IN = 0.18  # of a legend
LEVEL: dict[str, Any] = {"color": INK, "linewidth": 0.8, "linestyle": (0, (4, 2))}


@dataclass(frozen=True)
class Scene:
    """The groups, links and times that every figure of a run shares."""

    groups: Sequence[Style]  # by group index
    duration_s: float
    warmup_s: float = 0.0
    links: Sequence[str] = ()  # names by link index
    link_styles: Sequence[Style] = ()  # likewise; of none, a link looks as its name does
    flows: Mapping[int, str] = field(default_factory=dict)  # of a capture: their addresses

    def flow(self, flow_id: int) -> str:
        return self.flows.get(flow_id, f"flow {flow_id}")

    def group(self, index: int) -> Style:
        """Returns the look of a group, also of one that the summary does not know."""
        if index < len(self.groups):
            return self.groups[index]
        return theme.style("", f"group {index}", index)


def subplots(columns: int, height_in: float = 2.35) -> tuple[Figure, list[Axes]]:
    """Returns a figure of the page's width with so many axes side by side."""
    figure = Figure(figsize=(WIDTH_IN, height_in))
    return figure, list(figure.subplots(1, columns, squeeze=False)[0])


def split_by(frame: pl.DataFrame, key: str) -> list[tuple[int, pl.DataFrame]]:
    """Returns a frame's rows by the values of an integer column, in its order."""
    values = sorted(int(value) for value in frame[key].unique())
    return [(value, frame.filter(pl.col(key) == value)) for value in values]


def time_axis(axes: Axes, scene: Scene) -> None:
    """Sets up an axis of time from 0 to the run's end, with a line where the warm-up ends."""
    axes.set_xlabel("time (s)")
    axes.set_xlim(0, scene.duration_s)
    axes.set_ylim(bottom=0)
    if scene.warmup_s > 0:
        axes.axvline(scene.warmup_s, color=FAINT, linewidth=0.7, linestyle=(0, (1, 2)))


def steady(
    axes: Axes,
    scene: Scene,
    frame: pl.DataFrame,
    column: str,
    scale: tuple[float, str],
    base: float = 0.0,
) -> None:
    """Cuts the y axis where the run settled, if its start would hide that, and marks the peak.

    scale: divisor and unit of the axis. base: where it begins, e.g. at the propagation delay.
    """
    divisor, unit = scale
    late = maximum(frame.filter(pl.col("time_s") > scene.warmup_s), column) / divisor
    peak = maximum(frame, column) / divisor
    if scene.warmup_s <= 0 or late <= base or peak - base < HIDING * (late - base):
        return
    axes.set_ylim(top=base + 1.5 * (late - base))
    at = frame.filter(pl.col(column) == frame[column].max())["time_s"][0]
    axes.plot(
        [at],
        [1],
        "^",
        transform=axes.get_xaxis_transform(),
        clip_on=False,
        color=INK,
        markersize=3.5,
        label=f"peak {units.number(peak)} {unit}",
    )


def legend(figure: Figure, wide: int = WIDE) -> None:
    """Draws one legend above all axes of the figure, which grows by the rows this takes.

    What a figure says in words stands here, where it hides no data. wide: characters of a row.
    """
    entries: dict[str, Artist] = {}
    for axes in figure.axes:
        handles, labels = axes.get_legend_handles_labels()
        entries |= dict(zip(labels, handles, strict=True))
    if not entries:
        return
    labels = list(entries)
    columns = next((n for n in range(len(labels), 1, -1) if _wide(labels, n) <= wide), 1)
    rows = -(-len(labels) // columns)
    figure.set_figheight(figure.get_figheight() + ROW_IN * (rows - 1))
    figure.legend(
        entries.values(),
        labels,
        loc="outside upper left",
        ncols=columns,
        columnspacing=1.2,
        handletextpad=0.5,
    )


def _wide(labels: Sequence[str], columns: int) -> int:
    """Returns the characters of labels in so many columns, with what is drawn before each."""
    lengths = np.array([len(label) + 5 for label in labels])
    return int(sum(part.max() for part in np.array_split(lengths, columns)))


def bands(axes: Axes, spread: pl.DataFrame, divisor: float, scene: Scene) -> None:
    """Draws the median flow of each group, and if they are few a band around it."""
    groups = split_by(spread, "group")
    names = [spread_column(spread, name) for name in ("low", "median", "high")]
    for group, part in groups:
        style, time = scene.group(group), part["time_s"].to_numpy()
        low, median, high = (part[name].to_numpy() / divisor for name in names)
        if len(groups) <= BANDS:
            axes.fill_between(time, low, high, color=style.colour, alpha=0.2, linewidth=0)
        axes.plot(time, median, color=style.colour, linestyle=style.dash, label=style.label)


def spread_column(spread: pl.DataFrame, name: str) -> str:
    """Returns the column of metrics.spread_over_time that has low, median or high of something."""
    return next(column for column in spread.columns if column.startswith(f"{name}_"))


def banded(spread: pl.DataFrame, steps: units.Steps, label: str, scene: Scene) -> Figure:
    """Draws the median flow of each group over time, of metrics.spread_over_time."""
    figure, (panel,) = subplots(1, 2.1)
    divisor, unit = units.step(maximum(spread, spread_column(spread, "high")), steps)
    bands(panel, spread, divisor, scene)
    panel.set_ylabel(f"{label} ({unit})")
    time_axis(panel, scene)
    legend(figure)
    return figure


def flow_styles(
    flows: pl.DataFrame, scene: Scene, roles: Mapping[int, str] | None = None
) -> dict[int, Style]:
    """Returns the looks of flows: the group's colour, with shades and dashes if it has several.

    roles: what a flow stands for in its group, see metrics.typical_flows.
    """
    styles: dict[int, Style] = {}
    groups = split_by(flows, "group")
    for group, part in groups:
        base = scene.group(group)
        ids = sorted(int(flow) for flow in part["flow_id"])
        several = len(ids) > 1
        colours = (
            list(theme.CYCLE)
            if several and len(groups) == 1 and len(ids) <= len(theme.CYCLE)
            else theme.shades(base.colour, len(ids), light=0.35)
        )
        for k, (flow, colour) in enumerate(zip(ids, colours, strict=False)):
            dash = theme.DASHES[k % len(theme.DASHES)] if several else base.dash
            role = (roles or {}).get(flow, "")
            parts = [base.label] if len(groups) > 1 or not (several or role) else []
            name = scene.flow(flow)
            parts += [f"{role} ({name})"] if role else [name] if several else []
            styles[flow] = Style(", ".join(parts), colour, base.marker, dash)
    return styles


def maximum(frame: pl.DataFrame, column: str) -> float:
    """Returns a column's largest value; 0 if it has none."""
    value = frame[column].max()
    return float(value) if isinstance(value, int | float) else 0.0
