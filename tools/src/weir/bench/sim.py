# SPDX-License-Identifier: BSD-3-Clause
"""Tools of benchmarks of virtual time: loads, samples, child processes, weir-sim.

Machines are shared and noisy. So a packet's cost is processor time, all programs run in rounds, as
often as asked for, and what is compared are the ratios within a round: their median.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from rich.console import Console

from weir import bootstrap
from weir.base import programs, units
from weir.base.errors import UserError

SOURCES = bootstrap.ROOT / "tools/bench"
FLOWS_MAX = 100_000
GBIT = 10  # of a load that names no rate
GBIT_MAX = 400
BUFFER_BYTES_PER_GBIT = 37_500_000
POLL_S = 0.05
QUIET = 0.95  # a core's share below which the wall clock tells of others


@dataclass(frozen=True)
class Load:
    """Flows through a link of so many Gbit/s."""

    flows: int
    gbit: int = GBIT

    @property
    def name(self) -> str:
        """A name such as "5,000" or "50,000 at 100 Gbit/s"."""
        rate = f" at {self.gbit} Gbit/s" if self.gbit != GBIT else ""
        return units.count(self.flows) + rate

    @property
    def buffer_bytes(self) -> int:
        return self.gbit * BUFFER_BYTES_PER_GBIT


@dataclass(frozen=True)
class Length:
    """Length of a run's measured part, and of what comes before it."""

    warmup_s: float = 60
    measured_s: float = 20


@dataclass(frozen=True)
class Sample:
    """Counters of a program in steady state."""

    wall_s: float
    cpu_s: float  # of its process, in that time
    virtual_s: float
    data_segs: float  # through the bottleneck
    queue_fill: float  # mean, of the buffer
    dropped: int  # packets, in that time; by ns-3 since its start
    peak_bytes: int | None  # VmHWM; None: it ended before it could be looked at
    threads: int = 1

    @property
    def ns(self) -> float:
        return self.cpu_s * 1e9 / self.data_segs

    @property
    def lost(self) -> float:
        """Dropped packets, of all that came to the bottleneck."""
        return self.dropped / (self.dropped + self.data_segs)

    @property
    def speed(self) -> float:
        """Simulated seconds per wall-clock second."""
        return self.virtual_s / self.wall_s


def middle(values: Sequence[float]) -> float | None:
    return median(values) if values else None


def parse_loads(text: str) -> list[Load]:
    """Returns the loads of the command line: 100,1000,50000@100 (Gbit/s)."""
    loads = [parse_load(word.strip()) for word in text.split(",")]
    if len(set(loads)) < len(loads):
        raise UserError(f"--flows: '{text}' names a number twice")
    return loads


def parse_load(word: str) -> Load:
    """Returns the load of a word such as 5000 or 50000@100."""
    flows, at, gbit = word.partition("@")
    if not flows.isdecimal() or not 1 <= int(flows) <= FLOWS_MAX:
        raise UserError(f"--flows: '{word}' is not a number of flows in [1, {FLOWS_MAX}]")
    if at and (not gbit.isdecimal() or not 1 <= int(gbit) <= GBIT_MAX):
        raise UserError(f"--flows: '{word}': '{gbit}' is no rate in Gbit/s in [1, {GBIT_MAX}]")
    return Load(int(flows), int(gbit) if at else GBIT)


def parse_flows(text: str) -> list[int]:
    """Returns the numbers of flows of the command line: 100,1000."""
    loads = parse_loads(text)
    if any(load.gbit != GBIT for load in loads):
        raise UserError(f"--flows: '{text}': here a load has no rate")
    return [load.flows for load in loads]


def parse_weir(data: Mapping[str, Any], buffer_bytes: int, peak_bytes: int | None = None) -> Sample:
    """Returns a sample from weir-sim's summary.json."""
    measured = data.get("measured")
    if not data.get("ledger", {}).get("balanced") or data.get("verdict") != "ok" or not measured:
        raise UserError(f"weir-sim: the run failed: {data.get('verdict')}", 1)
    link = data["links"]["forward"]
    figures = {
        **measured,
        "queue_fill": link["queue_mean_bytes"] / buffer_bytes,
        "dropped": link["drops"],
        "threads": data.get("threads", 1),
    }
    return sample(figures, peak_bytes)


def sample(data: Mapping[str, Any], peak_bytes: int | None) -> Sample:
    """Returns a sample from what weir-floor and the drivers of the peers print."""
    return Sample(
        float(data["wall_s"]),
        float(data["cpu_s"]),
        float(data["virtual_s"]),
        float(data["data_segs"]),
        float(data["queue_fill"]),
        int(data["dropped"]),
        peak_bytes,
        int(data.get("threads", 1)),
    )


def peak_bytes(pid: int) -> int | None:
    """Returns VmHWM of a process; None once it has ended."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return None
    found = [line.split()[1] for line in status.splitlines() if line.startswith("VmHWM:")]
    return int(found[0]) * 1024 if found else None


def child(argv: Sequence[str]) -> tuple[str, int | None]:
    """Runs a program; returns its standard output and its peak memory."""
    process = subprocess.Popen(
        argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    peak = None
    try:
        while True:
            peak = peak_bytes(process.pid) or peak
            try:
                out, err = process.communicate(timeout=POLL_S)
                break
            except subprocess.TimeoutExpired:
                continue
    finally:
        process.kill()
        process.wait()
    if process.returncode != 0:
        why = err.strip().splitlines() or [f"exit status {process.returncode}"]
        raise UserError(f"{Path(argv[0]).name} failed: {why[-1]}", 1)
    return out, peak


def weir(load: Load, length: Length, out: Path, threads: int = 1) -> Sample:
    """Measures weir-sim, in a run folder of its own."""
    program = str(programs.find_program("sim"))
    argv = [program, str(SOURCES / "corescale.yaml"), "--out", str(out)]
    argv += ["--duration", f"{length.warmup_s + length.measured_s}s"]
    argv += ["-o", f"warmup={length.warmup_s}s", "-o", f"flows.0.count={load.flows}"]
    argv += ["-o", f"paths.forward.link.rate={load.gbit}Gbit"]
    argv += ["-o", f"paths.forward.link.queue.fifo.limit={load.buffer_bytes}B"]
    if threads != 1 or "--threads" in child([program, "--help"])[0]:
        argv += ["--threads", str(threads)]  # older programs have no such option
    _, peak = child(argv)
    return parse_weir(json.loads((out / "summary.json").read_text()), load.buffer_bytes, peak)


def build_targets(*targets: str) -> None:
    """Brings programs up to date that are no part of the normal build."""
    folder = programs.build_dir()
    argv = [bootstrap.tool("ninja"), "-C", str(folder), *targets]
    run_logged(argv, ", ".join(Path(target).name for target in targets))


def run_logged(argv: Sequence[str], what: str) -> None:
    """Builds something; UserError: it failed."""
    folder = programs.build_dir()
    with bootstrap.locked(folder):
        log = folder / "weir-bench.log"
        if bootstrap.logged(argv, log) != 0:
            raise UserError(f"cannot build {what}: {bootstrap.last_error(log)} ({log})", 1)


def machine() -> str:
    """Returns the processor's name."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return f"{names[0] if names else 'unknown'}, {os.cpu_count()} cores"


def warn_busy(share: float | None, what: str, so: str, screen: Console) -> None:
    """Says that the programs, or one of them, got less than a core; None: it is not known."""
    if share is not None and share < QUIET:
        screen.print(
            f"the machine was busy: {what} got only {units.percent(share, 0)} of a core{so}",
            style="yellow",
            soft_wrap=True,
        )
