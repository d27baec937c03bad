# SPDX-License-Identifier: BSD-3-Clause
"""The qlogs of QUIC programs in a run, beside what the paths counted.

Read are qlog 0.3 (draft-ietf-quic-qlog-main-schema-03) and the newer drafts, as JSON text sequences
(RFC 7464) or one line per event, with the events of draft-ietf-quic-qlog-quic-events:

| event | figure |
|---|---|
| packet_sent | packets sent |
| packet_lost | packets declared lost; of these spurious: an ACK for it has come after that |
| packet_received | unacked: sent before one that its ACKs cover, and neither covered nor lost |
| recovery_metrics_updated | min_rtt, smoothed_rtt (mean); ngtcp2 writes whole milliseconds |

An event is known by what follows the colon in its name; metrics_updated is an older name. Times are
milliseconds, as both drafts have them by default; quinn's RTTs are seconds. Packet numbers are
those of 1-RTT packets. The path's drops are lost less spurious, and unacked: a packet of ACKs alone
is never declared lost.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from weir.analysis import metrics
from weir.analysis.model_parts import IpFlow
from weir.analysis.run_summary import RunSummary
from weir.base import foreign
from weir.base.errors import UserError
from weir.base.foreign import Json
from weir.base.page import Column, Table

NS_PER_MS = 1e6
QLOG_BYTES_MAX = 64 << 20
SUFFIXES = (".sqlog", ".qlog")
NO_LOSSES = ("quiche",)  # titles of logs without packet_lost
TRANSFER = re.compile(r"^transfer \d+ (\d+)$", re.MULTILINE)
TRANSFERS = (
    Column("completion times", "output"),
    Column("transfers"),
    Column("mean", "mean_ns"),
    Column("median", "p50_ns"),
    Column("p99", "p99_ns"),
)
COLUMNS = (
    Column("qlog", "name"),
    *map(Column, ("by", "sent", "lost", "spurious", "unacked")),
    Column("min RTT", "min_rtt_ns"),
    Column("mean smoothed RTT", "smoothed_rtt_ns"),
    Column("path: drops", lambda log: log.path.drops),
    Column("least RTT", lambda log: log.path.least_rtt_ns, "ns"),
    Column("mean RTT", lambda log: log.path.mean_rtt_ns, "ns"),
    Column("goodput", lambda log: log.path.goodput_bps, "bit/s"),
)


@dataclass
class Qlog:
    """A connection as one of its ends logged it."""

    name: str
    by: str = ""  # client or server
    sent: int = 0
    lost: int | None = 0  # None: its stack logs no losses
    spurious: int | None = None  # None: it logs no ACKs, as quinn's
    unacked: int | None = None
    min_rtt_ns: float | None = None
    smoothed_rtt_ns: float | None = None


@dataclass
class PathFigures:
    """Counters of a connection's packets on the paths: drops of one direction, RTTs of both."""

    drops: int
    least_rtt_ns: float | None
    mean_rtt_ns: float | None
    goodput_bps: float


@dataclass(kw_only=True)
class Logged(Qlog):
    """A qlog of a run's program, beside what the paths counted."""

    group: int
    side: str
    path: PathFigures

    @property
    def lost_indeed(self) -> int | None:
        """Packets declared lost, less spurious ones; None: which were is not known."""
        if self.lost is None or (self.spurious is None and self.lost > 0):
            return None
        return self.lost - (self.spurious or 0)


@dataclass(frozen=True)
class Transfers:
    """Completed transfers of a QUIC stack, each from the start of its own connection."""

    output: str
    transfers: int
    mean_ns: float
    p50_ns: float | None
    p99_ns: float | None


@dataclass
class _Reading:
    """The state of reading one qlog."""

    open_losses: set[int] = field(default_factory=set)
    waiting: set[int] = field(default_factory=set)  # packets sent that no ACK has covered
    acked_max: int = -1
    smoothed_ms: float = 0.0
    samples: int = 0
    rtt_ms: float = 1.0  # what the log's RTTs are in


def _lines(path: Path) -> Iterator[Json]:
    """Yields the records of a qlog; the last one may have been cut off."""
    try:
        text = foreign.read_bytes(path, QLOG_BYTES_MAX).decode()
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: cannot be read: {error}") from None
    lines = [line for line in text.replace("\x1e", "\n").split("\n") if line.strip()]
    for number, line in enumerate(lines):
        try:
            record = json.loads(line)
        except json.JSONDecodeError:
            if 0 < number == len(lines) - 1:
                return
            record = None
        if not isinstance(record, dict):
            raise UserError(f"{path}: record {number + 1} is no JSON object: not a qlog sequence")
        yield record


def _acknowledge(found: Qlog, reading: _Reading, data: Json) -> None:
    for frame in data.get("frames", []):
        for block in frame.get("acked_ranges", []) if frame.get("frame_type") == "ack" else []:
            late = {n for n in reading.open_losses if block[0] <= n <= block[-1]}
            found.spurious = (found.spurious or 0) + len(late)
            reading.open_losses -= late
            reading.waiting -= {n for n in reading.waiting if block[0] <= n <= block[-1]}
            reading.acked_max = max(reading.acked_max, block[-1])


def _measure(found: Qlog, reading: _Reading, data: Json) -> None:
    if "min_rtt" in data:
        found.min_rtt_ns = data["min_rtt"] * reading.rtt_ms * NS_PER_MS
    if "smoothed_rtt" in data and found.min_rtt_ns is not None:  # before: an initial guess
        reading.smoothed_ms += data["smoothed_rtt"] * reading.rtt_ms
        reading.samples += 1


def _take(found: Qlog, reading: _Reading, event: str, data: Json) -> None:
    header = data.get("header", {})
    one_rtt = header.get("packet_type") == "1RTT"
    if event == "packet_sent":
        found.sent += 1
        reading.waiting |= {header["packet_number"]} if one_rtt else set()
    elif event == "packet_lost":
        found.lost = (found.lost or 0) + 1
        if one_rtt:
            reading.waiting.discard(header["packet_number"])
            reading.open_losses.add(header["packet_number"])
    elif event == "packet_received" and one_rtt:
        _acknowledge(found, reading, data)
    elif event in ("metrics_updated", "recovery_metrics_updated"):
        _measure(found, reading, data)


def read(path: Path) -> Qlog:
    """Returns a qlog's figures. UserError: it is none, or a member has another type."""
    try:
        return _read(path)
    except (AttributeError, LookupError, OverflowError, RecursionError, TypeError) as error:
        raise UserError(f"{path}: an event has another shape than qlog's: {error!r}") from None


def _read(path: Path) -> Qlog:
    found, reading = Qlog(path.name), _Reading()
    records = _lines(path)
    head = next(records, {})
    if not {"qlog_version", "file_schema"} & set(head):
        raise UserError(f"{path}: its first record names no qlog version: not a qlog sequence")
    reading.rtt_ms = 1e3 if head.get("title") == "quinn" else 1.0
    found.by = str(head.get("trace", {}).get("vantage_point", {}).get("type", ""))
    for record in records:
        event = str(record.get("name", "")).rpartition(":")[2]
        _take(found, reading, event, record.get("data", {}))
    if head.get("title") in NO_LOSSES:
        found.lost = found.spurious = None
    if found.spurious is not None:
        found.unacked = sum(number < reading.acked_max for number in reading.waiting)
    if reading.samples:
        found.smoothed_rtt_ns = reading.smoothed_ms / reading.samples * NS_PER_MS
    return found


def _path(summary: RunSummary, group: int, forward: bool) -> PathFigures:
    """Returns what the paths counted of a group's UDP: drops of the direction, RTTs of both."""
    flows = [
        flow
        for flow in summary.ip_flows
        if flow.group == group
        and flow.protocol == "udp"
        and flow.received_pkts
        and None not in (flow.delay_min_ns, flow.delay_mean_ns)
    ]
    ways = [[f for f in flows if (f.direction == "forward") == way] for way in (True, False)]
    own = ways[0] if forward else ways[1]
    both = all(ways)

    def mean(way: list[IpFlow]) -> float:
        pkts = sum(flow.received_pkts for flow in way)
        return sum((flow.delay_mean_ns or 0) * flow.received_pkts for flow in way) / pkts

    return PathFigures(
        sum(flow.drops for flow in own),
        sum(min(f.delay_min_ns or 0 for f in way) for way in ways) if both else None,
        sum(map(mean, ways)) if both else None,
        sum(flow.goodput_bps for flow in own),
    )


def found_in(folder: Path, summary: RunSummary) -> list[Logged]:
    """Returns each qlog in a run's folders of programs, and the path's figures of that direction.

    UserError: a file is no qlog.
    """
    found = []
    for program in (summary.guests and summary.guests.programs) or ():
        if program.files is None:
            continue
        place = folder / program.files
        if not place.resolve().is_relative_to(folder.resolve()):
            raise UserError(f"{folder}: the files of a program are outside of the folder", 1)
        for path in sorted(p for p in place.rglob("*") if p.suffix in SUFFIXES):
            log = replace(read(path), name=str(path.relative_to(folder)))
            if log.by not in ("client", "server"):  # quinn's is unknown
                log.by = "client" if program.side == "stack" else "server"
            counted = _path(summary, program.group, program.side == "stack")
            found.append(Logged(**vars(log), group=program.group, side=program.side, path=counted))
    return found


def transfers(folder: Path, summary: RunSummary) -> list[Transfers]:
    """Returns the transfers of each QUIC stack's program that has made some."""
    found = []
    for program in (summary.guests and summary.guests.programs) or ():
        place = folder / Path(program.output).name
        text = place.read_text("utf-8", "replace") if place.exists() else ""
        times = [int(ns) for ns in TRANSFER.findall(text)]
        if "/weir-quic send " in program.run and times:
            late = [metrics.percentile(times, p) for p in (50, 99)]
            found.append(Transfers(program.output, len(times), sum(times) / len(times), *late))
    return found


def of_run(folder: Path, summary: RunSummary) -> list[Logged]:
    """Returns what found_in does. UserError: there is no qlog."""
    found = found_in(folder, summary)
    if not found and not transfers(folder, summary):
        raise UserError(f"{folder}: no program of it has written a qlog into $WEIR_OUT")
    return found


def table(found: list[Logged]) -> Table:
    return Table(COLUMNS, found, left=2)
