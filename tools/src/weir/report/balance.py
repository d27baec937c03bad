# SPDX-License-Identifier: BSD-3-Clause
"""Figures of how flows share a link: fairness over time, throughput against delay."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl
from matplotlib.figure import Figure

from weir.analysis import windows
from weir.base import units
from weir.report import axes
from weir.report.axes import Scene
from weir.report.theme import Style


def fairness(series: Sequence[tuple[Style, pl.DataFrame]], scene: Scene) -> Figure:
    """Draws Jain's index over time, a line per series of windows.windows."""
    figure, (panel,) = axes.subplots(1, 2.0)
    for style, windowed in series:
        over_time = windows.jfi_over_time(windowed)
        panel.plot(
            over_time["time_s"],
            over_time["jfi"],
            color=style.colour,
            linestyle=style.dash,
            label=style.label,
        )
    axes.time_axis(panel, scene)
    panel.set_ylim(0, 1.04)
    panel.set_ylabel("Jain's index")
    axes.legend(figure)
    return figure


def tradeoff(series: Sequence[tuple[Style, pl.DataFrame]]) -> Figure | None:
    """Draws goodput of a flow against its RTT: mean and one-sigma ellipse of each series.

    None if no flow measured its RTT.
    """
    found = []
    for style, windowed in series:
        x, y = (windowed[c].to_numpy().astype(float) for c in ("rtt_mean_ns", "goodput_bps"))
        one = windows.ellipse(x, y)
        if one is not None:
            found.append((style, one))
    if not found:
        return None
    figure, (panel,) = axes.subplots(1, 2.8)
    slow, slow_unit = units.step(max(e.contour_x.max() for _, e in found), units.TIME_STEPS)
    fast, fast_unit = units.step(max(e.contour_y.max() for _, e in found), units.RATE_STEPS)
    for style, one in found:
        outline = np.stack([one.contour_x / slow, one.contour_y / fast], axis=1)
        panel.fill(*outline.T, color=style.colour, alpha=0.2, linewidth=0)
        panel.plot(*outline.T, color=style.colour, linestyle=style.dash, linewidth=0.9)
        panel.plot(
            [one.x / slow],
            [one.y / fast],
            style.marker,
            color=style.colour,
            markersize=5,
            label=style.label,
        )
    panel.set_ylim(bottom=max(0.0, panel.get_ylim()[0]))
    low, high = panel.get_xlim()
    panel.set_xlim(high, low)  # less delay to the right: better is up and to the right
    panel.set_xlabel(f"RTT ({slow_unit}), less to the right")
    panel.set_ylabel(f"goodput per flow ({fast_unit})")
    axes.legend(figure)
    return figure
