# SPDX-License-Identifier: BSD-3-Clause
"""The figures of a run's single segments: which flow and time they show, and their captions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import polars as pl

from weir.analysis import metrics, routes, segments
from weir.analysis.header import NO_LINK
from weir.base import units
from weir.report import segment_figures
from weir.report.data import FlowData, RunData, chosen_records
from weir.report.figure import Figure, named
from weir.report.segment_figures import Around, between

WHOLE_MAX = 2000  # segments and ACKs that a graph can show; of more a part
NAMES = (
    "ts_ns", "flow_id", "seq", "ack", "payload_bytes", "window_bytes", "kind", "flags", "forward",
    "sack_start", "sack_end",
)  # fmt: skip
PACKETS = (
    "ts_ns", "queue_bytes", "flow_id", "pkt_id", "size_bytes", "event", "reason", "link", "path",
)  # fmt: skip
HEADERS_MAX = 118  # bytes of a frame without payload: Ethernet, IPv6, TCP with all options, FCS
CWND = {"time_s": pl.Float64, "cwnd_segs": pl.Float32}
ROUND_S = 0.1  # of a flow of which no RTT is known


def draw(data: RunData, flows: FlowData) -> Iterator[Figure]:
    """Yields a flow's segments, and what happened around the first drop.

    That is if there are segments of Weir's own format.
    """
    rings = data.run.rings("segments")
    known = {field.name for ring in rings for field in ring.schema.fields}
    if not set(NAMES) <= known:
        return
    recorded = flows.each.filter(pl.col("flow_id").is_in(recorded_flows(data)))
    for flow_id in metrics.typical_flows(recorded, 1):
        own = of_flow(data, flow_id)
        part, said = readable(own, round_s(data, flow_id, 0.0))
        if part["start"].count() > 0:
            title = data.scene.flow(flow_id)
            yield named(
                "stevens",
                segment_figures.sequence(part, title),
                f"Time-sequence graph of {title}. Segments, retransmissions, ACKs, SACK blocks and"
                f" the receiver's window are drawn as by tcptrace{said}.",
            )
    around = around_drop(data)
    if around is not None:
        resent_s = around.resent_s
        waited = None if resent_s is None else (resent_s - around.drop_s) * metrics.NS_PER_S
        yield named(
            "drop",
            segment_figures.timeline(around),
            f"Around the first drop, at {around.drop_s:.6f} s ({around.reason.replace('_', ' ')})."
            " Above are its flow's segments and ACKs, then the queue, and the window. "
            + (
                "When it was sent again is not known."
                if waited is None
                else f"It was sent again after {units.time(waited)}."
            ),
        )


def of_flow(data: RunData, flow_id: int) -> pl.DataFrame:
    return segments.numbered(chosen_records(data.run, "segments", NAMES, [flow_id]))


def round_s(data: RunData, flow_id: int, at_s: float) -> float:
    """Returns a flow's smoothed RTT at some time, in s; ROUND_S if it is not known."""
    acks = chosen_records(data.run, "cc", ("ts_ns", "flow_id", "srtt_ns"), [flow_id])
    if acks.height == 0:
        return ROUND_S
    late = acks.filter(pl.col("ts_ns") >= at_s * metrics.NS_PER_S)
    return float((late if late.height else acks)["srtt_ns"][0]) / metrics.NS_PER_S


def readable(own: pl.DataFrame, rtt_s: float) -> tuple[pl.DataFrame, str]:
    """Returns a flow, or the part around its first retransmission, and words on that part."""
    if own.height <= WHOLE_MAX:
        return own, ""
    resent = own.filter("resent")["time_s"]
    middle = float(resent[0]) if resent.len() else float(own["time_s"][0]) + 2 * rtt_s
    near = between(own, middle - 2 * rtt_s, middle + 3 * rtt_s)
    place = int((near["time_s"] < middle).sum())
    return (
        near.slice(max(0, place - WHOLE_MAX // 2), WHOLE_MAX),
        f"; around the first of {resent.len()} retransmissions" if resent.len() else "; its start",
    )


def around_drop(data: RunData) -> Around | None:
    """Returns what happened around the first drop of data; None: not recorded, or no drop."""
    row = first_drop(data)
    if row is None:
        return None
    flow_id, drop_s = row["flow_id"], row["ts_ns"] / metrics.NS_PER_S
    flow = of_flow(data, flow_id)
    start, resent_s = segments.fate(flow, place(data, row))
    rtt_s = round_s(data, flow_id, drop_s)
    ends = drop_s - rtt_s, (resent_s or drop_s + 2 * rtt_s) + rtt_s
    cc = chosen_records(data.run, "cc", ("ts_ns", "flow_id", "cwnd_segs"), [flow_id])
    reasons = {number: name for name, number in data.run.values("packets", "reason").items()}
    return Around(
        flow=between(flow, *ends),
        **at_queue(data, row, ends),
        cwnd=held(timed(cc), *ends) if cc.height else pl.DataFrame(schema=CWND),
        drop_s=drop_s,
        reason=reasons.get(row["reason"], f"reason {row['reason']}"),
        start=start,
        resent_s=resent_s,
    )


def first_drop(data: RunData) -> dict[str, Any] | None:
    """Returns the record of the first drop of data on the path where its flow's packets enter."""
    flows = recorded_flows(data)
    groups = routes.group_of(data.run.config, flows)
    entered = [routes.data_path(data.run.config, int(group)) for group in groups]
    wanted = pl.DataFrame(
        {"flow_id": flows, "path": entered}, {"flow_id": pl.UInt32, "path": pl.UInt8}
    )
    is_drop = pl.col("event") == data.run.values("packets", "event").get("drop", -1)
    is_drop &= pl.col("size_bytes") > HEADERS_MAX
    found = (part.join(wanted, ["flow_id", "path"], "semi") for part in packets(data, is_drop))
    return next((part.row(0, named=True) for part in found if part.height), None)


def place(data: RunData, row: dict[str, Any]) -> int | None:
    """Returns how many packets of its flow were sent before one. None: some were copied.

    A path numbers its packets as they come.
    """
    kinds = data.run.values("packets", "event")
    shown = [kinds[name] for name in ("enqueue", "drop", "duplicate")]
    own = (pl.col("path") == row["path"]) & (pl.col("flow_id") == row["flow_id"])
    found = pl.concat(packets(data, own & pl.col("event").is_in(shown)))
    if (found["event"] == kinds["duplicate"]).any():
        return None
    return found.filter(pl.col("pkt_id") < row["pkt_id"])["pkt_id"].n_unique()


def at_queue(
    data: RunData, row: dict[str, Any], ends: tuple[float, float]
) -> dict[str, pl.DataFrame]:
    """Returns drops where a packet was, its flow's arrivals at a link there, and the queue.

    That is the link that dropped it, or if another stage did, the first link of its path.
    """
    kinds = data.run.values("packets", "event")
    from_ns, to_ns = (end * metrics.NS_PER_S for end in ends)
    near = pl.col("ts_ns").is_between(from_ns, to_ns)
    records = timed(pl.concat(packets(data, (pl.col("path") == row["path"]) & near)))
    event, link = pl.col("event"), pl.col("link")
    arrivals = records.filter((pl.col("flow_id") == row["flow_id"]) & (event == kinds["enqueue"]))
    shown = arrivals["link"].min() if row["link"] == NO_LINK else row["link"]
    queued = [kinds[name] for name in ("enqueue", "dequeue", "drop")]
    return {
        "arrivals": arrivals.filter(link == shown),
        "queue": records.filter((link == shown) & event.is_in(queued)),
        "drops": records.filter((link == row["link"]) & (event == kinds["drop"])),
    }


def packets(data: RunData, wanted: pl.Expr) -> Iterator[pl.DataFrame]:
    """Yields records of packets that are wanted, a part of the file at a time."""
    for part in data.run.chunk_frames("packets", PACKETS):
        yield part.filter(wanted)


def held(frame: pl.DataFrame, from_s: float, to_s: float) -> pl.DataFrame:
    """Returns the rows of a stretch of time, and before them the one that held as it began."""
    first = frame.filter(pl.col("time_s") < from_s).tail(1).with_columns(time_s=pl.lit(from_s))
    return pl.concat([first, between(frame, from_s, to_s)])


def timed(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.with_columns(time_s=pl.col("ts_ns") / metrics.NS_PER_S)


def recorded_flows(data: RunData) -> list[int]:
    """Returns the flows of which there are segments."""
    found: set[int] = set()
    for part in data.run.chunks("segments", ("flow_id",)):
        found |= set(pl.Series(part["flow_id"]).unique().to_list())
    return sorted(found)
