# SPDX-License-Identifier: BSD-3-Clause
"""Measures how much faster several threads are than one, beside independent copies of the run.

What as many copies reach together is the machine's ceiling: they share its caches, its memory and
its clock rate as threads do, but wait for nobody.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console

from weir.base import terminal, units
from weir.base.errors import UserError
from weir.base.page import Table
from weir.bench import sim
from weir.bench.rounds import rounds
from weir.bench.sim import Length, Load, Sample, middle

THREADS_MAX = 64
COLUMNS = ("threads", "used", "s/s", "±", "times one", "copies' s/s", "efficiency", "per packet")


@dataclass
class Row:
    """Runs with a number of threads, one in each round, and the copies beside it."""

    threads: int
    runs: list[Sample] = field(default_factory=list)
    copies: list[list[Sample]] = field(default_factory=list)  # none above the machine's CPUs

    def efficiencies(self) -> list[float]:
        pairs = zip(self.runs, self.copies, strict=False)
        return [run.speed / sum(copy.speed for copy in copies) for run, copies in pairs]

    def figures(self, one: Sequence[Sample], cpus: int) -> dict[str, Any]:
        """Returns the row as JSON; `one`: the runs with one thread, in the same rounds."""
        speeds = [run.speed for run in self.runs]
        return {
            "threads": self.threads,
            "used": max(run.threads for run in self.runs),
            "beyond_cpus": self.threads > cpus,
            "speed": middle(speeds),
            "speed_min": min(speeds),
            "speed_max": max(speeds),
            "over_one": middle([a.speed / b.speed for a, b in zip(self.runs, one, strict=False)]),
            "copies_speed": middle([sum(c.speed for c in copies) for copies in self.copies]),
            "efficiency": middle(self.efficiencies()),
            "ns_per_packet": middle([run.ns for run in self.runs]),
            "wall_ns_per_packet": middle([r.wall_s * 1e9 / r.data_segs for r in self.runs]),
            "rounds": [vars(run) for run in self.runs],
        }


def parse(text: str) -> list[int]:
    """Returns the numbers of threads of the command line (1,2,4,8), 1 always among them."""
    words = [word.strip() for word in text.split(",")]
    for word in words:
        if not word.isdecimal() or not 1 <= int(word) <= THREADS_MAX:
            raise UserError(f"--threads: '{word}' is not a number in [1, {THREADS_MAX}]")
    return sorted({1, *map(int, words)})


def measure(
    load: Load,
    threads: Sequence[int],
    repeat: int,
    screen: Console,
    *,
    alone: bool = False,
    length: Length | None = None,
) -> dict[str, Any]:
    """Measures all numbers of threads in rounds; alone: without copies."""
    long = length or Length()
    cpus = len(os.sched_getaffinity(0))
    rows = [Row(count) for count in threads]
    with tempfile.TemporaryDirectory(prefix="weir-bench-") as scratch:
        folder = Path(scratch)
        for number in rounds(repeat, screen):
            for row in rows:
                where = f"round {number} of {repeat}, {row.threads} threads"
                row.runs.append(
                    sim.weir(load, long, folder / f"{number}-{row.threads}", row.threads)
                )
                screen.print(f"{where}: {units.number(row.runs[-1].speed)} s/s")
                if not alone and 1 < row.threads <= cpus:
                    row.copies.append(
                        together(load, long, folder / f"{number}-copies", row.threads)
                    )
                    speed = sum(copy.speed for copy in row.copies[-1])
                    screen.print(f"{where}: {units.number(speed)} s/s by as many copies")
    return report(load, rows, cpus)


def together(load: Load, length: Length, prefix: Path, count: int) -> list[Sample]:
    """Runs copies at the same time, each with one thread."""
    with ThreadPoolExecutor(count) as pool:
        jobs = [
            pool.submit(sim.weir, load, length, Path(f"{prefix}-{count}-{number}"))
            for number in range(count)
        ]
        return [job.result() for job in jobs]


def report(load: Load, rows: Sequence[Row], cpus: int) -> dict[str, Any]:
    """Returns all figures as JSON has them."""
    one = rows[0].runs
    return {
        "bench": "threads",
        "machine": sim.machine(),
        "cpus": cpus,
        "load": load.name,
        "rows": [row.figures(one, cpus) for row in rows],
        "core_share": min(run.cpu_s / run.wall_s for run in one),
    }


def medians(found: Mapping[str, Any]) -> dict[str, float]:
    return {
        f"{found['load']}, {row['threads']} threads": row["wall_ns_per_packet"]
        for row in found["rows"]
    }


def table_row(row: Mapping[str, Any]) -> list[str]:
    """Returns a number of threads as COLUMNS wants it."""
    spread = (row["speed_max"] - row["speed_min"]) / 2 / row["speed"]
    return [
        f"{row['threads']}{'*' if row['beyond_cpus'] else ''}",
        units.count(row["used"]),
        units.number(row["speed"]),
        units.percent(spread, 0),
        units.number(row["over_one"]),
        units.number(row["copies_speed"]),
        units.percent(row["efficiency"], 0),
        units.time(row["ns_per_packet"]),
    ]


def show(found: Mapping[str, Any], screen: Console) -> None:
    """Prints the table, and what has to be known to read it."""
    rows = found["rows"]
    cells = [table_row(row) for row in rows]
    terminal.print_table(screen, Table(COLUMNS, cells, left=0))
    screen.print()
    screen.print(
        f"{found['load']} flows; s/s: simulated seconds per wall-clock second, median and half the"
        " spread; copies: as many runs at the same time, one thread each; efficiency: s/s of the"
        " threads over that of the copies together; per packet: processor time of all threads",
        soft_wrap=True,
    )
    if any(row["beyond_cpus"] for row in rows):
        screen.print(f"*: more threads than the {found['cpus']} CPUs of this machine")
    sim.warn_busy(found["core_share"], "one thread", "", screen)
    screen.print(f"machine: {found['machine']}", soft_wrap=True)
