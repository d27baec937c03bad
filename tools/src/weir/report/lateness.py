# SPDX-License-Identifier: BSD-3-Clause
"""The error of a live run itself: how much later than it should each packet was transmitted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import polars as pl

from weir.analysis import metrics
from weir.analysis.run_summary import RunSummary
from weir.report import theme
from weir.report.figure import Axis, Figure, Line, Panel, beside, floats
from weir.report.scene import Scene, over_time
from weir.report.theme import Style

if TYPE_CHECKING:
    from weir.analysis.folder import Run

BINS = 400  # of time
NS_PER_US = 1e3
LEAST_NS = 10.0  # a logarithmic axis has no 0
DASHED = theme.DASHES[1]
# Keys of `emulation` in a summary, what they are distributions of, and their looks.
DELAY = Style("delay, all packets", theme.BLUE, "o")
PACING = Style("pacing, all packets", theme.VERMILLION, "s", theme.DASHES[2])
KNOWN = {
    "delay_error_cdf": DELAY,
    "delay_error_undisturbed_cdf": Style("delay, undisturbed", theme.BLUE, "o", DASHED),
    "pacing_error_cdf": PACING,
    "pacing_error_undisturbed_cdf": Style(
        "pacing, undisturbed", theme.VERMILLION, "s", theme.DASHES[3]
    ),
}


class Tail(NamedTuple):
    """A distribution of lateness."""

    style: Style
    late_ns: metrics.Floats
    share: metrics.Floats


def tails(report: RunSummary, styles: dict[str, Style]) -> Iterator[Tail]:
    """Yields the distributions that a summary has, by its keys."""
    for key, style in styles.items():
        if cdf := getattr(report.emulation, key):
            ends, share = np.asarray(cdf, dtype=np.float64).T
            yield Tail(style, *metrics.within_bins(ends, share, np.inf))


def in_stretches(run: Run, duration_s: float) -> pl.DataFrame | None:
    """Returns mean and largest lateness of packets in each of BINS stretches, with time_s.

    None without records of departures: levels 2 and 3 have them.
    """
    depart = run.values("packets", "event").get("depart")
    if depart is None:
        return None
    counts, sums, largest = np.zeros(BINS), np.zeros(BINS), np.zeros(BINS)
    length_ns = duration_s * metrics.NS_PER_S / BINS
    for part in run.chunks("packets", ("ts_ns", "sojourn_ns", "event")):
        left = part["event"] == depart
        late = part["sojourn_ns"][left]
        place = np.minimum((part["ts_ns"][left] / length_ns).astype(np.int64), BINS - 1)
        counts += np.bincount(place, minlength=BINS)
        sums += np.bincount(place, weights=late, minlength=BINS)
        np.maximum.at(largest, place, late)
    used = np.flatnonzero(counts)
    if used.size == 0:
        return None
    return pl.DataFrame(
        {
            "time_s": (used + 0.5) * length_ns / metrics.NS_PER_S,
            "mean_ns": sums[used] / counts[used],
            "largest_ns": largest[used],
        }
    )


def of_a_run(found: Sequence[Tail], timed: pl.DataFrame | None, scene: Scene) -> Figure:
    """Shows distributions of lateness and, where departures were recorded, lateness over time."""
    panels = [_tails(found, "later than (µs)")] if found else []
    if timed is not None:
        marks = []
        for name, label, dash in (("largest", "delay, largest", "-"), ("mean", "mean", DASHED)):
            late = np.maximum(floats(timed[f"{name}_ns"]), LEAST_NS) / NS_PER_US
            marks.append(Line(floats(timed["time_s"]), late, Style(label, theme.BLACK, "", dash)))
        y = Axis("lateness (µs)", LEAST_NS / NS_PER_US, scale="log")
        panels.append(over_time(scene, y, marks))
    return beside(*panels)


def of_runs(delay: Sequence[Tail], pacing: Sequence[Tail]) -> Figure:
    """Shows one distribution of several runs: of delay, and of pacing."""
    shown = (("delay", delay), ("pacing", pacing))
    return beside(*(_tails(part, f"error of {name} (µs)") for name, part in shown if part))


def _tails(found: Sequence[Tail], label: str) -> Panel:
    marks = []
    for style, late_ns, share in found:
        above = np.maximum(1 - np.concatenate([[0.0], share[:-1]]), 1e-9)
        marks.append(Line(np.maximum(late_ns, LEAST_NS) / NS_PER_US, above, style))
    least = max(min(1 - float(s[s < 1].max(initial=0)) for *_, s in found) / 2, 1e-9)
    return Panel(Axis(label, scale="log"), Axis("share of packets", least, 1.3, "log"), marks)
