# SPDX-License-Identifier: BSD-3-Clause
"""Dashes and markers for what a figure tells apart by colour alone, for grey print."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, product
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle

from weir.report import theme

APART = 0.15  # in lightness, of 1: what is nearer is the same grey
HATCHES = ("", "////", "....", "\\\\\\\\", "xxxx", "----")
MARKERS_SHOWN = 8  # on a line that has markers only for grey print
SOLID = 0.5  # areas that are more transparent are bands around a line


def lightness(colour: Any) -> float:
    """Returns the CIE L* of a colour, from 0 to 1."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(colour)]
    y = float(np.dot([0.2126, 0.7152, 0.0722], linear))
    return (116 * y ** (1 / 3) - 16 if y > 0.008856 else 903.3 * y) / 100


def same_grey(a: Any, b: Any) -> bool:
    """Returns whether two colours are one in grey print."""
    return abs(lightness(a) - lightness(b)) < APART


def named_lines(axes: Axes) -> list[Line2D]:
    return [line for line in axes.lines if not str(line.get_label()).startswith("_")]


def form(line: Line2D) -> tuple[Any, ...]:
    """Returns a line's dashes (private to matplotlib) and marker: its look without colour."""
    hollow = (
        same_grey(line.get_markerfacecolor(), "white") if line.get_marker() != "None" else False
    )
    return (line.get_linestyle(), line._unscaled_dash_pattern, line.get_marker(), hollow)  # type: ignore[attr-defined]


def alike(figure: Figure) -> Iterator[tuple[str, str]]:
    """Returns labels of what only colour tells apart: lines of one form and one grey, or areas."""
    for axes in figure.axes:
        for a, b in combinations(named_lines(axes), 2):
            if form(a) == form(b) and same_grey(a.get_color(), b.get_color()):
                yield str(a.get_label()), str(b.get_label())
        for one, other in combinations(areas(axes).values(), 2):
            if one[0].get_hatch() == other[0].get_hatch() and same_grey(face(one), face(other)):
                yield str(one[0].get_label()), str(other[0].get_label())


def areas(axes: Axes) -> dict[tuple[float, ...], list[Any]]:
    """Returns areas and bars by their colour, without transparent bands."""
    found: dict[tuple[float, ...], list[Any]] = {}
    for part in (*axes.collections, *axes.patches):
        if not isinstance(part, PolyCollection | Rectangle):
            continue
        colours = np.atleast_2d(part.get_facecolor())
        if len(colours) and colours[0][3] >= SOLID:
            found.setdefault(tuple(map(float, colours[0])), []).append(part)
    return found


def face(parts: Sequence[Any]) -> Any:
    return np.atleast_2d(parts[0].get_facecolor())[0][:3]


def separate(figure: Figure) -> None:
    """Gives lines markers of their own, and areas hatches, where only colour tells them apart."""
    for axes in figure.axes:
        kept: list[Line2D] = []
        for line in named_lines(axes):
            change(line, kept)
            kept.append(line)
        shown: list[list[Any]] = []
        for parts in areas(axes).values():
            used = [other[0].get_hatch() for other in shown if same_grey(face(parts), face(other))]
            if used:
                free = next((h for h in HATCHES if (h or None) not in used), HATCHES[-1])
                for part in parts:
                    part.set_hatch(free or None)
                    part.set_edgecolor(theme.INK)
                    part.set_linewidth(0)
            shown.append(parts)


def change(line: Line2D, others: Sequence[Line2D]) -> None:
    """Gives a line another dash, or a marker here and there, until none is like it."""

    def free() -> bool:
        return not any(
            form(line) == form(other) and same_grey(line.get_color(), other.get_color())
            for other in others
        )

    if free():
        return
    drawn = line.get_linestyle() not in ("None", "none")
    for dash in theme.DASHES if drawn else ():
        line.set_linestyle(dash)  # type: ignore[arg-type]
        if free():
            return
    line.set_markevery(
        max(1, len(np.asarray(line.get_xdata())) // MARKERS_SHOWN) if drawn else None
    )
    filled = line.get_markerfacecolor()
    for face, marker in product((filled, "white"), theme.MARKERS):
        line.set_marker(marker)
        line.set_markerfacecolor(face)
        line.set_markersize(3.5)
        if free():
            return
