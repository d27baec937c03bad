# SPDX-License-Identifier: BSD-3-Clause
"""The post's figures: retransmissions against queueing delay, and percentiles over the users."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from weir.report import theme
from weir.report.figure import Axis, Figure, Line, Panel, Points, beside, floats, named
from weir.report.theme import Style
from weir.studies.mvfst import measures
from weir.study.claim import Found
from weir.study.measures import only_queue_ms, rtx_per_acked

CONTROLS = ("cubic", "bbr", "copa")
USERS = 39  # with each control
PERCENTS = np.arange(1, 100)


def draw(found: Found) -> Iterator[Figure]:
    """Yields each figure whose runs are there."""
    if figure := signatures(found):
        caption = (
            "Retransmissions against queueing delay. One flow is behind a policer, or in front of a"
            " link of the same rate with 50 or 200 ms of buffer."
        )
        yield named("", figure, caption)
    if figure := percentiles(found):
        caption = (
            "Percentiles over the population. They are of the transport's round trips, the times of"
            " the video's frames, and the users' retransmissions."
        )
        yield named("", figure, caption)


def signatures(found: Found) -> Figure | None:
    """Shows retransmissions over delay, of F2."""
    marks = []
    for cc in ("cubic", "copa"):
        known = theme.style(cc)
        for where, marker in zip(("policer", "tail-200ms", "tail-50ms"), "os^", strict=True):
            runs = found.runs(f"f2-{where}-{cc}")
            if runs is not None:
                style = Style(f"{known.label}, {where.replace('-', ' ')}", known.colour, marker)
                place = floats(only_queue_ms(runs[0])), floats(rtx_per_acked(runs[0]))
                marks.append(Points(*place, style, size=6))
    if not marks:
        return None
    y = Axis("sent again per acknowledged byte", scale="symlog", linear_to=1e-3)
    return Figure([Panel(Axis("mean time in the queue (ms)"), y, marks)])


def percentiles(found: Found) -> Figure | None:
    """Shows the rows of the A/B table as curves."""
    each = {cc: found.runs(f"user-{cc}-*") or [] for cc in CONTROLS}
    known = {cc: runs for cc, runs in each.items() if len(runs) >= USERS}
    if not known:
        return None

    def panel(samples: measures.Samples, y: Axis) -> Panel:
        marks = []
        for cc, runs in known.items():
            values = [measures.over_all(runs, samples, float(p)) for p in PERCENTS]
            marks.append(Line(floats(PERCENTS), floats(values), theme.style(cc)))
        return Panel(Axis("percentile"), y, marks)

    resent = Axis("sent again per acknowledged", scale="symlog", linear_to=1e-3)
    return beside(
        panel(measures.rtts_ms, Axis("round trip (ms)", scale="log")),
        panel(measures.frame_ms, Axis("time of a frame (ms)", scale="log")),
        panel(measures.overhead, resent),
    )
