# SPDX-License-Identifier: BSD-3-Clause
"""A run as qlog, JSON text sequences: as the newest drafts have it, or as 0.3, which qvis reads.

A file for each flow, as a trace is of a connection; each event's group_id names the flow, too.
QUIC's events stand for TCP's as in qvis's own conversion of TCP captures: packets are of type 1RTT.

The names here are those of 0.3; qlog_forms.py has what the newest form makes of them.

| event | from |
|---|---|
| connectivity:connection_started, connection_closed | flows |
| recovery:metrics_updated | cc, else interval; segments times their payload give bytes |
| recovery:congestion_state_updated | a change of the state there |
| transport:packet_sent | packets: what enters the data's first path; packet_number is pkt_id |
| recovery:packet_lost | packets: a drop in that path as it happens; a sender finds it out later |
| weir:reduction, weir:timeout, ... | events of a flow: the values before and after |
"""

from __future__ import annotations

import heapq
import json
import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from weir.analysis import routes
from weir.analysis.folder import Run
from weir.analysis.header import NO_FLOW
from weir.analysis.stream import Batch, Stream
from weir.base import units
from weir.base.configs import Config
from weir.base.errors import UserError
from weir.base.foreign import Json
from weir.base.version import VERSION
from weir.export import qlog_forms
from weir.export.tables import selected

RECORD_SEPARATOR = "\x1e"
TIMESTAMPS_BYTES = 12  # TCP option, with its padding: part of the MSS
OPEN_MAX = 256  # files at a time: a process may have 1024
CLOSED = {"close": "clean", "reset": "error", "gave_up": "idle_timeout"}
Row = tuple[Any, ...]  # values of a record
Event = tuple[int, int, str, Json]  # time in ns, flow, name, data


class Files:
    """A file for each flow in a folder, of which only some are open at a time."""

    def __init__(self, folder: Path, first: Callable[[int], str]) -> None:
        self.folder, self.first = folder, first
        self.names: dict[int, str] = {}
        self.open: dict[int, TextIO] = {}  # those written last at the end

    def write(self, flow: int, text: str) -> None:
        """Adds to the flow's file, which begins with its first line."""
        file = self.open.pop(flow, None)
        if file is None:
            if len(self.open) == OPEN_MAX:
                self.open.pop(next(iter(self.open))).close()
            new = flow not in self.names
            self.names.setdefault(flow, f"flow-{flow}.sqlog")
            file = (self.folder / self.names[flow]).open("a", encoding="utf-8")
            if new:
                file.write(self.first(flow))
        self.open[flow] = file
        file.write(text)

    def close(self) -> None:
        for file in self.open.values():
            file.close()


def write(run: Run, folder: Path, flows: Sequence[int], form: str) -> list[Path]:
    """Writes a run: a file for each flow. UserError: nothing of flows was recorded."""
    with tempfile.TemporaryDirectory(dir=folder, prefix=".qlog-") as beside:
        files = Files(
            Path(beside), lambda flow: f"{RECORD_SEPARATOR}{_json(header(run, flow, form))}\n"
        )
        try:
            for ts_ns, flow, name, data in heapq.merge(
                *_sources(run, flows), key=lambda event: event[0]
            ):
                said: object = {"name": name, "data": data}
                if form != qlog_forms.OLD:
                    said = qlog_forms.newest(name, data)
                files.write(
                    flow,
                    f'{RECORD_SEPARATOR}{{"time":{ts_ns / 1e6:.6f},"group_id":"flow {flow}",'
                    f"{_json(said)[1:]}\n",
                )
        finally:
            files.close()
        names = [name for _, name in sorted(files.names.items())]
        return [(Path(beside) / name).replace(folder / name) for name in names]


def _sources(run: Run, flows: Sequence[int]) -> list[Iterator[Event]]:
    """Returns the events of each stream, by time."""
    sources = []
    if "flows" in run.streams:
        sources.append(_connections(run.flows, flows, routes.is_ipv6(run.config)))
    if "cc" in run.streams or "interval" in run.streams:
        stream = run.cc if "cc" in run.streams else run.interval
        sources.append(_metrics(stream, payloads(run.config), flows))
    if "packets" in run.streams:
        groups = range(len(routes.groups(run.config)))
        for number in sorted({routes.data_path(run.config, group) for group in groups}):
            sources.append(_packets(run, flows, number))
    if "events" in run.streams:
        sources.append(_others(run, flows))
    if not sources:
        raise UserError(f"{run.path}: no telemetry of flows was recorded")
    return sources


def _json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


def header(run: Run, flow: int, form: str) -> dict[str, object]:
    title = f"{run.config.get('title') or run.path.resolve().name}, flow {flow}"
    return qlog_forms.header(form, title, f"written by weir {VERSION}", run.start_utc_ns)


def payloads(config: Config) -> list[int]:
    """Returns the payload of a segment of each group, in bytes: MSS less the timestamps' option."""
    found = []
    for group in config.get("flows", []):
        default = 1440 if group.get("ip") == "ipv6" else 1460
        mss = units.config_bytes(group.get("mss", f"{default}B")) or default
        found.append(mss - (TIMESTAMPS_BYTES if group.get("timestamps", "yes") == "yes" else 0))
    return found


def _rows(batch: Batch, *names: str) -> Iterator[Row]:
    """Yields records as Python's numbers, with None for a field that the stream lacks."""
    absent = [None] * len(batch)
    yield from zip(
        *(batch[name].tolist() if name in batch.names else absent for name in names), strict=True
    )


def _connections(stream: Stream, flows: Sequence[int], six: Sequence[bool]) -> Iterator[Event]:
    kinds = {number: name for name, number in stream.field("event").values.items()}
    names = ("ts_ns", "flow_id", "event", "group", "src_ip", "dst_ip", "src_port", "dst_port")
    for batch in selected(stream, flows):
        for ts_ns, flow, event, group, src_ip, dst_ip, src_port, dst_port in _rows(batch, *names):
            kind, ipv6 = kinds.get(event), group < len(six) and six[group]
            if kind == "open":
                started = {
                    "ip_version": "v6" if ipv6 else "v4",
                    "src_ip": routes.host_address(src_ip, ipv6),
                    "dst_ip": routes.host_address(dst_ip, ipv6),
                    "protocol": "TCP",
                    "src_port": src_port,
                    "dst_port": dst_port,
                }
                yield ts_ns, flow, "connectivity:connection_started", started
            elif kind in CLOSED:
                yield ts_ns, flow, "connectivity:connection_closed", {"trigger": CLOSED[kind]}


def _metrics(stream: Stream, payload: list[int], flows: Sequence[int]) -> Iterator[Event]:
    """Yields metrics_updated and congestion_state_updated, of cc or of interval."""
    states = {number: name for name, number in stream.field("state").values.items()}
    rtt = "rtt_ns" if "rtt_ns" in stream.names else "rtt_mean_ns"
    before: dict[int, int] = {}
    names = ("cwnd_segs", "inflight_segs", "pacing_bps", "srtt_ns", "rtt_min_ns", rtt)
    for batch in selected(stream, flows):
        for ts_ns, flow, group, state, cwnd, inflight, pacing, srtt, rtt_min, latest in _rows(
            batch, "ts_ns", "flow_id", "group", "state", *names
        ):
            size = payload[group] if group < len(payload) else 1460 - TIMESTAMPS_BYTES
            data = {
                "congestion_window": round(cwnd * size),
                "bytes_in_flight": inflight * size,
                "packets_in_flight": inflight,
            }
            rtts = {"smoothed_rtt": srtt, "min_rtt": rtt_min, "latest_rtt": latest}
            data |= {name: value / 1e6 for name, value in rtts.items() if value}
            if pacing:
                data["pacing_rate"] = round(pacing)
            yield ts_ns, flow, "recovery:metrics_updated", data
            if before.get(flow, 0) != state:
                old, new = (states.get(s, str(s)) for s in (before.get(flow, 0), state))
                changed = {"old": old, "new": new}
                yield ts_ns, flow, "recovery:congestion_state_updated", changed
                before[flow] = state


def _packets(run: Run, flows: Sequence[int], data_path: int) -> Iterator[Event]:
    """Yields packet_sent and packet_lost of a path in which data enters the network.

    Packets in the first queue are remembered until they leave it: one that is dropped before it is
    reported as sent, too.
    """
    stream = run.packets
    kinds = {number: name for name, number in stream.field("event").values.items()}
    reasons = {number: name for name, number in stream.field("reason").values.items()}
    stages: list[Config] = next(iter([*run.config.get("paths", {}).values()][data_path:]), [])
    first = next((i for i, stage in enumerate(stages) if "link" in stage), 0)
    queued: set[int] = set()

    @cache
    def enters(flow: int) -> int:
        return routes.data_path(run.config, int(routes.group_of(run.config, [flow])[0]))

    for ts_ns, flow, number, size, reason, stage, event in _in_order(stream, data_path, flows):
        kind = kinds.get(event)
        if kind not in ("enqueue", "dequeue", "drop") or enters(flow) != data_path:
            continue
        entered = stage == first and kind == "enqueue"
        packet = {"packet_type": "1RTT", "packet_number": number}
        if entered or (kind == "drop" and stage <= first and number not in queued):
            sent = {"header": packet, "raw": {"length": size}}
            yield ts_ns, flow, "transport:packet_sent", sent
        if kind == "drop":
            lost = {"header": packet, "reason": reasons.get(reason, str(reason))}
            yield ts_ns, flow, "recovery:packet_lost", lost
        if entered:
            queued.add(number)
        elif stage == first:
            queued.discard(number)


def _in_order(stream: Stream, path: int, flows: Sequence[int]) -> Iterator[Row]:
    """Yields a path's packets by time, of equal times in the order of stages and events.

    A stage may be ahead of the one before it in the file; what one stage does is in order.
    """
    steps: set[tuple[int, int]] = set()
    for batch in selected(stream, flows):
        of_path = batch["path"] == path
        codes = batch["stage"][of_path].astype(np.uint16) << np.uint16(8) | batch["event"][of_path]
        steps |= {divmod(code, 256) for code in np.unique(codes).tolist()}

    def step(stage: int, event: int) -> Iterator[Row]:
        names = ("ts_ns", "flow_id", "pkt_id", "size_bytes", "reason", "stage", "event")
        for batch in selected(stream, flows):
            mine = (batch["path"] == path) & (batch["stage"] == stage) & (batch["event"] == event)
            yield from _rows(batch.rows(mine), *names)

    series = [step(stage, event) for stage, event in sorted(steps)]
    return heapq.merge(*series, key=lambda row: row[0])


def _others(run: Run, flows: Sequence[int]) -> Iterator[Event]:
    stream = run.events
    kinds = {number: name for name, number in stream.field("event").values.items()}
    for batch in selected(stream, flows):
        for ts_ns, flow, event, group, before, value, detail in _rows(
            batch, "ts_ns", "flow_id", "event", "group", "before", "value", "detail"
        ):
            if flow == NO_FLOW:
                continue
            data = {"before": before, "value": value, "detail": detail}
            kind = kinds.get(event, event)
            if kind == "cc_mode":
                data |= {of: run.summary.mode(group, data[of]) for of in ("before", "value")}
            yield ts_ns, flow, f"weir:{kind}", data
