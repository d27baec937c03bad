# SPDX-License-Identifier: BSD-3-Clause
"""Measures a simulated packet: weir-sim, a bare loop and other simulators, one after the other.

A program's cost grows with the number of flows, and with what is lost: repair is work. So losses
stand beside each cost.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console

from weir import bootstrap
from weir.base import terminal, units
from weir.base.errors import UserError
from weir.base.page import Table
from weir.base.programs import build_dir
from weir.bench import sim, simulators
from weir.bench.rounds import rounds
from weir.bench.sim import GBIT, Length, Load, Sample, middle
from weir.bench.simulators import Ns3Length

LABELS = {"weir": "weir-sim", "floor": "floor", "htsim": "htsim", "ns3": "ns-3"}
COLUMNS = (
    "flows",
    "program",
    "per packet",
    "±",
    "s/s",
    "memory",
    "queue",
    "lost",
    "times weir-sim",
)
FLOOR_PACKETS = 50_000_000

Measure = Callable[[Load, int], Sample]  # of a load and of the round


@dataclass(frozen=True)
class Lengths:
    """Length of each program's measurement; the floor and ns-3 warm up by themselves."""

    weir: Length = field(default_factory=Length)
    floor_packets: int = FLOOR_PACKETS
    ns3: Ns3Length = field(default_factory=Ns3Length)


@dataclass
class Row:
    """All samples of one load: by program, in order of the rounds."""

    load: Load
    samples: dict[str, list[Sample]] = field(default_factory=dict)

    def ns(self, program: str) -> float | None:
        return middle([s.ns for s in self.samples.get(program, [])])

    def ratio(self, program: str, base: str) -> float | None:
        """Returns the median over the rounds of a program's cost over another's."""
        pairs = zip(self.samples.get(program, []), self.samples.get(base, []), strict=False)
        return middle([a.ns / b.ns for a, b in pairs])

    def core_share(self) -> float:
        """Returns the least part of a core that a program got."""
        return min(s.cpu_s / s.wall_s for samples in self.samples.values() for s in samples)

    def figures(self, program: str) -> dict[str, Any] | None:
        """Returns a program's part of the JSON."""
        samples = self.samples.get(program)
        if not samples:
            return None
        ns = [s.ns for s in samples]
        return {
            "ns_per_packet": middle(ns),
            "ns_per_packet_min": min(ns),
            "ns_per_packet_max": max(ns),
            "over_weir": self.ratio(program, "weir"),
            "speed": middle([s.speed for s in samples]),
            "queue_fill": middle([s.queue_fill for s in samples]),
            "dropped": sum(s.dropped for s in samples),
            "lost": middle([s.lost for s in samples]),
            "peak_bytes": max((s.peak_bytes for s in samples if s.peak_bytes), default=None),
            "rounds": [{**vars(s), "ns_per_packet": s.ns} for s in samples],
        }


def growth(rows: Sequence[Row], program: str) -> dict[str, Any] | None:
    """Returns a packet's cost at the most flows over that at the fewest, all at 10 Gbit/s.

    The median over the rounds, and what each of the two lost.
    """
    measured = [row for row in rows if row.load.gbit == GBIT and row.samples.get(program)]
    ordered = sorted(measured, key=lambda row: row.load.flows)
    if len(ordered) < 2:
        return None
    ends = (ordered[0], ordered[-1])
    few, many = (row.samples[program] for row in ends)
    return {
        "flows": [row.load.flows for row in ends],
        "lost": [middle([s.lost for s in samples]) for samples in (few, many)],
        "ratio": middle([b.ns / a.ns for a, b in zip(few, many, strict=False)]),
    }


def floor(load: Load, packets: int) -> Sample:
    """Measures the bare loop."""
    program = build_dir() / "tools/bench/weir-floor"
    out, peak = sim.child([str(program), str(load.flows), str(packets), str(load.gbit)])
    return sim.sample(json.loads(out), peak)


def build_all(with_ns3: bool, htsim: Path | None) -> None:
    """Builds what the normal build leaves out."""
    try:
        if htsim is not None:
            simulators.build_htsim(htsim)
        sim.build_targets("tools/bench/weir-floor")
        if with_ns3:
            simulators.build_ns3()
    except bootstrap.SetupError as error:
        raise UserError(str(error), 1) from None


def interleave(
    rows: Sequence[Row], repeat: int, programs: Mapping[str, Measure], screen: Console
) -> None:
    """Measures every program at every load, again and again, telling each figure."""
    for number in rounds(repeat, screen):
        for row in rows:
            for name, measure in programs.items():
                if name == "ns3" and row.load.gbit != GBIT:
                    continue
                got = measure(row.load, number)
                row.samples.setdefault(name, []).append(got)
                screen.print(
                    f"round {number} of {repeat}, {row.load.name} flows: {LABELS[name]}"
                    f" {units.number(got.ns)} ns per packet"
                )


def measure(
    loads: Sequence[Load],
    repeat: int,
    screen: Console,
    *,
    with_ns3: bool = False,
    htsim: Path | None = None,
    out: Path | None = None,
    alone: bool = False,
    lengths: Lengths | None = None,
) -> dict[str, Any]:
    """Measures all programs; with `out`, bench.json and the run folders stay there.

    alone: weir-sim only.
    """
    if out is not None and out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise UserError(f"{out}: not an empty folder")
    long = lengths or Lengths()
    rows = [Row(load) for load in loads]
    if not alone:
        build_all(with_ns3, htsim)
    with tempfile.TemporaryDirectory(prefix="weir-bench-") as scratch:
        folder = out or Path(scratch)
        programs: dict[str, Measure] = {
            "weir": lambda load, number: sim.weir(
                load, long.weir, folder / f"{load.flows}-{load.gbit}g-{number}"
            )
        }
        if not alone:
            programs["floor"] = lambda load, _: floor(load, long.floor_packets)
        if htsim is not None:
            programs["htsim"] = lambda load, _: simulators.htsim(load, long.weir)
        if with_ns3:
            programs["ns3"] = lambda load, _: simulators.ns3(load, long.ns3)
        interleave(rows, repeat, programs, screen)
    found = report(rows)
    if out is not None:
        (out / "bench.json").write_text(json.dumps(found, indent=1) + "\n")
    return found


def report(rows: Sequence[Row]) -> dict[str, Any]:
    """Returns all figures for bench.json."""
    return {
        "bench": "corescale",
        "machine": sim.machine(),
        "ns3": simulators.ns3_build() if any("ns3" in row.samples for row in rows) else None,
        "rows": [
            {
                "row": row.load.name,
                "flows": row.load.flows,
                "gbit": row.load.gbit,
                **{name: row.figures(name) for name in LABELS},
            }
            for row in rows
        ],
        "core_share": min(row.core_share() for row in rows),
        "growth": {name: growth(rows, name) for name in LABELS},
    }


def medians(found: Mapping[str, Any]) -> dict[str, float]:
    return {row["row"]: row["weir"]["ns_per_packet"] for row in found["rows"]}


def table_rows(row: Mapping[str, Any]) -> list[list[str]]:
    """Returns a line of COLUMNS for each program that was measured at a load."""
    lines: list[list[str]] = []
    for name, label in LABELS.items():
        figures = row[name]
        if figures is None:
            continue
        ns = figures["ns_per_packet"]
        spread = (figures["ns_per_packet_max"] - figures["ns_per_packet_min"]) / 2 / ns
        lines.append(
            [
                row["row"] if not lines else "",
                label,
                units.time(ns),
                units.percent(spread, 0),
                units.number(figures["speed"]),
                units.size(figures["peak_bytes"]),
                units.percent(figures["queue_fill"], 0),
                units.percent(figures["lost"], 1),
                units.number(figures["over_weir"]) if name != "weir" else "",
            ]
        )
    return lines


def growth_line(label: str, grown: Mapping[str, Any]) -> str:
    """Returns a line such as "htsim: 4.1 from 100 flows (0.0 % lost) to 50,000 (3.0 %)"."""
    few, many = (units.count(flows) for flows in grown["flows"])
    lost = [units.percent(share, 1) for share in grown["lost"]]
    return (
        f"growth of a packet's cost, {label}: {units.number(grown['ratio'])} from {few} flows"
        f" ({lost[0]} lost) to {many} ({lost[1]} lost)"
    )


def show(found: Mapping[str, Any], screen: Console) -> None:
    """Prints the table, and what has to be known to read it."""
    rows = found["rows"]
    lines = [line for row in rows for line in table_rows(row)]
    terminal.print_table(screen, Table(COLUMNS, lines, left=2))
    screen.print()
    for name, grown in found["growth"].items():
        if grown is not None:
            screen.print(growth_line(LABELS[name], grown), soft_wrap=True)
    screen.print(
        "per packet: processor time per data packet through the bottleneck in steady state, median"
        " and half the spread; s/s: simulated seconds per wall-clock second; queue: mean, of 300 ms"
        " of buffer; lost: packets, of those that came to the bottleneck; where losses differ, so"
        " does what is repaired",
        soft_wrap=True,
    )
    sim.warn_busy(
        found["core_share"], "a program", "; s/s says less than this machine can do", screen
    )
    if found["ns3"]:
        dropped = sum(row["ns3"]["dropped"] for row in rows if row["ns3"])
        losses = f"with {dropped:,} packets lost" if dropped else "before its first loss"
        screen.print(
            f"ns-3: {found['ns3']}; begins with a full buffer, in congestion avoidance, and is"
            f" measured {losses}; at {GBIT} Gbit/s only",
            soft_wrap=True,
        )
    screen.print(f"machine: {found['machine']}", soft_wrap=True)
