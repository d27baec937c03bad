# SPDX-License-Identifier: BSD-3-Clause
"""Captures of links other than Ethernet, of tunnels, and of frames whose length was lost."""

from __future__ import annotations

import json
import struct

import pytest
from frames import ETHER, MS, MSS, PROGRAM, Connection, pcap
from scapy.contrib.geneve import GENEVE
from scapy.contrib.gtp import GTP_U_Header, GTPPDUSessionContainer
from scapy.contrib.mpls import MPLS
from scapy.layers.dot11 import Dot11, Dot11QoS, RadioTap
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import GRE, LLC, SNAP, CookedLinux, Dot1AD, Dot1Q, Ether
from scapy.layers.ppp import HDLC, PPP, PPPoE
from scapy.layers.vxlan import VXLAN
from scapy.packet import Packet, Raw

pytestmark = pytest.mark.skipif(not PROGRAM.exists(), reason=f"{PROGRAM} is not built")

OUTER = IP(src="198.51.100.1", dst="198.51.100.2")
OUTER6 = IPv6(src="2001:db8:1::1", dst="2001:db8:1::2")
MAC = bytes.fromhex("020000000001")


def udp(port: int, network: Packet = OUTER) -> Packet:
    """The outer headers of a tunnel over UDP."""
    return ETHER / network / UDP(sport=50000, dport=port)


def air(inner: Packet, flags: int = 1, **more: str) -> bytes:
    """A frame of data of a station, with QoS."""
    frame = Dot11(type=2, subtype=8, FCfield=flags, addr1=ETHER.dst, addr2=ETHER.src, **more)
    return bytes(frame / Dot11QoS() / LLC() / SNAP() / inner)


def wifi(inner: Packet, flags: int = 1, **more: str) -> bytes:
    """The same behind what a card says of it."""
    said = RadioTap(present="TSFT+Flags+Rate", mac_timestamp=77, Flags=0, Rate=2)
    return bytes(said) + air(inner, flags, **more)


def nflog(inner: bytes, order: str = "<") -> bytes:
    """A prefix, then the packet."""
    prefix = struct.pack(order + "HH", 4 + 6, 10) + b"weir\0\0" + bytes(2)
    return b"\2\0\0\5" + prefix + struct.pack(order + "HH", len(inner) + 4, 9) + inner


def pktap(inner: bytes) -> bytes:
    """What macOS writes before each frame: its length first, and which link type follows."""
    return struct.pack("<III", 108, 1, 1) + bytes(96) + inner


def cooked(ip: Packet) -> bytes:
    """The header of `-i any`, version 2."""
    return struct.pack(">HHIHBB8s", 0x0800 if ip.version == 4 else 0x86DD, 0, 3, 1, 0, 6, bytes(8))


# Link type, and what a packet of IP is in.
LINKS = {
    # The card took the outer tag away; the type is that of what is behind the inner one.
    "cooked, a tag left": (276, lambda ip: cooked(ip) + b"\0\5" + cooked(ip)[:2] + bytes(ip)),
    "cooked, its number like IP's": (
        276,
        lambda ip: cooked(ip) + b"\x40\5" + cooked(ip)[:2] + bytes(ip),
    ),
    "ppp": (9, lambda ip: bytes(HDLC() / PPP() / ip)),
    "ppp, compressed": (9, lambda ip: b"\x21" + bytes(ip)),
    "ppp, hdlc": (50, lambda ip: b"\xff\x03\x00\x21" + bytes(ip)),
    "cisco hdlc": (104, lambda ip: b"\x0f\x00\x08\x00" + bytes(ip)),
    "ppp of pppd": (166, lambda ip: b"\x01\x03\x00\x21" + bytes(ip)),
    "pppoe alone": (51, lambda ip: bytes(PPPoE() / PPP() / ip)),
    "frame relay": (107, lambda ip: b"\x18\x41\x03\xcc" + bytes(ip)),
    "atm": (100, lambda ip: bytes(LLC() / SNAP() / ip)),
    "mpls": (219, lambda ip: bytes(MPLS(label=7, s=1) / ip)),
    "enc": (109, lambda ip: bytes(12) + bytes(ip)),
    "pflog": (117, lambda ip: b"\x3d" + bytes(63) + bytes(ip)),
    "802.11": (105, air),
    "radiotap": (127, wifi),
    "radiotap, four addresses": (127, lambda ip: wifi(ip, 3, addr4=ETHER.src)),
    "avs": (163, lambda ip: struct.pack(">II", 0x80211001, 64) + bytes(56) + air(ip)),
    "ppi": (192, lambda ip: struct.pack("<BBHI", 0, 0, 8, 105) + air(ip)),
    "pktap": (258, lambda ip: pktap(bytes(ETHER / ip))),
    "nflog": (239, lambda ip: nflog(bytes(ip))),
    "nflog of the other byte order": (239, lambda ip: nflog(bytes(ip), ">")),
    "ip over infiniband": (242, lambda ip: bytes(40) + b"\x08\0\0\0" + bytes(ip)),
    "ip over infiniband, short": (242, lambda ip: b"\x08\0\0\0" + bytes(ip)),
    "any": (113, lambda ip: bytes(CookedLinux() / ip)),
    "any, a tag": (113, lambda ip: bytes(CookedLinux(proto=0x8100) / Dot1Q(vlan=5) / ip)),
    "any, a card's air": (113, lambda ip: bytes(CookedLinux(lladdrtype=803)) + wifi(ip)),
    "any, of now": (276, lambda ip: b"\x08\0\0\0\0\0\0\3\0\1\0\6" + bytes(8) + bytes(ip)),
    "llc": (1, lambda ip: llc(bytes(LLC() / SNAP() / ip))),
    "three tags": (1, lambda ip: bytes(TAGS / ip)),
    "two labels": (1, lambda ip: bytes(ETHER / MPLS(label=3, s=0) / MPLS(label=7, s=1) / ip)),
    "a wire in mpls": (
        1,
        lambda ip: bytes(ETHER / MPLS(label=7, s=1)) + bytes(4) + bytes(ETHER / ip),
    ),
    "pppoe": (1, lambda ip: bytes(ETHER / PPPoE() / PPP() / ip)),
    "provider's bridge": (1, lambda ip: bytes(Ether(type=0x88E7)) + bytes(4) + bytes(ETHER / ip)),
    "nsh": (1, lambda ip: bytes(Ether(type=0x894F)) + b"\0\x02\x02\x01" + bytes(4) + bytes(ip)),
    "macsec without encryption": (
        1,
        lambda ip: bytes(Ether(type=0x88E5)) + b"\x20\0\0\0\0\1" + bytes(8) + b"\x08\0" + bytes(ip),
    ),
}
TAGS = Ether(src=ETHER.src, dst=ETHER.dst) / Dot1AD(vlan=6) / Dot1Q(vlan=7) / Dot1Q(vlan=8)


def llc(body: bytes) -> bytes:
    """A length in place of an Ethernet type."""
    return bytes(12) + struct.pack(">H", len(body)) + body


def conversation() -> Connection:
    """Ten segments, each acknowledged after 20 ms; the RTT is known."""
    return Connection().open(20 * MS).talk(10, rtt=20 * MS)


def wrapped(wrap) -> list[tuple[int, bytes]]:
    """A conversation, each of whose packets of IP is in something else."""
    return [(ns, bytes(wrap(Ether(frame)[IP]))) for ns, frame in conversation().frames]


def whole(found) -> None:
    """The conversation was found, and all of it."""
    assert found.counts == {"read": 23, "tcp": 23}
    flow = found.flow
    assert (flow["src"], flow["dst"]) == ("192.0.2.1:40000", "192.0.2.2:80")
    assert (flow["sent_segs"], flow["sent_bytes"], flow["acked_bytes"]) == (10, 10_000, 10_000)
    assert (flow["rtt_samples"], flow["rtt_min_ns"], flow["rtt_max_ns"]) == (10, 20 * MS, 20 * MS)
    assert (flow["retransmits"], flow["lost_segs"], flow["uncaptured_bytes"]) == (0, 0, 0)


@pytest.mark.parametrize("name", LINKS)
def test_links(analyse, name):
    link, wrap = LINKS[name]
    whole(analyse(pcap(wrapped(wrap), link=link)))


TUNNELS = {
    "VXLAN": lambda ip: udp(4789) / VXLAN(vni=5) / ETHER / ip,
    "VXLAN over IPv6, with a tag": lambda ip: udp(8472, OUTER6) / VXLAN(vni=5) / TAGS / ip,
    "VXLAN, of several protocols": lambda ip: udp(4790) / Raw(b"\x0c\0\0\1\0\0\5\0") / ip,
    "Geneve": lambda ip: udp(6081) / GENEVE(vni=5, proto=0x6558) / ETHER / ip,
    "Geneve, with options": lambda ip: udp(6081) / Raw(b"\x02\0\x08\0\0\0\5\0" + bytes(8)) / ip,
    "GTP-U": lambda ip: udp(2152) / GTP_U_Header(teid=9, gtp_type=255) / ip,
    "GTP-U, with an extension": lambda ip: (
        udp(2152) / GTP_U_Header(teid=9, gtp_type=255) / GTPPDUSessionContainer(type=0, QFI=3) / ip
    ),
    "GRE": lambda ip: ETHER / OUTER / GRE() / ip,
    "GRE, with all it can have": lambda ip: (
        ETHER
        / OUTER
        / GRE(chksum_present=1, key_present=1, seqnum_present=1, key=4, sequence_number=8)
        / ip
    ),
    "GRE of Ethernet": lambda ip: ETHER / OUTER6 / GRE(proto=0x6558) / ETHER / ip,
    "PPTP": lambda ip: (
        ETHER / IP(proto=47) / Raw(b"\x30\x81\x88\x0b\0\0\0\1\0\0\0\2\0\0\0\3") / PPP() / ip
    ),
    "ERSPAN": lambda ip: (
        ETHER / OUTER / GRE(proto=0x88BE, seqnum_present=1) / Raw(bytes(8)) / ETHER / ip
    ),
    "ERSPAN III": lambda ip: (
        ETHER
        / OUTER
        / GRE(proto=0x22EB, seqnum_present=1)
        / Raw(bytes(11) + b"\1" + bytes(8))
        / ETHER
        / ip
    ),
    "IP in IP": lambda ip: ETHER / OUTER / ip,
    "IP in IPv6": lambda ip: ETHER / OUTER6 / ip,
    "twice": lambda ip: ETHER / OUTER / OUTER6 / GRE() / ip,
    "MPLS in UDP": lambda ip: udp(6635) / MPLS(label=7, s=1) / ip,
    "Ethernet in IP": lambda ip: ETHER / IP(proto=97) / Raw(b"\x30\0") / ETHER / ip,
    "authenticated": lambda ip: ETHER / IP(proto=51) / Raw(b"\4\4" + bytes(22)) / ip,
}


@pytest.mark.parametrize("name", TUNNELS)
def test_tunnels(analyse, name):
    frames = wrapped(TUNNELS[name])
    found = analyse(frames)
    whole(found)
    assert list(found.summary["capture"]["tunnels"].values()) == [23]


def test_ipv6_in_tunnels(analyse):
    """6in4, and Teredo."""
    c = Connection(v6=True).open()
    c.data(0)
    c.ack(1, after=10 * MS)
    inner = [(ns, Ether(frame)[IPv6]) for ns, frame in c.frames]
    for outer in (ETHER / OUTER, udp(3544)):
        found = analyse([(ns, bytes(outer / ip)) for ns, ip in inner])
        assert found.counts == {"read": 5, "tcp": 5}
        found.shows(src="[2001:db8::1]:40000", acked_bytes=MSS)


def test_a_mark_of_the_outer_header_counts(analyse):
    """RFC 6040: what leaves the tunnel is marked, if it can be."""
    c = Connection().open()
    c.data(0, tos=2)
    c.data(1)
    marked = IP(src="198.51.100.1", dst="198.51.100.2", tos=3)
    frames = [(ns, bytes(ETHER / marked / Ether(frame)[IP])) for ns, frame in c.frames]
    assert analyse(frames).flow["ce"] == 1


def test_a_port_alone_is_no_tunnel(analyse):
    """Datagrams between other programs that have such a port: they are datagrams."""
    frames = [
        (n, bytes(udp(port) / Raw(text)))
        for n, port in enumerate((4789, 6081, 2152, 3544, 4754, 6635))
        for text in (b"", b"x", b"\xff" * 5, b"\xff" * 60, b"text of some length" * 4)
    ]
    found = analyse(frames)
    assert found.counts == {"read": 30, "udp": 30}
    assert found.summary["capture"]["tunnels"] == {}


def test_a_tunnel_cut_by_the_snap_length_is_counted(analyse):
    """Before the inner TCP header ends: not in silence as UDP."""
    found = analyse(pcap(wrapped(TUNNELS["VXLAN"]), snap=96))
    assert found.counts == {"read": 23, "truncated": 23}


HIDDEN = {
    "WireGuard": (1, udp(51820) / Raw(b"\4\0\0\0" + bytes(60)), "udp"),
    "OpenVPN": (1, udp(1194) / Raw(b"\x48" * 80), "udp"),
    "IPsec ESP": (1, ETHER / IP(proto=50) / Raw(bytes(80)), "encrypted"),
    "IPsec ESP in UDP": (1, udp(4500) / Raw(b"\1" * 80), "udp"),
    "MACsec": (1, Ether(type=0x88E5) / Raw(b"\x2c" + bytes(80)), "encrypted"),
    "802.11 with a key": (127, Raw(wifi(IP(), 0x41)), "encrypted"),
}


@pytest.mark.parametrize("name", HIDDEN)
def test_what_is_encrypted_is_named(analyse, tmp_path, name):
    link, frame, heading = HIDDEN[name]
    data = pcap([(n * MS, bytes(frame)) for n in range(5)], link=link)
    tunnel = name.removesuffix(" in UDP")
    assert analyse(data, status=1).err == (
        f"weir-pcap: {tmp_path}/1.pcap: no TCP found: 5 of 5 packets are of {tunnel}, which "
        "encrypts what it carries: capture at an end of it, behind the decryption\n"
    )
    # With anything that can be read the rest is a fact beside it.
    if link == 1:
        found = analyse([*conversation().frames, (6 * 10**9, bytes(frame))])
        assert (found.counts["tcp"], found.counts[heading]) == (23, 1)
        assert found.summary["capture"]["tunnels"] == {tunnel: 1}


@pytest.mark.slow
def test_a_link_type_that_is_not_read_is_named(analyse, weir, tmp_path):
    data = pcap([(n * MS, bytes(80)) for n in range(7)], link=220)
    sentence = (
        "no TCP found: 7 of 7 packets have link type 220 (USB_LINUX_MMAPPED), which is not read: "
        "capture on an interface of Ethernet or IP\n"
    )
    assert analyse(data, status=1).err == f"weir-pcap: {tmp_path}/1.pcap: {sentence}"
    for command in ("flows", "analyze"):
        done = weir("pcap", command, tmp_path / "1.pcap")
        assert (done.status, done.out) == (1, "")
        assert sentence in done.err
    for argv in ((), ("--json",)):
        said = weir(
            "pcap", "compare", "1.pcap", "1.pcap", "--out", "both", "--force", *argv
        ).refused(1)
        assert "7 of 7 packets have link type 220 (USB_LINUX_MMAPPED)" in said


@pytest.mark.parametrize("v6", [False, True])
def test_a_length_that_was_cut_is_that_of_the_ip_header(analyse, v6):
    """The file says that the frame was as short as what was captured of it."""
    c = Connection(v6=v6).open(20 * MS).talk(10, rtt=20 * MS)
    found = analyse([(ns, frame[:90]) for ns, frame in c.frames])
    flow = found.flow
    assert found.counts == {"read": 23, "tcp": 23}
    assert (flow["sent_segs"], flow["sent_bytes"], flow["uncaptured_bytes"]) == (10, 10_000, 0)
    assert (flow["rtt_samples"], flow["rtt_max_ns"]) == (10, 20 * MS)
    assert found.summary["capture"]["lengths_from_ip"] == (10 if not v6 else 12)


@pytest.mark.parametrize("v6", [False, True])
def test_a_length_that_nothing_says_is_not_known(analyse, v6):
    """As above, of segments that a card was still to cut up: their headers have no length."""
    c = Connection(v6=v6).open(20 * MS)
    c.data(0, after=MS)
    c.ack(1, after=20 * MS)
    (ns, data), at = c.frames[3], 18 if v6 else 16
    c.frames[3] = ns, data[:at] + b"\0\0" + data[at + 2 :]
    whole = analyse(c.frames)
    assert (whole.flow["sent_segs"], whole.flow["sent_bytes"]) == (1, 1000)
    cut = analyse([(ns, frame[:90]) for ns, frame in c.frames])
    assert cut.counts == {"read": 5, "tcp": 4, "truncated": 1}
    assert [flow["sent_segs"] for flow in cut.flows] in ([], [0])


def test_a_length_that_is_known_is_not_replaced(analyse):
    """The frame was 74 bytes on the wire, of which 60 were captured; IP says 2000."""
    frame = bytes(ETHER / IP(len=2000, proto=6) / Raw(bytes(40)))
    head = struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 65535, 1)
    record = struct.pack("<IIII", 1, 0, 60, 74) + frame[:60]
    found = analyse(head + record)
    assert found.counts == {"read": 1, "malformed": 1}
    assert found.summary["capture"]["lengths_from_ip"] == 0


def test_datagrams_are_said_where_there_is_no_tcp(weir, tmp_path):
    frames = [(n * MS, bytes(ETHER / OUTER / UDP() / Raw(b"x"))) for n in range(7)]
    (tmp_path / "x.pcap").write_bytes(pcap(frames))
    done = weir("pcap", "flows", "x.pcap")
    assert (done.status, done.out) == (0, "no TCP flows: of 7 packets 7 are UDP\n")
    assert json.loads(weir("pcap", "flows", "x.pcap", "--json").out) == []
