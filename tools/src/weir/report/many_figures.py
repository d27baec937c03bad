# SPDX-License-Identifier: BSD-3-Clause
"""Figures of many runs, each a function that draws a tidy frame into axes.

`pantheon` takes a row per run: name, delay_ns and goodput_bps; `box` and `cdf` a row per value:
name and value. Rows of one name are of one kind, such as a congestion control, and differ in their
seed. What is not known is null or NaN, and is not drawn: a name without a number keeps its place.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter

from weir.analysis import metrics, windows
from weir.base import configs, units
from weir.base.errors import UserError, nearest
from weir.report import axes as shared
from weir.report import theme
from weir.report.theme import Style

NAMES = {
    "pantheon": "Goodput of each run against its 95th percentile of one-way delay, mean and 1 sigma"
    " ellipse of each kind.",
    "box": "A number of all runs: quartiles of each kind, and what lies apart.",
    "cdf": "A number of all runs: its distribution in each kind.",
}
NAMES_MAX = 40
LOG_FROM = 10.0  # delays that span more are on a logarithmic axis
APART = (0.12, 0.06)  # shares of the axes that a name takes
DOTS_MAX = 20  # as many values of a box are drawn one by one


@dataclass(frozen=True)
class Number:
    """The number that a box or a distribution shows."""

    label: str
    unit: str


def styles(names: Sequence[str]) -> list[Style]:
    """Returns the look of each kind: a control's or a discipline's own, or one that none has."""
    known = [configs.control(name.partition(",")[0]) for name in names]
    return theme.styles_of(
        [
            (theme.style(cc).label + name.removeprefix(cc) if cc in theme.STYLES else name, cc)
            for cc, name in zip(known, names, strict=True)
        ]
    )


def kinds(frame: pl.DataFrame) -> Iterator[tuple[Style, pl.DataFrame]]:
    """Yields each name's look and rows, in the order of the frame."""
    names = frame["name"].unique(maintain_order=True).to_list()
    if len(names) > NAMES_MAX:
        raise UserError(
            f"there are {len(names)} kinds of run: at most {NAMES_MAX} can be told apart"
        )
    for name, style in zip(names, styles(names), strict=True):
        yield style, frame.filter(pl.col("name") == name)


def pantheon(panel: Axes, points: pl.DataFrame) -> None:
    """Draws a dot per run, and each name's mean and ellipse of one standard deviation.

    As in Pantheon's reports: less delay to the right, so that better is up and to the right.
    """
    known = points.filter(pl.col("delay_ns").is_finite() & pl.col("goodput_bps").is_finite())
    if known.height == 0:
        raise UserError("no run has both a goodput and a one-way delay", 1)
    slow, slow_unit = units.step(shared.maximum(known, "delay_ns"), units.TIME_STEPS)
    fast, fast_unit = units.step(shared.maximum(known, "goodput_bps"), units.RATE_STEPS)
    scaled = points.with_columns(x=pl.col("delay_ns") / slow, y=pl.col("goodput_bps") / fast)
    for style, own in kinds(scaled):
        kind(panel, style, *(own[axis].cast(pl.Float64).fill_null(np.nan) for axis in "xy"))
    panel.set_xlabel(f"95th percentile of one-way delay ({slow_unit}), less to the right")
    panel.set_ylabel(f"goodput ({fast_unit})")
    delay_axis(panel, known["delay_ns"].to_numpy() / slow)
    panel.set_ylim(bottom=0)
    name_means(panel)


def kind(panel: Axes, style: Style, x: pl.Series, y: pl.Series) -> None:
    """Draws the runs of one name: dots, their mean and its ellipse."""
    one = windows.ellipse(x.to_numpy(), y.to_numpy())
    if one is None:
        return
    if np.ptp(one.contour_x) > 0 or np.ptp(one.contour_y) > 0:
        panel.fill(one.contour_x, one.contour_y, color=style.colour, alpha=0.2, linewidth=0)
        panel.plot(one.contour_x, one.contour_y, color=style.colour, linewidth=0.8)
    both = np.isfinite(x.to_numpy()) & np.isfinite(y.to_numpy())
    drawn: dict[str, Any] = {"color": style.colour, "linestyle": "none"}
    panel.plot(x.to_numpy()[both], y.to_numpy()[both], marker=".", markersize=3, **drawn)
    panel.plot([one.x], [one.y], marker=style.marker, markersize=5, label=style.label, **drawn)


def name_means(panel: Axes) -> None:
    """Writes names beside the means that stand apart; the legend has all of them."""
    means = [line for line in panel.lines if not str(line.get_label()).startswith("_")]
    at = np.array([np.ravel([line.get_xdata(), line.get_ydata()]) for line in means], np.float64)
    places = panel.transLimits.transform(panel.transScale.transform(at))
    for line, data, place in zip(means, at, places, strict=True):
        if (np.abs(places - place) < APART).all(axis=1).sum() == 1:
            drawn: dict[str, Any] = {"textcoords": "offset points", "fontsize": 6}
            panel.annotate(str(line.get_label()), data, xytext=(4, 3), **drawn)


def delay_axis(panel: Axes, delays: metrics.Floats) -> None:
    """Sets an axis from the longest to the shortest, logarithmic if they are far apart."""
    low, high = float(delays.min()), float(delays.max())
    if low > 0 and high > LOG_FROM * low:
        panel.set_xscale("log")
        panel.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        panel.xaxis.set_major_formatter("{x:g}")
        panel.xaxis.set_minor_formatter(NullFormatter())
        panel.set_xlim(high * 1.3, low / 1.3)
    else:
        room = 0.1 * (high - low) or 0.1 * high or 1.0
        panel.set_xlim(high + room, low - room)


def parts(samples: pl.DataFrame) -> list[tuple[Style, metrics.Floats]]:
    """Returns the known values of each name."""
    found = [
        (style, own["value"].cast(pl.Float64).fill_nan(None).drop_nulls().to_numpy())
        for style, own in kinds(samples)
    ]
    if not any(values.size for _, values in found):
        raise UserError("no run has this number", 1)
    return found


def scaled(samples: pl.DataFrame, number: Number) -> tuple[list[tuple[Style, metrics.Floats]], str]:
    """Returns each name's values in the unit that reads best, and the axis's label."""
    found, unit, divisor = parts(samples), number.unit, 1.0
    if unit in units.STEPS:
        largest = max(float(np.abs(values).max(initial=0)) for _, values in found)
        divisor, unit = units.step(largest, units.STEPS[unit])
    label = f"{number.label} ({unit})" if unit else number.label
    return [(style, values / divisor) for style, values in found], label


def box(panel: Axes, samples: pl.DataFrame, number: Number) -> None:
    """Draws quartiles and median of each name; whiskers end within 1.5 of their distance.

    What is beyond them is a ring; few values are dots beside.
    """
    found, label = scaled(samples, number)
    for place, (style, values) in enumerate(found):
        if values.size == 0:
            continue
        drawn = {"color": style.colour, "linewidth": 1.0}
        panel.boxplot(
            [values], positions=[place], widths=0.5, manage_ticks=False, boxprops=drawn,
            whiskerprops=drawn, capprops=drawn, medianprops={**drawn, "linewidth": 1.8},
            flierprops={"markeredgecolor": style.colour, "markersize": 3},
        )  # fmt: skip
        if values.size <= DOTS_MAX:
            panel.plot([place + 0.36] * values.size, values, ".", color=style.colour, markersize=3)
    labels = [style.label for style, _ in found]
    turned = max(map(len, labels)) * len(labels) > shared.WIDE // 3
    panel.set_xticks(range(len(labels)), labels, rotation=90 if turned else 0)
    panel.set_xlim(-0.6, len(labels) - 0.4)
    panel.set_ylim(bottom=min(0.0, panel.get_ylim()[0]))
    panel.set_ylabel(label)


def cdf(panel: Axes, samples: pl.DataFrame, number: Number) -> None:
    """Draws the share of each name's values that are at most x."""
    found, label = scaled(samples, number)
    for style, values in found:
        x, share = metrics.ecdf(values)
        if x.size:
            panel.plot(
                [x[0], *x], [0, *share], color=style.colour, linestyle=style.dash,
                label=style.label, drawstyle="steps-post",
            )  # fmt: skip
    panel.set_ylim(0, 1.04)
    panel.set_ylabel("share of runs")
    panel.set_xlabel(label)


def check(name: str) -> None:
    """Raises a UserError that names the figures that there are."""
    if name not in NAMES:
        meant = nearest(name, NAMES, f"there is {', '.join(NAMES)}")
        raise UserError(f"there is no figure '{name}' of many runs; {meant}")


def figure(name: str, frame: pl.DataFrame, number: Number | None = None) -> Figure:
    """Draws one of NAMES as a figure of its own."""
    check(name)
    made, (panel,) = shared.subplots(1, 2.8)
    if name == "pantheon":
        pantheon(panel, frame)
    else:
        {"box": box, "cdf": cdf}[name](panel, frame, number or Number("value", ""))
    shared.legend(made)
    return made
