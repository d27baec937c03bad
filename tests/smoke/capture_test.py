# SPDX-License-Identifier: BSD-3-Clause
"""weir-switch --pcap: what its paths carry, and the same packets through weir-sim."""

import json
import re
import sys
import time

import pytest
from lab import ADDRESS, Lab, outcome, sh
from pcapng import only, packets

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
def lab(tmp_path_factory, build):
    with Lab(tmp_path_factory.mktemp("lab"), build) as lab:
        yield lab


def test_a_capture_of_the_switch(weir_switch, lab, build):
    """Each packet where it arrived, left or was dropped; in virtual time it fares alike."""
    ring = pytest.importorskip("weir.analysis.ring")
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
    assert len(dropped) == ledger["drops"]["queue_full"]["pkts"] > 1000
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
