# SPDX-License-Identifier: BSD-3-Clause
"""HTML files that need no other: Jinja2 templates with the style and figures put in."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from weir.base.page import Figures, Link, Mark, Page, Table, Words
from weir.report import browser
from weir.report import figure as values

LONG = 40  # characters of a cell that is folded
FOLDED = 26  # characters that a column of names takes in print: longer ones are folded
PAD = 2  # characters between columns
PRINT_CHARS = 150  # across a printed page, in the smallest type that page.css allows
WIDE_CHARS = 110  # a table with more is set in smaller type on the screen, too
SHORT_ROWS = 12  # a table with no more is not divided between printed pages
CELL_PX = 480  # of a notebook's cell, beside the panels of its figure

# Words of cells and headlines on how something ended, and their colours.
STATUS = {
    "ok": "good",
    "met": "good",
    "balanced": "good",
    "not balanced": "bad",
    "NOT BALANCED": "bad",
    "NOT MET": "bad",
    "NOT": "bad",
}


MARKS = {
    "code": Markup("<code>{}</code>"),
    "bad": Markup('<strong class="bad">{}</strong>'),
    "small": Markup('<span class="small">{}</span>'),
    "em": Markup("<i>{}</i>"),
}


@dataclass(frozen=True)
class Sheet:
    """A table of a page, which is divided where a printed page is too narrow."""

    table: Table

    @cached_property
    def widths(self) -> list[int]:
        """Characters that each column takes in print, with the room behind it."""
        found = []
        for index, name in enumerate(self.table.columns):
            heading = max(map(len, name.split()), default=0)
            left = self.table.at_left[index]
            cells = [in_print(row[index], left) for row in self.table.rows]
            found.append(max(heading, *cells, 1) + PAD)
        return found

    @property
    def chars(self) -> int:
        """Characters that it takes across a printed page."""
        return sum(self.widths)

    def parts(self) -> list[Sheet]:
        """Returns parts that fit across a printed page, each with the columns of names."""
        widths, left = self.widths, self.table.left
        left = left if left < len(widths) else 1
        names = range(left if self.chars > PRINT_CHARS else 0)
        room = PRINT_CHARS - sum(widths[i] for i in names)
        groups: list[list[int]] = [[]]
        for index in range(len(names), len(widths)):
            if groups[-1] and sum(widths[i] for i in groups[-1]) + widths[index] > room:
                groups.append([])
            groups[-1].append(index)
        return [Sheet(self.table.chosen([*names, *group])) for group in groups]


def in_print(cell: str, name: bool) -> int:
    """Returns the characters of a cell's widest line in print, where names are folded."""
    if name or len(cell) > LONG:
        return min(len(cell), FOLDED)
    return max(map(len, divided(cell)))


def divided(cell: str) -> tuple[str, str]:
    """Returns a number and the share behind it, in brackets: +1.20 ms and (+3.1 %)."""
    number, bracket, share = cell.partition(" (")
    return number, f"({share}" if bracket else ""


@cache
def templates() -> Environment:
    """Returns the pages' templates; they escape every value that is not Markup."""
    made = Environment(
        loader=PackageLoader("weir.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "divided": divided,
        "kind": lambda part: type(part).__name__.lower(),
        "sheet": Sheet,
        "status": lambda text: STATUS.get(text, ""),
        "words": in_html,
    }
    made.globals |= {"LONG": LONG, "WIDE_CHARS": WIDE_CHARS, "SHORT_ROWS": SHORT_ROWS}
    return made


def render(page: Page) -> str:
    """Returns a whole page; it has uPlot if it has figures."""
    parts = [part for part in page.parts if part]
    uplot = browser.library if any(isinstance(part, Figures) for part in parts) else None
    template = templates().get_template("page.html.j2")
    return template.render(page=page, parts=parts, uplot=uplot)


def glance(page: Page) -> str:
    """Returns a page as a cell of a notebook, in the notebook's own style."""
    parts = [part for part in page.parts if part]
    return templates().get_template("glance.html.j2").render(page=page, parts=parts)


def in_html(words: Words) -> Markup:
    """Returns words as HTML; lines stay lines."""
    if isinstance(words, str):
        return Markup("<br>").join(words.split("\n"))
    if isinstance(words, Link):
        return Markup('<a href="{}">{}</a>').format(words.href, words.text)
    if isinstance(words, Mark):
        return MARKS[words.kind].format(in_html(words.text))
    return Markup().join(map(in_html, words))


@dataclass(frozen=True)
class Shown:
    """A figure of a page, which templates/page.js draws."""

    title: str
    text: str  # of the caption, after its title
    data: Markup
    across: int  # panels in a row
    order: Sequence[int]  # of its panels where a row has no room for several
    heights: Sequence[int]  # of its panels, in pixels
    key: Sequence[browser.Key]
    scales: Sequence[browser.Scale]
    numbers: Table | None  # of its lines, for those who do not see the figure
    words: str  # the same in short


def figures(drawn: Iterable[values.Figure]) -> Figures:
    """Returns a page's figures with their captions and the tables of their numbers."""
    links = browser.Links()
    return Figures([shown(one, links) for one in drawn])


def shown(figure: values.Figure, links: browser.Links | None = None) -> Shown:
    """Returns a figure as a page has it."""
    rows = values.numbers(figure)
    drawn = values.thinned(figure)
    return Shown(
        title=figure.title,
        text=drawn.text,
        data=browser.embedded(drawn, links),
        across=min(figure.columns, len(figure.panels)),
        order=browser.order(figure),
        heights=browser.heights_px(figure),
        key=browser.key(figure),
        scales=browser.scales(figure),
        numbers=Table(values.NUMBERS, rows, left=2) if rows else None,
        words=values.described(figure, rows),
    )


def cell(figure: values.Figure) -> str:
    """Returns a figure as a cell of a notebook: a page in a frame, with its script."""
    one = shown(figure)
    frame = Markup('<iframe title="{}" srcdoc="{}" width="100%" height="{}" frameborder="0">')
    page = render(Page(figure.title, [Figures([one])]))
    return frame.format(figure.title, page, sum(one.heights) + CELL_PX) + Markup("</iframe>")
