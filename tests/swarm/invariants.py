# SPDX-License-Identifier: BSD-3-Clause
"""What must hold of any finished experiment, read from its run folder.

Each invariant is a function from a folder to sentences, each of which says what is wrong; its name
is the name of a finding.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from weir.analysis.ring import Ring, RingError, open_ring

FCS_BYTES = 4
TIMESTAMP_TICK_NS = 1_000_000
ETHER_HEADER_BYTES = 14
FRAME_BYTES_MAX = 9000 + 66 + 24
LINKS = ("link", "markov_link")
MEANT = ("ok", "every flow failed")  # verdicts that are no findings
OPEN, CLOSE, RESET, GAVE_UP, STILL_OPEN = 1, 2, 3, 4, 5
DROP = 3  # of packets.ring


FACTORS = {
    "ns": {"": 0, "ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9, "min": 6e10, "h": 3.6e12},
    "bit/s": {"": 0, "bit": 1, "kbit": 1e3, "Mbit": 1e6, "Gbit": 1e9, "Tbit": 1e12},
    "B": {"": 1, "B": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12}
    | {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40},
    "ratio": {"": 1, "%": 0.01},
}


def route(group: dict[str, Any], direction: str) -> list[str]:
    """The paths of a group's packets, in order."""
    names = (group.get("path") or {}).get(direction, direction)
    return [names] if isinstance(names, str) else list(names)


def parse(text: str, unit: str) -> float:
    """A value as a config has it: "20ms" is 2e7."""
    match = re.fullmatch(r"([0-9.]+(?:e-?[0-9]+)?) ?([A-Za-z%]*)", text)
    if match is None:
        raise ValueError(f"{text} is not a quantity")
    return round(float(match[1]) * FACTORS[unit][match[2]], 6)


def asked_rtt_ns(group: dict[str, Any], bound: str) -> float:
    """What a group asks for; of a distribution its bound, min or max. 0: what the paths give."""
    written = group["base_rtt"]
    if isinstance(written, dict):
        (params,) = written.values()
        return parse(params[bound], "ns")
    return parse(written, "ns")


class Folder:
    """A finished run: summary, resolved config, telemetry."""

    def __init__(self, path: Path) -> None:
        self.summary: dict[str, Any] = json.loads((path / "summary.json").read_text())
        text = (path / "config.yaml").read_text()
        self.config: dict[str, Any] = yaml.load(text, Loader=yaml.BaseLoader)
        self.rings: dict[str, Ring] = {f.stem: open_ring(f) for f in sorted(path.glob("*.ring"))}
        self.duration_ns = self.summary["virtual_s"] * 1e9
        self.warmup_ns = round(self.summary["warmup_s"] * 1e9)  # 2.09 ms is no double
        self.schedule: list[dict[str, str]] = self.config.get("schedule") or []

    def stages(self, kind: str) -> list[tuple[str, dict[str, Any]]]:
        """All stages of a kind in the order of the config: where in a schedule, parameters."""
        found = []
        for path, stages in self.config["paths"].items():
            same = [stage[kind] for stage in stages if kind in stage]
            for i, params in enumerate(same):
                own = params.get("name", f"{kind}{i + 1 if i else ''}")
                found.append((f"{path}.{own}", params))
        return found

    def links(self) -> list[tuple[str, str, dict[str, Any]]]:
        """The links of the summary, in its order: kind, where in a schedule, parameters."""
        found: dict[tuple[str, int], tuple[str, str, dict[str, Any]]] = {}
        for kind in LINKS:
            counts = dict.fromkeys(self.config["paths"], 0)
            for place, params in self.stages(kind):
                path = place.split(".")[0]
                of_kind = [i for i, s in enumerate(self.config["paths"][path]) if kind in s]
                found[path, of_kind[counts[path]]] = (kind, place, params)
                counts[path] += 1
        order = list(self.config["paths"])
        return [found[key] for key in sorted(found, key=lambda k: (order.index(k[0]), k[1]))]

    def changes(self, key: str, unit: str) -> list[tuple[float, float]]:
        """When the schedule changes a parameter, in ns, and to what."""
        items = [(parse(i["at"], "ns"), parse(i[key], unit)) for i in self.schedule if key in i]
        return sorted(items, key=lambda item: item[0])

    def base_rtt_ns(self, group: dict[str, Any]) -> float:
        """No packet of this group is back sooner."""
        paths_ns = start_ns = 0.0
        passed = [*route(group, "forward"), *route(group, "reverse")]
        for place, params in self.stages("delay"):
            times = passed.count(place.split(".")[0])
            delay_ns = parse(params["delay"], "ns")
            later = [to for _, to in self.changes(f"{place}.delay", "ns")]
            paths_ns += times * min([delay_ns, *later])
            start_ns += times * delay_ns
        own_ns = asked_rtt_ns(group, "min")
        return paths_ns + (max(0.0, own_ns - start_ns) if own_ns > 0 else 0.0)


def numbers(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """All numbers and nulls of a summary with their places."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inner in pairs:
        where = f"{path}.{key}" if path else str(key)
        if isinstance(inner, dict | list):
            yield from numbers(inner, where)
        elif not isinstance(inner, str | bool):
            yield where, inner


# measured.cpu_s is null in a browser alone, and never here: tests/tools/web.
NULLS = ("half_width", "jfi", "measured", "moved", "rate_bps", "rtt_mean_ns", "rtx_overhead")
DELAYS = ("queue_mean_ns", "sojourn_p50_ns", "sojourn_p99_ns", "sojourn_max_ns")
CARDS = ("packets_per_interrupt", "segs_per_handover", "busy", "busy_max")


def finite(run: Folder) -> Iterator[str]:
    """No NaN, infinity or wrapped counter; null only where there is nothing to divide by."""
    for where, number in numbers(run.summary):
        last = where.split(".")[-1]
        if number is None and last not in NULLS + DELAYS + CARDS:
            yield f"{where} is null"
        elif number is not None and not (0 <= number < 2**62 or last in ("seed", "moved")):
            yield f"{where} is {number}"
    stop = run.summary.get("stop", {})
    if "interval" in stop and stop["settled"]:
        width = stop["interval"]["half_width"]
        if width is None or width > stop["change"]:
            yield f"it settled with an interval of {width}"
    for group in run.summary["groups"]:
        name = group["name"]
        if group.get("probe", {}).get("rate_bps", 0) is None and group["probe"]["dq_ns"] > 0:
            yield f"the rate of {name}'s probes is null, though they met a queue"
        if (group["jfi"] is None) != (group["goodput_bps"] == 0):
            yield f"the jfi of {name} is {group['jfi']}, its goodput {group['goodput_bps']} bit/s"
        first = group["sent_segs"] - group["retransmits"]
        if (group["rtx_overhead"] is None) != (first == 0):
            yield f"the overhead of {name} is {group['rtx_overhead']}"
    for name, card in run.summary.get("cards", {}).items():
        if (card["packets_per_interrupt"] is None) != (card["interrupts"] == 0):
            yield f"{name}: {card['interrupts']} interrupts bring {card['packets_per_interrupt']}"
        if (card["busy"] is None) != (card["busy_max"] is None):
            yield f"{name}: processors are busy {card['busy']}, the busiest {card['busy_max']}"
    for name, link in run.summary["links"].items():
        for figure in DELAYS:
            # One packet may have left the queue in the warm-up and the link after it.
            if link[figure] is None and link["out_pkts"] > 1:
                yield f"{name}: {figure} is null, though {link['out_pkts']} packets have left"


def verdict(run: Folder) -> Iterator[str]:
    """A run that was held back by its own sizing is no measurement."""
    if run.summary["verdict"] not in MEANT:
        yield run.summary["verdict"]


def ledger(run: Folder) -> Iterator[str]:
    """What went in came out, was dropped with a reason, or is still inside."""
    if not run.summary["ledger"]["balanced"]:
        yield "the ledger does not balance"
    for name, path in run.summary["ledger"]["paths"].items():
        for what in ("pkts", "bytes"):
            dropped = sum(count[what] for count in path["drops"].values())
            entered = path["in"][what] + path["duplicated"][what]
            if entered != path["out"][what] + path["inside"][what] + dropped:
                yield f"{name}: {what}: in + duplicated is not out + drops + inside"


def capacity(run: Folder) -> Iterator[str]:
    """A link sends no more than its rate, a receiver gets no more than the links sent."""
    for (kind, place, params), (name, link) in zip(
        run.links(), run.summary["links"].items(), strict=True
    ):
        changes = [
            (at, to) for at, to in run.changes(f"{place}.rate", "bit/s") if at < run.duration_ns
        ]
        rate = params["rate"] if kind == "link" else params["good"]  # which is the larger one
        at_ns, rate_bps, bits = 0.0, parse(rate, "bit/s"), 0.0
        for until_ns, next_bps in [*changes, (run.duration_ns, 0.0)]:
            span_ns = max(0.0, until_ns - max(at_ns, run.warmup_ns))
            bits += rate_bps * span_ns / 1e9
            at_ns, rate_bps = until_ns, next_bps
        overhead = parse(params["overhead"], "B")
        # At least: docsis and atm fill frames up besides.
        extra = overhead - FCS_BYTES - ETHER_HEADER_BYTES * (params["framing"] == "ip")
        sent = 8 * (link["out_bytes"] + link["out_pkts"] * extra)
        if sent > bits * (1 + 1e-9) + 8 * (FRAME_BYTES_MAX + overhead) * (2 + len(changes)):
            yield f"{name} sent {sent:.0f} bits where its rate allows {bits:.0f}"
        if not 0 <= link["utilisation"] <= 1 + 1e-9:
            yield f"{name} has a utilisation of {link['utilisation']}"
    received = run.summary["receivers"]["bytes"]
    acked = sum(group["acked_bytes"] for group in run.summary["groups"])
    if acked > received:
        yield f"{acked} bytes were acknowledged, {received} received"
    last = {route(group, "forward")[-1] for group in run.config["flows"]}
    left = sum(run.summary["ledger"]["paths"][name]["out"]["bytes"] for name in last)
    if received > left:
        yield f"{received} bytes were received, {left} left {', '.join(sorted(last))}"


def round_trips(run: Folder) -> Iterator[str]:
    """No RTT is below the constant delays; in a host with ticks a control's may be by one tick."""
    for i, (group, figures) in enumerate(
        zip(run.config["flows"], run.summary["groups"], strict=True)
    ):
        base_ns = run.base_rtt_ns(group)
        if figures["acked_bytes"] > 0 and 0 < (figures["rtt_mean_ns"] or 0) < base_ns - 1:
            yield f"group {i}: its mean RTT is {figures['rtt_mean_ns']} ns, its base {base_ns}"
        for stream, field in (("cc", "rtt_ns"), ("cc", "rtt_min_ns"), ("interval", "rtt_mean_ns")):
            if stream not in run.rings:
                continue
            records = run.rings[stream].records
            rtt_ns = records[field][(records["group"] == i) & (records[field] > 0)]
            short_ns = TIMESTAMP_TICK_NS if stream == "cc" and float(group["hz"]) > 0 else 1
            if len(rtt_ns) and rtt_ns.min() < base_ns - short_ns:
                yield f"group {i}: {stream} has an RTT of {rtt_ns.min()} ns, its base is {base_ns}"


def flows(run: Folder) -> Iterator[str]:
    """Each flow is somewhere; what a finite one sent is its size; its records say the same."""
    states = run.summary["flows"]
    counts = [int(group["count"]) for group in run.config["flows"]]
    if sum(states.values()) != sum(counts):
        yield f"{sum(counts)} flows are configured, {states} are there"
    for i, group in enumerate(run.config["flows"]):
        size, flows_ring = group["source"], run.rings.get("flows")
        if flows_ring is None or not isinstance(size, dict) or "size" not in size:
            continue
        records = flows_ring.records
        closed = records[(records["group"] == i) & (records["event"] == CLOSE)]
        bytes_ = parse(size["size"]["bytes"], "B")
        if (
            parse(group["stop"], "ns") == 0
            and len(closed)
            and (set(closed["acked_bytes"].tolist()) != {bytes_})
        ):
            yield f"group {i}: closed after {closed['acked_bytes'].min()} of {bytes_} bytes"
    if "flows" in run.rings:
        events = run.rings["flows"].records["event"]
        failed = np.isin(events, (RESET, GAVE_UP)).sum()
        found = {"done": (events == CLOSE).sum(), "failed": failed}
        found["open"] = (events == STILL_OPEN).sum()
        # Sources with a schedule use a flow for one connection after the other.
        repeated = any("transfers" in group for group in run.summary["groups"])
        yield from (
            f"{states[key]} flows are {key}, {n} records say so"
            for key, n in found.items()
            if (states[key] > n if repeated and key != "open" else states[key] != n)
        )


def telemetry(run: Folder) -> Iterator[str]:
    """Rings read, none lost, and their sums are the summary's."""
    for name, ring in run.rings.items():
        try:
            ring.check()
        except RingError as error:
            yield str(error)
        said = run.summary["telemetry"]["streams"].get(name, {"records": 0, "lost": 0})
        if (said["records"], said["lost"]) != (len(ring), 0):
            yield f"{name} has {len(ring)} records, the summary says {said}"
    if "interval" in run.rings:
        records = run.rings["interval"].records
        for i, group in enumerate(run.summary["groups"]):
            mine = records[(records["group"] == i) & (records["ts_ns"] > run.warmup_ns)]
            for field in (
                "acked_bytes",
                "sent_segs",
                "retransmits",
                "lost_segs",
                "cwnd_reductions",
            ):
                if (total := mine[field].sum(dtype=np.uint64)) != group[field]:
                    yield f"group {i}: intervals sum to {total} {field}, not {group[field]}"
            samples = mine["rtt_samples"].sum(dtype=np.uint64)
            if (group["rtt_mean_ns"] is None) != (samples == 0):
                yield f"group {i}: its mean RTT is {group['rtt_mean_ns']} of {samples} samples"
            own = records[records["group"] == i]
            acked, delivered = (own[f"{how}_bytes"].sum() for how in ("acked", "delivered"))
            if acked > delivered:
                yield f"group {i}: {acked} bytes were acknowledged, {delivered} delivered"
    if "links" in run.rings:
        records = run.rings["links"].records
        for i, (name, link) in enumerate(run.summary["links"].items()):
            mine = records[(records["link"] == i) & (records["ts_ns"] > run.warmup_ns)]
            for field in ("out_pkts", "out_bytes", "drops", "marks"):
                if (total := mine[field].sum(dtype=np.uint64)) != link[field]:
                    yield f"{name}: intervals sum to {total} {field}, not {link[field]}"
    if "packets" in run.rings and run.config["telemetry"]["level"] == "3":
        records = run.rings["packets"].records
        for i, (name, path) in enumerate(run.summary["ledger"]["paths"].items()):
            recorded = ((records["path"] == i) & (records["event"] == DROP)).sum()
            if recorded != (total := sum(count["pkts"] for count in path["drops"].values())):
                yield f"{name}: {recorded} drops are recorded, {total} are in the ledger"


def can_finish(run: Folder) -> bool:
    """Are all flows finite, the paths without chance, and is there time to stop and wait?"""
    kinds = {kind for path in run.config["paths"].values() for stage in path for kind in stage}
    if run.schedule or run.summary.get("stop") or not kinds <= {"link", "delay"}:
        return False
    groups = run.config["flows"]
    flows_all = sum(int(group["count"]) for group in groups)
    if any(parse(params["late"], "ratio") > 0 for _, params in run.stages("delay")):
        return False
    for _, params in run.stages("link"):
        limit = params["queue"].get("fifo", {}).get("limit", "")
        if not limit.endswith("pkt") or int(limit.removesuffix("pkt")) < 4 * flows_all:
            return False
    rate_bps = min([1e12, *(parse(p["rate"], "bit/s") for _, p in run.stages("link"))])
    rtt_ns = sum(parse(params["delay"], "ns") for _, params in run.stages("delay"))
    need_ns = alone_ns = 120e9  # for timeouts
    for group in groups:
        count, source = int(group["count"]), group["source"]
        if not isinstance(source, dict) or "size" not in source or "fixed" in group["cc"]:
            return False
        if parse(group["stop"], "ns") > 0 or int(group["retries"]) < 8:
            return False
        if parse(group["rto_initial"], "ns") < rtt_ns:
            return False
        bytes_ = parse(source["size"]["bytes"], "B")
        segs = bytes_ / (parse(group["mss"], "B") - 12) + 2
        own_ns = max(asked_rtt_ns(group, "max"), rtt_ns) + parse(group["ack_delay"], "ns")
        start_ns = parse(group["start"], "ns") + parse(group["jitter"], "ns")
        start_ns += count * parse(group["stagger"], "ns")
        # A window below one segment (swift) is as many round trips for each.
        control = next(iter(group["cc"].values()))
        window_segs = min(1.0, float(control.get("min_cwnd", 1)))
        alone_ns = max(alone_ns, start_ns + 2 * segs * own_ns / window_segs)
        # Each segment many times on the slowest link, with headers, and its ACK.
        need_ns += (
            10
            * max(1, len(run.stages("link")))
            * count
            * (bytes_ + 2 * 1200 * segs)
            * 8e9
            / rate_bps
        )
    return bool(need_ns + alone_ns < run.duration_ns)


def finished(run: Folder) -> Iterator[str]:
    """Finite flows end where nothing stops them."""
    states = run.summary["flows"]
    if can_finish(run) and states["done"] != sum(states.values()):
        yield f"there was time for all finite flows, and yet {states}"


INVARIANTS: list[Callable[[Folder], Iterator[str]]] = [
    finite,
    verdict,
    ledger,
    capacity,
    round_trips,
    flows,
    telemetry,
    finished,
]
