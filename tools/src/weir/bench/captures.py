# SPDX-License-Identifier: BSD-3-Clause
"""What a packet of a capture costs weir-pcap, beside tcptrace, tshark, scapy and reading alone.

All programs read the same capture, one after the other, as often as asked for. What is compared is
processor time per packet, and the ratios within a round: their median.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from rich.console import Console

from weir import bootstrap, runner, summary, units
from weir.errors import UserError

CONFIG = bootstrap.ROOT / "configs/quickstart.yaml"
PACKETS_PER_S = 1.6e6  # of the config: segments and an ACK for each
BUFFER_BYTES_PER_FLOW = 7500  # so that flows are not driven into timeouts: five segments
BUFFER_BYTES_MIN = 25_000_000
COLUMNS = ("flows", "packets", "program", "per packet", "million/s", "memory", "times weir-pcap")
SCAPY = """
import sys
from scapy.utils import PcapReader
from scapy.layers import inet, l2
for packet in PcapReader(sys.argv[1]):
    packet[inet.TCP].seq if inet.TCP in packet else None
"""


@dataclass(frozen=True)
class Reader:
    """A program that reads a capture; `packets` is how many it is given at most."""

    name: str
    argv: Callable[[Path, Path], Sequence[str]]  # of the capture, and of a folder of its own
    packets: int | None = None
    package: str | None = None


READERS = (
    Reader(
        "weir-pcap",
        lambda file, out: [
            *(str(runner.find_program("pcap")), "analyze", str(file), "--interval", "1s"),
            *("--out", str(out / "run"), "--force"),
        ],
    ),
    Reader("capinfos", lambda file, out: ["capinfos", "-c", str(file)], package="tshark"),
    Reader(
        "tcptrace -l -r", lambda file, out: ["tcptrace", "-l", "-r", str(file)], package="tcptrace"
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
    Reader("scapy", lambda file, out: [sys.executable, "-c", SCAPY, str(file)], 10_000),
)


def measure_all(
    flows: Sequence[int], packets: int, repeat: int, console: Console
) -> list[dict[str, Any]]:
    """A row per number of flows and program."""
    missing = [r.name for r in READERS if r.package and shutil.which(r.name.split()[0]) is None]
    for name in missing:
        console.print(f"{name} is not installed and left out")
    rows = []
    with tempfile.TemporaryDirectory(prefix="weir-bench-") as temporary:
        for count in flows:
            folder = Path(temporary) / str(count)
            folder.mkdir()
            console.print(f"{count:,} flows: making a capture")
            whole = capture(folder, count, packets)
            readers = [r for r in READERS if r.name not in missing]
            rows += measure(whole, folder, count, readers, repeat, console)
            shutil.rmtree(folder)
    return rows


def capture(folder: Path, flows: int, packets: int) -> Path:
    """Headers of so many packets of a 10 Gbit/s run, at least."""
    file = folder / "run.pcap"
    buffer = max(BUFFER_BYTES_MIN, flows * BUFFER_BYTES_PER_FLOW)
    argv = [
        *(str(runner.find_program("sim")), str(CONFIG), "--out", str(folder / "sim"), "--pcap"),
        *(str(file), "-o", f"flows.0.count={flows}", "--duration"),
        *(f"{1.5 + packets / PACKETS_PER_S:.1f}s", "-o", "warmup=1s", "-o", "telemetry.level=0"),
        *("-o", f"paths.forward.link.queue.fifo.limit={buffer}B"),
    ]
    done = subprocess.run(argv, capture_output=True, text=True)
    if done.returncode != 0:
        raise UserError(f"weir-sim could not make the capture: {done.stderr.strip()}", 1)
    return file


def measure(
    whole: Path, folder: Path, flows: int, readers: Sequence[Reader], repeat: int, console: Console
) -> list[dict[str, Any]]:
    """The programs in rounds over one capture."""
    found: dict[str, list[dict[str, float]]] = {reader.name: [] for reader in readers}
    files = {reader.name: first(whole, folder, reader.packets) for reader in readers}
    for number in range(repeat):
        for reader in readers:
            console.print(f"{flows:,} flows, round {number + 1}: {reader.name}")
            file, packets = files[reader.name]
            cost = run_once(reader.argv(file, folder))
            found[reader.name].append({**cost, "ns": cost["cpu_s"] * 1e9 / packets})
    own = [one["ns"] for one in found[READERS[0].name]]
    return [
        {
            "flows": flows,
            "packets": files[name][1],
            "program": name,
            "ns_per_packet": median(one["ns"] for one in rounds),
            "memory_bytes": max(one["memory_bytes"] for one in rounds),
            "ratio": median(one["ns"] / mine for one, mine in zip(rounds, own, strict=True)),
            "rounds": rounds,
        }
        for name, rounds in found.items()
    ]


def first(whole: Path, folder: Path, packets: int | None) -> tuple[Path, int]:
    """A capture's first packets, or all of it; and how many those are. Slow programs get few."""
    size = whole.stat().st_size
    file = whole if packets is None else folder / f"first{packets}.pcap"
    left = packets if packets is not None else 2**62
    count, at = 0, 24
    with whole.open("rb") as source:
        head = source.read(24)
        while at + 16 <= size and count < left:
            source.seek(at + 8)
            at += 16 + int.from_bytes(source.read(4), "little")
            count += 1
            if packets is None and count == 1000:  # an estimate is enough to skip ahead
                return file, counted(whole)
        if packets is not None:
            source.seek(24)
            file.write_bytes(head + source.read(at - 24))
    return file, count


def counted(file: Path) -> int:
    """Packets of a capture, as weir-pcap counts them."""
    import json

    with tempfile.TemporaryDirectory(prefix="weir-bench-") as out:
        argv = [str(runner.find_program("pcap")), "analyze", str(file), "--level", "0", "--json"]
        done = subprocess.run([*argv, "--out", f"{out}/run"], capture_output=True, check=True)
    return int(json.loads(done.stdout)["capture"]["packets"])


def run_once(argv: Sequence[str]) -> dict[str, float]:
    """Processor time, wall-clock time and memory of one program."""
    start = time.monotonic()
    process = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise UserError(f"{argv[0]} failed with status {process.returncode}", 1)
    return {
        "cpu_s": used.ru_utime + used.ru_stime,
        "wall_s": time.monotonic() - start,
        "memory_bytes": used.ru_maxrss * 1024.0,
    }


def show(rows: Sequence[dict[str, Any]], out: Console) -> None:
    """The table, and how the cost grows with the number of flows."""
    cells = [
        [
            units.count(row["flows"]),
            units.count(row["packets"]),
            row["program"],
            units.time(row["ns_per_packet"]),
            units.number(1e3 / row["ns_per_packet"]),
            units.size(row["memory_bytes"]),
            units.number(row["ratio"]),
        ]
        for row in rows
    ]
    out.print(summary.table(COLUMNS, cells, left=0))
    own = [row for row in rows if row["program"] == READERS[0].name]
    if len(own) > 1:
        growth = own[-1]["ns_per_packet"] / own[0]["ns_per_packet"]
        out.print(
            f"weir-pcap: {own[-1]['flows']:,} flows cost {growth:.2f} times"
            f" what {own[0]['flows']:,} cost, per packet"
        )
