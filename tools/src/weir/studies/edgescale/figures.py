# SPDX-License-Identifier: BSD-3-Clause
"""The figure of EdgeScale: how BBR's flows drain the queue together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from weir.report import theme
from weir.report.figure import LEVEL, Axis, Figure, Line, Panel, floats, named, stacked
from weir.report.theme import Style
from weir.studies.edgescale import measures
from weir.study.claim import Found
from weir.study.scenario import first_link


def draw(found: Found) -> Iterator[Figure]:
    """Yields the figure if its run is there."""
    runs = found.runs("phases")
    if runs is None:
        return
    (run,) = runs
    links = first_link(run)
    times_s = floats(links["ts_ns"] / 1e9)
    styles = [
        Style(name, theme.CYCLE[i % len(theme.CYCLE)], "")
        for i, name in enumerate(run.summary.groups[0].modes)
    ]
    queue = Line(times_s, floats(links["sojourn_mean_ns"] / 1e6), replace(LEVEL, dash="-"))
    shares = stacked(times_s, list(measures.phases(run, times_s)), styles)
    time = Axis("time (s)", 0, is_time=True)
    panels = [
        Panel(time, Axis("queue (ms)", 0), [queue]),
        Panel(time, Axis("share of flows", 0, 1), shares),
    ]
    figure = Figure(panels, height_in=3.4)
    caption = (
        "50 flows of BBR drain the queue together. Above is the mean time in the queue, below the"
        " share of flows in each phase. In PROBE_RTT all measure the same RTprop, which makes their"
        " windows equal."
    )
    yield named("", figure, caption)
