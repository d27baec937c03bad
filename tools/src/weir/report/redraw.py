# SPDX-License-Identifier: BSD-3-Clause
"""Draws what one pair of axes shows into another, such as a user's own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.collections import PolyCollection
from matplotlib.lines import Line2D
from matplotlib.patches import Polygon, Rectangle

from weir.report import bounded, interactive

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def into(source: Axes, target: Axes) -> None:
    """Copies lines, areas, bars, texts, scales, limits and names of axes; labels for a legend."""
    target.set_xscale(source.get_xscale())
    target.set_yscale(source.get_yscale())
    for collection in source.collections:
        if isinstance(collection, PolyCollection):
            _area(collection, target)
    for patch in source.patches:
        drawn_as: dict[str, Any] = {
            "facecolor": patch.get_facecolor(),
            "edgecolor": patch.get_edgecolor(),
            "linewidth": patch.get_linewidth(),
            "label": patch.get_label(),
        }
        if isinstance(patch, Rectangle):
            box = Rectangle(patch.get_xy(), patch.get_width(), patch.get_height(), **drawn_as)
            target.add_patch(box)
        elif isinstance(patch, Polygon):
            target.add_patch(Polygon(np.asarray(patch.get_xy()), **drawn_as))
    for line in source.lines:
        _line(line, source, target)
    for text in source.texts:
        place = getattr(text, "xy", text.get_position())
        target.annotate(text.get_text(), place, va="center", fontsize=text.get_fontsize())
    target.set_xlim(source.get_xlim())
    target.set_ylim(source.get_ylim())
    target.set_xlabel(source.get_xlabel())
    target.set_ylabel(source.get_ylabel())
    target.set_title(source.get_title(loc="left"), loc="left")


def _area(area: PolyCollection, target: Axes) -> None:
    drawn_as: dict[str, Any] = {
        "facecolor": area.get_facecolor(),
        "edgecolor": area.get_edgecolor(),
        "linewidth": area.get_linewidth(),
        "label": area.get_label(),
    }
    for path in area.get_paths():
        edges = bounded.area(path)
        if edges is not None:
            target.fill_between(*edges, **drawn_as)


def _line(line: Line2D, source: Axes, target: Axes) -> None:
    transform = {
        (True, True): target.transData,
        (True, False): target.get_xaxis_transform(),
        (False, True): target.get_yaxis_transform(),
    }[interactive._frame(line, source)]
    made = Line2D(*line.get_data(), label=line.get_label(), transform=transform)
    made.update_from(line)  # all but markevery
    made.set_markevery(line.get_markevery())
    made.set_transform(transform)
    made.set_label(str(line.get_label()))
    target.add_line(made)
