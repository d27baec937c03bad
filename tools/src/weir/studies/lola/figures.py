# SPDX-License-Identifier: BSD-3-Clause
"""LoLa's figures in the paper's axes: throughput, windows with their rounds, round trips."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure

from weir.report import axes, theme
from weir.studies.lola import measures
from weir.study.claim import Found

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from weir.analysis.folder import Run

SEGMENT_BITS = 8 * 1448


def draw(found: Found) -> Iterator[tuple[Figure, str]]:
    """Draws each figure whose runs are there, with its caption."""
    if (runs := found.runs("l1-two")) is not None:
        yield (
            two(runs[0]),
            "Throughput, windows and round trips of two flows. Shaded: fair flow balancing of the"
            " first; dashed: the base RTT and the target of 5 ms. The paper's figures 4 to 6.",
        )
    if (figure := over_bases(found)) is not None:
        yield (
            figure,
            "The round trip over other base RTTs. Dashed: the base and the target. The paper's"
            " figure 6.",
        )
    if (runs := found.runs("l5-eighteen")) is not None:
        yield many(runs[0]), "Eighteen flows. Windows of all, and the time in the queue."


def of_flow(run: Run, flow: int) -> np.ndarray:
    records = run.stream("interval").records
    return np.asarray(records[records["flow_id"] == flow])


def rtts(axis: Axes, run: Run, base_ms: float) -> None:
    own = of_flow(run, 0)
    known = own[own["rtt_max_ns"] > 0]
    axis.plot(known["ts_ns"] / 1e9, known["rtt_max_ns"] / 1e6, color=theme.BLUE, linewidth=0.8)
    for level in (base_ms, base_ms + 5):
        axis.axhline(level, **axes.LEVEL)


def two(run: Run) -> Figure:
    """Draws figures 4 to 6 of L1."""
    figure = Figure(figsize=(axes.WIDTH_IN, 5.2))
    rate, window, delay = figure.subplots(3, 1, sharex=True)
    fair, hold = (measures.starts_s(run, 0, mode) for mode in ("fair", "hold"))
    for begin in fair:
        ends = hold[hold > begin]
        window.axvspan(begin, ends[0] if len(ends) else begin, color=theme.GRID, zorder=0)
    for flow in (0, 1):
        own, colour = of_flow(run, flow), theme.CYCLE[flow]
        time_s = own["ts_ns"] / 1e9
        rate.plot(
            time_s, own["delivered_bytes"] * 8 / 0.1 / 1e9, color=colour, label=f"flow {flow + 1}"
        )
        window.plot(time_s, own["cwnd_segs"] / 1e3, color=colour)
    rtts(delay, run, 21)
    rate.set(ylabel="goodput (Gbit/s)", ylim=(0, 10))
    window.set(ylabel="cwnd (1000 segments)", ylim=(0, None))
    delay.set(ylabel="RTT (ms)", xlabel="time (s)")
    axes.legend(figure)
    return figure


def over_bases(found: Found) -> Figure | None:
    """Draws figure 6 for L2, side by side."""
    known = [(ms, runs[0]) for ms in (5, 61, 101) if (runs := found.runs(f"l2-{ms}")) is not None]
    if not known:
        return None
    figure, columns = axes.subplots(len(known))
    for axis, (ms, run) in zip(columns, known, strict=True):
        rtts(axis, run, ms)
        axis.set_title(f"{ms} ms", loc="left")
        axis.set_xlabel("time (s)")
    columns[0].set_ylabel("RTT (ms)")
    return figure


def many(run: Run) -> Figure:
    """Draws the windows and the queue of L5."""
    figure = Figure(figsize=(axes.WIDTH_IN, 3.6))
    window, delay = figure.subplots(2, 1, sharex=True)
    for flow in range(18):
        own = of_flow(run, flow)
        window.plot(
            own["ts_ns"] / 1e9,
            own["cwnd_segs"] / 1e3,
            linewidth=0.6,
            color=theme.CYCLE[flow % len(theme.CYCLE)],
        )
    links = run.stream("links").records
    links = links[links["link"] == 0]
    delay.plot(links["ts_ns"] / 1e9, links["sojourn_mean_ns"] / 1e6, color=theme.INK)
    window.set(ylabel="cwnd (1000 segments)", ylim=(0, None))
    delay.set(ylabel="time in the queue (ms)", xlabel="time (s)", ylim=(0, None))
    return figure
