# SPDX-License-Identifier: BSD-3-Clause
"""The parts that figures share: scene, subplots, axes of time, legend, looks of flows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from weir.base import units
from weir.report.scene import (
    BANDS,
    FEW,
    HIDING,
    Scene,
    flow_styles,
    maximum,
    split_by,
    spread_column,
)
from weir.report.theme import FAINT, INK

__all__ = ["BANDS", "FEW", "Scene", "flow_styles", "maximum", "split_by", "spread_column"]

WIDTH_IN = 7.2
WIDE = 92  # characters of a legend over the whole width
ROW_IN = 0.18  # of a legend
LEVEL: dict[str, Any] = {"color": INK, "linewidth": 0.8, "linestyle": (0, (4, 2))}


def subplots(columns: int, height_in: float = 2.35) -> tuple[Figure, list[Axes]]:
    """Returns a figure of the page's width with so many axes side by side."""
    figure = Figure(figsize=(WIDTH_IN, height_in))
    return figure, list(figure.subplots(1, columns, squeeze=False)[0])


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


def banded(spread: pl.DataFrame, steps: units.Steps, label: str, scene: Scene) -> Figure:
    """Draws the median flow of each group over time, of metrics.spread_over_time."""
    figure, (panel,) = subplots(1, 2.1)
    divisor, unit = units.step(maximum(spread, spread_column(spread, "high")), steps)
    bands(panel, spread, divisor, scene)
    panel.set_ylabel(f"{label} ({unit})")
    time_axis(panel, scene)
    legend(figure)
    return figure
