# SPDX-License-Identifier: BSD-3-Clause
"""Captures for weir-pcap: connections whose every packet a test sets, and their analysis."""

from __future__ import annotations

import os
import struct
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from scapy.layers.inet import IP, TCP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether
from scapy.packet import Packet, Raw
from weir.analysis import captures, folder

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = Path(os.environ.get("WEIR_BUILD", ROOT / "build")) / "tools/pcap/weir-pcap"
US, MS = 1_000, 1_000_000
MSS = 1000
# With addresses, or scapy would ask the network for them.
ETHER = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02")
NS_MAGIC, US_MAGIC = 0xA1B23C4D, 0xA1B2C3D4

Frame = tuple[int, bytes]  # time in ns, bytes


def pcap(
    frames: list[Frame],
    *,
    snap: int = 65535,
    magic: int = NS_MAGIC,
    order: str = "<",
    link: int = 1,
) -> bytes:
    """A pcap file, of Ethernet frames if nothing else is said."""
    unit = 1 if magic == NS_MAGIC else 1000
    parts = [struct.pack(order + "IHHiIII", magic, 2, 4, 0, 0, snap, link)]
    for ns, frame in frames:
        head = (ns // 10**9, ns % 10**9 // unit, min(snap, len(frame)), len(frame))
        parts.append(struct.pack(order + "IIII", *head) + frame[:snap])
    return b"".join(parts)


@dataclass
class Found:
    """What weir-pcap made of a capture."""

    summary: dict[str, Any]
    flows: list[dict[str, Any]]
    segments: list[dict[str, Any]]
    err: str

    @property
    def flow(self) -> dict[str, Any]:
        """The only flow."""
        assert len(self.flows) == 1
        return self.flows[0]

    def shows(self, **known: Any) -> None:
        """Asserts what is known of the only flow."""
        assert {name: self.flow[name] for name in known} == known

    @property
    def counts(self) -> dict[str, int]:
        """The packets, by what became of them; those that are 0 left out."""
        return {name: n for name, n in self.summary["ledger"]["capture"].items() if n}


def analyser(tmp_path: Path) -> Callable[..., Found]:
    """What the fixture `analyse` is: frames, or the bytes of a file, and options."""
    runs = 0

    def call(capture: list[Frame] | bytes, *options: str, status: int = 0) -> Found:
        nonlocal runs
        runs += 1
        path, out = tmp_path / f"{runs}.pcap", tmp_path / f"run{runs}"
        path.write_bytes(capture if isinstance(capture, bytes) else pcap(capture))
        argv = [PROGRAM, "analyze", path, "--out", out, "--level", "3", *options]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=60)
        assert done.returncode == status, done.stderr
        if status != 0:
            return Found({}, [], [], done.stderr)
        loaded = folder.load(out)
        assert loaded.summary.ledger.balanced
        segments = loaded.frame("segments")
        return Found(
            loaded.summary_json,
            captures.as_dicts(captures.flows(loaded)),
            [] if segments is None else segments.to_dicts(),
            done.stderr,
        )

    return call


@dataclass
class Connection:
    """Two ends that talk; each call is one packet at a time that the test sets."""

    isn: tuple[int, int] = (1000, 500_000)
    port: int = 40000
    v6: bool = False
    timestamps: bool = True
    now_ns: int = 5 * 10**9
    frames: list[Frame] = field(default_factory=list)
    ip_id: int = 1
    extensions: list[Packet] = field(default_factory=list)

    def packet(self, end: int, tcp: TCP, payload: int = 0, **ip: int) -> Packet:
        """One packet of an end, 0 the client, 1 the server."""
        addresses = ("2001:db8::1", "2001:db8::2") if self.v6 else ("192.0.2.1", "192.0.2.2")
        src, dst = addresses if end == 0 else addresses[::-1]
        network: Packet = IPv6(src=src, dst=dst) if self.v6 else IP(src=src, dst=dst, **ip)
        for extension in self.extensions:
            network /= extension.copy()
        ports = (self.port, 80) if end == 0 else (80, self.port)
        tcp.sport, tcp.dport = ports
        return ETHER / network / tcp / Raw(bytes(payload))

    def send(
        self, end: int, seq: int, ack: int, payload: int = 0, flags: str = "A", *,
        after: int = 0, window: int = 60000, sack: tuple[int, ...] = (),
        options: list[Any] | None = None,
        tsval: int | None = None, tsecr: int = 0, ip_id: int | None = None, tos: int = 0,
    ) -> None:  # fmt: skip
        """Numbers count from the ends' first ones; `after` in ns since the packet before."""
        self.now_ns += after
        if ip_id is None:
            ip_id = self.ip_id
            self.ip_id += 1
        said = list(options or [])
        if self.timestamps:
            said.append(("Timestamp", (self.now_ns // MS if tsval is None else tsval, tsecr)))
        if sack:
            base = self.isn[1 - end]
            said.append(("SAck", tuple((base + edge) % 2**32 for edge in sack)))
        tcp = TCP(
            seq=(self.isn[end] + seq) % 2**32,
            ack=(self.isn[1 - end] + ack) % 2**32 if "A" in flags else 0,
            flags=flags, window=window, options=said,
        )  # fmt: skip
        ip = {} if self.v6 else {"id": ip_id, "tos": tos}
        packet = self.packet(end, tcp, payload, **ip)
        self.frames.append((self.now_ns, bytes(packet)))

    def open(self, rtt: int = 10 * MS) -> Connection:
        """The handshake, as a client's host sees it."""
        syn = [("MSS", MSS + 12 * self.timestamps), ("SAckOK", b""), ("WScale", 2)]
        self.send(0, 0, 0, flags="S", options=syn)
        self.send(1, 0, 1, flags="SA", options=syn, after=rtt)
        self.send(0, 1, 1)
        return self

    def data(self, *numbers: int, **more: Any) -> None:
        """The client's segments with those numbers."""
        for number in numbers:
            self.send(0, 1 + number * MSS, 1, MSS, "PA", **more)

    def ack(self, number: int, after: int = 0, **more: Any) -> None:
        """The server has all segments before that one."""
        self.send(1, 1, 1 + number * MSS, after=after, **more)

    def talk(self, count: int, after: int = MS, rtt: int = 10 * MS) -> Connection:
        """So many segments, each acknowledged a round trip later, before the next."""
        for number in range(count):
            self.data(number, after=after)
            self.ack(number + 1, after=rtt, tsecr=self.now_ns // MS)
        return self

    def sacked(self, *numbers: int) -> tuple[int, ...]:
        """SACK edges from numbers of segments."""
        return tuple(1 + number * MSS for number in numbers)
