# SPDX-License-Identifier: BSD-3-Clause
"""Draws a figure with matplotlib, for papers and for a user's own axes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.ticker import AutoMinorLocator, LogLocator, MaxNLocator, NullFormatter, NullLocator

from weir.base import units
from weir.report import figure as values
from weir.report.theme import GRID, INK, Style

WIDE = 92  # characters of a legend over the whole width
ROW_IN = 0.18  # of a legend
SMALL_FROM = 3  # panels beside each other: more have smaller type
LOW_IN = 1.2  # a panel that is lower has few ticks
OPEN = "x|+"  # markers that are strokes
BEHIND, FIRST = 0.4, 2.0  # places in depth: of a shaded range, behind the grid; of the first mark

RC: dict[Any, Any] = {
    "font.family": ["STIXGeneral", "DejaVu Sans"],
    "mathtext.fontset": "stix",
    "font.size": 9.5,
    "axes.titlesize": 9.5,
    "axes.labelsize": 9.5,
    "xtick.labelsize": 8.5,
    "ytick.labelsize": 8.5,
    "legend.fontsize": 8.5,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.linewidth": 0.6,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.major.size": 2.5,
    "ytick.major.size": 2.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.axisbelow": True,
    "grid.color": GRID,
    "grid.linewidth": 0.6,
    "lines.linewidth": 1.1,
    "lines.solid_capstyle": "round",
    "legend.frameon": False,
    "legend.handlelength": 1.4,
    "legend.borderaxespad": 0.0,
    "figure.constrained_layout.use": True,
    "figure.constrained_layout.w_pad": 0.06,
    "svg.fonttype": "none",
    "svg.hashsalt": "weir",  # the same data, the same file
    "pdf.fonttype": 42,
}


SMALL = ("xtick.labelsize", "ytick.labelsize", "legend.fontsize")
PAPER: dict[Any, Any] = {
    "font.size": 8,
    "axes.titlesize": 8,
    "axes.labelsize": 8,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "legend.fontsize": 7,
    "figure.constrained_layout.w_pad": 0.02,
    "figure.constrained_layout.h_pad": 0.02,
}


@contextmanager
def settings(paper: bool = False, own: dict[Any, Any] | None = None) -> Iterator[None]:
    """Sets matplotlib up as all figures are drawn and saved; artists keep the type of their time.

    own: what a venue has of its own.
    """
    held: dict[Any, Any] = RC | (PAPER if paper else {}) | (own or {})
    with mpl.rc_context(held):
        yield


def draw(figure: values.Figure, width_in: float = values.WIDTH_IN, wide: float = WIDE) -> Canvas:
    """Returns a figure drawn; wide: characters of a legend's row over the width of a page."""
    canvas = Canvas(figsize=(width_in, figure.height_in), layout="constrained")
    columns = min(figure.columns, len(figure.panels))
    rows = -(-len(figure.panels) // columns)
    weights = [panel.weight for panel in figure.panels[::columns]]
    grid = canvas.add_gridspec(rows, columns, height_ratios=weights)
    found: dict[int, Any] = {}
    drawn = []
    for place, panel in enumerate(figure.panels):
        axes = canvas.add_subplot(grid[divmod(place, columns)])
        low = figure.height_in * panel.weight / sum(weights) < LOW_IN
        found |= draw_panel(axes, panel, int(wide * width_in / values.WIDTH_IN / columns), low)
        if columns > SMALL_FROM:
            axes.tick_params(labelsize=5)
            axes.yaxis.label.set_fontsize(5)
        drawn.append(axes)
    _share(figure, drawn, columns)
    fields = [(axes, m) for axes, p in zip(drawn, figure.panels, strict=True)
              for m in p.marks if isinstance(m, values.Field)]  # fmt: skip
    if fields:
        bar = canvas.colorbar(
            found[id(fields[-1][1])], ax=drawn, label=fields[-1][1].label, aspect=30, pad=0.01
        )
        bar.outline.set_visible(False)
    entries = [(found[id(mark)], mark.style.label) for mark in values.key(figure)]
    _legend(canvas, entries, int(wide * width_in / values.WIDTH_IN))
    return canvas


def _share(figure: values.Figure, drawn: Sequence[Axes], columns: int) -> None:
    """Leaves out what the panel below or at the left says too."""
    for place, (axes, panel) in enumerate(zip(drawn, figure.panels, strict=True)):
        below = place + columns
        if below < len(drawn) and figure.panels[below].x.label == panel.x.label:
            axes.set_xlabel("")
            if columns == 1 and drawn[below].get_xlim() == axes.get_xlim():
                axes.tick_params(labelbottom=False)
        if place % columns and figure.panels[place - 1].y.label == panel.y.label:
            axes.set_ylabel("")
            if drawn[place - 1].get_ylim() == axes.get_ylim():
                axes.tick_params(labelleft=False)


def draw_panel(
    axes: Axes, panel: values.Panel, wide: int = WIDE, low: bool = False
) -> dict[int, Any]:
    """Draws marks and scales into axes; returns the artist of each mark by the mark's id.

    wide: characters below it. low: it has room for few ticks.
    """
    ends = values.ends(panel)
    for name, axis, (begin, end) in zip("xy", (panel.x, panel.y), ends, strict=True):
        kind = {"linthresh": axis.linear_to} if axis.scale == "symlog" else {}
        getattr(axes, f"set_{name}scale")(axis.scale, **kind)
        getattr(axes, f"set_{name}lim")(*((end, begin) if axis.reversed else (begin, end)))
        getattr(axes, f"set_{name}label")(axis.label)
    found = {}
    for place, mark in enumerate(panel.marks):
        depth = BEHIND if isinstance(mark, values.Span) else FIRST + place / len(panel.marks)
        found[id(mark)] = _mark(axes, mark, depth, ends[1][1])
    _ticks(axes.xaxis, panel.x, ends[0], low=False)
    _ticks(axes.yaxis, panel.y, ends[1], low)
    names = [name for _, name in panel.x.ticks]
    if names and len(names) * max(map(len, names)) > 0.7 * wide:
        turned = 30 if 3 * len(names) < wide else 90
        for label in axes.get_xticklabels():
            label.set(rotation=turned, ha="right" if turned == 30 else "center")
            label.set_rotation_mode("anchor" if turned == 30 else "default")
    if panel.y.ticks:
        axes.grid(visible=bool(panel.x.ticks), axis="y")
        axes.grid(visible=not panel.x.ticks, axis="x")
        axes.tick_params(axis="y", length=0)
    if any(isinstance(mark, values.Field) for mark in panel.marks):
        axes.grid(visible=False, axis="both")
        axes.tick_params(length=0)
        axes.spines[:].set_visible(False)
    axes.set_title(panel.title, loc="left", pad=3)
    return found


def _ticks(axis: Any, given: values.Axis, ends: tuple[float, float], low: bool) -> None:
    if given.ticks:
        axis.set_ticks([place for place, _ in given.ticks], [name for _, name in given.ticks])
        axis.set_minor_locator(NullLocator())
    elif given.scale == "log" and ends[1] < 100 * ends[0]:
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axis.set_major_formatter("{x:g}")
        axis.set_minor_formatter(NullFormatter())
    elif given.scale == "linear" and (given.whole or low):
        axis.set_major_locator(MaxNLocator(3 if low else "auto", integer=given.whole))
        axis.set_minor_locator(AutoMinorLocator(1))


def _mark(axes: Axes, mark: values.Mark, depth: float, top: float) -> Any:
    """Draws a mark and returns its artist; top: where the y axis ends."""
    style = mark.style
    drawn: dict[str, Any] = {"color": style.colour, "zorder": depth}
    drawn["label"] = style.label or None
    if isinstance(mark, values.Line):
        [line] = axes.plot(
            mark.x,
            mark.y,
            linestyle=style.dash,
            linewidth=mark.width,
            drawstyle=f"steps-{mark.steps}" if mark.steps else "default",
            **(_marker(style, 3.5, False) if mark.markers else {}),
            markevery=mark.markers or None,
            **drawn,
        )
        return line
    if isinstance(mark, values.Points):
        y = np.minimum(mark.y, top) if mark.at_edge else mark.y
        kind = _marker(style, mark.size * (0.9 if mark.hollow else 1.0), mark.hollow)
        [points] = axes.plot(mark.x, y, linestyle="none", clip_on=not mark.at_edge, **kind, **drawn)
        return points
    if isinstance(mark, values.Band):
        drawn = {"facecolor": style.colour, "zorder": depth, "label": style.label or None}
        if mark.stacked and style.hatch:
            drawn |= {"edgecolor": INK, "hatch": style.hatch}
        elif mark.stacked:
            drawn["edgecolor"] = "white"
        thick = 0.3 if mark.stacked and not style.hatch else 0.0
        return axes.fill_between(
            mark.x, mark.low, mark.high, alpha=mark.opacity, linewidth=thick, **drawn
        )
    if isinstance(mark, values.Strokes):
        lines = axes.hlines if mark.lying else axes.vlines
        return lines(
            mark.at, mark.low, mark.high, linewidth=mark.width, alpha=mark.opacity,
            linestyle=style.dash, **drawn,
        )  # fmt: skip
    if isinstance(mark, values.Bars):
        kind = {"linewidth": 0, "hatch": style.hatch or None, "edgecolor": INK, **drawn}
        sizes = mark.high - mark.low
        if mark.lying:
            return axes.barh(mark.at, sizes, height=mark.width, left=mark.low, **kind)
        return axes.bar(mark.at, sizes, width=mark.width, bottom=mark.low, **kind)
    if isinstance(mark, values.Box):
        return _box(axes, mark, depth)
    if isinstance(mark, values.Rule):
        rule = axes.axvline if mark.upright else axes.axhline
        return rule(mark.at, linewidth=mark.width, linestyle=style.dash, **drawn)
    if isinstance(mark, values.Span):
        span = axes.axvspan if mark.upright else axes.axhspan
        return span(mark.low, mark.high, linewidth=0, **drawn)
    if isinstance(mark, values.Polygon):
        axes.fill(mark.x, mark.y, color=style.colour, alpha=0.2, linewidth=0, zorder=depth)
        [line] = axes.plot(mark.x, mark.y, linestyle=style.dash, linewidth=0.9, **drawn)
        return line
    if isinstance(mark, values.Field):
        return _field(axes, mark)
    return axes.annotate(
        mark.text, (mark.x, mark.y), xytext=mark.away, textcoords="offset points", va="center",
        fontsize=mark.size, color=style.colour,
    )  # fmt: skip


def _marker(style: Style, size: float, hollow: bool) -> dict[str, Any]:
    thick = 0.8 if hollow or style.marker in OPEN else 0.0
    face = "white" if hollow else style.colour
    return {"marker": style.marker or "o", "markersize": size, "markerfacecolor": face,
            "markeredgewidth": thick}  # fmt: skip


def _box(axes: Axes, mark: values.Box, depth: float) -> Any:
    found, colour = mark.quartiles(), mark.style.colour
    kind: dict[str, Any] = {"color": colour, "linewidth": 1.0}
    shown = {
        "med": found.median, "q1": found.low, "q3": found.high, "whislo": found.whisker_low,
        "whishi": found.whisker_high, "fliers": found.outliers,
    }  # fmt: skip
    made = axes.bxp(
        [shown], positions=[mark.at], widths=mark.width, manage_ticks=False, boxprops=kind,
        whiskerprops=kind, capprops=kind, medianprops={**kind, "linewidth": 1.8}, zorder=depth,
        flierprops={"markeredgecolor": colour, "markersize": 3},
    )  # fmt: skip
    return made["boxes"][0]


def _field(axes: Axes, mark: values.Field) -> Any:
    mesh = axes.pcolormesh(
        mark.values, cmap="viridis", vmin=mark.low, vmax=mark.high, rasterized=True
    )
    if mark.written:
        for (row, column), value in np.ndenumerate(mark.values):
            dark = value < (mark.low + mark.high) / 2 or mark.low == mark.high
            text = units.number(float(value) if np.isfinite(value) else None)
            axes.text(
                column + 0.5, row + 0.5, text, ha="center", va="center", fontsize=7,
                color="white" if dark else INK,
            )  # fmt: skip
    return mesh


def _legend(canvas: Canvas, entries: Sequence[tuple[Any, str]], wide: int) -> None:
    """Draws one legend above all axes, for which the figure grows by the rows that it takes.

    What a figure says in words stands here, where it hides no data. wide: characters of a row.
    """
    if not entries:
        return
    labels = [label for _, label in entries]
    columns = next((n for n in range(len(labels), 1, -1) if _wide(labels, n) <= wide), 1)
    rows = -(-len(labels) // columns)
    canvas.set_figheight(canvas.get_figheight() + ROW_IN * (rows - 1))
    canvas.legend(
        [artist for artist, _ in entries], labels, loc="outside upper left", ncols=columns,
        columnspacing=1.2, handletextpad=0.5,
    )  # fmt: skip


def _wide(labels: Sequence[str], columns: int) -> int:
    """Returns the characters of labels in so many columns, with what is drawn before each."""
    lengths = np.array([len(label) + 5 for label in labels])
    return int(sum(part.max() for part in np.array_split(lengths, columns)))
