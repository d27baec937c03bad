# SPDX-License-Identifier: BSD-3-Clause
"""Measures a live packet: weir-switch and weir-sender beside their peers and limits, in rounds.

Machines are shared and noisy: what is compared are ratios within a round, of two programs measured
one right after the other, and their median is shown.
"""

from __future__ import annotations

import os
import signal
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from rich.console import Console

from weir import bootstrap
from weir.base import terminal, units
from weir.base.errors import UserError
from weir.base.page import Table
from weir.base.programs import build_dir, find_program
from weir.bench import peers, sim
from weir.bench.lab import AQMS, FRAMES, Bench, Case, Sample, Skipped, hugepages
from weir.bench.rounds import rounds
from weir.bench.sim import middle
from weir.bootstrap import Need

Measure = Callable[[Bench, Case], Sample]
WEIR = "weir"
MANY_FLOWS = ("drr", "fq_codel", "fq_pie", "cake", "dualpi2")  # measured with many flows too
COLUMNS = (
    "row",
    "Mpps",
    "Gbit/s",
    "ns",
    "cycles",
    "beside",
    "Mpps",
    "ns",
    "ratio",
    "±",
)
QUICK = (
    "null-64-fifo",
    "null-64-fifo-10ms",
    "null-64-codel-10ms",
    "memif-64-fifo",
    "memif-1500-fifo",
    "memif-1500-codel",
    "memif-imix-fifo",
    "memif-1500-fifo-25g-level1",
    "memif-1500-fifo-25g-level3",
    "xdp-1500-fifo",
    "sender-5000",
    "sender-5000-10ms",
    "sender-5000-20ms",
    "sender-50000-10ms",
    "sender-switch-5000-10ms",
)
SENDERS = (
    "sender: weir-sender into a sink, another weir-sender on the other core, whose ACKs leave the"
    " row's time after their data came; sender-switch: weir-switch is there, the row's time each"
    " way, and the sink on the sender's core; testpmd sends into a sink that answers nothing"
)


@dataclass(frozen=True)
class Peer:
    """A program with which weir is compared."""

    label: str
    measure: Measure
    needs: tuple[Need, ...] = ()


def lower_level(at: Bench, case: Case) -> Sample:
    return peers.weir_switch(at, replace(case, level=0))


def fifo(at: Bench, case: Case) -> Sample:
    return peers.weir_switch(at, replace(case, aqm="fifo"))


PEERS = {
    "floor": Peer("bare loop", peers.floor),
    "io": Peer("testpmd io", peers.testpmd("io"), (peers.TESTPMD_NEED,)),
    "mac": Peer("testpmd mac", peers.testpmd("mac"), (peers.TESTPMD_NEED,)),
    "txonly": Peer("testpmd txonly", peers.txonly, (peers.TESTPMD_NEED,)),
    "ovs": Peer("Open vSwitch", peers.ovs(False), (peers.OVS_NEED,)),
    "ovs-policer": Peer("Open vSwitch, policer", peers.ovs(True), (peers.OVS_NEED,)),
    "bridge": Peer("Linux bridge, tbf", peers.bridge, peers.KERNEL_NEEDS),
    "level0": Peer("weir, level 0", lower_level),
    "fifo": Peer("weir, fifo", fifo),
}


@dataclass
class Row:
    """Samples of a case by program, in order of the rounds, and why a program has none."""

    case: Case
    samples: dict[str, list[Sample]] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)

    def ratio(self, peer: str) -> list[float]:
        """Returns weir's packets per second over a peer's, in each round that has both."""
        pairs = zip(self.samples.get(WEIR, []), self.samples.get(peer, []), strict=False)
        return [b.ns / a.ns for a, b in pairs]

    def figures(self, program: str) -> dict[str, Any] | None:
        """Returns a program's part of the JSON."""
        samples = self.samples.get(program)
        if not samples:
            return None
        ns = middle([s.ns for s in samples]) or 0.0
        hz = next((s.tsc_hz for s in self.samples.get(WEIR, []) if s.tsc_hz), None)
        bits = middle([s.bits / s.pkts for s in samples]) or 0.0
        found: dict[str, Any] = {
            "mpps": 1e3 / ns,
            "gbit_s": bits / ns,
            "ns_per_packet": ns,
            "cycles_per_packet": ns * hz / 1e9 if hz else None,
            "records_lost": max(s.lost for s in samples),
            "rounds": [{**vars(s), "ns_per_packet": s.ns} for s in samples],
        }
        if program != WEIR:
            ratios = self.ratio(program)
            found["ratio"] = middle(ratios)
            found["ratio_spread"] = (max(ratios) - min(ratios)) / 2 if ratios else None
        return found


def compared_with(case: Case) -> tuple[str, ...]:
    """Returns the peers of a case."""
    if case.is_sender:
        return ("txonly",)
    if case.level > 0:
        return ("level0",)
    if case.port == "xdp":
        return ("io", "bridge")
    if case.port == "memif":
        return ("mac",) if case.aqm == "fifo" else ("fifo", "mac")
    if case.aqm != "fifo":
        return ("fifo", "floor")
    return ("floor",) if case.delay_ms else ("floor", "io", "mac", "ovs", "ovs-policer")


def all_cases() -> Iterator[Case]:
    """Yields every row there is."""
    for port in ("null", "memif", "xdp"):
        for frame in FRAMES:
            if (port, frame) == ("null", "imix") or (port == "xdp" and frame != "1500"):
                continue  # net_null has one size; the kernel's TCP fills its frames
            for aqm in AQMS:
                for delay_ms in (0, 10):
                    for level in (0, 1, 3):
                        yield Case(port, frame, aqm, delay_ms, level)
    for level in (0, 1, 3):
        yield Case("memif", "1500", level=level, gbit=25)
    for aqm in ("fifo", *MANY_FLOWS):
        for frame in ("64", "1500"):
            for count in (5000, 65536):
                yield Case("memif", frame, aqm, flows=count)
    for flows in ("5000", "50000"):
        for delay_ms in (0, 10, 20):
            yield Case("sender", flows, delay_ms=delay_ms)
    yield Case("sender-switch", "5000", delay_ms=10)


def choose(patterns: str | None, quick: bool) -> list[Case]:
    """Returns the cases of --rows (null-64-fifo,memif-*), or the quick ones, or all."""
    cases = {case.name: case for case in all_cases()}
    if patterns is None:
        return [cases[name] for name in QUICK] if quick else list(cases.values())
    chosen: dict[str, Case] = {}
    for pattern in patterns.split(","):
        found = {n: c for n, c in cases.items() if fnmatchcase(n, pattern.strip())}
        if not found:
            raise UserError(
                f"--rows: no row is called '{pattern.strip()}'; weir bench live --list shows them"
            )
        chosen |= found
    return list(chosen.values())


def prepare(rows: Sequence[Row]) -> None:
    """Builds what the normal build leaves out and installs what peers need; or they are skipped."""
    try:
        sim.build_targets("tools/bench/weir-live-floor", "tools/bench/weir-live-load")
    except bootstrap.SetupError as error:
        raise UserError(str(error), 1) from None
    wanted = {name for row in rows for name in compared_with(row.case)}
    for name in [name for name in PEERS if name in wanted]:
        missing = [need.package for need in PEERS[name].needs if not need.met()]
        if not missing:
            continue
        packages = " ".join(missing)
        bootstrap.say(f"installing Debian packages: {packages} (for {PEERS[name].label})")
        with bootstrap.locked(build_dir()):
            why = bootstrap.apt(missing, build_dir())
        if why is not None:
            for row in rows:
                row.skipped[name] = f"cannot install {packages}: {why}"


def interleave(rows: Sequence[Row], repeat: int, at: Bench, screen: Console) -> None:
    """Measures every row's programs one after the other, again and again, telling each figure."""
    for number in rounds(repeat, screen):
        for row in rows:
            programs: dict[str, Measure] = {WEIR: measure_of(row.case)}
            programs |= {name: PEERS[name].measure for name in compared_with(row.case)}
            for name, measure in programs.items():
                if name in row.skipped or WEIR in row.skipped:
                    continue
                where = f"round {number} of {repeat}, {row.case.name}: {label(name)}"
                try:
                    got = measure(at, row.case)
                except (Skipped, bootstrap.SetupError) as why:
                    row.skipped[name] = str(why)
                    screen.print(f"{where} skipped: {why}", soft_wrap=True)
                    continue
                row.samples.setdefault(name, []).append(got)
                screen.print(f"{where} {units.number(got.ns)} ns per packet")


def measure_of(case: Case) -> Measure:
    return peers.weir_sender if case.is_sender else peers.weir_switch


def label(name: str) -> str:
    return WEIR if name == WEIR else PEERS[name].label


def measure_all(
    cases: Sequence[Case], repeat: int, seconds: float, screen: Console, alone: bool = False
) -> dict[str, Any]:
    """Measures all programs in rounds; alone: without peers."""
    if os.geteuid() != 0:
        raise UserError("bench live needs root: for hugepages and network namespaces", 1)
    rows = [Row(case) for case in cases]
    for row in rows if alone else []:
        row.skipped = dict.fromkeys(compared_with(row.case), "left out")
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # nothing is left behind
    find_program("switch")
    prepare(rows)
    need_bytes = max(peers.memory_bytes(case) for case in cases)
    with (
        tempfile.TemporaryDirectory(prefix="weir-bench-") as folder,
        hugepages(need_bytes, bootstrap.say),
    ):
        at = Bench(Path(folder), seconds)
        try:
            interleave(rows, repeat, at, screen)
        finally:
            at.clean()
    return report(rows)


def report(rows: Sequence[Row]) -> dict[str, Any]:
    """Returns all figures as JSON has them."""
    samples = [s for row in rows for each in row.samples.values() for s in each]
    return {
        "bench": "live",
        "machine": sim.machine(),
        "rows": [
            {
                "row": row.case.name,
                "weir": row.figures(WEIR),
                "peers": {name: row.figures(name) for name in compared_with(row.case)},
                "skipped": row.skipped,
            }
            for row in rows
        ],
        "core_share": min((s.cpu_ns / s.wall_ns for s in samples), default=None),
    }


def medians(found: Mapping[str, Any]) -> dict[str, float]:
    return {row["row"]: row["weir"]["ns_per_packet"] for row in found["rows"] if row["weir"]}


def table_rows(row: Mapping[str, Any]) -> list[list[str]]:
    """Returns the lines of a row in the table, one for each peer that was measured."""
    weir = row["weir"]
    if weir is None:
        return []
    first = [
        row["row"],
        units.number(weir["mpps"]),
        units.number(weir["gbit_s"]),
        units.number(weir["ns_per_packet"]),
        units.number(weir["cycles_per_packet"]),
    ]
    lines: list[list[str]] = []
    for name, peer in row["peers"].items():
        if peer is None:
            continue
        mine = first if not lines else [""] * len(first)
        ratio, spread = peer["ratio"], peer["ratio_spread"]
        figures = [units.number(peer[key]) for key in ("mpps", "ns_per_packet")]
        lines.append([*mine, label(name), *figures, f"{ratio:.2f}", f"{spread:.2f}"])
    return lines or [[*first, units.NONE, "", "", "", ""]]


def show(found: Mapping[str, Any], screen: Console) -> None:
    """Prints the table, what was skipped, and what has to be known to read it."""
    lines = [line for row in found["rows"] for line in table_rows(row)]
    if lines:
        terminal.print_table(screen, Table(COLUMNS, lines, left=1))
        screen.print()
    for line in [*lost_lines(found), *skipped_lines(found)]:
        screen.print(line, style="yellow", soft_wrap=True)
    screen.print(
        "per second of processor time of the busiest thread; ratio: weir's packets per second over"
        " the other's, median over the rounds and half its spread; Gbit/s: frames without FCS",
        soft_wrap=True,
    )
    if any(row["row"].startswith("sender") for row in found["rows"]):
        screen.print(SENDERS, soft_wrap=True)
    waits = "; over memif and veth that also makes it wait for its neighbours"
    sim.warn_busy(found["core_share"], "a program", waits, screen)
    screen.print(f"machine: {found['machine']}", soft_wrap=True)


def lost_lines(found: Mapping[str, Any]) -> list[str]:
    """Returns a line where telemetry could not keep up, which makes a packet cheaper."""
    return [
        f"{row['row']}: up to {units.percent(row['weir']['records_lost'])} of the telemetry records"
        " were lost, and counted"
        for row in found["rows"]
        if row["weir"] is not None and row["weir"]["records_lost"] > 0
    ]


def skipped_lines(found: Mapping[str, Any]) -> list[str]:
    """Returns a line for each reason why something could not be measured."""
    reasons: dict[tuple[str, str], list[str]] = {}
    for row in found["rows"]:
        for name, why in row["skipped"].items():
            reasons.setdefault((name, why), []).append(row["row"])
    return [
        f"skipped: {label(name)} ({', '.join(rows)}): {why}"
        for (name, why), rows in reasons.items()
    ]


def failed(found: Mapping[str, Any]) -> bool:
    """Returns whether weir itself could not be measured somewhere."""
    return any(row["weir"] is None for row in found["rows"])
