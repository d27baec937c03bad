# SPDX-License-Identifier: BSD-3-Clause
"""Reads the key and the numbers of lines back from a matplotlib figure's artists."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
from markupsafe import Markup
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_hex
from matplotlib.container import BarContainer
from matplotlib.lines import Line2D
from matplotlib.patches import Polygon, Rectangle

from weir.base import units
from weir.report import bounded
from weir.report.browser import SHAPES

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    Floats = npt.NDArray[np.float64]

NUMBERS = ("line", "quantity", "first", "smallest", "mean", "largest", "last")
TOTAL = "total"
NO_LINE = ("None", "none", "", " ")


class Key(NamedTuple):
    """An entry of a legend; its button hides what it names."""

    label: str
    colour: str
    swatch: Markup  # SVG shapes in currentColor: the line, the marker or the area


def legend(figure: Figure) -> list[Key]:
    """Returns the meaning of a figure's colours, dashes and markers."""
    found: dict[str, Key] = {}
    for axes in figure.axes:
        for artist, label in zip(*axes.get_legend_handles_labels(), strict=True):
            colour = _artist_colour(artist)
            if colour is not None:
                found.setdefault(label, Key(label, colour, _swatch(artist)))
    return list(found.values())


def _swatch(artist: Any) -> Markup:
    """Returns an artist in small, 28 by 10 pixels."""
    if not isinstance(artist, Line2D):
        alpha = None if isinstance(artist, BarContainer) else artist.get_alpha()
        return Markup('<path fill="currentColor" fill-opacity="{}" d="M0 0h28v10H0z"/>').format(
            f"{alpha or 1.0:.2g}"
        )
    shapes = Markup()
    if artist.get_linestyle() not in NO_LINE:
        dashes = " ".join(map(str, _dash(artist)))
        shapes += Markup('<path stroke-dasharray="{}" d="M0 5h28"/>').format(dashes)
    if str(artist.get_marker()) in SHAPES:
        hollow = _colour(artist.get_markerfacecolor()) == "#ffffff"
        fill = "none" if hollow else "currentColor"
        shapes += Markup('<path fill="{}" d="{}"/>').format(fill, SHAPES[str(artist.get_marker())])
    return shapes


def numbers(figure: Figure) -> list[list[str]]:
    """Returns NUMBERS of each line and stacked area, for those who do not see the figure.

    The areas have their total, too.
    """
    names = names_by_colour(figure)
    found = []
    for axes in figure.axes:
        if not axes.get_visible():
            continue
        found += _stacked_numbers(axes)
        for line in axes.lines:
            x, y = (np.asarray(v, dtype=np.float64) for v in (line.get_xdata(), line.get_ydata()))
            in_order = bool((np.diff(x) >= 0).all())  # not an outline
            y = y[np.isfinite(y)]
            if _frame(line, axes) == (True, True) and y.size > 1 and in_order:
                name = _label(line) or names.get(_colour(line.get_color()), "")
                found.append(_row(axes, name, y))
    return found


def _row(axes: Axes, name: str, y: Floats) -> list[str]:
    values = [y[0], y.min(), y.mean(), y.max(), y[-1]]
    what = axes.get_ylabel() or axes.get_title(loc="left")
    return [name, what, *map(units.number, map(float, values))]


def stacked(axes: Axes) -> list[PolyCollection]:
    """Returns the areas that stand on each other, from the lowest; without those behind a line."""
    lines = {_colour(line.get_color()) for line in axes.lines}
    return [
        area
        for area in axes.collections
        if isinstance(area, PolyCollection)
        and len(area.get_facecolor()) > 0
        and _label(area)
        and _colour(area.get_facecolor()[0]) not in lines
    ]


def _stacked_numbers(axes: Axes) -> list[list[str]]:
    edges = [(area, bounded.area(area.get_paths()[0])) for area in stacked(axes)]
    known = [(area, edge) for area, edge in edges if edge is not None]
    rows = [_row(axes, _label(area), high - low) for area, (_, low, high) in known]
    if len(known) > 1:
        rows.append(_row(axes, TOTAL, known[-1][1][2]))
    return rows


def _colour(value: Any) -> str:
    return to_hex(value, keep_alpha=False)


def _label(artist: Any) -> str:
    label = str(artist.get_label())
    return "" if label.startswith("_") else label


def _frame(artist: Any, axes: Axes) -> tuple[bool, bool]:
    """Returns whether x and y are in units of the data; else they are shares of the axes."""
    x, y = artist.get_transform().contains_branch_seperately(axes.transData)
    return bool(x), bool(y)


def names_by_colour(figure: Figure) -> dict[str, str]:
    """Returns the meaning of each colour that has just one in a figure."""
    found: dict[str, set[str]] = {}
    for axes in figure.axes:
        for artist, label in zip(*axes.get_legend_handles_labels(), strict=True):
            colour = _artist_colour(artist)
            if colour is not None:
                found.setdefault(colour, set()).add(label)
    return {colour: next(iter(names)) for colour, names in found.items() if len(names) == 1}


def _artist_colour(artist: Any) -> str | None:
    if isinstance(artist, Line2D):
        return _colour(artist.get_color())
    if isinstance(artist, PolyCollection) and len(artist.get_facecolor()) > 0:
        return _colour(artist.get_facecolor()[0])
    if isinstance(artist, BarContainer):
        return _colour(artist.patches[0].get_facecolor()) if artist.patches else None
    return _colour(artist.get_facecolor()) if isinstance(artist, Rectangle | Polygon) else None


def _dash(line: Line2D) -> list[int]:
    pattern = getattr(line, "_dash_pattern", (0, None))[1]
    return [] if pattern is None else [max(1, round(1.35 * part)) for part in pattern]
