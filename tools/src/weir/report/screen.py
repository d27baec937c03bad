# SPDX-License-Identifier: BSD-3-Clause
"""A figure on a terminal: dots of braille characters, eight in each, and the numbers of a heat map.

Where there are no colours, as in a pipe, letters stand on the marks and in the key.
"""

from __future__ import annotations

import itertools
import math
import string
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
from rich.console import Console
from rich.text import Text

from weir.base import page, terminal, units
from weir.report import figure as values
from weir.report.figure import Axis, Figure, Floats, Mark, Panel
from weir.report.theme import rgb

ROWS = 14  # lines of a panel
COLUMNS_MIN = 20
TICKS = 5  # numbers beside an axis, about
DARK = 0.25  # a darker colour is not seen on a dark terminal
LETTERS_ON = (0.2, 0.55, 0.9)  # shares of a mark's points that have its letter
DOTS = np.array([[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]])  # of U+2800

Grid = npt.NDArray[np.int64]
Range = tuple[float, float]


def show(figure: Figure, out: Console) -> None:
    """Prints a figure as wide as the console: its panels, its key and its caption."""
    figure = values.thinned(figure)
    entries = values.key(figure)
    plain = not out.is_terminal or out.no_color or out.color_system is None
    letters = {m.style.label: c for m, c in zip(entries, string.ascii_letters, strict=False)}
    out.print(Text(figure.title, "bold"), soft_wrap=True)
    for panel in figure.panels:
        out.print()
        if any(isinstance(mark, values.Field) for mark in panel.marks):
            _field(panel, out)
        else:
            for line in lines(panel, out.width, letters if plain else {}):
                out.print(line, soft_wrap=True)
    if entries:
        out.print()
    for mark in entries:
        label = mark.style.label
        sign = letters.get(label, " ") if plain else "━━"
        out.print(Text.assemble((sign, _colour(mark)), f" {label}"), soft_wrap=True)
    if figure.text:
        out.print()
        out.print(Text(figure.text))


def lines(panel: Panel, width: int, letters: dict[str, str]) -> Iterator[Text]:
    """Yields the lines of a panel; letters: those that stand on marks, by label."""
    limits = values.ends(panel)
    y_ticks, x_ticks = ticks(panel.y, limits[1]), ticks(panel.x, limits[0])
    left = max((len(name) for _, name in y_ticks), default=0)
    rows = max(ROWS, 2 * len(panel.y.ticks))
    columns = max(COLUMNS_MIN, width - left - 2)
    dots = raster(panel, limits, columns, rows)
    texts = _texts(panel, limits, columns, rows, letters)
    named = {int(_dots(panel.y, limits[1], at, 4 * rows, True)[0]) // 4: n for at, n in y_ticks}
    if heading := ": ".join(filter(None, (panel.title, panel.y.label))):
        yield Text(heading)
    for row, cells in enumerate(_cells(dots)):
        signs = [texts.get((row, column), cell) for column, cell in enumerate(cells)]
        line = Text(f"{named.get(row, ''):>{left}} {'┤' if row in named else '│'}")
        for number, run in itertools.groupby(signs, lambda sign: sign[1]):
            style = _colour(panel.marks[number - 1]) if number else ""
            line.append("".join(sign[0] for sign in run), style)
        line.rstrip()
        yield line
    yield Text(" " * left + " └" + "─" * columns)
    places = [(int(_dots(panel.x, limits[0], at, 2 * columns)[0]) // 2, n) for at, n in x_ticks]
    for names in (*_in_lines(places, columns), panel.x.label.rjust(columns)):
        if names.strip():
            yield Text(" " * (left + 2) + names.rstrip())


def raster(panel: Panel, limits: tuple[Range, Range], columns: int, rows: int) -> Grid:
    """Returns the number of the mark, from 1, that each dot belongs to; 0: none. From the top.

    limits: the ends of the panel's axes.
    """
    grid = np.zeros((4 * rows, 2 * columns), dtype=np.int64)
    for number, mark in enumerate(panel.marks, start=1):
        for x, y in _paths(mark, limits):
            if x.size:
                across = _dots(panel.x, limits[0], x, grid.shape[1])
                _join(grid, across, _dots(panel.y, limits[1], y, grid.shape[0], True), number)
    return grid


def _dots(axis: Axis, limits: Range, at: object, count: int, down: bool = False) -> Floats:
    """Returns places on an axis as dots from its beginning; down: from the top of the panel."""

    def scaled(numbers: Floats) -> Floats:
        if axis.scale == "log":
            numbers = np.log(numbers)
        if axis.scale == "symlog":
            numbers = np.sign(numbers) * np.log1p(np.abs(numbers) / axis.linear_to)
        return numbers

    with np.errstate(divide="ignore", invalid="ignore"):
        low, high = scaled(values.floats(limits))
        share = (scaled(values.floats(at)) - low) / (high - low)
    if axis.reversed != down:
        share = 1 - share
    return values.floats(np.clip(np.rint(share * (count - 1)), -count, 2 * count))


def _join(grid: Grid, x: Floats, y: Floats, number: int) -> None:
    """Sets the dots of a path; NaN is a gap."""
    begin, end = (np.column_stack(part) for part in ((x[:-1], y[:-1]), (x[1:], y[1:])))
    whole = np.isfinite(begin).all(axis=1) & np.isfinite(end).all(axis=1)
    begin, end = begin[whole], end[whole]
    steps = np.abs(end - begin).max(axis=1, initial=1).astype(np.int64)
    each = np.repeat(np.arange(steps.size), steps)
    part = (np.arange(each.size) - np.repeat(np.cumsum(steps) - steps, steps)) / steps[each]
    between = begin[each] + (end - begin)[each] * part[:, None]
    found = np.concatenate([between, np.column_stack([x, y])])
    found = np.rint(found[np.isfinite(found).all(axis=1)]).astype(np.int64)
    inside = ((found >= 0) & (found < grid.shape[::-1])).all(axis=1)
    grid[found[inside, 1], found[inside, 0]] = number


def _paths(mark: Mark, limits: tuple[Range, Range]) -> Iterator[tuple[Floats, Floats]]:
    """Yields the lines of a mark, in the numbers of its axes."""
    if isinstance(mark, values.Line):
        later, earlier = slice(1, None), slice(None, -1)
        of_x, of_y = (later, earlier) if mark.steps == "post" else (earlier, later)
        x, y = mark.x, mark.y
        yield (np.repeat(x, 2)[of_x], np.repeat(y, 2)[of_y]) if mark.steps else (x, y)
    elif isinstance(mark, values.Band):
        yield from ((mark.x, edge) for edge in (mark.low, mark.high))
    elif isinstance(mark, values.Points):
        y = np.minimum(mark.y, limits[1][1]) if mark.at_edge else mark.y
        yield _apart(mark.x), _apart(y)
    elif isinstance(mark, values.Strokes | values.Bars):
        half = mark.width / 2 if isinstance(mark, values.Bars) else np.zeros(1)
        across, along = _boxes(mark.at - half, mark.at + half, mark.low, mark.high)
        yield (along, across) if mark.lying else (across, along)
    elif isinstance(mark, values.Box):
        found = mark.quartiles()
        levels = values.floats(found[:5])
        half = values.floats([0, 1, 1, 0]) * mark.width / 2  # whiskers are strokes
        yield _boxes(mark.at - half, mark.at + half, levels[:-1], levels[1:])
        yield _apart(np.full(found.outliers.size, mark.at)), _apart(found.outliers)
    elif isinstance(mark, values.Rule | values.Span):
        whole = values.floats(limits[1 if mark.upright else 0])
        for level in (mark.at,) if isinstance(mark, values.Rule) else (mark.low, mark.high):
            flat = np.full(2, level)
            yield (flat, whole) if mark.upright else (whole, flat)
    elif isinstance(mark, values.Polygon):
        yield np.append(mark.x, mark.x[:1]), np.append(mark.y, mark.y[:1])


def _apart(column: Floats) -> Floats:
    """Returns values with a gap after each."""
    return np.column_stack([column, np.full(column.size, np.nan)]).ravel()


def _boxes(begin: Floats, end: Floats, low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """Returns the outlines of rectangles, with a gap after each."""
    begin, end, low, high, gap = np.broadcast_arrays(begin, end, low, high, np.nan)
    across = np.column_stack([begin, end, end, begin, begin, gap]).ravel()
    return across, np.column_stack([low, low, high, high, low, gap]).ravel()


def _cells(grid: Grid) -> Iterator[list[tuple[str, int]]]:
    """Yields the characters of each line, each with the number of its foremost mark."""
    rows, columns = grid.shape[0] // 4, grid.shape[1] // 2
    cells = grid.reshape(rows, 4, columns, 2).transpose(0, 2, 1, 3)
    codes = ((cells > 0) * DOTS).sum(axis=(2, 3))
    for line, marks in zip(codes, cells.max(axis=(2, 3)), strict=True):
        yield [(chr(0x2800 + code) if code else " ", int(mark))
               for code, mark in zip(line, marks, strict=True)]  # fmt: skip


def _texts(
    panel: Panel, limits: tuple[Range, Range], columns: int, rows: int, letters: dict[str, str]
) -> dict[tuple[int, int], tuple[str, int]]:
    """Returns the characters that stand in place of dots: labels, and letters of the key."""
    found: dict[tuple[int, int], tuple[str, int]] = {}
    for number, mark in enumerate(panel.marks, start=1):
        words = [(mark.x, mark.y, mark.text.strip())] if isinstance(mark, values.Label) else []
        letter = letters.get(mark.style.label)
        if letter is not None:
            words = [(x, y, letter) for x, y in _lettered(mark, limits)]
        for x, y, text in words:
            column = _dots(panel.x, limits[0], x, 2 * columns)[0] // 2
            row = _dots(panel.y, limits[1], y, 4 * rows, True)[0] // 4
            if math.isfinite(column) and math.isfinite(row):
                begin = max(0, min(int(column), columns - len(text)))
                for place, sign in enumerate(text, start=begin):
                    found[int(row), place] = sign, number
    return found


def _lettered(mark: Mark, limits: tuple[Range, Range]) -> list[tuple[float, float]]:
    """Returns places on a mark for its letter."""
    if isinstance(mark, values.Band):
        x, y = mark.x, (mark.low + mark.high) / 2
        if not mark.stacked:
            return []  # its line has the letter
    else:
        paths = [(values.NONE, values.NONE), *_paths(mark, limits)]
        x, y = (np.concatenate(part) for part in zip(*paths, strict=True))
    (low, high), (bottom, top) = limits
    inside = (x >= low) & (x <= high) & (y >= bottom) & (y <= top)
    x, y = x[inside], y[inside]
    return [(x[int(s * x.size)], y[int(s * x.size)]) for s in LETTERS_ON] if x.size else []


def ticks(axis: Axis, limits: Range) -> list[tuple[float, str]]:
    """Returns places on an axis and their names, or about TICKS round numbers."""
    low, high = limits
    if axis.ticks:
        return [(at, name) for at, name in axis.ticks if low <= at <= high]
    if axis.scale == "linear":
        rough = (high - low) / TICKS
        power = 10.0 ** math.floor(math.log10(rough))
        step = next(power * n for n in (1, 2, 5, 10) if power * n >= rough)
        step = max(step, 1.0) if axis.whole else step
        places = np.arange(math.ceil(low / step), math.floor(high / step) + 1) * step
    else:
        least = low if axis.scale == "log" else axis.linear_to
        powers = np.arange(math.floor(math.log10(least)), math.log10(max(high, least)) + 1)
        wide = powers.size > 3
        places = np.ravel([[n * 10.0**p for n in ((1,) if wide else (1, 2, 5))] for p in powers])
        if axis.scale == "symlog":
            places = np.concatenate([-places[::-1], [0.0], places])
        places = places[(places >= low) & (places <= high)]
        places = places[:: max(1, -(-places.size // (2 * TICKS)))]
    return [(float(at), f"{at:g}" if abs(at) > 1e-12 else "0") for at in places]


def _in_lines(places: Sequence[tuple[int, str]], columns: int) -> list[str]:
    """Returns names around their places, in as many lines as they need not to touch."""
    found: list[str] = []
    for place, name in sorted(places):
        begin = max(0, min(place - len(name) // 2, columns - len(name)))
        fitting = [n for n, line in enumerate(found) if len(line) < begin or not line]
        index = fitting[0] if fitting else len(found)
        found += [] if fitting else [""]
        found[index] = found[index].ljust(begin) + name
    return found


def _colour(mark: Mark) -> str:
    """Returns the mark's colour, or the terminal's own for one that is nearly black."""
    return "" if max(rgb(mark.style.colour)) < DARK else mark.style.colour


def _field(panel: Panel, out: Console) -> None:
    """Prints the numbers of a heat map, the highest row first."""
    for mark in panel.marks:
        if isinstance(mark, values.Field):
            across, up = dict(panel.x.ticks), dict(panel.y.ticks)
            columns = [across.get(n + 0.5, "") for n in range(mark.values.shape[1])]
            rows = [
                [up.get(n + 0.5, ""), *(units.number(float(v)) for v in row)]
                for n, row in enumerate(mark.values)
            ]
            heading = ": ".join(filter(None, (panel.title, mark.label)))
            out.print(f"{heading} by {panel.y.label} and {panel.x.label}", soft_wrap=True)
            terminal.print_table(out, page.Table(("", *columns), rows[::-1], left=1))
