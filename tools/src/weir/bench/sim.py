# SPDX-License-Identifier: BSD-3-Clause
"""Tools of benchmarks of virtual time: loads, samples, child processes, weir-sim.

Machines are shared and noisy. So a packet's cost is processor time, all programs run in rounds, as
often as asked for, and what is compared are the ratios within a round: their median.
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from msgspec import Struct, structs

from weir import bootstrap
from weir.base import foreign, programs, units
from weir.base.errors import UserError

SOURCES = bootstrap.ROOT / "tools/bench"
FLOWS_MAX = 100_000
GBIT = 10  # of a load that names no rate
GBIT_MAX = 400
BUFFER_BYTES_PER_GBIT = 37_500_000
POLL_S = 0.05


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


DEFAULT = Length()


class Measured(Struct):
    """The measured part of a run."""

    wall_s: float
    cpu_s: float  # of its process, in that time
    virtual_s: float
    data_segs: float  # through the bottleneck


class Sample(Measured):
    """Counters of a program in steady state, as weir-floor and the peers' drivers print them."""

    queue_fill: float  # mean, of the buffer
    dropped: int  # packets, in that time; by ns-3 since its start
    peak_bytes: int | None = None  # VmHWM; None: it ended before it could be looked at
    threads: int = 1

    @property
    def ns(self) -> float:
        """Processor time per data packet."""
        return self.cpu_s * 1e9 / self.data_segs

    @property
    def lost(self) -> float:
        """Dropped packets, of all that came to the bottleneck."""
        return self.dropped / (self.dropped + self.data_segs)

    @property
    def speed(self) -> float:
        """Simulated seconds per wall-clock second."""
        return self.virtual_s / self.wall_s


class Ledger(Struct):
    """The packet conservation of a run."""

    balanced: bool


class Link(Struct):
    """A link of a run's summary."""

    queue_mean_bytes: float
    drops: int


class Summary(Struct):
    """The part of weir-sim's summary that is read: older commits lack others."""

    verdict: str
    ledger: Ledger
    links: dict[str, Link]
    measured: Measured | None = None
    threads: int = 1


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


def weir_sample(summary: Summary, buffer_bytes: int, peak_bytes: int | None = None) -> Sample:
    """Returns a run's sample. UserError: the run failed."""
    run = summary.measured
    if summary.verdict != "ok" or not summary.ledger.balanced or run is None:
        raise UserError(f"weir-sim: the run failed: {summary.verdict}", 1)
    link = summary.links["forward"]
    return Sample(
        **structs.asdict(run),
        queue_fill=link.queue_mean_bytes / buffer_bytes,
        dropped=link.drops,
        peak_bytes=peak_bytes,
        threads=summary.threads,
    )


def peak_bytes(pid: int) -> int | None:
    """Returns VmHWM of a process; None once it has ended."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return None
    found = [line.split()[1] for line in status.splitlines() if line.startswith("VmHWM:")]
    return int(found[0]) * 1024 if found else None


def child(argv: Sequence[object]) -> tuple[str, str, int | None]:
    """Runs a program; returns its output, its error output and its peak memory."""
    words, pipe = [str(arg) for arg in argv], subprocess.PIPE
    process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, text=True)
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
        raise UserError(f"{Path(words[0]).name} failed: {why[-1]}", 1)
    return out, err, peak


def peer(argv: Sequence[object]) -> Sample:
    """Runs a program that prints its sample as JSON."""
    out, _, peak = child(argv)
    sample = foreign.decode(out.encode(), Sample, Path(str(argv[0])).name)
    sample.peak_bytes = peak
    return sample


def weir(load: Load, length: Length, out: Path, threads: int = 1) -> Sample:
    """Measures weir-sim, in a run folder of its own."""
    program = programs.find_program("sim")
    argv = [program, SOURCES / "corescale.yaml", "--out", out]
    argv += ["--duration", f"{length.warmup_s + length.measured_s}s"]
    argv += ["-o", f"warmup={length.warmup_s}s", "-o", f"flows.0.count={load.flows}"]
    argv += ["-o", f"paths.forward.link.rate={load.gbit}Gbit"]
    argv += ["-o", f"paths.forward.link.queue.fifo.limit={load.buffer_bytes}B"]
    if threads != 1 or "--threads" in child([program, "--help"])[0]:
        argv += ["--threads", threads]  # older programs have no such option
    _, _, peak = child(argv)
    summary = foreign.read_json(out / "summary.json", Summary)
    return weir_sample(summary, load.buffer_bytes, peak)


def build_targets(*targets: str) -> Path:
    """Builds programs that are no part of the normal build; returns the build's folder.

    An installation has those that it has, and builds none.
    """
    folder = programs.build_dir()
    if bootstrap.INSTALLED and all((folder / target).exists() for target in targets):
        return folder
    argv = [bootstrap.tool("ninja"), "-C", str(folder), *targets]
    run_logged(argv, ", ".join(Path(target).name for target in targets))
    return folder


def run_logged(argv: Sequence[str], what: str) -> None:
    """Builds something; UserError: it failed."""
    folder = programs.build_dir()
    with bootstrap.locked(folder):
        log = folder / "weir-bench.log"
        if bootstrap.logged(argv, log) != 0:
            raise UserError(f"cannot build {what}: {bootstrap.last_error(log)} ({log})", 1)
