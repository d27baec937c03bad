# SPDX-License-Identifier: BSD-3-Clause
"""Figures of many runs: numbers against keys in which they differ, and those of many_figures.py."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from weir.analysis import many
from weir.base import units
from weir.base.errors import UserError
from weir.many import sweep, sweep_figures
from weir.many.sweep_figures import Choice
from weir.many.sweep_table import SweepTable
from weir.report import many_figures
from weir.report.figure import Figure
from weir.report.many_figures import Number


@dataclass(frozen=True)
class Wanted:
    """Options of `weir plot` for a sweep or many runs."""

    x: str | None = None
    y: str | None = None
    by: str | None = None
    facet: str | None = None
    heat: str | None = None
    where: tuple[str, ...] = ()
    logx: bool = False
    logy: bool = False
    figure: str | None = None  # of report/many_figures.py


def check(wanted: Wanted) -> None:
    """Raises UserError for an option that a figure of NAMES does not have."""
    many_figures.check(str(wanted.figure))
    given: dict[str, object] = {"--x": wanted.x, "--facet": wanted.facet, "--heat": wanted.heat}
    given |= {"--logx": wanted.logx, "--logy": wanted.logy}
    given |= {"--y": wanted.y} if wanted.figure == "pantheon" else {}
    for option, value in given.items():
        if value:
            raise UserError(f"{option}: the figure {wanted.figure} has no such option")


def draw(paths: Sequence[Path], wanted: Wanted) -> Figure:
    """Returns a figure of runs. UserError: it cannot be of these."""
    if wanted.figure is None:
        return of_table(sweep.of_runs(paths), wanted)
    check(wanted)
    frame = many.open_many([*paths])
    by = many.key(frame, wanted.by)
    if wanted.figure == "pantheon":
        return many_figures.figure(wanted.figure, many.points(frame, by))
    name = wanted.y or "goodput_bps"
    number = Number(units.label_of(name), units.unit_of(name))
    return many_figures.figure(wanted.figure, many.samples(frame, by, name), number)


def of_table(table: SweepTable, wanted: Wanted) -> Figure:
    """Returns a number against a parameter, or a heat map of two."""
    choice = chosen(table, wanted)
    sweep_figures.check(table, choice)
    of = sweep_figures.lines if wanted.heat is None else sweep_figures.heat
    return of(table, table.metric(wanted.y or "goodput"), choice)


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
    return Choice(table.axis(wanted.x), by, facet, wanted.logx, wanted.logy)
