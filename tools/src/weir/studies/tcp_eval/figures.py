# SPDX-License-Identifier: BSD-3-Clause
"""The common TCP evaluation suite, section 5.1.3: delay against throughput and drops by buffer."""

from __future__ import annotations

from collections.abc import Iterator

from matplotlib.figure import Figure

from weir.report import axes, theme
from weir.studies.tcp_eval.study import BUFFERS, STANDARD, buffered, trial
from weir.study.claim import Found
from weir.study.scenario import delay_ms, lost_percent, used_percent

MEASURES = ((used_percent, "throughput (% of the link)"), (lost_percent, "packets dropped (%)"))


def draw(found: Found, control: str) -> Iterator[tuple[Figure, str]]:
    """Draws a point for each buffer, of the control and of standard TCP."""
    figure, both = axes.subplots(2)
    for number, name in enumerate(dict.fromkeys((control, STANDARD))):
        trials = [(percent, trial(buffered(percent), name)) for percent in BUFFERS]
        runs = [(percent, run) for percent, of in trials for run in found.runs(of) or []]
        for axis, (measure, label) in zip(both, MEASURES, strict=True):
            delays = [delay_ms(run) for _, run in runs]
            values = [measure(run) for _, run in runs]
            axis.plot(delays, values, "ox"[number], color=theme.CYCLE[number], label=name)
            axis.set(xlabel="mean time in the queue (ms)", ylabel=label)
    axes.legend(figure)
    sizes = ", ".join(map(str, BUFFERS))
    yield figure, f"Access link at 85 % offered, buffers of {sizes} % of the BDP (section 5.1)."
