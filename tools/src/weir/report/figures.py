# SPDX-License-Identifier: BSD-3-Clause
"""Figures: frames in, a matplotlib Figure out. What is plotted is computed in metrics.py."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import AutoMinorLocator, MaxNLocator

from weir.analysis import metrics
from weir.base import units
from weir.base.names import own_names
from weir.report import figure as values
from weir.report import scene as parts
from weir.report import theme
from weir.report.axes import (
    BANDS,
    FEW,
    WIDTH_IN,
    Scene,
    bands,
    flow_styles,
    legend,
    maximum,
    split_by,
    steady,
    subplots,
    time_axis,
)
from weir.report.axes import (
    LEVEL as LEVEL_OLD,
)
from weir.report.figure import LEVEL, Line, Mark, Rule, floats
from weir.report.theme import Style

ROWS = 30  # as many flows have a bar each where each is a group
LINKS_DRAWN = 4
ABOVE_LEAST = 1e-12  # a share on a logarithmic axis, which has no 0
EVENTS_ON_LINE = 150  # more would hide the line


def _over_time(
    interval: pl.DataFrame, key: str, columns: str
) -> tuple[npt.NDArray[np.float64], dict[int, npt.NDArray[np.float64]]]:
    """Returns an array per key over common times; it is 0 where a key has no record."""
    wide = interval.pivot(on=key, index="time_s", values=columns, aggregate_function="sum")
    gaps = pl.DataFrame({"time_s": np.asarray(metrics.gaps(interval), dtype=np.float64).ravel()})
    wide = pl.concat([wide, gaps], how="diagonal").sort("time_s").fill_null(0)
    names = [name for name in wide.columns if name != "time_s"]
    return wide["time_s"].to_numpy(), {int(name): wide[name].to_numpy() for name in names}


def throughput(
    interval: pl.DataFrame, flows: pl.DataFrame, rates: pl.DataFrame | None, scene: Scene
) -> Figure:
    """Draws goodput over time: stacked flows if they are few, else groups and the flows' spread.

    rates: the bottleneck's rate_bps at the end of each interval, at end_s.
    """
    few = flows.height <= FEW
    figure, axes = subplots(1 if few else 2)
    key = "flow_id" if few else "group"
    time, series = _over_time(interval, key, "goodput_bps")
    by_flow = flow_styles(flows, scene)
    order = sorted(series)
    styles = [by_flow[k] if few else scene.group(k) for k in order]
    fastest = 0.0 if rates is None else maximum(rates, "rate_bps")
    top = max(float(np.sum(list(series.values()), axis=0).max()), fastest)
    divisor, unit = units.step(top, units.RATE_STEPS)
    axes[0].stackplot(
        time,
        [series[k] / divisor for k in order],
        colors=[style.colour for style in styles],
        labels=[style.label for style in styles],
        edgecolor="white",
        linewidth=0.3,
        alpha=0.85,
    )
    if rates is not None and fastest > 0:
        ends, rate = rates["end_s"].to_numpy(), rates["rate_bps"].to_numpy()
        slowest, span = float(rate.min()), units.rate(fastest)
        axes[0].step(
            [0, *ends],
            [rate[0] / divisor, *(rate / divisor)],
            where="pre",
            label=f"link, {span if slowest == fastest else f'{units.rate(slowest)} to {span}'}",
            **LEVEL_OLD,
        )
    axes[0].set_ylabel(f"goodput, stacked ({unit})")
    time_axis(axes[0], scene)
    if top > 0:  # else nothing arrived, and there is no link
        axes[0].set_ylim(top=1.1 * top / divisor)
    if not few:
        spread = metrics.spread_over_time(interval, "goodput_bps", 0.05, 0.95)
        shown = f"{'high' if len(order) <= BANDS else 'median'}_goodput_bps"
        divisor, unit = units.step(maximum(spread, shown), units.RATE_STEPS)
        bands(axes[1], spread, divisor, scene)
        axes[1].set_ylabel(f"goodput per flow ({unit})")
        time_axis(axes[1], scene)
        steady(axes[1], scene, spread, shown, (divisor, unit))
    legend(figure)
    return figure


def rtt(
    interval: pl.DataFrame, flows: pl.DataFrame, base_ns: float | None, scene: Scene
) -> values.Figure:
    """Shows round-trip time over time: per flow if they are few, else median and band per group."""
    measured = interval.filter(pl.col("rtt_samples") > 0)
    divisor, unit = units.step(maximum(measured, "rtt_mean_ns"), units.TIME_STEPS)
    shown, column, marks = measured, "rtt_mean_ns", list[Mark]()
    if flows.height <= FEW:
        for flow, style in flow_styles(flows, scene).items():
            part = metrics.with_gaps(measured.filter(pl.col("flow_id") == flow)).sort("time_s")
            marks.append(Line(floats(part["time_s"]), floats(part["rtt_mean_ns"]) / divisor, style))
    else:
        shown = metrics.spread_over_time(measured, "rtt_mean_ns", 0.05, 0.95)
        few_groups = shown["group"].n_unique() <= BANDS
        column = f"{'high' if few_groups else 'median'}_rtt_mean_ns"
        marks = parts.bands(shown, divisor, scene)
    base = (base_ns or 0.0) / divisor
    if base_ns:
        level = replace(LEVEL, label=f"propagation, {units.time(base_ns)}")
        marks.append(Rule(base, level))
    panel = parts.over_time(scene, values.Axis(f"RTT ({unit})"), marks)
    panel = parts.steady(scene, panel, shown, column, (divisor, unit), base)
    # From a little below the propagation delay: what is above it is the queue.
    top = values.ends(panel)[1][1]
    y = replace(panel.y, low=max(0.0, base - 0.2 * (top - base)))
    return values.Figure([replace(panel, y=y)], height_in=2.1)


def queue(links: pl.DataFrame, scene: Scene) -> Figure:
    """Draws backlog and queueing delay over time: mean of each interval, its maximum behind it."""
    figure, axes = subplots(2)
    panels = (
        (axes[0], "queue_mean_pkts", "queue_max_pkts", (1.0, "packets"), "queue"),
        (
            axes[1],
            "sojourn_mean_ns",
            "sojourn_max_ns",
            units.step(maximum(links, "sojourn_max_ns"), units.TIME_STEPS),
            "queueing delay",
        ),
    )
    several = links["link"].n_unique() > 1 or len(scene.link_styles) > 0
    for panel, mean, largest, (divisor, unit), title in panels:
        for index, part in split_by(links.sort("time_s"), "link"):
            style = _link_style(index, scene) if several else theme.style("", "", 0)
            time = part["time_s"].to_numpy()
            panel.fill_between(
                time,
                part[mean] / divisor,
                part[largest] / divisor,
                color=style.colour,
                alpha=0.18,
                linewidth=0,
                label=None if several else "maximum",
            )
            panel.plot(
                time,
                part[mean] / divisor,
                color=style.colour,
                linestyle=style.dash,
                label=style.label if several else "mean",
            )
        for kind in () if several else ("drops", "marks"):
            _events_on(panel, links, kind, largest, divisor)
        panel.set_ylabel(f"{title} ({unit})")
        time_axis(panel, scene)
        steady(panel, scene, links, largest, (divisor, unit))
    legend(figure)
    return figure


def _events_on(panel: Axes, links: pl.DataFrame, kind: str, at: str, divisor: float) -> None:
    """Marks the intervals that had drops or CE marks, the ones with the most if there are many."""
    found = links.filter(pl.col(kind) > 0).sort(kind, descending=True).head(EVENTS_ON_LINE)
    if found.height == 0:
        return
    style, found = theme.style(kind), found.sort("time_s")
    panel.plot(
        found["time_s"],
        found[at] / divisor,
        style.marker,
        color=style.colour,
        markersize=3,
        markeredgewidth=0,
        label=f"intervals with {style.label}",
    )


def _link_style(index: int, scene: Scene) -> Style:
    if index < len(scene.link_styles):
        return scene.link_styles[index]
    name = scene.links[index] if index < len(scene.links) else f"link {index}"
    return theme.style(name, name, index)


@dataclass(frozen=True)
class Cdf:
    """A distribution of queueing delay at one link."""

    label: str
    delay_ns: npt.NDArray[np.float64]
    share: npt.NDArray[np.float64]
    points: Sequence[tuple[str, float, float]] = ()  # of every packet: name, delay_ns, share
    style: Style | None = None  # else the next of the cycle
    binned: bool = False  # it rises within bins, from metrics.within_bins; else at values


def delay_cdf(distributions: Sequence[Cdf]) -> Figure:
    """Draws the distribution of queueing delay, and its tail on a logarithmic scale."""
    figure, (left, right) = subplots(2)
    longest = max(max(d.delay_ns[-1], *(p[1] for p in d.points), 0.0) for d in distributions)
    divisor, unit = units.step(float(longest), units.TIME_STEPS)
    for index, d in enumerate(distributions):
        name = d.label if len(distributions) > 1 else ""
        style = d.style or theme.style(name, None, index)
        x, share = _thin(d.delay_ns / divisor, d.share)
        label = d.label if len(distributions) > 1 else None
        dash = d.style.dash if d.style else theme.DASHES[index % len(theme.DASHES)]
        drawn: dict[str, Any] = {"color": style.colour, "linestyle": dash}
        drawn["drawstyle"] = "default" if d.binned else "steps-post"
        left.plot([x[0], *x], [0, *share], label=label, **drawn)
        right.plot([0, *x], [1, *np.maximum(1 - share, ABOVE_LEAST)], **drawn)
        for (name, at, q), filled in zip(d.points, (True, False), strict=False):
            line_style: dict[str, Any] = {
                "marker": "o",
                "markersize": 4,
                "linestyle": "none",
                "color": style.colour,
                "markerfacecolor": style.colour if filled else "white",
            }
            label = f"{name} {units.time(at)}" if len(distributions) == 1 else None
            left.plot([at / divisor], [q], label=label, **line_style)
            if q < 1:
                right.plot([at / divisor], [1 - q], **line_style)
    if len(distributions) > 1:  # the key of what is marked on each
        names = {name: None for d in distributions for name, *_ in d.points[:2]}
        for name, face in zip(names, (theme.INK, "white"), strict=False):
            key: dict[str, Any] = {"color": theme.INK, "markerfacecolor": face, "markersize": 4}
            left.plot([], [], "o", label=name, **key)
    left.set_ylabel("share of packets")
    left.set_ylim(0, 1.04)
    right.set_ylabel("share of packets above")
    right.set_yscale("log")
    smallest = min(
        (1 - d.share)[(1 - d.share) > ABOVE_LEAST].min(initial=0.01) for d in distributions
    )
    right.set_ylim(max(smallest / 2, 1e-8), 1)
    for axes in (left, right):
        axes.set_xlabel(f"queueing delay ({unit})")
        if longest > 0:
            axes.set_xlim(0, 1.05 * longest / divisor)
    legend(figure)
    return figure


def _thin(
    x: npt.NDArray[np.float64], share: npt.NDArray[np.float64], points: int = 600
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Returns as many points as a figure can show: half by share, half by log tail."""
    if x.size <= 2 * points:
        return x, share
    even = np.searchsorted(share, np.linspace(0, 1, points))
    tail = np.searchsorted(share, 1 - np.geomspace(1, max(1 - share[-2], 1e-9), points))
    keep = np.unique(np.clip(np.concatenate([[0], even, tail, [x.size - 1]]), 0, x.size - 1))
    return x[keep], share[keep]


def shares(flows: pl.DataFrame, scene: Scene) -> Figure:
    """Draws each flow's goodput over the mean of all: as a distribution, and as a histogram."""
    mean = _mean(flows, "goodput_bps")
    relative = flows.with_columns(share=pl.col("goodput_bps") / (mean or 1.0))
    alone = flows["group"].n_unique() == flows.height
    if flows.height <= (ROWS if alone else FEW):
        return _shares_of_few(relative, mean, scene)
    figure, (left, right) = subplots(2)
    largest = maximum(relative, "share")
    edges = np.linspace(0, max(largest * 1.0001, 1.1), 61)
    groups = split_by(relative, "group")
    styles = [scene.group(group) for group, _ in groups]
    parts = [np.sort(part["share"].to_numpy()) for _, part in groups]
    for style, own in zip(styles, parts, strict=True):
        left.plot(
            [own[0], *own],
            np.arange(own.size + 1) / own.size,
            color=style.colour,
            linestyle=style.dash,
            label=style.label,
            drawstyle="steps-post",
        )
    colours = [style.colour for style in styles]
    right.hist(parts, bins=edges.tolist(), stacked=True, color=colours)
    left.set_ylim(0, 1.04)
    left.set_ylabel("share of flows")
    for panel in (left, right):
        panel.axvline(1, **LEVEL_OLD)
        panel.set_xlim(0, 1.04 * edges[-1])
        panel.set_xlabel(f"goodput / mean goodput (mean: {units.rate(mean)})")
    right.set_ylabel("flows")
    right.yaxis.set_major_locator(MaxNLocator(integer=True))
    legend(figure)
    return figure


def _mean(frame: pl.DataFrame, column: str) -> float:
    value = frame[column].mean()
    return float(value) if isinstance(value, int | float) else 0.0


def _shares_of_few(relative: pl.DataFrame, mean: float, scene: Scene) -> Figure:
    figure, (axes,) = subplots(1, 0.75 + 0.24 * relative.height)
    ordered = relative.sort("group", "flow_id", descending=True)
    styles = flow_styles(relative, scene)
    bar_styles = [styles[int(flow)] for flow in ordered["flow_id"]]
    axes.barh(
        [s.label for s in bar_styles],
        ordered["share"],
        color=[s.colour for s in bar_styles],
        height=0.62,
    )
    axes.axvline(1, **LEVEL_OLD)
    for row, (bps, share) in enumerate(ordered.select("goodput_bps", "share").iter_rows()):
        text = f" {units.rate(bps)}"
        axes.annotate(text, (max(share, 1.0), row), va="center", fontsize=8)
    axes.set_xlim(0, 1.2 * max(1.0, maximum(ordered, "share")))
    axes.grid(visible=False)
    axes.tick_params(axis="y", length=0)
    axes.set_xlabel(f"goodput / mean goodput (mean: {units.rate(mean)})")
    return figure


def base_rtts(flows: pl.DataFrame, scene: Scene) -> Figure:
    """Draws goodput of each flow against its base RTT, base_rtt_ns; none is 0."""
    figure, (axes,) = subplots(1)
    divisor, unit = units.step(maximum(flows, "base_rtt_ns"), units.TIME_STEPS)
    rate, rate_unit = units.step(maximum(flows, "goodput_bps"), units.RATE_STEPS)
    for group, own in split_by(flows, "group"):
        style = scene.group(group)
        axes.plot(
            own["base_rtt_ns"].to_numpy() / divisor,
            own["goodput_bps"].to_numpy() / rate,
            color=style.colour,
            marker=style.marker or "o",
            markersize=3.5,
            linestyle="none",
            label=style.label,
        )
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel(f"base RTT ({unit})")
    axes.set_ylabel(f"goodput ({rate_unit})")
    legend(figure)
    return figure


def cwnd(
    samples: pl.DataFrame, chosen: Mapping[int, str], scene: Scene, label: str = "cwnd"
) -> Figure:
    """Draws the congestion windows of a few flows, chosen by metrics.typical_flows.

    samples has time_s, flow_id, group and cwnd_segs.
    """
    figure, (axes,) = subplots(1, 2.1)
    part = samples.filter(pl.col("flow_id").is_in(list(chosen)))
    flows = part.select("flow_id", "group").unique().sort("flow_id")
    for flow, style in flow_styles(flows, scene, chosen).items():
        own = part.filter(pl.col("flow_id") == flow).sort("time_s")
        axes.plot(
            own["time_s"],
            own["cwnd_segs"],
            color=style.colour,
            linestyle=style.dash,
            label=style.label,
            linewidth=0.9,
        )
    axes.set_ylabel(f"{label} (segments)")
    time_axis(axes, scene)
    steady(axes, scene, part, "cwnd_segs", (1.0, "segments"))
    legend(figure)
    return figure


def sequence(
    sent: pl.DataFrame,
    acked: pl.DataFrame,
    resent: pl.DataFrame,
    chosen: Mapping[int, str],
    scene: Scene,
) -> Figure:
    """Draws time-sequence graphs of a few flows, in bytes from each connection's first.

    All have time_s, flow_id and bytes: behind what was sent for the first time, acknowledged, and
    of what was sent again.
    """
    parts = {"sent": sent, "sent again": resent, "acknowledged": acked}
    rows = -(-len(chosen) // 2)
    figure = Figure(figsize=(WIDTH_IN, 0.4 + (1.7 * rows if len(chosen) > 1 else 2.2)))
    grid = figure.subplots(rows, min(2, len(chosen)), squeeze=False).ravel()
    for axes, (flow, role) in zip(grid, chosen.items(), strict=False):
        own = {name: part.filter(pl.col("flow_id") == flow) for name, part in parts.items()}
        divisor, unit = units.step(maximum(own["sent"], "bytes"), units.BYTE_STEPS)
        styles = {"sent": ("-", ""), "sent again": ("none", "."), "acknowledged": ("--", "")}
        for colour, (name, (dash, marker)) in zip(theme.CYCLE, styles.items(), strict=False):
            axes.plot(
                own[name]["time_s"],
                own[name]["bytes"] / divisor,
                color=colour,
                linestyle=dash,
                marker=marker,
                markersize=4,
                linewidth=0.9,
                label=name,
            )
        axes.set_title(scene.flow(flow) + (f", {role}" if role else ""))
        axes.set_ylabel(f"sequence number ({unit})")
        time_axis(axes, scene)
    for axes in grid[len(chosen) :]:
        axes.set_visible(False)
    legend(figure)
    return figure


# States of a flow, and the events that look the same and begin them.
RECOVERIES = {"recovery": ("recovery", "reduction"), "loss": ("after a timeout", "timeout")}


def states(episodes: pl.DataFrame, styles: Mapping[int, Style], scene: Scene) -> Figure:
    """Draws a row per flow, with a bar while it recovered; episodes of sections.recoveries."""
    figure, (axes,) = subplots(1, 0.75 + 0.24 * len(styles))
    labels = [style.label for style in styles.values()][::-1]
    rows = {flow: row for row, flow in enumerate(reversed(list(styles)))}
    for state, (label, event) in RECOVERIES.items():
        own = episodes.filter(pl.col("state") == state)
        if own.height > 0:
            axes.barh(
                [rows[flow] for flow in own["flow_id"]],
                own["to_s"] - own["from_s"],
                left=own["from_s"],
                height=0.62,
                color=theme.style(event).colour,
                label=label,
            )
    time_axis(axes, scene)
    axes.set_yticks(range(len(labels)), labels)
    axes.set_ylim(-0.6, len(labels) - 0.4)
    axes.grid(visible=False)
    legend(figure)
    return figure


@dataclass(frozen=True)
class Quantity:
    """A column of numbers, its name in words and its unit."""

    column: str
    label: str
    unit: str

    @staticmethod
    def of(column: str, name: str | None = None) -> Quantity:
        """Returns the quantity of a name, whose end says its unit."""
        name = name or column
        return Quantity(column, units.label_of(name), units.unit_of(name))


def panels(
    quantities: Sequence[Quantity], series: Sequence[tuple[Style, pl.DataFrame]], scene: Scene
) -> Figure:
    """Draws a panel per quantity over time, with a line per series; their frames have time_s."""
    rows = -(-len(quantities) // 2)
    figure = Figure(figsize=(WIDTH_IN, 0.4 + 1.5 * rows if len(quantities) > 1 else 2.2))
    grid = figure.subplots(rows, min(2, len(quantities)), squeeze=False).ravel()
    for place, (axes, quantity) in enumerate(zip(grid, quantities, strict=False)):
        column = quantity.column
        finite = [(style, f.filter(pl.col(column).is_finite())) for style, f in series]
        divisor, unit = 1.0, quantity.unit
        if unit in units.STEPS:
            top = max((maximum(frame, column) for _, frame in finite), default=0.0)
            divisor, unit = units.step(top, units.STEPS[unit])
        for style, frame in finite:
            axes.plot(
                frame["time_s"],
                frame[column] / divisor,
                color=style.colour,
                linestyle=style.dash,
                linewidth=0.9,
                label=style.label if len(series) > 1 else None,
            )
        axes.set_ylabel(f"{quantity.label} ({unit})" if unit else quantity.label)
        time_axis(axes, scene)
        if place + 2 < len(quantities):  # another below
            axes.set_xlabel("")
    for axes in grid[len(quantities) :]:
        axes.set_visible(False)
    legend(figure)
    return figure


def events(counts: pl.DataFrame, scene: Scene) -> Figure:
    """Draws events by kind (a name of theme.STYLES): per_s in a bin width_s wide around time_s."""
    kinds = sorted(counts["kind"].unique())
    figure = Figure(figsize=(WIDTH_IN, 0.55 + 0.72 * len(kinds)))
    panels = figure.subplots(len(kinds), 1, squeeze=False, sharex=True)[:, 0]
    for panel, kind in zip(panels, kinds, strict=True):
        style = theme.style(kind)
        part = counts.filter(pl.col("kind") == kind).sort("time_s")
        panel.bar(
            part["time_s"],
            part["per_s"],
            width=part["width_s"],
            color=style.colour,
            linewidth=0,
        )
        panel.set_title(style.label, loc="left", pad=2)
        panel.set_ylabel("per second")
        panel.yaxis.set_major_locator(MaxNLocator(3, integer=True))
        panel.yaxis.set_minor_locator(AutoMinorLocator(1))
        panel.set_xlim(0, scene.duration_s)
    panels[-1].set_xlabel("time (s)")
    return figure


def completion(times: pl.DataFrame, scene: Scene) -> Figure:
    """Draws completion time by size, median and 99th percentile; slowdown, where any is known.

    times: see completion_times; none of its sizes is 0.
    """
    known = times["slowdown_mean"].count() > 0
    figure, panels = subplots(2 if known else 1)
    divisor, unit = units.step(float(maximum(times, "p99_ns")), units.TIME_STEPS)
    for group, own in split_by(times, "group"):
        style = scene.group(group)
        size = own["mean_bytes"].to_numpy() / 1e3
        drawn: dict[str, Any] = {"color": style.colour, "marker": "o", "markersize": 3}
        panels[0].plot(size, own["p50_ns"].to_numpy() / divisor, label=style.label, **drawn)
        panels[0].plot(size, own["p99_ns"].to_numpy() / divisor, linestyle=":", **drawn)
        if known:
            panels[1].plot(size, own["slowdown_mean"].to_numpy(), **drawn)
            panels[1].plot(size, own["slowdown_p99"].to_numpy(), linestyle=":", **drawn)
    for axes, name in zip(panels, (f"completion time ({unit})", "slowdown"), strict=False):
        axes.set_ylabel(name)
        axes.set_xlabel("size (kB)")
        axes.set_xscale("log")
        axes.set_yscale("log")
    legend(figure)
    return figure


def __dir__() -> list[str]:
    return own_names(globals())
