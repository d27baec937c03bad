# SPDX-License-Identifier: BSD-3-Clause
"""Tables and progress on a terminal."""

from __future__ import annotations

import itertools
import os
from collections.abc import Collection, Iterable, Sequence
from typing import IO

from rich.cells import cell_len
from rich.console import Console, ConsoleDimensions, ConsoleOptions, JustifyMethod, RenderableType
from rich.progress import BarColumn, Progress, TextColumn
from rich.segment import Segment
from rich.table import Column, Table
from rich.text import Text

from weir.base import page
from weir.base.errors import Plain, one_line, printable

PIPE_WIDTH = 120
GAP = 2  # blanks between columns
STYLES = {"ok": "green", "warn": "yellow", "bad": "bold red", "FAILED": "bold red"}  # of cells
FOLDED_WIDTH = 16  # at least, of a column whose text may be folded


class Screen(Console):
    """A console that makes all its text printable and does not exit when its reader is gone."""

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        for text, style, control in super().render(renderable, options):
            yield Segment(text if control else printable(text), style, control)

    @property
    def file(self) -> IO[str]:
        """The stream below a progress bar's redirection and errors.Plain."""
        stream = super().file
        while isinstance(stream, Plain):
            stream = stream.stream
        return stream

    @file.setter
    def file(self, new: IO[str]) -> None:
        self._file = new

    def on_broken_pipe(self) -> None:
        """Raises BrokenPipeError for errors.ended, which takes it for a good end."""
        raise BrokenPipeError


def console(stderr: bool = False) -> Console:
    """Returns a console for standard output or standard error; a pipe has PIPE_WIDTH columns."""
    made = Screen(stderr=stderr, highlight=False, markup=False)
    if not stderr and not made.is_terminal and "COLUMNS" not in os.environ:
        made.width = PIPE_WIDTH
    return made


def progress(console: Console) -> Progress:
    """Returns a progress bar that is removed at its end; its tasks have a text, `times`.

    Text that has no room is wrapped, and names are not cut.
    """
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(min(30, console.width // 5), table_column=Column(no_wrap=True)),
        TextColumn("{task.fields[times]}", table_column=Column(no_wrap=False)),
        console=console,
        disable=not console.is_terminal,
        transient=True,
    )


def rich_table(made: page.Table, folded: Collection[str] = ()) -> Table:
    """Returns Rich's table, without rules; text in the columns `folded` may take several lines."""
    found = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for name, left in zip(made.columns, made.at_left, strict=True):
        side: JustifyMethod = "left" if left else "right"
        found.add_column(Text(one_line(name)), justify=side, no_wrap=name not in folded,
                         overflow="fold" if name in folded else "ellipsis")  # fmt: skip
    for row in made.rows:
        found.add_row(*(Text(one_line(cell), style=STYLES.get(cell, "")) for cell in row))
    return found


def print_table(out: Console, made: page.Table, folded: Collection[str] = ()) -> None:
    """Prints a table; one wider than the screen in parts, which all begin with the names.

    No number is cut off: a terminal in which a name and a number have no room wraps its lines.
    """
    sizes = widths(made, folded)
    for index, places in enumerate(parts(made, sizes, out.width)):
        if index > 0:
            out.print()
        part, room = made.chosen(places), [sizes[place] for place in places]
        if {*folded} & {*part.columns}:
            lines = wrapped(out, part, sum(room) - GAP, folded)
        else:  # as Rich's table, in a tenth of the time
            lines = [padded(part, room, cells) for cells in (part.columns, *part.rows)]
            lines[0].stylize("bold")
        out.print(Text("\n").join(lines), soft_wrap=True)


def wrapped(out: Console, made: page.Table, needed: int, folded: Collection[str]) -> list[Text]:
    """Returns the lines of a table, some columns of which are folded to the console's width."""
    before = out.size
    out.size = ConsoleDimensions(max(before.width, needed), before.height)
    lines = out.render_lines(rich_table(made, folded), pad=False)
    out.size = before
    found = [Text.assemble(*((one.text, one.style or "") for one in line)) for line in lines]
    for line in found:
        line.rstrip()  # blanks up to the longest line, which a terminal would wrap
    return found


def padded(made: page.Table, room: Sequence[int], cells: Sequence[str]) -> Text:
    """Returns a line of a table."""
    line = Text()
    for left, size, cell in zip(made.at_left, room, map(one_line, cells), strict=True):
        blanks = " " * (size - GAP - cell_len(cell))
        line.append("" if left else blanks)
        line.append(cell, STYLES.get(cell))
        line.append((blanks if left else "") + " " * GAP)
    line.rstrip()
    return line


def show(out: Console, parts: Iterable[page.Table | page.Status | str]) -> None:
    """Prints tables, apart from what is around them, and texts; one that is not good in yellow."""
    apart = False
    for number, part in enumerate(parts):
        is_table = isinstance(part, page.Table)
        if number > 0 and (apart or is_table):
            out.print()
        apart = is_table
        if isinstance(part, page.Table):
            print_table(out, part)
        elif isinstance(part, page.Status):
            out.print(part.text, style=None if part.kind == "good" else "yellow", soft_wrap=True)
        else:
            out.print(part, soft_wrap=True)


def widths(made: page.Table, folded: Collection[str] = ()) -> list[int]:
    """Returns each column's width with the gap behind it, in cells; a folded one's is the least."""
    return [
        GAP + (FOLDED_WIDTH if name in folded else max(cell_len(one_line(cell)) for cell in cells))
        for name, *cells in zip(made.columns, made.columns, *made.rows, strict=True)
    ]


def parts(made: page.Table, sizes: list[int], room: int) -> list[list[int]]:
    """Returns the columns of each part of a table: those of names, and what fits into `room`."""
    names = list(itertools.takewhile(lambda place: made.at_left[place], range(len(sizes) - 1)))
    while len(names) > 1 and sum(sizes[place] for place in names) > room // 2:
        names.pop()
    found = [[*names]]
    for place in range(len(names), len(sizes)):
        taken = sum(sizes[one] for one in (*found[-1], place))
        if len(found[-1]) > len(names) and taken - GAP > room:
            found.append([*names])
        found[-1].append(place)
    return found
