# SPDX-License-Identifier: BSD-3-Clause
"""HTML files that need no other: Jinja2 templates with the style, typeface and figures put in."""

from __future__ import annotations

import base64
import io
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from weir.report.interactive import Key


@dataclass(frozen=True)
class Table:
    """A table of a page; its first `left` columns hold names, the others numbers."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    left: int = 1


@cache
def templates() -> Environment:
    """The pages' templates; they escape every value that is not Markup."""
    return Environment(
        loader=PackageLoader("weir.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def render(template: str, **values: object) -> str:
    """A whole page."""
    return templates().get_template(template).render(fonts=fonts(), **values)


@dataclass(frozen=True)
class Shown:
    """A figure of a page."""

    svg: Markup  # for print, and where no script runs
    caption: str
    panels: Sequence[Markup] = ()  # the same for BokehJS; none: the figure does not zoom
    legend: Sequence[Key] = ()
    numbers: Table | None = None  # the figure's lines in words

    @property
    def title(self) -> str:
        """The first sentence of the caption, without its full stop."""
        return self.caption.partition(". ")[0].removesuffix(".")

    @property
    def text(self) -> str:
        """The other sentences."""
        return self.caption.partition(". ")[2]


def embed(drawn: Iterable[tuple[Figure, str]]) -> list[Shown]:
    """Figures of one page as SVG elements, with their captions."""
    return [
        Shown(inline_svg(figure, f"f{n}-"), text) for n, (figure, text) in enumerate(drawn, start=1)
    ]


def embed_interactive(drawn: Iterable[tuple[Figure, str]]) -> list[Shown]:
    """Figures of one page that zoom, as SVG elements too."""
    from weir.report import bounded, interactive

    found = []
    for n, (figure, text) in enumerate(drawn, start=1):
        rows = interactive.numbers(figure)
        bounded.bound(figure)
        found.append(
            Shown(
                inline_svg(figure, f"f{n}-"),
                text,
                interactive.panels(figure),
                interactive.legend(figure),
                Table(interactive.NUMBERS, rows, left=2) if rows else None,
            )
        )
    return found


def inline_svg(figure: Figure, prefix: str) -> Markup:
    """A figure as an SVG element; the prefix keeps its ids apart from those of other figures."""
    out = io.StringIO()
    figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    text = out.getvalue()
    text = text[text.index("<svg") :]
    return Markup(re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{prefix}", text))


@cache
def fonts() -> Markup:
    """The figures' typeface for the page: matplotlib's own STIX, cut down to Latin text."""
    import matplotlib as mpl
    from fontTools import subset

    faces_dir = Path(mpl.get_data_path()) / "fonts/ttf"
    wanted = [*range(0x20, 0x7F), *range(0xA0, 0x180), *range(0x370, 0x400)]
    wanted += [0x2009, 0x2013, 0x2014, 0x2018, 0x2019, 0x2026, 0x2212, 0x2264, 0x2265]
    faces = []
    for name, weight in (("STIXGeneral", 400), ("STIXGeneralBol", 700)):
        options = subset.Options(flavor="woff", layout_features=["kern", "liga"])
        options.drop_tables += ["FFTM"]  # a font editor's time stamps
        out = io.BytesIO()
        with subset.load_font(str(faces_dir / f"{name}.ttf"), options) as font:
            cut = subset.Subsetter(options)
            cut.populate(unicodes=wanted)
            cut.subset(font)
            subset.save_font(font, out, options)
        data = base64.b64encode(out.getvalue()).decode()
        faces.append(
            f"@font-face{{font-family:STIXGeneral;font-weight:{weight};"
            f"src:url(data:font/woff;base64,{data}) format('woff')}}\n"
        )
    return Markup("".join(faces))
