# SPDX-License-Identifier: BSD-3-Clause
"""Unresponsive UDP traffic beside TCP: offered rate, losses, what is left for others, records."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest

from .conftest import Program, Simulate

PAYLOAD, WIRE = 1200, 1200 + 8 + 20 + 14 + 4 + 20  # UDP, IPv4, Ethernet, FCS, preamble and gap
DATAGRAM_WIRE_BITS = 8 * WIRE
TCP_WIRE = 1448 / 1538
ENQUEUE = 1

ALONE = """
seed: 1
duration: 10s
paths:
  forward:
    - link: {rate: 10Mbit, queue: {fifo: {limit: 50pkt}}}
    - delay: {delay: 10ms}
  reverse: [{delay: {delay: 10ms}}]
flows:
  - {source: {udp: {rate: 20Mbit}}}
telemetry: {level: 1}
"""


def test_a_full_queue_loses_what_the_link_does_not_carry(simulate: Simulate) -> None:
    """20 Mbit/s into 10: the link is full, the rest is lost, and the ledger has all of it."""
    run = simulate(ALONE)
    group, forward = run.groups[0], run.summary["ledger"]["paths"]["forward"]
    sent = int(10 * 20e6 / (8 * PAYLOAD)) + 1

    assert (group["name"], group["cc"]) == ("udp", "udp")
    assert group["sent_segs"] == forward["in"]["pkts"] == sent
    carried = 10 * 10e6 / DATAGRAM_WIRE_BITS
    assert group["drops"] == run.link["drops"] == pytest.approx(sent - carried - 50, abs=2)
    # Reported with at most 10 ms and the path's 20 of delay, and the queue's 50 packets.
    assert group["acked_bytes"] / PAYLOAD == pytest.approx(carried, abs=30)
    assert group["lost_segs"] == pytest.approx(group["drops"], abs=2 * 30 + 50)
    assert group["retransmits"] == group["cwnd_reductions"] == 0


@pytest.mark.parametrize("cc", ["cubic", "copa", "bbr"])
def test_tcp_gets_the_rest(simulate: Simulate, cc: str) -> None:
    """30 Mbit/s of a link of 100 are taken: what TCP gets is the other 70, whatever it does."""
    run = simulate(
        "udp-cross", "flows.udp.source.udp.rate=30Mbit", f"flows.tcp.cc={cc}", "duration=30s"
    )
    udp, tcp = (next(g for g in run.groups if g["name"] == name) for name in ("udp", "tcp"))

    # TCP fills the queue, in which datagrams are lost now and then, most with BBR's probes.
    assert udp["goodput_bps"] == pytest.approx(30e6, rel=0.02)
    assert udp["sent_segs"] == pytest.approx(20 * 30e6 / (8 * PAYLOAD), abs=1)
    rest = (100e6 - 30e6 * WIRE / PAYLOAD) * TCP_WIRE
    assert 0.9 * rest < tcp["goodput_bps"] <= rest
    assert tcp["goodput_bps"] + udp["goodput_bps"] < 100e6


def test_arrivals_at_the_queue_are_a_poisson_process(simulate: Simulate) -> None:
    """Counts in windows of 10 ms: mean and variance are the same (index of dispersion 1)."""
    run = simulate(
        ALONE,
        "flows.0.source.udp={rate: 4Mbit, gaps: exponential}",
        "telemetry.level=3",
        "duration=60s",
    )
    packets = run.records("packets")
    times = packets["ts_ns"][packets["event"] == ENQUEUE]
    counts = np.bincount((times // 10_000_000).astype(int))[:-1]

    mean = 4e6 / (8 * PAYLOAD) / 100
    assert counts.mean() == pytest.approx(mean, rel=4 / np.sqrt(mean * len(counts)))
    assert counts.var() / counts.mean() == pytest.approx(1, abs=4 * np.sqrt(2 / len(counts)))


def test_records_name_its_flows_and_datagrams(simulate: Simulate) -> None:
    """A flow opens, and ends at its stop; its intervals add up."""
    run = simulate(ALONE, "flows.0.source.udp.rate=5Mbit", "flows.0.stop=8s")
    flows, intervals = run.records("flows"), run.records("interval")

    assert flows["event"].tolist() == [1, 2]
    assert flows["sent_segs"][-1] == int(np.ceil(8 * 5e6 / (8 * PAYLOAD)))
    assert intervals["sent_segs"].sum() == flows["sent_segs"][-1]
    assert intervals["delivered_bytes"].sum() == run.groups[0]["acked_bytes"]
    assert run.groups[0]["acked_bytes"] == flows["sent_segs"][-1] * PAYLOAD
    assert run.summary["flows"]["done"] == 1


def test_captured_as_udp(weir_sim: Path, tmp_path: Path) -> None:
    """Scapy reads numbered datagrams with good checksums, and reports on the way back."""
    from scapy.layers.inet import IP, UDP
    from scapy.utils import PcapNgReader

    config, pcap = tmp_path / "udp.yaml", tmp_path / "udp.pcapng"
    config.write_text(ALONE)
    subprocess.run(
        [weir_sim, config, "--duration", "200ms", "--out", tmp_path / "run", "--pcap", pcap],
        check=True,
        timeout=60,
    )
    with PcapNgReader(str(pcap)) as reader:
        frames = list(reader)
    data = [f for f in frames if f[UDP].dport == 5001]
    reports = [f for f in frames if f[UDP].sport == 5001]

    assert len(data) == int(0.2 * 20e6 / (8 * PAYLOAD)) + 1
    assert 0 < len(reports) <= 20
    for i, frame in enumerate(data):
        assert frame[IP].len == PAYLOAD + 28
        assert int.from_bytes(bytes(frame[UDP].payload)[:4], "big") == i
    for frame in (data[7], reports[-1]):
        said = frame[UDP].chksum
        rebuilt = frame[IP].copy()
        del rebuilt[UDP].chksum
        full = bytes(rebuilt[UDP].payload).ljust(rebuilt[UDP].len - 8, b"\0")
        rebuilt[UDP].remove_payload()
        assert IP(bytes(rebuilt / full))[UDP].chksum == said
    numbers = bytes(reports[-1][UDP].payload)[:8]
    behind, arrived = (int.from_bytes(numbers[k : k + 4], "big") for k in (0, 4))
    assert 100 < arrived < behind < len(data)


@pytest.mark.parametrize(
    ("group", "sentence"),
    [
        ("{cc: cubic, source: {udp: {rate: 1Mbit}}}", "cc: source udp has none; leave it out"),
        ("{source: {udp: {size: 7B, rate: 1Mbit}}}", "size"),
        ("{source: {udp: {}}}", "rate is required"),
        ("{source: {udp: {rate: 1Mbit, gaps: uniform}}}", "gaps"),
        ("{ecn: ect0, source: {udp: {rate: 1Mbit}}}", "does not answer ECN marks"),
        ("{source: {udp: {rate: 1Mbit}}, stack: {linux: {cc: cubic}}}", "Weir's own stack"),
    ],
)
def test_wrong_groups_are_refused(sim: Program, group: str, sentence: str) -> None:
    sim.refuse(ALONE.replace("{source: {udp: {rate: 20Mbit}}}", group), sentence)


def test_same_seed_same_bytes(simulate: Simulate) -> None:
    """Twice the same digest; another seed, other gaps."""
    gaps = "flows.0.source.udp={rate: 20Mbit, gaps: exponential}"
    first, second = simulate(ALONE, gaps), simulate(ALONE, gaps)
    other = simulate(ALONE, gaps, "seed=2")

    assert first.summary["digest"] == second.summary["digest"]
    assert first.summary["digest"] != other.summary["digest"]
