# SPDX-License-Identifier: BSD-3-Clause
"""The cases of RFC 8867: rates over time against the link's, and the time in its queue."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure

from weir.report import axes, theme
from weir.studies.rmcat.study import CASES, CONTROLS, MediaCase
from weir.study.claim import Found

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from weir.analysis.folder import Run

HEIGHT_IN = 3.4
STEP_NS = 10**9  # rates are means of a second


def draw(found: Found) -> Iterator[tuple[Figure, str]]:
    """Draws a figure for each case whose runs are there."""
    for case in CASES:
        runs = [found.runs(case.trial(cc)) for cc in CONTROLS]
        known = [each[0] for each in runs if each]
        if len(known) == len(CONTROLS):
            yield (
                one(case, known),
                f"Section {case.section}: {case.title}. Dashed: the link's rate.",
            )


def one(case: MediaCase, runs: list[Run]) -> Figure:
    """Draws a column for each control."""
    figure = Figure(figsize=(axes.WIDTH_IN, HEIGHT_IN))
    above, below = figure.subplots(2, len(runs), sharex=True, sharey="row")
    for column, (run, name) in enumerate(zip(runs, CONTROLS.values(), strict=True)):
        rates(above[column], case, run)
        queue(below[column], run)
        above[column].set_title(name, fontsize="small")
    above[0].set(ylabel="Mbit/s", ylim=(0, None))
    below[0].set(ylabel="queue (ms)", ylim=(0, None))
    below[1].set(xlabel="time (s)")
    return figure


def rates(axis: Axes, case: MediaCase, run: Run) -> None:
    """Draws goodput of each media flow and of all others together, second by second."""
    records = run.stream("interval").records
    media = case.media + len(case.back[:1])
    for flow in range(media):
        plot_rate(axis, records[records["flow_id"] == flow], theme.CYCLE[flow], case.end_s)
    plot_rate(axis, records[records["flow_id"] >= media], theme.GREY, case.end_s)
    for steps in (case.rate, case.back):
        if steps:
            at_s, mbps = zip(*steps, (case.end_s, steps[-1][1]), strict=True)
            axis.step(at_s, mbps, where="post", **axes.LEVEL)


def plot_rate(axis: Axes, records: np.ndarray, colour: str, end_s: float) -> None:
    seconds = np.asarray((records["ts_ns"] - 1) // STEP_NS, dtype=np.int64)
    delivered = np.bincount(seconds, records["delivered_bytes"], minlength=round(end_s))
    axis.plot(np.arange(len(delivered)) + 0.5, delivered * 8 / 1e6, color=colour, linewidth=0.8)


def queue(axis: Axes, run: Run) -> None:
    links = run.stream("links").records
    links = links[links["link"] == 0]
    axis.plot(links["ts_ns"] / 1e9, links["sojourn_mean_ns"] / 1e6, color=theme.INK, linewidth=0.8)
