# SPDX-License-Identifier: BSD-3-Clause
"""Measures a packet of a capture in weir-pcap, beside tcptrace, tshark and scapy.

All captures are made first: headers of 10 Gbit/s runs. Then come rounds: weir-pcap reads each
capture, and the others read the beginning of one of them, as much as they can manage. What is
compared is processor time per packet, and the ratios within a round. Each program also reads a
capture of one packet, and what that costs is taken off: the others are given few packets, and their
start must not count against them.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from rich.console import Console

from weir import bootstrap
from weir.base import programs, terminal, units
from weir.base.errors import UserError
from weir.base.page import Table
from weir.bench.rounds import rounds

CONFIG = bootstrap.ROOT / "configs/quickstart.yaml"
PACKETS_PER_S = 1.6e6  # of the config: segments and an ACK for each
# A flow has at most so much in flight, and the buffer holds that of all flows. So nothing is lost,
# with few flows and with many: the captures differ in their flows alone.
WINDOWS_BYTES = 50_000_000  # twice the bandwidth-delay product
WINDOW_BYTES_MIN = 7300  # five segments
PEERS_FLOWS = 1000  # the peers read the capture with the number of flows nearest to this
OWN = "weir-pcap"
COLUMNS = ("flows", "packets", "program", "per packet", "from", "to", "million/s", "memory")
TARGET_COLUMNS = ("asked for", "target", "found", "from", "to", "met")
SCAPY = """
import sys
from scapy.utils import PcapReader
from scapy.layers import inet, l2
for packet in PcapReader(sys.argv[1]):
    packet[inet.TCP].seq if inet.TCP in packet else None
"""
SECTION, ENHANCED = 0x0A0D0D0A, 6  # types of pcapng blocks

Cost = dict[str, float]  # one program on one capture: cpu_s, memory_bytes


@dataclass(frozen=True)
class Reader:
    """A program that reads a capture; `packets` is how many it is given at most."""

    name: str
    argv: Callable[[Path, Path], Sequence[str]]  # of the capture, and of a folder of its own
    packets: int | None = None
    package: str | None = None


READERS = (
    Reader(
        OWN,
        lambda file, out: [
            *(str(programs.find_program("pcap")), "analyze", str(file), "--interval", "1s"),
            *("--out", str(out / "run"), "--force"),
        ],
    ),
    Reader(
        "tcptrace -l -r",
        lambda file, out: ["tcptrace", "-l", "-r", str(file)],
        2_000_000,
        "tcptrace",
    ),
    Reader(
        "tshark -2, tcp.analysis",
        lambda file, out: [
            *("tshark", "-2", "-r", str(file), "-T", "fields", "-e", "tcp.analysis.flags"),
            *("-e", "tcp.analysis.ack_rtt"),
        ],
        100_000,
        "tshark",
    ),
    Reader("scapy", lambda file, out: [sys.executable, "-c", SCAPY, str(file)], 20_000),
)


@dataclass(frozen=True)
class Target:
    """A figure that is asked for, at least `value` if `least`, or else at most."""

    name: str
    value: float
    least: bool
    found: Callable[[Measured], list[float]]  # one per round; none: not measured

    def row(self, measured: Measured) -> dict[str, Any] | None:
        """Returns the figure's median and spread, and whether the median is good enough."""
        found = self.found(measured)
        if not found:
            return None
        middle = median(found)
        return {
            "asked": self.name,
            "target": self.value,
            "least": self.least,
            "found": middle,
            "min": min(found),
            "max": max(found),
            "met": middle >= self.value if self.least else middle <= self.value,
        }


@dataclass
class Measured:
    """Costs by number of flows and program, and the number of packets that each was given."""

    packets: dict[tuple[int, str], int]
    costs: dict[tuple[int, str], list[Cost]]
    start: dict[str, list[Cost]]  # on one packet

    def flows(self) -> list[int]:
        return sorted({flows for flows, _ in self.costs})

    def ns(self, flows: int, name: str) -> list[float]:
        """Returns processor time per packet in each round, without what one packet costs."""
        costs, packets = self.costs.get((flows, name), []), self.packets.get((flows, name), 0)
        return [
            max(cost["cpu_s"] - start["cpu_s"], 0) * 1e9 / max(packets - 1, 1)
            for cost, start in zip(costs, self.start[name], strict=bool(costs))
        ]

    def times(self, name: str) -> list[float]:
        """Returns a packet's cost in each round, over what it costs weir-pcap there."""
        flows = peers_flows(self.flows())
        own = self.ns(flows, OWN)
        theirs = self.ns(flows, name) if name in self.start else []
        return [one / mine for one, mine in zip(theirs, own, strict=False) if mine > 0]

    def growth(self) -> list[float]:
        """Returns the cost with the most flows over that with the fewest, in each round."""
        all_flows = self.flows()
        if len(all_flows) < 2:
            return []
        few, many = self.ns(all_flows[0], OWN), self.ns(all_flows[-1], OWN)
        return [b / a for a, b in zip(few, many, strict=True) if a > 0]

    def per_second(self) -> list[float]:
        return [1e9 / ns for ns in self.ns(peers_flows(self.flows()), OWN) if ns > 0]

    def memory(self) -> list[float]:
        """Returns the largest memory over all captures in each round, in MB."""
        rounds = zip(*(self.costs[flows, OWN] for flows in self.flows()), strict=True)
        return [max(cost["memory_bytes"] for cost in costs) / 1e6 for costs in rounds]


TARGETS = (
    Target("times tcptrace's speed", 3, True, lambda m: m.times("tcptrace -l -r")),
    Target("times tshark's speed", 100, True, lambda m: m.times("tshark -2, tcp.analysis")),
    Target("times scapy's speed", 1000, True, lambda m: m.times("scapy")),
    Target("memory in MB", 500, False, Measured.memory),
    Target("cost of most flows to fewest", 1.5, False, Measured.growth),
    Target("packets per second", 10e6, True, Measured.per_second),
)


def peers_flows(flows: Sequence[int]) -> int:
    """Returns the number of flows in the capture that the other programs read."""
    return min(flows, key=lambda count: abs(count - PEERS_FLOWS))


def measure_all(
    flows: Sequence[int],
    packets: int,
    repeat: int,
    console: Console,
    readers: Sequence[Reader] = READERS,
) -> dict[str, Any]:
    """Makes captures and measures the readers: a row for each capture and program, and targets."""
    missing = [r.name for r in readers if r.package and shutil.which(r.name.split()[0]) is None]
    for name in missing:
        console.print(f"{name} is not installed and left out")
    readers = [reader for reader in readers if reader.name not in missing]
    with tempfile.TemporaryDirectory(prefix="weir-bench-") as temporary:
        captures = {}
        for count in sorted(set(flows)):
            console.print(f"{count:,} flows: making a capture")
            folder = Path(temporary) / str(count)
            folder.mkdir()
            captures[count] = capture(folder, count, packets)
        measured = measure(captures, Path(temporary), readers, repeat, console)
    rows = [row(measured, *key) for key in sorted(measured.costs, key=lambda key: key[0])]
    targets = [found for target in TARGETS if (found := target.row(measured)) is not None]
    return {"rows": rows, "targets": targets}


def capture(folder: Path, flows: int, packets: int) -> Path:
    """Makes a capture of the headers of at least so many packets of a 10 Gbit/s run."""
    file = folder / "run.pcapng"
    window = max(WINDOW_BYTES_MIN, WINDOWS_BYTES // flows)
    argv = [
        *(str(programs.find_program("sim")), str(CONFIG), "--out", str(folder / "sim"), "--pcap"),
        *(str(file), "-o", f"flows.0.count={flows}", "--duration"),
        *(f"{1.5 + packets / PACKETS_PER_S:.1f}s", "-o", "warmup=1s", "-o", "telemetry.level=0"),
        *("-o", f"paths.forward.link.queue.fifo.limit={flows * window * 11 // 10}B"),
        *("-o", f"flows.0.rwnd={window}B", "-o", "flows.0.rto_min=10s"),
    ]
    done = subprocess.run(argv, capture_output=True, text=True)
    if done.returncode != 0:
        raise UserError(f"weir-sim could not make the capture: {done.stderr.strip()}", 1)
    return file


def measure(
    captures: dict[int, Path],
    folder: Path,
    readers: Sequence[Reader],
    repeat: int,
    console: Console,
) -> Measured:
    """Measures the programs in rounds over all captures."""
    theirs = peers_flows(list(captures))
    one, _ = first(captures[theirs], folder / "one.pcapng", 1)
    files: dict[tuple[int, str], Path] = {}
    found = Measured({}, {}, {reader.name: [] for reader in readers})
    for count, whole in captures.items():
        for reader in readers:
            if reader.name != OWN and count != theirs:
                continue
            key = (count, reader.name)
            files[key], found.packets[key] = first(
                whole, folder / f"{count}-{reader.packets}.pcapng", reader.packets
            )
            found.costs[key] = []
    by_name = {reader.name: reader for reader in readers}
    for number in rounds(repeat, console):
        for name, reader in by_name.items():
            found.start[name].append(run_once(reader.argv(one, folder)))
        for (count, name), file in files.items():
            console.print(f"round {number} of {repeat}, {count:,} flows: {name}")
            found.costs[count, name].append(run_once(by_name[name].argv(file, folder)))
    return found


def row(measured: Measured, flows: int, name: str) -> dict[str, Any]:
    """Returns a program's figures on a capture."""
    ns, costs = measured.ns(flows, name), measured.costs[flows, name]
    return {
        "flows": flows,
        "packets": measured.packets[flows, name],
        "program": name,
        "ns_per_packet": median(ns),
        "ns_per_packet_min": min(ns),
        "ns_per_packet_max": max(ns),
        "memory_bytes": max(cost["memory_bytes"] for cost in costs),
        "rounds": costs,
    }


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


def counted(file: Path) -> int:
    """Returns the number of packets in a capture, as weir-pcap counts them."""
    with tempfile.TemporaryDirectory(prefix="weir-bench-") as out:
        argv = [str(programs.find_program("pcap")), "analyze", str(file), "--level", "0", "--json"]
        done = subprocess.run([*argv, "--out", f"{out}/run"], capture_output=True, check=True)
    return int(json.loads(done.stdout)["capture"]["packets"])


def run_once(argv: Sequence[str]) -> Cost:
    """Runs a program and returns its processor time and memory."""
    process = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise UserError(f"{argv[0]} failed with status {process.returncode}", 1)
    return {"cpu_s": used.ru_utime + used.ru_stime, "memory_bytes": used.ru_maxrss * 1024.0}


def medians(found: dict[str, Any]) -> dict[str, float]:
    rows = [row for row in found["rows"] if row["program"] == OWN]
    return {f"{row['flows']:,} flows": row["ns_per_packet"] for row in rows}


def show(found: dict[str, Any], out: Console) -> None:
    """Prints the table of programs, and that of what is asked for."""
    cells = [
        [
            units.count(row["flows"]),
            units.count(row["packets"]),
            row["program"],
            units.time(row["ns_per_packet"]),
            units.time(row["ns_per_packet_min"]),
            units.time(row["ns_per_packet_max"]),
            units.number(1e3 / row["ns_per_packet"]) if row["ns_per_packet"] > 0 else "",
            units.size(row["memory_bytes"]),
        ]
        for row in found["rows"]
    ]
    terminal.print_table(out, Table(COLUMNS, cells, left=0))
    out.print(
        "Processor time per packet: the median of the rounds, the least and the most. All captures"
        " have the same length in packets: with more flows, each flow has fewer packets to share"
        " its handshake and its records.\n",
        soft_wrap=True,
    )
    targets = [
        [
            target["asked"],
            f"{'>=' if target['least'] else '<='} {units.number(target['target'])}",
            *(units.number(target[name]) for name in ("found", "min", "max")),
            "yes" if target["met"] else "no",
        ]
        for target in found["targets"]
    ]
    terminal.print_table(out, Table(TARGET_COLUMNS, targets, left=1))
