# SPDX-License-Identifier: BSD-3-Clause
"""Measures a live packet: weir-switch and weir-sender beside their peers and limits, in rounds.

Machines are shared and noisy: what is compared are ratios within a round, of two programs measured
one right after the other, and their median is shown.
"""

from __future__ import annotations

import os
import signal
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from statistics import median

from msgspec import Struct, structs

from weir import bootstrap
from weir.base import tables, units
from weir.base.errors import UserError
from weir.base.page import Column, Status, Table
from weir.base.programs import build_dir, find_program
from weir.bench import peers, sim
from weir.bench.lab import FRAMES, Bench, Case, Sample, Skipped, hugepages
from weir.bench.rounds import Result, Rounds, busy, machine, middle
from weir.bootstrap import Need
from weir.live.laboratory import CommandError

Measure = Callable[[Bench, Case], Sample]
WEIR = "weir"
MANY_FLOWS = ("drr", "fq_codel", "fq_pie", "cake", "dualpi2")  # measured with many flows too
COLUMNS = (
    *("row", "Mpps", "Gbit/s", "ns", "cycles", "beside", "Mpps", "ns"),
    *(Column("ratio", unit="{:.2f}".format), Column("±", unit="{:.2f}".format)),
)
QUICK = (
    "null-64-fifo,null-64-fifo-10ms,null-64-codel-10ms,memif-64-fifo,memif-1500-fifo,"
    "memif-1500-codel,memif-imix-fifo,memif-1500-fifo-25g-level1,memif-1500-fifo-25g-level3,"
    "xdp-1500-fifo,sender-5000,sender-5000-10ms,sender-5000-20ms,sender-50000-10ms,"
    "sender-switch-5000-10ms"
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
    "io": Peer("testpmd io", partial(peers.testpmd, "io"), (peers.TESTPMD_NEED,)),
    "mac": Peer("testpmd mac", partial(peers.testpmd, "mac"), (peers.TESTPMD_NEED,)),
    "txonly": Peer("testpmd txonly", peers.txonly, (peers.TESTPMD_NEED,)),
    "ovs": Peer("Open vSwitch", partial(peers.ovs, False), (peers.OVS_NEED,)),
    "ovs-policer": Peer("Open vSwitch, policer", partial(peers.ovs, True), (peers.OVS_NEED,)),
    "bridge": Peer("Linux bridge, tbf", peers.bridge, peers.KERNEL_NEEDS),
    "level0": Peer("weir, level 0", lower_level),
    "fifo": Peer("weir, fifo", fifo),
}


class Figures(Struct):
    """Figures of a program in a case: the medians of the rounds."""

    mpps: float
    gbit_s: float
    ns_per_packet: float
    cycles_per_packet: float | None
    records_lost: float
    rounds: list[dict[str, float | None]]


class PeerFigures(Figures):
    """Figures of another program, and weir's packets per second over its."""

    ratio: float | None
    ratio_spread: float | None


class Row(Struct):
    """Figures of a case."""

    row: str
    weir: Figures | None
    peers: dict[str, PeerFigures | None]
    skipped: dict[str, str]

    def cells(self) -> Iterator[list[str | float | None]]:
        """Yields the lines of COLUMNS, one for each peer that was measured."""
        if self.weir is None:
            return
        ours = self.weir
        first: list[str | float | None] = [
            self.row,
            ours.mpps,
            ours.gbit_s,
            ours.ns_per_packet,
            ours.cycles_per_packet,
        ]
        measured = [(label(name), peer) for name, peer in self.peers.items() if peer]
        for number, (name, peer) in enumerate(measured):
            mine = ["" for _ in first] if number else first
            yield [*mine, name, peer.mpps, peer.ns_per_packet, peer.ratio, peer.ratio_spread]
        if not measured:
            yield [*first, None, None, None, None, None]


class Live(Result):
    """The result of `weir bench live`."""

    bench: str
    machine: str
    rows: list[Row]
    core_share: float | None

    @property
    def failed(self) -> bool:
        return any(row.weir is None for row in self.rows)

    def medians(self) -> dict[str, float]:
        return {row.row: row.weir.ns_per_packet for row in self.rows if row.weir}

    def parts(self) -> Iterator[Table | Status | str]:
        """Yields the table and its notes."""
        lines = [line for row in self.rows for line in row.cells()]
        if lines:
            yield Table(COLUMNS, lines)
        yield from self.warnings()
        yield (
            "per second of processor time of the busiest thread; ratio: weir's packets per second"
            " over the other's, median over the rounds and half its spread; Gbit/s: frames without"
            " FCS"
        )
        if any(row.row.startswith("sender") for row in self.rows):
            yield SENDERS
        waits = "; over memif and veth that also makes it wait for its neighbours"
        yield from busy(self.core_share, "a program", waits)
        yield f"machine: {self.machine}"

    def warnings(self) -> Iterator[Status]:
        """Yields where telemetry lost records, as packets are cheaper then, and what is skipped."""
        reasons: dict[tuple[str, str], list[str]] = {}
        for row in self.rows:
            if row.weir and row.weir.records_lost > 0:
                lost = f"up to {units.percent(row.weir.records_lost)} of the telemetry records"
                yield Status("warn", f"{row.row}: {lost} were lost, and counted")
            for name, why in row.skipped.items():
                reasons.setdefault((label(name), why), []).append(row.row)
        for (name, why), rows in reasons.items():
            yield Status("warn", f"skipped: {name} ({', '.join(rows)}): {why}")


@dataclass
class Runs:
    """Samples of a case by program, in order of the rounds, and why a program has none."""

    case: Case
    samples: dict[str, list[Sample]] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)

    def ratios(self, peer: str) -> list[float]:
        """Returns weir's packets per second over a peer's, in each round that has both."""
        pairs = zip(self.samples.get(WEIR, []), self.samples.get(peer, []), strict=False)
        return [b.ns / a.ns for a, b in pairs]

    def figures(self, program: str) -> Figures | None:
        """Returns a program's part of the JSON."""
        samples = self.samples.get(program)
        if not samples:
            return None
        ns = median(s.ns for s in samples)
        hz = next((s.tsc_hz for s in self.samples.get(WEIR, []) if s.tsc_hz), None)
        return Figures(
            mpps=1e3 / ns,
            gbit_s=median(s.bits / s.pkts for s in samples) / ns,
            ns_per_packet=ns,
            cycles_per_packet=ns * hz / 1e9 if hz else None,
            records_lost=max(s.lost for s in samples),
            rounds=[{**vars(s), "ns_per_packet": s.ns} for s in samples],
        )

    def peer_figures(self, peer: str) -> PeerFigures | None:
        found, ratios = self.figures(peer), self.ratios(peer)
        if found is None:
            return None
        spread = (max(ratios) - min(ratios)) / 2 if ratios else None
        return PeerFigures(**structs.asdict(found), ratio=middle(ratios), ratio_spread=spread)


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
            for aqm in tables.read()["aqm"]:
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
    chosen: dict[str, Case] = {}
    for pattern in (patterns or (QUICK if quick else "*")).split(","):
        found = {n: c for n, c in cases.items() if fnmatchcase(n, pattern.strip())}
        if not found:
            raise UserError(
                f"--rows: no row is called '{pattern.strip()}'; weir bench live --list shows them"
            )
        chosen |= found
    return list(chosen.values())


def prepare(rows: Sequence[Runs]) -> None:
    """Builds what the normal build leaves out and installs what peers need; or they are skipped."""
    sim.build_targets("tools/bench/weir-live-floor", "tools/bench/weir-live-load")
    for name, peer in PEERS.items():
        wanted = [
            row for row in rows if name in compared_with(row.case) and name not in row.skipped
        ]
        missing = [need.package for need in peer.needs if wanted and not need.met()]
        if not missing:
            continue
        packages = " ".join(missing)
        bootstrap.say(f"installing Debian packages: {packages} (for {peer.label})")
        with bootstrap.locked(build_dir()):
            why = bootstrap.apt(missing, build_dir())
        for row in wanted if why is not None else []:
            row.skipped[name] = f"cannot install {packages}: {why}"


def interleave(rows: Sequence[Runs], rounds: Rounds, at: Bench) -> None:
    """Measures every row's programs one after the other, again and again, telling each figure."""
    for number in rounds:
        for row in rows:
            own = peers.weir_sender if row.case.is_sender else peers.weir_switch
            others = {name: PEERS[name].measure for name in compared_with(row.case)}
            for name, measure in {WEIR: own, **others}.items():
                if name in row.skipped or WEIR in row.skipped:
                    continue
                where = f"{row.case.name}: {label(name)}"
                try:
                    got = measure(at, row.case)
                except (Skipped, CommandError, bootstrap.SetupError) as error:
                    why = row.skipped[name] = str(error).splitlines()[-1]
                    rounds.say(number, f"{where} skipped: {why}")
                    continue
                row.samples.setdefault(name, []).append(got)
                rounds.say(number, f"{where} {units.number(got.ns)} ns per packet")


def label(name: str) -> str:
    return WEIR if name == WEIR else PEERS[name].label


def measure(cases: Sequence[Case], seconds: float, rounds: Rounds) -> Live:
    """Measures all programs in rounds."""
    if os.geteuid() != 0:
        raise UserError("bench live needs root: for hugepages and network namespaces", 1)
    rows = [Runs(case) for case in cases]
    for row in rows if rounds.alone else []:
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
            interleave(rows, rounds, at)
        finally:
            at.clean()
    return report(rows)


def report(rows: Sequence[Runs]) -> Live:
    """Returns the result of all rounds."""
    samples = [s for row in rows for each in row.samples.values() for s in each]
    return Live(
        bench="live",
        machine=machine(),
        rows=[
            Row(
                row.case.name,
                row.figures(WEIR),
                {name: row.peer_figures(name) for name in compared_with(row.case)},
                row.skipped,
            )
            for row in rows
        ],
        core_share=min((s.cpu_ns / s.wall_ns for s in samples), default=None),
    )
