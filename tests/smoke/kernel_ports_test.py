# SPDX-License-Identifier: BSD-3-Clause
"""Ports that carry kernels' super-frames: what hosts with offloads count is what the switch did.

Data is drawn, not zeros: a packet that is cut or joined at the wrong place would be seen.
"""

import json
import struct
import sys

import pytest
from lab import ADDRESS, CPUS, SIX, Lab, replay, wait_for
from tcpdump import Capture, rows
from weir.analysis.ring import open_ring

CORRUPT_EVENT, DROP_EVENT = 6, 3
PATHS = """
  forward:
    - loss: {rate: 0.5%%}
    - link: {rate: 100Mbit, queue: {codel: {limit: 400pkt, ecn: yes, target: 200us, interval: 5ms}}}
    - corrupt: {rate: %s}
    - delay: {delay: 500us}
  reverse: [{delay: {delay: 500us}}]"""
PLAIN = "{forward: [{delay: {delay: 1ms}}], reverse: [{delay: {delay: 1ms}}]}"
RECORD = ("-o", "telemetry.level=3", "-o", "telemetry.arrivals=yes")
BYTES = 20_000_000
ECN = ("NoECTPkts", "ECT0Pkts", "ECT1Pkts", "CEPkts")
COMMON = """
import hashlib, random, socket, sys
family = socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET
data = random.Random(1).randbytes(1 << 20)
"""
SINK = (
    COMMON
    + """
listener = socket.create_server(("::", 5001), family=socket.AF_INET6, dualstack_ipv6=True)
print("bound", flush=True)
client, _ = listener.accept()
digest = hashlib.sha256()
while got := client.recv(1 << 18):
    digest.update(got)
print(digest.hexdigest(), flush=True)
"""
)
SOURCE = (
    COMMON
    + """
client = socket.create_connection((sys.argv[1], 5001), timeout=60)
digest, left = hashlib.sha256(), int(sys.argv[2])
while left:
    part = data[:left]
    client.sendall(part)
    digest.update(part)
    left -= len(part)
client.shutdown(socket.SHUT_WR)
client.recv(1)
print(digest.hexdigest(), flush=True)
"""
)
UDP_SINK = (
    COMMON
    + """
port = socket.socket(family, socket.SOCK_DGRAM)
port.bind(("::" if ":" in sys.argv[1] else "", 5001))
port.setsockopt(socket.SOL_SOCKET, 33, 1 << 25) # SO_RCVBUFFORCE
print("bound", flush=True)
good, sizes = 0, []
while got := port.recv(1 << 16):
    sizes.append(len(got))
    good += got == data[:len(got)]
print(len(sizes), good, min(sizes), max(sizes), flush=True)
"""
)
UDP_SOURCE = (
    COMMON
    + """
import time
port = socket.socket(family, socket.SOCK_DGRAM)
port.setsockopt(socket.IPPROTO_UDP, 103, 1200) # UDP_SEGMENT
for _ in range(500):
    port.sendto(data[:1200] * 30 + data[:100], (sys.argv[1], 5001))
    time.sleep(1e-3)
time.sleep(0.2)
port.sendto(b"", (sys.argv[1], 5001))
"""
)


class KernelLab(Lab):
    """Hosts keep their offloads; who has which address is known, so that no ARP is needed."""

    offloads = True

    def make(self):
        super().make()
        self.know(ADDRESS)

    def enable_ipv6(self, hosts="ab"):
        for host in hosts:
            super().enable_ipv6(host)
        self.know(SIX)

    def counts(self, host="b"):
        """What a host's kernel has counted."""
        rows = self.sh(host, "cat", "/proc/net/snmp", "/proc/net/netstat").splitlines()
        found = {}
        for names, values in zip(rows[::2], rows[1::2], strict=True):
            kind = names.split()[0].rstrip(":")
            pairs = zip(names.split()[1:], values.split()[1:], strict=True)
            found |= {kind + name: int(value) for name, value in pairs}
        six = (line.split() for line in self.sh(host, "cat", "/proc/net/snmp6").splitlines())
        return found | {name: int(value) for name, value in six}

    def sends(self, address, sink=SINK, source=SOURCE, size=BYTES):
        """Runs a program at b and one at a that sends to it; what each said last."""
        receiver = self.host("b", sys.executable, "-c", sink, address)
        wait_for(lambda: "bound" in receiver.out, lambda: f"the sink: {receiver.err}")
        sender = self.host("a", sys.executable, "-c", source, address, size)
        assert sender.wait(60) == 0, sender.err
        assert receiver.wait(60) == 0, receiver.err
        return receiver.out[-1], sender.out[-1] if sender.out else ""


@pytest.fixture
def lab(tmp_path, build, weir_switch, weir_sender):
    with KernelLab(tmp_path, build) as lab:
        lab.enable_ecn()
        yield lab


def joining(on):
    return [f"live.switch.ports.{port}.offloads={on}" for port in (0, 1)]


def start(lab, paths, *settings, dev="kernel", offloads="on"):
    chosen = [*joining(offloads), *settings] if dev == "kernel" else settings
    return lab.switch(paths, *(arg for text in chosen for arg in ("-o", text)), *RECORD, dev=dev)


def finish(lab, switch):
    """The summary of a switch that has lost nothing that it does not say."""
    assert switch.stop() == 0
    summary = switch.summary()
    assert summary["ledger"]["balanced"]
    assert lab.lost("sw", "right") == 0
    assert all(port["driver_tx_errors"] == port["driver_no_mbuf"] == 0 for port in summary["ports"])
    return summary


def received(before, after, ipv6):
    """Packets that a host's IP has received, by their ECN bits."""
    prefix = "Ip6In" if ipv6 else "IpExtIn"
    return {name: after[prefix + name] - before[prefix + name] for name in ECN}


def replayed(switch, build):
    done = replay(switch.folder, build)
    assert done.stdout.startswith("identical: "), done.stdout + done.stderr


@pytest.mark.parametrize("ipv6", [False, True])
@pytest.mark.parametrize("offloads", ["on", "off"])
def test_a_receiver_counts_each_packet_mark_and_flipped_bit(lab, build, offloads, ipv6):
    """Lost, marked and corrupted packets are parted from those around them; the data is whole."""
    if ipv6:
        lab.enable_ipv6()
    before = lab.counts()
    switch = start(lab, PATHS % "0.5%", offloads=offloads)
    sums = lab.sends(SIX["b"] if ipv6 else ADDRESS["b"])
    summary = finish(lab, switch)
    after = lab.counts()
    assert sums[0] == sums[1]
    records = open_ring(switch.folder / "packets.ring").records
    corrupted = int((records["event"] == CORRUPT_EVENT).sum())
    right, left = summary["ports"][1], summary["ports"][0]
    found = received(before, after, ipv6)
    assert found["CEPkts"] == summary["links"]["forward"]["marks"] > 0
    assert sum(found.values()) == right["tx_pkts"]
    # Of a header whose length is no TCP header's the kernel adds up no sum.
    assert after["TcpInErrs"] - before["TcpInErrs"] == corrupted > 20
    assert left["kernel"]["packets_per_frame_in"] > 1
    assert right["kernel"]["offloads"] == (offloads == "on")
    if offloads == "off":
        assert right["kernel"]["packets_per_frame_out"] == 1
    else:
        assert right["kernel"]["packets_per_frame_out"] > 1
    replayed(switch, build)


def test_sums_are_filled_before_a_port_of_another_kind(lab):
    """The host left them to a card, and there is none."""
    lab.sh("sw", "ethtool", "-K", "right", "tso", "off", "gso", "off", "tx", "off")
    lab.sh("b", "ethtool", "-K", "eth0", "tso", "off", "gso", "off", "tx", "off")
    right = 'live.switch.ports.1.dev="net_af_packet1,iface=right,framecnt=4096"'
    switch = start(lab, PATHS % "0%", right, "live.switch.ports.1.offloads=off")
    before = lab.counts()
    sums = lab.sends(ADDRESS["b"])
    summary = finish(lab, switch)
    assert sums[0] == sums[1]
    assert lab.counts()["TcpInCsumErrors"] == before["TcpInCsumErrors"]
    assert summary["ports"][0]["kernel"]["packets_per_frame_in"] > 1
    assert not [fact for fact in summary["faults"] if fact["cause"] == "checksums_offloaded"]


@pytest.mark.parametrize("ipv6", [False, True])
@pytest.mark.parametrize("offloads", ["on", "off"])
def test_datagrams_that_a_host_sends_as_one(lab, offloads, ipv6):
    """UDP_SEGMENT: 31 datagrams to a frame, the last one shorter."""
    if ipv6:
        lab.enable_ipv6()
    switch = start(lab, PLAIN, offloads=offloads)
    before = lab.counts()
    address = SIX["b"] if ipv6 else ADDRESS["b"]
    said, _ = lab.sends(address, UDP_SINK, UDP_SOURCE)
    finish(lab, switch)
    after = lab.counts()
    kind = "Udp6" if ipv6 else "Udp"
    assert said.split() == ["15500", "15500", "100", "1200"]
    assert after[kind + "InDatagrams"] - before[kind + "InDatagrams"] == 15501
    assert after[kind + "InCsumErrors"] == before[kind + "InCsumErrors"]
    assert after[kind + "InErrors"] == before[kind + "InErrors"]


def test_jumbo_packets(lab):
    for where, link in ("sw", "left"), ("sw", "right"), ("a", "eth0"), ("b", "eth0"):
        lab.sh(where, "ip", "link", "set", link, "mtu", "9000")
    switch = start(lab, PLAIN, "live.mtu=9000B")
    sums = lab.sends(ADDRESS["b"])
    summary = finish(lab, switch)
    assert sums[0] == sums[1]
    records = open_ring(switch.folder / "packets.ring").records
    assert records["size_bytes"].max() == 9000 + 18
    assert summary["ports"][1]["kernel"]["packets_per_frame_out"] > 1


def test_big_tcp(lab):
    """Super-frames of up to 180 kB, whose length IPv6 cannot say."""
    lab.enable_ipv6()
    for host in "ab":
        lab.sh(host, "ip", "link", "set", "eth0", "gso_max_size", 180000)
    switch = start(lab, PLAIN)
    larger = Capture(lab, "a", "eth0", what="ip6 and greater 66000", snap=128)
    sums = lab.sends(SIX["b"])
    summary = finish(lab, switch)
    larger.close()
    assert sums[0] == sums[1]
    assert rows(larger.path, "frame", "frame.number")
    assert summary["ports"][0]["kernel"]["packets_per_frame_in"] > 2


TAGGED = (
    COMMON
    + """
port = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
port.bind(("eth0", 0))
"""
)
TAG_SINK = (
    TAGGED
    + """
port.setsockopt(263, 8, 1) # SOL_PACKET, PACKET_AUXDATA
print("bound", flush=True)
frame, [(_, _, aux)], _, _ = port.recvmsg(4096, 256)
print(len(frame), int.from_bytes(aux[16:18], "little"), flush=True)
"""
)
TAG_SOURCE = (
    TAGGED
    + """
port.send(bytes.fromhex(sys.argv[2]))
"""
)


def test_the_tag_of_a_vlan(lab):
    """Kernels hand it over beside the frame: here it is in the frame, as on the wire."""
    switch = start(lab, PLAIN)
    macs = bytes.fromhex((lab.mac("b") + lab.mac("a")).replace(":", ""))
    frame = macs + struct.pack("!HHH", 0x8100, 7, 0x88B5) + bytes(100)
    said, _ = lab.sends(ADDRESS["b"], TAG_SINK, TAG_SOURCE, frame.hex())
    summary = finish(lab, switch)
    assert said == f"{len(frame) - 4} 7"
    assert summary["ports"][0]["rx_bytes"] == len(frame) + 4  # and its FCS


SENDER = """
seed: 1
duration: 60s
flows: [{count: 2, cc: cubic, source: {size: {bytes: 4000000}}}]
live:
  sender:
    lcores: [%d]
    prefix: %s
    answer: 60s
    ports: [{name: a, role: sender, dev: "kernel0,iface=eth0", offloads: on}]
"""


def test_a_sender_joins_its_segments(lab):
    switch = start(lab, PLAIN)
    lab.sh("b", "ip", "neigh", "del", ADDRESS["a"], "dev", "eth0")
    lab.sh("a", "ip", "addr", "flush", "dev", "eth0")
    before = lab.counts()
    child = lab.sink(2)
    sender = lab.start("sender/weir-sender", SENDER % (CPUS[0], lab.prefix + "s"), space="a")
    assert child.wait(60) == 0
    assert sender.stop() == 0
    finish(lab, switch)
    assert json.loads(child.out[-1]) == {"bytes": [4_000_000] * 2, "zeros": True}
    assert lab.counts()["TcpInCsumErrors"] == before["TcpInCsumErrors"]
    summary = sender.summary()
    assert summary["ledger"]["balanced"]
    assert summary["sender_ports"][0]["kernel"]["packets_per_frame_out"] > 1


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (["live.switch.ports.0.dev=kernel0"], "dev: 'kernel0' needs an interface: kernel0,iface"),
        (['live.switch.ports.0.dev="kernel0,iface=nope"'], "there is no interface"),
        (['live.switch.ports.0.dev="net_af_packet0,iface=left"'], "offloads: only ports at a"),
    ],
)
def test_what_a_port_cannot_be(lab, settings, sentence):
    with pytest.raises(RuntimeError, match=sentence):
        start(lab, PLAIN, *settings)
