# SPDX-License-Identifier: BSD-3-Clause
"""Tables and progress on a terminal."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable
from typing import IO

from rich.cells import cell_len
from rich.console import (
    Console,
    ConsoleDimensions,
    ConsoleOptions,
    JustifyMethod,
    RenderableType,
)
from rich.progress import BarColumn, Progress, TextColumn
from rich.segment import Segment
from rich.table import Column, Table
from rich.text import Text

from weir.base.errors import Plain, one_line, printable

Row = list[str]
PIPE_WIDTH = 120
FOLDED_WIDTH = 16  # at least, of a column whose text may be folded


class Screen(Console):
    """A console whose reader may go, and on which nothing is printed that acts on a terminal."""

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Renders with what is no control of Rich's own made plain."""
        for text, style, control in super().render(renderable, options):
            yield Segment(text if control else printable(text), style, control)

    @property
    def file(self) -> IO[str]:
        """The stream itself, also where a bar has put its own before it."""
        stream = super().file
        while isinstance(stream, Plain):
            stream = stream.stream
        return stream

    @file.setter
    def file(self, new: IO[str]) -> None:
        self._file = new

    def on_broken_pipe(self) -> None:
        """Leaves it to the command, which has not failed."""
        raise BrokenPipeError


def console(stderr: bool = False) -> Console:
    """A console for people, or a pipe."""
    made = Screen(stderr=stderr, highlight=False, markup=False)
    if not stderr and not made.is_terminal and "COLUMNS" not in os.environ:
        made.width = PIPE_WIDTH
    return made


def progress(console: Console) -> Progress:
    """A bar for a terminal, gone at the end; its tasks have a text, `times`.

    Where it has no room the text goes on in a second line: names are not cut.
    """
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(min(30, console.width // 5), table_column=Column(no_wrap=True)),
        TextColumn("{task.fields[times]}", table_column=Column(no_wrap=False)),
        console=console,
        disable=not console.is_terminal,
        transient=True,
    )


def table(columns: tuple[str, ...], rows: list[Row], left: int) -> Table:
    """A plain table; the first `left` columns hold names."""
    made = plain()
    for index, name in enumerate(columns):
        side: JustifyMethod = "left" if index < left else "right"
        made.add_column(Text(one_line(name)), justify=side, no_wrap=True)
    for row in rows:
        made.add_row(*(Text(one_line(cell)) for cell in row))
    return made


def print_table(out: Console, made: Table) -> None:
    """Prints a table. One that is wider than the screen comes in parts, each with the names.

    No number is cut off: a terminal in which a name and a number have no room wraps its lines.
    """
    before = out.size
    for index, columns in enumerate(parts(made.columns, before.width)):
        if index > 0:
            out.print()
        needed = sum(2 + width(column) for column in columns) - 2
        out.size = ConsoleDimensions(max(before.width, needed), before.height)
        lines = out.render_lines(part(columns), pad=False)
        out.size = before
        for line in lines:  # without the blanks up to the longest, which a terminal would wrap
            text = Text.assemble(*((piece.text, piece.style or "") for piece in line))
            text.rstrip()
            out.print(text, soft_wrap=True)


def parts(columns: list[Column], room: int) -> list[list[Column]]:
    """The columns that stand beside each other: the names in each part, then as many as fit."""
    names = list(itertools.takewhile(lambda column: column.justify == "left", columns[:-1]))
    while len(names) > 1 and taken(names) > room // 2:
        names.pop()
    made = [[*names]]
    for column in columns[len(names) :]:
        if len(made[-1]) > len(names) and taken([*made[-1], column]) - 2 > room:
            made.append([*names])
        made[-1].append(column)
    return made


def taken(columns: list[Column]) -> int:
    """What some columns need, with the space behind each."""
    return sum(2 + width(column) for column in columns)


def part(columns: list[Column]) -> Table:
    """A table of some columns of another."""
    made = plain()
    for column in columns:
        made.add_column(column.header, justify=column.justify, no_wrap=column.no_wrap)
    for row in zip(*(column.cells for column in columns), strict=True):
        made.add_row(*row)
    return made


def plain() -> Table:
    """A table without lines."""
    return Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))


def width(column: Column) -> int:
    """What a column of `table` needs; one whose text may be folded takes what is left."""
    if not column.no_wrap:
        return FOLDED_WIDTH
    return max(cell_len(str(cell)) for cell in (column.header, *column.cells))
