# SPDX-License-Identifier: BSD-3-Clause
"""IPv6 live: weir-sender and a real kernel's TCP in both directions, iperf3 through weir-switch."""

import json
import sys

from lab import PEER, QUIET, SIX, iperf_result, quiet, wait_for
from tcpdump import Capture
from weir.analysis.ring import open_ring

FLOWS, BYTES = 20, 200_000
PATHS = """
  forward: [{link: {rate: 50Mbit, queue: {fq_codel: {ecn: yes}}}}, {delay: {delay: 10ms}}]
  reverse: [{delay: {delay: 10ms}}]"""
SENDER = f"""
seed: 1
flows:
  - {{count: {FLOWS}, cc: copa, source: {{size: {{bytes: {BYTES}}}}}, jitter: 300ms, ip: ipv6}}
  - {{count: {FLOWS}, cc: copa, source: {{size: {{bytes: {BYTES}}}}}, jitter: 300ms}}
live:
  sender:
    lcores: [0]
    prefix: %s
    answer: 60s # a busy machine may keep the switch from its CPU
    ports: [{{name: a, role: %s, dev: "net_af_packet0,iface=eth0,framecnt=4096"}}]
"""


def sender(lab, role, space, *options):
    lab.sh(space, "ip", "addr", "flush", "dev", "eth0")
    config = SENDER % (lab.prefix + "s", role)
    return lab.start("sender/weir-sender", config, *options, space=space, duration="60s")


def test_flows_of_both_into_a_kernel(lab):
    lab.enable_ipv6("b")
    switch = lab.switch(PATHS, "-o", "telemetry.level=3", top=f"flows: [{{count: {2 * FLOWS}}}]")
    sink = lab.sink(2 * FLOWS, kind="sink6")
    capture = Capture(lab, "b", "eth0")
    child = sender(lab, "sender", "a")
    assert sink.wait(120) == 0
    assert child.stop() == 0
    assert switch.stop() == 0
    capture.close()

    assert json.loads(sink.out[-1]) == {"bytes": [BYTES] * 2 * FLOWS, "zeros": True}
    summary, ledger = child.summary(), switch.summary()["ledger"]
    assert summary["ledger"]["balanced"]
    assert ledger["balanced"]
    assert [group["acked_bytes"] for group in summary["groups"]] == [FLOWS * BYTES] * 2
    assert summary["sender_ports"][0]["rx_malformed"] == 0
    assert capture.malformed() == []
    # The switch knows the flows of both.
    flows = open_ring(switch.folder / "packets.ring").records["flow_id"]
    assert set(range(2 * FLOWS)) <= set(flows.tolist())


def test_a_kernel_into_our_receiver(lab):
    lab.enable_ipv6("a")
    switch = lab.switch(PATHS)
    child = sender(lab, "receiver", "b")
    assert child.ready()
    answers = lab.sh("a", "ping", "-n", "-c", "3", "-w", "60", SIX["b"], timeout=100)
    assert answers.count("time=") == 3  # solicitations and echo are answered
    source = lab.host("a", sys.executable, PEER, "source", SIX["b"], 5001, FLOWS, BYTES)
    assert source.wait(120) == 0
    assert child.stop() == 0
    assert switch.stop() == 0

    summary = child.summary()
    assert summary["ledger"]["balanced"]
    assert switch.summary()["ledger"]["balanced"]
    assert summary["receivers"]["bytes"] == FLOWS * BYTES
    assert summary["sender_ports"][0]["rx_malformed"] == 0


def test_iperf3_through_the_switch(lab):
    """ECN: the queue marks what would be dropped, in the traffic class."""
    for host in "ab":
        lab.enable_ipv6(host)
    lab.enable_ecn()
    switch = lab.switch(PATHS)
    lab.iperf_server("b")
    argv = ["iperf3", "-c", SIX["b"], "-t", quiet(4, 2), "-O", 1, "-J"]
    lab.client = lab.host("a", *argv)
    bps = iperf_result(lab.client)["end"]["sum_received"]["bits_per_second"]
    assert bps > 0
    if QUIET:  # iperf3 has its time from a process that may have had no CPU
        assert 0.95 <= bps / (50e6 * 1428 / 1538) <= 1.02
    lab.iperf_server("b")
    lab.client = lab.host("a", "iperf3", "-c", SIX["b"], "-t", 100)
    wait_for(lambda: lab.telemetry("/weir/links")["forward/link"]["marks"] > 0, "a mark")
    lab.end_traffic()
    assert switch.stop() == 0
    summary = switch.summary()
    assert summary["ledger"]["balanced"]
    assert 0 < summary["links"]["forward"]["utilisation"] <= 1


def test_a_peer_that_does_not_answer_solicitations(lab):
    child = sender(lab, "sender", "a", "-o", "live.sender.answer=2s")
    assert child.wait() == 1
    (said,) = child.sentences()
    assert "2001:2::c613:1 does not answer neighbour solicitations" in said
