# SPDX-License-Identifier: BSD-3-Clause
"""weir sweep: a grid over any parameters and seeds, as cells, into one table.

A sweep is a file:

    config: ../quickstart.yaml    # relative to this file
    duration: 5s                  # optional
    seeds: [1, 2, 3]              # or how many: 3; optional
    grid:                         # optional: all that -o takes, with a list of values each
      flows.0.count: [10, 100]
      flows.0.cc: [newreno, {copa: {delta: 0.1}}]
    branch_at: 300s               # optional: the grid's parameters, all of paths, change then
    keep: table                   # optional: no run folders, only the table

Each combination of values is run with each seed, the last parameter changing first.
"""

from __future__ import annotations

import itertools
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import polars as pl
from rich.console import Console

from weir.analysis import folder, many, spread, summary
from weir.base import terminal, units
from weir.base.errors import UserError
from weir.base.foreign import Json
from weir.base.page import Table
from weir.many import branched, cells, shards, tabled, travel
from weir.many.cells import Outcome
from weir.many.grid import FIXED, Sweep
from weir.many.progress import Progress, counted
from weir.many.sweep_table import SweepTable
from weir.many.tabled import Row

ROWS_SHOWN = 24
WRITE_S_MIN = 5.0  # between two writings of a table that grows


def check(sweep: Sweep) -> str:
    """Returns the first cell's resolved config: what is wrong with it is likely wrong with all."""
    cell, _ = sweep.cells()[0]
    try:
        return travel.resolved(cell)
    except UserError as error:
        for override, where in zip(cell.overrides, sweep.lines.values(), strict=False):
            if str(error).startswith(f"-o {override}: "):
                raise UserError(f"{where}: {error}", error.status) from None
        raise


def execute(
    sweep: Sweep,
    out: Path,
    console: Console,
    *,
    cluster: str | None = None,
    workers: int | None = None,
    any_version: bool = False,
    shard: shards.Shard = shards.WHOLE,
) -> pl.DataFrame:
    """Runs what is not there yet; writes out/table.parquet as it goes, and returns it."""
    part = shards.part_of(sweep, check(sweep), shard)
    planned = shard.of(sweep.cells())
    if not planned:
        raise UserError(f"--shard {shard}: there are only {len(sweep.cells())} cells")
    growing = Growing(out / "table.parquet", [(cell.name, point) for cell, point in planned])

    if sweep.keep == "table":
        if cluster is not None:
            raise UserError("--cluster: cells of `keep: table` run on this machine")
        kept = tabled.before(out, sweep, part, any_version)
        try:
            only_rows(planned, kept, part, out, growing, console, workers)
        except BaseException:  # Ctrl-C: what has ended is kept nowhere else
            if growing.rows:
                growing.write()
            raise
        return growing.write()

    def begin() -> None:
        shards.write(out / shards.FILE, part)
        if sweep.branch_at is not None and cluster is None:
            branched.run(sweep, planned, out, console, workers)

    cells.run_cells(
        [cell for cell, _ in planned],
        out,
        cluster=cluster,
        workers=workers,
        any_version=any_version,
        console=console,
        on_outcome=lambda outcome, *_: growing.add(outcome),
        on_begin=begin,
    )
    return growing.write()


def only_rows(
    planned: shards.Planned,
    kept: dict[str, Row],
    part: shards.Part,
    out: Path,
    growing: Growing,
    console: Console,
    workers: int | None,
) -> None:
    """Runs those cells of which no row is kept, without run folders."""
    with cells.locked(out), Progress(out, [c.name for c, _ in planned], False, console) as shown:
        shards.write(out / shards.FILE, part)
        for cell, point in planned:
            if cell.name in kept:
                growing.rows[cell.name] = {**kept[cell.name], **point, "status": "reused"}
                shown.add(cell.name, "reused")
        for outcome in tabled.run([c for c, _ in planned if c.name not in kept], workers):
            growing.add(outcome)
            shown.add(outcome.cell.name, outcome.status, outcome.message)


def merge(places: Sequence[Path], out: Path) -> tuple[pl.DataFrame, Sweep]:
    """Puts the shards of a sweep together in out, which is then as if one had run all."""
    sweep, whole, ended = shards.together(places)
    with cells.locked(out):
        growing = Growing(out / "table.parquet", [(c.name, point) for c, point in sweep.cells()])
        only = sweep.keep == "table"
        rows = {name: row for place in places if only for name, row in tabled.rows(place).items()}
        for cell, point in sweep.cells():
            place, status, message = ended[cell.name]
            if only and status != "failed":
                growing.rows[cell.name] = {**rows[cell.name], **point}
                continue
            if place.exists():
                cells.copy(place, out / cell.name)
            growing.add(Outcome(cell, (out / cell.name).resolve(), status, message))
        shards.write(out / shards.FILE, whole)
        return growing.write(), sweep


class Growing:
    """A table that is written while its cells end, for a tenth of the time at most."""

    def __init__(self, path: Path, planned: Sequence[tuple[str, dict[str, str]]]) -> None:
        self.path = path
        self.points = dict(planned)
        self.rows: dict[str, Row] = {}
        self.next_s = time.monotonic() + WRITE_S_MIN

    def add(self, outcome: Outcome) -> None:
        """Adds the row of a cell that has ended."""
        name = outcome.cell.name
        self.rows[name] = row(self.points[name], outcome)
        began_s = time.monotonic()
        if began_s >= self.next_s:
            self.write()
            ended_s = time.monotonic()
            self.next_s = ended_s + max(WRITE_S_MIN, 9 * (ended_s - began_s))

    def write(self) -> pl.DataFrame:
        """Writes the rows of the cells that have ended, in the order of the grid."""
        there = [name for name in self.points if name in self.rows]
        made = framed([self.points[n] for n in there], [self.rows[n] for n in there])
        folder.write_table(self.path, made)
        return made


def row(point: dict[str, str], outcome: Outcome) -> Row:
    """Returns a cell's parameters, what became of it, and the summary's figures.

    groups.<index>.<name> and links.<path>.<name> are every number of summary.json's groups and
    links, those of objects in them too: groups.0.transfers.completion_p50_ns. A failed cell has
    nulls.
    """
    made: Row = {**point, **dict.fromkeys(FIXED)}
    made |= {"seed": outcome.cell.seed, "folder": str(outcome.folder)}
    made |= {"status": outcome.status, "message": outcome.message}
    if outcome.status != "failed":
        summary = outcome.summary or folder.read_json(outcome.folder / "summary.json")
        made |= figures(summary)
    return made


def framed(points: Sequence[dict[str, str]], rows: Sequence[Row]) -> pl.DataFrame:
    """Returns rows as a table; a parameter that is a number in every cell is one in it."""
    made = pl.DataFrame(rows, schema_overrides=FIXED, infer_schema_length=None)
    return made.with_columns(typed(made[name]) for name in points[0])


def of_runs(paths: Sequence[Path]) -> SweepTable:
    """Returns runs as a sweep's table; its parameters are the keys in which they differ."""
    found = [folder.load(path) for path in paths]
    points = [many.settings_of(run) for run in found]
    keys = many.differing(points)
    if not keys:
        raise UserError("the runs differ in no key of their configs")
    rows: list[Row] = [
        {**many.chosen(keys, point), **dict.fromkeys(FIXED), **figures(run.summary_json)}
        | {"folder": str(run.path), "status": "ok"}
        for run, point in zip(found, points, strict=True)
    ]
    return SweepTable(Path(os.path.commonpath(paths)), framed([dict.fromkeys(keys, "")], rows))


def figures(ended: Json) -> Row:
    """Returns a summary's figures by column name."""
    found: Row = {name: ended[name] for name in FIXED if name in ended}
    found["balanced"] = ended.get("ledger", {}).get("balanced")
    links = {f"links.{name}": link for name, link in ended.get("links", {}).items()}
    groups = {f"groups.{index}": group for index, group in enumerate(ended.get("groups", []))}
    for name, value in many.leaves(links | groups):
        if isinstance(value, str | int | float):
            found[sys.intern(name)] = value  # one text for all cells
    return found


def typed(column: pl.Series) -> pl.Series:
    """Returns text as whole numbers or numbers, if all of it is."""
    for dtype in (pl.Int64, pl.Float64):
        made = column.cast(dtype, strict=False)
        if made.null_count() == 0:
            return made
    return column


def same_runs(made: pl.DataFrame, sweep: Sweep) -> tuple[int, int]:
    """Returns how many combinations had several seeds to no effect, and how many there are.

    A run says itself whether anything random was drawn; without, its seed is only a name.
    """
    combinations = made.height // len(sweep.seeds)
    if len(sweep.seeds) < 2:
        return 0, combinations
    each = made["seed_used"].to_list()
    parts = [each[i : i + len(sweep.seeds)] for i in range(0, len(each), len(sweep.seeds))]
    return sum(part.count(False) > 1 for part in parts), combinations


SHOWN: tuple[tuple[str, str, Callable[[float], str]], ...] = (
    ("goodput", "goodput", units.rate),
    ("delay", "queueing delay", units.time),
    ("loss", "loss", units.percent),
    ("jfi", "JFI", units.ratio),
)


def show(made: pl.DataFrame, sweep: Sweep, out: Console, rows_max: int | None = None) -> None:
    """Shows the first combinations with their means over seeds, and how many cells there are."""
    table = SweepTable(sweep.path, made)
    found = [(name, say, table.known(key)) for key, name, say in SHOWN]
    means = [(name, say, table.means(metric, table.keys)) for name, say, metric in found if metric]
    axes = {one.key: dict(zip(one.values, one.names, strict=True)) for one in table.axes}
    points = made.select(table.keys).unique(maintain_order=True) if table.keys else pl.DataFrame()
    height = points.height or 1
    shown = height if rows_max is None else min(height, rows_max)
    rows = [
        [
            *(named[points[key][row]] for key, named in axes.items()),
            str(means[0][2]["n"][row]) if means else "0",
            *(spread.stated(say, *part.row(row)[-4:-1]) for _, say, part in means),
        ]
        for row in range(shown)
    ]
    columns = (*short(list(axes)), "runs", *(name for name, _, _ in means))
    terminal.print_table(out, Table(columns, rows, left=len(axes)))
    if any(part["low"].is_finite().any() for _, _, part in means):
        out.print(f"means of so many runs with their {spread.STATED}", soft_wrap=True)
    if shown < height:
        out.print(f"and {height - shown:,} more in the table: --all shows them")
    out.print(counted(made["status"]))
    same, combinations = same_runs(made, sweep)
    if same:
        out.print(
            f"in {same:,} of {combinations:,} combinations {summary.SEED_UNUSED}:"
            " their seeds are one run, not replicas",
            style="yellow",
            soft_wrap=True,
        )


def short(names: Sequence[str]) -> list[str]:
    """Returns as little of each dotted name's end as tells it from the others."""
    split = [name.split(".") for name in names]
    tails = [[".".join(parts[-n:]) for n in range(1, len(parts) + 1)] for parts in split]
    shared = Counter(itertools.chain.from_iterable(tails))
    return [next((t for t in tail if shared[t] == 1), tail[-1]) for tail in tails]
