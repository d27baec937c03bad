# SPDX-License-Identifier: BSD-3-Clause
"""Runs what tests the papers' statements, or reuses it; the page, the table, the terminal."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
from rich.console import Console

from weir import summary, units
from weir.analysis import folder
from weir.report import document, theme
from weir.report.document import Status, Table
from weir.study import reproduce
from weir.study.cells import run_cells
from weir.study.papers import Plan, Statement

TITLE = "What the papers say of their congestion controls"
COLUMNS = ("source", "statement", "published", "here", "deviation", "holds within", "")
MET = {True: "met", False: "NOT MET", None: "not run"}


@dataclass(frozen=True)
class Tested:
    """A statement and what was measured; value None: one of its runs failed."""

    statement: Statement
    value: float | None

    @property
    def met(self) -> bool | None:
        """Does it hold? None: it was not measured."""
        return None if self.value is None else self.statement.holds(self.value)

    @property
    def deviation(self) -> float | None:
        """From the published number, as a part of it."""
        if self.value is None or not self.statement.published:
            return None
        return self.value / self.statement.published - 1


def plan(quick: bool, out: Path | None) -> Plan:
    """The runs; they have one length."""
    return Plan(out or Path("runs/papers"))


def plan_rows(made: Plan) -> list[dict[str, Any]]:
    """The runs and their lengths."""
    return [
        {"cell": trial.name, "config": trial.config, "override": list(trial.override)}
        for trial in made.trials
    ]


def show_plan(made: Plan, workers: int, screen: Console) -> None:
    """The runs, without running any."""
    rows = [
        [row["cell"], f"configs/{row['config']}.yaml", " ".join(row["override"])]
        for row in plan_rows(made)
    ]
    summary.print_table(screen, summary.table(("cell", "config", "changes"), rows, left=3))
    screen.print(f"{len(rows)} cells, about five minutes of one core")


def run(
    made: Plan,
    screen: Console,
    *,
    scheduler: str | None = None,
    workers: int | None = None,
    as_json: bool = False,
) -> int:
    """Runs what is not there yet, writes page and table, shows the statements; exit status."""
    outcomes = run_cells(
        [trial.cell() for trial in made.trials],
        made.out / "cells",
        scheduler=scheduler,
        workers=workers,
        on_outcome=reproduce.progress(screen),
    )
    failed = {o.cell.name: o.message for o in outcomes if o.status == "failed"}
    folders = {o.cell.name: o.folder for o in outcomes if o.status != "failed"}
    tested = [test(statement, folders) for statement in made.statements]
    html, parquet = write(made, tested, failed)
    shown = summary.table(COLUMNS, list(rows_of(tested)), left=2)
    for column in shown.columns[:2]:
        column.no_wrap, column.overflow = False, "fold"
    summary.print_table(screen, shown)
    screen.print(verdict(tested))
    return reproduce.finish(
        screen, failed, (parquet, html), table(tested).to_dicts() if as_json else None
    )


def test(statement: Statement, folders: dict[str, Path]) -> Tested:
    """Measures a statement in the folders of its runs."""
    paths = [folders.get(trial.name) for trial in statement.trials]
    runs = [folder.load(path) for path in paths if path is not None]
    return Tested(statement, statement.measure(*runs) if len(runs) == len(paths) else None)


def within(statement: Statement) -> str:
    """The bounds, for people."""
    low, high = (units.number(bound) for bound in (statement.low, statement.high))
    if math.isinf(statement.low):
        return f"at most {high}"
    if math.isinf(statement.high):
        return f"at least {low}"
    return low if statement.low == statement.high else f"{low} to {high}"


def rows_of(tested: Sequence[Tested]) -> Iterator[list[str]]:
    """The statements as they are shown."""
    for one in tested:
        statement = one.statement
        yield [
            statement.source,
            statement.says,
            f"{units.number(statement.published)} {statement.unit}"
            if statement.published
            else units.NONE,
            f"{units.number(one.value)} {statement.unit}".strip(),
            units.NONE if one.deviation is None else f"{100 * one.deviation:+.1f} %",
            within(statement),
            MET[one.met],
        ]


def verdict(tested: Sequence[Tested]) -> str:
    """How many hold."""
    return f"{sum(one.met is True for one in tested)} of {len(tested)} statements met"


def table(tested: Sequence[Tested]) -> pl.DataFrame:
    """A row per statement; bounds that are open are null."""
    return pl.DataFrame(
        [
            {
                "source": one.statement.source,
                "statement": one.statement.says,
                "unit": one.statement.unit,
                "published": one.statement.published,
                "here": one.value,
                "low": one.statement.low if math.isfinite(one.statement.low) else None,
                "high": one.statement.high if math.isfinite(one.statement.high) else None,
                "met": one.met,
                "cells": [trial.name for trial in one.statement.trials],
            }
            for one in tested
        ],
        infer_schema_length=None,
    )


def write(made: Plan, tested: Sequence[Tested], failed: dict[str, str]) -> tuple[Path, Path]:
    """Writes papers.html and papers.parquet into made.out; their paths."""
    theme.use()
    html, parquet = (made.out / f"papers.{kind}" for kind in ("html", "parquet"))
    folder.write_table(parquet, table(tested))
    met = sum(one.met is True for one in tested)
    page = document.render(
        "papers.html.j2",
        title=TITLE,
        status=Status("good" if met == len(tested) else "bad", f"{verdict(tested)}."),
        headline=[("statements met", f"{met} of {len(tested)}"), ("runs", str(len(made.trials)))],
        failed=failed,
        statements=Table(COLUMNS, list(rows_of(tested)), left=2),
    )
    folder.write_whole(html, page)
    return html, parquet
