# SPDX-License-Identifier: BSD-3-Clause
"""C4's scenarios: our times over the published means."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from weir.report import theme
from weir.report.figure import Axis, Figure, Mark, Panel, Points, Span, Strokes, floats
from weir.report.theme import Style
from weir.studies.c4.study import CONTROLS, PART, SCENARIOS, Scenario
from weir.study.claim import Found

ROW_IN = 0.2  # of a scenario
PUBLISHED = Style("to the published 90th percentile", theme.INK, "")
HERE = Style("here, a point for each seed", theme.BLUE, "o")
NEAR = Style(f"within {100 * PART:g} % of the published mean", theme.GRID, "")


def draw(found: Found) -> Iterator[Figure]:
    """Yields one figure, if any scenario has run."""
    rows = [one for one in SCENARIOS if not one.cannot and found.runs(one.setup("cubic"))]
    if not rows:
        return
    panels = [panel(found, rows, cc) for cc in CONTROLS]
    yield Figure(
        panels,
        columns=2,
        height_in=0.9 + ROW_IN * len(rows),
        caption="Our times over the published mean. A bar reaches from that mean to the published"
        " 90th percentile.",
    )


def panel(found: Found, rows: list[Scenario], cc: str) -> Panel:
    """Returns all scenarios with one control, from above."""
    marks: list[Mark] = [Span(1 - PART, 1 + PART, NEAR, upright=True)]
    for place, one in enumerate(rows):
        published = one.times(cc)
        end = published.p90 / published.mean
        reach = floats(place), floats(1), floats(end)
        bar = Strokes(*reach, PUBLISHED, lying=True, width=3, opacity=0.5)
        ours = [one.time_s(run) / published.mean for run in found.runs(one.setup(cc)) or ()]
        marks += [bar, Points(floats(ours), np.full(len(ours), float(place)), HERE)]
    names = [(float(place), one.name) for place, one in enumerate(rows)]
    y = Axis("", -0.5, len(rows) - 0.5, reversed=True, ticks=names)
    return Panel(Axis(f"{CONTROLS[cc]}: time over the published mean"), y, marks)
