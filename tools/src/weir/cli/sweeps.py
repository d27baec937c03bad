# SPDX-License-Identifier: BSD-3-Clause
"""weir table and diff, and weir plot of a sweep."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Literal

import polars as pl
import typer
from typer import Argument, Option

from weir.analysis import folder, many, spread
from weir.base import markdown, terminal
from weir.base.errors import UserError
from weir.cli import complete
from weir.cli.arguments import Json, Numbers, RunArguments, ShowAll, Where
from weir.cli.usage import commands
from weir.many import run_figures, sweep_diff, sweep_table
from weir.many.run_figures import Wanted
from weir.many.sweep_table import SweepTable
from weir.report import many_figures
from weir.report.figure import Figure
from weir.report.many_figures import Number

Sweep = Annotated[
    Path, Argument(metavar="SWEEP", help="A sweep's folder or table.", autocompletion=complete.runs)
]
Put = Callable[[Figure, str], None]  # shows a figure, or writes it; with the file's usual name
app = commands()


@app.add(
    "table",
    "table runs/buffer",
    "table runs/buffer --by cc --y goodput_bps --y queue_mean_ns --to latex",
)
def table_(
    runs: RunArguments,
    by: Annotated[
        list[str] | None,
        Option(metavar="KEY", help="A row for each value; repeated. [all that differ]"),
    ] = None,
    y: Numbers = None,
    to: Annotated[
        Literal["text", "csv", "markdown", "latex"], Option(help="CSV has the numbers as they are.")
    ] = "text",
    as_json: Json = False,
) -> None:
    """Prints means over the seeds of many runs, with intervals.

    They are those of weir.table.
    """
    metrics = y or ["goodput_bps", "rtt_mean_ns"]
    frame = many.open_many([*runs])
    made = many.table(frame, by=[many.key(frame, one) for one in by or ()], metrics=metrics)
    if as_json:
        print(json.dumps(made.to_dicts(), indent=1))
        return
    if to == "csv":
        print(made.write_csv(), end="")
        return
    found = many.printed(made, metrics)
    if to == "text":
        screen = terminal.console()
        terminal.print_table(screen, found)
        screen.print(f"means of n runs with their {spread.STATED}", soft_wrap=True)
    else:
        print(many.latex(found) if to == "latex" else markdown.table(found, aligned=True))


@app.add(
    "diff",
    "diff runs/before runs/after",
    "diff runs/before runs/after --y goodput --y jfi --where cc=copa --all",
)
def diff_(
    a: Sweep,
    b: Sweep,
    y: Numbers = None,
    where: Where = None,
    every: ShowAll = False,
    as_json: Json = False,
) -> None:
    """Says which cells of two sweeps differ beyond their spread.

    If any do, it exits with 1. Cells with the same digests are identical. The others are compared
    by Welch's t test over seeds, with p raised for their number by Holm's method (5 %).
    """
    first, second = (sweep_table.load(path).where(where or ()) for path in (a, b))
    found = sweep_diff.compare(first, second, y or sweep_diff.DEFAULT)
    if as_json:
        print(json.dumps(sweep_diff.as_json(found), indent=1))
    else:
        sweep_diff.show(found, first.axes, terminal.console(), every)
    raise typer.Exit(1 if any(row.kind == "changed" for row in found.rows) else 0)


def is_sweep(paths: Sequence[Path]) -> bool:
    """Returns whether one sweep was named."""
    return len(paths) == 1 and not folder.is_run(paths[0]) and sweep_table.is_sweep(paths[0])


def plot(path: Path, wanted: Wanted, put: Put, as_json: bool) -> None:
    """Draws one figure of a sweep; without --figure, --x and --y lists what there is to draw."""
    table = sweep_table.load(path).where(wanted.where)
    if wanted.figure is not None:
        run_figures.check(wanted)
        by = table.only(wanted.by)
        if wanted.figure == "pantheon":
            save(wanted.figure, table.points(by), None, put)
        else:
            found = table.metric(wanted.y or "goodput")
            samples = table.samples(by, value=found.values)
            save(wanted.figure, samples, Number(found.label, found.unit), put)
        return
    if wanted.x is None and wanted.y is None:
        show(table, as_json)
        return
    made = run_figures.of_table(table, wanted)
    put(made, f"{path.resolve().stem}-{wanted.y or 'goodput'}")


def plot_runs(paths: Sequence[Path], wanted: Wanted, put: Put) -> None:
    """Draws a figure of many runs, or of folders with runs."""
    if wanted.where:
        raise UserError("--where is for sweeps: name the runs that are meant")
    made = run_figures.draw(many.paths([*paths]), wanted)
    put(made, wanted.figure or wanted.y or "goodput")


def save(name: str, frame: pl.DataFrame, number: Number | None, put: Put) -> None:
    """Draws one of many_figures.NAMES."""
    put(many_figures.figure(name, frame, number), name)


def show(table: SweepTable, as_json: bool) -> None:
    """Prints the parameters that vary with their values, and the numbers."""
    if as_json:
        axes = {one.key: list(one.names) for one in table.axes}
        numbers, names = list(sweep_table.METRICS), list(many_figures.NAMES)
        print(json.dumps({"parameters": axes, "numbers": numbers, "figures": names}, indent=1))
        return
    for one in table.axes:
        print(f"{one.key:40} {', '.join(one.names)}")
    print(f"{'--y':40} {', '.join(sweep_table.METRICS)}, or a column of the table")
    print(f"{'--figure':40} {', '.join(many_figures.NAMES)}")
