# SPDX-License-Identifier: BSD-3-Clause
"""Runs a study's cells, or reuses them, and writes what came out beside what was published."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console

from weir import runner, summary, units
from weir.analysis import folder, metrics
from weir.report import theme
from weir.study import corescale, page, validation
from weir.study.cells import Outcome, run_cells
from weir.study.corescale import Measured, Plan
from weir.study.validation import Validation

STUDIES = ("corescale", "edgescale", "papers", "linux")
NS_PER_PACKET = 100.0  # of weir-sim on one core, for estimates


def plan(study: str, quick: bool, out: Path | None) -> Plan:
    """The cells of `corescale` or `edgescale`."""
    default = Path("runs") / f"{study}-{'quick' if quick else 'full'}"
    return Plan(study, quick, out or default, corescale.cases(study))


def plan_rows(made: Plan) -> list[dict[str, Any]]:
    """The cells, their lengths and what they cost; warmup_s None: the config's."""
    rows = []
    for case in made.ordered:
        packets = case.packets(made.quick)
        rows.append(
            {
                "cell": case.name,
                "flows": case.flows,
                "rtt_ms": case.rtt_ms,
                "warmup_s": case.quick.warmup if made.quick else None,
                "length_s": case.quick.duration if made.quick else corescale.STUDY_S,
                "packets": packets,
                "wall_s": packets * NS_PER_PACKET / metrics.NS_PER_S,
            }
        )
    return rows


def show_plan(made: Plan, workers: int, screen: Console) -> None:
    """The cells, their lengths and what they cost, without running any."""
    planned = plan_rows(made)
    total_s = sum(row["wall_s"] for row in planned)
    rows = [
        [
            row["cell"],
            units.count(row["flows"]),
            f"{row['rtt_ms']} ms",
            f"{row['warmup_s']} s" if made.quick else "as configured",
            f"{row['length_s']:,} s" if made.quick else f"at most {row['length_s']:,} s",
            f"{row['packets'] / 1e6:,.0f} M",
            f"{row['wall_s']:,.0f} s",
        ]
        for row in planned
    ]
    columns = ("cell", "flows", "RTT", "warm-up", "length", "packets", "wall")
    summary.print_table(screen, summary.table(columns, rows, left=1))
    screen.print(
        f"{len(rows)} cells, {total_s:,.0f} s of one core at {NS_PER_PACKET:.0f} ns per packet:"
        f" about {units.time(max(total_s / workers, 1.0) * 1e9)} on {workers} cores"
    )


def run(
    made: Plan,
    screen: Console,
    *,
    scheduler: str | None = None,
    workers: int | None = None,
    as_json: bool = False,
) -> int:
    """Runs what is not there yet, writes page and table, shows the claims; exit status.

    as_json: the claims go to standard output too.
    """
    cells = [case.cell(made.quick) for case in made.ordered]
    outcomes = run_cells(
        cells, made.out / "cells", scheduler=scheduler, workers=workers, on_outcome=progress(screen)
    )
    measured, failed = collect(made, outcomes)
    html, parquet = write(made, measured, failed)
    said = validation.of(measured, made.study)
    show_validations(said, screen)
    for note in page.same_runs(measured):
        screen.print(note, style="yellow", soft_wrap=True)
    return finish(
        screen, failed, (parquet, html), [asdict(one) for one in said] if as_json else None
    )


def progress(screen: Console) -> Callable[[Outcome, int, int], None]:
    """Says what became of each cell, and how long the others may take."""
    started_s, ran = time.monotonic(), 0

    def show_outcome(outcome: Outcome, number: int, total: int) -> None:
        nonlocal ran
        ran += outcome.status != "reused"
        why = f": {outcome.message}" if outcome.message else ""
        left = runner.left(time.monotonic() - started_s, ran, ran + total - number)
        said = f"[{number}/{total}] {outcome.cell.name} {outcome.status}{why}"
        screen.print(", ".join([said, *left]), markup=False, soft_wrap=True)

    return show_outcome


def finish(screen: Console, failed: dict[str, str], written: Sequence[Path], data: Any) -> int:
    """What failed and what was written, and data, unless it is None, as JSON; exit status."""
    for name, message in failed.items():
        screen.print(f"{name} failed: {message}", style="red", markup=False, soft_wrap=True)
    for path in written:
        screen.print(str(path), soft_wrap=True)
    if data is not None:
        print(json.dumps(data, indent=1, default=str))
    return 1 if failed else 0


def collect(made: Plan, outcomes: Sequence[Outcome]) -> tuple[dict[str, Measured], dict[str, str]]:
    """What was measured in each cell that ran, in the study's order; why the others did not."""
    by_name = {outcome.cell.name: outcome for outcome in outcomes}
    measured, failed = {}, {}
    for case in made.cases:
        outcome = by_name[case.name]
        if outcome.status == "failed":
            failed[case.name] = outcome.message
        else:
            measured[case.name] = corescale.measure(case, folder.load(outcome.folder))
    return measured, failed


def write(made: Plan, measured: dict[str, Measured], failed: dict[str, str]) -> tuple[Path, Path]:
    """Writes STUDY.html and STUDY.parquet into made.out; their paths."""
    theme.use()
    made.out.mkdir(parents=True, exist_ok=True)
    html, parquet = (made.out / f"{made.study}.{kind}" for kind in ("html", "parquet"))
    if measured:
        folder.write_table(parquet, corescale.table(measured.values()))
    folder.write_whole(html, page.html(made, measured, failed))
    return html, parquet


def show_validations(said: Sequence[Validation], screen: Console) -> None:
    """The claims on a terminal."""
    made = summary.table(page.VALIDATION_COLUMNS, page.validation_rows(said), left=3)
    for column in made.columns[:3]:
        column.no_wrap, column.overflow = False, "fold"
    summary.print_table(screen, made)
    screen.print(page.verdict(said))
