# SPDX-License-Identifier: BSD-3-Clause
"""Runs in a guest: sends one packet of each kind, each at a time of its own, to the nanosecond.

The guest's clock is 10 s ahead of the run's; 100 ms are between two packets.
"""

import ctypes
import socket
import struct
import sys

NOT_BEFORE_S = 10
PEER = sys.argv[1]
MONOTONIC, ABSOLUTE = 1, 1
SENDER_MAC, PEER_MAC = bytes([2, 0, 0, 0, 0, 1]), bytes([2, 0, 0, 0, 0, 2])


def at(tenths: int) -> None:
    """Sleeps until then."""
    time = (ctypes.c_long * 2)(NOT_BEFORE_S + tenths // 10, tenths % 10 * 100_000_000)
    if ctypes.CDLL(None).clock_nanosleep(MONOTONIC, ABSOLUTE, time, None) != 0:
        sys.exit("clock_nanosleep failed")


def checksum(data: bytes) -> int:
    """RFC 1071."""
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    total = (total & 0xFFFF) + (total >> 16)
    return ~(total + (total >> 16)) & 0xFFFF


def echo(payload: bytes) -> bytes:
    """An ICMP echo request."""
    head = struct.pack("!BBHHH", 8, 0, 0, 1, 1)
    return head[:2] + struct.pack("!H", checksum(head + payload)) + head[4:] + payload


udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
icmp = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
sctp = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_SCTP)
tcp = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
tcp.setblocking(False)
ether = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
ether.bind(("eth0", 0))

at(1)  # nobody listens: an ICMP error comes back
udp.sendto(bytes(100), (PEER, 7))
at(2)
icmp.sendto(echo(bytes(100)), (PEER, 0))
at(3)  # the peer's kernel has no SCTP: another error
sctp.sendto(struct.pack("!HHII", 9, 9, 0, 0) + bytes(88), (PEER, 0))
at(4)
tcp.connect_ex((PEER, 5001))
at(5)
ip6 = struct.pack("!IHBB", 6 << 28, 100, socket.IPPROTO_UDP, 64)
ends = socket.inet_pton(socket.AF_INET6, "fd00::1") + socket.inet_pton(socket.AF_INET6, "fd00::2")
ether.send(
    PEER_MAC + SENDER_MAC + b"\x86\xdd" + ip6 + ends + struct.pack("!4H", 9, 9, 100, 0) + bytes(92)
)
at(6)  # three fragments
udp.sendto(bytes(3000), (PEER, 7))
at(9)
