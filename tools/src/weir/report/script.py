# SPDX-License-Identifier: BSD-3-Clause
"""The script that draws a figure again from its data, for a paper's own changes: --code."""

from __future__ import annotations

import csv
import inspect
import io
import pprint
import re
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import PolyCollection, QuadMesh
from matplotlib.colors import to_hex
from matplotlib.container import BarContainer
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Polygon, Rectangle

from weir.analysis import folder
from weir.base.errors import UserError
from weir.report import artists, bounded, interactive, standalone

COLUMNS = ("panel", "artist", "label", "x", "y", "x2", "y2")
Row = tuple[Any, ...]
Places = dict[int, tuple[int, int]]  # of artists by their id: panel and artist, from 1
LINE = (
    "color", "linewidth", "drawstyle", "marker", "markersize", "markerfacecolor",
    "markeredgecolor", "markeredgewidth", "markevery", "clip_on", "zorder", "alpha",
)  # fmt: skip

TEXT = '''\
#!/usr/bin/env python3
"""Draws {name} from {data}, which is read beside this file; needs matplotlib alone."""

FIGURE = {figure}

{code}

if __name__ == "__main__":
    import sys

    here = Path(__file__).resolve()
    out = Path(sys.argv[1]) if len(sys.argv) > 1 else here.with_name({name!r})
    drawn = draw_figure(FIGURE, read_table(here.with_name({data!r})))
    drawn.savefig(out, dpi={dpi})
'''


def check(out: Path) -> None:
    """Raises UserError if a figure in this file's format has no script."""
    if out.suffix == ".csv":
        raise UserError(f"{out}: --code is for a figure: .pdf, .png or .svg")


def write(figure: Figure, out: Path, dpi: int) -> tuple[Path, Path]:
    """Writes out.py and out.csv beside a figure that has been written; returns their paths."""
    figure.set_dpi(dpi)  # as it was written: the layout depends on it
    described, rows = describe(figure)
    data, code = out.with_suffix(".csv"), out.with_suffix(".py")
    table = io.StringIO()
    csv.writer(table, lineterminator="\n").writerows([COLUMNS, *rows])
    folder.write_whole(data, table.getvalue())
    text = TEXT.format(
        name=out.name,
        data=data.name,
        figure=pprint.pformat(described, width=100, sort_dicts=False, compact=True),
        code=source(),
        dpi=dpi,
    )
    folder.write_whole(code, text)
    return code, data


def source() -> str:
    """Returns the code that draws it, without its licence and docstring."""
    whole = inspect.getsource(standalone)
    return re.sub(r'^# SPDX.*?"""\n\nfrom __future__[^\n]*\n\n', "", whole, flags=re.DOTALL).strip()


def describe(figure: Figure) -> tuple[dict[str, Any], list[Row]]:
    """Returns a figure as plain values, and its data, as it was drawn last."""
    if not hasattr(figure.canvas, "get_renderer"):
        FigureCanvasAgg(figure)
    figure.canvas.draw()
    rows: list[Row] = []
    places: Places = {}
    panels = []
    for number, axes in enumerate([a for a in figure.axes if a.get_visible()], start=1):
        artists = []
        for artist, (source_, form, data) in enumerate(artists_of(axes), start=1):
            places[id(source_)] = (number, artist)
            label = interactive._label(source_) if hasattr(source_, "get_label") else ""
            rows += [(number, artist, label, *row) for row in data]
            artists.append(form)
        panels.append({**axes_of(axes), "artists": artists})
        field = getattr(axes, "_colorbar", None)
        if field is not None:
            panels[-1] |= {"colours_of": list(places[id(field.mappable)]), "artists": []}
            rows = [row for row in rows if row[0] != number]
    described = {
        "style": style(),
        "size_in": [float(size) for size in figure.get_size_inches()],
        "legend": legend_of(figure, places),
        "panels": panels,
    }
    return plain(described), rows


def style() -> dict[str, Any]:
    """Returns the present values of the settings but for the layout, which the figure has."""
    names = [name for name in (*artists.RC, *artists.PAPER) if "constrained" not in name]
    held: dict[Any, Any] = {name: mpl.rcParams[name] for name in dict.fromkeys(names)}
    return held | {"figure.constrained_layout.use": False}


def artists_of(axes: Axes) -> Iterator[tuple[Any, dict[str, Any], list[Row]]]:
    """Yields each artist in axes, its look, and its rows of x, y, x2, y2."""
    for collection in axes.collections:
        if isinstance(collection, QuadMesh):
            yield collection, *field(collection)
        elif isinstance(collection, PolyCollection) and len(collection.get_facecolor()):
            for path in collection.get_paths():
                edges = bounded.area(path)
                if edges is not None:
                    yield collection, area(collection), rows_of(*edges[:2], None, edges[2])
    for patch in axes.patches:
        if isinstance(patch, Rectangle):
            (x, y), w, h = patch.get_xy(), patch.get_width(), patch.get_height()
            yield patch, described_as("box", face(patch)), [tuple(map(float, (x, y, x + w, y + h)))]
        elif isinstance(patch, Polygon):
            corners = np.asarray(patch.get_xy(), np.float64)
            yield patch, described_as("polygon", face(patch)), rows_of(corners[:, 0], corners[:, 1])
    for line in axes.lines:
        yield line, line_style(line, axes), rows_of(line.get_xdata(), line.get_ydata())
    for text in axes.texts:
        at = getattr(text, "xy", text.get_position())
        made = {**described_as("text", text_style(text)), "text": text.get_text()}
        yield text, made, [(float(at[0]), float(at[1]), "", "")]


def text_style(text: Any) -> dict[str, Any]:
    """Returns a text's look, and how far from its place it stands."""
    how = {"ha": text.get_ha(), "va": text.get_va(), "color": colour(text.get_color())}
    how["fontsize"] = float(text.get_fontsize())
    if getattr(text, "anncoords", "data") == "offset points":
        how |= {"xytext": tuple(map(float, text.xyann)), "textcoords": "offset points"}
    return how


def described_as(kind: str, how: dict[str, Any]) -> dict[str, Any]:
    return {"kind": kind, "how": how}


def rows_of(x: Any, y: Any, x2: Any = None, y2: Any = None) -> list[Row]:
    """Returns rows of the table; a number that there is not is empty."""
    columns = [[""] * len(x) if c is None else np.asarray(c, np.float64).tolist()
               for c in (x, y, x2, y2)]  # fmt: skip
    return list(zip(*columns, strict=True))


def line_style(line: Line2D, axes: Axes) -> dict[str, Any]:
    """Returns a line's look. Its dashes in points have no public name."""
    how = {name: getattr(line, f"get_{name}")() for name in LINE}
    offset, dashes = line._unscaled_dash_pattern  # type: ignore[attr-defined]
    drawn = line.get_linestyle() not in ("None", "none", "", " ")
    how["linestyle"] = "none" if not drawn else "-" if dashes is None else (offset, tuple(dashes))
    frame = {(True, True): "data", (True, False): "x", (False, True): "y", (False, False): "axes"}
    return {**described_as("line", how), "frame": frame[interactive._frame(line, axes)]}


def area(collection: PolyCollection) -> dict[str, Any]:
    """Returns an area's look."""
    edges = collection.get_edgecolor()
    how = {
        "facecolor": colour(collection.get_facecolor()[0]),
        "edgecolor": colour(edges[0]) if len(edges) else "none",
        "linewidth": float(np.atleast_1d(collection.get_linewidth())[0]),
        "hatch": collection.get_hatch(),
        "zorder": collection.get_zorder(),
    }
    return described_as("area", how)


def face(patch: Any) -> dict[str, Any]:
    """Returns the look of a box or a polygon."""
    return {
        "facecolor": colour(patch.get_facecolor()),
        "edgecolor": colour(patch.get_edgecolor()),
        "linewidth": float(patch.get_linewidth()),
        "hatch": patch.get_hatch(),
        "zorder": patch.get_zorder(),
    }


def field(mesh: QuadMesh) -> tuple[dict[str, Any], list[Row]]:
    """Returns a heat map: its rows' values from the lowest."""
    values = np.ma.filled(np.ma.asarray(mesh.get_array(), np.float64), np.nan)
    rows, columns = np.indices(values.shape)
    low, high = mesh.get_clim()
    how = {"cmap": mesh.get_cmap().name, "vmin": low, "vmax": high, "rasterized": True}
    data = rows_of(columns.ravel(), rows.ravel(), None, values.ravel())
    return {**described_as("field", how), "columns": int(values.shape[1])}, data


def colour(value: Any) -> str:
    """Returns a colour with its transparency: #0072b2ff."""
    return to_hex(value, keep_alpha=True)


def plain(value: Any) -> Any:
    """Returns values of Python's own types, which it prints as it reads them."""
    if isinstance(value, dict):
        return {key: plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(map(plain, value))
    if isinstance(value, Enum):
        return value.value
    return value.item() if isinstance(value, np.generic) else value


def axes_of(axes: Axes) -> dict[str, Any]:
    """Returns place, scales, ends, ticks and names of axes."""
    place = axes.get_position()
    return {
        "place": [place.x0, place.y0, place.width, place.height],
        "xscale": axes.get_xscale(),
        "yscale": axes.get_yscale(),
        "xlim": [float(end) for end in axes.get_xlim()],
        "ylim": [float(end) for end in axes.get_ylim()],
        "xlabel": axes.get_xlabel(),
        "ylabel": axes.get_ylabel(),
        "title": axes.get_title(loc="left"),
        "middle": axes.get_title(loc="center"),
        "title_pad": title_pad(axes),
        "xticks": ticks_of(axes.xaxis, axes.get_xlim()),
        "yticks": ticks_of(axes.yaxis, axes.get_ylim()),
        "spines": {side: spine.get_visible() for side, spine in axes.spines.items()},
    }


def title_pad(axes: Any) -> float:
    """Returns points between axes and their title."""
    return float(axes.titleOffsetTrans.get_matrix()[1, 2] * 72 / axes.figure.dpi)


def ticks_of(axis: Any, ends: tuple[float, float]) -> list[dict[str, Any]]:
    """Returns major and minor ticks that are seen."""
    low, high = sorted(ends)
    edge = 1e-9 * (high - low)
    first = axis.get_major_ticks(1)[0]
    found = []
    for ticks in (axis.get_major_ticks(), axis.get_minor_ticks()):
        shown = [tick for tick in ticks if low - edge <= tick.get_loc() <= high + edge]
        labels = [label_of(tick) for tick in shown]
        found.append(
            {
                "at": [float(tick.get_loc()) for tick in shown],
                "labels": labels,
                "length": float(first.tick1line.get_markersize()),
                "rotation": float(first.label1.get_rotation()),
                "grid": bool(first.gridline.get_visible()),
            }
        )
    return found


def label_of(tick: Any) -> str:
    sides = (tick.label1, tick.label2)
    return next((side.get_text() for side in sides if side.get_visible()), "")


def legend_of(figure: Figure, places: Places) -> dict[str, Any]:
    """Returns the artists of the figure's legend, their labels, and its place."""
    if not figure.legends:
        return {}
    [shown] = figure.legends
    handles: dict[str, Any] = {}
    for axes in figure.axes:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            handles[label] = handle
    labels = [text.get_text() for text in shown.get_texts()]
    of = [handles[label] for label in labels]
    first = [each.patches[0] if isinstance(each, BarContainer) else each for each in of]
    box = shown.get_window_extent().transformed(figure.transFigure.inverted())
    return {
        "of": [list(places[id(each)]) for each in first],
        "labels": labels,
        "columns": shown._ncols,  # type: ignore[attr-defined]
        "place": [float(box.x0), float(box.y1)],
    }
