# SPDX-License-Identifier: BSD-3-Clause
"""A figure as a file for a paper: in its column's width and type, told apart in grey print.

Widths are those of the templates: acmart's sigconf, IEEEtran, USENIX's style of 2020.
"""

from __future__ import annotations

import base64
import io
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weir.base.errors import UserError, nearest
from weir.report import grey, table
from weir.report.figure import Axis, Figure, thinned

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

FORMATS = (".pdf", ".png", ".svg", ".csv", ".parquet")  # the last two: its data
WIDTHS_IN = {"column": 3.33, "page": 7.0}  # of acm's, and of usenix's
VENUES: dict[str, dict[str, float]] = {
    "acm": WIDTHS_IN,
    "ieee": {"column": 3.48, "page": 7.14},
    "usenix": WIDTHS_IN,
}
TYPES: dict[str, dict[Any, Any]] = {
    "acm": {},
    "ieee": dict.fromkeys(("xtick.labelsize", "ytick.labelsize", "legend.fontsize"), 8),
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


def choose(drawn: Iterable[Figure], name: str) -> Figure:
    """Returns the figure of a name. UserError names those that there are."""
    names = []
    for one in drawn:
        if one.name == name:
            return one
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


def set_limits(figure: Figure, shape: Shape) -> Figure:
    """Returns the figure with axes that begin and end where the shape says."""
    count = len(figure.panels)
    made: list[list[Axis]] = []
    for option, name, given in (("--xlim", "x", shape.xlim), ("--ylim", "y", shape.ylim)):
        if len(given) > 1 and len(given) != count:
            raise UserError(
                f"{option} is given {len(given)} times: once for all panels, or once for each of"
                f" the figure's {count}"
            )
        limits = list(given) * count if len(given) == 1 else given or [(None, None)] * count
        made.append([
            within(getattr(panel, name), low, high)
            for panel, (low, high) in zip(figure.panels, limits, strict=True)
        ])  # fmt: skip
    panels = [replace(p, x=x, y=y) for p, x, y in zip(figure.panels, *made, strict=True)]
    return replace(figure, panels=panels)


def within(axis: Axis, low: float | None, high: float | None) -> Axis:
    """Returns an axis with other ends; None: its own."""
    return replace(
        axis, low=axis.low if low is None else low, high=axis.high if high is None else high
    )


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
        from weir.report import code

        code.check(out)
    if out.suffix in (".csv", ".parquet"):
        table.write(figure, out)
        return [out]
    from weir.report import artists

    made, own = shaped(figure, shape), TYPES[shape.venue]
    with artists.settings(paper=True, own=own):
        save(artists.draw(made, shape.width_in, artists.WIDE * 1.1), out)
    if not shape.code:
        return [out]
    settings = artists.RC | artists.PAPER | own
    return [out, *code.write(made, out, shape.width_in, settings, DPI)]


def shaped(figure: Figure, shape: Shape) -> Figure:
    """Returns a figure as it is drawn for a paper."""
    return fit(grey.separate(set_limits(thinned(figure), shape)), shape)


def script(figure: Figure) -> str:
    """Returns the script that draws a figure in a column, from its table NAME.csv beside it."""
    from weir.report import artists, code

    shape = Shape()
    settings = artists.RC | artists.PAPER | TYPES[shape.venue]
    out = Path(f"{figure.name or 'figure'}.pdf")
    return code.text(shaped(figure, shape), out, shape.width_in, settings, DPI)


def save(canvas: Canvas, out: Path) -> None:
    """Writes a drawn figure as PDF, PNG, or SVG with its typeface in it."""
    if out.suffix == ".pdf":
        canvas.savefig(out, metadata={"CreationDate": None})
    elif out.suffix == ".png":
        canvas.savefig(out, dpi=DPI)
    else:
        whole = io.StringIO()
        canvas.savefig(whole, format="svg", metadata={"Date": None, "Creator": None})
        text = whole.getvalue()[whole.getvalue().index("<svg") :]
        style = f"<style>{typeface()}</style>"
        out.write_text(re.sub(r"(<svg[^>]*>)", rf"\g<1>{style}", text, count=1))


def typeface() -> str:
    """Returns Matplotlib's own STIX, cut down to Latin and Greek text."""
    import matplotlib as mpl
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


def fit(figure: Figure, shape: Shape) -> Figure:
    """Returns a figure with no more height than a page has.

    In a column, what stood side by side stands one below the other, unless there is too much of it.
    """
    count, height, columns = len(figure.panels), figure.height_in, figure.columns
    if min(columns, count) > 1:
        least = -(-count // PANELS_MAX)
        narrow = shape.width_in < WIDTHS_IN["page"]
        columns = least if narrow else max(least, columns)
        if narrow:
            height = PANEL_IN * -(-count // columns)
    return replace(figure, columns=columns, height_in=shape.height_in or min(height, PAGE_IN))
