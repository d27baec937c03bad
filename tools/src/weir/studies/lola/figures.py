# SPDX-License-Identifier: BSD-3-Clause
"""LoLa's figures in the paper's axes: throughput, windows with their rounds, round trips."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from weir.analysis.folder import Run
from weir.report import theme
from weir.report.figure import (
    LEVEL,
    MOMENT,
    Axis,
    Figure,
    Line,
    Mark,
    Panel,
    Rule,
    Span,
    alike,
    beside,
    floats,
    named,
)
from weir.report.theme import Style
from weir.studies.lola import measures
from weir.study import curves
from weir.study.claim import Found
from weir.study.curves import SECONDS

BASE = replace(LEVEL, label="base RTT")
TARGET = replace(MOMENT, label="target: the base RTT and 5 ms")
RTT, WINDOW = Axis("RTT (ms)"), Axis("cwnd (1000 segments)", 0)


def draw(found: Found) -> Iterator[Figure]:
    """Yields each figure whose runs are there."""
    if (runs := found.runs("l1-two")) is not None:
        caption = (
            "Throughput, windows and round trips of two flows. They are those of the paper's"
            " figures 4 to 6."
        )
        yield named("", two(runs[0]), caption)
    known = [(ms, runs[0]) for ms in (5, 61, 101) if (runs := found.runs(f"l2-{ms}")) is not None]
    if known:
        caption = "The round trip over other base RTTs. It is that of the paper's figure 6."
        panels = [Panel(SECONDS, RTT, rtts(run, ms), f"{ms} ms") for ms, run in known]
        yield named("", beside(*panels), caption)
    if (runs := found.runs("l5-eighteen")) is not None:
        caption = "Eighteen flows. Above are the windows of all, below is the time in the queue."
        yield named("", many(runs[0]), caption)


def of_flow(run: Run, flow: int) -> np.ndarray:
    records = run.stream("interval").records
    return np.asarray(records[records["flow_id"] == flow])


def rtts(run: Run, base_ms: float) -> list[Mark]:
    own = of_flow(run, 0)
    known = own[own["rtt_max_ns"] > 0]
    shown = floats(known["ts_ns"] / 1e9), floats(known["rtt_max_ns"] / 1e6)
    line = Line(*shown, Style("", theme.BLUE, ""), width=0.8)
    return [line, Rule(base_ms, BASE), Rule(base_ms + 5, TARGET)]


def windows(run: Run, flows: int) -> list[Mark]:
    """Returns the window of each flow, in 1000 segments."""
    marks: list[Mark] = []
    for flow in range(flows):
        own, colour = of_flow(run, flow), theme.CYCLE[flow % len(theme.CYCLE)]
        shown = floats(own["ts_ns"] / 1e9), floats(own["cwnd_segs"] / 1e3)
        marks.append(Line(*shown, Style(f"flow {flow + 1}", colour, ""), width=0.9))
    return marks


def two(run: Run) -> Figure:
    """Shows figures 4 to 6 of L1."""
    fair, hold = (measures.starts_s(run, 0, mode) for mode in ("fair", "hold"))
    shade = Style("fair flow balancing of flow 1", theme.GRID, "")
    window: list[Mark] = []
    for begin in fair:
        ends = hold[hold > begin]
        window.append(Span(begin, ends[0] if len(ends) else begin, shade, upright=True))
    window += windows(run, 2)
    rate: list[Mark] = []
    for flow in (0, 1):
        own, style = of_flow(run, flow), Style(f"flow {flow + 1}", theme.CYCLE[flow], "")
        gbps = floats(own["delivered_bytes"] * 8 / 0.1 / 1e9)
        rate.append(Line(floats(own["ts_ns"] / 1e9), gbps, style))
    panels = [
        Panel(SECONDS, Axis("goodput (Gbit/s)", 0, 10), rate),
        Panel(SECONDS, WINDOW, window),
        Panel(SECONDS, RTT, rtts(run, 21)),
    ]
    return Figure(alike(panels), height_in=5.2)


def many(run: Run) -> Figure:
    """Shows the windows and the queue of L5."""
    queue = Line(*curves.queue_ms(run), curves.QUEUE)
    panels = [
        Panel(SECONDS, WINDOW, windows(run, 18)),
        Panel(SECONDS, Axis("time in the queue (ms)", 0), [queue]),
    ]
    return Figure(alike(panels), height_in=3.6)
