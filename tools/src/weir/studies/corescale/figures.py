# SPDX-License-Identifier: BSD-3-Clause
"""The figures of the CoreScale study, ours beside the published ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from weir.analysis import metrics
from weir.report import theme
from weir.report.figure import (
    LEVEL,
    MOMENT,
    Axis,
    Figure,
    Line,
    Mark,
    Panel,
    Points,
    Rule,
    Span,
    Strokes,
    beside,
    floats,
    named,
)
from weir.report.theme import Style
from weir.studies.corescale import measures as corescale
from weir.studies.corescale import trend
from weir.study.claim import Found
from weir.study.curves import points
from weir.study.measures import jfi

Cell = tuple[str, corescale.Measured]  # what it is called in its figure


def draw(found: Found) -> Iterator[Figure]:
    """Yields each figure whose runs are there."""
    scales = {
        "core": cells(found, corescale.CORE, corescale.FLOWS),
        "edge": cells(found, corescale.EDGES, corescale.EDGE_FLOWS),
    }
    scales = {scale: shown for scale, shown in scales.items() if shown}
    if scales:
        caption = (
            "How far each flow's goodput is from our own fit's prediction. A line is the share of"
            " flows at or below an error, with p from halvings and from losses. The study's Figure"
            " 2 has the error of the edge's constant at the core: see the rows of I2."
        )
        yield named("", errors(scales), caption)
        caption = (
            "Packets lost per window halving. The study's Figure 3 has 6 to 9 at the core, and"
            " about 1.7 at the edge."
        )
        yield named("", losses(scales), caption)
    if figure := fairness(found):
        caption = (
            "Jain's index among flows of one control at the core. It is the study's Figure 4, which"
            " has no Copa, LoLa, BBRv3 and Prague."
        )
        yield named("", figure, caption)
    if figure := trend.figure(found):
        caption = (
            "1 - J, where J is Jain's index of the flows' goodputs since the warm-up, over the time"
            " that is measured, and its trend a / T."
        )
        yield named("", figure, caption)


def cells(found: Found, names: Sequence[str], flows: Sequence[int]) -> list[Cell]:
    """Reads the cells that were run and have a fit."""
    shown = []
    for name, count in zip(names, flows, strict=True):
        runs = found.runs(name)
        if runs is None:
            continue
        cell = corescale.measured(runs[0])
        if cell.by_halving.error.size and cell.by_loss.error.size:
            shown.append((f"{count:,}", cell))
    return shown


def errors(scales: dict[str, list[Cell]]) -> Figure:
    """Shows figure 2: distributions of the prediction error, a row per scale."""
    panels = []
    for scale, shown in scales.items():
        for title in ("by halvings", "by losses"):
            marks: list[Mark] = [Rule(10, replace(MOMENT, label="10 %"), upright=True)]
            for index, (name, cell) in enumerate(shown):
                fit = cell.by_halving if title == "by halvings" else cell.by_loss
                x, share = metrics.ecdf(fit.error)
                dash = theme.DASHES[index % len(theme.DASHES)]
                style = Style(f"{name} flows", theme.CYCLE[index % len(theme.CYCLE)], "", dash)
                marks.append(Line(100 * x, share, style, steps="post"))
            x_axis, y_axis = Axis("prediction error (%)", 0, 30), Axis("share of flows", 0, 1.04)
            panels.append(Panel(x_axis, y_axis, marks, f"{scale}, {title}"))
    return Figure(panels, columns=2, height_in=2.1 * len(scales))


def losses(scales: dict[str, list[Cell]]) -> Figure:
    """Shows figure 3: losses per halving, a column per scale."""
    total = replace(theme.style("newreno"), label="all flows", dash="-")
    each = replace(total, label="5th to 95th percentile of flows")
    published = Style("the study's Figure 3", theme.GRID, "")
    panels = []
    for scale, shown in scales.items():
        ends = (1.65, 1.75) if scale == "edge" else (6.0, 9.0)
        marks: list[Mark] = [Span(*ends, published)]
        for at, (_, cell) in enumerate(shown):
            low, high = (floats(v) for v in np.percentile(cell.losses.per_flow, (5, 95)))
            marks.append(Strokes(floats(at), low, high, each, width=5, opacity=0.3))
            marks.append(Points(floats(at), floats(cell.losses.total or 0), total, size=5.5))
        ticks = [(float(place), name) for place, (name, _) in enumerate(shown)]
        panels.append(
            Panel(Axis("flows", ticks=ticks), Axis("losses per halving", 0), marks, scale)
        )
    return beside(*panels)


def fairness(found: Found) -> Figure | None:
    """Shows figure 4: Jain's index over the number of flows."""
    lines: list[Mark] = []
    for index, (cc, name) in enumerate(corescale.NAMES.items()):
        ran = [(flows, found.runs(corescale.of_figure_4(cc, flows))) for flows in corescale.FLOWS]
        known = [(flows, jfi(runs[0])) for flows, runs in ran if runs is not None]
        if known:
            lines.append(points(known, theme.style(cc, name, index)))
    if not lines:
        return None
    panel = Panel(
        Axis("flows", 0),
        Axis("Jain's index", 0, 1.03),
        [*lines, Rule(0.4, replace(LEVEL, label="the study's lowest of BBR"))],
    )
    return Figure([panel], height_in=2.6)
