# SPDX-License-Identifier: BSD-3-Clause
"""What a simulated packet costs: weir-sim, a bare loop and ns-3, one after the other.

Machines are shared and noisy. So a packet's cost is processor time, all programs run in rounds, as
often as asked for, and what is compared are the ratios within a round: their median.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from rich.console import Console

from weir import bootstrap, runner, summary, units
from weir.bench.rounds import rounds
from weir.bootstrap import Need
from weir.errors import UserError

SOURCES = bootstrap.ROOT / "tools/bench"
FLOWS_MAX = 100_000
BUFFER_BYTES = 375e6
POLL_S = 0.05
QUIET = 0.95  # a core's share below which the wall clock tells of others
NS3_NEEDS = (
    Need("g++", "command c++"),
    Need("libns3-dev", "file usr/include/ns3/core-module.h"),
    Need("libgsl-dev", "pkgconfig gsl"),
    Need("libxml2-dev", "pkgconfig libxml-2.0"),
    Need("libsqlite3-dev", "pkgconfig sqlite3"),
)
NS3_LIBRARIES = (
    "applications",
    "point-to-point",
    "traffic-control",
    "internet",
    "network",
    "core",
)
LABELS = {"weir": "weir-sim", "floor": "floor", "ns3": "ns-3"}
COLUMNS = (
    "\nflows",
    "weir-sim\nper packet",
    "\ns/s",
    "\nmemory",
    "\nqueue",
    "floor\nper packet",
    "\ns/s",
    "ns-3\nper packet",
    "\ns/s",
    "\nmemory",
    "\nqueue",
    "weir-sim\n/ floor",
    "ns-3 /\nweir-sim",
)


@dataclass(frozen=True)
class Length:
    """How long each program is measured; the floor and ns-3 warm up by themselves."""

    warmup_s: float = 60
    measured_s: float = 20
    floor_packets: int = 50_000_000
    ns3_packets: int = 300_000
    ns3_wall_s_max: float = 30


@dataclass(frozen=True)
class Sample:
    """One program's steady state, once."""

    wall_s: float
    cpu_s: float  # of its process, in that time
    virtual_s: float
    data_segs: float  # through the bottleneck
    queue_fill: float  # mean, of the buffer
    dropped: int  # packets, in that time; by ns-3 since its start
    peak_bytes: int | None  # VmHWM; None: it ended before it could be looked at

    @property
    def ns(self) -> float:
        """Nanoseconds of processor time per data packet."""
        return self.cpu_s * 1e9 / self.data_segs

    @property
    def speed(self) -> float:
        """Simulated seconds per wall-clock second."""
        return self.virtual_s / self.wall_s


Measure = Callable[[int, int], Sample]  # of a number of flows and of the round


@dataclass
class Row:
    """All samples of one number of flows: by program, in order of the rounds."""

    flows: int
    samples: dict[str, list[Sample]] = field(default_factory=dict)

    def ns(self, program: str) -> float | None:
        """Median cost of a packet."""
        return middle([s.ns for s in self.samples.get(program, [])])

    def ratio(self, program: str, base: str) -> float | None:
        """Median over the rounds of one program's cost over another's."""
        pairs = zip(self.samples.get(program, []), self.samples.get(base, []), strict=False)
        return middle([a.ns / b.ns for a, b in pairs])

    def core_share(self) -> float:
        """The least part of a core that a program got."""
        return min(s.cpu_s / s.wall_s for samples in self.samples.values() for s in samples)

    def figures(self, program: str) -> dict[str, Any] | None:
        """A program's part of the JSON."""
        samples = self.samples.get(program)
        if not samples:
            return None
        ns = [s.ns for s in samples]
        return {
            "ns_per_packet": middle(ns),
            "ns_per_packet_min": min(ns),
            "ns_per_packet_max": max(ns),
            "speed": middle([s.speed for s in samples]),
            "queue_fill": middle([s.queue_fill for s in samples]),
            "dropped": sum(s.dropped for s in samples),
            "peak_bytes": max((s.peak_bytes for s in samples if s.peak_bytes), default=None),
            "rounds": [{**vars(s), "ns_per_packet": s.ns} for s in samples],
        }


def middle(values: Sequence[float]) -> float | None:
    """The median; None of nothing."""
    return median(values) if values else None


def growth(rows: Sequence[Row], program: str) -> float | None:
    """A packet's cost at the most flows over that at the fewest, median over the rounds."""
    ordered = sorted(rows, key=lambda row: row.flows)
    if len(ordered) < 2:
        return None
    least, most = (row.samples.get(program, []) for row in (ordered[0], ordered[-1]))
    return middle([b.ns / a.ns for a, b in zip(least, most, strict=False)])


def parse_flows(text: str) -> list[int]:
    """Numbers of flows from the command line: 100,1000."""
    flows = []
    for word in text.split(","):
        if not word.strip().isdecimal() or not 1 <= int(word) <= FLOWS_MAX:
            raise UserError(f"--flows: '{word}' is not a number of flows in [1, {FLOWS_MAX}]")
        flows.append(int(word))
    if len(set(flows)) < len(flows):
        raise UserError(f"--flows: '{text}' names a number twice")
    return flows


def ns3_pairs(flows: int) -> int:
    """How many senders ns-3 spreads its flows over: the paper's ten, more where that is faster.

    It searches a node's sockets and a router's interfaces one by one; the root balances the two.
    """
    return max(10, round(math.sqrt(flows / 10)))


def parse_weir(data: Mapping[str, Any], peak_bytes: int | None) -> Sample:
    """A sample from weir-sim's summary.json."""
    measured = data.get("measured")
    if not data.get("ledger", {}).get("balanced") or data.get("verdict") != "ok" or not measured:
        raise UserError(f"weir-sim: the run failed: {data.get('verdict')}", 1)
    link = data["links"]["forward"]
    queue = {
        "queue_fill": link["queue_mean_bytes"] / BUFFER_BYTES,
        "dropped": link["drops"],
    }
    return sample({**measured, **queue}, peak_bytes)


def sample(data: Mapping[str, Any], peak_bytes: int | None) -> Sample:
    """A sample from what weir-floor and the ns-3 driver print."""
    return Sample(
        float(data["wall_s"]),
        float(data["cpu_s"]),
        float(data["virtual_s"]),
        float(data["data_segs"]),
        float(data["queue_fill"]),
        int(data["dropped"]),
        peak_bytes,
    )


def peak_bytes(pid: int) -> int | None:
    """VmHWM of a process; None once it has ended."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return None
    found = [line.split()[1] for line in status.splitlines() if line.startswith("VmHWM:")]
    return int(found[0]) * 1024 if found else None


def child(argv: Sequence[str]) -> tuple[str, int | None]:
    """Runs a program: its standard output and its peak memory."""
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


def weir(flows: int, length: Length, out: Path) -> Sample:
    """weir-sim, in a run folder of its own."""
    config = SOURCES / "corescale.yaml"
    argv = [str(runner.find_program("sim")), str(config), "--out", str(out)]
    argv += ["--threads", "1", "--duration", f"{length.warmup_s + length.measured_s}s"]
    argv += ["-o", f"warmup={length.warmup_s}s", "-o", f"flows.0.count={flows}"]
    _, peak = child(argv)
    return parse_weir(json.loads((out / "summary.json").read_text()), peak)


def floor(flows: int, length: Length) -> Sample:
    """The bare loop."""
    program = runner.build_dir() / "tools/bench/weir-floor"
    out, peak = child([str(program), str(flows), str(length.floor_packets)])
    return sample(json.loads(out), peak)


def ns3(flows: int, length: Length) -> Sample:
    """ns-3."""
    argv = [str(runner.build_dir() / "tools/bench/ns3_dumbbell"), f"--flows={flows}"]
    argv += [f"--pairs={ns3_pairs(flows)}", f"--packets={length.ns3_packets}"]
    argv += [f"--wall-max={length.ns3_wall_s_max}"]
    out, peak = child(argv)
    return sample(json.loads(out), peak)


def build_targets(*targets: str) -> None:
    """Brings programs up to date that are no part of the normal build."""
    folder = runner.build_dir()
    argv = [bootstrap.tool("ninja"), "-C", str(folder), *targets]
    with bootstrap.locked(folder):
        log = folder / "weir-bench.log"
        if bootstrap.logged(argv, log) != 0:
            names = ", ".join(Path(target).name for target in targets)
            raise UserError(f"cannot build {names}: {bootstrap.last_error(log)} ({log})", 1)


def build_ns3() -> None:
    """Installs what the ns-3 driver needs and compiles it, or one sentence."""
    build = runner.build_dir()
    with bootstrap.locked(build):
        missing = [need.package for need in NS3_NEEDS if not need.met()]
        if missing:
            bootstrap.say(f"installing Debian packages: {' '.join(missing)} (for ns-3)")
            why = bootstrap.apt(missing, build)
            if why is not None:
                raise UserError(
                    f"cannot install {', '.join(missing)}: {why}; install them with: apt-get "
                    f"install {' '.join(missing)}, or leave ns-3 out: --no-ns3",
                    1,
                )
        source, program = SOURCES / "ns3_dumbbell.cc", build / "tools/bench/ns3_dumbbell"
        if program.exists() and program.stat().st_mtime > source.stat().st_mtime:
            return
        program.parent.mkdir(parents=True, exist_ok=True)
        argv = [bootstrap.tool("c++"), "-std=c++17", "-O3", "-o", str(program), str(source)]
        log = build / "weir-bench.log"
        if bootstrap.logged([*argv, *(f"-lns3-{name}" for name in NS3_LIBRARIES)], log) != 0:
            raise UserError(f"cannot build ns3_dumbbell: {bootstrap.last_error(log)} ({log})", 1)


def ns3_build() -> str:
    """What ns-3's library was built with, from the names in it."""
    found = sorted(Path("/usr/lib").glob("*/libns3-internet.so"))
    if not found:
        return "build unknown"
    data = found[0].read_bytes()
    version = found[0].resolve().name.rsplit(".so.", 1)[-1]
    logging = "with" if b"ParameterLogger" in data else "without"
    asserts = "with" if b"NS_ASSERT failed" in data or b"assert failed" in data else "without"
    return f"soname {version}, {logging} logging (switched off) and {asserts} asserts compiled in"


def machine() -> str:
    """The processor's name."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return f"{names[0] if names else 'unknown'}, {os.cpu_count()} cores"


def build_all(with_ns3: bool) -> None:
    """What the normal build leaves out."""
    try:
        build_targets("tools/bench/weir-floor")
        if with_ns3:
            build_ns3()
    except bootstrap.SetupError as error:
        raise UserError(str(error), 1) from None


def interleave(
    rows: Sequence[Row], repeat: int, programs: Mapping[str, Measure], screen: Console
) -> None:
    """Measures every program at every number of flows, again and again, telling each figure."""
    for number in rounds(repeat, screen):
        for row in rows:
            for name, measure in programs.items():
                got = measure(row.flows, number)
                row.samples.setdefault(name, []).append(got)
                screen.print(
                    f"round {number} of {repeat}, {row.flows} flows: {LABELS[name]}"
                    f" {units.number(got.ns)} ns per packet"
                )


def corescale(
    flows: Sequence[int],
    repeat: int,
    with_ns3: bool,
    out: Path | None,
    screen: Console,
    length: Length | None = None,
) -> dict[str, Any]:
    """The whole benchmark; with `out`, bench.json and the run folders stay there."""
    if out is not None and out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise UserError(f"{out}: not an empty folder")
    length = length or Length()
    rows = [Row(count) for count in flows]
    build_all(with_ns3)
    with tempfile.TemporaryDirectory(prefix="weir-bench-") as scratch:
        folder = out or Path(scratch)
        programs: dict[str, Measure] = {
            "floor": lambda count, _: floor(count, length),
            "weir": lambda count, number: weir(count, length, folder / f"{count}-{number}"),
        }
        if with_ns3:
            programs["ns3"] = lambda count, _: ns3(count, length)
        interleave(rows, repeat, programs, screen)
    found = report(rows)
    if out is not None:
        (out / "bench.json").write_text(json.dumps(found, indent=1) + "\n")
    return found


def report(rows: Sequence[Row]) -> dict[str, Any]:
    """Everything as JSON."""
    return {
        "bench": "corescale",
        "machine": machine(),
        "ns3": ns3_build() if any("ns3" in row.samples for row in rows) else None,
        "rows": [
            {
                "flows": row.flows,
                **{name: row.figures(name) for name in LABELS},
                "weir_over_floor": row.ratio("weir", "floor"),
                "ns3_over_weir": row.ratio("ns3", "weir"),
            }
            for row in rows
        ],
        "core_share": min(row.core_share() for row in rows),
        "growth": {name: growth(rows, name) for name in LABELS},
    }


def cost(figures: Mapping[str, Any] | None) -> str:
    """Median cost of a packet, and half its spread below."""
    if figures is None:
        return units.NONE
    middle_ns = figures["ns_per_packet"]
    spread = (figures["ns_per_packet_max"] - figures["ns_per_packet_min"]) / 2 / middle_ns
    return f"{units.time(middle_ns)}\n±{units.percent(spread, 0)}"


def table_row(row: Mapping[str, Any]) -> list[str]:
    """One number of flows, as COLUMNS wants it."""
    cells = [units.count(row["flows"])]
    for name in LABELS:
        figures = row[name] or {}
        cells += [cost(row[name]), units.number(figures.get("speed"))]
        if name != "floor":
            fill = figures.get("queue_fill")
            cells += [units.size(figures.get("peak_bytes")), units.percent(fill, 0)]
    return [*cells, units.number(row["weir_over_floor"]), units.number(row["ns3_over_weir"])]


def show(found: Mapping[str, Any], screen: Console) -> None:
    """The table, and what has to be known to read it."""
    rows = found["rows"]
    summary.print_table(screen, summary.table(COLUMNS, [table_row(row) for row in rows], left=0))
    screen.print()
    grown = found["growth"]
    if grown["weir"] is not None:
        few, many = (units.count(f(row["flows"] for row in rows)) for f in (min, max))
        parts = [
            f"{label} {units.number(grown[name])}"
            for name, label in LABELS.items()
            if grown[name] is not None
        ]
        screen.print(f"growth of a packet's cost from {few} to {many} flows: {', '.join(parts)}")
    screen.print(
        "per packet: processor time per data packet through the bottleneck in steady state, median"
        " and half the spread; s/s: simulated seconds per wall-clock second; queue: mean/375 MB",
        soft_wrap=True,
    )
    if found["core_share"] < QUIET:
        screen.print(
            f"the machine was busy: a program got only {units.percent(found['core_share'], 0)} of"
            " a core; s/s says less than this machine can do",
            style="yellow",
            soft_wrap=True,
        )
    if found["ns3"]:
        dropped = sum(row["ns3"]["dropped"] for row in rows if row["ns3"])
        losses = f"with {dropped:,} packets lost" if dropped else "before its first loss"
        screen.print(
            f"ns-3: {found['ns3']}; begins with a full buffer, in congestion avoidance, and is"
            f" measured {losses}",
            soft_wrap=True,
        )
    screen.print(f"machine: {found['machine']}", soft_wrap=True)
