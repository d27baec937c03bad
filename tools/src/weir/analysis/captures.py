# SPDX-License-Identifier: BSD-3-Clause
"""Flows of a capture, from the run folder that weir-pcap writes."""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from msgspec import to_builtins
from rich.console import Console

from weir.analysis import losses, metrics, summary
from weir.base import terminal, units
from weir.base.foreign import Json
from weir.base.page import Column, Table

if TYPE_CHECKING:
    from weir.analysis.folder import Run
    from weir.analysis.model_parts import Comparison
    from weir.analysis.run_summary import RunSummary

FLOWS_SHOWN = 40
HEADINGS = {  # of the ledger of packets
    "not_ip": "not IP", "udp": "UDP", "not_tcp": "neither TCP nor UDP", "truncated": "cut off",
    "link_type": "of a link type that is not read", "tcp": "TCP, of no connection",
}  # fmt: skip
PATHS = (
    Column("path"),
    Column("in"),
    Column("seen again", "matched"),
    Column("lost", "drops"),
    Column("marked", "marks"),
    *map(Column, ("reordered", "ambiguous", "not judged")),
    Column("least delay", "delay_min_ns"),
    Column("mean delay", "delay_mean_ns"),
    Column("p99 delay", "delay_p99_ns"),
    Column("mean queueing", "queue_mean_ns"),
)
FLOWS = (
    Column("flow", "flow_id", str),
    Column("sender", "src"),
    Column("receiver", "dst"),
    Column("acknowledged", "acked_bytes"),
    Column("goodput", "goodput_bps"),
    Column("RTT", lambda flow: flow["rtt_mean_ns"] if flow["rtt_samples"] else None, "ns"),
    Column("segments", "sent_segs", "count"),
    Column("retransmits"),
    Column("lost", "lost_segs", "count"),
    Column("out of order"),
    Column("reductions", "cwnd_reductions"),
    Column("timeouts"),
    Column("end"),
)


def flows(loaded: Run) -> pl.DataFrame:
    """Returns a row per flow with all that was found out about it; no rows without flows."""
    found = loaded.frame("captured")
    if found is None:
        return pl.DataFrame()
    for stream in ("losses", "delays"):
        more = loaded.frame(stream)
        if more is not None:
            known = [name for name in more.columns if name in found.columns and name != "flow_id"]
            found = found.join(more.drop(known), on="flow_id", how="left")
    ended = {number: name for name, number in loaded.values("captured", "event").items()}
    return (
        without_unknown(found)
        .with_columns(
            src=addresses(found, "src"),
            dst=addresses(found, "dst"),
            end=pl.col("event").replace_strict(ended, default="", return_dtype=pl.String),
            goodput_bps=pl.when(pl.col("data_ns") > 0).then(
                pl.col("acked_bytes") * 8e9 / pl.col("data_ns")
            ),
        )
        .sort("flow_id")
    )


def flow_names(loaded: Run) -> dict[int, str]:
    """Returns a name for each flow of a capture: its sender, and the receiver if there are several.

    Empty for other runs.
    """
    found = flows(loaded) if loaded.summary.captured is not None else pl.DataFrame()
    if found.height == 0:
        return {}
    named = found.select(
        "flow_id",
        name=pl.when(pl.col("src").is_unique())
        .then(pl.col("src"))
        .otherwise(pl.format("{} > {}", "src", "dst")),
    )
    return dict(zip(named["flow_id"].to_list(), named["name"].to_list(), strict=True))


def without_unknown(found: pl.DataFrame) -> pl.DataFrame:
    """Returns flows with null for values of which a record counts no samples."""
    counted = {
        "rtt_samples": ("rtt_mean_ns", "rtt_min_ns", "rtt_max_ns"),
        "tsrtt_samples": ("tsrtt_mean_ns", "tsrtt_min_ns", "tsrtt_max_ns"),
        "sent_segs": ("inflight_max_bytes", "inflight_mean_bytes", "mss"),
        "acks": ("data_ns", "ack_gap_mean_ns", "ack_gap_max_ns"),
        "srtt_ns": ("srtt_ns",),
        "syn_rtt_ns": ("syn_rtt_ns",),
        "syn_ack_rtt_ns": ("syn_ack_rtt_ns",),
    }
    rules = {name: pl.col(by) > 0 for by, names in counted.items() for name in names}
    return found.with_columns(
        pl.when(rule).then(pl.col(name)).alias(name)
        for name, rule in rules.items()
        if set(rule.meta.root_names()) | {name} <= set(found.columns)
    )


def addresses(frame: pl.DataFrame, end: str) -> pl.Series:
    """Returns the addresses and ports of the flows' ends (src or dst) as text."""
    columns = (frame[f"{end}_{part}"].to_list() for part in ("high", "low", "port"))
    return pl.Series([address(*row) for row in zip(*columns, strict=True)], dtype=pl.String)


def address(high: int, low: int, port: int) -> str:
    found = ipaddress.IPv6Address(high << 64 | low)
    mapped = found.ipv4_mapped
    return f"{mapped}:{port}" if mapped is not None else f"[{found}]:{port}"


def as_dicts(found: pl.DataFrame) -> list[Json]:
    """Returns the flows for JSON: times in ns, what only readers of the telemetry need left out."""
    hidden = ("src_high", "src_low", "dst_high", "dst_low", "event")
    return found.drop([name for name in hidden if name in found.columns]).to_dicts()


def nothing(numbers: RunSummary) -> str:
    """Returns a sentence on the packets of a capture in which none is of a TCP flow."""
    read, *rest = numbers.ledger.capture.items()
    others = [f"{count:,} are {HEADINGS.get(name, name)}" for name, count in rest if count]
    return f"no TCP flows: of {read[1]:,} packets {', '.join(others) or 'none is read'}"


def show_flows(found: pl.DataFrame, numbers: RunSummary, out: Console, most: int | None) -> None:
    """Prints the flows as a table, the largest first."""
    if found.height == 0:
        out.print(nothing(numbers), soft_wrap=True)
        return
    largest = found.sort("acked_bytes", descending=True, maintain_order=True)
    part = largest if most is None else largest.head(most)
    terminal.print_table(out, Table(FLOWS, part.to_dicts(), left=3))
    if part.height < found.height:
        out.print(f"and {found.height - part.height:,} smaller ones: --all shows them")


def view(numbers: RunSummary) -> list[str]:
    """Returns a sentence on the points where packets were captured, if there were several."""
    points = [point for point in numbers.captured.points if point.tcp] if numbers.captured else []
    if not any(point.copies for point in points):
        return []
    said = [
        f"{point.name} ({units.count(point.tcp)} TCP packets,"
        f" {units.count(point.copies)} of them seen elsewhere before)"
        for point in points
    ]
    return [
        f"captured at {', '.join(said)}: each packet counts once, as the sender of data sees it:"
        " data where they enter, ACKs where they come back; --interface reads some only"
    ]


def conditions(numbers: RunSummary) -> list[str]:
    """Returns sentences on where an analysis sees flows from, and what may be wrong with it."""
    return view(numbers) + summary.verdict_lines(numbers)


def show(loaded: Run, out: Console) -> None:
    """Prints the summary of a capture, and CoreScale's numbers from its packets alone."""
    summary.show(loaded.summary, out)
    for sentence in view(loaded.summary) + corescale(loaded) + losses.sentences(loaded):
        out.print(sentence, soft_wrap=True)


def lowered_by_losses(loaded: Run) -> pl.Series:
    """Returns the flow_id of flows whose bytes in flight fall after losses, as Mathis' law has it.

    They fall by a tenth at least from the reduction to the end of the recovery, in three of four
    recoveries: Reno leaves 0.5 and CUBIC 0.7 of them every time, BBR about 1.
    """
    events, names = loaded.frame("events"), loaded.values("events", "event")
    if events is None:
        return pl.Series("flow_id", [], pl.UInt32)
    reduction, recovered = names["reduction"], names["recovered"]
    order = events.filter(pl.col("event").is_in([reduction, recovered])).sort("flow_id", "ts_ns")
    left = order.with_columns(
        left=pl.col("value").shift(-1).over("flow_id") / pl.col("before"),
        then=pl.col("event").shift(-1).over("flow_id"),
    ).filter((pl.col("event") == reduction) & (pl.col("then") == recovered))
    most = left.group_by("flow_id").agg(pl.col("left").quantile(0.75, "linear"))
    return most.filter(pl.col("left") < 0.9)["flow_id"]


def over_own_time(
    table: pl.DataFrame, found: pl.DataFrame, delays: pl.DataFrame | None, warmup_ns: float
) -> pl.DataFrame:
    """Returns metrics.per_flow's table with goodput over each flow's own time.

    That is from its first payload to its last ACK: a flow that was there for a part of a capture
    has no smaller C (see corescale) than one that was there for all of it.
    """
    if delays is None:
        return table
    end = pl.col("ts_ns").cast(pl.Float64)
    begin = (end - pl.col("data_ns")).clip(warmup_ns)
    own = found.select("flow_id", "ts_ns").join(
        delays.select("flow_id", "data_ns"), on="flow_id", how="left"
    )
    spans = own.select("flow_id", own_ns=end - begin)
    rate = pl.col("delivered_bytes") * 8 * metrics.NS_PER_S / pl.col("own_ns")
    known = table.join(spans, on="flow_id", how="left").with_columns(
        goodput_bps=pl.when(pl.col("own_ns") > 0).then(rate).otherwise(0.0)
    )
    return known.drop("own_ns")


def corescale(loaded: Run) -> list[str]:
    """Returns sentences on Mathis' constant C by losses and reductions, and losses for each."""
    interval = loaded.frame("interval")
    found = loaded.frame("captured")
    captured = loaded.summary.captured
    if interval is None or found is None or captured is None:
        return []
    warmup_ns = (loaded.summary.warmup_s or 0) * metrics.NS_PER_S
    span_ns = (captured.duration_s or 0) * metrics.NS_PER_S - warmup_ns
    sizes = found.filter(pl.col("mss") > 0)["mss"].to_numpy()
    mss = float(np.median(sizes)) if sizes.size > 0 else 0.0
    if span_ns <= 0 or mss == 0:
        return []
    lost = interval.filter(pl.col("ts_ns") > warmup_ns).group_by("flow_id")
    table = metrics.per_flow(interval, span_ns, warmup_ns).join(
        lost.agg(pl.col("lost_segs").sum()), on="flow_id", how="left"
    )
    names = {"lost_segs": "losses", "cwnd_reductions": "window reductions"}
    sentences = []
    table = over_own_time(table, found, loaded.frame("delays"), warmup_ns)
    fitted = table.filter(pl.col("flow_id").is_in(lowered_by_losses(loaded).implode()))
    for column, name in names.items():
        fit = metrics.mathis(fitted, column, mss)
        if fit.c is not None:
            sentences.append(
                f"Mathis C from {name}: {fit.c:.3f}, median error"
                f" {units.percent(fit.error_median)} of {fit.flow_id.size:,} flows"
            )
    others = table.filter(pl.col("cwnd_reductions") > 0).height - fitted.height
    if others > 0:
        sentences.append(
            f"Mathis C leaves {others:,} of {table.height:,} flows out: after a loss as much was in"
            " flight as before, or no recovery was seen whole"
        )
    losses, reduced = int(table["lost_segs"].sum()), int(table["cwnd_reductions"].sum())
    if reduced > 0:
        sentences.append(
            f"{losses:,} losses, {reduced:,} window reductions: {losses / reduced:.2f} each"
        )
    return sentences


def show_compared(found: Comparison, out: Console) -> None:
    """Prints the table of both directions, and whether every packet is accounted for."""
    used = [
        {"path": name, **to_builtins(path)} for name, path in found.links.items() if path.entered
    ]
    terminal.print_table(out, Table(PATHS, used))
    for side, counts in found.ledger.captures.items():
        out.print(f"{side}: {summary.capture_terms(counts)}", soft_wrap=True)
    for side, apart in found.taken_apart.items():
        if apart.packets:
            out.print(
                f"{side}: {apart.packets:,} packets of several segments, as hosts with "
                f"segmentation offload capture them, count as {apart.segments:,}",
                soft_wrap=True,
            )
    out.print(f"ledger: {'balanced' if found.ledger.balanced else 'NOT BALANCED'}")
    for side, count in found.backwards.items():
        if count:
            out.print(
                f"{side}: {units.count(count)} times are earlier than those of the packets before: "
                "sort the capture by time (reordercap), or packets may count as lost",
                soft_wrap=True,
            )
