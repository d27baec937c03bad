# SPDX-License-Identifier: BSD-3-Clause
"""C4's scenarios: our times over the published means."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from matplotlib.figure import Figure

from weir.report import axes, theme
from weir.studies.c4.study import CONTROLS, PART, SCENARIOS, Scenario
from weir.study.claim import Found

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ROW_IN = 0.2  # of a scenario


def draw(found: Found) -> Iterator[tuple[Figure, str]]:
    """Draws one figure, if any scenario has run."""
    rows = [one for one in SCENARIOS if not one.cannot and found.runs(one.trial("cubic"))]
    if not rows:
        return
    figure = Figure(figsize=(axes.WIDTH_IN, 0.9 + ROW_IN * len(rows)))
    for axis, cc in zip(figure.subplots(1, 2, sharey=True), CONTROLS, strict=True):
        panel(axis, found, rows, cc)
    axes.legend(figure)
    yield (
        figure,
        "Our times over the published mean, a point for each seed; the bar reaches to the published"
        " 90th percentile. Shaded: 10 % around the mean.",
    )


def panel(axis: Axes, found: Found, rows: list[Scenario], cc: str) -> None:
    """Draws all scenarios with one control, from above."""
    axis.axvspan(1 - PART, 1 + PART, color=theme.GRID)
    for place, one in enumerate(rows):
        published = one.times(cc)
        ends = (1, published.p90 / published.mean)
        label = "published" if place == 0 else None
        axis.plot(ends, (place, place), color=theme.INK, linewidth=3, alpha=0.5, label=label)
        ours = [one.time_s(run) / published.mean for run in found.runs(one.trial(cc)) or ()]
        label = "here" if place == 0 else None
        axis.plot(ours, [place] * len(ours), "o", color=theme.BLUE, markersize=4, label=label)
    axis.set(xlabel=f"{CONTROLS[cc]}: time over the published mean", ylim=(len(rows) - 0.5, -0.5))
    axis.set_yticks(range(len(rows)), [one.name for one in rows])
