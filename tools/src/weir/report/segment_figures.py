# SPDX-License-Identifier: BSD-3-Clause
"""Figures of single segments: time-sequence graphs as tcptrace draws them, and around a drop.

In tcptrace's conventions, on white: a segment is an upright arrow from its first byte to its last,
a retransmission a red stroke with an R, the ACKs a green staircase below with a tick for each
duplicate, the end of the receiver's window a yellow one above, and what SACK reports a purple
stroke. Frames are of analysis/segments.py.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import polars as pl

from weir.base import units
from weir.report import figure as values
from weir.report import theme
from weir.report.figure import Axis, Figure, Line, Mark, Panel, Points, Rule, alike, floats
from weir.report.scene import TIME, maximum
from weir.report.theme import Style

LETTERS_MAX = 40  # that can be read; of more every nth retransmission has one
SEGMENT = Style("segment", theme.BLACK, "^")
RESENT = Style("retransmission", theme.VERMILLION, "$R$")
MOMENT_OF_DROP = Style("time of the drop", theme.VERMILLION, "", values.DOTTED)
MOMENT_RESENT = Style("time of its retransmission", theme.INK, "", values.DOTTED)
SACK = Style("SACK", theme.PURPLE, "s")
STAIRS = {
    "ack": Style("ACK", theme.GREEN, ""),
    "window": Style("window", theme.ORANGE, "", theme.DASHES[1]),
}
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


def stevens(flow: pl.DataFrame, title: str = "") -> Panel:
    """Returns one flow's time-sequence graph; flow is of segments.numbered."""
    divisor, unit = units.step(maximum(flow, "end"), units.BYTE_STEPS)
    scaled = flow.with_columns(
        pl.col(name) / divisor
        for name in ("start", "end", "ack", "window", "sack_start", "sack_end")
    )
    marks: list[Mark] = []
    for column, style in STAIRS.items():
        own = scaled.drop_nulls(column)
        if own.height and (column != "window" or window_near(scaled)):
            x, y = floats(own["time_s"]), floats(own[column])
            marks.append(Line(x, y, style, steps="post", width=0.9))
    repeats = scaled.filter("duplicate")
    tick = Style("duplicate ACK", theme.GREEN, "|")
    marks.append(Points(floats(repeats["time_s"]), floats(repeats["ack"]), tick, size=4))
    whole, repeated = scaled.filter(~pl.col("resent")), scaled.filter("resent")
    marks += strokes(whole, ("start", "end"), SEGMENT, 2.2)
    marks += strokes(repeated, ("start", "end"), RESENT, 5)
    marks += strokes(scaled, ("sack_start", "sack_end"), SACK, 1.6)
    return Panel(Axis(TIME), Axis(f"sequence number ({unit})"), marks, title)


def window_near(flow: pl.DataFrame) -> bool:
    """Returns whether the window's end leaves room to see the segments."""
    low, top = flow.select(pl.min_horizontal("start", "ack").min(), pl.col("end").max()).row(0)
    return top is not None and maximum(flow, "window") - low <= WINDOW_SEEN * (top - low)


def strokes(rows: pl.DataFrame, columns: tuple[str, str], style: Style, size: float) -> list[Mark]:
    """Returns strokes between two columns, with markers at their upper ends."""
    own = rows.drop_nulls(columns[0])
    if own.height == 0:
        return []
    width = 1.2 if style is RESENT else 0.7
    time, low, high = (floats(own[name]) for name in ("time_s", *columns))
    nth = -(-own.height // LETTERS_MAX) if style is RESENT else 1
    heads = Points(time[::nth], high[::nth], style, size=size)
    return [values.Strokes(time, low, high, style, width=width), heads]


def sequence(flow: pl.DataFrame, title: str) -> Figure:
    """Shows the time-sequence graph of a flow, or of a part of it."""
    return Figure([stevens(flow, title)], height_in=2.8)


def timeline(around: Around) -> Figure:
    """Shows a drop: its flow's segments and ACKs, the queue where it happened, the window."""
    top = stevens(around.flow)
    divisor, _ = units.step(maximum(around.flow, "end"), units.BYTE_STEPS)
    if around.start is not None:
        cross = Style("dropped", theme.VERMILLION, "x")
        place = floats(around.drop_s), floats(around.start / divisor)
        top = replace(top, marks=[*top.marks, Points(*place, cross, size=7)])
    window = Style("", theme.BLUE, "")
    time, cwnd = floats(around.cwnd["time_s"]), floats(around.cwnd["cwnd_segs"])
    bottom = Panel(Axis(TIME), Axis("cwnd (segments)", 0), [Line(time, cwnd, window, steps="post")])
    moments = [Rule(around.drop_s, MOMENT_OF_DROP, upright=True)]
    if around.resent_s is not None:
        moments.append(Rule(around.resent_s, MOMENT_RESENT, upright=True))
    panels = [replace(top, weight=2.0), depth(around), bottom]
    return Figure(alike([replace(p, marks=[*p.marks, *moments]) for p in panels]), height_in=4.6)


def depth(around: Around) -> Panel:
    """Returns the queue, and what it dropped."""
    divisor, unit = units.step(maximum(around.queue, "queue_bytes"), units.BYTE_STEPS)
    queue, arrivals, drops = (
        (floats(frame["time_s"]), floats(frame["queue_bytes"]) / divisor)
        for frame in (around.queue, around.arrivals, around.drops)
    )
    dropped = Style(f"drop ({around.reason.replace('_', ' ')})", theme.VERMILLION, "v")
    marks: list[Mark] = [
        Line(*queue, Style("queue", theme.INK, ""), steps="post", width=0.9),
        Points(*arrivals, Style("arrival", theme.SKY, "o"), size=1.8),
        Points(*drops, dropped),
    ]
    return Panel(Axis(TIME), Axis(f"queue ({unit})", 0), marks)
