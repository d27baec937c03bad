# SPDX-License-Identifier: BSD-3-Clause
"""A figure as a value: panels of marks over columns of numbers, without a drawing library.

Each renderer is one module: artists.py draws with matplotlib, table.py writes the columns. What
follows from a figure alone stands here: its key, the ends of its axes, the table of its numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from weir.base import units
from weir.report.theme import FAINT, INK, Style

Floats = npt.NDArray[np.float64]
Scale = Literal["linear", "log", "symlog"]
Steps = Literal["", "pre", "post"]  # a value holds up to its x, or from it

WIDTH_IN, HEIGHT_IN = 7.2, 2.35  # of a page, and of a row of panels
POINTS_MAX = 4000  # of a mark that a page or a paper shows
PANEL_POINTS = 800  # of one where there are more than two panels, which are small
MARGIN = 0.05  # of what an axis spans, beyond the data
NUMBERS = ("line", "quantity", "first", "smallest", "mean", "largest", "last")
TOTAL = "total"
NONE = np.empty(0)
LEVEL = Style("", INK, "", (0, (4, 2)))
DOTTED = (0, (1.0, 2.0))
MOMENT = Style("", FAINT, "", DOTTED)


def floats(values: object) -> Floats:
    """Returns a column, a sequence or one number as an array; what is not known is NaN."""
    if isinstance(values, pl.Series):
        return values.cast(pl.Float64).fill_null(np.nan).to_numpy()
    return np.atleast_1d(np.asarray(values, dtype=np.float64))


@dataclass(frozen=True)
class Axis:
    """An axis of a panel."""

    label: str = ""  # with its unit: "RTT (ms)"
    low: float | None = None  # where it begins, the smaller number [the data, with a margin]
    high: float | None = None
    scale: Scale = "linear"
    _: KW_ONLY
    linear_to: float = 1.0  # a symlog scale is linear up to here
    reversed: bool = False  # the larger numbers stand at the left, or below
    ticks: Sequence[tuple[float, str]] = ()  # places and their names [numbers]
    whole: bool = False  # its numbers are whole ones
    is_time: bool = False  # in seconds of the run: the panels of a page move together


@dataclass(frozen=True)
class Line:
    """Points in order, joined; NaN is a gap."""

    x: Floats
    y: Floats
    style: Style
    _: KW_ONLY
    steps: Steps = ""
    markers: int = 0  # the style's marker stands at every nth point; 0: at none
    width: float = 1.1  # in points
    hrefs: Sequence[Sequence[str]] = ()  # addresses of what each point is made of


@dataclass(frozen=True)
class Band:
    """The area between two edges; one of a stack has its height as value."""

    x: Floats
    low: Floats
    high: Floats
    style: Style
    _: KW_ONLY
    stacked: bool = False

    @property
    def opacity(self) -> float:
        return 0.85 if self.stacked else 0.2


@dataclass(frozen=True)
class Points:
    """Points that are not joined, as the style's marker."""

    x: Floats
    y: Floats
    style: Style
    _: KW_ONLY
    size: float = 4.5  # in points
    hollow: bool = False
    at_edge: bool = False  # those above the axis stand at its end, whole


@dataclass(frozen=True)
class Strokes:
    """Upright strokes from low to high, such as intervals; lying ones go along x, at each y."""

    at: Floats
    low: Floats
    high: Floats
    style: Style
    _: KW_ONLY
    lying: bool = False
    width: float = 0.9  # in points
    opacity: float = 1.0


@dataclass(frozen=True)
class Bars:
    """Bars that stand on the x axis; lying ones are ranges along x, at each y."""

    at: Floats  # the middle
    width: Floats  # across the bar
    low: Floats
    high: Floats
    style: Style
    _: KW_ONLY
    lying: bool = False


class Quartiles(NamedTuple):
    """The numbers of a box; its whiskers end within 1.5 of the quartiles' distance."""

    whisker_low: float
    low: float
    median: float
    high: float
    whisker_high: float
    outliers: Floats


@dataclass(frozen=True)
class Box:
    """Quartiles, whiskers and outliers of values, at a place on the x axis."""

    at: float
    values: Floats
    style: Style
    _: KW_ONLY
    width: float = 0.5

    def quartiles(self) -> Quartiles:
        """Returns the numbers that the box shows of its values."""
        low, median, high = (float(q) for q in np.percentile(self.values, (25, 50, 75)))
        room = 1.5 * (high - low)
        within = (self.values >= low - room) & (self.values <= high + room)
        inner = self.values[within]
        ends = min(low, float(inner.min())), max(high, float(inner.max()))
        return Quartiles(ends[0], low, median, high, ends[1], self.values[~within])


@dataclass(frozen=True)
class Rule:
    """A line across the panel: a level of y, or a moment or value of x."""

    at: float
    style: Style = LEVEL
    _: KW_ONLY
    upright: bool = False
    width: float = 0.8


@dataclass(frozen=True)
class Span:
    """A shaded range of y across the panel; an upright one is a range of x."""

    low: float
    high: float
    style: Style
    _: KW_ONLY
    upright: bool = False


@dataclass(frozen=True)
class Polygon:
    """An outline, such as an ellipse, filled lightly."""

    x: Floats
    y: Floats
    style: Style


@dataclass(frozen=True)
class Field:
    """A heat map: a rectangle of values, whose squares have the middles 0.5, 1.5 and so on."""

    values: Floats  # rows from the lowest; NaN is not known
    label: str  # of the colours, with the unit
    low: float  # ends of the colours: theme.VIRIDIS
    high: float
    _: KW_ONLY
    written: bool = False  # each square has its number
    hrefs: Sequence[Sequence[str]] = ()  # as of a line's points, row after row
    style: Style = field(default_factory=lambda: Style("", INK, ""))


@dataclass(frozen=True)
class Label:
    """A text to the right of a place."""

    x: float
    y: float
    text: str
    _: KW_ONLY
    size: float = 8.0  # in points
    away: tuple[float, float] = (0.0, 0.0)  # from its place, in points
    style: Style = field(default_factory=lambda: Style("", INK, ""))


Mark = Line | Band | Points | Strokes | Bars | Box | Rule | Span | Polygon | Field | Label


@dataclass(frozen=True)
class Panel:
    """A pair of axes with marks, of which the later ones stand before the earlier ones."""

    x: Axis
    y: Axis
    marks: Sequence[Mark]
    title: str = ""
    _: KW_ONLY
    weight: float = 1.0  # its height beside that of the panels above and below


@dataclass(frozen=True)
class Figure:
    """Panels in rows, with the name for `weir plot`, one for each figure of a run."""

    panels: Sequence[Panel]
    _: KW_ONLY
    columns: int = 1  # panels in a row
    height_in: float = HEIGHT_IN
    name: str = ""
    caption: str = ""  # its first sentence is the title

    @property
    def title(self) -> str:
        """The first sentence of the caption, without its full stop."""
        return self.caption.partition(". ")[0].removesuffix(".")

    @property
    def text(self) -> str:
        """The caption after its title."""
        return self.caption.partition(". ")[2]


def named(name: str, figure: Figure, caption: str) -> Figure:
    """Returns the figure with a name and a caption."""
    return replace(figure, name=name, caption=caption)


def beside(*panels: Panel, height_in: float = HEIGHT_IN) -> Figure:
    """Returns a figure of panels side by side."""
    return Figure(panels, columns=len(panels), height_in=height_in)


def stacked(x: Floats, heights: Sequence[Floats], styles: Sequence[Style]) -> list[Band]:
    """Returns areas that stand on each other."""
    found, low = [], np.zeros(x.size)
    for height, style in zip(heights, styles, strict=True):
        found.append(Band(x, low, low + height, style, stacked=True))
        low = low + height
    return found


class Series(NamedTuple):
    """Columns of a mark; the name is added to the mark's label."""

    name: str
    x: Floats
    y: Floats


def series(mark: Mark) -> Iterator[Series]:
    """Yields the columns of a mark; rules, spans and labels have none."""
    if isinstance(mark, Line | Points | Polygon):
        yield Series("", mark.x, mark.y)
    elif isinstance(mark, Band) and mark.stacked:
        yield Series("", mark.x, mark.high - mark.low)
    elif isinstance(mark, Band):
        yield Series("low", mark.x, mark.low)
        yield Series("high", mark.x, mark.high)
    elif isinstance(mark, Strokes | Bars):
        for name, end in (("from", mark.low), ("to", mark.high)):
            yield Series(name, end, mark.at) if mark.lying else Series(name, mark.at, end)
    elif isinstance(mark, Box):
        yield Series("", np.full(mark.values.size, mark.at), mark.values)
    elif isinstance(mark, Field):
        for row, values in enumerate(mark.values):
            yield Series(f"at {row + 0.5:g}", np.arange(values.size) + 0.5, values)


def key(figure: Figure) -> list[Mark]:
    """Returns the first mark of each label; of marks and the area around them the marks."""
    found: dict[str, Mark] = {}
    for panel in figure.panels:
        for mark in panel.marks:
            label = mark.style.label
            known = found.get(label)
            around = isinstance(known, Polygon) or (isinstance(known, Band) and not known.stacked)
            if label and (known is None or around):
                found[label] = mark
    return list(found.values())


def ends(panel: Panel) -> tuple[tuple[float, float], tuple[float, float]]:
    """Returns where x and y begin and end: as the axes say, else at the data with a margin."""
    x, y = ([NONE], [NONE])
    for mark in panel.marks:
        for place, found in zip((x, y), reach(mark), strict=True):
            place.append(found)
    return _ends(panel.x, np.concatenate(x)), _ends(panel.y, np.concatenate(y))


def _ends(axis: Axis, values: Floats) -> tuple[float, float]:
    known = values[np.isfinite(values)]
    if axis.scale == "log":
        known = known[known > 0]
    low, high = (float(known.min()), float(known.max())) if known.size else (0.0, 1.0)
    if axis.scale == "log" and known.size:
        factor = (high / low) ** MARGIN if high > low else 10**0.5
        wide = low / factor, high * factor
    elif axis.scale == "log":
        wide = 0.1, 1.0
    else:
        room = MARGIN * (high - low) if high > low else MARGIN * abs(high) or MARGIN
        wide = low - room, high + room
    begin = wide[0] if axis.low is None else axis.low
    end = wide[1] if axis.high is None else axis.high
    return (begin, end) if begin < end else (begin, begin + 1.0)


def reach(mark: Mark) -> tuple[Floats, Floats]:
    """Returns x and y of a mark that the axes have to show."""
    if isinstance(mark, Line | Polygon):
        return mark.x, mark.y
    if isinstance(mark, Points):
        return mark.x, NONE if mark.at_edge else mark.y
    if isinstance(mark, Band):
        return mark.x, np.concatenate([mark.low, mark.high])
    if isinstance(mark, Strokes | Bars):
        half = mark.width / 2 if isinstance(mark, Bars) else np.zeros(1)
        across = np.concatenate([mark.at - half, mark.at + half])
        along = np.concatenate([mark.low, mark.high])
        return (along, across) if mark.lying else (across, along)
    if isinstance(mark, Box):
        return floats([mark.at - mark.width / 2, mark.at + mark.width / 2]), mark.values
    if isinstance(mark, Field):
        rows, columns = mark.values.shape
        return floats([0, columns]), floats([0, rows])
    if isinstance(mark, Label):
        return floats(mark.x), floats(mark.y)
    across = floats(mark.at) if isinstance(mark, Rule) else floats([mark.low, mark.high])
    return (across, NONE) if mark.upright else (NONE, across)


def alike(panels: Sequence[Panel], *, x: bool = True, y: bool = False) -> list[Panel]:
    """Returns panels whose x, or y, axes have the same ends, so that all show the same range."""
    found = [ends(panel) for panel in panels]
    made = list(panels)
    for name, wanted, place in (("x", x, 0), ("y", y, 1)):
        if wanted:
            low, high = min(e[place][0] for e in found), max(e[place][1] for e in found)
            made = [replace(p, **{name: replace(getattr(p, name), low=low, high=high)})
                    for p in made]  # fmt: skip
    return made


def numbers(figure: Figure) -> list[list[str]]:
    """Returns NUMBERS of each line and stacked area, and the total of the areas."""
    found = []
    for panel in figure.panels:
        stack = [mark for mark in panel.marks if isinstance(mark, Band) and mark.stacked]
        lines = [m for m in panel.marks if isinstance(m, Line) and (np.diff(m.x) >= 0).all()]
        rows = [(m.style.label, m.high - m.low) for m in stack]
        rows += [(TOTAL, stack[-1].high)] if len(stack) > 1 else []
        rows += [(m.style.label, m.y) for m in lines]
        for name, values in rows:
            y = values[np.isfinite(values)]
            if y.size > 1:
                shown = map(float, (y[0], y.min(), y.mean(), y.max(), y[-1]))
                what = panel.y.label or panel.title
                found.append([name, what, *map(units.number, shown)])
    return found


def described(figure: Figure, rows: Sequence[Sequence[str]]) -> str:
    """Returns the figure in words, with the first of its NUMBERS."""
    words = [
        f"{f'{name}, ' if name else ''}{what}: {low} to {high}, mean {mean}"
        for name, what, _, low, mean, high, _ in rows[:6]
    ]
    return f"{figure.title}. {'; '.join(words)}".strip("; ")


def thinned(figure: Figure) -> Figure:
    """Returns the figure with as many points as can be seen; each stretch keeps its extremes.

    The caption says how many points there are where some are left out.
    """
    most = POINTS_MAX if len(figure.panels) <= 2 else PANEL_POINTS
    made = replace(figure, panels=[
        replace(panel, marks=[_thinned(mark, most) for mark in panel.marks])
        for panel in figure.panels
    ])  # fmt: skip
    drawn, known = _points(made), _points(figure)
    if drawn == known or not figure.caption:
        return made
    left_out = (
        f" Drawn are {units.count(drawn)} of {units.count(known)} points: each stretch keeps its"
        " smallest and largest value."
    )
    return replace(made, caption=figure.caption + left_out)


def _points(figure: Figure) -> int:
    marks = (mark for panel in figure.panels for mark in panel.marks)
    kinds = Line | Points | Band | Strokes  # which are thinned
    return sum(next(series(mark)).x.size for mark in marks if isinstance(mark, kinds))


def _thinned(mark: Mark, most: int) -> Mark:
    if isinstance(mark, Line | Points) and mark.y.size > most:
        keep = places(mark.y, most)
        if isinstance(mark, Line) and mark.hrefs:
            mark = replace(mark, hrefs=[mark.hrefs[n] for n in keep])
        return replace(mark, x=mark.x[keep], y=mark.y[keep])
    if isinstance(mark, Band) and mark.x.size > most:
        keep = np.union1d(places(mark.low, most // 2), places(mark.high, most // 2))
        return replace(mark, x=mark.x[keep], low=mark.low[keep], high=mark.high[keep])
    if isinstance(mark, Strokes) and mark.at.size > most:
        keep = places(mark.high, most)
        return replace(mark, at=mark.at[keep], low=mark.low[keep], high=mark.high[keep])
    return mark


def places(y: Floats, most: int = POINTS_MAX) -> npt.NDArray[np.int64]:
    """Returns indices of at most so many values: each stretch's smallest and largest, and the ends.

    A stretch without a number is one gap.
    """
    if y.size <= most:
        return np.arange(y.size)
    length = -(-y.size // (most // 2 - 1))
    padded = np.full((-(-y.size // length), length), np.nan)
    padded.ravel()[: y.size] = y
    first = np.arange(len(padded)) * length
    low = first + np.where(np.isnan(padded), np.inf, padded).argmin(axis=1)
    high = first + np.where(np.isnan(padded), -np.inf, padded).argmax(axis=1)
    return np.unique(np.concatenate([[0, y.size - 1], low, high]))
