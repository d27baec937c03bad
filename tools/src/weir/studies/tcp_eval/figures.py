# SPDX-License-Identifier: BSD-3-Clause
"""The common TCP evaluation suite, section 5.1.3: delay against throughput and drops by buffer."""

from __future__ import annotations

from collections.abc import Iterator

from weir.report import theme
from weir.report.figure import Axis, Figure, Mark, Panel, Points, beside, floats, named
from weir.report.theme import Style
from weir.studies.tcp_eval.study import BUFFERS, STANDARD, buffered, setup
from weir.study.claim import Found
from weir.study.measures import queue_ms, utilisation
from weir.study.scenario import lost_percent

MEASURES = ((utilisation, "throughput (% of the link)"), (lost_percent, "packets dropped (%)"))


def draw(found: Found, control: str) -> Iterator[Figure]:
    """Yields a point for each buffer, of the control and of standard TCP."""
    marks: list[list[Mark]] = [[], []]
    for number, name in enumerate(dict.fromkeys((control, STANDARD))):
        setups = [setup(buffered(percent), name) for percent in BUFFERS]
        runs = [run for of in setups for run in found.runs(of) or []]
        style = Style(name, theme.CYCLE[number], "ox"[number])
        delays = floats([queue_ms(run) for run in runs])
        for own, (measure, _) in zip(marks, MEASURES, strict=True):
            own.append(Points(delays, floats([measure(run) for run in runs]), style, size=6))
    x = Axis("mean time in the queue (ms)")
    panels = [Panel(x, Axis(label), own) for own, (_, label) in zip(marks, MEASURES, strict=True)]
    sizes = ", ".join(map(str, BUFFERS))
    caption = f"Access link at 85 % offered, buffers of {sizes} % of the BDP (section 5.1)."
    yield named("", beside(*panels), caption)
