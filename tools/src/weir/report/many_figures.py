# SPDX-License-Identifier: BSD-3-Clause
"""Figures of many runs, each a function from a tidy frame to a panel.

`pantheon` takes a row per run: name, delay_ns and goodput_bps; `box` and `cdf` a row per value:
name and value. Rows of one name are of one kind, such as a congestion control, and differ in their
seed. What is not known is null or NaN, and is not drawn: a name without a number keeps its place.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from weir.analysis import metrics, windows
from weir.base import configs, units
from weir.base.errors import UserError, nearest
from weir.report import figure as values
from weir.report import theme
from weir.report.figure import Axis, Figure, Label, Mark, Panel, Points, ends, floats
from weir.report.figures import rows_axis
from weir.report.scene import maximum
from weir.report.theme import INK, Style

NAMES = {
    "pantheon": "Goodput of each run against its 95th percentile of one-way delay. A small"
    " mark is a run, a large one the mean of a kind, and an ellipse one standard deviation.",
    "box": "A number of all runs. A box has the quartiles of a kind; rings are what lies apart.",
    "cdf": "A number of all runs. A line is its distribution in a kind of run.",
}
NAMES_MAX = 40
LOG_FROM = 10.0  # delays that span more are on a logarithmic axis
APART = (0.12, 0.06)  # shares of the axes that a name takes
MEAN_SIZE = 5.5  # of a mean's marker, in points
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
            (theme.style(cc).label + name.removeprefix(cc) if name.startswith(cc) else name, cc)
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


def pantheon(points: pl.DataFrame) -> Panel:
    """Returns a dot per run, and each name's mean and ellipse of one standard deviation.

    As in Pantheon's reports: less delay to the right, so that better is up and to the right.
    """
    known = points.filter(pl.col("delay_ns").is_finite() & pl.col("goodput_bps").is_finite())
    if known.height == 0:
        raise UserError("no run has both a goodput and a one-way delay", 1)
    slow, slow_unit = units.step(maximum(known, "delay_ns"), units.TIME_STEPS)
    fast, fast_unit = units.step(maximum(known, "goodput_bps"), units.RATE_STEPS)
    scaled = points.with_columns(x=pl.col("delay_ns") / slow, y=pl.col("goodput_bps") / fast)
    marks: list[Mark] = []
    for style, own in kinds(scaled):
        marks += kind(style, floats(own["x"]), floats(own["y"]))
    label = f"95th percentile of one-way delay ({slow_unit}), less to the right"
    x = delay_axis(label, floats(known["delay_ns"]) / slow)
    panel = Panel(x, Axis(f"goodput ({fast_unit})", 0), marks)
    return replace(panel, marks=[*marks, *names_of_means(panel)])


def kind(style: Style, x: metrics.Floats, y: metrics.Floats) -> list[Mark]:
    """Returns the runs of one name: dots, their mean and its ellipse."""
    one = windows.ellipse(x, y)
    if one is None:
        return []
    marks: list[Mark] = []
    if np.ptp(one.contour_x) > 0 or np.ptp(one.contour_y) > 0:
        marks.append(values.Polygon(one.contour_x, one.contour_y, style))
    both = np.isfinite(x) & np.isfinite(y)
    mean = Points(floats(one.x), floats(one.y), style, size=MEAN_SIZE)
    return [*marks, mean, Points(x[both], y[both], style, size=1.8)]  # the key has the mean's


def names_of_means(panel: Panel) -> list[Mark]:
    """Returns the names of the means that stand apart; the key has all of them."""
    means = [m for m in panel.marks if isinstance(m, Points) and m.size == MEAN_SIZE]
    at = np.array([[mark.x[0], mark.y[0]] for mark in means])
    places = at.copy()
    for column, (axis, (low, high)) in enumerate(zip((panel.x, panel.y), ends(panel), strict=True)):
        scale = np.log if axis.scale == "log" else np.asarray
        places[:, column] = (scale(at[:, column]) - scale(low)) / (scale(high) - scale(low))
    return [
        Label(x, y, mark.style.label, size=6, away=(4, 3), style=Style(mark.style.label, INK, ""))
        for mark, (x, y), place in zip(means, at.tolist(), places, strict=True)
        if (np.abs(places - place) < APART).all(axis=1).sum() == 1
    ]


def delay_axis(label: str, delays: metrics.Floats) -> Axis:
    """Returns an axis from the longest to the shortest, logarithmic if they are far apart."""
    low, high = float(delays.min()), float(delays.max())
    if low > 0 and high > LOG_FROM * low:
        return Axis(label, low / 1.3, high * 1.3, "log", reversed=True)
    room = 0.1 * (high - low) or 0.1 * high or 1.0
    return Axis(label, low - room, high + room, reversed=True)


def parts(samples: pl.DataFrame) -> list[tuple[Style, metrics.Floats]]:
    """Returns the known values of each name."""
    found = [
        (style, own["value"].cast(pl.Float64).fill_nan(None).drop_nulls().to_numpy())
        for style, own in kinds(samples)
    ]
    if not any(known.size for _, known in found):
        raise UserError("no run has this number", 1)
    return found


def scaled(samples: pl.DataFrame, number: Number) -> tuple[list[tuple[Style, metrics.Floats]], str]:
    """Returns each name's values in the unit that reads best, and the axis's label."""
    found, unit, divisor = parts(samples), number.unit, 1.0
    if unit in units.STEPS:
        largest = max(float(np.abs(known).max(initial=0)) for _, known in found)
        divisor, unit = units.step(largest, units.STEPS[unit])
    label = f"{number.label} ({unit})" if unit else number.label
    return [(style, known / divisor) for style, known in found], label


def box(samples: pl.DataFrame, number: Number) -> Panel:
    """Returns quartiles and median of each name; whiskers end within 1.5 of their distance.

    What is beyond them is a ring; few values are dots beside.
    """
    found, label = scaled(samples, number)
    marks: list[Mark] = []
    for place, (style, known) in enumerate(found):
        plain = Style("", style.colour, "o")
        if known.size:
            marks.append(values.Box(place, known, plain))
        if 0 < known.size <= DOTS_MAX:
            marks.append(Points(np.full(known.size, place + 0.36), known, plain, size=1.8))
    x = rows_axis([style.label for style, _ in found])
    bottom = min(0.0, ends(Panel(x, Axis(), marks))[1][0])
    return Panel(x, Axis(label, bottom), marks)


def cdf(samples: pl.DataFrame, number: Number) -> Panel:
    """Returns the share of each name's values that are at most x."""
    found, label = scaled(samples, number)
    marks = []
    for style, known in found:
        x, share = metrics.ecdf(known)
        if x.size:
            edges = np.append(x[0], x), np.append(0.0, share)
            marks.append(values.Line(*edges, style, steps="post"))
    return Panel(Axis(label), Axis("share of runs", 0, 1.04), marks)


def check(name: str) -> None:
    """Raises a UserError that names the figures that there are."""
    if name not in NAMES:
        meant = nearest(name, NAMES, f"there is {', '.join(NAMES)}")
        raise UserError(f"there is no figure '{name}' of many runs; {meant}")


def figure(name: str, frame: pl.DataFrame, number: Number | None = None) -> Figure:
    """Returns one of NAMES as a figure of its own."""
    check(name)
    if name == "pantheon":
        made = pantheon(frame)
    else:
        made = {"box": box, "cdf": cdf}[name](frame, number or Number("value", ""))
    return Figure([made], height_in=2.8, name=name, caption=NAMES[name])
