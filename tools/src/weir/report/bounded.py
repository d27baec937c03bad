# SPDX-License-Identifier: BSD-3-Clause
"""A bounded number of points in a figure, however long the run: a page must stay small and fast."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from matplotlib.collections import PolyCollection

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from matplotlib.path import Path

    Floats = npt.NDArray[np.float64]

POINTS_MAX = 4000  # of a line, and of each edge of an area
PANEL_POINTS = 800  # of a line where there are more than two panels, which are small


def bound(figure: Figure) -> None:
    """Thins the lines and areas of a figure that have more points; their extremes stay."""
    most = POINTS_MAX if len(figure.axes) <= 2 else PANEL_POINTS
    for axes in figure.axes:
        for line in axes.lines:
            x, y = (np.asarray(v, dtype=np.float64) for v in (line.get_xdata(), line.get_ydata()))
            if y.size > most:
                keep = places(y, most)
                line.set_data(x[keep], y[keep])
        for collection in axes.collections:
            if isinstance(collection, PolyCollection):
                _bound_areas(collection)


def _bound_areas(collection: PolyCollection) -> None:
    paths = collection.get_paths()
    if all(len(np.asarray(path.vertices)) <= 2 * POINTS_MAX for path in paths):
        return
    found = []
    for path in paths:
        edges = area(path)
        if edges is None:
            found.append(np.asarray(path.vertices, dtype=np.float64))
            continue
        x, low, high = edges
        keep = places(high)
        forth, back = np.stack([x, low], axis=1)[keep], np.stack([x, high], axis=1)[keep][::-1]
        # The ends are doubled, as fill_between has them.
        found.append(np.concatenate([back[-1:], forth, back[:1], back]))
    collection.set_verts(found)


def area(path: Path) -> tuple[Floats, Floats, Floats] | None:
    """Returns x and both edges there of what fill_between or stackplot drew, else None."""
    points = np.asarray(path.vertices, dtype=np.float64)
    n = (len(points) - 3) // 2
    low, high = points[1 : n + 1], points[n + 2 : 2 * n + 2][::-1]
    if n < 1 or not np.array_equal(low[:, 0], high[:, 0]):
        return None
    return low[:, 0], low[:, 1], high[:, 1]


def places(y: Floats, points: int = POINTS_MAX) -> npt.NDArray[np.int64]:
    """Returns indices of at most so many values: each stretch's smallest and largest, and the ends.

    tsdownsample does the same but for the ends: not worth a compiled package.
    """
    if y.size <= points:
        return np.arange(y.size)
    edges = np.linspace(0, y.size, points // 2).astype(np.int64)
    kept = [0, y.size - 1]
    for low, high in pairwise(edges):
        part = y[low:high]
        if np.isfinite(part).any():
            kept += [int(low + np.nanargmin(part)), int(low + np.nanargmax(part))]
        else:
            kept.append(int(low))  # a gap stays a gap
    return np.unique(np.array(kept, dtype=np.int64))
