# SPDX-License-Identifier: BSD-3-Clause
"""Figures for a browser: each as JSON with its columns, which templates/page.js draws with uPlot.

The package `metaflow-card-uplot` is taken for the two files of uPlot that are in it.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Sequence
from functools import cache
from importlib.metadata import distribution
from typing import Any, NamedTuple

import msgspec
import numpy as np
from markupsafe import Markup

from weir.base import units
from weir.base.errors import UserError
from weir.report import figure as values
from weir.report import theme
from weir.report.figure import Band, Bars, Box, Field, Figure, Mark, Panel, Polygon, Span

PACKAGE = "metaflow-card-uplot"
SCRIPT = "uPlot.iife.min.js"
STYLE = "uPlot.min.css"
SHA256 = {
    SCRIPT: "addc030d2f1268dbee42ef31f7173b624b87443277163b04651490705dce7397",
    STYLE: "37d952f00df006ceab033267e05f050cedd8d6906467cc86525dee795dcfa6a9",
}
PX_PER_IN, HEIGHT_MIN_PX = 125, 150
LIGHT = 0.25  # opacity of shaded marks in a key
PAGE = "/report.html"
LAST = r".*(/(?=.)|%2C)"  # of an address: all before its last part
EXACT = 1e-6  # of a column's range: float32 is exact enough if it is nearer than that
SHAPES = {  # markers as SVG paths around (14, 5)
    "o": "M10 5a4 4 0 1 0 8 0a4 4 0 1 0-8 0z",
    "s": "M10.5 1.5h7v7h-7z",
    "^": "M14 1l4 8h-8z",
    "v": "M14 9l4-8h-8z",
    "D": "M14 .5L18.5 5L14 9.5L9.5 5z",
    "x": "M10.5 1.5l7 7m0-7l-7 7",
    "X": "M10.5 1.5l7 7m0-7l-7 7",
    "P": "M14 1v8m-4-4h8",
    "*": "M14 .5v9M10 3l8 4m0-4l-8 4",
    "|": "M14 1v8",
}


@cache
def library(name: str) -> Markup:
    """Returns a file of uPlot. UserError: it is missing, or not the one that is known."""
    found = [path for path in distribution(PACKAGE).files or () if path.name == name]
    text = found[0].read_text() if found else ""
    if hashlib.sha256(text.encode()).hexdigest() != SHA256[name]:
        raise UserError(
            f"{name} of the Python package {PACKAGE} is not the one that is known:"
            f" install {PACKAGE}==1.0.0 again",
            1,
        )
    return Markup(text.replace("</script", "<\\/script"))


class Columns:
    """The columns of a figure, each once."""

    def __init__(self) -> None:
        self.encoded: list[tuple[str, str]] = []
        self.known: dict[bytes, int] = {}

    def add(self, column: values.Floats) -> int:
        """Returns a column's number."""
        short = column.astype(np.float32)
        known = column[np.isfinite(column)]
        wrong = np.abs(known - short[np.isfinite(column)]).max(initial=0.0)
        exact = wrong <= EXACT * np.ptp(known) if known.size else True
        data = (short if exact else column).tobytes()
        if data not in self.known:
            self.known[data] = len(self.encoded)
            self.encoded.append(("f" if exact else "d", base64.b64encode(data).decode()))
        return self.known[data]


class Links:
    """The addresses behind the points of a page's figures, each group once."""

    def __init__(self) -> None:
        self.known: dict[tuple[str, ...], int] = {}
        self.fresh: list[list[str]] = []

    def add(self, hrefs: Sequence[str]) -> int:
        """Returns the number of a group, and -1 of one without an address."""
        group = tuple(hrefs)
        if group and group not in self.known:
            self.known[group] = len(self.known)
            self.fresh.append(_shared(group))
        return self.known.get(group, -1)

    def taken(self) -> list[list[str]]:
        """Returns the groups since the last call: those that no earlier figure has."""
        taken, self.fresh = self.fresh, []
        return taken


def _shared(group: tuple[str, ...]) -> list[str]:
    """Returns what all addresses begin with, what they end in, and of each what is its own.

    Runs of a point differ in their seed, which is the last part of their names.
    """
    end = PAGE if all(one.endswith(PAGE) for one in group) else ""
    names = [one.removesuffix(end) for one in group]
    found = re.match(LAST, names[0])
    head = found[0] if found and all(name.startswith(found[0]) for name in names) else ""
    return [head, end, *(name.removeprefix(head) for name in names)]


def embedded(figure: Figure, links: Links | None = None) -> Markup:
    """Returns a figure as JSON for a script element; nothing in it ends the element."""
    columns, links = Columns(), links or Links()
    panels = [
        {
            "title": panel.title,
            "alone": alone,
            "height": height,
            "x": axis,
            "y": other,
            "marks": [_mark(mark, columns, links) for mark in panel.marks],
        }
        for panel, alone, height in zip(
            figure.panels, _alone(figure), heights_px(figure), strict=True
        )
        for axis, other in [_axes(panel)]
    ]
    across = min(figure.columns, len(panels))
    found = {"name": figure.name, "across": across, "panels": panels, "columns": columns.encoded}
    found["links"] = links.taken()
    text = msgspec.json.encode(found, enc_hook=float).decode()  # NumPy's numbers are floats
    return Markup(text.replace("<", "\\u003c"))


def _alone(figure: Figure) -> list[str]:
    """Returns the title of each panel where they stand one below the other.

    In a grid only the first row has titles, and only the first column may have names of rows.
    """
    panels, columns = figure.panels, figure.columns
    if not 1 < columns < len(panels):
        return [panel.title for panel in panels]
    found = []
    for place, panel in enumerate(panels):
        row = "" if panel.y.label else panels[place - place % columns].y.label
        title = panel.title or panels[place % columns].title
        found.append(", ".join(filter(None, (title, row))))
    return found


def order(figure: Figure) -> list[int]:
    """Returns the place of each panel where they stand one below the other: column after column."""
    rows = -(-len(figure.panels) // figure.columns)
    return [n % figure.columns * rows + n // figure.columns for n in range(len(figure.panels))]


def _axes(panel: Panel) -> list[dict[str, Any]]:
    ends = values.ends(panel)
    return [
        {**vars(axis), "low": low, "high": high}
        for axis, (low, high) in zip((panel.x, panel.y), ends, strict=True)
    ]


def _mark(mark: Mark, columns: Columns, links: Links) -> dict[str, Any]:
    own = dict(vars(mark))
    hrefs = own.pop("hrefs", ())
    if hrefs:
        own["links"] = np.array([links.add(group) for group in hrefs], np.float64)
    if isinstance(mark, Box):
        *quartiles, outliers = mark.quartiles()
        del own["values"]
        own |= {"quartiles": quartiles, "outliers": outliers}
    elif isinstance(mark, Field):
        own |= {"values": mark.values.ravel(), "columns": mark.values.shape[1]}
        own["colours"] = theme.VIRIDIS
    elif isinstance(mark, Band):
        own["opacity"] = mark.opacity
    refs = [name for name, value in own.items() if isinstance(value, np.ndarray)]
    own |= {name: columns.add(own[name]) for name in refs}
    return {"kind": type(mark).__name__, "refs": refs, **own}


def heights_px(figure: Figure) -> list[int]:
    """Returns the heights of panels; that of a row is shared by the weights of its panels."""
    rows = -(-len(figure.panels) // figure.columns)
    weights = [panel.weight for panel in figure.panels]
    row = PX_PER_IN * figure.height_in / rows
    mean = sum(weights) / len(weights)
    return [int(max(HEIGHT_MIN_PX, row * weight / mean)) for weight in weights]


class Key(NamedTuple):
    """An entry of a key; its button hides what it names."""

    label: str
    colour: str
    swatch: Markup  # SVG shapes in currentColor, 28 by 10 pixels


def key(figure: Figure) -> list[Key]:
    """Returns the meaning of a figure's colours, dashes and markers."""
    return [Key(m.style.label, m.style.colour, _swatch(m)) for m in values.key(figure)]


class Scale(NamedTuple):
    """The colours of a heat map."""

    label: str
    low: str
    high: str
    colours: str  # for CSS


def scales(figure: Figure) -> list[Scale]:
    """Returns the meaning of colours of heat maps."""
    fields = [m for panel in figure.panels for m in panel.marks if isinstance(m, Field)]
    colours = ", ".join(theme.VIRIDIS)
    found = [Scale(m.label, units.number(m.low), units.number(m.high), colours) for m in fields]
    return list(dict.fromkeys(found))


def _swatch(mark: Mark) -> Markup:
    if isinstance(mark, Band | Bars | Box | Polygon | Span | Field):
        light = isinstance(mark, Polygon | Box | Span)
        opacity = mark.opacity if isinstance(mark, Band) else LIGHT if light else 1.0
        area = '<path fill="currentColor" fill-opacity="{}" d="M0 0h28v10H0z"/>'
        return Markup(area).format(f"{opacity:.2g}")
    shapes = Markup()
    if not isinstance(mark, values.Points):
        dash = () if isinstance(mark.style.dash, str) else mark.style.dash[1]
        dashes = " ".join(f"{1.8 * part:g}" for part in dash)
        shapes += Markup('<path stroke-dasharray="{}" d="M0 5h28"/>').format(dashes)
    marked = isinstance(mark, values.Points) or (isinstance(mark, values.Line) and mark.markers)
    if marked and mark.style.marker in SHAPES:
        fill = "none" if isinstance(mark, values.Points) and mark.hollow else "currentColor"
        shapes += Markup('<path fill="{}" d="{}"/>').format(fill, SHAPES[mark.style.marker])
    return shapes
