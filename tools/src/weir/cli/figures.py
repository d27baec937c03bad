# SPDX-License-Identifier: BSD-3-Clause
"""The commands weir plot and weir compare, which call the report's figures."""

from __future__ import annotations

import json
import sys
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import typer
from typer import Option

from weir.analysis import folder
from weir.base import terminal
from weir.base.errors import UserError
from weir.cli import complete, sweeps
from weir.cli.arguments import FigureFile, Json, RunArguments, Where
from weir.cli.runs import say_notes
from weir.cli.usage import commands
from weir.many.run_figures import Wanted
from weir.report import comparison, many_figures, paper
from weir.report.figure import Figure
from weir.runner.bar import Count

app = commands()


Width = Literal["column", "page"]
Venue = Literal["acm", "ieee", "usenix"]


def figures(ctx: typer.Context) -> list[str]:
    """Returns the names of what `weir plot RUN...` can write."""
    try:
        return [
            one.name
            for one in comparison.figures_of(
                [folder.load(Path(r)) for r in complete.named(ctx, "runs")]
            )
        ]
    except (UserError, OSError, ValueError):
        return []


@app.add(
    "plot",
    "plot runs/mine",
    "plot runs/mine --figure rtt --out rtt.pdf",
    "plot runs/mine --figure rtt --term",
    "plot runs/a runs/b --figure rtt --width page --out both.svg",
    "plot runs/buffer --x buffer --y goodput --by cc --facet flows --logx --width page",
    "plot runs/buffer --x buffer --heat flows --y delay --where cc=copa --out heat.png",
)
def plot_(
    runs: RunArguments,
    figure: Annotated[
        str | None,
        Option(
            metavar="NAME",
            help="Which; without it, they are listed. Of many runs or a sweep: pantheon, box, cdf.",
            autocompletion=figures,
        ),
    ] = None,
    out: FigureFile = None,
    width: Annotated[Width, Option(help="Of the venue's column or page.")] = "column",
    venue: Annotated[Venue, Option(help="Whose: 3.33 and 7 inches; ieee: 3.48 and 7.14.")] = "acm",
    code: Annotated[
        bool, Option("--code", help="Also its data, .csv, and the script, .py, that draws it.")
    ] = False,
    term: Annotated[
        bool, Option("--term", help="Shows it on the terminal; no file is written.")
    ] = False,
    height: Annotated[
        float | None, Option(metavar="INCHES", min=0.5, max=20, help="[by its panels]")
    ] = None,
    label: Annotated[
        list[str] | None,
        Option(metavar="TEXT", help="In legends; for each run, or each group of one run."),
    ] = None,
    xlim: Annotated[
        list[str] | None,
        Option(metavar="LOW,HIGH", help="Ends of the x axis; once, or for each panel."),
    ] = None,
    ylim: Annotated[
        list[str] | None, Option(metavar="LOW,HIGH", help="The same of the y axis.")
    ] = None,
    x: Annotated[
        str | None, Option(metavar="KEY", help="Of a sweep: over which parameter.")
    ] = None,
    y: Annotated[
        str | None,
        Option(metavar="NUMBER", help="Of a sweep, a box or a cdf: which number. [goodput]"),
    ] = None,
    by: Annotated[
        str | None,
        Option(
            metavar="KEY",
            help="Of a sweep: a line for each value; of many runs: what tells them apart. [cc]",
        ),
    ] = None,
    facet: Annotated[
        str | None, Option(metavar="KEY", help="Of a sweep: a panel for each value.")
    ] = None,
    heat: Annotated[
        str | None, Option(metavar="KEY", help="Of a sweep: a heat map over --x and this one.")
    ] = None,
    where: Where = None,
    logx: Annotated[bool, Option("--logx", help="Of a sweep: x is logarithmic.")] = False,
    logy: Annotated[bool, Option("--logy", help="Of a sweep: y is logarithmic.")] = False,
    as_json: Json = False,
) -> None:
    """Writes a figure of a run, of several, or of a sweep."""
    xends, yends = ([paper.limits(each) for each in given or []] for given in (xlim, ylim))
    shape = paper.Shape(width, height, xends, yends, venue, code)
    wanted = Wanted(x, y, by, facet, heat, tuple(where or ()), logx, logy, figure)
    if term and (out or code):
        raise UserError("--term writes no file: it goes without --out and --code")
    if out is not None:
        paper.check(out)
    put = partial(put_figure, out=out, shape=shape, term=term)
    if label and (sweeps.is_sweep(runs) or figure in many_figures.NAMES):
        raise UserError(
            "--label is for runs and their groups: kinds of run are called by their parameters"
        )
    if sweeps.is_sweep(runs):
        sweeps.plot(runs[0], wanted, put, as_json)
        return
    if figure in many_figures.NAMES or (x and figure is None):
        sweeps.plot_runs(runs, wanted, put)
        return
    if wanted != Wanted(figure=figure):
        raise UserError(
            f"{runs[0]} is no sweep: --y, --by and the like are for sweeps, or want --x"
        )
    loaded = [folder.load(path) for path in runs]
    with Count(terminal.console(stderr=True), "parts") as bar:
        drawn = comparison.figures_of(loaded, label or (), bar.update)
        if figure is not None:
            try:
                chosen = paper.choose(drawn, figure)
            except UserError:
                say_notes(loaded)  # perhaps why it is not there
                raise
        rows = [] if figure is not None else [(one.name, one.caption) for one in drawn]
    say_notes(loaded)
    if figure is not None:
        put(chosen, figure)
    elif as_json:
        print(json.dumps([{"name": name, "caption": says} for name, says in rows], indent=1))
    else:
        for name, says in rows:
            print(f"{name:24} {says}")


def put_figure(figure: Figure, name: str, out: Path | None, shape: paper.Shape, term: bool) -> None:
    """Shows a figure on the terminal, or writes its files and prints their names.

    out: the file [NAME.pdf].
    """
    if term:
        from weir.report import screen

        screen.show(paper.set_limits(figure, shape), terminal.console())
    else:
        print(*paper.write(figure, out or Path(f"{name}.pdf"), shape), sep="\n")


@app.add("compare", "compare runs/a runs/b", "compare runs/a runs/b runs/c --json")
def compare_(
    runs: RunArguments,
    out: Annotated[Path | None, Option(metavar="FILE", help="The page. [compare.html]")] = None,
    as_json: Json = False,
) -> None:
    """Compares runs: numbers, differences from the first, figures."""
    loaded = [folder.load(path) for path in runs]
    place = out or Path("compare.html")
    replaces = place.is_file()
    with Count(terminal.console(stderr=True), "parts") as bar:
        compared = comparison.read(loaded, bar.update)
        if not as_json:
            written = comparison.write(compared, place, bar.update)
    if as_json:
        print(json.dumps(comparison.as_json(compared), indent=1))
        return
    screen = terminal.console()
    terminal.print_table(screen, comparison.differences(compared))
    screen.print(str(written), soft_wrap=True)
    if replaces:
        print(f"weir: {written} was there, and was replaced", file=sys.stderr)
    for each in compared:
        for note in each.data.run.notes:
            print(f"weir: {each.name}: {note}", file=sys.stderr)
