# SPDX-License-Identifier: BSD-3-Clause
"""weir pcap compare where hosts with offloads capture several segments as one packet."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from frames import ETHER, MS, PROGRAM, Connection, Frame, pcap
from scapy.layers.inet import IP, TCP
from scapy.layers.inet6 import IPv6
from scapy.packet import Raw

pytestmark = pytest.mark.skipif(not PROGRAM.exists(), reason=f"{PROGRAM} is not built")

SIZE = 1448
DELAY = 10 * MS


def written(begin: int, length: int) -> bytes:
    """The bytes of the connection, each of which says where it is."""
    return bytes((begin + i) % 251 for i in range(length))


def packet(ns: int, first: int, segments: int, v6: bool = False, size: int = SIZE) -> Frame:
    """Segments `first` and on as one packet, as a card gets it or makes it."""
    network = (
        IPv6(src="2001:db8::1", dst="2001:db8::2")
        if v6
        else IP(src="192.0.2.1", dst="192.0.2.2", id=first + 1)
    )
    options = [("NOP", None), ("NOP", None), ("Timestamp", (7 + first // 40, 1))]
    tcp = TCP(sport=40000, dport=80, seq=1000 + first * size, ack=1, flags="A", options=options)
    return ns, bytes(ETHER / network / tcp / Raw(written(first * size, segments * size)))


def ack(ns: int, segments: int) -> Frame:
    """The server's, up to there."""
    network = IP(src="192.0.2.2", dst="192.0.2.1", id=segments)
    number = 1000 + segments * SIZE
    return ns, bytes(ETHER / network / TCP(sport=80, dport=40000, seq=1, ack=number, flags="A"))


@pytest.fixture
def compare(tmp_path: Path):
    """compare(one side's frames, the other's): the summary."""

    def call(left: list[Frame], right: list[Frame], snap: int = 65535) -> dict[str, Any]:
        (tmp_path / "in.pcap").write_bytes(pcap(sorted(left), snap=snap))
        (tmp_path / "out.pcap").write_bytes(pcap(sorted(right), snap=snap))
        argv = [PROGRAM, "compare", "in.pcap", "out.pcap", "--out", "run", "--force"]
        done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        summary = json.loads((tmp_path / "run/summary.json").read_text())
        assert summary["ledger"]["balanced"]
        return summary

    return call


def counts(summary: dict[str, Any], path: str = "forward") -> tuple[int, ...]:
    """What went in, came out, was lost and is ambiguous."""
    found = summary["links"][path]
    return tuple(found[key] for key in ("in", "matched", "drops", "ambiguous"))


def sender(v6: bool = False) -> list[Frame]:
    """50 packets of ten segments."""
    return [packet(i * 5 * MS, 10 * i, 10, v6) for i in range(50)]


def link(lost: tuple[int, ...] = (), v6: bool = False) -> list[Frame]:
    """The same, segment by segment."""
    return [
        packet(i // 10 * 5 * MS + DELAY + i % 10 * 120_000, i, 1, v6)
        for i in range(500)
        if i not in lost
    ]


@pytest.mark.slow
@pytest.mark.parametrize("v6", [False, True])
@pytest.mark.parametrize("snap", [65535, 96])
def test_segmentation_at_the_sender(compare, v6, snap):
    left, right = sender(v6), link((203, 204, 407), v6)
    for i in range(50):
        right.append(ack(i * 5 * MS + DELAY + 2 * MS, 10 * i + 10))
        left.append(ack(i * 5 * MS + DELAY + 12 * MS, 10 * i + 10))
    summary = compare(left, right, snap)
    assert counts(summary) == (500, 497, 3, 0)
    # The last ACKs came out when the other capture had ended, or cannot be told from it.
    assert counts(summary, "reverse")[1:] == (50, 0, 0)
    assert summary["links"]["forward"]["delay_min_ns"] == DELAY
    assert summary["links"]["forward"]["delay_max_ns"] == DELAY + 9 * 120_000
    assert summary["taken_apart"] == {
        "ingress": {"packets": 50, "segments": 500},
        "egress": {"packets": 0, "segments": 0},
    }


def test_segments_put_together_at_the_receiver(compare):
    """GRO, of eight segments: some belonged to two packets of the sender's."""
    got = [packet(i * MS + 4 * DELAY, i, min(8, 500 - i)) for i in range(0, 500, 8)]
    assert counts(compare(link(), got))[:3] == (500, 500, 0)
    # What ten and eight segments have in common are two.
    assert counts(compare(sender(), got))[:3] == (250, 250, 0)


def test_sides_that_are_cut_alike_stay_packets(compare):
    """As before: also where each packet has several segments, and where one is lost."""
    same = [(ns + DELAY, frame) for ns, frame in sender()]
    summary = compare(sender(), same)
    assert counts(summary) == (50, 50, 0, 0)
    assert summary["taken_apart"]["ingress"] == {"packets": 0, "segments": 0}
    c = Connection().open()
    c.data(*range(20), after=MS)
    seen = [(ns + DELAY, frame) for ns, frame in c.frames]
    del seen[9]
    assert counts(compare(c.frames, seen))[:3] == (23, 22, 1)


def test_the_command_says_it(weir, tmp_path):
    (tmp_path / "in.pcap").write_bytes(pcap(sender()))
    (tmp_path / "out.pcap").write_bytes(pcap(link((203,))))
    done = weir("pcap", "compare", "in.pcap", "out.pcap", "--out", "run").worked()
    assert (
        "ingress: 50 packets of several segments, as hosts with segmentation offload capture them, "
        "count as 500" in done.out
    )
