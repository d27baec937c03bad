# SPDX-License-Identifier: BSD-3-Clause
"""Measures a packet of a capture in weir-pcap, beside tcptrace, tshark and scapy.

All captures are made first: headers of 10 Gbit/s runs. Then come rounds: weir-pcap reads each
capture, and the others read the beginning of one of them, as much as they can manage. What is
compared is processor time per packet, and the ratios within a round. Each program also reads a
capture of one packet, and what that costs is taken off: the others are given few packets, and their
start must not count against them.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from msgspec import Struct

from weir import bootstrap
from weir.base import foreign, units
from weir.base.errors import UserError
from weir.base.page import Column, Status, Table
from weir.base.programs import find_program
from weir.bench import sim
from weir.bench.rounds import Result, Rounds

CONFIG = bootstrap.ROOT / "configs/quickstart.yaml"
PACKETS_PER_S = 1.6e6  # of the config: segments and an ACK for each
STARTS_PER_S = 1e5  # flows
FULL_S = 0.3  # until the link is full, even by one flow
# A flow has at most so much in flight, and the buffer holds that of all flows. So nothing is lost,
# with few flows and with many: the captures differ in their flows alone.
WINDOWS_BYTES = 50_000_000  # twice the bandwidth-delay product
WINDOW_BYTES_MIN = 7300  # five segments
PEERS_FLOWS = 1000  # the peers read the capture with the number of flows nearest to this
OWN = "weir-pcap"
COLUMNS = (
    Column("flows", unit=units.count),
    Column("packets", unit=units.count),
    Column("program"),
    Column("per packet", "ns_per_packet", units.time),
    Column("from", "ns_per_packet_min", units.time),
    Column("to", "ns_per_packet_max", units.time),
    Column("million/s", lambda row: 1e3 / row.ns_per_packet if row.ns_per_packet > 0 else ""),
    Column("memory", "memory_bytes", units.size),
)
TARGET_COLUMNS = (
    Column("asked for", "asked"),
    Column("target", lambda row: f"{'>=' if row.least else '<='} {units.number(row.target)}"),
    *(Column("found"), Column("from", "min"), Column("to", "max")),
    Column("met", lambda row: "yes" if row.met else "no"),
)
SCAPY = """
import sys
from scapy.utils import PcapReader
from scapy.layers import inet, l2
for packet in PcapReader(sys.argv[1]):
    packet[inet.TCP].seq if inet.TCP in packet else None
"""
SECTION, ENHANCED = 0x0A0D0D0A, 6  # types of pcapng blocks


@dataclass(frozen=True)
class Reader:
    """A program that reads a capture, which is given `packets` at most.

    `slower`: how many times weir-pcap should be as fast.
    """

    name: str
    argv: Callable[[Path, Path], Sequence[str]]  # of the capture, and of a folder of its own
    packets: int | None = None
    slower: float = 1
    package: str | None = None

    @property
    def asked(self) -> str:
        return f"times {self.name.split()[0].rstrip(',')}'s speed"


READERS = (
    Reader(OWN, lambda file, out: [*analyze(file, out), "--interval", "1s"]),
    Reader(
        "tcptrace -l -r", lambda f, _: ["tcptrace", "-l", "-r", str(f)], 2_000_000, 3, "tcptrace"
    ),
    Reader(
        "tshark -2, tcp.analysis",
        lambda file, _: [
            *("tshark", "-2", "-r", str(file), "-T", "fields", "-e", "tcp.analysis.flags"),
            *("-e", "tcp.analysis.ack_rtt"),
        ],
        *(100_000, 100, "tshark"),
    ),
    Reader("scapy", lambda file, _: [sys.executable, "-c", SCAPY, str(file)], 20_000, 1000),
)


class Cost(Struct):
    """Resources that a program used."""

    cpu_s: float
    memory_bytes: float


class Row(Struct):
    """Figures of a program on a capture: the median of the rounds, the least and the most."""

    flows: int
    packets: int
    program: str
    ns_per_packet: float
    ns_per_packet_min: float
    ns_per_packet_max: float
    memory_bytes: float
    rounds: list[Cost]


class Target(Struct):
    """A figure that is asked for, at least `target` if `least`, or else at most."""

    asked: str
    target: float
    least: bool
    found: float
    min: float
    max: float
    met: bool


class Captures(Result):
    """The result of `weir bench pcap`."""

    rows: list[Row]
    targets: list[Target]

    def medians(self) -> dict[str, float]:
        own = [row for row in self.rows if row.program == OWN]
        return {f"{row.flows:,} flows": row.ns_per_packet for row in own}

    def parts(self) -> Iterator[Table | Status | str]:
        """Yields the table and its notes."""
        yield Table(COLUMNS, self.rows, left=0)
        yield (
            "Processor time per packet: the median of the rounds, the least and the most. All"
            " captures have about the same length in packets: with more flows, each flow has fewer"
            " packets to share its handshake and its records."
        )
        yield Table(TARGET_COLUMNS, self.targets)


@dataclass
class Readings:
    """Costs of a program on a capture in each round, and on one packet of it."""

    reader: Reader
    flows: int
    file: Path
    packets: int
    costs: list[Cost] = field(default_factory=list)
    starts: list[Cost] = field(default_factory=list)

    def ns(self) -> list[float]:
        """Returns processor time per packet in each round, without what one packet costs."""
        return [
            max(cost.cpu_s - start.cpu_s, 0) * 1e9 / max(self.packets - 1, 1)
            for cost, start in zip(self.costs, self.starts, strict=True)
        ]

    def row(self) -> Row:
        ns, memory = self.ns(), max(cost.memory_bytes for cost in self.costs)
        figures = (median(ns), min(ns), max(ns), memory, self.costs)
        return Row(self.flows, self.packets, self.reader.name, *figures)


def peers_flows(flows: Sequence[int]) -> int:
    """Returns the number of flows in the capture that the other programs read."""
    return min(flows, key=lambda count: abs(count - PEERS_FLOWS))


def targets(readings: Sequence[Readings]) -> Iterator[Target]:
    """Yields what is asked for and could be measured."""
    own = [one for one in readings if one.reader.name == OWN]
    theirs = peers_flows([one.flows for one in own])
    ns = next(one.ns() for one in own if one.flows == theirs)

    def over(above: Sequence[float], below: Sequence[float]) -> list[float]:
        return [a / b for a, b in zip(above, below, strict=True) if b > 0]

    peers = [one for one in readings if one.reader.name != OWN]
    costs = zip(*(one.costs for one in own), strict=True)
    memory = [max(cost.memory_bytes for cost in each) / 1e6 for each in costs]
    growth = over(own[-1].ns(), own[0].ns()) if len(own) > 1 else []
    for name, target, least, found in (
        *((one.reader.asked, one.reader.slower, True, over(one.ns(), ns)) for one in peers),
        ("memory in MB", 500, False, memory),
        ("cost of most flows to fewest", 1.5, False, growth),
        ("packets per second", 10e6, True, over([1e9] * len(ns), ns)),
    ):
        if found:
            middle = median(found)
            met = middle >= target if least else middle <= target
            yield Target(name, target, least, middle, min(found), max(found), met)


def measure(
    flows: Sequence[int], packets: int, rounds: Rounds, readers: Sequence[Reader] = READERS
) -> Captures:
    """Makes captures and measures the readers; alone: weir-pcap only."""
    if rounds.alone:
        readers = readers[:1]
    for reader in readers:
        if reader.package and shutil.which(reader.package) is None:
            rounds.screen.print(f"{reader.name} is not installed and left out")
            readers = [one for one in readers if one is not reader]
    readings = []
    with tempfile.TemporaryDirectory(prefix="weir-bench-") as temporary:
        folder = Path(temporary)
        for count in sorted(flows):
            rounds.screen.print(f"{count:,} flows: making a capture")
            whole = capture(folder / str(count), count, packets)
            for reader in readers:
                if reader.name == OWN or count == peers_flows(flows):
                    file = folder / f"{count}-{reader.packets}.pcapng"
                    readings.append(Readings(reader, count, *first(whole, file, reader.packets)))
        one, _ = first(whole, folder / "one.pcapng", 1)
        for number in rounds:
            for reading in readings:
                reader = reading.reader
                rounds.say(number, f"{reading.flows:,} flows: {reader.name}")
                reading.starts.append(run_once(reader.argv(one, folder)))
                reading.costs.append(run_once(reader.argv(reading.file, folder)))
    return Captures([reading.row() for reading in readings], list(targets(readings)))


def capture(folder: Path, flows: int, packets: int) -> Path:
    """Makes a capture of the headers of a 10 Gbit/s run: its start, and so many packets."""
    folder.mkdir(exist_ok=True)
    file = folder / "run.pcapng"
    window = max(WINDOW_BYTES_MIN, WINDOWS_BYTES // flows)
    start_s = flows / STARTS_PER_S
    values = {
        "warmup": "0s",
        "telemetry.level": "0",
        "paths.forward.link.queue.fifo.limit": f"{flows * window * 11 // 10}B",
        "flows.0.count": str(flows),
        "flows.0.jitter": f"{start_s}s",
        "flows.0.rwnd": f"{window}B",
        "flows.0.rto_min": "10s",
    }
    overrides = [word for name, value in values.items() for word in ("-o", f"{name}={value}")]
    duration_s = f"{start_s + FULL_S + packets / PACKETS_PER_S:.3f}s"
    argv = [find_program("sim"), CONFIG, "--out", folder / "sim", "--pcap", file]
    sim.child([*argv, "--duration", duration_s, *overrides])
    return file


def first(whole: Path, file: Path, packets: int | None) -> tuple[Path, int]:
    """Returns a file of a capture's first packets, or of all of it, and the number of packets."""
    if packets is None:
        return whole, counted(whole)
    count, begins = 0, True
    with whole.open("rb") as source, file.open("wb") as to:
        while count < packets and len(head := source.read(8)) == 8:
            kind, size = (int.from_bytes(head[i : i + 4], "little") for i in (0, 4))
            if size < 12 or (begins and kind != SECTION):
                raise UserError(f"{whole}: not a pcapng file as weir-sim writes it", 1)
            begins = False
            to.write(head + source.read(size - 8))
            count += kind == ENHANCED
    return file, count


class Counts(Struct):
    """A part of weir-pcap's summary."""

    packets: int


class Analysis(Struct):
    """The part of weir-pcap's summary that is read."""

    capture: Counts


def analyze(file: Path, folder: Path) -> list[str]:
    """Returns a command that reads a capture into a run folder below `folder`."""
    argv = [find_program("pcap"), "analyze", file, "--out", folder / "run", "--force"]
    return [str(arg) for arg in argv]


def counted(file: Path) -> int:
    """Returns the number of packets in a capture, as weir-pcap counts them."""
    out, _, _ = sim.child([*analyze(file, file.parent), "--level", "0", "--json"])
    return foreign.decode(out.encode(), Analysis, OWN).capture.packets


def run_once(argv: Sequence[str]) -> Cost:
    """Runs a program and returns its processor time and memory."""
    process = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise UserError(f"{argv[0]} failed with status {process.returncode}", 1)
    return Cost(used.ru_utime + used.ru_stime, used.ru_maxrss * 1024.0)
