# SPDX-License-Identifier: BSD-3-Clause
"""The cases of RFC 8867: rates over time against the link's, and the time in its queue."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from weir.analysis.folder import Run
from weir.report import theme
from weir.report.figure import LEVEL, Axis, Figure, Line, Mark, Panel, alike, floats, named
from weir.report.scene import TIME
from weir.report.theme import Style
from weir.studies.rmcat.study import CASES, CONTROLS, MediaCase
from weir.study import curves
from weir.study.claim import Found

HEIGHT_IN = 3.4
STEP_NS = 10**9  # rates are means of a second


def draw(found: Found) -> Iterator[Figure]:
    """Yields a figure for each case whose runs are there."""
    for case in CASES:
        runs = [found.runs(case.setup(cc)) for cc in CONTROLS]
        known = [each[0] for each in runs if each]
        if len(known) == len(CONTROLS):
            caption = (
                f"Section {case.section}: {case.title}. Above are rates, below is the time in the"
                " queue."
            )
            yield named("", one(case, known), caption)


def one(case: MediaCase, runs: list[Run]) -> Figure:
    """Returns a column for each control."""
    time = Axis(TIME, 0, case.end_s, is_time=True)
    above = [
        Panel(time, Axis("Mbit/s", 0), rates(case, run), name)
        for run, name in zip(runs, CONTROLS.values(), strict=True)
    ]
    below = [
        Panel(time, Axis("queue (ms)", 0), [Line(*curves.queue_ms(run), curves.QUEUE, width=0.8)])
        for run in runs
    ]
    panels = [*alike(above, x=False, y=True), *alike(below, x=False, y=True)]
    return Figure(panels, columns=len(runs), height_in=HEIGHT_IN)


def rates(case: MediaCase, run: Run) -> list[Mark]:
    """Returns goodput of each media flow and of all others together, second by second."""
    records = run.stream("interval").records
    media = case.media + len(case.back[:1])
    marks: list[Mark] = []
    for flow in range(media):
        own = Style(f"media flow {flow + 1}", theme.CYCLE[flow], "")
        marks.append(rate(records[records["flow_id"] == flow], own, case.end_s))
    others = records[records["flow_id"] >= media]
    if len(others):
        marks.append(rate(others, Style("other flows", theme.GREY, ""), case.end_s))
    style = replace(LEVEL, label="the link's rate")
    for steps in filter(None, (case.rate, case.back)):
        at_s, mbps = zip(*steps, (case.end_s, steps[-1][1]), strict=True)
        marks.append(Line(floats(at_s), floats(mbps), style, steps="post", width=0.8))
    return marks


def rate(records: np.ndarray, style: Style, end_s: float) -> Line:
    seconds = np.asarray((records["ts_ns"] - 1) // STEP_NS, dtype=np.int64)
    delivered = np.bincount(seconds, records["delivered_bytes"], minlength=round(end_s))
    middles = floats(np.arange(len(delivered)) + 0.5)
    return Line(middles, floats(delivered * 8 / 1e6), style, width=0.8)
