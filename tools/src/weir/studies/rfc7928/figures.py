# SPDX-License-Identifier: BSD-3-Clause
"""RFC 7928, section 2.7: each case's delay and use of the link, beside the drop-tail queue's."""

from __future__ import annotations

from collections.abc import Iterator

from matplotlib.figure import Figure

from weir.report import axes, theme
from weir.studies.rfc7928.study import CASES, DISCIPLINES, Discipline, trial
from weir.study.claim import Found
from weir.study.scenario import delay_ms, used_percent

HEIGHT_IN = 3.4


def points(found: Found, discipline: Discipline) -> list[tuple[float, float, str]]:
    rows = []
    for case in CASES:
        for run in found.runs(trial(case, discipline)) or []:
            rows.append((delay_ms(run), used_percent(run), case.name))
    return rows


def draw(found: Found, discipline: Discipline) -> Iterator[tuple[Figure, str]]:
    """Draws the trade-off between latency and goodput."""
    figure = Figure(figsize=(axes.WIDTH_IN, HEIGHT_IN))
    axis = figure.subplots()
    shown = dict.fromkeys((discipline, DISCIPLINES[0]))
    for number, one in enumerate(shown):
        rows = points(found, one)
        if not rows:
            continue
        delays, used, names = zip(*rows, strict=True)
        marker = "o" if number == 0 else "x"
        axis.plot(delays, used, marker, color=theme.CYCLE[number], label=one.name)
        for delay, part, name in zip(delays, used, names, strict=True) if number == 0 else ():
            axis.annotate(name, (delay, part), textcoords="offset points", xytext=(4, -3), size=6)
    axis.set(xlabel="mean time in the queue (ms)", ylabel="link used (%)")
    axis.set_xscale("log")
    axes.legend(figure)
    yield figure, "Latency and goodput of each case, by its section (section 2.7)."
