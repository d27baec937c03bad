# SPDX-License-Identifier: BSD-3-Clause
"""A run in a session of Python: in three lines, as a notebook's cell, and its figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from weir.analysis import metrics
from weir.base import units
from weir.base.errors import UserError
from weir.base.page import Mark, Page, Part, Text
from weir.report import data as report_data
from weir.report import document, page, paper, sections, table
from weir.report.figure import Figure, thinned

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

    from weir.analysis.folder import Run


def text(run: Run) -> str:
    """Returns three lines: how the run ended, what came out, what was recorded."""
    report = run.summary
    length_s = report.virtual_s or report.wall_s
    about = [f"'{page.title_of(run)}'", str(report.program or run.manifest.program)]
    about += [units.time(length_s * metrics.NS_PER_S)] if length_s else []
    status = page.status(report)
    numbers = [f"{name} {value}" for name, value in page.headline(report)]
    return "\n".join(
        [
            f"<Run {run.path}: {', '.join(about)}; {status.text}",
            f"  {', '.join(numbers) or 'no summary'}",
            f"  streams: {', '.join(run.streams) or 'none'}>",
        ]
    )


def html(run: Run) -> str:
    """Returns title, status, the first numbers and the tables of groups and links as HTML."""
    report = run.summary
    notes = (Text(note, "note") for note in run.notes)
    parts: list[Part] = [*notes, *page.traffic(report), Text(Mark(str(run.path)))]
    made = Page(page.title_of(run), parts, page.status(report), page.headline(report))
    return document.glance(made)


@dataclass(frozen=True)
class Chosen:
    """A figure of a run in a session of Python; a notebook shows it as the report does."""

    value: Figure

    def _repr_html_(self) -> str:
        return document.cell(self.value)

    def frame(self) -> pl.DataFrame:
        """Returns what the figure shows: a row per point, with its panel and series."""
        return table.frame(self.value)

    def code(self) -> str:
        """Returns a script that draws the figure with matplotlib from its frame in NAME.csv."""
        return paper.script(self.value)

    def paper(self) -> Canvas:
        """Returns the figure drawn by matplotlib."""
        from weir.report import artists

        with artists.settings():
            return artists.draw(thinned(self.value))


def figure(run: Run, name: str) -> Chosen:
    """Returns a figure by its name. UserError: there is no such figure."""
    return Chosen(paper.choose(sections.draw(report_data.read(run)), name))


def plot(run: Run, name: str, ax: Axes | Sequence[Axes] | None) -> Canvas:
    """Draws a figure by its name, into `ax` if given. UserError: no such figure, or other axes."""
    from matplotlib.axes import Axes

    from weir.report import artists

    chosen = figure(run, name)
    if ax is None:
        return chosen.paper()
    made = thinned(chosen.value)
    places = [ax] if isinstance(ax, Axes) else list(ax)
    if len(places) != len(made.panels):
        raise UserError(
            f"the figure '{name}' has {len(made.panels)} panels: give as many axes in ax, not"
            f" {len(places)}"
        )
    for panel, place in zip(made.panels, places, strict=True):
        artists.draw_panel(place, panel)
    return places[0].figure  # type: ignore[return-value]
