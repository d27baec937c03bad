# SPDX-License-Identifier: BSD-3-Clause
"""Copa's figures in the paper's axes: 1, 4, 6, 7, 8, 9 and 10."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from matplotlib.figure import Figure

from weir.analysis.folder import Run
from weir.report import axes, theme
from weir.studies.copa import measures
from weir.study.claim import Found
from weir.study.curves import points
from weir.study.measures import (
    churn_jfis,
    goodput,
    goodputs,
    queue_ms,
    used,
)

C6_PUBLISHED = {"copa": 0.86, "cubic": 0.81, "bbr": 0.61, "pcc": 0.35}  # the paper's medians
SHOWN_S = 1.0  # of the oscillation
RTTS_MS = 15 * np.arange(1, 21)
SIZES = (1e3, 1e4, 6.4e4, 1e5, 1e6, 1e7, 1e8)
STYLES = {
    "copa": theme.style("copa"),
    "copa-default": theme.Style("Copa, default mode", theme.SKY, "P", theme.DASHES[1]),
    "auto": theme.Style("Copa with mode switching", theme.SKY, "P", theme.DASHES[1]),
    "cubic": theme.style("cubic"),
    "cubic-codel": theme.Style("CUBIC over CoDel", theme.BLACK, "X", theme.DASHES[3]),
    "newreno": theme.style("newreno"),
    "bbr": theme.style("bbr"),
    "pcc": theme.Style("PCC", theme.ORANGE, "v", theme.DASHES[1]),
    "vegas": theme.Style("Vegas", theme.GREY, "*", theme.DASHES[3]),
    "copa-320": theme.style("copa"),
    "dctcp-320": theme.Style("DCTCP", theme.VERMILLION, "s", theme.DASHES[1]),
}


def draw(found: Found) -> Iterator[tuple[Figure, str]]:
    for drawn, caption in FIGURES:
        figure = drawn(found)
        if figure is not None:
            yield figure, caption


def oscillation(found: Found) -> Figure | None:
    """Draws figure 1: a second of the queue."""
    runs = found.runs("c1-2")
    if runs is None:
        return None
    links = runs[0].stream("links").records
    links = links[links["link"] == 0]
    end_s = links["ts_ns"][-1] / 1e9
    shown = links[links["ts_ns"] > (end_s - SHOWN_S) * 1e9]
    figure, (axis,) = axes.subplots(1)
    time_s = shown["ts_ns"] / 1e9 - (end_s - SHOWN_S)
    axis.plot(time_s, shown["queue_mean_pkts"], color=theme.BLUE)
    for level in (5.0, 10.0):
        axis.axhline(level, **axes.LEVEL)
    axis.set(xlabel="time (s)", ylabel="queue (packets)", ylim=(0, None))
    return figure


def curves(
    found: Found, prefix: str, names: tuple[str, ...]
) -> Iterator[tuple[theme.Style, list[Run]]]:
    """Yields the look and the runs of each trial that was run."""
    for name in names:
        runs = found.runs(prefix + name)
        if runs is not None:
            yield STYLES[name], runs


def cdfs(found: Found) -> Figure | None:
    """Draws figure 4."""
    figure, (axis,) = axes.subplots(1)
    for style, runs in curves(found, "c6-", ("copa", "copa-default", "cubic", "bbr", "pcc")):
        values = np.sort(np.concatenate([churn_jfis(run) for run in runs]))
        share = np.arange(1, len(values) + 1) / len(values)
        axis.step(values, share, where="post", color=style.colour, ls=style.dash, label=style.label)
    if not axis.lines:
        return None
    for name, median in C6_PUBLISHED.items():
        axis.plot(median, 0.5, STYLES[name].marker, color=STYLES[name].colour, markersize=5)
    axis.set(xlabel="Jain's index", ylabel="share of seconds", xlim=(0, 1.02), ylim=(0, 1.02))
    axes.legend(figure)
    return figure


def over_rtt(found: Found) -> Figure | None:
    """Draws figure 6."""
    figure, (axis,) = axes.subplots(1)
    for style, runs in curves(found, "c8-", ("copa", "auto", "cubic", "cubic-codel", "newreno")):
        for run in runs:
            points(axis, zip(RTTS_MS, goodputs(run), strict=True), style, 3)
    if not axis.lines:
        return None
    axis.axhline(100 / 20 * 1448 / 1538, **axes.LEVEL)
    axis.set(xlabel="round trip without queue (ms)", ylabel="goodput (Mbit/s)", ylim=(0, None))
    axes.legend(figure)
    return figure


def over_loss(found: Found) -> Figure | None:
    """Draws figure 7."""
    figure, (axis,) = axes.subplots(1)
    for cc in ("copa", "bbr", "pcc", "newreno", "cubic", "vegas"):
        ran = [(p, found.runs(f"c9-{cc}-{p}")) for p in (0, 1, 2, 5, 10)]
        known = [(p, goodput(runs[0])) for p, runs in ran if runs is not None]
        if known:
            points(axis, known, STYLES[cc])
    if not axis.lines:
        return None
    axis.set(xlabel="loss (%)", ylabel="goodput (Mbit/s)", ylim=(0, 12))
    axes.legend(figure)
    return figure


def over_size(found: Found) -> Figure | None:
    """Draws figure 8."""
    figure, (axis,) = axes.subplots(1)
    for style, runs in curves(found, "c10-", ("copa-320", "dctcp-320")):
        for run in runs:
            bytes_, took_us = measures.completions(run)
            bins = np.digitize(bytes_, SIZES)
            means = [
                (bytes_[bins == b].mean(), took_us[bins == b].mean())
                for b in range(1, len(SIZES))
                if (bins == b).any()
            ]
            points(axis, means, style)
    if not axis.lines:
        return None
    axis.set(xscale="log", yscale="log", xlabel="size (bytes)", ylabel="completion time (µs)")
    axes.legend(figure)
    return figure


def satellites(found: Found) -> Figure | None:
    """Draws figure 9."""
    figure, (axis,) = axes.subplots(1, 2.6)
    for style, runs in curves(found, "c11-", ("copa", "bbr", "pcc", "cubic", "vegas")):
        x, y = (np.array([f(run) for run in runs]) for f in (queue_ms, used))
        axis.errorbar(
            x.mean(),
            y.mean(),
            y.std(),
            x.std(),
            style.marker,
            color=style.colour,
            markersize=5,
            label=style.label,
        )
    if not axis.lines:
        return None
    axis.set(xscale="symlog", xlabel="mean time in the queue (ms)", ylabel="link used")
    axis.set(xlim=(2000, 0), ylim=(0, 1.02))
    axes.legend(figure)
    return figure


def networks(found: Found) -> Figure | None:
    """Draws figure 10."""
    figure, (axis,) = axes.subplots(1)
    names: list[str] = []
    for scheme in ("copa", "cubic", "bbr", "pcc"):
        ratios = [
            [measures.of_fair(group)(run) for group in (0, 1)]
            for run in found.runs(f"c12-{scheme}-*") or ()
        ]
        if not ratios:
            continue
        means, spreads = np.mean(ratios, axis=0), np.std(ratios, axis=0)
        style = STYLES[scheme]
        for group, offset in ((0, -0.12), (1, 0.12)):
            axis.errorbar(
                len(names) + offset,
                means[group],
                spreads[group],
                fmt=style.marker if group == 0 else "o",
                color=style.colour if group == 0 else theme.GREEN,
                markerfacecolor=None if group == 0 else "white",
                markersize=5,
            )
        names.append(style.label)
    if not names:
        return None
    axis.axhline(1, **axes.LEVEL)
    axis.set_xticks(range(len(names)), names)
    axis.set(ylabel="of the fair share", ylim=(0, None))
    return figure


FIGURES: tuple[tuple[Callable[[Found], Figure | None], str], ...] = (
    (
        oscillation,
        "The queue in the steady state. Two flows of delta 0.5; dashed: 2.5/delta-hat"
        " and its half, between which and 0 it swings. Figure 1 of the paper.",
    ),
    (
        cdfs,
        "Jain's index over the seconds while flows come and go. All seeds; markers:"
        " the paper's medians. Its figure 4.",
    ),
    (
        over_rtt,
        "Goodput by round trip. Twenty flows share 100 Mbit/s. The paper's figure 6.",
    ),
    (
        over_loss,
        "Goodput under random loss. One flow at 12 Mbit/s. The paper's figure 7.",
    ),
    (
        over_size,
        "Completion times by size. Mean of each bin, ten times the paper's senders."
        " The paper's figure 8.",
    ),
    (
        satellites,
        "Throughput and queueing delay over a satellite. Mean and standard deviation"
        " over the seeds; the delay grows to the left. The paper's figure 9.",
    ),
    (
        networks,
        "Shares beside CUBIC, over random networks. Mean and standard deviation of"
        " goodput over the ideal fair share; open: CUBIC's. The paper's figure 10.",
    ),
)
