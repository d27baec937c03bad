# SPDX-License-Identifier: BSD-3-Clause
"""A figure as a file for a paper: in its column's width and type, told apart in grey print.

Widths are those of the templates: acmart's sigconf, IEEEtran, USENIX's style of 2020.
"""

from __future__ import annotations

import base64
import io
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib as mpl

from weir.base.errors import UserError, nearest
from weir.report import artists, axes, bounded, document, figure_data, grey, script

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from weir.report.sections import Drawn

FORMATS = (".pdf", ".png", ".svg", ".csv")  # the last: its data
WIDTHS_IN = {"column": 3.33, "page": 7.0}  # of acm's, and of usenix's
VENUES: dict[str, dict[str, float]] = {
    "acm": WIDTHS_IN,
    "ieee": {"column": 3.48, "page": 7.14},
    "usenix": WIDTHS_IN,
}
TYPES: dict[str, dict[Any, Any]] = {
    "acm": {},
    "ieee": dict.fromkeys(artists.SMALL, 8),
    "usenix": {},
}  # beside artists.PAPER
PANEL_IN = 1.85  # height of one of several panels in a column
PAGE_IN = 9.0  # height of a page's text
PANELS_MAX = 8  # of readable height, one below the other
DPI = 600  # of PNG; line art

# The typeface of an SVG: matplotlib's files with their weights, and what of them is taken.
FACES = (("STIXGeneral", 400), ("STIXGeneralBol", 700))
CHARACTERS = [*range(0x20, 0x7F), *range(0xA0, 0x180), *range(0x370, 0x400)]
CHARACTERS += [0x2009, 0x2013, 0x2014, 0x2018, 0x2019, 0x2026, 0x2212, 0x2264, 0x2265]
FEATURES = ["kern", "liga"]


def use(venue: str = "acm") -> None:
    """Sets matplotlib up for papers; before anything is drawn, because artists keep their type."""
    artists.use()
    artists.use_paper()
    mpl.rcParams.update(TYPES[venue])


def choose(drawn: Iterable[Drawn], name: str) -> Figure:
    """Returns the figure of a name. UserError names those that there are."""
    names = []
    for one in drawn:
        if one.name == name:
            return artists.drawn(one.figure)
        names.append(one.name)
    meant = nearest(name, names, f"there is {', '.join(names) or 'none'}")
    raise UserError(f"there is no figure '{name}'; {meant}")


Limits = Sequence[tuple[float | None, float | None]]


@dataclass(frozen=True)
class Shape:
    """The size and type of a figure in a paper."""

    width: str = "column"  # or "page"
    height_in: float | None = None
    xlim: Limits = ()  # of each panel, or one for all, in the units of its axis
    ylim: Limits = ()
    venue: str = "acm"  # of VENUES
    code: bool = False  # also its data and the script that draws it

    @property
    def width_in(self) -> float:
        """The width of the venue's column or page."""
        return VENUES[self.venue][self.width]


def limits(text: str) -> tuple[float | None, float | None]:
    """Returns the ends of an axis, "0,10" or "5,". UserError says what is wrong."""
    low, comma, high = text.partition(",")
    try:
        ends = tuple(float(end) if end.strip() else None for end in (low, high))
    except ValueError:
        comma = ""
    if not comma:
        raise UserError(f"'{text}': the ends of an axis are two numbers such as 0,10, or one: 5,")
    if None not in ends and not ends[0] < ends[1]:  # type: ignore[operator]
        raise UserError(f"'{text}': an axis goes from the smaller number to the larger")
    return ends[0], ends[1]


def set_limits(figure: Figure, shape: Shape) -> None:
    """Sets where axes begin and end."""
    panels = [a for a in figure.axes if a.get_visible()]
    for option, given in (("--xlim", shape.xlim), ("--ylim", shape.ylim)):
        if len(given) > 1 and len(given) != len(panels):
            raise UserError(
                f"{option} is given {len(given)} times: once for all panels, or once for each of"
                f" the figure's {len(panels)}"
            )
        ends = list(given) * len(panels) if len(given) == 1 else given
        for panel, (low, high) in zip(panels, ends, strict=False):
            if option == "--xlim":
                panel.set_xlim(low, high)
            else:
                panel.set_ylim(low, high)


def check(out: Path) -> None:
    """Raises a UserError if no figure can be written there."""
    if out.suffix not in FORMATS:
        raise UserError(f"{out}: a figure's name ends in {', '.join(FORMATS)}")
    if not out.parent.is_dir():
        raise UserError(f"{out.parent}: no such folder")


def write(figure: Figure, out: Path, shape: Shape) -> list[Path]:
    """Writes a figure in the format that the file's name asks for; returns the files written."""
    check(out)
    if shape.code:
        script.check(out)
    save(figure, out, shape)
    return [out, *script.write(figure, out, DPI)] if shape.code else [out]


def save(figure: Figure, out: Path, shape: Shape) -> None:
    """Writes the figure alone, or its data as CSV."""
    if out.suffix == ".csv":
        figure_data.table(figure).write_csv(out)
        return
    bounded.bound(figure)
    grey.separate(figure)
    set_limits(figure, shape)
    fit(figure, shape.width_in)
    if shape.height_in is not None:
        figure.set_figheight(shape.height_in)
    if out.suffix == ".pdf":
        figure.savefig(out, metadata={"CreationDate": None})
    elif out.suffix == ".png":
        figure.savefig(out, dpi=DPI)
    else:
        text = str(document.inline_svg(figure, ""))
        style = f"<style>{typeface()}</style>"
        out.write_text(re.sub(r"(<svg[^>]*>)", rf"\g<1>{style}", text, count=1))


def typeface() -> str:
    """Returns Matplotlib's own STIX, cut down to Latin and Greek text."""
    from fontTools import subset

    faces = []
    for name, weight in FACES:
        options = subset.Options(flavor="woff", layout_features=FEATURES)
        options.drop_tables += ["FFTM"]  # a font editor's time stamps
        out = io.BytesIO()
        path = Path(mpl.get_data_path()) / f"fonts/ttf/{name}.ttf"
        with subset.load_font(str(path), options) as font:
            cut = subset.Subsetter(options)
            cut.populate(unicodes=CHARACTERS)
            cut.subset(font)
            subset.save_font(font, out, options)
        data = base64.b64encode(out.getvalue()).decode()
        faces.append(
            f"@font-face{{font-family:STIXGeneral;font-weight:{weight};"
            f"src:url(data:font/woff;base64,{data}) format('woff')}}\n"
        )
    return "".join(faces)


def fit(figure: Figure, width_in: float) -> None:
    """Gives a figure its width, and no more height than a page has.

    In a column, what stood side by side stands one below the other, unless there is too much of it.
    """
    grids = [spec.get_gridspec() for a in figure.axes if (spec := a.get_subplotspec())]
    shown = [a for a in figure.axes if a.get_visible() and not hasattr(a, "_colorbar")]
    height = figure.get_figheight()
    if any(grid.ncols > 1 for grid in grids):
        beside = -(-len(shown) // PANELS_MAX)
        if width_in >= WIDTHS_IN["page"]:
            beside = max(beside, *(grid.ncols for grid in grids))
        rows = -(-len(shown) // beside)
        if width_in < WIDTHS_IN["page"]:
            height = PANEL_IN * rows
        grid = figure.add_gridspec(rows, beside)
        for place, panel in enumerate(shown):
            panel.set_subplotspec(grid[divmod(place, beside)])
            if place + beside < len(shown) and panel.get_xlabel() == shown[-1].get_xlabel():
                panel.set_xlabel("")  # another below
            if place % beside == 0 and not panel.get_ylabel():  # it stood beside one that has
                panel.set_ylabel(shown[0].get_ylabel())
    figure.set_size_inches(width_in, min(height, PAGE_IN))
    for old in list(figure.legends):
        old.remove()
    axes.legend(figure, int(axes.WIDE * width_in / axes.WIDTH_IN * 1.1))  # smaller type
