# SPDX-License-Identifier: BSD-3-Clause
"""Samples of the running programs' counters, and the rates between two samples.

Programs only count. A rate is the difference of two samples over the difference of the program's
own times; a frame is everything between two samples as plain data, for people and for --json.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from weir.base.foreign import Json
from weir.live import client

Row = Json
Frame = dict[str, list[Row]]


@dataclass
class Sample:
    """A program's answers at one moment, each a table of named rows."""

    name: str
    prefix: str
    info: Row
    lcores: dict[str, Row] = field(default_factory=dict)
    ports: dict[str, Row] = field(default_factory=dict)
    paths: dict[str, Row] = field(default_factory=dict)
    links: dict[str, Row] = field(default_factory=dict)
    groups: dict[str, Row] = field(default_factory=dict)

    @property
    def cores(self) -> dict[str, Row]:
        """Rows of its lcores; a program with but one says so in its info."""
        return self.lcores or {"0": self.info}


def take(program: client.Program) -> Sample:
    """Returns a sample of a program. Ended: it does not run any more."""

    def table(command: str) -> dict[str, Row]:
        answer = program.ask(command)
        return answer if isinstance(answer, dict) and "error" not in answer else {}

    def parts(name: str) -> dict[str, Row]:
        rows: dict[str, Row] = {}
        while len(rows) < sample.info.get(name, 0):
            more = table(f"/weir/{name},{len(rows)}")
            if more.keys() <= rows.keys():
                break
            rows |= more
        return rows

    sample = Sample(program.name, program.prefix, table("/weir/info"))
    if not sample.info:
        raise client.Ended
    sample.lcores = table("/weir/lcores")
    sample.ports = table("/weir/ports")
    sample.paths = table("/weir/paths")
    sample.links = parts("links")
    sample.groups = parts("groups")
    return sample


def per_s(before: Row, now: Row, key: str) -> float | None:
    """Returns a counter's growth per second; None: not known."""
    ns = now["now_ns"] - before.get("now_ns", now["now_ns"])
    grew = now.get(key, 0) - before.get(key, 0)
    return grew * 1e9 / ns if ns > 0 and grew >= 0 else None


def share(before: Row, now: Row, part: str, whole: str) -> float | None:
    """Returns one counter's growth over another's; None: not known, or the other did not grow."""
    total = now.get(whole, 0) - before.get(whole, 0)
    grew = now.get(part, 0) - before.get(part, 0)
    return grew / total if before and total > 0 and grew >= 0 else None


def bits(bytes_per_s: float | None) -> float | None:
    return None if bytes_per_s is None else bytes_per_s * 8


def lcore_row(before: Sample, now: Sample, key: str) -> Row:
    """Returns the busy share and iterations of an lcore."""
    old, new, info = before.cores.get(key, {}), now.cores[key], now.info
    return {
        "program": now.name,
        "prefix": now.prefix,
        "cpu": new["cpu"],
        "busy": share(old, new, "busy_ns", "now_ns"),
        "iterations_per_s": per_s(old, new, "iterations"),
        "iteration_mean_ns": share(old, new, "now_ns", "iterations"),
        "iteration_max_ns": new.get("iteration_max_ns"),
        "handover_dropped": new.get("handover_dropped", 0),
        "elapsed_s": info.get("elapsed_ns", 0) / 1e9,
        "duration_s": info.get("duration_ns", 0) / 1e9,
        "run": info.get("run"),
    }


def port_row(program: str, old: Row, new: Row) -> Row:
    """Returns what a port received and sent, frames with their FCS."""
    return {
        "name": new["name"],
        "program": program,
        "dev": new["dev"],
        "up": bool(new["up"]),
        "rx_pps": per_s(old, new, "rx_pkts"),
        "rx_bps": bits(per_s(old, new, "rx_bytes")),
        "tx_pps": per_s(old, new, "tx_pkts"),
        "tx_bps": bits(per_s(old, new, "tx_bytes")),
        "dropped": new.get("tx_dropped", 0) + new.get("no_mbuf", 0),
    }


def path_row(old: Row, new: Row, port: tuple[Row, Row]) -> Row:
    """Returns what a path carried; how late its packets left is its port's to know."""
    drops = {key.removeprefix("drop_"): new[key] for key in new if key.startswith("drop_")}
    return {
        "name": new["name"],
        "in_bps": bits(per_s(old, new, "in_bytes")),
        "out_bps": bits(per_s(old, new, "out_bytes")),
        "out_pps": per_s(old, new, "out_pkts"),
        "inside_pkts": new["inside_pkts"],
        "drops": sum(drops.values()),
        "drops_by_reason": {reason: count for reason, count in drops.items() if count},
        "late_mean_ns": share(*port, "late_sum_ns", "left_pkts"),
        "late_max_ns": port[1].get("late_max_ns"),
    }


def link_row(old: Row, new: Row) -> Row:
    """Returns the figures of a link, and its queue at this moment."""
    rate = new["rate_bps"]
    return {
        "name": new["name"],
        "path": new["name"].rsplit(".", 1)[0],
        "rate_bps": rate,
        "out_bps": bits(per_s(old, new, "out_bytes")),
        "utilisation": share(old, new, "wire_bits", "capacity_bits"),
        "queue_pkts": new["queue_pkts"],
        "queue_bytes": new["queue_bytes"],
        "queue_ns": new["queue_bytes"] * 8e9 / rate if rate else None,
        "drops": new["drops"],
        "marks": new["marks"],
    }


def group_row(old: Row, new: Row) -> Row:
    """Returns the figures of a group of flows; means are of its open flows."""
    measured = new["measured"] > 0
    return {
        "name": new["name"],
        "cc": new["cc"],
        "flows": {state: new[state] for state in ("waiting", "open", "done", "failed")},
        "goodput_bps": bits(per_s(old, new, "acked_bytes")),
        "srtt_mean_ns": new["srtt_mean_ns"] if measured else None,
        "cwnd_mean_segs": float(new["cwnd_mean_segs"]) if measured else None,
        "pacing_bps": new["pacing_bps"] or None,
        "retransmits": new["retransmits"],
        "retransmits_per_s": per_s(old, new, "retransmits"),
        "timeouts": new["timeouts"],
    }


def frame(before: Sequence[Sample], now: Sequence[Sample]) -> Frame:
    """Returns the rates between the samples of some programs."""
    made: Frame = {"lcores": [], "ports": [], "paths": [], "links": [], "groups": []}
    earlier = {sample.prefix: sample for sample in before}
    for new in now:
        old = earlier.get(new.prefix, Sample(new.name, new.prefix, {}))
        made["lcores"] += [lcore_row(old, new, key) for key in new.cores]
        led: dict[str, tuple[Row, Row]] = {}
        for key, port in new.ports.items():
            made["ports"].append(port_row(new.name, old.ports.get(key, {}), port))
            led[port.get("path", "")] = (old.ports.get(key, {}), port)
        for key, path in new.paths.items():
            port_of = led.get(path["name"], ({}, {}))
            made["paths"].append(path_row(old.paths.get(key, {}), path, port_of))
        for key, link in new.links.items():
            made["links"].append(link_row(old.links.get(key, {}), link))
        for key, group in new.groups.items():
            made["groups"].append(group_row(old.groups.get(key, {}), group))
    return made
