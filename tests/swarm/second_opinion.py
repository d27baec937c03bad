# SPDX-License-Identifier: BSD-3-Clause
"""Every number of a summary, computed again by its definition in tools/docs/reference/numbers.md.

From the rings with numpy, read here by their own headers, and from a capture of the paths with
tshark; nothing of Weir's metrics is used. Each function is given a finished run and says what
differs, as an invariant does. Within what a number is known: a record's whole nanosecond, single
precision, the 1/64 of a histogram, the parts of frames at the ends of a link's time.
"""

from __future__ import annotations

import json
import subprocess
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from .invariants import ETHER_HEADER_BYTES, FCS_BYTES, FRAME_BYTES_MAX, Folder, parse, route

Array = np.ndarray[Any, Any]

PAGE, GAP, NO_FLOW = 4096, 2**64 - 1, 2**32 - 1
SINGLE = 1e-6  # of a sum of numbers in single precision
DOUBLE = 1e-9
BUCKET = 1 / 64  # common/base/hist.h
FIN, SYN = 1, 2
TIMESTAMP_BYTES = 12


def header_of(path: Path) -> dict[str, Any]:
    """The schema that a ring's first page holds."""
    page = path.read_bytes()[:PAGE].decode("latin-1")
    schema, _ = json.JSONDecoder().raw_decode(page[page.index('{"stream"') :])
    return dict(schema)


def records_of(path: Path) -> tuple[Array, int]:
    """All records of a ring, and how many had no room there."""
    fields = header_of(path)["fields"]
    dtype = np.dtype(
        {
            "names": [field["name"] for field in fields],
            "formats": [field["dtype"] for field in fields],
            "offsets": [field["offset"] for field in fields],
            "itemsize": header_of(path)["record_size"],
        }
    )
    slots = np.fromfile(path, dtype, offset=PAGE)
    gaps = slots["ts_ns"] == GAP
    # Of a record that stands for lost ones the eight bytes behind the time say how many.
    raw = slots.view(np.uint8).reshape(len(slots), dtype.itemsize)[gaps, 8:16]
    return slots[~gaps], int(np.ascontiguousarray(raw).view("<u8").sum())


class Second(Folder):
    """A finished run, its records read without Weir's reader, and its capture if it has one."""

    def __init__(self, path: Path, capture: Path | None = None) -> None:
        super().__init__(path)
        self.path = path
        read = {file.stem: records_of(file) for file in path.glob("*.ring")}
        self.records = {name: records for name, (records, _) in read.items()}
        self.lost = {name: lost for name, (_, lost) in read.items()}
        self.values = {
            (file.stem, field["name"]): field["values"]
            for file in path.glob("*.ring")
            for field in header_of(file)["fields"]
            if "values" in field
        }
        self.capture = capture
        self.at_the_end_is_behind = True  # an event in the nanosecond in which the warm-up ends

    @property
    def measured_s(self) -> float:
        return (self.duration_ns - self.warmup_ns) / 1e9

    @property
    def complete(self) -> bool:
        """Are all packets recorded?"""
        return bool(self.config["telemetry"]["level"] == "3")

    def of(self, stream: str, **fields: Any) -> Array:
        """Records of a stream whose fields are these; names stand for their numbers."""
        records = self.records[stream]
        for name, value in fields.items():
            number = self.values[stream, name][value] if isinstance(value, str) else value
            records = records[records[name] == number]
        return records

    def late(self, records: Array) -> Array:
        """Intervals behind the warm-up: what ends with it is of it."""
        return records[records["ts_ns"] > self.warmup_ns]

    def since(self, records: Array) -> Array:
        """Events behind the warm-up."""
        if self.at_the_end_is_behind:
            return records[records["ts_ns"] >= self.warmup_ns]
        return self.late(records)

    @cached_property
    def frames(self) -> list[dict[str, str]]:
        """The TCP packets of the capture as tshark reads them."""
        names = (
            "frame.interface_name",
            "frame.time_epoch",
            "frame.len",
            "ip.dsfield.ecn",
            "tcp.srcport",
            "tcp.dstport",
            "tcp.len",
            "tcp.seq_raw",
            "tcp.ack_raw",
            "tcp.flags",
            "tcp.options.sack_le",
            "tcp.options.sack_re",
        )
        argv = ["tshark", "-r", str(self.capture), "-Y", "tcp", "-T", "fields", "-E", "separator=;"]
        # Each packet is there at up to four places: what tshark makes of that is of no use.
        argv += ["-o", "tcp.analyze_sequence_numbers:FALSE"]
        argv += [arg for name in names for arg in ("-e", name)]
        done = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=240)
        return [dict(zip(names, line.split(";"), strict=True)) for line in done.stdout.splitlines()]


def differ(
    what: str, said: float | None, right: float | None, share: float = 0.0, most: float = 0.0
) -> Iterator[str]:
    """A sentence if two numbers are further apart than a share of them and so much."""
    if said is None or right is None:
        if said is not right:
            yield f"{what} is {said}, right: {right}"
    elif abs(float(said) - float(right)) > share * abs(float(right)) + most:
        yield f"{what} is {said}, right: {right}"


def mean(values: Array, weights: Array | None = None) -> float | None:
    """Null of nothing."""
    if weights is None:
        return float(values.astype(float).mean()) if len(values) else None
    if weights.sum() == 0:
        return None
    return float((values.astype(float) * weights).sum() / weights.sum())


def rank(values: Array, p: float) -> float | None:
    """The smallest value that a share p of them do not exceed."""
    place = int(np.ceil(len(values) * p - 1e-9)) - 1
    return float(np.sort(values)[max(0, place)]) if len(values) else None


def jain(shares: Array) -> float | None:
    """Null if there is nothing to share."""
    if not len(shares) or not shares.any():
        return None
    shares = shares / shares.max()
    return float(shares.sum() ** 2 / (len(shares) * (shares**2).sum()))


def per_flow(run: Second, flows: Iterable[int], intervals: Array) -> Array:
    """What each flow got, in bytes."""
    order = np.array(sorted(flows), dtype=np.int64)
    got = np.zeros(len(order))
    known = np.isin(intervals["flow_id"], order)
    at = np.searchsorted(order, intervals["flow_id"][known])
    np.add.at(got, at, intervals["delivered_bytes"][known].astype(float))
    return got


SUMS = ("acked_bytes", "sent_segs", "retransmits", "lost_segs", "cwnd_reductions", "drops")


def known_sum(records: Array, key: str) -> int | None:
    """None if a record does not know its part."""
    unknown = key != "acked_bytes" and (records[key] == np.iinfo(records[key].dtype).max).any()
    return None if unknown else int(records[key].sum(dtype=np.uint64))


def begun(run: Second, **group: int) -> set[int]:
    """The flows that have begun."""
    found = (run.of(stream, **group)["flow_id"].tolist() for stream in ("flows", "interval"))
    return set().union(*found)


def of_group(run: Second, i: int) -> dict[str, float | None]:
    """A group's figures, of its intervals behind the warm-up."""
    mine = run.late(run.of("interval", group=i))
    sums = {key: known_sum(mine, key) for key in SUMS}
    bits = 8 * float(mine["delivered_bytes"].sum(dtype=np.uint64))
    resent = sums["retransmits"] or 0
    first = (sums["sent_segs"] or 0) - resent
    overhead = resent / first if first > 0 else None
    return {
        **sums,
        "goodput_bps": bits / run.measured_s,
        "rtt_mean_ns": mean(mine["rtt_mean_ns"], mine["rtt_samples"].astype(float)),
        "rtx_overhead": overhead,
        "jfi": jain(per_flow(run, begun(run, group=i), mine)),
    }


def config(run: Second) -> Iterator[str]:
    """What is of the config."""
    yield from differ("seed", run.summary["seed"], int(run.config["seed"]))
    yield from differ("warmup_s", run.summary["warmup_s"], parse(run.config["warmup"], "ns") / 1e9)
    if "stop" not in run.summary:
        duration_s = parse(run.config["duration"], "ns") / 1e9
        yield from differ("virtual_s", run.summary["virtual_s"], duration_s, DOUBLE)
    yield from differ("measured time", run.summary["measured"]["virtual_s"], run.measured_s, DOUBLE)
    level = run.summary["telemetry"]["level"]
    yield from differ("telemetry.level", level, int(run.config["telemetry"]["level"]))
    for i, (said, asked) in enumerate(zip(run.summary["groups"], run.config["flows"], strict=True)):
        yield from differ(f"groups.{i}.flows", said["flows"], int(asked["count"]))


def groups(run: Second) -> Iterator[str]:
    """Figures of the groups, and the index of all flows."""
    share = {"jfi": SINGLE, "goodput_bps": DOUBLE, "rtt_mean_ns": DOUBLE, "rtx_overhead": DOUBLE}
    for i, group in enumerate(run.summary["groups"]):
        for key, right in of_group(run, i).items():
            most = 1.0 if key == "rtt_mean_ns" else 0.0
            yield from differ(f"groups.{i}.{key}", group[key], right, share.get(key, 0.0), most)
    right = jain(per_flow(run, begun(run), run.late(run.records["interval"])))
    yield from differ("jfi", run.summary["jfi"], right, SINGLE)


def group_events(run: Second) -> Iterator[str]:
    """What events say of the groups."""
    for i, group in enumerate(run.summary["groups"]):
        if group["timeouts"] is None:  # a kernel's flows tell none
            continue

        def many(event: str, i: int = i, **fields: int) -> int:
            return len(run.since(run.of("events", event=event, group=i, **fields)))

        name = f"groups.{i}."
        yield from differ(name + "timeouts", group["timeouts"], many("timeout"))
        yield from differ(name + "spurious", group["spurious"], many("spurious"))
        echoes = many("reduction", detail=1)
        yield from differ(name + "ecn_echoes", group["ecn_echoes"], echoes)
        undone = group["spurious_timeouts"] + group["spurious_recoveries"]
        yield from differ(name + "undone reductions", undone, many("undo"))


def flow_states(run: Second) -> Iterator[str]:
    """Where each flow is at the end, by its last record."""
    last: dict[int, int] = {}
    for record in run.records["flows"]:
        last[int(record["flow_id"])] = int(record["event"])
    values = run.values["flows", "event"]
    right = {
        "open": sum(event == values["still_open"] for event in last.values()),
        "done": sum(event == values["close"] for event in last.values()),
        "failed": sum(event in (values["reset"], values["gave_up"]) for event in last.values()),
    }
    right["waiting"] = sum(int(g["count"]) for g in run.config["flows"]) - sum(right.values())
    for key, said in run.summary["flows"].items():
        yield from differ(f"flows.{key}", said, right[key])


def transfers(run: Second) -> Iterator[str]:
    """Accounts of transfers over the run; completion times of those begun behind the warm-up."""
    for i, group in enumerate(run.summary["groups"]):
        said = group.get("transfers")
        if said is None:
            continue
        mine = run.of("transfers", group=i)
        event = {name: mine["event"] == n for name, n in run.values["transfers", "event"].items()}
        on_flow = mine["flow_id"] != NO_FLOW
        name = f"groups.{i}.transfers."
        failed = event["gave_up"] | event["reset"]
        right = {
            "begun": on_flow.sum(),
            "finished": event["close"].sum(),
            "failed": failed.sum(),
            "unfinished": (event["still_open"] & on_flow).sum(),
            "waiting": (event["still_open"] & ~on_flow).sum(),
        }
        for key, number in right.items():
            yield from differ(name + key, said[key], int(number))
        own = mine[event["close"] & (mine["start_ns"] >= run.warmup_ns)]
        took = (own["ts_ns"] - own["start_ns"]).astype(float)
        yield from differ(name + "measured", said["measured"], len(own))
        for key, value, share in (
            ("mean", mean(took), DOUBLE),
            *((f"p{p}", rank(took, p / 100), BUCKET) for p in (50, 95, 99)),
        ):
            key = f"completion_{key}_ns"
            yield from differ(name + key, said.get(key), value, share, 1)
        known = own["ideal_ns"] > 0
        slow = took[known] / own["ideal_ns"][known]
        yield from differ(
            name + "slowdown_mean", said.get("slowdown_mean"), mean(slow), SINGLE, 1e-6
        )


def probes(run: Second) -> Iterator[str]:
    """Means over the flows that were answered. An event is of a flow whose last probe was."""
    for i, group in enumerate(run.summary["groups"]):
        said = group.get("probe")
        if said is None:
            continue
        name, asked = f"groups.{i}.probe.", run.config["flows"][i]
        events = run.of("events", event="probe", group=i)
        if len(events) < int(asked["count"]):
            continue
        mine = run.since(events)
        mine = mine[mine["detail"] > 0]
        yield from differ(name + "flows", said["flows"], len(np.unique(mine["flow_id"])))
        yield from differ(name + "answered", said["answered"], int(mine["detail"].sum()))
        rtt_ns, dq_ns = mean(mine["before"]), mean(mine["value"])
        yield from differ(name + "rtt_min_ns", said.get("rtt_min_ns"), rtt_ns, SINGLE, 1)
        yield from differ(name + "dq_ns", said.get("dq_ns"), dq_ns, SINGLE, 1)
        if rtt_ns is None or dq_ns is None:
            continue
        source = asked["source"]["probe"]
        delta, size = float(source["delta"]), parse(source["size"], "B")
        payload = parse(asked["mss"], "B") - TIMESTAMP_BYTES * (asked["timestamps"] == "yes")
        segment_ns = delta * dq_ns
        took_ns = 2 * (rtt_ns + dq_ns) + size / payload * segment_ns
        bps = 8e9 * payload / segment_ns if segment_ns > 0 else None
        yield from differ(name + "delta", said["delta"], delta)
        yield from differ(name + "size_bytes", said["size_bytes"], size)
        yield from differ(name + "completion_ns", said["completion_ns"], took_ns, SINGLE, 1)
        yield from differ(name + "rate_bps", said["rate_bps"], bps, 1e-3)


def base_rtts(run: Second) -> Iterator[str]:
    """An event is of a flow that has opened, once or more often: all must have."""
    for i, group in enumerate(run.summary["groups"]):
        said = group.get("base_rtt")
        if said is None:
            continue
        opened = run.of("events", event="base_rtt", group=i)
        drawn = np.sort(opened["value"][np.unique(opened["flow_id"], return_index=True)[1]])
        if len(drawn) < int(run.config["flows"][i]["count"]):
            continue
        for key, at in (("min_ns", 0), ("max_ns", -1)):
            yield from differ(f"groups.{i}.base_rtt.{key}", said[key], drawn[at], 0, 1)
        low, high = drawn[(len(drawn) - 1) // 2], drawn[len(drawn) // 2]
        if not low - 1 <= said["median_ns"] <= high + 1:
            yield f"groups.{i}.base_rtt.median_ns is {said['median_ns']}, right: {low} to {high}"


def lengths_ns(run: Second, ends: Array) -> Array:
    """How long the intervals were that end then: from the end before, or from the warm-up's."""
    begin = np.concatenate([[run.warmup_ns], ends[:-1]]).astype(float)
    last = np.minimum(ends.astype(float), run.duration_ns)
    return np.maximum(last - begin, 0.0)


def links(run: Second) -> Iterator[str]:
    """Sums and means of the intervals behind the warm-up; times in queues of all packets."""
    for i, (name, link) in enumerate(run.summary["links"].items()):
        mine = run.late(run.of("links", link=i))
        for key in ("out_pkts", "out_bytes", "drops", "marks"):
            yield from differ(f"{name}.{key}", link[key], int(mine[key].sum(dtype=np.uint64)))
        spans = lengths_ns(run, mine["ts_ns"])
        for key in ("queue_mean_pkts", "queue_mean_bytes"):
            right = mean(mine[key], spans) if len(mine) else 0.0
            yield from differ(f"{name}.{key}", link[key], right, SINGLE, 1e-6)
        largest = int(mine["queue_max_pkts"].max(initial=0))
        yield from differ(f"{name}.queue_max_pkts", link["queue_max_pkts"], largest)
        if "packets" in run.records and run.complete:
            yield from times_in_queue(run, i, name, link)
    for (kind, place, params), (name, link) in zip(
        run.links(), run.summary["links"].items(), strict=True
    ):
        if kind == "link":
            yield from rates(run, place, params, name, link)


def times_in_queue(run: Second, i: int, name: str, link: dict[str, Any]) -> Iterator[str]:
    """Of every packet that left the queue."""
    sojourn = run.since(run.of("packets", event="dequeue", link=i))["sojourn_ns"]
    yield from differ(f"{name}.queue_mean_ns", link["queue_mean_ns"], mean(sojourn), DOUBLE, 1)
    for key, p in (("sojourn_p50_ns", 0.5), ("sojourn_p99_ns", 0.99)):
        yield from differ(f"{name}.{key}", link[key], rank(sojourn, p), BUCKET, 1)
    longest = int(sojourn.max()) if len(sojourn) else None
    yield from differ(f"{name}.sojourn_max_ns", link["sojourn_max_ns"], longest)
    for end, share in link["sojourn_cdf"]:
        last = float(sojourn[sojourn <= end].max(initial=0))
        yield from differ(f"{name}.sojourn_cdf's end {end}", end, last, 2 * BUCKET, 1)
        yield from differ(
            f"{name}.sojourn_cdf up to {end}", share, float((sojourn <= end).mean()), 0, DOUBLE
        )
    # The backlog is a step function of the events of its queue.
    steps = run.of("packets", link=i)
    steps = steps[np.isin(steps["event"], [run.values["packets", "event"][e] for e in CHANGES])]
    at = np.concatenate([[run.warmup_ns], steps["ts_ns"], [run.duration_ns]]).astype(float)
    before = steps[steps["ts_ns"] <= run.warmup_ns]["queue_bytes"]
    level = np.concatenate([before[-1:] if len(before) else [0], steps["queue_bytes"]])
    spans = np.diff(np.clip(at, run.warmup_ns, run.duration_ns))
    area = float((level * spans).sum() / max(1.0, run.duration_ns - run.warmup_ns))
    yield from differ(f"{name}.queue_mean_bytes", link["queue_mean_bytes"], area, SINGLE, 1e-3)


CHANGES = ("enqueue", "dequeue", "drop")


def rates(
    run: Second, place: str, params: dict[str, Any], name: str, link: dict[str, Any]
) -> Iterator[str]:
    """A link's rate over the measured time, as the config and its schedule have it."""
    changes = run.changes(f"{place}.rate", "bit/s")
    changes = [(at, to) for at, to in changes if at <= run.duration_ns]
    if any("over" in item for item in run.schedule):  # a ramp
        return
    points = [(0.0, parse(params["rate"], "bit/s")), *changes]
    ends = [min(at, run.duration_ns) for at, _ in points[1:]] + [run.duration_ns]
    bits = down_ns = 0.0
    applied = []
    for (at, bps), end in zip(points, ends, strict=True):
        span = end - max(at, run.warmup_ns)
        if span <= 0:
            continue
        applied.append(bps)
        bits += bps * span / 1e9
        down_ns += span if bps == 0 else 0
    if not applied:
        return
    yield from differ(
        f"{name}.rate_mean_bps", link["rate_mean_bps"], bits / run.measured_s, SINGLE, 1
    )
    yield from differ(f"{name}.rate_bps", link["rate_bps"], points[-1][1], SINGLE)
    yield from differ(f"{name}.rate_min_bps", link["rate_min_bps"], min(applied), DOUBLE)
    yield from differ(f"{name}.rate_max_bps", link["rate_max_bps"], max(applied), DOUBLE)
    yield from differ(f"{name}.down_ns", link["down_ns"], down_ns, 0, 1)
    if bits == 0 or parse(params["overhead"], "B") != 24 or params["framing"] != "ethernet":
        if bits == 0:
            yield from differ(f"{name}.utilisation", link["utilisation"], None)
        return
    overhead = 24 - FCS_BYTES - ETHER_HEADER_BYTES * (params["framing"] == "ip")
    sent = 8 * (link["out_bytes"] + link["out_pkts"] * overhead)
    # A part of a frame at either end, and what a frame below 64 bytes is filled up with.
    most = 8 * (FRAME_BYTES_MAX * 2 + 64 * link["out_pkts"]) / bits
    least = sent / bits - 8 * FRAME_BYTES_MAX * 2 / bits
    if not least <= link["utilisation"] <= sent / bits + most:
        yield f"{name}.utilisation is {link['utilisation']}, right: {sent / bits}"


def telemetry(run: Second) -> Iterator[str]:
    """How many records there are, and for how many there was no room."""
    for name, records in run.records.items():
        said = run.summary["telemetry"]["streams"].get(name, {"records": 0, "lost": 0})
        yield from differ(f"telemetry.{name}.records", said["records"], len(records))
        yield from differ(f"telemetry.{name}.lost", said["lost"], run.lost[name])


def ledger(run: Second) -> Iterator[str]:
    """The accounts: of each path, of all that is inside, and of the hosts."""
    accounts = run.summary["ledger"]
    inside = 0
    for name, path in accounts["paths"].items():
        for unit in ("pkts", "bytes"):
            gone = path["out"][unit] + sum(drop[unit] for drop in path["drops"].values())
            left = path["in"][unit] + path["duplicated"][unit] - gone
            yield from differ(f"{name}.inside.{unit}", path["inside"][unit], left)
        inside += path["inside"]["pkts"]
    yield from differ("ledger.inside", accounts["inside"], inside)
    sent = {"segments.sent": "sender_tx", "segments.received": "sender_rx"}
    if not run.stages("corrupt"):
        for side in ("sender", "receiver"):
            wrong = accounts["hosts"][f"{side}_checksum_errors"]
            yield from differ(f"ledger.hosts.{side}_checksum_errors", wrong, 0)
    for key, host in sent.items():
        said = run.summary["segments"][key.split(".")[1]]
        yield from differ(key, said, accounts["hosts"][host])
    if "packets" not in run.records or not run.complete:
        return
    reasons = {number: name for name, number in run.values["packets", "reason"].items()}
    for i, (name, path) in enumerate(accounts["paths"].items()):
        copies = run.of("packets", event="duplicate", path=i)
        yield from differ(f"{name}.duplicated.pkts", path["duplicated"]["pkts"], len(copies))
        size = int(copies["size_bytes"].sum())
        yield from differ(f"{name}.duplicated.bytes", path["duplicated"]["bytes"], size)
        drops = run.of("packets", event="drop", path=i)
        for reason in np.unique(drops["reason"]):
            own = drops[drops["reason"] == reason]
            said = path["drops"].get(reasons[int(reason)], {"pkts": 0, "bytes": 0})
            where = f"{name}.drops.{reasons[int(reason)]}"
            yield from differ(f"{where}.pkts", said["pkts"], len(own))
            yield from differ(f"{where}.bytes", said["bytes"], int(own["size_bytes"].sum()))


def columns(run: Second) -> Iterator[str]:
    """Every column of the frames that the tools give of a stream."""
    import weir

    opened = weir.open(run.path)
    for name, records in run.records.items():
        frame = opened.stream(name).to_polars()
        yield from differ(f"{name}: rows", frame.height, len(records))
        fields = header_of(run.path / f"{name}.ring")["fields"]
        if frame.columns != [field["name"] for field in fields]:
            yield f"{name}: columns are {frame.columns}"
        for field in fields:
            column, right = frame[field["name"]], records[field["name"]]
            known = np.ones(len(right), bool)
            if "unknown" in field:
                known = right != field["unknown"]
            same = np.array_equal(column.is_not_null().to_numpy(), known) and np.array_equal(
                column.drop_nulls().to_numpy(), right[known], equal_nan=right.dtype.kind == "f"
            )
            if not same:
                yield f"{name}: column {field['name']} is not what the ring has"


class Connection:
    """What a capture tells of one connection; numbers are those behind its SYN's."""

    def __init__(self, syn: int) -> None:
        self.syn = syn
        self.sent = self.resent = 0  # segments of data behind the warm-up
        self.top = self.acked = 0
        self.end: int | None = None  # of its data, told by its FIN
        self.blocks: list[tuple[int, int]] = []
        self.arrived: list[tuple[int, int]] = []
        self.before: tuple[int, int] | None = None  # acknowledged and delivered in the warm-up

    def number(self, raw: str) -> int:
        return (int(raw) - self.syn - 1) % 2**32

    def data(self, seq: int, size: int, fin: bool, late: bool) -> None:
        if fin:
            self.end = seq + size
        if size > 0:
            self.sent += late
            self.resent += late and seq < self.top
            self.top = max(self.top, seq + size)

    def ack(self, number: int, blocks: Iterable[tuple[int, int]], late: bool) -> None:
        if late and self.before is None:
            self.before = self.delivered
        last = number if self.end is None else self.end  # a FIN takes a number and is no byte
        self.acked = max(self.acked, min(number, last))
        blocks = [(start, end if self.end is None else min(end, self.end)) for start, end in blocks]
        self.blocks = merged([*self.blocks, *blocks], self.acked)

    @property
    def in_sequence(self) -> int:
        """How far the receiver's data has no hole."""
        return self.arrived[0][1] if self.arrived and self.arrived[0][0] == 0 else 0

    def arrival(self, seq: int, size: int) -> tuple[bool, bool]:
        """Of a segment at the receiver: was it new; is it above a hole?"""
        above, before = seq > self.in_sequence, self.arrived
        self.arrived = merged([*before, (seq, seq + size)], 0)
        return self.arrived != before, above

    @property
    def delivered(self) -> tuple[int, int]:
        """Bytes acknowledged in sequence, and with those of SACK."""
        return self.acked, self.acked + sum(end - start for start, end in self.blocks)

    @property
    def gained(self) -> tuple[int, int]:
        """Those behind the warm-up."""
        acked, delivered = self.delivered
        before = self.delivered if self.before is None else self.before
        return acked - before[0], delivered - before[1]


def merged(blocks: list[tuple[int, int]], above: int) -> list[tuple[int, int]]:
    """Blocks in order, none of which overlap, above a number."""
    found: list[tuple[int, int]] = []
    for start, end in sorted((max(start, above), end) for start, end in blocks if end > above):
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((start, end))
    return found


def captured(run: Second) -> Iterator[str]:
    """What tshark reads in a capture of the paths (telemetry.capture: paths) of a sender.

    Of a run whose groups all take one path there and one back.
    """
    if run.capture is None:
        return
    there, back = (
        {tuple(route(g, way)) for g in run.config["flows"]} for way in ("forward", "reverse")
    )
    if len(there) != 1 or len(back) != 1 or len(first := there.pop()) + len(last := back.pop()) > 2:
        raise ValueError("a second opinion of a capture is of one path each way")
    yield from paths_of_capture(run)
    receivers = dict.fromkeys(run.summary["receivers"], 0)
    data_segs = 0
    group_of = {int(r["src_port"]): int(r["group"]) for r in run.records["flows"]}
    connections: dict[int, list[Connection]] = defaultdict(list)
    for frame in run.frames:
        late = round(float(frame["frame.time_epoch"]) * 1e9) >= run.warmup_ns
        if frame["frame.interface_name"] == f"{first[0]} in":
            own = connections[int(frame["tcp.srcport"])]
            raw, size, flags = (
                frame["tcp.seq_raw"],
                int(frame["tcp.len"]),
                int(frame["tcp.flags"], 16),
            )
            if flags & SYN and (not own or own[-1].syn != int(raw)):
                own.append(Connection(int(raw)))
            elif not flags & SYN:
                own[-1].data(own[-1].number(raw), size, bool(flags & FIN), late)
        elif frame["frame.interface_name"] == f"{first[0]} out" and frame["tcp.len"] != "0":
            one = connections[int(frame["tcp.srcport"])][-1]
            fresh, above = one.arrival(one.number(frame["tcp.seq_raw"]), int(frame["tcp.len"]))
            receivers["segs"] += 1
            receivers["duplicate_segs"] += not fresh
            receivers["out_of_order_segs"] += above and fresh
            receivers["ce_segs"] += frame["ip.dsfield.ecn"] == "3"
            data_segs += late
        elif frame["frame.interface_name"] == f"{last[0]} in":
            receivers["acks"] += not int(frame["tcp.flags"], 16) & SYN
        elif frame["frame.interface_name"] == f"{last[0]} out":
            one = connections[int(frame["tcp.dstport"])][-1]
            edges = [frame[f"tcp.options.sack_{side}"] for side in ("le", "re")]
            blocks = zip(*(edge.split(",") for edge in edges), strict=True) if edges[0] else ()
            one.ack(
                one.number(frame["tcp.ack_raw"]),
                [(one.number(start), one.number(end)) for start, end in blocks],
                late,
            )
    receivers["bytes"] = sum(one.in_sequence for own in connections.values() for one in own)
    for key, right in receivers.items():
        yield from differ(f"captured: receivers.{key}", run.summary["receivers"][key], right)
    yield from differ("captured: data_segs", run.summary["measured"]["data_segs"], data_segs)
    for i, group in enumerate(run.summary["groups"]):
        mine = [one for port, own in connections.items() if group_of[port] == i for one in own]
        acked, delivered = (
            sum(column) for column in zip(*(one.gained for one in mine), strict=True)
        )
        name = f"captured: groups.{i}."
        yield from differ(name + "sent_segs", group["sent_segs"], sum(one.sent for one in mine))
        resent = sum(one.resent for one in mine)
        yield from differ(name + "retransmits", group["retransmits"], resent)
        yield from differ(name + "acked_bytes", group["acked_bytes"], acked)
        bps = 8 * delivered / run.measured_s
        yield from differ(name + "goodput_bps", group["goodput_bps"], bps, DOUBLE)


def paths_of_capture(run: Second) -> Iterator[str]:
    """Packets into each path, out of it and dropped by it."""
    seen: dict[tuple[str, str], list[int]] = defaultdict(list)
    for frame in run.frames:
        path, what = frame["frame.interface_name"].rsplit(" ", 1)
        seen[path, what].append(int(frame["frame.len"]) + FCS_BYTES)
    said = run.summary["capture"]
    yield from differ("captured: packets", said["packets"], len(run.frames))
    yield from differ("captured: bytes", said["bytes"], Path(str(run.capture)).stat().st_size)
    for key in ("lost", "out_of_order", "rotated_away"):
        yield from differ(f"captured: {key}", said[key], 0)
    hosts = run.summary["ledger"]["hosts"]
    for key, way, what in (
        ("sender_tx", "forward", "in"),
        ("receiver_rx", "forward", "out"),
        ("receiver_tx", "reverse", "in"),
        ("sender_rx", "reverse", "out"),
    ):
        (path,) = {tuple(route(g, way)) for g in run.config["flows"]}
        yield from differ(f"captured: {key}", hosts[key], len(seen[path[0], what]))
    for name, path in run.summary["ledger"]["paths"].items():
        lost = [sum(drop[unit] for drop in path["drops"].values()) for unit in ("pkts", "bytes")]
        for what, said in (
            ("in", path["in"]),
            ("out", path["out"]),
            ("drop", dict(zip(("pkts", "bytes"), lost, strict=True))),
        ):
            sizes = seen[name, what]
            yield from differ(f"captured: {name}.{what}.pkts", said["pkts"], len(sizes))
            yield from differ(f"captured: {name}.{what}.bytes", said["bytes"], sum(sizes))


def limits(run: Second) -> Iterator[str]:
    """Each flow has one limit at the end, and those that have ended or failed are known."""
    if (said := run.summary.get("limits")) is None:
        return
    states = run.summary["flows"]
    counted = {key: n for key, n in said.items() if key not in ("cause", "sentence", "flows")}
    yield from differ("limits", sum(counted.values()), said["flows"])
    yield from differ("limits.flows", said["flows"], sum(states.values()))
    for ours, theirs in (("ended", "done"), ("failed", "failed")):
        yield from differ(f"limits.{ours}", said[ours], states[theirs])


def why(run: Second) -> Iterator[str]:
    """What is said of a link without a queue is what stands under `links`."""
    for i, said in enumerate(run.summary["why"]):
        link = run.summary["links"][said["link"]]
        arrived = link["out_pkts"] + link["drops"]
        right = {"utilisation": link["utilisation"]}
        if said["cause"] == "own_queue":
            right |= {"dropped": link["drops"] / arrived, "marked": link["marks"] / arrived}
        for key, value in right.items():
            yield from differ(f"why.{i}.{key}", said[key], value, DOUBLE)


OPINIONS: list[Callable[[Second], Iterator[str]]] = [
    config,
    groups,
    group_events,
    flow_states,
    limits,
    why,
    transfers,
    probes,
    base_rtts,
    links,
    telemetry,
    ledger,
    columns,
    captured,
]


def second_opinion(path: Path, capture: Path | None = None) -> list[str]:
    """What of a run's summary is not what its records and its capture say."""
    run = Second(path, capture)
    if "interval" not in run.records:  # telemetry.level: 0
        return []
    found = [says for opinion in OPINIONS for says in opinion(run)]
    if found and run.warmup_ns > 0 and run.capture is None:
        # Of the events of one nanosecond some come before its intervals' ends and some behind.
        run.at_the_end_is_behind = False
        also = {says.split(" is ")[0] for opinion in OPINIONS for says in opinion(run)}
        found = [says for says in found if says.split(" is ")[0] in also]
    return found
