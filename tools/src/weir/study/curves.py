# SPDX-License-Identifier: BSD-3-Clause
"""Rates and delays of a run over time, for the pages of studies."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from weir.analysis.folder import Run
from weir.report import theme
from weir.report.figure import Axis, Figure, Floats, Line, Mark, Panel, alike, floats
from weir.report.scene import TIME
from weir.study.scenario import first_link

HEIGHT_IN = 3.6
SECONDS = Axis(TIME, is_time=True)
QUEUE = theme.Style("", theme.INK, "")


def points(found: Iterable[tuple[float, float | None]], style: theme.Style) -> Line:
    """Returns points (x, y) joined by a line, as a style has them."""
    x, y = zip(*found, strict=True)
    return Line(floats(x), floats(y), style, markers=1)


def queue_ms(run: Run) -> tuple[Floats, Floats]:
    """Returns times in s, and the mean time in the first link's queue before each."""
    links = first_link(run)
    return floats(links["ts_ns"] / 1e9), floats(links["sojourn_mean_ns"] / 1e6)


def names(run: Run) -> list[theme.Style]:
    controls = [group.cc for group in run.summary.groups for _ in range(group.flows)]
    return theme.styles_of(
        [(f"{theme.style(cc).label}, flow {place}", cc) for place, cc in enumerate(controls, 1)]
    )


def rates_and_delay(run: Run) -> Figure:
    """Shows goodput of each flow, and below it the time in the first link's queue."""
    records = run.stream("interval").records
    rates: list[Mark] = []
    for flow, style in enumerate(names(run)):
        own = records[records["flow_id"] == flow]
        if len(own) < 2:
            continue
        length_s = np.diff(own["ts_ns"], prepend=own["ts_ns"][0] - np.diff(own["ts_ns"])[0]) / 1e9
        mbps = own["delivered_bytes"] * 8 / length_s / 1e6
        rates.append(Line(floats(own["ts_ns"] / 1e9), floats(mbps), style))
    above = Panel(SECONDS, Axis("goodput (Mbit/s)", 0), rates)
    below = Panel(SECONDS, Axis("time in the queue (ms)", 0), [Line(*queue_ms(run), QUEUE)])
    return Figure(alike([above, below]), height_in=HEIGHT_IN)
