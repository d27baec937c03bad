# SPDX-License-Identifier: BSD-3-Clause
"""Measures a simulated packet: weir-sim, a bare loop and other simulators, one after the other.

A program's cost grows with the number of flows, and with what is lost: repair is work. So losses
stand beside each cost.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import median

from msgspec import Struct, structs

from weir.base import units
from weir.base.errors import UserError
from weir.base.page import Column, Status, Table
from weir.bench import sim, simulators
from weir.bench.rounds import Result, Rounds, busy, half_spread, machine, middle
from weir.bench.sim import DEFAULT, GBIT, Length, Load, Sample

LABELS = {"weir": "weir-sim", "floor": "floor", "htsim": "htsim", "ns3": "ns-3"}
COLUMNS = (
    *("flows", "program", Column("per packet", unit=units.time), "±", "s/s"),
    Column("memory", unit=units.size),
    Column("queue", unit=partial(units.percent, decimals=0)),
    Column("lost", unit=partial(units.percent, decimals=1)),
    "times weir-sim",
)
FLOOR = "tools/bench/weir-floor"


class Figures(Struct):
    """Figures of a program at a load: the medians of the rounds."""

    ns_per_packet: float
    ns_per_packet_min: float
    ns_per_packet_max: float
    over_weir: float | None
    speed: float
    queue_fill: float
    dropped: int
    lost: float
    peak_bytes: int | None
    rounds: list[dict[str, float | None]]


class Row(Struct):
    """Figures of all programs at a load."""

    row: str
    flows: int
    gbit: int
    weir: Figures | None
    floor: Figures | None
    htsim: Figures | None
    ns3: Figures | None

    def cells(self) -> Iterator[list[str | float | None]]:
        """Yields a line of COLUMNS for each program that was measured."""
        flows = self.row
        for name, label in LABELS.items():
            of: Figures | None = getattr(self, name)
            if of is not None:
                ns, times = of.ns_per_packet, "" if name == "weir" else of.over_weir
                spread = half_spread(of.ns_per_packet_min, of.ns_per_packet_max, ns)
                shares = (of.peak_bytes, of.queue_fill, of.lost)
                yield [flows, label, ns, spread, of.speed, *shares, times]
                flows = ""


class Growth(Struct):
    """A packet's cost at the most flows over that at the fewest, all at 10 Gbit/s."""

    flows: list[int]
    lost: list[float]
    ratio: float

    def line(self, label: str) -> str:
        """Returns a line such as "htsim: 4.1 from 100 flows (0.0 % lost) to 50,000 (3.0 %)"."""
        few, many = (units.count(flows) for flows in self.flows)
        lost = [units.percent(share, 1) for share in self.lost]
        return (
            f"growth of a packet's cost, {label}: {units.number(self.ratio)} from {few} flows"
            f" ({lost[0]} lost) to {many} ({lost[1]} lost)"
        )


class Corescale(Result):
    """The result of `weir bench corescale`."""

    bench: str
    machine: str
    ns3: str | None
    rows: list[Row]
    core_share: float
    growth: dict[str, Growth | None]

    def medians(self) -> dict[str, float]:
        return {row.row: row.weir.ns_per_packet for row in self.rows if row.weir}

    def parts(self) -> Iterator[Table | Status | str]:
        """Yields the table and its notes."""
        yield Table(COLUMNS, [line for row in self.rows for line in row.cells()], left=2)
        for name, growth in self.growth.items():
            if growth is not None:
                yield growth.line(LABELS[name])
        yield (
            "per packet: processor time per data packet through the bottleneck in steady state,"
            " median and half the spread; s/s: simulated seconds per wall-clock second; queue:"
            " mean, of 300 ms of buffer; lost: packets, of those that came to the bottleneck; where"
            " losses differ, so does what is repaired"
        )
        yield from busy(self.core_share, "a program", "; s/s says less than this machine can do")
        if self.ns3:
            dropped = sum(row.ns3.dropped for row in self.rows if row.ns3)
            losses = f"with {dropped:,} packets lost" if dropped else "before its first loss"
            yield (
                f"ns-3: {self.ns3}; begins with a full buffer, in congestion avoidance, and is"
                f" measured {losses}; at {GBIT} Gbit/s only"
            )
        yield f"machine: {self.machine}"


@dataclass
class Runs:
    """All samples of one load: by program, in order of the rounds."""

    load: Load
    samples: dict[str, list[Sample]] = field(default_factory=dict)

    def ratio(self, program: str, base: str) -> float | None:
        """Returns the median over the rounds of a program's cost over another's."""
        pairs = zip(self.samples.get(program, []), self.samples.get(base, []), strict=False)
        return middle([a.ns / b.ns for a, b in pairs])

    def figures(self, program: str) -> Figures | None:
        """Returns a program's figures, or None if it was not measured."""
        samples = self.samples.get(program)
        if not samples:
            return None
        ns = [s.ns for s in samples]
        return Figures(
            ns_per_packet=median(ns),
            ns_per_packet_min=min(ns),
            ns_per_packet_max=max(ns),
            over_weir=self.ratio(program, "weir"),
            speed=median(s.speed for s in samples),
            queue_fill=median(s.queue_fill for s in samples),
            dropped=sum(s.dropped for s in samples),
            lost=median(s.lost for s in samples),
            peak_bytes=max((s.peak_bytes for s in samples if s.peak_bytes), default=None),
            rounds=[{**structs.asdict(s), "ns_per_packet": s.ns} for s in samples],
        )


def growth(rows: Sequence[Runs], program: str) -> Growth | None:
    """Returns the growth of a program's cost, the median over the rounds; None: one load only."""
    measured = [row for row in rows if row.load.gbit == GBIT and row.samples.get(program)]
    if len(measured) < 2:
        return None
    ordered = sorted(measured, key=lambda row: row.load.flows)
    few, many = (row.samples[program] for row in (ordered[0], ordered[-1]))
    return Growth(
        flows=[ordered[0].load.flows, ordered[-1].load.flows],
        lost=[median(s.lost for s in samples) for samples in (few, many)],
        ratio=median(b.ns / a.ns for a, b in zip(few, many, strict=False)),
    )


def programs(
    rounds: Rounds, folder: Path, length: Length, floor_packets: int, htsim: Path | None, ns3: bool
) -> dict[str, Callable[[Load, int], Sample]]:
    """Builds what is missing; returns functions that measure a load in a round."""

    def weir(load: Load, number: int) -> Sample:
        return sim.weir(load, length, folder / f"{load.flows}-{load.gbit}g-{number}")

    if rounds.alone:
        return {"weir": weir}
    if htsim is not None:
        simulators.build_htsim(htsim)
    floor = sim.build_targets(FLOOR) / FLOOR
    if ns3:
        simulators.build_ns3()
    measured: dict[str, Callable[[Load, int], Sample]] = {
        "weir": weir,
        "floor": lambda load, _: sim.peer([floor, load.flows, floor_packets, load.gbit]),
        "htsim": lambda load, _: simulators.htsim(load, length),
        "ns3": lambda load, _: simulators.ns3(load),
    }
    left_out = {name for name, here in (("htsim", htsim is not None), ("ns3", ns3)) if not here}
    return {name: sample for name, sample in measured.items() if name not in left_out}


def measure(
    loads: Sequence[Load],
    rounds: Rounds,
    *,
    with_ns3: bool = False,
    htsim: Path | None = None,
    out: Path | None = None,
    length: Length = DEFAULT,
    floor_packets: int = 50_000_000,
) -> Corescale:
    """Measures all programs; with `out`, bench.json and the run folders stay there."""
    if out is not None and out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise UserError(f"{out}: not an empty folder")
    rows = [Runs(load) for load in loads]
    with tempfile.TemporaryDirectory(prefix="weir-bench-") as scratch:
        folder = out or Path(scratch)
        measured = programs(rounds, folder, length, floor_packets, htsim, with_ns3)
        for number in rounds:
            for row in rows:
                for name, sample in measured.items():
                    if name == "ns3" and row.load.gbit != GBIT:
                        continue
                    got = sample(row.load, number)
                    row.samples.setdefault(name, []).append(got)
                    where = f"{row.load.name} flows: {LABELS[name]}"
                    rounds.say(number, f"{where} {units.number(got.ns)} ns per packet")
    found = report(rows)
    if out is not None:
        (out / "bench.json").write_text(found.json() + "\n")
    return found


def report(rows: Sequence[Runs]) -> Corescale:
    """Returns the result of all rounds."""
    samples = [s for row in rows for each in row.samples.values() for s in each]
    return Corescale(
        bench="corescale",
        machine=machine(),
        ns3=simulators.ns3_build() if any("ns3" in row.samples for row in rows) else None,
        rows=[
            Row(
                r.load.name, r.load.flows, r.load.gbit, **{name: r.figures(name) for name in LABELS}
            )
            for r in rows
        ],
        core_share=min(s.cpu_s / s.wall_s for s in samples),
        growth={name: growth(rows, name) for name in LABELS},
    )
