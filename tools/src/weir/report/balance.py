# SPDX-License-Identifier: BSD-3-Clause
"""Figures of how flows share a link: fairness over time, throughput against delay."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from weir.analysis import windows
from weir.base import units
from weir.report.figure import Axis, Figure, Line, Mark, Panel, Points, Polygon, ends, floats
from weir.report.scene import Scene, over_time
from weir.report.theme import Style


def fairness(series: Sequence[tuple[Style, pl.DataFrame]], scene: Scene) -> Figure:
    """Shows Jain's index over time, a line per series of windows.windows."""
    marks = []
    for style, windowed in series:
        index = windows.jfi_over_time(windowed)
        marks.append(Line(floats(index["time_s"]), floats(index["jfi"]), style))
    return Figure([over_time(scene, Axis("Jain's index", 0, 1.04), marks)], height_in=2.0)


def tradeoff(series: Sequence[tuple[Style, pl.DataFrame]]) -> Figure | None:
    """Shows goodput of a flow against its RTT: mean and one-sigma ellipse of each series.

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
    slow, slow_unit = units.step(max(e.contour_x.max() for _, e in found), units.TIME_STEPS)
    fast, fast_unit = units.step(max(e.contour_y.max() for _, e in found), units.RATE_STEPS)
    marks: list[Mark] = []
    for style, one in found:
        marks.append(Polygon(one.contour_x / slow, one.contour_y / fast, style))
        marks.append(Points(floats(one.x / slow), floats(one.y / fast), style, size=5.5))
    # Less delay to the right: better is up and to the right.
    x_axis = Axis(f"RTT ({slow_unit}), less to the right", reversed=True)
    y_axis = Axis(f"goodput per flow ({fast_unit})")
    bottom = max(0.0, ends(Panel(x_axis, y_axis, marks))[1][0])
    y_axis = Axis(y_axis.label, bottom)
    return Figure([Panel(x_axis, y_axis, marks)], height_in=2.8)
