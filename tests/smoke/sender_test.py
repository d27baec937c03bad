# SPDX-License-Identifier: BSD-3-Clause
"""weir-sender against a real kernel's TCP, with weir-switch between them."""

import json
import re
import signal
import subprocess
import sys

import polars as pl
import pytest
from lab import ADDRESS, PEER, RUNTIME, wait_for
from pcapng import is_transport, packets
from tcpdump import Capture, retransmissions
from weir.analysis import folder

FLOWS, BYTES = 100, 100_000  # less than the queue in PATHS
PATHS = """
  forward:
    - loss: {rate: %s}
    - link: {rate: 50Mbit, queue: {fifo: {limit: 25MB}}}
    - delay: {delay: 10ms, late: %s, late_by: 5ms}
  reverse:
    - delay: {delay: 10ms}"""
IMPAIRMENTS = {"loss": ("1%", "0%"), "reordering": ("0%", "2%")}
SENDER = f"""
seed: 1
telemetry: {{level: 1, interval: 100ms}}
flows:
  - {{count: {FLOWS}, cc: copa, source: {{size: {{bytes: {BYTES}}}}}, jitter: 500ms}}
live:
  sender:
    lcores: [0]
    prefix: %s
    answer: 60s # a busy machine may keep the switch from its CPU
    ports: [{{name: a, role: %s, dev: "net_af_packet0,iface=eth0,framecnt=4096"}}]
"""
ANSWER = ("-o", "live.sender.answer=2s")


def sender(lab, role="sender", space="a", *options, duration="60s"):
    """weir-sender in a host's place: the kernel there has no address any more."""
    lab.sh(space, "ip", "addr", "flush", "dev", "eth0")
    config = SENDER % (lab.prefix + "s", role)
    return lab.start("sender/weir-sender", config, *options, space=space, duration=duration)


def peer(lab, space, *argv):
    return lab.host(space, sys.executable, PEER, *argv)


def check_own_capture(weir_pcap, pcap, child, out):
    """--pcap: every frame of the port; what the packets tell is what the sender counted."""
    summary = child.summary()
    port, group = summary["sender_ports"][0], summary["groups"][0]
    frames = [(packet, text) for _, packet, text, _ in packets(pcap.read_bytes(), 0)]
    assert summary["capture"]["lost"] == 0
    assert len(frames) == summary["capture"]["packets"]
    assert len(frames) <= port["rx_frames"] + port["tx_wanted"]  # without ARP before the start
    received = [packet for packet, _ in frames if packet[34:36] == (5001).to_bytes(2)]
    assert len(received) == port["rx_tcp"] + port["rx_reset"]
    flows = {text for packet, text in frames if is_transport(packet)}
    assert flows == {f"flow {number}" for number in range(FLOWS)}
    subprocess.run([weir_pcap, "analyze", pcap, "--out", out], check=True, capture_output=True)
    seen = folder.load(out).frame("flows").filter(pl.col("acked_bytes") > 0)
    own = folder.load(child.folder).frame("flows").filter(pl.col("acked_bytes") > 0)
    both = own.join(seen, on="src_port", suffix="_seen")
    assert both.height == FLOWS
    assert (both["acked_bytes"] == both["acked_bytes_seen"]).all()
    # Of a FIN too, which weir-pcap does not count: it has no payload.
    assert retransmissions(pcap, 5001) == group["retransmits"] >= seen["retransmits"].sum()


@pytest.mark.parametrize("impairment", IMPAIRMENTS)
def test_copa_flows_into_a_kernel(lab, weir_pcap, impairment):
    lab.tap("left")
    switch = lab.switch(PATHS % IMPAIRMENTS[impairment])
    sink = peer(lab, "b", "sink", 5001, FLOWS)
    wait_for(lambda: sink.out, "the sink")
    capture = Capture(lab, "sw", "tap")
    pcap = lab.tmp / "sender.pcapng"
    child = sender(lab, "sender", "a", "--pcap", pcap)
    assert sink.wait(120) == 0
    # The FINs' ACKs are on their way.
    wait_for(lambda: progress(child).get("flows_open") == 0, "all flows closed")
    assert child.stop() == 0
    assert switch.stop() == 0
    capture.close()

    seen = json.loads(sink.out[-1])
    assert seen == {"bytes": [BYTES] * FLOWS, "zeros": True}
    summary, ledger = child.summary(), switch.summary()["ledger"]
    group = summary["groups"][0]
    assert summary["ledger"]["balanced"]
    assert ledger["balanced"]
    assert summary["flows"] == {"waiting": 0, "open": 0, "done": FLOWS, "failed": 0}
    assert group["acked_bytes"] == FLOWS * BYTES
    assert capture.malformed() == []
    # The first transmission of what the kernel dropped before the tap is not in the capture.
    second = retransmissions(capture.path, 5001)
    assert second <= group["retransmits"] <= second + lab.lost("a", "eth0")
    if impairment == "loss":
        assert ledger["drops"]["loss"] > 0
        assert group["retransmits"] > 0
    else:
        assert ledger["drops"] == {}
    check_own_capture(weir_pcap, pcap, child, lab.tmp / "seen")


def progress(child):
    lines = [line for line in child.err if "virtual_s" in line]
    return json.loads(lines[-1]) if lines else {}


@pytest.mark.parametrize("impairment", IMPAIRMENTS)
def test_kernel_into_our_receiver(lab, impairment):
    switch = lab.switch(PATHS % IMPAIRMENTS[impairment])
    child = sender(lab, "receiver", "b")
    assert child.ready()
    assert len(lab.ping(count=5)) >= 3  # ARP and echo are answered
    capture = Capture(lab, "a", "eth0")
    connections, size = 20, 500_000
    source = peer(lab, "a", "source", ADDRESS["b"], 5001, connections, size)
    assert source.wait(120) == 0
    # Its last ACKs are on their way.
    wait_for(
        lambda: (
            lab.telemetry("/weir/paths")["forward"]["inside_pkts"] == 0
            and lab.telemetry("/weir/ports", f"{lab.prefix}s")["a"]["rx_pkts"]
            >= lab.telemetry("/weir/ports")["right"]["tx_pkts"] - lab.lost("sw", "right")
        ),
        "all frames",
    )
    assert child.stop() == 0
    assert switch.stop() == 0
    capture.close()

    summary, ledger = child.summary(), switch.summary()["ledger"]
    receivers = summary["receivers"]
    assert summary["ledger"]["balanced"]
    assert ledger["balanced"]
    assert receivers["bytes"] == connections * size
    assert receivers["done"] == connections
    assert receivers["out_of_order_segs"] > 0
    assert summary["sender_ports"][0]["rx_malformed"] == 0
    assert capture.malformed() == []


def test_a_kernel_keeps_nothing_of_a_sender_that_ended(lab):
    switch = lab.switch(PATHS % ("0%", "0%"))
    sink = peer(lab, "b", "sink", 5001, 20)
    wait_for(lambda: sink.out, "the sink")
    child = sender(
        lab, "sender", "a", "-o", "flows.0.source.size.bytes=100GB", "-o", "flows.0.count=20"
    )

    def established():
        return lab.sh("b", "ss", "-Htn", "state", "established").count(":5001")

    wait_for(lambda: established() == 20, "connections")
    sink.send(signal.SIGSTOP)  # it would end with the first reset
    assert child.stop() == 0
    wait_for(lambda: established() == 0, "resets")
    assert switch.stop() == 0
    assert child.summary()["ledger"]["balanced"]
    assert child.summary()["flows"]["open"] == 20


def fails(lab, child):
    """Its exit status and the one sentence it said."""
    status = child.wait()
    assert len(child.sentences()) == 1, child.err
    return status, child.sentences()[0]


def test_peer_that_does_not_answer_arp(lab):
    change = ("-o", "live.sender.ports.0.peer=198.19.0.99")
    child = sender(lab, "sender", "a", *ANSWER, *change)
    status, said = fails(lab, child)
    assert status == 1
    assert "198.19.0.99 does not answer ARP" in said
    assert not child.folder.exists()


def test_peer_that_does_not_answer_syn(lab):
    # ARP passes before the first SYN starts the run; that waits in the delay until all is lost.
    switch = lab.switch(
        "{forward: [{delay: {delay: 2ms}}, {loss: {rate: 0%}}], reverse: [{delay: {delay: 1ms}}]}",
        top="schedule: [{at: 1ms, forward.loss.rate: 100%}]",
        live="    start: traffic",
    )
    status, said = fails(lab, sender(lab, "sender", "a", "-o", "live.sender.answer=10s"))
    assert switch.stop() == 0
    assert status == 1
    assert "198.19.0.1:5001 answers ARP but no SYN" in said


def test_peer_that_refuses(lab):
    switch = lab.switch(PATHS % ("0%", "0%"))
    status, said = fails(lab, sender(lab, "sender", "a"))
    assert switch.stop() == 0
    assert status == 1
    assert "refused" in said


@pytest.mark.parametrize(
    ("change", "status", "sentence"),
    [
        ("live.sender.ports.0.role=spectator", 2, r"role: .*sender, receiver"),
        ("live.sender.ports.0.ip=198.18.0", 2, r"'198.18.0' is not an IPv4 address"),
        ("live.sender.ports.0.peer=10.0.0.1", 2, r"outside 198.18.0.0/15"),
        ("live.sender.ports.0.mac=zz", 2, r"'zz' is not a MAC address"),
        ("live.sender.ports=[]", 2, r"a list of 1 to 2 ports is required"),
        ("flows.0.mss=8000", 2, r"mss"),
        ("live.epoch=1", 2, r"live.epoch: 1 is not of the last two days"),
        ("flows.0.count=1000000", 2, r"flows need .* MB"),
        ('live.sender.ports.0.dev="net_af_packet0,iface=nope0"', 1, r"no interface 'nope0'"),
    ],
)
def test_bad_config_is_one_sentence(lab, change, status, sentence):
    options = ["-o", change]
    if "1000000" in change:
        options += ["-o", "live.sender.rate=1Tbit", "-o", "live.sender.pipe=10s"]
    got, said = fails(lab, sender(lab, "sender", "a", *options))
    assert (got, bool(re.search(sentence, said))) == (status, True), said


def test_a_folder_that_cannot_be_is_told_before_anybody_is_asked(lab):
    config = SENDER % (f"{lab.prefix}s", "sender")
    child = lab.start("sender/weir-sender", config, space="a", out="/proc/weir/run")
    status, said = fails(lab, child)
    assert status == 1
    assert "/proc/weir/run: cannot be created" in said


def test_memif_server_that_never_comes_can_be_interrupted(lab):
    dev = f'live.sender.ports.0.dev="net_memif0,role=client,socket={lab.prefix}"'
    child = sender(lab, "sender", "a", "-o", dev)
    socket = RUNTIME / f"{lab.prefix}s" / "dpdk_telemetry.v2"
    wait_for(socket.exists, "DPDK")  # what it does next is to wait
    child.send(signal.SIGINT)
    status, said = fails(lab, child)
    assert status == 128 + signal.SIGINT
    assert "port a: interrupted before its peer came" in said
    assert not child.folder.exists()
