# SPDX-License-Identifier: BSD-3-Clause
"""Measures how much faster several threads are than one, beside independent copies of the run.

What as many copies reach together is the machine's ceiling: they share its caches, its memory and
its clock rate as threads do, but wait for nobody.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import median

from msgspec import Struct

from weir.base import units
from weir.base.errors import UserError
from weir.base.page import Column, Status, Table
from weir.bench import sim
from weir.bench.rounds import Result, Rounds, busy, half_spread, machine, middle
from weir.bench.sim import DEFAULT, Length, Load, Sample

THREADS_MAX = 64


class Row(Struct):
    """Figures of a number of threads: the medians of the rounds."""

    threads: int
    used: int
    beyond_cpus: bool
    speed: float
    speed_min: float
    speed_max: float
    over_one: float
    copies_speed: float | None
    efficiency: float | None
    ns_per_packet: float
    wall_ns_per_packet: float
    rounds: list[Sample]


@dataclass
class Runs:
    """Runs with a number of threads, one in each round, and the copies beside it."""

    threads: int
    runs: list[Sample] = field(default_factory=list)
    copies: list[float] = field(default_factory=list)  # their speed; none above the machine's CPUs

    def row(self, one: Sequence[Sample], cpus: int) -> Row:
        """Returns the figures; `one`: the runs with one thread, in the same rounds."""
        speeds = [run.speed for run in self.runs]
        return Row(
            threads=self.threads,
            used=max(run.threads for run in self.runs),
            beyond_cpus=self.threads > cpus,
            speed=median(speeds),
            speed_min=min(speeds),
            speed_max=max(speeds),
            over_one=median(a / b.speed for a, b in zip(speeds, one, strict=True)),
            copies_speed=middle(self.copies),
            efficiency=middle([a / b for a, b in zip(speeds, self.copies, strict=False)]),
            ns_per_packet=median(run.ns for run in self.runs),
            wall_ns_per_packet=median(run.wall_s * 1e9 / run.data_segs for run in self.runs),
            rounds=self.runs,
        )


class Threads(Result):
    """The result of `weir bench threads`."""

    bench: str
    machine: str
    cpus: int
    load: str
    rows: list[Row]
    core_share: float

    def medians(self) -> dict[str, float]:
        return {f"{self.load}, {row.threads} threads": row.wall_ns_per_packet for row in self.rows}

    def parts(self) -> Iterator[Table | Status | str]:
        """Yields the table and its notes."""
        yield Table(COLUMNS, self.rows, left=0)
        yield (
            f"{self.load} flows; s/s: simulated seconds per wall-clock second, median and half the"
            " spread; copies: as many runs at the same time, one thread each; efficiency: s/s of"
            " the threads over that of the copies together; per packet: processor time of all"
            " threads"
        )
        if any(row.beyond_cpus for row in self.rows):
            yield f"*: more threads than the {self.cpus} CPUs of this machine"
        yield from busy(self.core_share, "one thread")
        yield f"machine: {self.machine}"


COLUMNS = (
    Column("threads", lambda row: f"{row.threads}{'*' if row.beyond_cpus else ''}"),
    Column("used"),
    Column("s/s", "speed"),
    Column("±", lambda row: half_spread(row.speed_min, row.speed_max, row.speed)),
    Column("times one", "over_one"),
    Column("copies' s/s", "copies_speed"),
    Column("efficiency", unit=partial(units.percent, decimals=0)),
    Column("per packet", "ns_per_packet", units.time),
)


def parse(text: str) -> list[int]:
    """Returns the numbers of threads of the command line (1,2,4,8), 1 always among them."""
    words = [word.strip() for word in text.split(",")]
    for word in words:
        if not word.isdecimal() or not 1 <= int(word) <= THREADS_MAX:
            raise UserError(f"--threads: '{word}' is not a number in [1, {THREADS_MAX}]")
    return sorted({1, *map(int, words)})


def measure(
    load: Load, threads: Sequence[int], rounds: Rounds, length: Length = DEFAULT
) -> Threads:
    """Measures all numbers of threads in rounds; copies unless alone."""
    cpus = len(os.sched_getaffinity(0))
    rows = [Runs(count) for count in threads]
    with tempfile.TemporaryDirectory(prefix="weir-bench-") as scratch:
        for number in rounds:
            for row in rows:
                where, out = f"{row.threads} threads", f"{scratch}/{number}-{row.threads}"
                row.runs.append(sim.weir(load, length, Path(out), row.threads))
                rounds.say(number, f"{where}: {units.number(row.runs[-1].speed)} s/s")
                if not rounds.alone and 1 < row.threads <= cpus:
                    row.copies.append(together(load, length, out, row.threads))
                    speed = units.number(row.copies[-1])
                    rounds.say(number, f"{where}: {speed} s/s by as many copies")
    return report(load, rows, cpus)


def together(load: Load, length: Length, prefix: str, count: int) -> float:
    """Runs copies at the same time, each with one thread; returns their speed together."""
    outs = [Path(f"{prefix}-copy-{number}") for number in range(count)]
    with ThreadPoolExecutor(count) as pool:
        return sum(run.speed for run in pool.map(partial(sim.weir, load, length), outs))


def report(load: Load, rows: Sequence[Runs], cpus: int) -> Threads:
    one = rows[0].runs
    share = min(run.cpu_s / run.wall_s for run in one)
    return Threads(
        "threads", machine(), cpus, load.name, [row.row(one, cpus) for row in rows], share
    )
