# SPDX-License-Identifier: BSD-3-Clause
"""Flows of IPv6: what they get, how long their frames are, and what others read in a capture."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import weir
import weir.export
from weir.export.qlog import payloads

from .conftest import Program, Simulate, tshark

ALIKE = """
seed: 1
duration: 20s
warmup: 5s
paths:
  forward:
    - link: {rate: 20Mbit, queue: {fifo: {limit: 1BDP}}}
    - delay: {delay: 10ms}
  reverse: [{delay: {delay: 10ms}}]
flows:
  - {count: 4, cc: cubic}
"""
MIXED = """
seed: 4
duration: 3s
paths:
  forward:
    - loss: {rate: 1%}
    - link: {rate: 20Mbit, queue: {fq_codel: {ecn: yes}}}
    - delay: {delay: 10ms}
  reverse: [{delay: {delay: 10ms}}]
flows:
  - {count: 3, cc: newreno, ecn: ect0, dscp: 10}
  - {count: 3, cc: newreno, ecn: ect0, dscp: 10, ip: ipv6}
  - {name: datagrams, source: {udp: {rate: 1Mbit}}, ip: ipv6}
telemetry: {level: 3, capture: paths}
"""
OFFLINE = """
duration: 4s
paths:
  forward:
    - source: {pcap: %s, filter: "dst port 5001"}
    - link: {rate: 20Mbit, queue: {fq_codel: {ecn: yes}}}
telemetry: {level: 3}
"""
FULL = 1514  # without FCS: an MSS of 1460 in IPv4, of 1440 in IPv6
ENQUEUE = 1


@pytest.mark.parametrize("cc", ["cubic", "copa"])
def test_goodput_is_the_payloads_part_and_the_queue_the_same(simulate: Simulate, cc: str) -> None:
    """The frames are as long; 1428 bytes of each are payload instead of 1448."""
    four, six = (simulate(ALIKE, f"flows.0.cc={cc}", f"flows.0.ip={ip}") for ip in ("ipv4", "ipv6"))

    payloads = 1428 / 1448
    assert six.groups[0]["goodput_bps"] == pytest.approx(
        four.groups[0]["goodput_bps"] * payloads, rel=0.01
    )
    assert six.link["queue_mean_ns"] == pytest.approx(four.link["queue_mean_ns"], rel=0.01)
    assert six.link["utilisation"] == pytest.approx(four.link["utilisation"], rel=0.001)


def test_a_written_mss_makes_frames_longer(simulate: Simulate) -> None:
    sizes = []
    for ip in ("ipv4", "ipv6"):
        run = simulate(ALIKE, f"flows.0.ip={ip}", "flows.0.mss=1400B", "telemetry.level=3")
        sizes.append(run.records("packets")["size_bytes"])
    assert (sizes[0].max(), sizes[1].max()) == (14 + 20 + 20 + 1400 + 4, 14 + 40 + 20 + 1400 + 4)


def test_an_export_has_its_addresses(simulate: Simulate) -> None:
    run = weir.open(simulate(ALIKE, "flows.0.ip=ipv6", "telemetry.level=1").folder)
    (file, *_) = weir.export.write(run, "qlog", run.path)
    events = [json.loads(line[1:]) for line in file.read_text().split("\n") if line]
    started = next(
        event["data"] for event in events if "connection_started" in event.get("name", "")
    )
    assert started["local"]["ip_v6"] == "2001:2::c612:1"
    assert started["remote"]["ip_v6"] == "2001:2::c613:1"
    assert payloads(run.config) == [1428]


def captured(sim: Program) -> Path:
    """A run of MIXED with a capture."""
    sim.summary(MIXED, "--pcap", "mixed.pcapng")
    return sim.folder / "mixed.pcapng"


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")
def test_tshark_reads_both_beside_each_other(sim: Program) -> None:
    pcap = captured(sim)

    assert (
        tshark(pcap, "tcp.checksum.status == 0 || udp.checksum.status == 0", "frame.number") == []
    )
    for version, source in (("ip", "198.18.0.1"), ("ipv6", "2001:2::c612:1")):
        data = tshark(pcap, f"{version}.src == {source} && tcp", "frame.len", "tcp.len")
        assert {int(length) for length, payload in data if int(payload) > 0} == {FULL}
    to = tshark(pcap, "ipv6", "ipv6.src", "ipv6.dst", "ipv6.hlim")
    ends = {"2001:2::c612:1", "2001:2::c613:1"}
    assert {frozenset(line[:2]) for line in to} == {frozenset(ends)}
    assert {line[2] for line in to} == {"64"}
    # Each connection has one flow label (RFC 6437), and those of all seven flows differ.
    labels = tshark(pcap, "ipv6.src == 2001:2::c612:1", "_ws.col.Protocol", "ipv6.flow",
                   "tcp.srcport", "udp.srcport")  # fmt: skip
    assert len({tuple(line[1:]) for line in labels}) == len({line[1] for line in labels}) == 4
    # DSCP and CE are in the traffic class.
    marked = tshark(
        pcap, "ipv6.src == 2001:2::c612:1 && tcp && ipv6.tclass.ecn == 3", "ipv6.tclass.dscp"
    )
    assert len(marked) > 0
    assert {line[0] for line in marked} == {"10"}


@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")
def test_an_exported_capture_has_both(simulate: Simulate) -> None:
    run = weir.open(simulate(MIXED, "duration=1s").folder)
    (file,) = weir.export.write(run, "pcapng", run.path)

    fields = ("ip.src", "ipv6.src", "frame.len", "ip.dsfield.ecn", "ipv6.tclass.ecn")
    rows = tshark(file, "tcp", *fields, "frame.comment", "_ws.malformed")
    assert len(rows) == len(run.packets)
    packets = run.packets.records
    for row, packet in zip(rows, packets, strict=True):
        six = int(packet["flow_id"] >= 3)
        ends = ("2001:2::c612:1", "2001:2::c613:1") if six else ("198.18.0.1", "198.19.0.1")
        assert row[six] in ends
        assert int(row[2]) == packet["size_bytes"] - 18
        assert int(row[3 + six]) == packet["ecn"]
        assert row[5].endswith(", CE") == (packet["ecn"] == 3)
        assert row[6] == ""
    assert any(row[5].startswith("drop loss") for row in rows)
    flows = run.flows.records
    assert {int(flow["flow_id"]) for flow in flows if flow["group"] == 1} == {3, 4, 5}
    dscp = tshark(file, 'ipv6 && frame.comment contains "CE"', "ipv6.tclass.dscp")
    assert {line[0] for line in dscp} == {"10"}


def test_the_offline_switch_knows_its_flows(sim: Program, simulate: Simulate) -> None:
    """A capture of the queue's arrivals into the same queue: the flows have their numbers."""
    pcap = captured(sim)
    run = simulate(OFFLINE % pcap)

    packets = run.records("packets")
    flows = np.unique(packets["flow_id"][packets["event"] == ENQUEUE])
    tcp = flows[flows < 7]
    assert tcp.tolist() == [0, 1, 2, 3, 4, 5]


def test_a_word_that_is_no_version_is_refused(sim: Program) -> None:
    config = ALIKE.replace("cc: cubic", "cc: cubic, ip: 6")
    sim.refuse(config, "ip: '6' is not one of ipv4, ipv6")
