# SPDX-License-Identifier: BSD-3-Clause
"""Statistics of a trace: mean, percentiles over time, outages; on a terminal and as a figure."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from rich.console import Console

from weir.base import terminal, units
from weir.base.page import Table
from weir.report import theme
from weir.report.figure import Axis, Figure, Line, Panel, beside
from weir.report.theme import Style
from weir.trace.steps import NS_PER_S, Floats, Steps

QUANTILES = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)
BARS = " ▁▂▃▄▅▆▇█"
LINE = 72  # characters of a line of bars


def percentiles(values: Floats, lengths: Floats) -> dict[str, float]:
    """Returns mean, min, QUANTILES and max of values, weighted by how long each holds."""
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(lengths[order]) / lengths.sum()
    places = np.minimum(np.searchsorted(reached, np.array(QUANTILES) - 1e-12), len(values) - 1)
    named = {f"p{100 * q:g}": values[order][i] for q, i in zip(QUANTILES, places, strict=True)}
    least, most = float(values.min()), float(values.max())
    mean = float(np.average(values, weights=lengths))
    return {"mean": mean, "min": least, **{k: float(v) for k, v in named.items()}, "max": most}


def outages(steps: Steps) -> dict[str, float]:
    """Returns how often, how long in all and at most the rate is 0."""
    down = np.concatenate(([False], steps.rate_bps == 0, [False]))
    edges = np.append(steps.at_ns, steps.end_ns)
    begins, ends = edges[down[1:] & ~down[:-1]], edges[~down[1:] & down[:-1]]
    long_s = (ends - begins) / NS_PER_S
    return {
        "count": len(long_s),
        "total_s": float(long_s.sum()),
        "longest_s": float(long_s.max(initial=0.0)),
    }


@dataclass
class Statistics:
    """Statistics of a trace, with stable names; what the trace does not have is None."""

    duration_s: float
    steps: int
    rate_bps: dict[str, float]
    delay_ns: dict[str, float] | None
    loss: float | None
    outages: dict[str, float]


def of(steps: Steps) -> Statistics:
    """Returns all statistics of a trace."""
    lengths = steps.lengths_ns
    return Statistics(
        steps.end_ns / NS_PER_S,
        len(steps.at_ns),
        percentiles(steps.rate_bps, lengths),
        percentiles(steps.delay_ns, lengths) if steps.delay_ns.any() else None,
        float(np.average(steps.loss, weights=lengths)) if steps.loss.any() else None,
        outages(steps),
    )


def bars(steps: Steps) -> str:
    """Returns the mean rate over time, as a line of blocks; a blank is an outage."""
    rates = steps.mean_rates(np.linspace(0.0, steps.end_ns, LINE + 1))
    heights = np.ceil(rates / rates.max() * (len(BARS) - 1) - 1e-9).astype(int)
    return "".join(BARS[height] for height in heights)


def show(steps: Steps, screen: Console) -> None:
    """Prints the statistics as a table, above the rate over time."""
    found = of(steps)
    delays = found.delay_ns or {}
    rows = [
        [name, units.rate(v), units.time(delays.get(name))] for name, v in found.rate_bps.items()
    ]
    terminal.print_table(screen, Table(("over time", "rate", "delay"), rows))
    down = found.outages
    screen.print(bars(steps), highlight=False, markup=False)
    screen.print(
        f"{found.steps:,} steps in {units.time(steps.end_ns)};"
        f" loss {units.percent(found.loss)};"
        f" outages: {down['count']}, together {units.time(down['total_s'] * NS_PER_S)},"
        f" the longest {units.time(down['longest_s'] * NS_PER_S)}",
        soft_wrap=True,
        highlight=False,
    )


def figure(steps: Steps) -> Figure:
    """Shows rate and delay over time, and how much of the time the rate is below a value."""
    edges_s = np.append(steps.at_ns, steps.end_ns) / NS_PER_S
    time, blue = Axis("time (s)", 0, edges_s[-1], is_time=True), Style("", theme.BLUE, "")

    def held(values: Floats) -> list[Line]:
        return [Line(edges_s, np.append(values, values[-1]), blue, steps="post")]

    divisor, unit = units.step(float(steps.rate_bps.max()), units.RATE_STEPS)
    order = np.argsort(steps.rate_bps, kind="stable")
    reached = np.cumsum(steps.lengths_ns[order]) / steps.end_ns
    below = Line(steps.rate_bps[order] / divisor, reached, blue, steps="post")
    panels = [
        Panel(time, Axis(f"rate ({unit})", 0), held(steps.rate_bps / divisor)),
        Panel(Axis(f"rate ({unit})"), Axis("part of the time below", 0, 1), [below]),
    ]
    if steps.delay_ns.any():
        divisor, unit = units.step(float(steps.delay_ns.max()), units.TIME_STEPS)
        panels.append(Panel(time, Axis(f"delay ({unit})"), held(steps.delay_ns / divisor)))
    return beside(*panels)
