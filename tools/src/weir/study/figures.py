# SPDX-License-Identifier: BSD-3-Clause
"""The figures of the CoreScale study, ours beside the published ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from weir.analysis import metrics
from weir.report import theme
from weir.report.axes import legend
from weir.study import corescale
from weir.study.corescale import Case, Measured

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH_IN = 7.2
PUBLISHED = {"color": "#222222", "linewidth": 0.8, "linestyle": (0, (4, 2))}


def draw(study: str, measured: dict[str, Measured]) -> Iterator[tuple[Figure, str]]:
    """Each figure that there are cells for, with its caption."""
    newreno = [m for m in measured.values() if m.case.ccs == ("newreno",)]
    fitted = [m for m in newreno if m.by_halving.error.size and m.by_loss.error.size]
    if base := [m for m in fitted if m.case.rtt_ms == corescale.BASE_RTT_MS]:
        yield (
            errors(base),
            "How far each flow's goodput is from the fit's prediction: share of flows at or below"
            " an error, with p from halvings and from losses. The study's Figure 2: at the core a"
            " median of at most 10 % by halvings and of 45 to 55 % by losses; at the edge both"
            " below 10 % (dotted).",
        )
    if fitted:
        yield (
            losses(fitted),
            "Packets lost per window halving. Bars: 5th to 95th percentile of flows; lines: (C by"
            " losses / C by halvings)² of the two fits. The study's Figure 3 (grey): 6 to 9 at the"
            " core, about 1.7 at the edge.",
        )
    if single := [m for m in measured.values() if len(m.case.ccs) == 1 and not m.case.variant]:
        yield (
            fairness(single),
            "Jain's index among flows of one algorithm. The study's Figure 4 (dashed): BBR's is as"
            " low as 0.4 at the core, and as 0.7 at the edge beyond 10 flows; NewReno's and CUBIC's"
            " are above 0.99 at the core. It did not try Copa.",
        )
    if mixed := [m for m in measured.values() if len(m.case.ccs) == 2]:
        yield (
            shares(mixed),
            "What the first of two algorithms takes of the goodput, beside its share of the flows"
            " (open) and what the study found CUBIC to take of NewReno (grey).",
        )


def cell_label(case: Case) -> str:
    """Short, within a figure of one algorithm."""
    rtt = f", {case.rtt_ms} ms" if case.rtt_ms != corescale.BASE_RTT_MS else ""
    variant = f", {case.variant}" if case.variant else ""
    return f"{case.flows:,}{rtt}{variant}"


def scales(cells: Sequence[Measured]) -> list[str]:
    """Core and edge, those that there are."""
    return [scale for scale in ("core", "edge") if any(m.case.scale == scale for m in cells)]


def errors(cells: Sequence[Measured]) -> Figure:
    """Figure 2: distributions of the prediction error, a row per scale."""
    from matplotlib.figure import Figure

    tails = [np.percentile(f.error, 98) for m in cells for f in (m.by_halving, m.by_loss)]
    rows = scales(cells)
    figure = Figure(figsize=(WIDTH_IN, 2.3 * len(rows)))
    axes = figure.subplots(len(rows), 2, squeeze=False, sharex=True, sharey=True)
    for row, scale in enumerate(rows):
        shown = [m for m in cells if m.case.scale == scale]
        for column, title in enumerate(("by halvings", "by losses")):
            for index, cell in enumerate(shown):
                fit = cell.by_loss if column else cell.by_halving
                x, share = metrics.ecdf(fit.error)
                axes[row, column].step(
                    100 * x,
                    share,
                    where="post",
                    color=theme.CYCLE[index % len(theme.CYCLE)],
                    linestyle=theme.DASHES[index % len(theme.DASHES)],
                    label=cell_label(cell.case),
                )
            axes[row, column].axvline(10, color=theme.FAINT, linewidth=0.7, linestyle=(0, (1, 2)))
            axes[row, column].set_title(f"{scale}, {title}", loc="left")
        axes[row, 0].set_ylabel("share of flows")
        axes[row, 1].legend(loc="upper left", bbox_to_anchor=(1.02, 1), fontsize=7)
    for below in axes[-1]:
        below.set_xlabel("prediction error (%)")
        below.set_xlim(0, max(15.0, 100 * float(max(tails))))
    return figure


def losses(cells: Sequence[Measured]) -> Figure:
    """Figure 3: losses per halving, a column per scale."""
    from matplotlib.figure import Figure

    columns = scales(cells)
    figure = Figure(figsize=(WIDTH_IN, 2.5))
    axes = figure.subplots(1, len(columns), squeeze=False, sharey=True)[0]
    for axis, scale in zip(axes, columns, strict=True):
        shown = [m for m in cells if m.case.scale == scale]
        low, high = (6.0, 9.0) if scale == "core" else (1.65, 1.75)
        axis.axhspan(low, high, color=theme.GRID, zorder=0)
        style = theme.style("newreno")
        for x, cell in enumerate(shown):
            spread = np.percentile(cell.losses.per_flow, (5, 95))
            axis.vlines(x, *spread, color=style.colour, alpha=0.3, linewidth=5)
            axis.plot(x, cell.losses.total, style.marker, color=style.colour, markersize=5)
            if cell.losses_of_fits is not None:
                axis.hlines(cell.losses_of_fits, x - 0.25, x + 0.25, color=theme.INK, linewidth=1)
        label_cells(axis, [cell_label(cell.case) for cell in shown])
        axis.set_title(scale, loc="left")
    axes[0].set_ylabel("losses per halving")
    axes[0].set_ylim(bottom=0)
    return figure


def label_cells(axis: Axes, labels: Sequence[str]) -> None:
    """Names below the places 0, 1, ..."""
    long = max(map(len, labels)) > 6
    axis.set_xticks(
        range(len(labels)),
        labels,
        rotation=35 if long else 0,
        ha="right" if long else "center",
    )
    axis.set_xlabel("flows")


def fairness(cells: Sequence[Measured]) -> Figure:
    """Figure 4: Jain's index over the number of flows, a column per scale."""
    from matplotlib.figure import Figure

    columns = scales(cells)
    figure = Figure(figsize=(WIDTH_IN, 2.6))
    axes = figure.subplots(1, len(columns), squeeze=False, sharey=True)[0]
    dashes = {20: "-", 100: "--", 200: ":"}
    for axis, scale in zip(axes, columns, strict=True):
        axis.axhline(0.4 if scale == "core" else 0.7, **PUBLISHED)
        for cc, name in corescale.NAMES.items():
            style = theme.style(cc, name)
            for rtt_ms, dash in dashes.items():
                shown = [
                    m
                    for m in cells
                    if m.case.scale == scale and m.case.ccs == (cc,) and m.case.rtt_ms == rtt_ms
                ]
                axis.plot(
                    [m.case.flows for m in shown],
                    [m.jfi for m in shown],
                    color=style.colour,
                    marker=style.marker,
                    markersize=4,
                    linestyle=dash,
                    label=f"{name}, {rtt_ms} ms" if shown else None,
                )
        axis.set_title(scale, loc="left")
        axis.set_xlabel("flows")
        axis.set_xlim(left=0)
    axes[0].set_ylabel("Jain's index")
    axes[0].set_ylim(0, 1.03)
    legend(figure)
    return figure


def shares(cells: Sequence[Measured]) -> Figure:
    """Shares of the first of two algorithms, a line per cell."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH_IN, 0.6 + 0.2 * len(cells)))
    axis = figure.subplots()
    for y, cell in enumerate(reversed(cells)):
        case = cell.case
        share, own = (100 * float(v) for v in (cell.groups["share"][0], of_flows(cell)))
        style = theme.style(case.ccs[0])
        if case.ccs == ("cubic", "newreno") and not case.lone:
            axis.barh(y, 10, left=70, color=theme.GRID, height=0.9, zorder=0)
        axis.hlines(y, own, share, color=style.colour, linewidth=1)
        axis.plot(own, y, "o", color=style.colour, markerfacecolor="white", markersize=4)
        axis.plot(share, y, style.marker, color=style.colour, markersize=5)
    labels = [f"{cell.case.title}, {cell_label(cell.case)}" for cell in reversed(cells)]
    axis.set_yticks(range(len(cells)), labels)
    axis.set_xlim(-1, 101)
    axis.grid(axis="x")
    axis.grid(visible=False, axis="y")
    axis.set_xlabel("share of the goodput (%)")
    return figure


def of_flows(cell: Measured) -> float:
    """The first group's share of the flows."""
    return float(cell.groups["flows"][0]) / cell.flows.height
