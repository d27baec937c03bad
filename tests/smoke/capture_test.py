# SPDX-License-Identifier: BSD-3-Clause
"""weir-switch --pcap: what its paths carry, and the same packets through weir-sim."""

import json
import re
import struct
import sys
import time
from collections import Counter

import pytest
from lab import ADDRESS, Lab, outcome, sh
from pcapng import only, packets
from tcpdump import Capture
from weir.analysis import ring

PATHS = (
    "{forward: [{link: {rate: 10Mbit, queue: {fifo: {limit: 100pkt}}}}, {delay: {delay: 5ms}}],"
    " reverse: [{delay: {delay: 5ms}}]}"
)
FLOOD = f"""
import socket
flood = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for i in range(2000):
    flood.sendto(bytes(18 if i % 2 else 1000), ("{ADDRESS["b"]}", 9))
"""


@pytest.fixture(scope="module")
def lab(weir_switch, tmp_path_factory, build):
    with Lab(tmp_path_factory.mktemp("lab"), build) as lab:
        yield lab


def test_a_capture_of_the_switch(lab, build):
    """Each packet where it arrived, left or was dropped; in virtual time it fares alike."""
    pcap = lab.tmp / "switch.pcapng"
    options = ("-o", "telemetry.level=3", "-o", "telemetry.capture=paths", "--pcap", str(pcap))
    began = time.time_ns()
    switch = lab.switch(PATHS, *options)
    lab.ping(count=5)
    lab.host("a", sys.executable, "-c", FLOOD).wait()
    lab.ping(count=5)
    assert switch.stop() == 0
    summary, data = switch.summary(), pcap.read_bytes()
    assert outcome(summary) in ("ok", "interrupted")
    ledger = summary["ledger"]["paths"]["forward"]
    arrived, left, dropped = (packets(data, point) for point in range(3))

    assert summary["capture"]["lost"] == 0
    assert len(arrived) == ledger["in"]["pkts"] > 2000
    assert len(left) == ledger["out"]["pkts"]
    assert len(dropped) == ledger["drops"]["queue_full"]["pkts"] > 100
    assert all(began < ns < time.time_ns() for ns, *_ in arrived)
    assert all(", dropped at forward.link: queue_full" in text for _, _, text, _ in dropped)
    records = ring.open_ring(switch.folder / "packets.ring").records
    records = records[(records["path"] == 0) & (records["event"] == 2)]
    sojourn = dict(zip(records["pkt_id"].tolist(), records["sojourn_ns"].tolist(), strict=True))
    for _, _, text, number in left:
        found = re.search(r", queue (\d+)\.(\d{6}) ms$", text)
        assert int(found[1]) * 10**6 + int(found[2]) == sojourn[number]

    (lab.tmp / "in.pcapng").write_bytes(only(data, 0))
    config = lab.tmp / "sim.yaml"
    source = f"[{{source: {{pcap: {lab.tmp}/in.pcapng}}}}, {{link"
    config.write_text(f"paths: {PATHS.replace('[{link', source, 1)}\n")
    departed = lab.tmp / "departed.pcapng"
    sh(build / "tools/sim/weir-sim", config, "--out", lab.tmp / "sim", "--pcap", departed)
    assert json.loads((lab.tmp / "sim/summary.json").read_text())["ledger"]["balanced"]
    fared = packets(departed.read_bytes(), 0)
    assert [row[:3] for row in fared[: len(left)]] == [row[:3] for row in left]
    assert len(fared) - len(left) == ledger["inside"]["pkts"]


SNAP = 128  # bytes that the switch writes of a frame


def frames(path):
    """The frames of a capture that tcpdump wrote, as far as the switch captures them."""
    data, at = path.read_bytes(), 24
    while at < len(data):
        (size,) = struct.unpack_from("<I", data, at + 8)
        yield data[at + 16 : at + 16 + min(size, SNAP)]
        at += 16 + size


def test_a_capture_has_the_bits_that_a_stage_flipped(lab):
    """What left the switch according to it is what the host's interface received."""
    pcap = lab.tmp / "corrupt.pcapng"
    options = ("-o", "telemetry.capture=paths", "--pcap", str(pcap))
    wire = Capture(lab, "b", "eth0", what="udp dst port 9")
    paths = PATHS.replace("[{link", "[{corrupt: {rate: 50%}}, {link", 1)
    switch = lab.switch(paths.replace("100pkt", "3000pkt"), *options)
    lab.ping(count=5, wait=2)  # a learns where b is; what is lost of ARP's frames, it asks again
    lab.host("a", sys.executable, "-c", FLOOD).wait()
    lab.ping(count=5, wait=2)
    assert switch.stop() == 0
    wire.close()
    data = pcap.read_bytes()
    arrived = {number: frame for _, frame, _, number in packets(data, 0)}
    left = [
        (number, frame)
        for _, frame, _, number in packets(data, 1)
        if arrived[number][36:38] == b"\0\x09"
    ]
    flips = [
        sum((a ^ b).bit_count() for a, b in zip(arrived[number], frame, strict=True))
        for number, frame in left
    ]
    received = Counter(frames(wire.path))

    assert switch.summary()["capture"]["lost"] == 0
    assert set(flips) == {0, 1}
    # Of large frames a part is captured, with the bit or without it.
    small = [flip for flip, (_, frame) in zip(flips, left, strict=True) if len(frame) < SNAP]
    assert len(small) > 500
    assert 0.4 < sum(small) / len(small) < 0.6
    # A frame that the kernel had no room for is counted by its interface.
    assert not received - Counter(frame for _, frame in left)
    assert received.total() >= len(left) - lab.lost("sw", "right") - lab.lost("b", "eth0")
