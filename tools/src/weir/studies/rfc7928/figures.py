# SPDX-License-Identifier: BSD-3-Clause
"""RFC 7928, section 2.7: each case's delay and use of the link, beside the drop-tail queue's."""

from __future__ import annotations

from collections.abc import Iterator

from weir.report import theme
from weir.report.figure import Axis, Figure, Label, Mark, Panel, Points, floats
from weir.report.theme import Style
from weir.studies.rfc7928.study import CASES, DISCIPLINES, Discipline, setup
from weir.study.claim import Found
from weir.study.measures import queue_ms, utilisation

HEIGHT_IN = 3.4


def points(found: Found, discipline: Discipline) -> list[tuple[float, float, str]]:
    rows = []
    for case in CASES:
        for run in found.runs(setup(case, discipline)) or []:
            rows.append((queue_ms(run), utilisation(run), case.name))
    return rows


def draw(found: Found, discipline: Discipline) -> Iterator[Figure]:
    """Yields the trade-off between latency and goodput."""
    marks: list[Mark] = []
    for number, one in enumerate(dict.fromkeys((discipline, DISCIPLINES[0]))):
        rows = points(found, one)
        if not rows:
            continue
        delays, used, _ = zip(*rows, strict=True)
        style = Style(one.name, theme.CYCLE[number], "ox"[number])
        marks.append(Points(floats(delays), floats(used), style, size=6))
        if number == 0:
            marks += [Label(x, y, name, size=6, away=(4, -3)) for x, y, name in rows]
    x = Axis("mean time in the queue (ms)", scale="log")
    yield Figure(
        [Panel(x, Axis("link used (%)"), marks)],
        height_in=HEIGHT_IN,
        caption="Latency and goodput of each case, by its section (section 2.7).",
    )
