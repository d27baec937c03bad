# SPDX-License-Identifier: BSD-3-Clause
"""The data of a figure as a table, read back from its artists, as interactive.py does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl
from matplotlib.collections import PolyCollection
from matplotlib.patches import Polygon, Rectangle

from weir.report import bounded, interactive

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from weir.report.interactive import Floats


class Series(NamedTuple):
    """A line, an area's edge or bars."""

    name: str
    x: Floats
    y: Floats


def table(figure: Figure) -> pl.DataFrame:
    """Returns a row per point: panel from 1, the names of its axes, the line, x and y.

    A stacked area is its height; an area around a line has two edges, low and high.
    """
    names = interactive.names_by_colour(figure)
    parts = []
    shown = [axes for axes in figure.axes if axes.get_visible()]
    for number, axes in enumerate(shown, start=1):
        x_label = axes.get_xlabel() or shown[-1].get_xlabel()
        y_label = " ".join(filter(None, (axes.get_title(loc="left"), axes.get_ylabel())))
        about = {"panel": number, "x_axis": x_label, "y_axis": y_label}
        for series in panel(axes, names):
            frame = pl.DataFrame({"x": series.x, "y": series.y})
            known = {**about, "line": series.name}
            parts.append(frame.select(*(pl.lit(v).alias(k) for k, v in known.items()), "x", "y"))
    return pl.concat(parts) if parts else pl.DataFrame()


def panel(axes: Axes, names: dict[str, str]) -> Iterator[Series]:
    """Yields the data of a pair of axes, without its levels and marks at the edge."""

    def name(artist: Any, colour: Any) -> str:
        return interactive._label(artist) or names.get(interactive._colour(colour), "")

    on_each_other = interactive.stacked(axes)
    for area in axes.collections:
        if not isinstance(area, PolyCollection) or len(area.get_facecolor()) == 0:
            continue
        called = name(area, area.get_facecolor()[0])
        for path in area.get_paths():
            edges = bounded.area(path)
            if edges is None:
                continue
            x, low, high = edges
            if area in on_each_other:
                yield Series(called, x, high - low)
            else:
                yield Series(f"{called}, low", x, low)
                yield Series(f"{called}, high", x, high)
    for line in axes.lines:
        if interactive._frame(line, axes) == (True, True):
            x, y = (np.asarray(v, dtype=np.float64) for v in (line.get_xdata(), line.get_ydata()))
            yield Series(name(line, line.get_color()), x, y)
    yield from bars(axes, names)


def bars(axes: Axes, names: dict[str, str]) -> Iterator[Series]:
    """Yields columns by colour, the middle and height of each, and rows with their ends."""
    columns: dict[str, list[tuple[float, float]]] = {}
    rows: dict[str, list[tuple[float, float, float]]] = {}
    boxes = [patch for patch in axes.patches if isinstance(patch, Rectangle)]
    in_rows = len({round(box.get_height(), 9) for box in boxes}) == 1 and len(boxes) > 1
    named = {round(y, 6): text.get_text() for y, text in _ticks(axes)} if in_rows else {}
    for box in boxes:
        called = names.get(interactive._colour(box.get_facecolor()), "")
        (left, bottom), width, height = box.get_xy(), box.get_width(), box.get_height()
        if in_rows:
            middle = bottom + height / 2
            label = ", ".join(filter(None, (named.get(round(middle, 6), ""), called)))
            rows.setdefault(label, []).append((left, left + width, middle))
        else:
            columns.setdefault(called, []).append((left + width / 2, height))
    for called, points in columns.items():
        yield Series(called, *np.array(points, np.float64).T)
    for called, ends in rows.items():
        first, last, middle = np.array(ends, np.float64).T
        yield Series(f"{called}, from".removeprefix(", "), first, middle)
        yield Series(f"{called}, to".removeprefix(", "), last, middle)
    for patch in axes.patches:
        if isinstance(patch, Polygon):
            x, y = np.asarray(patch.get_xy(), dtype=np.float64).T
            yield Series(names.get(interactive._colour(patch.get_facecolor()), ""), x, y)


def _ticks(axes: Axes) -> Iterator[tuple[float, Any]]:
    return zip(map(float, axes.get_yticks()), axes.get_yticklabels(), strict=False)
