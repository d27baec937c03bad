# SPDX-License-Identifier: BSD-3-Clause
"""Copa's figures in the paper's axes: 1, 4, 6, 7, 8, 9 and 10."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from weir.analysis.folder import Run
from weir.report import theme
from weir.report.figure import (
    HEIGHT_IN,
    LEVEL,
    NONE,
    Axis,
    Figure,
    Line,
    Mark,
    Panel,
    Points,
    Rule,
    Strokes,
    floats,
    named,
)
from weir.report.theme import Style
from weir.studies.copa import measures
from weir.study.claim import Found
from weir.study.curves import points
from weir.study.measures import churn_jfis, goodput, goodputs, queue_ms, used
from weir.study.scenario import first_link

C6_PUBLISHED = {"copa": 0.86, "cubic": 0.81, "bbr": 0.61, "pcc": 0.35}  # the paper's medians
FAIR = theme.Style("fair share of the link", theme.INK, "", LEVEL.dash)
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
    "vegas-320": theme.Style("Vegas", theme.GREY, "*", theme.DASHES[3]),
    "newreno-320": theme.style("newreno"),
    "dctcp-320": theme.Style("DCTCP", theme.VERMILLION, "s", theme.DASHES[1]),
}


def draw(found: Found) -> Iterator[Figure]:
    for make, caption in FIGURES:
        figure = make(found)
        if figure is not None:
            yield named("", figure, caption)


def shown(
    x: Axis, y: Axis, marks: Sequence[Mark], *rules: Mark, height_in: float = HEIGHT_IN
) -> Figure | None:
    """Returns a figure of one panel; None without marks, whose runs are not there."""
    return Figure([Panel(x, y, [*marks, *rules])], height_in=height_in) if marks else None


def oscillation(found: Found) -> Figure | None:
    """Shows figure 1: a second of the queue."""
    runs = found.runs("c1-2")
    if runs is None:
        return None
    links = first_link(runs[0])
    end_s = links["ts_ns"][-1] / 1e9
    last = links[links["ts_ns"] > (end_s - SHOWN_S) * 1e9]
    time_s = floats(last["ts_ns"] / 1e9 - (end_s - SHOWN_S))
    line = Line(time_s, floats(last["queue_mean_pkts"]), Style("", theme.BLUE, ""))
    half = Style("1.25/delta-hat", theme.INK, "", theme.DASHES[2])
    bounds = Rule(5.0, half), Rule(10.0, replace(LEVEL, label="2.5/delta-hat"))
    return shown(Axis("time (s)"), Axis("queue (packets)", 0), [line], *bounds)


def curves(
    found: Found, prefix: str, names: tuple[str, ...]
) -> Iterator[tuple[theme.Style, list[Run]]]:
    """Yields the look and the runs of each setup that was run."""
    for name in names:
        runs = found.runs(prefix + name)
        if runs is not None:
            yield STYLES[name], runs


def cdfs(found: Found) -> Figure | None:
    """Shows figure 4."""
    lines = []
    for style, runs in curves(found, "c6-", ("copa", "copa-default", "cubic", "bbr", "pcc")):
        values = np.sort(np.concatenate([churn_jfis(run) for run in runs]))
        share = np.arange(1, len(values) + 1) / len(values)
        lines.append(Line(floats(values), share, style, steps="post"))
    medians = [
        Points(floats(median), floats(0.5), replace(STYLES[name], label=""), size=5.5)
        for name, median in C6_PUBLISHED.items()
    ]
    known = Points(NONE, NONE, Style("the paper's medians", theme.INK, "o"))
    x, y = Axis("Jain's index", 0, 1.02), Axis("share of seconds", 0, 1.02)
    return shown(x, y, lines, *medians, known)


def over_rtt(found: Found) -> Figure | None:
    """Shows figure 6."""
    names = ("copa", "auto", "cubic", "cubic-codel", "newreno", "vegas")
    lines = [
        points(zip(RTTS_MS, np.mean([goodputs(run) for run in runs], axis=0), strict=True), style)
        for style, runs in curves(found, "c8-", names)
    ]
    x = Axis("round trip without queue (ms)")
    return shown(x, Axis("goodput (Mbit/s)", 0), lines, Rule(100 / 20 * 1448 / 1538, FAIR))


def over_loss(found: Found) -> Figure | None:
    """Shows figure 7."""
    lines = []
    for cc in ("copa", "bbr", "pcc", "newreno", "cubic", "vegas"):
        ran = [(p, found.runs(f"c9-{cc}-{p}")) for p in (0, 1, 2, 5, 10)]
        known = [(p, goodput(runs[0])) for p, runs in ran if runs is not None]
        if known:
            lines.append(points(known, STYLES[cc]))
    return shown(Axis("loss (%)"), Axis("goodput (Mbit/s)", 0, 12), lines)


def over_size(found: Found) -> Figure | None:
    """Shows figure 8."""
    lines = []
    for style, runs in curves(found, "c10-", ("copa-320", "dctcp-320", "vegas-320", "newreno-320")):
        for run in runs:
            bytes_, took_us = measures.completions(run)
            bins = np.digitize(bytes_, SIZES)
            means = [
                (bytes_[bins == b].mean(), took_us[bins == b].mean())
                for b in range(1, len(SIZES))
                if (bins == b).any()
            ]
            lines.append(points(means, style))
    y = Axis("completion time (µs)", scale="log")
    return shown(Axis("size (bytes)", scale="log"), y, lines)


def satellites(found: Found) -> Figure | None:
    """Shows figure 9."""
    marks: list[Mark] = []
    for style, runs in curves(found, "c11-", ("copa", "bbr", "pcc", "cubic", "vegas")):
        x, y = (np.array([f(run) for run in runs]) for f in (queue_ms, used))
        (mx, dx), (my, dy) = ((floats(v.mean()), floats(v.std())) for v in (x, y))
        solid = replace(style, dash="-")
        marks.append(Points(mx, my, style, size=5.5))
        marks.append(Strokes(my, mx - dx, mx + dx, solid, lying=True))
        marks.append(Strokes(mx, my - dy, my + dy, solid))
    x_axis = Axis("mean time in the queue (ms)", 0, 2000, "symlog", reversed=True)
    return shown(x_axis, Axis("link used", 0, 1.02), marks, height_in=2.6)


def networks(found: Found) -> Figure | None:
    """Shows figure 10."""
    names: list[str] = []
    marks: list[Mark] = []
    for scheme in ("copa", "cubic", "bbr", "pcc"):
        ratios = [
            [measures.of_fair(group)(run) for group in (0, 1)]
            for run in found.runs(f"c12-{scheme}-*") or ()
        ]
        if not ratios:
            continue
        means, spreads = np.mean(ratios, axis=0), np.std(ratios, axis=0)
        own = replace(STYLES[scheme], label="", dash="-")
        other = Style("CUBIC beside it", theme.GREEN, "o")
        for group, (style, offset) in enumerate(((own, -0.12), (other, 0.12))):
            at = floats(len(names) + offset)
            mean, spread = floats(means[group]), floats(spreads[group])
            marks.append(Points(at, mean, style, size=5.5, hollow=group == 1))
            marks.append(Strokes(at, mean - spread, mean + spread, style))
        names.append(STYLES[scheme].label)
    x = Axis("", -0.5, len(names) - 0.5, ticks=[(float(n), name) for n, name in enumerate(names)])
    return shown(x, Axis("of the fair share", 0), marks, Rule(1, FAIR))


FIGURES: tuple[tuple[Callable[[Found], Figure | None], str], ...] = (
    (
        oscillation,
        "The queue in the steady state. Two flows have a delta of 0.5; the queue swings between 0"
        " and the dashed lines, as in figure 1 of the paper.",
    ),
    (
        cdfs,
        "Jain's index over the seconds while flows come and go. A line has the seconds of all"
        " seeds, as the paper's figure 4.",
    ),
    (
        over_rtt,
        "Goodput by round trip, the mean over seeds. Twenty flows share 100 Mbit/s, as in the"
        " paper's figure 6.",
    ),
    (
        over_loss,
        "Goodput under random loss. One flow has a link of 12 Mbit/s, as in the paper's figure 7.",
    ),
    (
        over_size,
        "Completion times by size. A point is the mean of a bin; there are ten times as many"
        " senders as in the paper's figure 8.",
    ),
    (
        satellites,
        "Throughput and queueing delay over a satellite. Points and strokes are mean and standard"
        " deviation over the seeds; the delay grows to the left, as in the paper's figure 9.",
    ),
    (
        networks,
        "Shares beside CUBIC, over random networks. Points and strokes are mean and standard"
        " deviation of goodput over the ideal fair share, as in the paper's figure 10.",
    ),
)
