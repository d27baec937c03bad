# SPDX-License-Identifier: BSD-3-Clause
"""Figures of single segments: time-sequence graphs as tcptrace draws them, and around a drop.

In tcptrace's conventions, on white: a segment is an upright arrow from its first byte to its last,
a retransmission a red stroke with an R, the ACKs a green staircase below with a tick for each
duplicate, the end of the receiver's window a yellow one above, and what SACK reports a purple
stroke. Frames are of analysis/segments.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from weir.base import units
from weir.report import axes as shared
from weir.report import bounded, theme
from weir.report.axes import maximum

LETTER = "$R$"  # of a retransmission
LETTERS_MAX = 40  # that can be read; of more every nth retransmission has one
Stroke = tuple[str, str, str, dict[str, Any]]  # its ends, marker at the upper one, style
STROKES: dict[str, Stroke] = {
    "segment": (
        "start",
        "end",
        "^",
        {"color": theme.BLACK, "linewidth": 0.7, "markersize": 2.2, "markeredgewidth": 0},
    ),
    "retransmission": (
        "start",
        "end",
        LETTER,
        {"color": theme.VERMILLION, "linewidth": 1.2, "markersize": 5, "markeredgewidth": 0},
    ),
    "SACK": (
        "sack_start",
        "sack_end",
        "s",
        {"color": theme.PURPLE, "linewidth": 0.6, "markersize": 1.6, "markeredgewidth": 0},
    ),
}
STAIRS = {"ACK": ("ack", theme.GREEN, "-"), "window": ("window", theme.ORANGE, theme.DASHES[1])}
WINDOW_SEEN = 3.0  # times the height of all else: a window's end farther away is not drawn


@dataclass(frozen=True)
class Around:
    """The packets, segments and queue around a dropped packet."""

    flow: pl.DataFrame  # of segments.numbered
    arrivals: pl.DataFrame  # of its packets at the queue: time_s, queue_bytes
    queue: pl.DataFrame  # time_s, queue_bytes
    drops: pl.DataFrame  # time_s, queue_bytes
    cwnd: pl.DataFrame  # time_s, cwnd_segs
    drop_s: float
    reason: str
    start: int | None  # its first byte; None: not known
    resent_s: float | None  # when it was sent again


def between(frame: pl.DataFrame, from_s: float, to_s: float) -> pl.DataFrame:
    """Returns the rows of a stretch of time."""
    return frame.filter(pl.col("time_s").is_between(from_s, to_s))


def stevens(panel: Axes, flow: pl.DataFrame, points: int = bounded.POINTS_MAX) -> None:
    """Draws one flow's time-sequence graph into axes; flow is of segments.numbered.

    points: of a line at most; of more strokes than that allows every nth is drawn.
    """
    divisor, unit = units.step(maximum(flow, "end"), units.BYTE_STEPS)
    scaled = flow.with_columns(
        pl.col(name) / divisor
        for name in ("start", "end", "ack", "window", "sack_start", "sack_end")
    )
    for name, (column, colour, dash) in STAIRS.items():
        own = scaled.drop_nulls(column)
        if own.height == 0 or (name == "window" and not window_near(scaled)):
            continue
        drawn: dict[str, Any] = {"color": colour, "linestyle": dash, "drawstyle": "steps-post"}
        panel.plot(own["time_s"], own[column], linewidth=0.9, label=name, **drawn)
    repeats = scaled.filter("duplicate")
    tick: dict[str, Any] = {"color": theme.GREEN, "linestyle": "none", "markersize": 4}
    tick["markeredgewidth"] = 0.5
    panel.plot(repeats["time_s"], repeats["ack"], marker="|", label="duplicate ACK", **tick)
    kinds = {"segment": ~pl.col("resent"), "retransmission": pl.col("resent")}
    for name, (low, high, marker, style) in STROKES.items():
        own = scaled.filter(kinds.get(name, pl.lit(True))).drop_nulls(low)
        if own.height:
            own = own.gather_every(-(-3 * own.height // points))
            time, y = strokes(own, low, high)
            letters = -(-own.height // LETTERS_MAX) if marker == LETTER else 1
            panel.plot(time, y, label=name, marker=marker, markevery=(1, 3 * letters), **style)
    panel.set_ylabel(f"sequence number ({unit})")
    panel.set_xlabel("time (s)")


def window_near(flow: pl.DataFrame) -> bool:
    """Returns whether the window's end leaves room to see the segments."""
    low, top = flow.select(pl.min_horizontal("start", "ack").min(), pl.col("end").max()).row(0)
    return top is not None and maximum(flow, "window") - low <= WINDOW_SEEN * (top - low)


def strokes(own: pl.DataFrame, low: str, high: str) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Returns upright strokes as one line: two points and a gap each."""
    ends = [own[end].to_numpy().astype(float) for end in (low, high)]
    y = np.column_stack([*ends, np.full(own.height, np.nan)]).ravel()
    return np.repeat(own["time_s"].to_numpy(), 3), y


def sequence(flow: pl.DataFrame, title: str) -> Figure:
    """Draws the time-sequence graph of a flow, or of a part of it."""
    figure, (panel,) = shared.subplots(1, 2.8)
    stevens(panel, flow)
    panel.set_title(title, loc="left")
    shared.legend(figure)
    return figure


def timeline(around: Around) -> Figure:
    """Draws a drop: its flow's segments and ACKs, the queue where it happened, the window."""
    figure = Figure(figsize=(shared.WIDTH_IN, 4.6))
    top, middle, bottom = figure.subplots(3, 1, sharex=True, height_ratios=(2, 1, 1))
    stevens(top, around.flow, bounded.PANEL_POINTS)
    divisor, _ = units.step(maximum(around.flow, "end"), units.BYTE_STEPS)
    if around.start is not None:
        style: dict[str, Any] = {"color": theme.VERMILLION, "markersize": 7, "linestyle": "none"}
        top.plot([around.drop_s], [around.start / divisor], "x", label="dropped", **style)
    depth(middle, around)
    bottom.plot(
        around.cwnd["time_s"], around.cwnd["cwnd_segs"], color=theme.BLUE, drawstyle="steps-post"
    )
    bottom.set_ylabel("cwnd (segments)")
    moments = {around.drop_s: theme.VERMILLION}
    moments |= {around.resent_s: theme.INK} if around.resent_s is not None else {}
    for panel in (top, middle, bottom):
        panel.set_xlabel("")
        for at, colour in moments.items():
            panel.axvline(at, color=colour, linewidth=0.6, linestyle=(0, (1, 2)))
    for panel in (middle, bottom):
        panel.set_ylim(bottom=0)
    bottom.set_xlabel("time (s)")
    shared.legend(figure)
    return figure


def depth(panel: Axes, around: Around) -> None:
    """Draws the queue, and what it dropped."""
    divisor, unit = units.step(maximum(around.queue, "queue_bytes"), units.BYTE_STEPS)
    arrivals, queue, drops = around.arrivals, around.queue, around.drops
    panel.plot(
        queue["time_s"],
        queue["queue_bytes"] / divisor,
        color=theme.INK,
        drawstyle="steps-post",
        linewidth=0.9,
        label="queue",
    )
    panel.plot(
        arrivals["time_s"],
        arrivals["queue_bytes"] / divisor,
        ".",
        color=theme.SKY,
        markersize=3,
        label="arrival",
    )
    panel.plot(
        drops["time_s"],
        drops["queue_bytes"] / divisor,
        "v",
        color=theme.VERMILLION,
        markersize=4,
        label=f"drop ({around.reason.replace('_', ' ')})",
    )
    panel.set_ylabel(f"queue ({unit})")
