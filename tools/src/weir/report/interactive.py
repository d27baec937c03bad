# SPDX-License-Identifier: BSD-3-Clause
"""A matplotlib figure as panels that zoom: what is drawn is read back from its artists.

So each figure is made once, and is the same in print and on the screen. BokehJS draws the panels;
templates/page.js adds what is ours: linked times, the cursor, keys, the legend, dark mode.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
from bokeh.embed import json_item
from bokeh.models import BasicTickFormatter, CustomJS, FixedTicker, HoverTool, Range1d
from bokeh.models.annotations import Span
from bokeh.plotting import figure as new_figure
from markupsafe import Markup
from matplotlib.category import StrCategoryLocator
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_hex
from matplotlib.container import BarContainer
from matplotlib.lines import Line2D
from matplotlib.patches import Polygon, Rectangle
from matplotlib.ticker import FixedLocator

from weir.base import units
from weir.report import bounded

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

    Floats = npt.NDArray[np.float64]

PX_PER_IN, HEIGHT_MIN_PX = 125, 150
LOW_PX = 200  # panels below it have few ticks
NUMBERS = ("line", "quantity", "first", "smallest", "mean", "largest", "last")
TOTAL = "total"
TIME = "time (s)"  # the axes with this name are linked
MARKERS = {
    "o": "circle",
    "s": "square",
    "^": "triangle",
    "v": "inverted_triangle",
    "D": "diamond",
    "x": "x",
    "X": "x",
    "P": "cross",
    "*": "star",
    "|": "dash",
}
EDGE = 0.025  # of the axes' height: half of a mark
NO_LINE = ("None", "none", "", " ")
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
    "|": "M10 5h8",
}


def script() -> Markup:
    """Returns BokehJS, from the installed package."""
    import bokeh

    path = Path(bokeh.__file__).parent / "server/static/js/bokeh.min.js"
    return _read(path)


@cache
def _read(path: Path) -> Markup:
    return Markup(re.sub(r"(?i)</(script)", r"<\\/\1", path.read_text()))


def panels(figure: Figure) -> list[Markup]:
    """Returns each visible pair of axes as JSON for BokehJS."""
    names = names_by_colour(figure)
    shown = [axes for axes in figure.axes if axes.get_visible()]
    return [_json(_Panel(figure, axes, names).plot) for axes in shown]


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


class _Panel:
    """Conversion of a pair of axes into a Bokeh plot."""

    def __init__(self, figure: Figure, axes: Axes, names: Mapping[str, str]) -> None:
        self.figure, self.axes, self.names = figure, axes, names
        self.stacked = stacked(axes)
        kinds: dict[str, Any] = {"x_axis_type": axes.get_xscale(), "y_axis_type": axes.get_yscale()}
        rows = spec.get_gridspec().nrows if (spec := axes.get_subplotspec()) else 1
        height = int(max(HEIGHT_MIN_PX, PX_PER_IN * figure.get_figheight() / rows))
        self.plot: Any = new_figure(
            x_range=_range(axes.get_xlim()),
            y_range=_range(axes.get_ylim()),
            height=height,
            min_border_right=14,
            sizing_mode="stretch_width",
            tools="pan,box_zoom,wheel_zoom,reset,save",
            active_drag=None,
            active_scroll=None,
            toolbar_location="above",
            background_fill_color=None,
            border_fill_color=None,
            outline_line_color=None,
            output_backend="canvas",
            title=axes.get_title(loc="left") or None,
            tags=["time"] if self._is_time() else [],
            **kinds,
        )
        self.plot.toolbar.logo = None
        self.plot.toolbar.autohide = True
        self.plot.xaxis.axis_label = axes.get_xlabel() or (TIME if self._is_time() else "")
        self.plot.yaxis.axis_label = axes.get_ylabel()
        if axes.get_title(loc="left"):
            title: Any = self.plot.title
            title.text_font = "STIXGeneral"
            title.text_font_style = "normal"
        for axis, theirs in ((axes.xaxis, self.plot.xaxis), (axes.yaxis, self.plot.yaxis)):
            theirs.axis_label_text_font_style = "normal"
            theirs.axis_label_text_font = theirs.major_label_text_font = "STIXGeneral"
            theirs.axis_label_text_font_size = "15px"
            theirs.major_label_text_font_size = "13px"
            theirs.minor_tick_line_color = None
            if axis.get_scale() == "linear":
                theirs.formatter = BasicTickFormatter(use_scientific=False)
            _fixed_ticks(axis, theirs)
        if height < LOW_PX:
            few: Any = self.plot.yaxis.ticker
            few.desired_num_ticks = 3
        self.plot.xgrid.visible = False
        self._draw()
        cursor = Span(dimension="height", location=0, line_width=1, visible=False, name="cursor")
        self.plot.add_layout(cursor)
        moved = CustomJS(args={"plot": self.plot}, code="weir.hover(plot, cb_data.geometry)")
        self.plot.add_tools(
            HoverTool(tooltips=None, mode="vline", callback=moved, visible=False, renderers="auto")
        )

    def _is_time(self) -> bool:
        below = [axes.get_xlabel() for axes in self.figure.axes if axes.get_visible()]
        return self.axes.get_xlabel() == TIME or (not self.axes.get_xlabel() and TIME in below)

    def _draw(self) -> None:
        for collection in self.axes.collections:
            if isinstance(collection, PolyCollection):
                self._area(collection)
        bars: dict[str, list[Rectangle]] = {}
        for patch in self.axes.patches:
            if isinstance(patch, Rectangle):
                bars.setdefault(_colour(patch.get_facecolor()), []).append(patch)
            elif isinstance(patch, Polygon):
                xy = patch.get_xy()
                colour = _colour(patch.get_facecolor())
                alpha = patch.get_alpha() or 1.0
                line_style = {"fill_alpha": alpha, "line_color": colour, "fill_color": colour}
                self.plot.patch(*_columns(xy), name=self._name(patch, colour), **line_style)
        for colour, rectangles in bars.items():
            self._bars(colour, rectangles)
        for line in self.axes.lines:
            self._line(line)
        for text in self.axes.texts:
            x, y = text.get_position() if not hasattr(text, "xy") else text.xy
            self.plot.text(
                [float(x)],
                [self._place(y)],
                [text.get_text()],
                text_baseline="middle",
                text_font={"value": "STIXGeneral"},
                text_font_size="13px",
                name="text",
            )

    def _place(self, y: Any) -> float:
        """Returns a y as a number; it may be a name on the axis."""
        axes: Any = self.axes
        return float(axes.convert_yunits(y))

    def _name(self, artist: Any, colour: str) -> str:
        return _label(artist) or self.names.get(colour, "")

    def _area(self, collection: PolyCollection) -> None:
        if len(collection.get_facecolor()) == 0:
            return
        colour = _colour(collection.get_facecolor()[0])
        alpha = collection.get_alpha()
        for path in collection.get_paths():
            edges = bounded.area(path)
            if edges is None:
                continue
            x, y1, y2 = (edge.astype(np.float32) for edge in edges)
            self.plot.varea(
                x="x",
                y1="y1",
                y2="y2",
                source={"x": x, "y1": y1, "y2": y2, "value": np.abs(y2 - y1)},
                fill_color=colour,
                fill_alpha=1.0 if alpha is None else float(alpha),
                name=self._name(collection, colour),
                tags=["stacked"] if collection in self.stacked else [],
            )

    def _bars(self, colour: str, rectangles: Sequence[Rectangle]) -> None:
        boxes = np.array([[*r.get_xy(), r.get_width(), r.get_height()] for r in rectangles])
        left, bottom, width, height = boxes.astype(np.float64).T
        # Rows of bars, of one height, have no value at an x.
        upright = len(rectangles) == 1 or np.ptp(height) > 0 or np.ptp(width) < 1e-9
        self.plot.quad(
            left="left",
            right="right",
            bottom="bottom",
            top="top",
            source={
                "left": left,
                "right": left + width,
                "bottom": bottom,
                "top": bottom + height,
                **({"x": left + width / 2, "value": height} if upright else {}),
            },
            fill_color=colour,
            line_color=colour,  # so that the narrowest are seen
            line_width=0.7,
            name=self.names.get(colour, ""),
        )

    def _line(self, line: Line2D) -> None:
        x, y = (np.asarray(v, dtype=np.float64) for v in (line.get_xdata(), line.get_ydata()))
        colour = _colour(line.get_color())
        width, dash = float(line.get_linewidth()) * 1.35, _dash(line)
        line_style: dict[str, Any] = {"line_color": colour, "line_width": width, "line_dash": dash}
        data_x, data_y = _frame(line, self.axes)
        if data_x != data_y:  # a level or a moment, or a mark at the edge for what is beyond it
            if x.size == 1 and data_x:
                self._mark_at_edge(line, float(x[0]), float(y[0]))
            elif x[0] == x[-1] and x.size > 1:
                self.plot.add_layout(Span(dimension="height", location=float(x[0]), **line_style))
            elif x.size > 1:
                name = self._name(line, colour)
                level = np.array([y[0], y[0]])
                ends = np.array(self.axes.get_xlim())
                self.plot.line(
                    "x",
                    "y",
                    source={"x": ends, "y": level, "value": level},
                    name=name,
                    **line_style,
                )
            return
        source = {"x": x.astype(np.float32), "y": y.astype(np.float32)}
        source["value"] = source["y"]
        name = self._name(line, colour)
        if line.get_linestyle() not in NO_LINE:
            style = str(line.get_drawstyle())
            if style.startswith("steps"):
                mode = {"steps-post": "after", "steps-mid": "center"}.get(style, "before")
                self.plot.step("x", "y", source=source, mode=mode, name=name, **line_style)
            else:
                self.plot.line("x", "y", source=source, name=name, **line_style)
        self._markers(line, source, name)

    def _mark_at_edge(self, line: Line2D, x: float, share: float) -> None:
        """Draws a mark at a share of the axes' height; whole, though it stands at their end."""
        low, high = self.axes.get_ylim()
        y = low + min(share, 1 - EDGE) * (high - low)
        self._markers(line, {"x": np.array([x]), "y": np.array([y])}, _label(line))

    def _markers(self, line: Line2D, source: dict[str, Any], name: str) -> None:
        marker, colour = MARKERS.get(str(line.get_marker())), _colour(line.get_color())
        if marker is not None:
            hollow = _colour(line.get_markerfacecolor()) == "#ffffff"
            self.plot.scatter(
                "x",
                "y",
                source=source,
                marker=marker,
                size=1.6 * float(line.get_markersize()),
                line_color=colour,
                fill_color=None if hollow else colour,
                name=name,
            )


def _dash(line: Line2D) -> list[int]:
    pattern = getattr(line, "_dash_pattern", (0, None))[1]
    return [] if pattern is None else [max(1, round(1.35 * part)) for part in pattern]


def _columns(xy: Any) -> tuple[Floats, Floats]:
    points = np.asarray(xy, dtype=np.float64)
    return points[:, 0], points[:, 1]


def _range(limits: tuple[float, float]) -> Range1d:
    return Range1d(start=float(limits[0]), end=float(limits[1]))


def _fixed_ticks(axis: Axis, theirs: Any) -> None:
    """Copies an axis's ticks if they have fixed places and names."""
    locator = axis.get_major_locator()
    if not isinstance(locator, FixedLocator | StrCategoryLocator):
        return
    places = [float(place) for place in locator()]
    labels = axis.get_major_formatter().format_ticks(places)
    theirs.ticker = FixedTicker(ticks=places)
    theirs.major_label_overrides = dict(zip(places, labels, strict=True))


def _json(plot: Any) -> Markup:
    """Returns a document with one plot as JSON, which is the same for the same figure."""
    ids: dict[str, str] = {}

    def renumbered(value: Any) -> Any:
        if isinstance(value, dict):
            return {
                key: ids.setdefault(part, f"p{len(ids) + 1}")
                if key == "id" and isinstance(part, str)
                else renumbered(part)
                for key, part in value.items()
            }
        return [renumbered(part) for part in value] if isinstance(value, list | tuple) else value

    made: Any = json_item(plot)
    item = {"doc": renumbered(made["doc"]), "root_id": ids[plot.id], "version": made["version"]}
    return Markup(json.dumps(item, separators=(",", ":")).replace("<", "\\u003c"))
