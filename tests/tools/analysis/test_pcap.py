# SPDX-License-Identifier: BSD-3-Clause
"""weir-pcap on captures made with scapy: what each packet is taken for; every one is counted."""

from __future__ import annotations

import gzip
import json
import random
import struct
import subprocess
from pathlib import Path
from typing import Any

import pytest
from frames import ETHER, MS, MSS, NS_MAGIC, PROGRAM, US, US_MAGIC, Connection, Frame, pcap
from scapy.layers.inet import ICMP, IP, TCP, UDP
from scapy.layers.inet6 import (
    IPv6ExtHdrDestOpt,
    IPv6ExtHdrFragment,
    IPv6ExtHdrHopByHop,
    IPv6ExtHdrRouting,
)
from scapy.layers.l2 import ARP, Dot1AD, Dot1Q, Ether
from scapy.packet import Raw
from weir.analysis import folder

pytestmark = pytest.mark.skipif(not PROGRAM.exists(), reason=f"{PROGRAM} is not built")


def test_round_trips_of_more_than_4_seconds(analyse):
    """2^32 ns are 4.29 s; mobile links and full buffers have reached 25 s."""
    rtt = 25_000 * MS
    c = Connection().open(rtt)
    for i in range(5):
        c.data(i, after=MS)
        c.ack(i + 1, after=rtt + i * MS, tsecr=c.now_ns // MS)
    found = analyse(c.frames)
    names = ("rtt_min_ns", "rtt_mean_ns", "rtt_max_ns", "tsrtt_min_ns", "tsrtt_max_ns")
    assert [found.flow[name] for name in names] == [
        rtt, rtt + 2 * MS, rtt + 4 * MS, rtt, rtt + 4 * MS,
    ]  # fmt: skip
    found.shows(syn_rtt_ns=rtt, ack_gap_mean_ns=rtt + MS + 2_500_000)
    assert rtt <= found.flow["srtt_ns"] <= rtt + 4 * MS
    assert max(segment["rtt_ns"] for segment in found.segments) == rtt + 4 * MS


def test_a_whole_connection(analyse):
    c = Connection().open(10 * MS).talk(10)
    c.send(0, 1 + 10 * MSS, 1, flags="FA", after=MS)
    c.send(1, 1, 2 + 10 * MSS, flags="FA", after=10 * MS)
    c.send(0, 2 + 10 * MSS, 2)
    flow = analyse(c.frames).flow
    assert (flow["src"], flow["dst"], flow["end"]) == ("192.0.2.1:40000", "192.0.2.2:80", "close")
    assert (flow["sent_segs"], flow["sent_bytes"], flow["acked_bytes"]) == (10, 10_000, 10_000)
    assert flow["rtt_samples"] == 11  # the FIN's too, as in the sender
    assert (flow["rtt_min_ns"], flow["rtt_max_ns"]) == (10 * MS, 10 * MS)
    assert (flow["syn_rtt_ns"], flow["syn_ack_rtt_ns"]) == (10 * MS, None)  # no time passed
    assert flow["tsrtt_samples"] == 10
    assert flow["inflight_max_bytes"] == MSS
    assert flow["window_max_bytes"] == 240_000
    assert flow["options"] == 1 + 2 + 4 + 16 + 32
    for name in (
        "retransmits",
        "lost_segs",
        "out_of_order",
        "duplicates",
        "timeouts",
        "keep_alives",
    ):
        assert flow[name] == 0


def test_goodput_is_of_the_time_behind_the_warm_up(analyse):
    """A segment is acknowledged each 10 ms; a warm-up may be no multiple of the interval."""
    c = Connection().open(10 * MS).talk(100, after=0)
    for warmup_ms in (0, 200, 250, 390, 410):
        (group,) = analyse(c.frames, "--warmup", f"{warmup_ms}ms").summary["groups"]
        assert group["goodput_bps"] == pytest.approx(8 * MSS / 10e-3, rel=0.02)


def test_a_group_is_what_came_after_the_warm_up(analyse):
    """A flow's record is of all of it; what the tables sum is not, as in a run."""
    # The ACK of segment 19 comes with the end of the warm-up.
    c = Connection().open(10 * MS)
    for i in range(40):
        c.data(i)
        c.ack(i, sack=c.sacked(i, i + 1), after=10 * MS)
        if i in (4, 30, 35):
            c.data(i)  # it had arrived
        c.ack(i + 1, after=10 * MS, tsecr=c.now_ns // MS)
    for warmup_ms, segments, resent, end in ((0, 43, 3, 40), (410, 22, 2, 21), (9000, 0, 0, 0)):
        found = analyse(c.frames, "--warmup", f"{warmup_ms}ms")
        (group,) = found.summary["groups"]
        assert (found.flow["sent_segs"], found.flow["retransmits"]) == (43, 3)
        assert (group["sent_segs"], group["retransmits"], group["spurious"]) == (
            segments,
            resent,
            resent,
        )
        assert group["acked_bytes"] == end * MSS
        assert (group["rtt_mean_ns"] is None) == (end == 0)


def lost_then(analyse, **more):
    """Segment 1 of 5 is lost behind the capture; SACKs ask for it."""
    c = Connection(**more).open()
    c.data(*range(5))
    c.ack(1, after=10 * MS)
    for i in range(2, 5):
        c.ack(1, sack=c.sacked(2, i + 1))
    c.data(1, after=MS)
    c.ack(5, after=10 * MS)
    return analyse(c.frames)


def test_a_fast_retransmission(analyse):
    found = lost_then(analyse)
    flow = found.flow
    assert (flow["retransmits"], flow["lost_segs"], flow["lost_before"]) == (1, 1, 0)
    assert (flow["cwnd_reductions"], flow["timeouts"], flow["spurious"]) == (1, 0, 0)
    assert (flow["sack_acks"], flow["duplicate_acks"]) == (3, 3)
    # Karn: the last ACK is of a segment that was sent twice; the SACKs are of segments sent once.
    assert (flow["rtt_samples"], flow["rtt_sack_samples"]) == (4, 3)
    assert [s["kind"] for s in found.segments if s["kind"] & 1] == [1]


def test_sequence_numbers_wrap(analyse):
    flow = lost_then(analyse, isn=(2**32 - 2500, 2**32 - 1)).flow
    assert (flow["acked_bytes"], flow["retransmits"], flow["lost_segs"]) == (5 * MSS, 1, 1)
    assert (flow["rtt_samples"], flow["out_of_window"]) == (4, 0)


def test_a_sacked_segment_sent_again_is_spurious(analyse):
    c = Connection().open()
    c.data(*range(3))
    c.ack(0, after=10 * MS, sack=c.sacked(1, 2))
    c.data(1, after=MS)
    found = analyse(c.frames)
    found.shows(retransmits=1, spurious=1, lost_segs=0)
    assert found.segments[-1]["kind"] == 1 | 2


def test_a_dsack_takes_a_loss_back(analyse):
    c = Connection().open()
    c.data(0)
    c.data(0, after=400 * MS)
    c.ack(1, after=10 * MS)
    c.ack(1, after=MS, sack=c.sacked(0, 1))
    analyse(c.frames).shows(retransmits=1, spurious=1, lost_segs=0, dsacks=1, timeouts=1)


def test_a_dsack_of_a_packet_that_the_network_doubled_takes_no_loss_back(analyse):
    """Only a range that was sent again can have been sent again for nothing (RFC 2883, 4)."""
    for doubled in (2, 0):  # sent once; the one that was sent again
        c = Connection().open()
        c.data(*range(4))
        c.ack(0, after=10 * MS, sack=c.sacked(1, 4))
        c.data(0, after=MS)
        c.ack(4, after=10 * MS)
        c.ack(4, after=MS, sack=c.sacked(doubled, doubled + 1))
        flow = analyse(c.frames).flow
        assert (flow["retransmits"], flow["dsacks"]) == (1, 1)
        assert (flow["lost_segs"], flow["spurious"]) == ((1, 0) if doubled else (0, 1))


def test_reordering_is_no_retransmission(analyse):
    """TSval says that it was sent first; so does the time where it is the same."""
    for tsval in (4999, 5010):
        for ip_id in (8, 0, 9000):  # counted, none, drawn at random
            c = Connection().open()
            c.data(0)
            c.data(2, tsval=5010, ip_id=9 if ip_id else 0)
            c.data(1, tsval=tsval, ip_id=ip_id, after=MS)
            c.ack(3, after=9 * MS)
            analyse(c.frames).shows(out_of_order=1, retransmits=0, lost_segs=0, sent_segs=3)


def test_sent_again_within_a_tick(analyse):
    """TSval is that of the packet behind the hole, but a host's counter of packets went on."""
    c = Connection().open()
    c.data(0)
    c.data(2, tsval=5010, ip_id=65535)
    c.data(1, tsval=5010, ip_id=2, after=MS // 10)
    c.ack(3, after=9 * MS)
    analyse(c.frames).shows(out_of_order=0, retransmits=1, lost_before=1)


def test_a_loss_before_the_capture(analyse):
    """The original was never seen; the same hole, but a round trip later."""
    c = Connection().open()
    c.data(0, 2)
    c.ack(1, after=10 * MS)
    c.ack(1, sack=c.sacked(2, 3))
    c.data(1, after=10 * MS)
    c.ack(3, after=10 * MS)
    flow = analyse(c.frames).flow
    assert (flow["out_of_order"], flow["retransmits"]) == (0, 1)
    assert (flow["lost_segs"], flow["lost_before"], flow["cwnd_reductions"]) == (1, 1, 1)
    assert flow["uncaptured_bytes"] == 0


def test_a_packet_captured_twice(analyse):
    for v6 in (False, True):
        c = Connection(v6=v6).open()
        c.data(0, ip_id=77)
        c.data(0, ip_id=77, tsval=c.now_ns // MS)
        c.ack(1, after=10 * MS)
        analyse(c.frames).shows(duplicates=1, retransmits=0, sent_segs=1, rtt_samples=1)


@pytest.mark.parametrize("kind", ["ip_id", "timestamps", "neither", "ipv6"])
@pytest.mark.parametrize("later", [5 * US, 500 * US])
def test_all_packets_captured_twice_count_once(analyse, kind, later):
    """Without IP identification and timestamps all data were sent again, and no RTT was known."""
    c = Connection(v6=kind == "ipv6", timestamps=kind == "timestamps")
    none = None if kind == "ip_id" else 0
    syn = [("MSS", MSS), ("SAckOK", b""), ("WScale", 2)]
    c.send(0, 0, 0, flags="S", options=syn, ip_id=none)
    c.send(1, 0, 1, flags="SA", options=syn, after=20 * US, ip_id=none)
    c.send(0, 1, 1, after=10 * MS, ip_id=none)  # captured near the server
    for i in range(20):
        c.data(i, after=MS, ip_id=none)
        c.ack(i + 1, after=100 * US, ip_id=none)
    c.data(7, after=200 * MS, ip_id=none)  # the one that was sent again
    c.send(0, 1 + 20 * MSS, 1, flags="FA", after=MS, ip_id=none)
    names = ("sent_segs", "retransmits", "lost_segs", "rtt_samples", "rtt_mean_ns", "syn_rtt_ns")
    alone = analyse(c.frames).flow
    both = analyse(sorted(c.frames + [(ns + later, frame) for ns, frame in c.frames])).flow
    assert [both[name] for name in names] == [alone[name] for name in names]
    assert (alone["retransmits"], alone["rtt_samples"]) == (1, 20)
    assert both["duplicates"] >= 22  # that ACKs are copies is known by the identification alone


def test_a_timeout_and_a_tail_probe(analyse):
    c = Connection().open()
    c.data(0)
    c.data(0, after=1000 * MS)
    c.data(0, after=2000 * MS)
    c.ack(1, after=10 * MS)
    analyse(c.frames).shows(timeouts=2, tail_probes=0, cwnd_reductions=0)
    c = Connection().open()
    c.data(0, 1)
    c.ack(1, after=10 * MS)
    c.data(1, after=25 * MS)
    c.ack(2, after=10 * MS)
    analyse(c.frames).shows(timeouts=0, tail_probes=1, cwnd_reductions=0)


def test_keep_alives(analyse):
    for payload in (0, 1):
        c = Connection().open()
        c.data(0)
        c.ack(1, after=10 * MS)
        c.send(0, MSS, 1, payload, after=10**9)
        c.ack(1, after=10 * MS)
        analyse(c.frames).shows(keep_alives=1, retransmits=0, sent_segs=1)


def test_a_byte_that_ends_a_write_is_sent_again(analyse):
    """It came already, and its ACK is on its way: a tail probe that was late, no keep-alive."""
    c = Connection().open()
    c.data(0)
    c.send(0, 1 + MSS, 1, 1, "PA")
    c.send(1, 1, 2 + MSS, after=10 * MS)
    c.send(0, 1 + MSS, 1, 1, "PA", after=5 * MS)
    c.send(1, 1, 2 + MSS, sack=(1 + MSS, 2 + MSS), after=10 * MS)
    analyse(c.frames).shows(keep_alives=0, retransmits=1, spurious=1, dsacks=1, sent_segs=3)


def test_zero_window(analyse):
    c = Connection().open()
    c.data(0)
    c.ack(1, after=10 * MS, window=0)
    c.send(0, MSS, 1, after=200 * MS)  # a probe
    c.ack(1, after=10 * MS, window=0)
    c.ack(1, after=300 * MS, window=100)
    c.data(1)
    c.ack(2, after=10 * MS)
    found = analyse(c.frames)
    found.shows(
        zero_windows=1, zero_window_ns=510 * MS, window_min_bytes=0, window_limited=1, keep_alives=1
    )
    assert sum(1 for s in found.segments if s["kind"] & 128) == 2


def test_half_open(analyse):
    c = Connection()
    for wait in (0, 1000 * MS, 2000 * MS):
        c.send(0, 0, 0, flags="S", after=wait)
    found = analyse(c.frames)
    assert (found.flow["end"], found.flow["syns"], found.flow["acked_bytes"]) == ("half_open", 3, 0)
    assert found.summary["capture"]["ended"] == {"half_open": 1}
    c = Connection()
    c.send(0, 0, 0, flags="S")
    c.send(1, 0, 1, flags="RA", after=MS)
    assert analyse(c.frames).flow["end"] == "half_open"


def test_a_reset(analyse):
    c = Connection().open()
    c.data(0)
    c.ack(1, after=10 * MS)
    c.send(1, 1, 1 + MSS, flags="RA", after=MS)
    assert analyse(c.frames).flow["end"] == "reset"


@pytest.mark.parametrize(("all_acked", "end"), [(True, "close"), (False, "reset")])
def test_a_reset_behind_a_close(analyse, all_acked, end):
    """A copy that the network had kept back meets no connection any more: nothing was cut off."""
    c = Connection().open()
    c.data(0)
    c.send(0, 1 + MSS, 1, flags="FA")
    c.send(1, 1, 2 + MSS, flags="FA", after=10 * MS)
    if all_acked:
        c.send(0, 2 + MSS, 2, after=MS)
    c.send(1, 2, 0, flags="R", after=MS)
    found = analyse(c.frames)
    assert (found.flow["end"], found.flow["acked_bytes"]) == (end, MSS)


def test_ports_used_again(analyse):
    first, second = Connection().open(), Connection(isn=(77, 88))
    first.data(0)
    first.ack(1, after=10 * MS)
    second.now_ns = first.now_ns + MS
    second.open()
    second.data(0)
    second.ack(1, after=10 * MS)
    found = analyse(first.frames + second.frames)
    assert [flow["end"] for flow in found.flows] == ["replaced", "still_open"]
    assert [flow["acked_bytes"] for flow in found.flows] == [MSS, MSS]
    assert [flow["retransmits"] for flow in found.flows] == [0, 0]
    assert [flow["connection"] for flow in found.flows] == [0, 1]


def test_both_directions_carry_payload(analyse):
    c = Connection().open()
    c.data(0)
    c.send(1, 1, 1 + MSS, 300, after=10 * MS)
    c.send(0, 1 + MSS, 301, after=MS)
    found = analyse(c.frames)
    assert [(f["acked_bytes"], f["client"]) for f in found.flows] == [(MSS, 1), (300, 0)]
    assert {f["connection"] for f in found.flows} == {0}


def test_a_capture_that_begins_late(analyse):
    """Without the handshake, with what precedes acknowledged; and one that saw only ACKs."""
    c = Connection()
    c.ack(10)
    c.data(10, after=MS)
    c.ack(11, after=10 * MS)
    analyse(c.frames).shows(acked_bytes=MSS, retransmits=0, uncaptured_bytes=0)
    c = Connection()
    for i in range(3):
        c.ack(i, after=MS)
    analyse(c.frames).shows(acked_bytes=2 * MSS, uncaptured_bytes=2 * MSS, sent_segs=0)


def test_a_gap_in_the_capture(analyse):
    c = Connection().open()
    c.data(0, 2)
    c.ack(3, after=10 * MS)
    found = analyse(c.frames)
    found.shows(uncaptured_bytes=MSS, retransmits=0, acked_bytes=3 * MSS)
    assert [s["kind"] for s in found.segments if s["payload_bytes"]] == [0, 16]


def test_ecn(analyse):
    c = Connection()
    c.send(0, 0, 0, flags="SEC")
    c.send(1, 0, 1, flags="SAE", after=10 * MS)
    c.send(0, 1, 1)
    c.data(0, tos=2)
    c.data(1, tos=3)
    c.ack(2, after=10 * MS, flags="AE")
    c.send(0, 1 + 2 * MSS, 1, MSS, "AC", tos=2)
    c.ack(3, after=10 * MS)
    flow = analyse(c.frames).flow
    assert (flow["ect"], flow["ce"], flow["ece"]) == (2, 1, 1)
    assert (flow["cwnd_reductions"], flow["ecn_reductions"]) == (1, 1)
    assert flow["options"] & 8


def test_ipv6_extension_headers(analyse):
    c = Connection(v6=True)
    c.extensions = [IPv6ExtHdrHopByHop(), IPv6ExtHdrRouting(), IPv6ExtHdrDestOpt()]
    c.open()
    c.data(0)
    c.ack(1, after=10 * MS)
    c.extensions = [IPv6ExtHdrFragment(offset=0, m=0)]  # atomic: a whole packet
    c.data(1)
    c.extensions = [IPv6ExtHdrFragment(offset=10, m=1)]
    c.data(2)
    found = analyse(c.frames)
    assert found.counts == {"read": 7, "tcp": 6, "fragments": 1}
    found.shows(src="[2001:db8::1]:40000", acked_bytes=MSS, rtt_samples=1)


def test_vlan_tags(analyse):
    c = Connection().open()
    c.data(0)
    tagged = []
    for number, (ns, frame) in enumerate(c.frames):
        packet = Ether(frame)
        tag = Dot1Q(vlan=5) if number % 2 else Dot1AD(vlan=6) / Dot1Q(vlan=7)
        tagged.append((ns, bytes(Ether(src=packet.src, dst=packet.dst) / tag / packet[IP])))
    found = analyse(tagged)
    assert found.counts == {"read": 4, "tcp": 4}
    assert found.flow["sent_bytes"] == MSS


def test_what_is_not_tcp_is_counted(analyse):
    frames = [
        (0, bytes(ETHER / ARP())),
        (1, bytes(ETHER / IP() / UDP() / Raw(b"x"))),
        (1, bytes(ETHER / IP() / ICMP())),
        (1, bytes(ETHER / IP(proto=17))),
        (2, bytes(ETHER / IP(frag=100) / TCP())),
        (3, bytes(ETHER / IP(len=30) / TCP())),
        (4, bytes(ETHER / IP() / TCP(dataofs=3))),
        (5, b"short"),
    ]
    assert analyse(frames).counts == {
        "read": 8, "not_ip": 1, "udp": 1, "not_tcp": 1, "fragments": 1, "malformed": 4,
    }  # fmt: skip


@pytest.mark.parametrize("snap", [64, 66, 70, 96])
def test_snap_lengths(analyse, snap):
    """Payload need not be captured, nor all options."""
    c = Connection().open()
    c.data(0)
    c.ack(1, after=10 * MS)
    found = analyse(pcap(c.frames, snap=snap))
    assert (found.flow["sent_bytes"], found.flow["acked_bytes"]) == (MSS, MSS)
    assert (found.summary["capture"]["options_cut"] > 0) == (snap < 78)


def test_a_snap_length_below_the_header(analyse):
    c = Connection().open()
    for snap in (10, 14, 33, 40, 53):
        assert analyse(pcap(c.frames, snap=snap)).counts == {"read": 3, "truncated": 3}


def test_times_that_go_backwards(analyse):
    c = Connection().open()
    c.data(0)
    c.ack(1, after=10 * MS)
    c.data(1, after=-(4 * 10**9))
    c.ack(2, after=10 * MS)
    found = analyse(c.frames)
    assert found.summary["capture"]["clock_steps"] == 1
    found.shows(acked_bytes=2 * MSS, rtt_min_ns=10 * MS, rtt_max_ns=10 * MS)


def test_byte_orders_and_resolutions(analyse):
    c = Connection().open()
    c.data(0)
    c.ack(1, after=10 * MS)
    found = [
        analyse(pcap(c.frames, magic=magic, order=order)).flow
        for magic in (NS_MAGIC, US_MAGIC)
        for order in "<>"
    ]
    assert all(flow == found[0] for flow in found)


def block(kind: int, body: bytes, order: str = "<") -> bytes:
    """A pcapng block."""
    body += bytes(-len(body) % 4)
    size = struct.pack(order + "I", len(body) + 12)
    return struct.pack(order + "I", kind) + size + body + size


def pcapng(frames: list[Frame], order: str = "<") -> bytes:
    """A section with interfaces in microseconds and in 2^-30 s, keys, an unknown block, options."""
    keys = b"CLIENT_RANDOM " + b"00" * 32 + b" " + b"11" * 48 + b"\n"
    option = struct.pack(order + "HHBxxx", 9, 1, 0x80 | 30) + bytes(4)
    parts = [
        block(0x0A0D0D0A, struct.pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1), order),
        block(1, struct.pack(order + "HHI", 1, 0, 0), order),
        block(1, struct.pack(order + "HHI", 101, 0, 0) + option, order),
        block(10, struct.pack(order + "II", 0x544C534B, len(keys)) + keys, order),  # of TLS
        block(0x0BAD, b"whatever", order),
    ]
    for number, (ns, frame) in enumerate(frames):
        on = number % 2
        units = ns * 2**30 // 10**9 if on else ns // 1000
        data = frame[14:] if on else frame
        head = struct.pack(order + "IIIII", on, units >> 32, units % 2**32, len(data), len(data))
        comment = struct.pack(order + "HH", 1, 4) + b"note" + bytes(4)
        parts.append(block(6, head + data + bytes(-len(data) % 4) + comment, order))
    return b"".join(parts)


def test_pcapng(analyse):
    c = Connection().open()
    c.data(0)
    c.ack(1, after=10 * MS)
    plain = analyse(c.frames).flow
    for file in (
        pcapng(c.frames),
        pcapng(c.frames, ">"),
        pcapng(c.frames[:2]) + pcapng(c.frames[2:], ">"),
    ):
        found = analyse(file)
        assert found.summary["capture"]["notes"] == []
        assert (found.flow["acked_bytes"], found.flow["retransmits"]) == (MSS, 0)
        assert (
            abs(found.flow["rtt_min_ns"] - plain["rtt_min_ns"]) <= 2000
        )  # the interfaces' resolutions


def interfaces(points: dict[str, list[Frame]]) -> bytes:
    """A section with an interface per name, in ns; the frames in the order of time."""
    parts = [block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1))]
    for name in points:
        options = struct.pack("<HH", 2, len(name)) + name.encode() + bytes(-len(name) % 4)
        options += struct.pack("<HHB3xHH", 9, 1, 9, 0, 0)
        parts.append(block(1, struct.pack("<HHI", 1, 0, 0) + options))
    numbered = ((ns, n, frame) for n, name in enumerate(points) for ns, frame in points[name])
    for ns, number, frame in sorted(numbered):
        head = struct.pack("<5I", number, ns >> 32, ns & 0xFFFFFFFF, len(frame), len(frame))
        parts.append(block(6, head + frame))
    return b"".join(parts)


def section(frames: list[Frame], name: str, count: int = 1) -> bytes:
    """A section of so many interfaces; the frames are the last one's."""
    return interfaces({f"{name}{n}": frames if n == count - 1 else [] for n in range(count)})


@pytest.mark.slow
@pytest.mark.parametrize("name", ["eth", "eth%d."])
def test_interfaces_of_ended_sections_take_no_room(analyse, name):
    """3000 sections, each with its own interface, alike or not: 1024 at once are enough."""
    c = Connection().open()
    c.data(*range(2998), after=MS)
    parts = [section([f], name.replace("%d", str(n))) for n, f in enumerate(c.frames)]
    found = analyse(b"".join(parts[:3000]))
    assert found.counts == {"read": 3000, "tcp": 3000}
    assert (found.err, found.summary["capture"]["unknown_interface"]) == ("", 0)
    assert found.flow["sent_segs"] == 2997


def test_too_many_interfaces_in_one_section(analyse):
    c = Connection().open()
    assert analyse(section(c.frames, "eth", 1024)).counts == {"read": 3, "tcp": 3}
    found = analyse(section(c.frames, "eth", 1025), status=0)
    assert "more than 1024 interfaces in a section, at byte " in found.err


def test_compare_reads_an_interface_of_each_section(weir, tmp_path):
    """By its name, also when its number is another's that has ended."""
    data = stream(30)
    out = through(data, 5 * MS, lost=(7,))
    parts = []
    for n, (ns, frame) in enumerate(data):
        parts.append(section([(ns, frame)], "in"))
        parts.append(section([(ns, frame)], f"other{n}.", 100))
    (tmp_path / "in.pcapng").write_bytes(b"".join(parts))
    (tmp_path / "out.pcap").write_bytes(pcap(out))
    argv = ("pcap", "compare", "in.pcapng", "out.pcap", "--from", "in0", "--out", "run")
    weir(*argv).worked()
    summary = json.loads((tmp_path / "run/summary.json").read_text())
    path = summary["links"]["forward"]
    assert (path["in"], path["matched"], path["drops"]) == (30, 29, 1)
    assert summary["ledger"]["captures"]["ingress"]["other_interfaces"] == 30


def test_a_file_cut_off_anywhere(analyse):
    """Analysed up to there, and it says where; in a file header it is no capture."""
    c = Connection().open()
    c.data(0)
    for whole in (pcap(c.frames), pcapng(c.frames)):
        for size in [*range(24, len(whole), 101), len(whole) - 1]:
            found = analyse(whole[:size])
            ends = found.summary["capture"]["notes"]
            packets = found.summary["ledger"]["capture"]["read"]
            assert packets < 4
            assert all("in the middle of a record" in note for note in ends)
            assert bool(ends) == ("in the middle" in found.err)
    assert "header" in analyse(pcap(c.frames)[:20], status=2).err


def test_compressed(analyse, tmp_path):
    c = Connection().open()
    c.data(0)
    whole = pcap(c.frames)
    two = gzip.compress(whole[:100]) + gzip.compress(whole[100:])
    plain = analyse(whole).flow
    assert analyse(gzip.compress(whole)).flow == plain
    assert analyse(two).flow == plain
    assert "ends in the middle" in analyse(gzip.compress(whole)[:-9]).err
    raw = b"\x28\xb5\x2f\xfd\x60" + struct.pack("<H", len(whole) - 256)  # RFC 8878, 3.1.1
    frame = raw + struct.pack("<I", len(whole) << 3 | 1)[:3] + whole  # one block, not compressed
    assert analyse(frame).flow == plain
    for begun in (frame[:6], frame[:9], gzip.compress(whole)[:12]):
        assert "ends before the first record" in analyse(begun, status=2).err
    argv = [PROGRAM, "analyze", "-", "--out", tmp_path / "piped", "--json"]
    done = subprocess.run(argv, input=two, capture_output=True, timeout=60, check=True)
    assert json.loads(done.stdout)["capture"]["packets"] == 4


def test_garbage(analyse):
    """Never a crash, everything counted: bytes of good captures are changed at random."""
    random_stream = random.Random(1)
    c = Connection().open()
    for i in range(20):
        c.data(i, after=MS)
        c.ack(i // 2, after=MS, sack=c.sacked(i, i + 1))
    for whole in (pcap(c.frames), pcapng(c.frames)):
        for _ in range(15):
            bad = bytearray(whole)
            for _ in range(random_stream.randrange(1, 60)):
                bad[random_stream.randrange(40, len(bad))] = random_stream.randrange(256)
            analyse(bytes(bad))
    for size in (1, 3, 4, 100):
        assert "not a capture" in analyse(random_stream.randbytes(size), status=2).err
    assert "empty" in analyse(b"", status=2).err


def test_too_many_connections(analyse):
    frames = []
    for i in range(100):
        c = Connection(port=20000 + i, now_ns=10**9 + i * MS).open()
        c.data(0)
        frames += c.frames
    found = analyse(sorted(frames), "--connections", "16")
    assert found.summary["capture"]["ended"]["evicted"] >= 84
    assert found.summary["capture"]["connections_max"] == 16
    assert sum(f["sent_segs"] for f in found.flows) == 100


def test_idle_connections_end(analyse):
    first, second = Connection().open(), Connection(port=41000, now_ns=10**12).open()
    second.data(*range(200), after=MS)
    found = analyse(first.frames + second.frames, "--idle", "1min")
    assert found.summary["capture"]["ended"] == {"idle": 1, "still_open": 1}


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["analyze"], "a capture is wanted"),
        (["analyze", "x.pcap", "--nonsense"], "--nonsense is not an option"),
        (["analyze", "x.pcap", "--idle"], "--idle needs a value"),
        (["analyze", "x.pcap", "--out", "--force"], "--out needs a value"),
        (["analyze", "x.pcap", "--idle", "soon"], "weir-pcap: idle: 'soon' is not a time such as"),
        (["analyze", "missing.pcap"], "missing.pcap: cannot be opened: No such file"),
        (["dance"], "'dance' is not a command"),
    ],
)
def test_bad_usage(tmp_path, argv, said):
    done = subprocess.run(
        [PROGRAM, *argv], cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 2
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_the_commands(weir, tmp_path):
    c = Connection().open()
    c.data(0)
    c.ack(1, after=10 * MS)
    (tmp_path / "x.pcap").write_bytes(pcap(c.frames))
    done = weir("pcap", "analyze", "x.pcap", "--out", "run").worked()
    assert "capture: 5 read = 5 tcp" in done.out
    assert (tmp_path / "run/report.html").exists()
    done = weir("pcap", "flows", "x.pcap", "--json")
    assert json.loads(done.out)[0]["acked_bytes"] == MSS
    assert "192.0.2.1:40000" in weir("pcap", "flows", "x.pcap").out
    assert weir("pcap", "flows", "no.pcap").status == 2


@pytest.fixture
def compare(tmp_path: Path):
    """compare(ingress frames, egress frames): the summary, and every packet's record."""
    runs = 0

    def call(
        ingress: list[Frame],
        egress: list[Frame],
        snap: tuple[int, int] = (65535, 65535),
        ordered: bool = True,
    ) -> tuple[dict[str, Any], Any]:
        nonlocal runs
        runs += 1
        files = tmp_path / f"in{runs}.pcap", tmp_path / f"out{runs}.pcap"
        for path, frames, most in zip(files, (ingress, egress), snap, strict=True):
            path.write_bytes(pcap(sorted(frames) if ordered else frames, snap=most))
        out = tmp_path / f"compared{runs}"
        argv = [PROGRAM, "compare", *files, "--out", out, "--level", "3"]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        loaded = folder.load(out)
        assert loaded.summary.ledger.balanced
        return loaded.summary_json, loaded.frame("packets")

    return call


def through(frames: list[Frame], delay: int, lost: tuple[int, ...] = ()) -> list[Frame]:
    """The frames behind a router that takes one off the TTL and loses some."""
    found = []
    for number, (ns, frame) in enumerate(frames):
        packet = Ether(frame)
        packet[IP].ttl -= 1
        del packet[IP].chksum
        if number not in lost:
            found.append((ns + delay, bytes(packet)))
    return found


def stream(count: int = 100, port: int = 40000) -> list[Frame]:
    """Segments, a millisecond apart."""
    c = Connection(port=port)
    c.data(*range(count), after=MS)
    return c.frames


def test_compare_finds_delay_and_losses(compare):
    sent = stream()
    summary, packets = compare(sent, through(sent, 7 * MS, lost=(10, 11, 50)))
    path = summary["links"]["forward"]
    assert (path["in"], path["matched"], path["drops"], path["not_judged"]) == (100, 97, 3, 0)
    assert path["delay_min_ns"] == path["delay_max_ns"] == 7 * MS
    assert summary["links"]["reverse"]["in"] == 0
    dequeued = packets.filter(packets["event"] == 2)
    assert set(dequeued["sojourn_ns"]) == {7 * MS}
    assert packets.filter(packets["event"] == 3)["ts_ns"].to_list() == [
        n * MS for n in (10, 11, 50)
    ]
    assert summary["flows"][0]["drops"] == 3


def test_compare_counts_times_that_go_backwards(compare):
    """Packets are matched in the order of time: a capture that is not in it may lose matches."""
    sent = stream()
    seen = through(sent, 7 * MS)
    seen[20:22] = [seen[21], seen[20]]
    seen[40:43] = [seen[42], seen[41], seen[40]]
    summary, _ = compare(sent, seen, ordered=False)
    assert summary["backwards"] == {"ingress": 0, "egress": 3}
    summary, _ = compare(sent, sorted(seen))
    assert summary["backwards"] == {"ingress": 0, "egress": 0}


def test_compare_judges_only_what_both_saw(compare):
    """The second capture begins later and ends earlier: what it cannot have seen is not lost."""
    sent = stream()
    seen = through(sent, 7 * MS, lost=(30, 60))[20:90]
    path = compare(sent, seen)[0]["links"]["forward"]
    assert (path["matched"], path["drops"], path["not_judged"]) == (70, 2, 28)
    late, seen = stream()[40:], through(stream(), 7 * MS, lost=(60,))
    summary = compare(late, seen)[0]
    assert summary["links"]["forward"]["drops"] == 1
    assert summary["links"]["reverse"]["drops"] == 0  # 40 that had gone in before
    assert summary["links"]["reverse"]["not_judged"] == 40


def test_compare_a_capture_that_begins_with_a_late_packet(compare):
    """What overtook it left before: that is not lost."""
    sent = stream(40)
    seen = through(sent, 7 * MS)
    begun_ns = sent[0][0] + 18 * MS
    seen[0] = (begun_ns + MS, seen[0][1])
    path = compare(sent, [frame for frame in seen if frame[0] >= begun_ns])[0]["links"]["forward"]
    assert (path["matched"], path["drops"], path["not_judged"]) == (30, 0, 10)


def test_compare_both_directions(compare):
    c = Connection().open(20 * MS)
    acks = [frame for frame in c.frames if Ether(frame[1])[IP].src == "192.0.2.2"]
    data = [frame for frame in c.frames if frame not in acks]
    left = data + through(acks, 2 * MS)
    right = through(data, 5 * MS) + acks
    links = compare(left, right)[0]["links"]
    assert (links["forward"]["matched"], links["forward"]["delay_min_ns"]) == (2, 5 * MS)
    assert (links["reverse"]["matched"], links["reverse"]["delay_min_ns"]) == (1, 2 * MS)


def test_compare_marks_reordering_and_ambiguity(compare):
    c = Connection()
    c.data(*range(4), after=MS, tos=2)
    out = through(c.frames, 5 * MS)
    marked = Ether(out[1][1])
    marked[IP].tos = 3
    del marked[IP].chksum
    out[1] = (out[1][0] + 3 * MS - 1, bytes(marked))  # CE, and overtaken
    path = compare(c.frames, out)[0]["links"]["forward"]
    assert (path["marks"], path["matched"], path["reordered"]) == (1, 4, 1)
    twice = stream(3)
    twice.insert(1, (twice[0][0] + 1000, twice[0][1]))
    path = compare(twice, through(twice, 5 * MS))[0]["links"]["forward"]
    assert (path["matched"], path["drops"], path["ambiguous"]) == (4, 0, 1)


def datagrams(texts: list[bytes]) -> list[Frame]:
    """UDP without an IP identification, a millisecond apart."""
    ip = IP(src="192.0.2.1", dst="192.0.2.2", id=0)
    head = ETHER / ip / UDP(sport=4000, dport=5000)
    return [(n * MS, bytes(head / Raw(text))) for n, text in enumerate(texts)]


@pytest.mark.parametrize("snap", [(65535, 65535), (80, 80), (80, 100), (65535, 74)])
def test_compare_tells_datagrams_by_their_payload(compare, snap):
    """As much of it as both sides captured; headers alone would be the same."""
    texts = [f"number {n:8} of 40".encode() * 80 for n in range(40)]
    sent = datagrams(texts)
    summary, packets = compare(sent, through(sent, 7 * MS, lost=(3, 20)), snap)
    path = summary["links"]["forward"]
    assert (path["matched"], path["drops"], path["ambiguous"]) == (38, 2, 0)
    assert path["delay_min_ns"] == path["delay_max_ns"] == 7 * MS
    lost = packets.filter(packets["event"] == 3)["ts_ns"].to_list()
    assert lost == [3 * MS, 20 * MS]
    assert (summary["flows"][0]["proto"], summary["flows"][0]["src"]) == ("udp", "192.0.2.1:4000")


def test_compare_counts_what_it_cannot_tell_apart(compare):
    """The payloads differ behind the snap length: oldest first, and each is ambiguous."""
    sent = datagrams([bytes(100) + bytes([n]) for n in range(10)])
    path = compare(sent, through(sent, 3 * MS), (60, 60))[0]["links"]["forward"]
    assert (path["matched"], path["ambiguous"], path["drops"]) == (10, 9, 0)
    path = compare(sent, through(sent, 3 * MS))[0]["links"]["forward"]
    assert (path["matched"], path["ambiguous"], path["drops"]) == (10, 0, 0)


def test_compare_a_segment_with_another_payload(compare):
    """The same header with other bytes is not the same packet."""
    sent = stream(10)
    seen = through(sent, MS)
    other = bytearray(seen[4][1])
    other[-1] ^= 1
    seen[4] = (seen[4][0], bytes(other))
    links = compare(sent, seen)[0]["links"]
    assert (links["forward"]["matched"], links["forward"]["drops"]) == (9, 1)


@pytest.mark.slow
def test_compare_interfaces_of_one_capture(weir, tmp_path):
    """As weir-switch writes it: both sides and the drops are in one file."""
    data, back = stream(10), stream(10, 41000)
    file = tmp_path / "switch.pcapng"
    points = {"in": data, "out": through(data, 5 * MS, lost=(7,)), "drop": data[7:8]}
    points |= {"back in": back, "back out": through(back, MS)}
    file.write_bytes(interfaces(points))
    argv = ("pcap", "compare", file, file, "--out", "run", "--force")
    done = weir(*argv, "--from", "in,back out", "--to", "out,back in").worked()
    summary = json.loads((tmp_path / "run/summary.json").read_text())
    counts = {
        name: (path["matched"], path["drops"], path["delay_max_ns"])
        for name, path in summary["links"].items()
    }
    assert counts == {"forward": (9, 1, 5 * MS), "reverse": (10, 0, MS)}
    assert "29 read" not in done.out
    said = weir(*argv, "--from", "inn", "--to", "out").refused()
    assert said == (
        f"weir: {file}: no interface is named 'inn'; it has 'in', 'out', 'drop', 'back in', "
        "'back out'"
    )
    (tmp_path / "x.pcap").write_bytes(pcap(data))
    said = weir("pcap", "compare", "x.pcap", "x.pcap", "--from", "in").refused()
    assert "no interface is named 'in'; it has none with a name" in said
    done = subprocess.run([PROGRAM, "analyze", file, "--to", "in"], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (
        2,
        "weir-pcap: --from, --to: only compare has two sides\n",
    )


@pytest.mark.parametrize(
    "names",
    [("left", "right"), ("forward in", "forward out"), ("forward in", "forward out", "drop")],
)
def test_compare_both_sides_of_one_file(weir, tmp_path, names):
    """Two interfaces, or Weir's names of what enters paths and leaves them."""
    data = stream(10)
    frames = (data, through(data, 5 * MS, lost=(7,)), data[7:8])
    points = dict(zip(names, frames, strict=False))
    (tmp_path / "x.pcapng").write_bytes(interfaces(points))
    weir("pcap", "compare", "x.pcapng", "--out", "run").worked()
    path = json.loads((tmp_path / "run/summary.json").read_text())["links"]["forward"]
    assert (path["in"], path["matched"], path["drops"]) == (10, 9, 1)


def test_compare_one_file_whose_sides_are_not_known(weir, tmp_path):
    (tmp_path / "x.pcapng").write_bytes(interfaces(dict.fromkeys("abc", stream(3))))
    said = weir("pcap", "compare", "x.pcapng", "--out", "run").refused()
    assert said == (
        "weir: x.pcapng: both sides are in one capture, of 3 interfaces: --from and --to say "
        "which of them are which side, or a second capture is wanted"
    )
    (tmp_path / "y.pcap").write_bytes(pcap(stream(3)))
    assert weir("pcap", "compare", "y.pcap", "--out", "run").status == 2


@pytest.mark.parametrize("v6", [False, True])
def test_flows_fit_a_narrow_terminal(weir, tmp_path, v6):
    """80 columns: the numbers in parts, which all begin with the flow."""
    c = Connection(v6=v6).open().talk(20)
    (tmp_path / "x.pcap").write_bytes(pcap(c.frames))
    narrow = weir("pcap", "flows", "x.pcap", env={"COLUMNS": "80"}).out
    assert max(map(len, narrow.splitlines())) <= 80
    source = "[2001:db8::1]:40000" if v6 else "192.0.2.1:40000"
    for part in narrow.split("\n\n"):
        head, row = part.splitlines()
        assert head.startswith("flow  sender")
        assert row.startswith(f"0     {source} ")
    assert "20.0 kB" in narrow
    assert "retransmits" in narrow
    wide = weir("pcap", "flows", "x.pcap", env={"COLUMNS": "200"}).out.splitlines()
    assert len(wide) == 2
    assert "retransmits" in wide[0]


def test_compare_says_how_far_it_is(tmp_path):
    file = tmp_path / "x.pcap"
    file.write_bytes(pcap(stream(10)))
    argv = [PROGRAM, "compare", file, file, "--out", tmp_path / "run", "--progress"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0
    last = json.loads(done.stderr.splitlines()[-1])
    assert last["read_bytes"] == last["all_bytes"] == 2 * file.stat().st_size
    assert last["packets"] == 20


@pytest.mark.slow
def test_compare_wants_two_captures(weir, tmp_path):
    (tmp_path / "x.pcap").write_bytes(pcap(stream(3)))
    (tmp_path / "y.pcap").write_bytes(pcap(through(stream(3), MS)))
    done = weir("pcap", "compare", "x.pcap", "y.pcap", "--out", "both").worked()
    assert "forward" in done.out
    assert "egress: 3 read = 3 tcp" in done.out
    assert weir("pcap", "compare", "x.pcap", "missing").status == 2
    assert weir("report", "both").status == 0
