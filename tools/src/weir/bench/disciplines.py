# SPDX-License-Identifier: BSD-3-Clause
"""Measures a packet of each fair-queueing discipline in virtual time, above a fifo.

weir-aqm gives each a closed loop with the same flows, windows and arrivals, without a transport and
without losses; the loops run in turns in one process, and a fifo's cost in the same round is taken
off. So what is compared is the discipline alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import median

from msgspec import Struct

from weir.base import foreign, units
from weir.base.page import Column, Status, Table
from weir.bench import sim
from weir.bench.rounds import Result, Rounds, machine

PROGRAM = "tools/bench/weir-aqm"
BASE = "fifo"
ABOVE_NS_MAX = 40.0
LIMIT = "limit: 1000000pkt"  # above what is ever queued
MEMORY = "memlimit: 4GB"  # of cake, for that limit
REST = "target: 900s, interval: 900s"
# A discipline is at rest if no delay is above its target. With its defaults, 300 ms of queue make
# CoDel and COBALT mark; PIE's probability would only grow until it drops all, as no flow answers.
CASES = {
    BASE: (BASE, LIMIT),
    "drr": ("drr", LIMIT),
    "fq_codel": ("fq_codel", f"{LIMIT}, {REST}"),
    "fq_codel, marking": ("fq_codel", LIMIT),
    "fq_pie": ("fq_pie", f"{LIMIT}, target: 10s"),
    "cake": ("cake", f"{MEMORY}, {LIMIT}, buckets: 65536, {REST}"),
    "cake, marking": ("cake", f"{MEMORY}, {LIMIT}, buckets: 65536"),
}
COLUMNS = (
    Column("discipline", "name"),
    Column("\nflows", "flows", units.count),
    Column("ns above fifo\nper packet", "above_ns", "{:.1f}".format),
    Column("\nfrom", "above_ns_min", "{:.1f}".format),
    Column("\nto", "above_ns_max", "{:.1f}".format),
    Column("\nfifo and loop", "fifo_ns", "{:.1f}".format),
    Column("marked\nper packet", "marked", "{:.2f}".format),
)


class Line(Struct):
    """A case's line of weir-aqm, for a round; ns is per packet."""

    ns: float
    marked: int
    dropped: int


class Row(Struct):
    """Figures of a case, less the fifo's in the same round."""

    name: str
    flows: int
    above_ns: float
    above_ns_min: float
    above_ns_max: float
    fifo_ns: float
    marked: float
    dropped: int
    within: bool


class Disciplines(Result):
    """The result of `weir bench aqm`."""

    rounds: int
    machine: str
    rows: list[Row]

    def medians(self) -> dict[str, float]:
        return {f"{row.name}, {row.flows:,} flows": row.above_ns for row in self.rows}

    def parts(self) -> Iterator[Table | Status | str]:
        """Yields the table and its notes."""
        yield Table(COLUMNS, self.rows)
        beyond = "; ".join(f"{row.name} ({row.flows:,})" for row in self.rows if not row.within)
        limit = f"{ABOVE_NS_MAX:.0f} ns above fifo"
        yield f"beyond {limit}: {beyond}" if beyond else f"all are within {limit}"
        yield (
            f"10 Gbit/s, 20 ms, 250,000 packets queued; median of {self.rounds} rounds, each less"
            " the fifo's cost in it; no packet is lost, and there is no transport"
        )


def parse(text: str) -> list[Mapping[str, Line]]:
    """Returns rounds from weir-aqm's lines: a line per case, in order, again and again."""
    lines = [foreign.decode(line.encode(), Line, "weir-aqm") for line in text.splitlines()]
    starts = range(0, len(lines), len(CASES))
    return [dict(zip(CASES, lines[n : n + len(CASES)], strict=True)) for n in starts]


def rows(flows: int, packets: int, rounds: Sequence[Mapping[str, Line]]) -> Iterator[Row]:
    """Yields the figures of each case."""
    fifo_ns = median(lines[BASE].ns for lines in rounds)
    for name, last in rounds[-1].items():
        if name != BASE:
            above = [lines[name].ns - lines[BASE].ns for lines in rounds]
            ns = median(above)
            marked, within = last.marked / packets, ns <= ABOVE_NS_MAX
            figures = (ns, min(above), max(above), fifo_ns, marked, last.dropped, within)
            yield Row(name, flows, *figures)


def measure(flows: Sequence[int], packets: int, rounds: Rounds) -> Disciplines:
    """Builds weir-aqm and measures all cases in rounds."""
    program = sim.build_targets(PROGRAM) / PROGRAM
    cases = [text for name, params in CASES.values() for text in (name, f"{{{params}}}")]
    found: list[Row] = []
    for count in flows:
        argv = [program, count, packets, rounds.repeat, *cases]
        found += rows(count, packets, parse(sim.child(argv)[0]))
    return Disciplines(rounds.repeat, machine(), found)
