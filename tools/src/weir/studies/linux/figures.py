# SPDX-License-Identifier: BSD-3-Clause
"""The figures of Linux beside ours: windows over time, and what mixes share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import polars as pl

from weir.report import theme
from weir.report.axes import legend
from weir.studies.linux import beside
from weir.studies.linux.cases import CONTROLS, NAMES, Pair

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WIDTH_IN = 7.2
POINTS_MAX = 250  # of a curve in a small panel
STYLES: dict[str, dict[str, Any]] = {
    "linux": {"color": theme.BLACK, "linewidth": 0.9, "label": "Linux"},
    "weir": {"color": theme.VERMILLION, "linewidth": 0.7, "label": "Weir"},
}


def draw(pairs: Sequence[Pair]) -> Iterator[tuple[Figure, str]]:
    """Draws each figure whose runs are there, with its caption."""
    for queue, name in (("fifo", "FIFO"), ("codel", "CoDel")):
        if alone := [p for p in pairs if p.case.queue == queue and not p.case.mixed]:
            yield (
                windows(alone),
                f"Congestion windows behind a {name} queue. In segments over seconds; a row per"
                " link, a column per control. Linux's is TCP_INFO's, once in 100 ms.",
            )
    if mixed := [p for p in pairs if p.case.mixed]:
        yield (
            mixes(mixed),
            "What the first of two controls gets of the goodput. A point per seed, a bar for their"
            f" mean; two flows of each. The bound is {beside.QUOTA_OFF} between the means.",
        )


def thinned(curve: pl.DataFrame) -> pl.DataFrame:
    return curve.gather_every(max(1, -(-curve.height // POINTS_MAX)))


def windows(pairs: Sequence[Pair]) -> Figure:
    """Draws a panel per link and control, both sides in it."""
    from matplotlib.figure import Figure

    links = list(dict.fromkeys(pair.case.link.name for pair in pairs))
    figure = Figure(figsize=(1.4 * len(CONTROLS), 0.5 + 0.95 * len(links)))
    axes = figure.subplots(len(links), len(CONTROLS), squeeze=False)
    for pair in pairs:
        row, column = links.index(pair.case.link.name), CONTROLS.index(pair.case.controls[0])
        axis = axes[row, column]
        for side, style in STYLES.items():
            curve = thinned(pair.runs[side][0].cwnd)
            axis.plot(curve["time_s"], curve["cwnd_segs"], **style)
        late = [p.cwnd.filter(pl.col("time_s") > 2) for ran in pair.runs.values() for p in ran]
        top = max((float(c["cwnd_segs"].max() or 1) for c in late if c.height), default=1.0)  # type: ignore[arg-type]
        axis.set_ylim(0, 1.15 * top)
        axis.set_xlim(0, pair.case.duration_s)
        axis.tick_params(labelsize=5)
        if row == 0:
            axis.set_title(NAMES[CONTROLS[column]], fontsize=8)
        if column == 0:
            axis.set_ylabel(pair.case.link.name.replace("-", "\n", 1), fontsize=5)
    legend(figure)
    return figure


def mixes(pairs: Sequence[Pair]) -> Figure:
    """Draws points of seeds and their means."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH_IN, 0.8 + 0.32 * len(pairs)))
    axis = figure.subplots()
    for y, pair in enumerate(reversed(pairs)):
        for offset, (side, style) in zip((0.15, -0.15), STYLES.items(), strict=True):
            quotas = [one.quota for one in pair.runs[side]]
            own = {"color": style["color"]}
            label = style["label"] if y == 0 else None
            axis.plot(quotas, [y + offset] * len(quotas), ".", markersize=3, label=label, **own)
            axis.vlines(pair.mean(side, "quota"), y + offset - 0.13, y + offset + 0.13, **own)
    names = [f"{beside.title(p.case)}, {p.case.queue}" for p in reversed(pairs)]
    axis.set_yticks(range(len(pairs)), names)
    axis.set_xlim(0, 1)
    axis.grid(axis="x")
    axis.grid(visible=False, axis="y")
    axis.set_xlabel("part of the goodput")
    legend(figure)
    return figure
