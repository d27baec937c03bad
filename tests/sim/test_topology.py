# SPDX-License-Identifier: BSD-3-Clause
"""More than one bottleneck: shares beside theory, exact hops, and ACKs that meet a queue."""

from __future__ import annotations

import json
import struct
import subprocess
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from weir.analysis import routes
from weir.analysis.ring import open_ring
from weir.report.bottleneck import propagation_ns

from .conftest import Program, Replay, Simulate

SEGMENT, WIRE = 1448, 1538  # bytes of a full segment: payload, and on the wire
ACK_WIRE = 14 + 20 + 20 + 12 + 24  # Ethernet, IP, TCP with timestamps, the link's overhead
CAPACITY_BPS = 30e6 * SEGMENT / WIRE  # of a hop of parking-lot.yaml
HOPS = ("hop1", "hop2", "hop3")


def test_cross_traffic_on_one_hop_leaves_the_others_half_empty(simulate: Simulate) -> None:
    """The bottleneck is where the cross flow is; before and behind it there is no queue."""
    run = simulate(
        "parking-lot",
        "paths.hop2.link.queue=drr",
        "flows.1.path.forward=[hop2]",
        "flows.3.path.forward=[hop1, hop2, hop3]",
        "flows.2.path.forward=hop3",
        "flows.2.stop=1ms",
        "flows.3.stop=1ms",
        "flows.1.base_rtt=20ms",
    )
    links = run.summary["links"]

    for group in run.groups[:2]:
        assert group["goodput_bps"] / CAPACITY_BPS == pytest.approx(1 / 2, rel=0.02)
    assert links["hop2"]["utilisation"] > 0.99
    for hop in ("hop1", "hop3"):
        assert links[hop]["utilisation"] == pytest.approx(1 / 2, rel=0.02)
        assert links[hop]["queue_mean_pkts"] < 1


WHOLE = """
seed: 3
duration: 8s
paths:
  forward:
    - link: {rate: 40Mbit, queue: {fifo: {limit: 60pkt}}}
    - delay: {delay: 3ms}
    - link: {rate: 30Mbit, queue: {codel: {limit: 60pkt}}}
    - delay: {delay: 4ms}
    - link: {rate: 20Mbit, queue: {fq_codel: {limit: 60pkt}}}
  reverse:
    - link: {rate: 2Mbit, queue: {fifo: {limit: 20pkt}}}
    - delay: {delay: 9ms}
flows:
  - {count: 3, cc: cubic, stagger: 100ms}
  - {count: 2, cc: copa, base_rtt: 30ms}
telemetry: {level: 3, interval: 100ms}
"""
CUT = """
seed: 3
duration: 8s
paths:
  one:
    - link: {rate: 40Mbit, queue: {fifo: {limit: 60pkt}}}
    - delay: {delay: 3ms}
  two: [{link: {rate: 30Mbit, queue: {codel: {limit: 60pkt}}}}]
  three:
    - delay: {delay: 4ms}
    - link: {rate: 20Mbit, queue: {fq_codel: {limit: 60pkt}}}
  four:
    - link: {rate: 2Mbit, queue: {fifo: {limit: 20pkt}}}
  five:
    - delay: {delay: 9ms}
flows:
  - {count: 3, cc: cubic, stagger: 100ms, path: WAYS}
  - {count: 2, cc: copa, base_rtt: 30ms, path: WAYS}
telemetry: {level: 3, interval: 100ms}
""".replace("WAYS", "{forward: [one, two, three], reverse: [four, five]}")


def test_a_path_that_is_cut_into_hops_is_the_same_path(simulate: Simulate) -> None:
    """A packet enters a hop at the time at which it leaves the one before, to the nanosecond."""
    whole, cut = simulate(WHOLE), simulate(CUT)

    for stream in ("cc", "flows", "interval"):
        before, after = whole.records(stream), cut.records(stream)
        assert len(before) > 100 or stream == "flows"
        assert (before == after).all(), stream
    links = [list(run.summary["links"].values()) for run in (whole, cut)]
    assert links[0] == links[1]


def test_hops_balance_by_themselves_and_together(simulate: Simulate) -> None:
    """What leaves a hop enters the next one or arrives; each hop has its own account."""
    run = simulate("parking-lot", "telemetry.level=3", "duration=3s", "warmup=0s")
    ledger = run.summary["ledger"]
    paths = ledger["paths"]
    packets = run.records("packets")
    arrived = sum(len(np.unique(packets["pkt_id"][packets["path"] == i])) for i in range(3))

    assert [*paths] == [*HOPS, "back"]
    for path in paths.values():
        dropped = sum(drop["pkts"] for drop in path["drops"].values())
        assert path["in"]["pkts"] == path["out"]["pkts"] + path["inside"]["pkts"] + dropped
    assert arrived == sum(paths[hop]["in"]["pkts"] for hop in HOPS)
    # Of the long flow, packets pass from hop to hop: these are counted twice, and three times.
    entered = sum(paths[hop]["in"]["pkts"] for hop in HOPS)
    passed = entered - ledger["hosts"]["sender_tx"]
    left = sum(paths[hop]["out"]["pkts"] for hop in HOPS)
    assert left - passed == ledger["hosts"]["receiver_rx"]
    long = sum(run.records("interval")["sent_segs"][run.records("interval")["group"] == 0])
    assert 1.9 * long < passed < 2.1 * long


def test_the_same_seed_gives_the_same_bytes(simulate: Simulate) -> None:
    """With random stages in hops, too; another seed gives others."""
    late = "paths.hop2.1={delay: {delay: 5ms, late: 1%, late_by: 1ms}}"
    short = ("duration=5s", "warmup=0s")
    runs = [simulate("parking-lot", late, *short, f"seed={seed}") for seed in (7, 7, 8)]

    assert runs[0].summary["digest"] == runs[1].summary["digest"] != runs[2].summary["digest"]
    assert runs[0].summary["links"] == runs[1].summary["links"]


TWO_WAYS = """
duration: 30s
warmup: 10s
paths:
  east: [{link: {rate: 20Mbit, queue: {fifo: {limit: 2BDP}}}}, {delay: {delay: 10ms}}]
  west: [{link: {rate: 20Mbit, queue: {fifo: {limit: 2BDP}}}}, {delay: {delay: 10ms}}]
flows:
  - {name: a, count: 2, cc: copa, path: {forward: east, reverse: west}}
  - {name: b, count: 2, cc: copa, path: {forward: west, reverse: east}}
telemetry: {level: 1, interval: 100ms}
"""


def test_data_and_acks_share_a_link_when_traffic_goes_both_ways(simulate: Simulate) -> None:
    """Each link carries half an ACK for each segment: 1448 of 1583 bytes are goodput.

    ACKs that waited behind data arrive in clumps, so that windows without a large queue do not
    fill the links (Zhang, Shenker and Clark, SIGCOMM 1991: utilisation falls).
    """
    run = simulate(TWO_WAYS)
    links = run.summary["links"]

    for name, group in zip(("east", "west"), run.groups, strict=True):
        share = group["goodput_bps"] / 20e6 / links[name]["utilisation"]
        assert share == pytest.approx(SEGMENT / (WIRE + ACK_WIRE / 2), rel=0.01)
        assert 0.7 < links[name]["utilisation"] < 0.95


def test_a_run_of_hops_is_replayed(simulate: Simulate, replay: Replay) -> None:
    """Each hop's arrivals, those from the hop before among them, meet the same decisions."""
    run = simulate(
        "parking-lot", "telemetry.level=3", "telemetry.arrivals=yes", "duration=3s", "warmup=0s"
    )
    done = replay(run.folder)

    assert done.status == 0, done.err
    assert "identical" in done.out


def blocks(file: Path) -> list[tuple[int, bytes]]:
    """Type and body of a pcapng file's blocks."""
    data, at, found = file.read_bytes(), 0, []
    while at < len(data):
        kind, length = struct.unpack_from("<II", data, at)
        found.append((kind, data[at + 8 : at + length - 4]))
        at += length
    return found


def test_a_capture_shows_the_senders_port_and_each_hop(weir_sim: Path, tmp_path: Path) -> None:
    """At the sender's port each packet is seen once, however many paths start or end there."""
    for points, names in (("port", ["sender"]), ("paths", None)):
        out, file = tmp_path / points, tmp_path / f"{points}.pcapng"
        config = Path(__file__).resolve().parents[2] / "configs/parking-lot.yaml"
        argv = [weir_sim, config, "--out", out, "--pcap", file]
        argv += ["-o", "duration=2s", "-o", "warmup=0s", "-o", f"telemetry.capture={points}"]
        subprocess.run(argv, check=True, timeout=60)
        interfaces = [body for kind, body in blocks(file) if kind == 1]
        packets = [struct.unpack_from("<I", body)[0] for kind, body in blocks(file) if kind == 6]
        hosts = summary(out)["ledger"]["hosts"]
        if names is not None:
            assert len(interfaces) == 1
            assert len(packets) == hosts["sender_tx"] + hosts["sender_rx"]
        else:
            paths = summary(out)["ledger"]["paths"]
            assert len(interfaces) == 3 * len(paths)
            for i, path in enumerate(paths.values()):
                assert packets.count(3 * i) == path["in"]["pkts"]
                assert packets.count(3 * i + 1) == path["out"]["pkts"]


def summary(folder: Path) -> dict[str, Any]:
    """A run's summary.json."""
    values: dict[str, Any] = json.loads((folder / "summary.json").read_text())
    return values


BAD = {
    "unknown hop": ("forward: hop1", "forward: hop9", "path: there is no path 'hop9'"),
    "nobody's hop": ("forward: hop3", "forward: hop2", "no group of flows passes 'hop3'"),
    "twice": ("[hop1, hop2, hop3]", "[hop3, hop1, hop3]", "'hop3' is there twice"),
    "no delay": ("delay: 5ms", "delay: 0ms", "a BDP needs a base RTT"),
    "taken away": (
        "flows:",
        "schedule: [{at: 1s, hop1.delay.delay: 0ms, hop2.delay.delay: 0ms, "
        "hop3.delay.delay: 0ms, back.delay.delay: 0ms}]\nflows:",
        "schedule: this leaves no delay",
    ),
}


@pytest.mark.parametrize("case", sorted(BAD))
def test_a_bad_topology_is_refused_with_its_place(sim: Program, case: str) -> None:
    old, new, says = BAD[case]
    root = Path(__file__).resolve().parents[2]
    text = (root / "configs/parking-lot.yaml").read_text()
    if case == "nobody's hop":
        text = text.replace("[hop1, hop2, hop3]", "[hop1, hop2]")
    assert old in text
    sim.refuse(text.replace(old, new), says)


def test_stages_are_in_order_across_hops(simulate: Simulate) -> None:
    """No packet of the long flow enters a hop before it left the one before and its delay."""
    run = simulate("parking-lot", "telemetry.level=3", "duration=2s", "warmup=0s")
    packets = open_ring(run.folder / "packets.ring").records
    long = packets[packets["flow_id"] == 0]
    left = [np.sort(long["ts_ns"][(long["path"] == i) & (long["event"] == 2)]) for i in range(3)]
    entered = [np.sort(long["ts_ns"][(long["path"] == i) & (long["event"] == 1)]) for i in range(3)]
    serial_ns = WIRE * 8e9 / 30e6

    for before, after in pairwise(range(3)):
        n = len(entered[after])
        waited = entered[after] - left[before][:n]
        assert n > 100
        assert waited.min() >= 5e6
        assert waited.max() <= 5e6 + serial_ns + 1


def test_what_tools_read_of_a_config_of_hops() -> None:
    """Flows by group, the path of their data, those of their ACKs, the delay of a round trip."""

    way = {"forward": ["b", "c"], "reverse": "a"}
    stages = [{"link": {"rate": "1Mbit"}}, {"delay": {"delay": "5ms"}}]
    config: dict[str, Any] = {
        "paths": {"a": stages, "b": stages, "c": stages},
        "flows": [{"count": 2, "path": way}, {"path": {"forward": "c", "reverse": ["a", "b"]}}],
    }

    assert routes.group_of(config, [0, 1, 2, 9]).tolist() == [0, 0, 1, 0]
    assert [routes.data_path(config, group) for group in (0, 1)] == [1, 2]
    assert routes.backward(config).tolist() == [[True, False, False], [True, True, False]]
    assert propagation_ns(config) == 15e6
    config["flows"][1]["path"] = {"forward": "c", "reverse": "a"}
    assert propagation_ns(config) is None
    plain = {"paths": {"forward": stages, "reverse": stages}}
    assert propagation_ns(plain) == 10e6
    assert routes.backward(plain).tolist() == [[False, True]]
