# SPDX-License-Identifier: BSD-3-Clause
"""The figures of Linux beside ours: windows over time, and what mixes share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import polars as pl

from weir.report import theme
from weir.report.figure import Axis, Figure, Line, Mark, Panel, Points, Strokes, floats, named
from weir.report.scene import maximum
from weir.report.theme import Style
from weir.studies.linux import beside
from weir.studies.linux.cases import ALL, CONTROLS, Pair

STYLES = {
    "linux": Style("Linux", theme.BLACK, "o"),
    "weir": Style("Weir", theme.VERMILLION, "o"),
}


def draw(pairs: Sequence[Pair]) -> Iterator[Figure]:
    """Yields each figure whose runs are there."""
    for queue, name in (("fifo", "FIFO"), ("codel", "CoDel")):
        if alone := [p for p in pairs if p.case.queue == queue and not p.case.mixed]:
            caption = (
                f"Congestion windows behind a {name} queue. They are in segments, over seconds;"
                " each link has a row and each control a column. Linux's is TCP_INFO's, once in"
                " 100 ms."
            )
            yield named("", windows(alone), caption)
    if mixed := [p for p in pairs if p.case.mixed]:
        caption = (
            "What the first of two controls gets of the goodput. A point is a seed, and a bar their"
            " mean; each control has two flows. The means may differ by at most"
            f" {beside.QUOTA_OFF}."
        )
        yield named("", mixes(mixed), caption)


def windows(pairs: Sequence[Pair]) -> Figure:
    """Shows a panel per link and control, both sides in it."""
    links = list(dict.fromkeys(pair.case.link.name for pair in pairs))
    places = {(p.case.link.name, p.case.controls[0]): p for p in pairs}
    panels = []
    for link in links:
        for control in CONTROLS:
            title = ALL[control].name if link == links[0] else ""
            y = Axis(link.replace("-", "\n", 1) if control == CONTROLS[0] else "", 0)
            pair = places.get((link, control))
            panels.append(Panel(Axis(), y, []) if pair is None else window(pair, y, title))
    return Figure(panels, columns=len(CONTROLS), height_in=0.5 + 0.95 * len(links))


def window(pair: Pair, y: Axis, title: str) -> Panel:
    """Returns the windows of both sides of a pair."""
    marks = []
    for side, style in STYLES.items():
        curve = pair.runs[side][0].cwnd
        shown = floats(curve["time_s"]), floats(curve["cwnd_segs"])
        marks.append(Line(*shown, style, width=0.8))
    late = [p.cwnd.filter(pl.col("time_s") > 2) for ran in pair.runs.values() for p in ran]
    top = max((maximum(c, "cwnd_segs") or 1.0 for c in late if c.height), default=1.0)
    x = Axis("", 0, pair.case.duration_s)
    return Panel(x, replace(y, high=1.15 * top), marks, title)


def mixes(pairs: Sequence[Pair]) -> Figure:
    """Shows points of seeds and their means."""
    marks: list[Mark] = []
    for y, pair in enumerate(reversed(pairs)):
        for offset, (side, style) in zip((0.15, -0.15), STYLES.items(), strict=True):
            quotas = floats([one.quota for one in pair.runs[side]])
            at, mean = floats(y + offset), floats(pair.mean(side, "quota"))
            marks.append(Points(quotas, np.full(quotas.size, y + offset), style, size=2))
            marks.append(Strokes(mean, at - 0.13, at + 0.13, style, width=1.5))
    names = [f"{beside.title(p.case)}, {p.case.queue}" for p in reversed(pairs)]
    ticks = [(float(place), name) for place, name in enumerate(names)]
    panel = Panel(Axis("part of the goodput", 0, 1), Axis(ticks=ticks), marks)
    return Figure([panel], height_in=0.8 + 0.32 * len(pairs))
