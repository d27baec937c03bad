# SPDX-License-Identifier: BSD-3-Clause
"""Cells that differ from a time on only: what they share is computed once.

For each seed one weir-sim runs them as branches of one run. A branch's folder is what its cell's
own run would be, and takes its place; a cell whose branch failed is run like any other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from weir.many import cells
from weir.many.grid import Sweep
from weir.runner.bar import Bar
from weir.runner.options import Options
from weir.runner.run import run_sim
from weir.runner.session import end_if_interrupted

BRANCHES_MAX = 256  # of a run, as weir-sim has it

Planned = Sequence[tuple[Options, dict[str, str]]]


def run(sweep: Sweep, planned: Planned, out: Path, console: Console, workers: int | None) -> None:
    """Runs the cells that are not there yet into out/NAME, which nobody else writes to."""
    for seed in sweep.seeds:
        wanted = [
            (cell, point)
            for cell, point in planned
            if cell.seed == seed and not (out / cell.name).exists()
        ]
        for first in range(0, len(wanted), BRANCHES_MAX):
            trunk(sweep, wanted[first : first + BRANCHES_MAX], out, console, workers)


def trunk(sweep: Sweep, wanted: Planned, out: Path, console: Console, workers: int | None) -> None:
    """Runs the cells of one seed."""
    runs = ", ".join(f"b{i}: {{{sweep.changes(point)}}}" for i, (_, point) in enumerate(wanted))
    place = out / f".trunk-{wanted[0][0].name}.cell"
    options = replace(
        wanted[0][0],
        out=place,
        overrides=(f"branches={{at: {sweep.branch_at}, runs: {{{runs}}}}}",),
        threads=workers,
    )
    with Bar(console, f"the first {sweep.branch_at} of {len(wanted)} cells") as bar:
        end_if_interrupted(run_sim(options, bar))
    for i, (cell, _) in enumerate(wanted):
        branch = place / f"branches/b{i}"
        if cells.finished(branch, None) is not None:
            cells.move(branch, out / cell.name)
