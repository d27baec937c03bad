# SPDX-License-Identifier: BSD-3-Clause
"""Dashes, markers and hatches for what a figure tells apart by colour alone, for grey print."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations, product
from typing import NamedTuple

import numpy as np

from weir.report import theme
from weir.report.figure import Band, Bars, Figure, Line, Mark, Panel, Points, Strokes
from weir.report.theme import Style

APART = 0.15  # in lightness, of 1: what is nearer is the same grey
HATCHES = ("", "////", "....", "\\\\\\\\", "xxxx", "----")
MARKERS_SHOWN = 8  # on a line that has markers only for grey print


class Form(NamedTuple):
    """The parts of a mark that are left in grey print."""

    dash: theme.Dash  # empty: of points
    marker: str
    hollow: bool
    hatch: str


def lightness(colour: str) -> float:
    """Returns the CIE L* of a colour, from 0 to 1."""
    parts = theme.rgb(colour)
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    y = float(np.dot([0.2126, 0.7152, 0.0722], linear))
    return (116 * y ** (1 / 3) - 16 if y > 0.008856 else 903.3 * y) / 100


def same_grey(a: str, b: str) -> bool:
    """Returns whether two colours are one in grey print."""
    return abs(lightness(a) - lightness(b)) < APART


def form(mark: Mark) -> Form | None:
    """Returns a mark's form; None: it has no name, or is a band around a line, or text."""
    style = mark.style
    if not style.label:
        return None
    if isinstance(mark, Line):
        return Form(style.dash, style.marker if mark.markers else "", False, "")
    if isinstance(mark, Strokes):
        return Form(style.dash, "", False, "")
    if isinstance(mark, Points):
        return Form("", style.marker or "o", mark.hollow, "")
    if isinstance(mark, Bars) or (isinstance(mark, Band) and mark.stacked):
        return Form("", "", False, style.hatch or "none")
    return None


def alike(panel: Panel) -> Iterator[tuple[str, str]]:
    """Returns labels of what only colour tells apart: marks of one form and one grey."""
    named = [(mark.style, form(mark)) for mark in panel.marks]
    for (a, one), (b, other) in combinations(dict.fromkeys(named), 2):
        if a.label != b.label and one and one == other and same_grey(a.colour, b.colour):
            yield a.label, b.label


def separate(figure: Figure) -> Figure:
    """Gives lines dashes or markers, and areas hatches, where only colour tells them apart.

    What has one label has one form in all panels.
    """
    chosen: dict[tuple[Style, Form], Mark] = {}
    panels = []
    for panel in figure.panels:
        marks: list[Mark] = []
        for mark in panel.marks:
            own = form(mark)
            if own is not None:
                made = chosen.setdefault((mark.style, own), _free(mark, marks))
                mark = _like(mark, made)
            marks.append(mark)
        panels.append(replace(panel, marks=marks))
    return replace(figure, panels=panels)


def _like(mark: Mark, made: Mark) -> Mark:
    """Returns a mark in the form of another of its kind."""
    if isinstance(mark, Line) and isinstance(made, Line) and made.markers:
        every = mark.markers or max(1, mark.x.size // MARKERS_SHOWN)
        return replace(mark, style=made.style, markers=every)
    if isinstance(mark, Points) and isinstance(made, Points):
        return replace(mark, style=made.style, hollow=made.hollow)
    return replace(mark, style=made.style)


def _free(mark: Mark, others: list[Mark]) -> Mark:
    """Returns the mark in the first form that none of the others in its grey has."""
    label, colour = mark.style.label, mark.style.colour
    apart = [one for one in others if one.style.label != label]
    taken = {form(one) for one in apart if same_grey(one.style.colour, colour)}
    return next((one for one in _forms(mark) if form(one) not in taken), mark)


def _forms(mark: Mark) -> Iterator[Mark]:
    yield mark
    if isinstance(mark, Line):
        every = max(1, mark.x.size // MARKERS_SHOWN)
        for dash in theme.DASHES:
            yield replace(mark, style=replace(mark.style, dash=dash))
        for marker, dash in product(theme.MARKERS, theme.DASHES):
            style = replace(mark.style, dash=dash, marker=marker)
            yield replace(mark, style=style, markers=mark.markers or every)
    elif isinstance(mark, Points):
        for hollow, marker in product((mark.hollow, not mark.hollow), theme.MARKERS):
            yield replace(mark, style=replace(mark.style, marker=marker), hollow=hollow)
    elif isinstance(mark, Strokes):
        for dash in theme.DASHES:
            yield replace(mark, style=replace(mark.style, dash=dash))
    else:
        for hatch in HATCHES:
            yield replace(mark, style=replace(mark.style, hatch=hatch))
