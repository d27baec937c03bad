# SPDX-License-Identifier: BSD-3-Clause
"""Rates and delays of a run over time, for the pages of studies."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure

from weir.report import axes, theme

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from weir.analysis.folder import Run

HEIGHT_IN = 3.6


def points(
    axis: Axes, found: Iterable[tuple[float, float]], style: theme.Style, size: int = 4
) -> None:
    """Draws points (x, y) joined by a line, as a style has them."""
    axis.plot(
        *zip(*found, strict=True),
        style.marker,
        ls=style.dash,
        color=style.colour,
        markersize=size,
        label=style.label,
    )


def names(run: Run) -> list[theme.Style]:
    controls = [group.cc for group in run.summary.groups for _ in range(group.flows)]
    return theme.styles_of(
        [(f"{theme.style(cc).label}, flow {place}", cc) for place, cc in enumerate(controls, 1)]
    )


def rates_and_delay(run: Run) -> Figure:
    """Draws goodput of each flow, and below it the time in the first link's queue."""
    figure = Figure(figsize=(axes.WIDTH_IN, HEIGHT_IN))
    above, below = figure.subplots(2, 1, sharex=True)
    records, links = run.stream("interval").records, run.stream("links").records
    for flow, style in enumerate(names(run)):
        own = records[records["flow_id"] == flow]
        if len(own) < 2:
            continue
        length_s = np.diff(own["ts_ns"], prepend=own["ts_ns"][0] - np.diff(own["ts_ns"])[0]) / 1e9
        mbps = own["delivered_bytes"] * 8 / length_s / 1e6
        above.plot(own["ts_ns"] / 1e9, mbps, color=style.colour, ls=style.dash, label=style.label)
    links = links[links["link"] == 0]
    below.plot(links["ts_ns"] / 1e9, links["sojourn_mean_ns"] / 1e6, color=theme.INK)
    above.set(ylabel="goodput (Mbit/s)", ylim=(0, None))
    below.set(ylabel="time in the queue (ms)", xlabel="time (s)", ylim=(0, None))
    axes.legend(figure)
    return figure
