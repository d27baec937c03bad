# SPDX-License-Identifier: BSD-3-Clause
"""Records of segments as numbers that rise, and what happened around a packet that was dropped."""

from __future__ import annotations

import polars as pl

from weir.analysis.metrics import NS_PER_S

RETRANSMISSION = 1  # a bit of `kind`


def unwrapped(number: pl.Expr) -> pl.Expr:
    """Returns sequence numbers beyond 2^32, by flow and direction; rows are in order of time."""
    wide = number.cast(pl.Int64)
    step = wide.diff().fill_null(0)
    wraps = (step < -(2**31)).cast(pl.Int64) - (step > 2**31).cast(pl.Int64)
    return (wide + wraps.cum_sum() * 2**32).over("flow_id", "forward")


def ahead(number: str, of: str) -> pl.Expr:
    """Returns how far one sequence number is ahead of another, modulo 2^32 (RFC 9293, 3.4)."""
    difference = pl.col(number).cast(pl.Int64) - pl.col(of).cast(pl.Int64)
    return (difference + 3 * 2**31) % 2**32 - 2**31


def numbered(segments: pl.DataFrame) -> pl.DataFrame:
    """Returns a flow's data (start, end, resent) and ACKs (ack, duplicate, window, SACK).

    start and end are of the payload, window is the last byte that the receiver takes; both count
    from the connection's first. What a row does not have is null.
    """
    forward, data = pl.col("forward") == 1, pl.col("payload_bytes") > 0
    top = pl.when(forward).then(pl.col("seq")).otherwise("ack")
    is_ack = ~forward & ((pl.col("flags") & 0x12) == 0x10)
    frame = segments.sort("ts_ns", maintain_order=True).with_columns(top=unwrapped(top))
    before = (pl.col(name).shift().over("forward") for name in ("top", "window_bytes"))
    same = pl.all_horizontal(
        pl.col(name) == old for name, old in zip(("top", "window_bytes"), before, strict=True)
    )
    behind = pl.col("top") + pl.col("payload_bytes")
    sack = {name: pl.col("top") + ahead(name, "ack") for name in ("sack_start", "sack_end")}
    return frame.select(
        time_s=pl.col("ts_ns") / NS_PER_S,
        forward=forward,
        start=pl.when(forward & data).then("top"),
        end=pl.when(forward & data).then(behind),
        resent=forward & data & ((pl.col("kind") & RETRANSMISSION) != 0),
        ack=pl.when(is_ack).then("top"),
        duplicate=is_ack & same.fill_null(False),
        window=pl.when(is_ack).then(pl.col("top") + pl.col("window_bytes").cast(pl.Int64)),
        **{name: pl.when(is_ack).then(one) for name, one in sack.items()},
    )


def fate(flow: pl.DataFrame, place: int | None) -> tuple[int | None, float | None]:
    """Returns the first byte of a flow's segment `place`, from 0, and when it was sent again.

    The time is in s; None: not known, or never.
    """
    sent = flow.filter("forward")
    if place is None or place >= sent.height or sent["start"][place] is None:
        return None, None
    start = int(sent["start"][place])
    resent = sent[place + 1 :].filter((pl.col("start") <= start) & (pl.col("end") > start))
    return start, float(resent["time_s"][0]) if resent.height else None
