# SPDX-License-Identifier: BSD-3-Clause
"""Draws a figure from a description and a table; needs matplotlib alone.

`weir plot --code` writes this file's functions into the script beside a figure (report/script.py).
"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.patches import Polygon, Rectangle

Rows = dict[tuple[int, int], list[list[float]]]


def read_table(path: Path) -> Rows:
    """Returns rows of x, y, x2, y2 by the numbers of panel and artist."""
    found: Rows = {}
    with path.open(newline="") as file:
        for row in csv.DictReader(file):
            numbers = [float(row[name] or "nan") for name in ("x", "y", "x2", "y2")]
            found.setdefault((int(row["panel"]), int(row["artist"])), []).append(numbers)
    return found


def draw_figure(described: dict[str, Any], rows: Rows) -> Figure:
    """Draws the described figure with the table's rows."""
    mpl.rcParams.update(described["style"])
    figure = Figure(figsize=described["size_in"])
    drawn: dict[tuple[int, int], Any] = {}
    panels = []
    for number, panel in enumerate(described["panels"], start=1):
        axes = figure.add_axes(panel["place"])
        panels.append(axes)
        if "colours_of" in panel:
            bar = figure.colorbar(drawn[tuple(panel["colours_of"])], cax=axes)
            bar.outline.set_visible(False)
        for artist, style in enumerate(panel["artists"], start=1):
            made = draw_artist(axes, style, rows.get((number, artist), []))
            drawn[number, artist] = made
        set_axes(axes, panel)
    key = described["legend"]
    if key:
        handles = [drawn[tuple(place)] for place in key["of"]]
        figure.legend(
            handles,
            key["labels"],
            loc="upper left",
            bbox_to_anchor=key["place"],
            ncols=key["columns"],
            columnspacing=1.2,
            handletextpad=0.5,
        )
    return figure


def draw_artist(axes: Any, style: dict[str, Any], rows: list[list[float]]) -> Any:
    """Draws a line, an area, a rectangle, a polygon, a field of colours or a text."""
    x, y, x2, y2 = zip(*rows, strict=True) if rows else ((), (), (), ())
    kind, how = style["kind"], style["how"]
    if kind == "line":
        frames = {"data": axes.transData, "x": axes.get_xaxis_transform(),
                  "y": axes.get_yaxis_transform(), "axes": axes.transAxes}  # fmt: skip
        [line] = axes.plot(x, y, transform=frames[style["frame"]], **how)
        return line
    if kind == "area":
        return axes.fill_between(x, y, y2, **how)
    if kind == "box":
        box = Rectangle((x[0], y[0]), x2[0] - x[0], y2[0] - y[0], **how)
        return axes.add_patch(box)
    if kind == "polygon":
        return axes.add_patch(Polygon(list(zip(x, y, strict=True)), **how))
    if kind == "field":
        width = style["columns"]
        field = [list(y2[at : at + width]) for at in range(0, len(y2), width)]
        return axes.pcolormesh(field, **how)
    return axes.annotate(style["text"], (x[0], y[0]), **how)


def set_axes(axes: Any, panel: dict[str, Any]) -> None:
    """Sets scales, ends, ticks, names and lines of axes."""
    axes.set_xscale(panel["xscale"])
    axes.set_yscale(panel["yscale"])
    for axis, name in ((axes.xaxis, "xticks"), (axes.yaxis, "yticks")):
        for minor, ticks in zip((False, True), panel[name], strict=True):
            axis.set_ticks(ticks["at"], ticks["labels"], minor=minor)
        axis.set_tick_params(length=panel[name][0]["length"], rotation=panel[name][0]["rotation"])
        axis.grid(visible=panel[name][0]["grid"], which="major")
    axes.set_xlim(panel["xlim"])
    axes.set_ylim(panel["ylim"])
    axes.set_xlabel(panel["xlabel"])
    axes.set_ylabel(panel["ylabel"])
    axes.set_title(panel["middle"])
    axes.set_title(panel["title"], loc="left", pad=panel["title_pad"])
    for side, visible in panel["spines"].items():
        axes.spines[side].set_visible(visible)
