# SPDX-License-Identifier: BSD-3-Clause
"""Draws runs that were chosen in weir explore, and says which command makes the same."""

from __future__ import annotations

import shlex
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from weir.analysis import folder, many
from weir.base.errors import UserError
from weir.base.foreign import Json
from weir.base.page import Page
from weir.base.typed import program
from weir.live import shelf
from weir.live.shelf import Shelf, Stamp
from weir.live.web import Query, whole, word
from weir.many import run_figures, sweep_table
from weir.many.run_figures import Wanted
from weir.report import comparison, document, many_figures, paper
from weir.report.figure import Figure

CHOSEN_MAX = 2000  # runs in one figure
KEPT = 4  # drawn choices
NAMED_MAX = 4  # runs in a title
GOODPUT = ("goodput", "goodput_bps")  # what is drawn if no number is asked for
OVER_TIME, NUMBERS = "time", "numbers"  # kinds of figure, beside many_figures.NAMES


@dataclass(frozen=True)
class Asked:
    """Runs, by their numbers, and what is to be drawn of them."""

    runs: tuple[int, ...]
    kind: str
    wanted: Wanted
    name: str  # of the one figure that is shown [all]


@dataclass(frozen=True)
class Chosen:
    """Runs with their figures."""

    paths: Sequence[Path]
    asked: Asked

    @cached_property
    def figures(self) -> list[Figure]:
        """All figures of the kind that was asked for. UserError: there can be none."""
        if self.asked.kind != OVER_TIME:
            return [run_figures.draw(many.paths([*self.paths]), self.asked.wanted)]
        return list(comparison.figures_of([folder.load(path) for path in self.paths]))

    @property
    def shown(self) -> list[Figure]:
        """The figure that was named, or all."""
        name = self.asked.name
        return [paper.choose(self.figures, name)] if name else self.figures

    @cached_property
    def choices(self) -> tuple[list[str], list[str]]:
        """The keys in which the runs differ, and the numbers that they have beside goodput."""
        frame = many.open_many([*self.paths])
        names: Sequence[str] = sweep_table.METRICS
        if self.asked.kind != NUMBERS:
            names = frame["metric"].unique(maintain_order=True).to_list()
        return many.settings(frame), [name for name in names if name not in GOODPUT]

    def command(self) -> str:
        """Returns the command that makes what is shown."""
        paths = [str(path) for path in self.paths]
        asked = self.asked
        if asked.kind == OVER_TIME and not asked.name:
            words = ["report", *paths] if len(paths) == 1 else ["compare", *paths]
            return shlex.join([program(), *words])
        wanted = asked.wanted
        figure = asked.name if asked.kind == OVER_TIME else wanted.figure
        words = ["plot", *paths, *([] if figure is None else ["--figure", figure])]
        for option in ("x", "y", "by", "facet"):
            value = getattr(wanted, option)
            words += [] if value is None else [f"--{option}", value]
        words += [f"--{axis}" for axis in ("logx", "logy") if getattr(wanted, axis)]
        return shlex.join([program(), *words])


@dataclass
class Desk:
    """Draws what is asked for of a folder's runs, and keeps what it drew last."""

    runs: Shelf
    kept: dict[tuple[Asked, tuple[Stamp, ...]], Chosen] = field(default_factory=dict)

    def chosen(self, query: Query) -> Chosen:
        """Returns what a request asks for. UserError: there is no such run, or too many."""
        asked = asked_for(query)
        if not 1 <= len(asked.runs) <= CHOSEN_MAX:
            raise UserError(f"choose 1 to {CHOSEN_MAX:,} runs")
        if max(asked.runs) >= len(self.runs.paths):
            raise UserError(f"there is no run {max(asked.runs)}")
        paths = [self.runs.paths[run] for run in asked.runs]
        key = (asked, tuple(map(shelf.stamp, paths)))
        if key not in self.kept:
            self.kept[key] = Chosen(paths, asked)
            for old in list(self.kept)[:-KEPT]:
                del self.kept[old]
        return self.kept[key]

    def choices(self, query: Query) -> Json:
        """Returns what can be drawn of runs; what cannot says why."""
        one = self.chosen(query)
        found: Json = {"figures": [], "keys": [], "numbers": [], "command": one.command()}
        if len(one.paths) > 1 or not folder.is_run(one.paths[0]):
            found["keys"], found["numbers"] = one.choices
        try:
            found["figures"] = [[figure.name, figure.title] for figure in one.figures]
            if not one.figures:
                raise UserError("these runs have no records yet that a figure could show")
        except UserError as error:
            found["error"] = str(error)
        return found

    def figures(self, query: Query) -> str:
        """Returns the figures as a page."""
        one = self.chosen(query)
        names = ", ".join(self.runs.name(path) for path in one.paths[:NAMED_MAX])
        more = len(one.paths) > NAMED_MAX
        title = f"{len(one.paths):,} runs of {self.runs.top}" if more else names
        return document.render(Page(title, [document.figures(one.shown)]))

    def paper(self, query: Query) -> bytes:
        """Returns one figure as PDF."""
        venue, width = word(query, "venue") or "acm", word(query, "width") or "column"
        if venue not in paper.VENUES or width not in paper.WIDTHS_IN:
            raise UserError(f"there is no venue '{venue}' with the width '{width}'")
        shown = self.chosen(query).shown
        if len(shown) != 1:
            raise UserError("choose one figure: a PDF has one")
        with tempfile.TemporaryDirectory() as place:
            out = Path(place) / "figure.pdf"
            paper.write(shown[0], out, paper.Shape(width, venue=venue))
            return out.read_bytes()


def asked_for(query: Query) -> Asked:
    """Returns what a request asks for. UserError: there is no such kind of figure."""
    kind = word(query, "kind") or OVER_TIME
    if kind not in (OVER_TIME, NUMBERS, *many_figures.NAMES):
        raise UserError(f"there is no kind of figure '{kind}'")
    texts = (word(query, "runs") or "").split(",")
    runs = tuple(dict.fromkeys(whole(text) for text in texts if text))
    is_number = kind == NUMBERS
    wanted = Wanted(
        x=word(query, "x") if is_number else None,
        y=word(query, "y") if kind not in (OVER_TIME, "pantheon") else None,
        by=word(query, "by") if kind != OVER_TIME else None,
        facet=word(query, "facet") if is_number else None,
        logx=is_number and word(query, "logx") is not None,
        logy=is_number and word(query, "logy") is not None,
        figure=kind if kind in many_figures.NAMES else None,
    )
    return Asked(runs, kind, wanted, (word(query, "name") or "") if kind == OVER_TIME else "")
