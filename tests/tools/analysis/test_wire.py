# SPDX-License-Identifier: BSD-3-Clause
"""The wire codecs in C (through tests/tools/wire_dump.c) against scapy."""

from __future__ import annotations

import json
import os
import random
import subprocess
from collections.abc import Callable, Iterator
from ipaddress import IPv4Address, IPv6Address
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scapy.layers.inet import ICMP, IP, TCP, UDP, IPOption_NOP
from scapy.layers.inet6 import (
    ICMPv6EchoReply,
    ICMPv6EchoRequest,
    ICMPv6ND_NA,
    ICMPv6ND_NS,
    ICMPv6NDOptDstLLAddr,
    ICMPv6NDOptSrcLLAddr,
    IPv6,
    IPv6ExtHdrDestOpt,
    IPv6ExtHdrFragment,
    IPv6ExtHdrHopByHop,
    IPv6ExtHdrRouting,
    PadN,
)
from scapy.layers.ipsec import AH
from scapy.layers.l2 import ARP, GRE, Dot1AD, Dot1Q, Ether
from scapy.layers.vxlan import VXLAN
from scapy.packet import Packet, Raw

ROOT = Path(__file__).resolve().parents[3]
DUMP = Path(os.environ.get("WEIR_BUILD", ROOT / "build")) / "tests/tools/wire_dump"
MAC_A, MAC_B = "02:00:00:00:00:01", "02:00:00:00:00:02"
OK, TRUNCATED, BAD_HEADER, BAD_CHECKSUM = range(4)
OPT_TS, OPT_MSS, OPT_WSCALE, OPT_SACK_OK = 1, 2, 4, 8
SYN = 2

pytestmark = pytest.mark.skipif(not DUMP.exists(), reason=f"{DUMP} is not built")

Ask = Callable[..., dict[str, Any]]
u8, u16, u32 = (st.integers(0, 2**bits - 1) for bits in (8, 16, 32))


@pytest.fixture(scope="module")
def ask() -> Iterator[Ask]:
    """Sends one command to wire_dump: its answer."""
    with subprocess.Popen(
        [DUMP], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
    ) as dump:
        assert dump.stdin is not None
        assert dump.stdout is not None
        to, answers = dump.stdin, dump.stdout

        def command(*words: object) -> dict[str, Any]:
            to.write(" ".join(w.hex() if isinstance(w, bytes) else str(w) for w in words) + "\n")
            answer: dict[str, Any] = json.loads(answers.readline())
            return answer

        yield command
        to.close()
        assert dump.wait(60) == 0


@st.composite
def segments(draw: st.DrawFn) -> dict[str, Any]:
    """A segment that can be on the wire: SYN options on a SYN, SACK blocks as room allows."""
    flags = draw(u8)
    options = draw(st.integers(0, 15)) & (15 if flags & SYN else OPT_TS)
    used = 12 if options & OPT_TS else 4 if options & OPT_SACK_OK else 0
    used += 4 * bool(options & OPT_MSS) + 4 * bool(options & OPT_WSCALE)
    blocks = draw(st.integers(0, (40 - used - 4) // 8))
    return {
        "ipv6": draw(st.integers(0, 1)),
        "src_ip": draw(u32),
        "dst_ip": draw(u32),
        "src_port": draw(u16),
        "dst_port": draw(u16),
        "seq": draw(u32),
        "ack": draw(u32),
        "tsval": draw(u32) if options & OPT_TS else 0,
        "tsecr": draw(u32) if options & OPT_TS else 0,
        "len": draw(st.integers(0, 9000)),
        "window": draw(u16),
        "flags": flags,
        "options": options,
        "wscale": draw(st.integers(0, 14)) if options & OPT_WSCALE else 0,
        "mss": draw(u16) if options & OPT_MSS else 0,
        "sack": draw(st.lists(u32, min_size=2 * blocks, max_size=2 * blocks)),
    }


def to_scapy_options(s: dict[str, Any]) -> list[tuple[str, Any]]:
    """The options in the order Linux writes them."""
    nop = ("NOP", None)
    options: list[tuple[str, Any]] = []
    if s["options"] & OPT_MSS:
        options += [("MSS", s["mss"])]
    if s["options"] & OPT_TS:
        options += [("SAckOK", b"")] if s["options"] & OPT_SACK_OK else [nop, nop]
        options += [("Timestamp", (s["tsval"], s["tsecr"]))]
    elif s["options"] & OPT_SACK_OK:
        options += [nop, nop, ("SAckOK", b"")]
    if s["options"] & OPT_WSCALE:
        options += [nop, ("WScale", s["wscale"])]
    if s["sack"]:
        options += [nop, nop, ("SAck", tuple(s["sack"]))]
    return options


def six(ip: int) -> str:
    """A host's address in IPv6."""
    return str(IPv6Address((0x20010002 << 96) + ip))


def to_ip(s: dict[str, Any], tos: int, ip_id: int, label: int = 0) -> Packet:
    if s["ipv6"]:
        return IPv6(src=six(s["src_ip"]), dst=six(s["dst_ip"]), tc=tos, hlim=64, fl=label, nh=6)
    return IP(
        src=str(IPv4Address(s["src_ip"])),
        dst=str(IPv4Address(s["dst_ip"])),
        tos=tos,
        id=ip_id,
        flags="DF",
        ttl=64,
        proto=6,
    )


def to_scapy(s: dict[str, Any], tos: int, ip_id: int, payload: bytes, label: int = 0) -> Packet:
    return (
        Ether(src=MAC_A, dst=MAC_B)
        / to_ip(s, tos, ip_id, label)
        / TCP(
            sport=s["src_port"],
            dport=s["dst_port"],
            seq=s["seq"],
            ack=s["ack"],
            window=s["window"],
            flags=s["flags"],
            options=to_scapy_options(s),
        )
        / Raw(payload)
    )


def numbers(s: dict[str, Any]) -> list[int]:
    """A segment as `write` wants it."""
    plain = [v for k, v in s.items() if k != "sack"]
    return [*plain, len(s["sack"]) // 2, *s["sack"]]


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(segments(), st.integers(0, 3), u16)
def test_we_write_what_scapy_writes(ask: Ask, s: dict[str, Any], ecn: int, ip_id: int) -> None:
    ours = bytes.fromhex(ask("write", ecn, ip_id, *numbers(s))["frame"])
    label = int.from_bytes(ours[15:18], "big") & 0xFFFFF
    assert ours == bytes(to_scapy(s, ecn, ip_id, bytes(s["len"]), label)).ljust(60, b"\0")


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(segments(), st.integers(0, 3), u16)
def test_scapy_reads_what_we_write(ask: Ask, s: dict[str, Any], ecn: int, ip_id: int) -> None:
    frame = Ether(bytes.fromhex(ask("write", ecn, ip_id, *numbers(s))["frame"]))
    tcp = frame[TCP]
    assert (frame.src, frame.dst, frame.type) == (MAC_A, MAC_B, 0x86DD if s["ipv6"] else 0x0800)
    if s["ipv6"]:
        ip = frame[IPv6]
        assert (ip.src, ip.dst) == (six(s["src_ip"]), six(s["dst_ip"]))
        assert (ip.tc, ip.hlim, ip.nh) == (ecn, 64, 6)
        assert ip.plen - 4 * tcp.dataofs == s["len"]
    else:
        ip = frame[IP]
        assert (int(IPv4Address(ip.src)), int(IPv4Address(ip.dst))) == (s["src_ip"], s["dst_ip"])
        assert (ip.tos, ip.id, ip.flags, ip.ttl, ip.proto) == (ecn, ip_id, "DF", 64, 6)
        assert ip.len - 4 * ip.ihl - 4 * tcp.dataofs == s["len"]
    assert (tcp.sport, tcp.dport, tcp.seq, tcp.ack) == (
        s["src_port"],
        s["dst_port"],
        s["seq"],
        s["ack"],
    )
    assert (tcp.window, int(tcp.flags), tcp.urgptr) == (s["window"], s["flags"], 0)
    assert tcp.options == to_scapy_options(s)
    checksums = None if s["ipv6"] else ip.chksum, tcp.chksum
    ip.delfieldval("chksum")
    tcp.delfieldval("chksum")
    second = Ether(bytes(frame))
    assert (None if s["ipv6"] else second[IP].chksum, second[TCP].chksum) == checksums


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(segments(), st.integers(0, 3), u16, st.binary(max_size=200))
@example(
    # Odd payload whose last byte alone decides the checksum.
    dict.fromkeys(("ipv6", "src_ip", "dst_ip", "src_port", "dst_port", "seq", "ack"), 0)
    | dict.fromkeys(("tsval", "tsecr", "window", "flags", "options", "wscale", "mss"), 0)
    | {"len": 0, "sack": []},
    0,
    0,
    b"\xff",
)
def test_we_read_what_scapy_writes(
    ask: Ask, s: dict[str, Any], ecn: int, ip_id: int, payload: bytes
) -> None:
    frame = bytes(to_scapy(s, ecn, ip_id, payload))
    got = ask("parse", frame)
    assert (got["status"], got["tcp"]) == (OK, OK)
    assert (got["ecn"], got["ip_len"], got["fragment"]) == (ecn, len(frame) - 14, 0)
    want = s | {"len": len(payload)}
    assert {k: got[k] for k in want} == want


@settings(max_examples=200, deadline=None)
@given(segments(), st.integers(0, 2**16), st.integers(0, 7))
def test_one_wrong_bit_does_not_pass(ask: Ask, s: dict[str, Any], at: int, bit: int) -> None:
    frame = bytearray(bytes(to_scapy(s, 0, 0, b"weir")))
    # No checksum covers the first bytes of IPv6, nor the eighth, its hop limit.
    first = 14 + 8 * s["ipv6"]
    at = first + at % (len(frame) - first)
    frame[at] ^= 1 << bit
    got = ask("parse", bytes(frame))
    assert got["tcp"] != OK


@settings(max_examples=100, deadline=None)
@given(u8, st.integers(0, 3), u16)
def test_set_ecn_leaves_a_good_checksum(ask: Ask, tos: int, ecn: int, ip_id: int) -> None:
    frame = Ether(src=MAC_A, dst=MAC_B) / IP(src="10.0.0.1", dst="10.0.0.2", tos=tos, id=ip_id)
    after = bytes.fromhex(ask("ecn", bytes(frame / TCP()), ecn)["frame"])
    frame[IP].tos = tos & ~3 | ecn
    assert after == bytes(frame / TCP())


@settings(max_examples=100, deadline=None)
@given(st.booleans(), u32, u32)
def test_arp_agrees(ask: Ask, request: bool, sender: int, target: int) -> None:
    theirs = Ether(src=MAC_A, dst="ff:ff:ff:ff:ff:ff" if request else MAC_B) / ARP(
        op=1 if request else 2,
        hwsrc=MAC_A,
        psrc=str(IPv4Address(sender)),
        hwdst="00:00:00:00:00:00" if request else MAC_B,
        pdst=str(IPv4Address(target)),
    )
    ours = bytes.fromhex(ask("write_arp", int(request), sender, target)["frame"])
    assert ours == bytes(theirs).ljust(60, b"\0")
    assert ask("arp", bytes(theirs)) == {
        "status": OK,
        "request": int(request),
        "sender_ip": sender,
        "target_ip": target,
        "sender_mac": MAC_A,
    }


@settings(max_examples=100, deadline=None)
@given(u16, u16, st.binary(max_size=100))
@example(0, 0, b"")  # the reply is all zero
def test_echo_reply_agrees(ask: Ask, ident: int, number: int, payload: bytes) -> None:
    request = (
        Ether(src=MAC_A, dst=MAC_B)
        / IP(src="10.0.0.1", dst="10.0.0.2", id=7)
        / ICMP(id=ident, seq=number)
        / Raw(payload)
    )
    reply = (
        Ether(src=MAC_B, dst=MAC_A)
        / IP(src="10.0.0.2", dst="10.0.0.1", id=7)
        / ICMP(type=0, id=ident, seq=number)
        / Raw(payload)
    )
    assert bytes.fromhex(ask("echo", bytes(request))["reply"]) == bytes(reply)
    assert ask("echo", bytes(reply))["reply"] is None


def test_other_traffic_is_told_apart(ask: Ask) -> None:
    ip = Ether(src=MAC_A, dst=MAC_B) / IP(src="10.0.0.1", dst="10.0.0.2")
    udp = ask("parse", bytes(ip / UDP(sport=53, dport=5353) / Raw(b"x")))
    assert (udp["status"], udp["proto"], udp["src_port"], udp["dst_port"]) == (OK, 17, 53, 5353)
    assert udp["tcp"] == BAD_HEADER
    arp = ask("parse", bytes(Ether(src=MAC_A, dst=MAC_B) / ARP()))
    assert (arp["status"], arp["ethertype"], arp["proto"]) == (OK, 0x0806, 0)
    assert ask("parse", bytes(ip / TCP())[:-1])["status"] == TRUNCATED
    assert ask("parse", b"")["status"] == TRUNCATED


EXTENSIONS = {
    "hop": IPv6ExtHdrHopByHop(options=PadN(optdata=bytes(4))),
    "three": IPv6ExtHdrHopByHop() / IPv6ExtHdrDestOpt() / IPv6ExtHdrDestOpt(),
}


@pytest.mark.parametrize("name", EXTENSIONS)
@settings(max_examples=30, deadline=None)
@given(segments(), u8, st.binary(max_size=200))
def test_we_read_ipv6_behind_extension_headers(
    ask: Ask, name: str, s: dict[str, Any], tos: int, payload: bytes
) -> None:
    s |= {"ipv6": 1}
    tcp = to_scapy(s, tos, 0, payload)[TCP]
    ip = to_ip(s, tos, 0, 0x12345)
    ip.delfieldval("nh")
    got = ask("parse", bytes(Ether(src=MAC_A, dst=MAC_B) / ip / EXTENSIONS[name] / tcp))
    assert (got["status"], got["tcp"], got["ecn"], got["dscp"]) == (OK, OK, tos & 3, tos >> 2)
    want = s | {"len": len(payload)}
    assert {k: got[k] for k in want} == want


def test_ipv6_that_is_not_for_us_is_told_apart(ask: Ask) -> None:
    ip = Ether(src=MAC_A, dst=MAC_B) / IPv6(src="fe80::1", dst=six(7))
    foreign = ask("parse", bytes(ip / TCP(sport=1, dport=2)))
    assert (foreign["tcp"], foreign["src_ip"], foreign["dst_ip"]) == (OK, 0, 7)
    fragment = ask("parse", bytes(ip / IPv6ExtHdrFragment(m=1, nh=6) / TCP()))
    assert (fragment["status"], fragment["fragment"], fragment["tcp"]) == (OK, 1, BAD_HEADER)
    assert ask("parse", bytes(ip / TCP())[:-1])["status"] == TRUNCATED
    assert ask("parse", bytes(ip)[:30])["proto"] == 0


@settings(max_examples=50, deadline=None)
@given(segments())
def test_datagrams_agree(ask: Ask, s: dict[str, Any]) -> None:
    s |= {"len": max(s["len"], 8)}
    ours = bytes.fromhex(ask("write_udp", 0, 0, *numbers(s))["frame"])
    label = int.from_bytes(ours[15:18], "big") & 0xFFFFF
    payload = s["seq"].to_bytes(4, "big") + s["ack"].to_bytes(4, "big") + bytes(s["len"] - 8)
    ip = to_ip(s, 0, 0, label)
    ip.setfieldval("nh" if s["ipv6"] else "proto", 17)
    theirs = ip / UDP(sport=s["src_port"], dport=s["dst_port"]) / Raw(payload)
    assert ours == bytes(Ether(src=MAC_A, dst=MAC_B) / theirs).ljust(60, b"\0")


@settings(max_examples=30, deadline=None)
@given(u32, u32)
def test_neighbour_discovery_agrees(ask: Ask, sender: int, target: int) -> None:
    group = (0xFF02 << 112) + 0x1FF000000 + (target & 0xFFFFFF)
    group_mac = "33:33:ff:" + (target & 0xFFFFFF).to_bytes(3, "big").hex(":")
    solicitation = (
        Ether(src=MAC_A, dst=group_mac)
        / IPv6(src=six(sender), dst=str(IPv6Address(group)), hlim=255)
        / ICMPv6ND_NS(tgt=six(target))
        / ICMPv6NDOptSrcLLAddr(lladdr=MAC_A)
    )
    advertisement = (
        Ether(src=MAC_B, dst=MAC_A)
        / IPv6(src=six(target), dst=six(sender), hlim=255)
        / ICMPv6ND_NA(tgt=six(target), R=0, S=1, O=1)
        / ICMPv6NDOptDstLLAddr(lladdr=MAC_B)
    )
    assert bytes.fromhex(ask("solicit", sender, target)["frame"]) == bytes(solicitation)
    assert bytes.fromhex(ask("advertise", bytes(solicitation))["frame"]) == bytes(advertisement)
    said = {"status": OK, "request": 1, "sender_ip": sender, "target_ip": target}
    assert ask("neighbour", bytes(solicitation)) == said | {"sender_mac": MAC_A}
    said = {"status": OK, "request": 0, "sender_ip": target, "target_ip": sender}
    assert ask("neighbour", bytes(advertisement)) == said | {"sender_mac": MAC_B}
    for frame in (solicitation, advertisement):
        frame[IPv6].hlim = 254  # it has passed a router
        assert ask("neighbour", bytes(frame))["status"] == BAD_HEADER


def test_a_host_without_an_address_gets_no_advertisement(ask: Ask) -> None:
    asks = Ether() / IPv6(src="::", dst="ff02::1:ff00:1", hlim=255) / ICMPv6ND_NS(tgt=six(1))
    assert ask("neighbour", bytes(asks))["status"] == BAD_HEADER


@settings(max_examples=50, deadline=None)
@given(u16, u16, st.binary(max_size=100))
def test_echo_reply_of_ipv6_agrees(ask: Ask, ident: int, number: int, data: bytes) -> None:
    one, two = "2001:2::1", "fe80::2"
    request = IPv6(src=one, dst=two) / ICMPv6EchoRequest(id=ident, seq=number, data=data)
    reply = IPv6(src=two, dst=one) / ICMPv6EchoReply(id=ident, seq=number, data=data)
    asked = bytes(Ether(src=MAC_A, dst=MAC_B) / request)
    answer = bytes(Ether(src=MAC_B, dst=MAC_A) / reply)
    assert bytes.fromhex(ask("echo", asked)["reply"]) == answer
    assert ask("echo", answer)["reply"] is None


def headers(rng: random.Random) -> list[Packet]:
    """All that stands before a transport header: tags, IP, its options or extension headers."""
    tags = rng.choice([[], [], [Dot1Q(vlan=5)], [Dot1AD(vlan=5), Dot1Q(vlan=6)]])
    offset, more = rng.choice([(0, 0)] * 4 + [(0, 1), (7, 1), (7, 0)])
    frame = [Ether(src=MAC_A, dst=MAC_B), *tags]
    if rng.random() < 0.4:
        options = rng.randrange(4) * [IPOption_NOP()]
        ends = {"src": "10.0.0.1", "dst": "10.0.0.2"}
        return [*frame, IP(**ends, frag=offset, flags=more, options=options)]
    chain = [
        IPv6ExtHdrHopByHop(options=PadN(optdata=bytes(rng.randrange(30)))),
        IPv6ExtHdrDestOpt(options=PadN(optdata=bytes(rng.randrange(30)))),
        IPv6ExtHdrRouting(addresses=rng.randrange(3) * ["2001:db8::3"], segleft=0),
    ]
    chain = rng.sample(chain, rng.randrange(4))
    if offset or more or rng.random() < 0.2:  # the last: an atomic fragment
        chain.insert(rng.randrange(len(chain) + 1), IPv6ExtHdrFragment(offset=offset, m=more))
    if rng.random() < 0.3:
        chain.append(AH(payloadlen=4, icv=bytes(12)))
    return [*frame, IPv6(src="2001:db8::1", dst="2001:db8::2"), *chain]


# Options and checksums that differ by as much: 0x0402 - 0x0101.
SACK, NOPS = ([("SAckOK", b"")], 0x1000), ([("NOP", None), ("NOP", None)], 0x1301)
COVERED = {6: 14, 17: 8}  # from which byte of a transport header on a bit may be flipped; else 2


def contents(options: list[Any], checksum: int) -> list[tuple[bytes, int]]:
    """Transport headers with payload, and what tunnels carry, each with its protocol's number."""
    tcp = TCP(sport=1, dport=2, flags="S", chksum=checksum, options=[("MSS", 1440), *options])
    tcp /= Raw(b"data")
    inner = Ether(src=MAC_A, dst=MAC_B) / IP(src="10.1.0.1", dst="10.1.0.2") / tcp
    packets = [
        (tcp, 6),
        (tcp, 6),
        (UDP(sport=1, dport=2) / Raw(b"data"), 17),
        (ICMP() / Raw(b"data"), 1),
        (GRE() / inner[IP], 47),
        (inner[IP], 4),
        (UDP(sport=1, dport=4789) / VXLAN(vni=7) / inner, 17),
    ]
    return [(bytes(packet), proto) for packet, proto in packets]


def walked(layers: list[Packet], payload: bytes, proto: int) -> tuple[bytes, dict[str, Any]]:
    """The frame of these layers as scapy writes it, and where its headers are."""
    layers[-1].setfieldval("proto" if isinstance(layers[-1], IP) else "nh", proto)
    for upper, layer in pairwise([*layers, Raw(payload)]):
        upper.add_payload(layer)
        if isinstance(layer, AH) and not isinstance(upper, IP):
            upper.nh = 51  # scapy does not fill it in
    frame = bytes(layers[0])
    at, ahead = len(frame) - len(payload), proto
    tags = sum(isinstance(layer, Dot1Q) for layer in layers)
    ip = next(layer for layer in layers if isinstance(layer, IP | IPv6))
    part = next((layer for layer in layers if isinstance(layer, IPv6ExtHdrFragment)), ip)
    first = last = True
    if isinstance(part, IP):
        first, last = part.frag == 0, part.flags == 0
    elif part is not ip:
        first, last = part.offset == 0, part.m == 0
        ahead = frame[-len(part)] if not (first and last) else proto
        if not first:
            at, proto = len(frame) - len(part.payload), ahead
    return frame, {
        "ip": 14 + 4 * tags,
        "l4": at,
        "end": len(frame),
        "proto": proto,
        "fragment_proto": ahead,
        "ipv6": isinstance(ip, IPv6),
        "fragment": not (first and last),
        "later": not first,
    }


@pytest.mark.slow
def test_a_thousand_frames_are_walked_as_scapy_reads_them() -> None:
    """Options and checksums behind extension headers were left, bits flipped in these headers."""
    lines: list[str] = []
    wanted: list[tuple[dict[str, Any], int, str]] = []
    changed = 0
    packets = list(zip(contents(*SACK), contents(*NOPS), strict=True))
    for seed in range(1000):
        rng = random.Random(seed)
        (payload, proto), (twin, _) = rng.choice(packets)
        padding = bytes(seed % 3)
        frame, want = walked(headers(rng), payload, proto)
        first = not want["later"]
        cleared = frame[: -len(twin)] + twin if first and proto == 6 else frame
        changed += cleared != frame
        covered = want["l4"] + (COVERED.get(want["proto"], 2) if first else 0)
        wanted.append((want, covered, (cleared + padding).hex()))
        text = (frame + padding).hex()
        draws = (0, 8 * (len(frame) - covered) - 1, rng.getrandbits(31))
        lines += [f"walk {text}", f"clear {text}", *(f"corrupt {text} {draw}" for draw in draws)]
    assert (
        sum(clear not in line for (*_, clear), line in zip(wanted, lines[::5], strict=True)) > 100
    )
    answers = subprocess.run(
        [DUMP], input="\n".join([*lines, ""]), capture_output=True, text=True, check=True
    ).stdout.splitlines()
    for want, covered, clear in wanted:
        walk, cleared_as, *flipped = (json.loads(answers.pop(0)) for _ in range(5))
        assert walk == want
        assert cleared_as["frame"] == clear, want
        assert all(covered <= flip["bit"] // 8 < want["end"] for flip in flipped), want
