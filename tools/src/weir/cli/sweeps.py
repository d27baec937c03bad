# SPDX-License-Identifier: BSD-3-Clause
"""weir table and diff, and weir plot of a sweep."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import polars as pl
import typer
from typer import Argument, Option

from weir.analysis import folder, many, spread
from weir.base import markdown, terminal, units
from weir.base.errors import UserError
from weir.cli import complete
from weir.cli.arguments import Json, Numbers, RunArguments, ShowAll, Where
from weir.cli.usage import commands
from weir.many import sweep_diff, sweep_figures, sweep_table
from weir.many.sweep_figures import Choice
from weir.many.sweep_table import SweepTable
from weir.report import many_figures
from weir.report.figure import Figure
from weir.report.many_figures import Number

Sweep = Annotated[
    Path, Argument(metavar="SWEEP", help="A sweep's folder or table.", autocompletion=complete.runs)
]
Put = Callable[[Figure, str], None]  # shows a figure, or writes it; with the file's usual name
app = commands()


class Form(StrEnum):
    """Forms in which a table is written."""

    TEXT = "text"
    CSV = "csv"
    MARKDOWN = "markdown"
    LATEX = "latex"


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
    to: Annotated[Form, Option(help="CSV has the numbers as they are.")] = Form.TEXT,
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
    if to is Form.CSV:
        print(made.write_csv(), end="")
        return
    found = many.printed(made, metrics)
    if to is Form.TEXT:
        screen = terminal.console()
        terminal.print_table(screen, found)
        screen.print(f"means of n runs with their {spread.STATED}", soft_wrap=True)
    else:
        print(many.latex(found) if to is Form.LATEX else markdown.table(found, aligned=True))


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


@dataclass(frozen=True)
class Wanted:
    """Options of `weir plot` for a sweep."""

    x: str | None = None
    y: str | None = None
    by: str | None = None
    facet: str | None = None
    heat: str | None = None
    where: tuple[str, ...] = ()
    logx: bool = False
    logy: bool = False
    figure: str | None = None  # of report/many_figures.py


def is_sweep(paths: Sequence[Path]) -> bool:
    """Returns whether one sweep was named."""
    return len(paths) == 1 and not folder.is_run(paths[0]) and sweep_table.is_sweep(paths[0])


def plot(path: Path, wanted: Wanted, put: Put, as_json: bool) -> None:
    """Draws one figure of a sweep; without --figure, --x and --y lists what there is to draw."""
    table = sweep_table.load(path).where(wanted.where)
    if wanted.figure is not None:
        check(wanted)
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
    choice = chosen(table, wanted)
    sweep_figures.check(table, choice)
    metric = table.metric(wanted.y or "goodput")
    draw = sweep_figures.lines if wanted.heat is None else sweep_figures.heat
    put(draw(table, metric, choice), f"{path.resolve().stem}-{wanted.y or 'goodput'}")


def plot_runs(paths: Sequence[Path], wanted: Wanted, put: Put) -> None:
    """Draws a figure of many runs, or of folders with runs."""
    check(wanted)
    if wanted.where:
        raise UserError("--where is for sweeps: name the runs that are meant")
    frame = many.open_many([*paths])
    by = many.key(frame, wanted.by)
    if wanted.figure == "pantheon":
        save(wanted.figure, many.points(frame, by), None, put)
        return
    name = wanted.y or "goodput_bps"
    found, number = many.samples(frame, by, name), Number(units.label_of(name), units.unit_of(name))
    save(str(wanted.figure), found, number, put)


def check(wanted: Wanted) -> None:
    """Raises UserError for an option that a figure of NAMES does not have."""
    many_figures.check(str(wanted.figure))
    given: dict[str, object] = {"--x": wanted.x, "--facet": wanted.facet, "--heat": wanted.heat}
    given |= {"--logx": wanted.logx, "--logy": wanted.logy}
    given |= {"--y": wanted.y} if wanted.figure == "pantheon" else {}
    for option, value in given.items():
        if value:
            raise UserError(f"{option}: the figure {wanted.figure} has no such option")


def save(name: str, frame: pl.DataFrame, number: Number | None, put: Put) -> None:
    """Draws one of many_figures.NAMES."""
    put(many_figures.figure(name, frame, number), name)


def chosen(table: SweepTable, wanted: Wanted) -> Choice:
    """Returns the parameters that were named; without --x those that the page chooses."""
    if wanted.x is None:
        choice, left = sweep_figures.suggested(table.axes)
        if choice is None or left:
            raise UserError("--x: say over which parameter")
        return choice
    if wanted.heat is not None and wanted.by is not None:
        raise UserError("--heat and --by: a heat map has no lines; --facet makes panels")
    named = (wanted.heat or wanted.by, wanted.facet)
    by, facet = (None if name is None else table.axis(name) for name in named)
    return sweep_figures.Choice(table.axis(wanted.x), by, facet, wanted.logx, wanted.logy)


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
