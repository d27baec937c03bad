# SPDX-License-Identifier: BSD-3-Clause
"""`weir pcap compare` on both sides of the live switch: what it infers is what the switch did."""

import json
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from lab import ADDRESS, PEER, Lab
from pcapng import chosen, is_transport, packets
from tcpdump import Capture
from weir.analysis import ring

PORT, FLOWS, BYTES = 5001, 4, 300_000
PATHS = """
  forward:
    - loss: {rate: 1%}
    - link: {rate: 20Mbit, queue: {fifo: {limit: 30pkt}}}
    - delay: {delay: 5ms, late: 1%, late_by: 2ms}
  reverse:
    - loss: {rate: 0.5%}
    - delay: {delay: 5ms}"""
IN, OUT, DROPPED = 0, 1, 2  # interfaces of a path in the switch's capture
LINK_ENDS = ("sw", "left"), ("sw", "right"), ("a", "eth0"), ("b", "eth0")
SIDES = ("--from", "forward in,reverse out", "--to", "forward out,reverse in")
DEQUEUE, DROP, DEPART = 2, 3, 5  # enum tel_packet_event
RECORDED = ("-o", "telemetry.level=3", "-o", "telemetry.arrivals=yes")
# The hosts' clock is steered, the switch's not: parts per million of delays below 100 ms.
CLOCKS_NS = 50_000
# Datagrams differ in their payload alone; TCP and a burst that overruns the queue go with them.
LOAD_PACKETS = 600
LOAD = f"""
import socket
flood = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for i in range({LOAD_PACKETS}):
    flood.sendto(f"{{i:8}}".encode().ljust(400), ("{ADDRESS["b"]}", 9))
"""


@dataclass
class Did:
    """What the switch did to TCP and UDP on a path, in ns since 1970."""

    departed: dict[int, tuple[int, int]]  # arrival and departure of packets by number
    dropped: dict[int, int]  # arrival

    def delays(self):
        """Departures in their order, each with its delay."""
        return sorted((out, out - come) for come, out in self.departed.values())


@dataclass
class Traffic:
    """One run: the switch's capture and records, the hosts' captures."""

    ports: Any
    pcap: Any
    data: bytes
    forward: Did
    reverse: Did
    left: Any
    right: Any
    kernel: int  # frames that the kernel dropped on their way


def did(switch, data, path):
    """The fate of each packet by the switch's records, not by its capture."""
    start_ns = ring.open_ring(switch.folder / "packets.ring").header.utc_start_ns
    transport = {
        number
        for point in (IN, DROPPED)
        for _, frame, _, number in packets(data, 3 * path + point)
        if is_transport(frame)
    }

    def times(stream, event=None):
        found = ring.open_ring(switch.folder / f"{stream}.ring").records
        found = found[found["path"] == path]
        if event is not None:
            found = found[found["event"] == event]
        pairs = zip(found["pkt_id"].tolist(), found["ts_ns"].tolist(), strict=True)
        return {number: start_ns + ts for number, ts in pairs if number in transport}

    come, gone = times("arrivals"), times("packets", DEPART)
    return Did(
        {number: (come[number], out) for number, out in gone.items()},
        {number: come[number] for number in times("packets", DROP)},
    )


@pytest.fixture(scope="module")
def traffic(weir_switch, tmp_path_factory, build):
    with Lab(tmp_path_factory.mktemp("compare"), build) as lab:
        pcap = lab.tmp / "switch.pcapng"
        options = (*RECORDED, "-o", "telemetry.capture=paths", "--pcap", str(pcap))
        switch = lab.switch(PATHS, *options)
        sides = [Capture(lab, host, "eth0", what="tcp or udp", snap=128) for host in "ab"]
        sink = lab.sink(FLOWS, port=PORT)
        source = ("source", ADDRESS["b"], PORT, FLOWS, BYTES)
        source = lab.host("a", sys.executable, PEER, *source)
        assert lab.host("a", sys.executable, "-c", LOAD).wait() == 0
        assert (source.wait(), sink.wait()) == (0, 0)
        lab.wait_closed()
        lab.ping(count=2)  # what was on its way has arrived
        kernel = sum(lab.lost(*end) for end in LINK_ENDS)
        assert switch.stop() == 0
        for side in sides:
            side.close()
        summary, data = switch.summary(), pcap.read_bytes()
        assert summary["capture"]["lost"] == 0
        assert all(
            summary["telemetry"]["streams"][name]["lost"] == 0 for name in ("packets", "arrivals")
        )
        kernel += sum(port["driver_missed"] for port in summary["ports"])
        found = [did(switch, data, path) for path in (0, 1)]
        ports = lab.tmp / "ports.pcapng"
        switch = lab.switch(PATHS, "-o", "telemetry.capture=port", "--pcap", str(ports))
        lab.ping(count=2)
        assert lab.host("a", sys.executable, "-c", LOAD).wait() == 0
        lab.ping(count=2)
        assert switch.stop() == 0
        yield Traffic(ports, pcap, data, *found, *(side.path for side in sides), kernel)


@pytest.fixture
def compare(weir_pcap, tmp_path):
    """compare(ingress, egress, options...): summary, records of packets, when they begin."""

    def call(*argv):
        out = tmp_path / "compared"
        argv = [weir_pcap, "compare", *argv, "--out", out, "--force", "--level", "3"]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        summary = json.loads((out / "summary.json").read_text())
        assert summary["ledger"]["balanced"]
        return summary["links"], ring.open_ring(out / "packets.ring").records

    return call


def rows(records, path, event, start_ns):
    """Times and delays of what compare found, in ns since 1970."""
    found = records[(records["path"] == path) & (records["event"] == event)]
    times = (start_ns + found["ts_ns"].astype(np.int64)).tolist()
    return sorted(zip(times, found["sojourn_ns"].tolist(), strict=True))


def check_losses(found, own, since, until):
    """Lost is what a capture from `since` to `until` would have shown: that, and nothing else."""
    delays = [delay for _, delay in own.delays()]
    lost, dropped = Counter(ns for ns, _ in found), Counter(own.dropped.values())
    assert lost <= dropped
    since, until = since - min(delays), until - max(delays)
    assert lost >= Counter(ns for ns in dropped.elements() if since <= ns <= until)
    return lost.total()


def first_ns(data, *interfaces):
    return min(
        ns
        for interface in interfaces
        for ns, frame, *_ in packets(data, interface)
        if is_transport(frame)
    )


def test_delays_and_losses_are_the_switchs(traffic, compare):
    """Of each packet: the capture's times are those of its records, arrival and due departure."""
    links, records = compare(traffic.pcap, traffic.pcap, *SIDES)
    start_ns = first_ns(traffic.data, 0, 1, 3, 4)
    both = ("forward", traffic.forward), ("reverse", traffic.reverse)
    for path, (name, own) in enumerate(both):
        since = first_ns(traffic.data, 3 * path + OUT, 3 * (1 - path) + IN)
        until = own.delays()[-1][0]
        link = links[name]
        assert rows(records, path, DEQUEUE, start_ns) == own.delays()
        # What was dropped before anything had left, or after that, is not judged.
        lost = check_losses(rows(records, path, DROP, start_ns), own, since, until)
        assert lost == link["drops"] == len(own.dropped) - link["not_judged"]
        assert (link["matched"], link["ambiguous"]) == (len(own.departed), 0)
    assert links["forward"]["drops"] > 0
    assert links["reverse"]["in"] > 0


def test_a_capture_that_begins_later_and_ends_earlier(traffic, compare, tmp_path):
    """Lost is what the shorter capture would have shown; all of that, and nothing else."""
    own = traffic.forward
    left_ns = sorted(out for _, out in own.departed.values())
    since, until = left_ns[len(left_ns) // 5], left_ns[len(left_ns) * 4 // 5]
    cut = tmp_path / "cut.pcapng"
    cut.write_bytes(
        chosen(traffic.data, lambda point, ns: point in (1, 3) and since <= ns <= until)
    )
    links, records = compare(traffic.pcap, cut, *SIDES)
    start_ns = first_ns(traffic.data, 0, 4)
    assert rows(records, 0, DEQUEUE, start_ns) == [
        (out, delay) for out, delay in own.delays() if since <= out <= until
    ]
    lost = check_losses(rows(records, 0, DROP, start_ns), own, since, until)
    assert lost == links["forward"]["drops"] > 0
    assert links["forward"]["not_judged"] > 0
    links, records = compare(cut, traffic.pcap, "--from", "forward out", "--to", "forward in")
    assert links["reverse"]["drops"] == lost


def test_both_ports_in_one_capture(traffic, compare):
    """What came in by one and did not leave by the other was dropped; nobody answered."""
    data = traffic.ports.read_bytes()
    left, right = ([row for row in packets(data, n) if is_transport(row[1])] for n in (0, 1))
    links, _ = compare(traffic.ports, traffic.ports, "--from", "left", "--to", "right")
    link = links["forward"]
    assert (link["in"], link["matched"], link["ambiguous"]) == (len(left), len(right), 0)
    assert link["drops"] + link["not_judged"] == len(left) - len(right)
    assert links["reverse"]["in"] == 0
    assert 0 < len(left) <= LOAD_PACKETS  # the kernel may lose some before


def test_captures_of_the_hosts(traffic, compare):
    """tcpdump's, at both ends: what the kernel lost is lost too, and its times include its own."""
    links, _ = compare(traffic.left, traffic.right)
    for name, own in (("forward", traffic.forward), ("reverse", traffic.reverse)):
        link, dropped = links[name], len(own.dropped)
        assert dropped <= link["drops"] + link["not_judged"]
        assert link["drops"] <= dropped + traffic.kernel
        assert link["delay_min_ns"] >= min(delay for _, delay in own.delays()) - CLOCKS_NS
