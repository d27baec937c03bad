# SPDX-License-Identifier: BSD-3-Clause
"""The figures of the CoreScale study, ours beside the published ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure

from weir.analysis import metrics
from weir.report import axes, theme
from weir.studies.corescale import measures as corescale
from weir.study.claim import Found
from weir.study.curves import points

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from weir.studies.corescale.measures import Measured

Cell = tuple[str, "Measured"]  # what it is called in its figure


def draw(found: Found) -> Iterator[tuple[Figure, str]]:
    """Draws each figure whose runs are there, with its caption."""
    scales = {
        "core, hosts that join segments": cells(found, corescale.WITH_HOSTS, corescale.FLOWS),
        "core, ideal hosts": cells(found, corescale.IDEAL, corescale.FLOWS),
        "edge": cells(found, corescale.EDGES, corescale.EDGE_FLOWS),
    }
    scales = {scale: shown for scale, shown in scales.items() if shown}
    if scales:
        yield (
            errors(scales),
            "How far each flow's goodput is from our own fit's prediction. Share of flows at or"
            " below an error, with p from halvings and from losses; dotted: 10 %. The study's"
            " Figure 2 has the error of the edge's constant at the core: see the rows of I2.",
        )
        yield (
            losses(scales),
            "Packets lost per window halving. Bars: 5th to 95th percentile of flows. The study's"
            " Figure 3 (grey): 6 to 9 at the core, about 1.7 at the edge.",
        )
    if figure := fairness(found):
        yield (
            figure,
            "Jain's index among flows of one control at the core. Dashed: as low as the study found"
            " BBR. Its Figure 4; it did not try Copa, LoLa, BBRv3 and Prague.",
        )


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
    """Draws figure 2: distributions of the prediction error, a row per scale."""
    figure = Figure(figsize=(axes.WIDTH_IN, 2.1 * len(scales)))
    grid = figure.subplots(len(scales), 2, squeeze=False, sharex=True, sharey=True)
    for (left, right), (scale, shown) in zip(grid, scales.items(), strict=True):
        for axis, title in ((left, "by halvings"), (right, "by losses")):
            for index, (name, cell) in enumerate(shown):
                fit = cell.by_halving if axis is left else cell.by_loss
                x, share = metrics.ecdf(fit.error)
                dash = theme.DASHES[index % len(theme.DASHES)]
                colour = theme.CYCLE[index % len(theme.CYCLE)]
                axis.step(100 * x, share, where="post", color=colour, ls=dash, label=name)
            axis.axvline(10, color=theme.FAINT, linewidth=0.7, linestyle=(0, (1, 2)))
            axis.set_title(f"{scale}, {title}", loc="left", fontsize=8)
        left.set_ylabel("share of flows")
        right.legend(loc="upper left", bbox_to_anchor=(1.02, 1), fontsize=7, title="flows")
    for below in grid[-1]:
        below.set(xlabel="prediction error (%)", xlim=(0, 30))
    return figure


def losses(scales: dict[str, list[Cell]]) -> Figure:
    """Draws figure 3: losses per halving, a column per scale."""
    figure, columns = axes.subplots(len(scales))
    style = theme.style("newreno")
    for axis, (scale, shown) in zip(columns, scales.items(), strict=True):
        axis.axhspan(*((1.65, 1.75) if scale == "edge" else (6.0, 9.0)), color=theme.GRID, zorder=0)
        for x, (_, cell) in enumerate(shown):
            low, high = np.percentile(cell.losses.per_flow, (5, 95))
            axis.vlines(x, low, high, color=style.colour, alpha=0.3, linewidth=5)
            axis.plot(x, cell.losses.total or 0, style.marker, color=style.colour, markersize=5)
        label(axis, [name for name, _ in shown])
        axis.set_title(scale, loc="left", fontsize=8)
        axis.set_ylim(bottom=0)
    columns[0].set_ylabel("losses per halving")
    return figure


def label(axis: Axes, names: Sequence[str]) -> None:
    """Puts names below the places 0, 1, ..."""
    axis.set_xticks(range(len(names)), names)
    axis.set_xlabel("flows")


def fairness(found: Found) -> Figure | None:
    """Draws figure 4: Jain's index over the number of flows."""
    figure, (axis,) = axes.subplots(1, 2.6)
    for index, (cc, name) in enumerate(corescale.NAMES.items()):
        ran = [
            (flows, found.runs(corescale.core(cc, flows, hosts=cc == "newreno")))
            for flows in corescale.FLOWS
        ]
        known = [(flows, corescale.jfi(runs[0])) for flows, runs in ran if runs is not None]
        if known:
            points(axis, known, theme.style(cc, name, index))
    if not axis.lines:
        return None
    axis.axhline(0.4, **axes.LEVEL)
    axis.set(xlabel="flows", ylabel="Jain's index", xlim=(0, None), ylim=(0, 1.03))
    axes.legend(figure)
    return figure
