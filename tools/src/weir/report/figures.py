# SPDX-License-Identifier: BSD-3-Clause
"""Figures of a run: frames in, a figure out. What is shown is computed in metrics.py."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import polars as pl

from weir.analysis import metrics
from weir.base import units
from weir.base.names import own_names
from weir.report import figure as values
from weir.report import theme
from weir.report.figure import Axis, Figure, Floats, Line, Mark, Panel, Points, beside, floats
from weir.report.scene import (
    BANDS,
    FEW,
    Scene,
    bands,
    flow_styles,
    maximum,
    over_time,
    split_by,
    steady,
    time_axis,
)
from weir.report.theme import Style

ROWS = 30  # as many flows have a bar each where each is a group
LINKS_DRAWN = 4
ABOVE_LEAST = 1e-12  # a share on a logarithmic axis, which has no 0
MEAN = values.Rule(1, replace(values.LEVEL, label="mean of all flows"), upright=True)
EVENTS_ON_LINE = 150  # more would hide the line
THIN = 0.9  # width of lines that cross each other often


def _summed_over_time(
    interval: pl.DataFrame, key: str, columns: str
) -> tuple[Floats, dict[int, Floats]]:
    """Returns an array per key over common times; it is 0 where a key has no record."""
    wide = interval.pivot(on=key, index="time_s", values=columns, aggregate_function="sum")
    gaps = pl.DataFrame({"time_s": np.asarray(metrics.gaps(interval), dtype=np.float64).ravel()})
    wide = pl.concat([wide, gaps], how="diagonal").sort("time_s").fill_null(0)
    names = [name for name in wide.columns if name != "time_s"]
    return floats(wide["time_s"]), {int(name): floats(wide[name]) for name in names}


def throughput(
    interval: pl.DataFrame, flows: pl.DataFrame, rates: pl.DataFrame | None, scene: Scene
) -> Figure:
    """Shows goodput over time: stacked flows if they are few, else groups and the flows' spread.

    rates: the bottleneck's rate_bps at the end of each interval, at end_s.
    """
    few = flows.height <= FEW
    time, series = _summed_over_time(interval, "flow_id" if few else "group", "goodput_bps")
    by_flow = flow_styles(flows, scene)
    order = sorted(series)
    styles = [by_flow[k] if few else scene.group(k) for k in order]
    fastest = 0.0 if rates is None else maximum(rates, "rate_bps")
    top = max(float(np.sum(list(series.values()), axis=0).max()), fastest)
    divisor, unit = units.step(top, units.RATE_STEPS)
    marks: list[Mark] = [*values.stacked(time, [series[k] / divisor for k in order], styles)]
    if rates is not None and fastest > 0:
        at, rate = floats(rates["end_s"]), floats(rates["rate_bps"])
        slowest, span = float(rate.min()), units.rate(fastest)
        said = span if slowest == fastest else f"{units.rate(slowest)} to {span}"
        link = replace(values.LEVEL, label=f"link, {said}")
        edges = np.concatenate([[0.0], at]), np.concatenate([rate[:1], rate]) / divisor
        marks.append(Line(*edges, link, steps="pre", width=0.8))
    # Where nothing arrived and there is no link, the axis ends where it likes.
    y = Axis(f"goodput, stacked ({unit})", high=1.1 * top / divisor if top > 0 else None)
    panels = [over_time(scene, y, marks)]
    if not few:
        spread = metrics.spread_over_time(interval, "goodput_bps", 0.05, 0.95)
        shown = f"{'high' if len(order) <= BANDS else 'median'}_goodput_bps"
        divisor, unit = units.step(maximum(spread, shown), units.RATE_STEPS)
        y = Axis(f"goodput per flow ({unit})")
        each = over_time(scene, y, bands(spread, divisor, scene))
        panels.append(steady(scene, each, spread, shown, (divisor, unit)))
    return beside(*panels)


def rtt(interval: pl.DataFrame, flows: pl.DataFrame, base_ns: float | None, scene: Scene) -> Figure:
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
        marks = bands(shown, divisor, scene)
    base = (base_ns or 0.0) / divisor
    if base_ns:
        marks.append(
            values.Rule(base, replace(values.LEVEL, label=f"propagation, {units.time(base_ns)}"))
        )
    panel = over_time(scene, Axis(f"RTT ({unit})"), marks)
    panel = steady(scene, panel, shown, column, (divisor, unit), base)
    # From a little below the propagation delay: what is above it is the queue.
    top = values.ends(panel)[1][1]
    y = replace(panel.y, low=max(0.0, base - 0.2 * (top - base)))
    return Figure([replace(panel, y=y)], height_in=2.1)


def queue(links: pl.DataFrame, scene: Scene) -> Figure:
    """Shows backlog and queueing delay over time: mean of each interval, its maximum behind it."""
    delay = units.step(maximum(links, "sojourn_max_ns"), units.TIME_STEPS)
    return beside(
        _queue_panel(
            links, scene, "queue", ("queue_mean_pkts", "queue_max_pkts"), (1.0, "packets")
        ),
        _queue_panel(links, scene, "queueing delay", ("sojourn_mean_ns", "sojourn_max_ns"), delay),
    )


def _queue_panel(
    links: pl.DataFrame,
    scene: Scene,
    title: str,
    columns: tuple[str, str],
    scale: tuple[float, str],
) -> Panel:
    """Returns a panel with the mean and the largest values, in columns; scale: see steady."""
    mean, largest = columns
    divisor, unit = scale
    several = links["link"].n_unique() > 1 or len(scene.link_styles) > 0
    marks: list[Mark] = []
    for index, part in split_by(links.sort("time_s"), "link"):
        style = _link_style(index, scene) if several else theme.style("", "mean", 0)
        time, low, high = (floats(part[name]) for name in ("time_s", mean, largest))
        above = style if several else replace(style, label="maximum")
        marks.append(values.Band(time, low / divisor, high / divisor, above))
        marks.append(Line(time, low / divisor, style))
    for kind in () if several else ("drops", "marks"):
        marks += _events_on(links, kind, largest, divisor)
    panel = over_time(scene, Axis(f"{title} ({unit})"), marks)
    return steady(scene, panel, links, largest, scale)


def _events_on(links: pl.DataFrame, kind: str, at: str, divisor: float) -> list[Mark]:
    """Marks the intervals that had drops or CE marks, the ones with the most if there are many."""
    found = links.filter(pl.col(kind) > 0).sort(kind, descending=True).head(EVENTS_ON_LINE)
    if found.height == 0:
        return []
    style, found = theme.style(kind), found.sort("time_s")
    style = replace(style, label=f"intervals with {style.label}")
    return [Points(floats(found["time_s"]), floats(found[at]) / divisor, style, size=3)]


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
    """Shows the distribution of queueing delay, and its tail on a logarithmic scale."""
    longest = max(max(d.delay_ns[-1], *(p[1] for p in d.points), 0.0) for d in distributions)
    divisor, unit = units.step(float(longest), units.TIME_STEPS)
    left: list[Mark] = []
    right: list[Mark] = []
    several = len(distributions) > 1
    for index, d in enumerate(distributions):
        dash = theme.DASHES[index % len(theme.DASHES)]
        known = d.style or replace(theme.style(d.label if several else "", None, index), dash=dash)
        style = replace(known, label=d.label if several else "")
        x, share = _thin(d.delay_ns / divisor, d.share)
        above = np.maximum(1 - share, ABOVE_LEAST)
        steps: values.Steps = "" if d.binned else "post"
        left.append(Line(np.append(x[0], x), np.append(0.0, share), style, steps=steps))
        right.append(Line(np.append(0.0, x), np.append(1.0, above), style, steps=steps))
        for (name, at, q), hollow in zip(d.points, (False, True), strict=False):
            label = "" if several else f"{name} {units.time(at)}"
            dot, place = Style(label, style.colour, "o"), floats(at / divisor)
            left.append(Points(place, floats(q), dot, hollow=hollow))
            if q < 1:
                right.append(Points(place, floats(1 - q), dot, hollow=hollow))
    if several:  # the key of what is marked on each
        names = {name: None for d in distributions for name, *_ in d.points[:2]}
        for name, hollow in zip(names, (False, True), strict=False):
            left.append(
                Points(values.NONE, values.NONE, Style(name, theme.INK, "o"), hollow=hollow)
            )
    smallest = min(
        (1 - d.share)[(1 - d.share) > ABOVE_LEAST].min(initial=0.01) for d in distributions
    )
    x_axis = Axis(f"queueing delay ({unit})")
    if longest > 0:
        x_axis = replace(x_axis, low=0, high=1.05 * longest / divisor)
    least = max(float(smallest) / 2, 1e-8)
    return beside(
        Panel(x_axis, Axis("share of packets", 0, 1.04), left),
        Panel(x_axis, Axis("share of packets above", least, 1, "log"), right),
    )


def _thin(x: Floats, share: Floats, points: int = 600) -> tuple[Floats, Floats]:
    """Returns as many points as a figure can show: half by share, half by log tail."""
    if x.size <= 2 * points:
        return x, share
    even = np.searchsorted(share, np.linspace(0, 1, points))
    tail = np.searchsorted(share, 1 - np.geomspace(1, max(1 - share[-2], 1e-9), points))
    keep = np.unique(np.clip(np.concatenate([[0], even, tail, [x.size - 1]]), 0, x.size - 1))
    return x[keep], share[keep]


def shares(flows: pl.DataFrame, scene: Scene) -> Figure:
    """Shows each flow's goodput over the mean of all: as a distribution, and as a histogram."""
    mean = _mean(flows, "goodput_bps")
    relative = flows.with_columns(share=pl.col("goodput_bps") / (mean or 1.0))
    alone = flows["group"].n_unique() == flows.height
    if flows.height <= (ROWS if alone else FEW):
        return _shares_of_few(relative, mean, scene)
    edges = np.linspace(0, max(maximum(relative, "share") * 1.0001, 1.1), 61)
    width, middle = np.diff(edges), edges[:-1] + np.diff(edges) / 2
    left: list[Mark] = []
    right: list[Mark] = []
    low = np.zeros(middle.size)
    for group, part in split_by(relative, "group"):
        style, own = scene.group(group), np.sort(floats(part["share"]))
        risen = np.arange(own.size + 1) / own.size
        left.append(Line(np.append(own[:1], own), risen, style, steps="post"))
        high = low + np.histogram(own, edges)[0]
        right.append(values.Bars(middle, width, low, high, style))
        low = high
    x = Axis(f"goodput / mean goodput (mean: {units.rate(mean)})", 0, 1.04 * edges[-1])
    return beside(
        Panel(x, Axis("share of flows", 0, 1.04), [*left, MEAN]),
        Panel(x, Axis("flows", 0, whole=True), [*right, MEAN]),
    )


def _mean(frame: pl.DataFrame, column: str) -> float:
    value = frame[column].mean()
    return float(value) if isinstance(value, int | float) else 0.0


def _shares_of_few(relative: pl.DataFrame, mean: float, scene: Scene) -> Figure:
    ordered = relative.sort("group", "flow_id", descending=True)
    known = flow_styles(relative, scene)
    styles = [known[int(flow)] for flow in ordered["flow_id"]]
    marks: list[Mark] = []
    for row, (bps, share) in enumerate(ordered.select("goodput_bps", "share").iter_rows()):
        style, at = replace(styles[row], label=""), floats(row)
        marks.append(values.Bars(at, floats(0.62), floats(0), floats(share), style, lying=True))
        marks.append(values.Label(max(share, 1.0), row, f" {units.rate(bps)}"))
    top = 1.2 * max(1.0, maximum(ordered, "share"))
    x = Axis(f"goodput / mean goodput (mean: {units.rate(mean)})", 0, top)
    y = rows_axis([style.label for style in styles])
    panel = Panel(x, y, [*marks, MEAN])
    return Figure([panel], height_in=0.95 + 0.24 * relative.height)


def rows_axis(names: Sequence[str]) -> Axis:
    """Returns an axis whose places 0, 1, ... have names, from its beginning."""
    return Axis("", -0.6, len(names) - 0.4, ticks=list(enumerate(names)))


def base_rtts(flows: pl.DataFrame, scene: Scene) -> Figure:
    """Shows goodput of each flow against its base RTT, base_rtt_ns; none is 0."""
    divisor, unit = units.step(maximum(flows, "base_rtt_ns"), units.TIME_STEPS)
    rate, rate_unit = units.step(maximum(flows, "goodput_bps"), units.RATE_STEPS)
    marks = [
        Points(
            floats(own["base_rtt_ns"]) / divisor,
            floats(own["goodput_bps"]) / rate,
            scene.group(group),
            size=3.5,
        )
        for group, own in split_by(flows, "group")
    ]
    x, y = Axis(f"base RTT ({unit})", scale="log"), Axis(f"goodput ({rate_unit})", scale="log")
    return Figure([Panel(x, y, marks)])


def cwnd(
    samples: pl.DataFrame, chosen: Mapping[int, str], scene: Scene, label: str = "cwnd"
) -> Figure:
    """Shows the congestion windows of a few flows, chosen by metrics.typical_flows.

    samples has time_s, flow_id, group and cwnd_segs.
    """
    part = samples.filter(pl.col("flow_id").is_in(list(chosen)))
    flows = part.select("flow_id", "group").unique().sort("flow_id")
    marks = []
    for flow, style in flow_styles(flows, scene, chosen).items():
        own = part.filter(pl.col("flow_id") == flow).sort("time_s")
        marks.append(Line(floats(own["time_s"]), floats(own["cwnd_segs"]), style, width=THIN))
    panel = over_time(scene, Axis(f"{label} (segments)"), marks)
    return Figure([steady(scene, panel, part, "cwnd_segs", (1.0, "segments"))], height_in=2.1)


def sequence(
    sent: pl.DataFrame,
    acked: pl.DataFrame,
    resent: pl.DataFrame,
    chosen: Mapping[int, str],
    scene: Scene,
) -> Figure:
    """Shows time-sequence graphs of a few flows, in bytes from each connection's first.

    All have time_s, flow_id and bytes: behind what was sent for the first time, acknowledged, and
    of what was sent again.
    """
    blue, red, green, *_ = theme.CYCLE
    panels = []
    for flow, role in chosen.items():
        parts = [part.filter(pl.col("flow_id") == flow) for part in (sent, resent, acked)]
        divisor, unit = units.step(maximum(parts[0], "bytes"), units.BYTE_STEPS)
        first, repeated, acknowledged = (
            (floats(part["time_s"]), floats(part["bytes"]) / divisor) for part in parts
        )
        marks: list[Mark] = [
            Line(*first, Style("sent", blue, ""), width=THIN),
            Points(*repeated, Style("sent again", red, "o"), size=2),
            Line(*acknowledged, Style("acknowledged", green, "", theme.DASHES[1]), width=THIN),
        ]
        title = scene.flow(flow) + (f", {role}" if role else "")
        panels.append(over_time(scene, Axis(f"sequence number ({unit})"), marks, title))
    rows = -(-len(chosen) // 2)
    height = 0.4 + (1.7 * rows if len(chosen) > 1 else 2.2)
    return Figure(panels, columns=2, height_in=height)


# States of a flow, and the events that look the same and begin them.
RECOVERIES = {"recovery": ("recovery", "reduction"), "loss": ("after a timeout", "timeout")}


def states(episodes: pl.DataFrame, styles: Mapping[int, Style], scene: Scene) -> Figure:
    """Shows a row per flow, with a bar while it recovered; episodes of sections.recoveries."""
    rows = {flow: row for row, flow in enumerate(reversed(list(styles)))}
    marks = []
    for state, (label, event) in RECOVERIES.items():
        own = episodes.filter(pl.col("state") == state)
        if own.height > 0:
            at = floats([rows[flow] for flow in own["flow_id"]])
            style = replace(theme.style(event), label=label)
            begin, end = floats(own["from_s"]), floats(own["to_s"])
            marks.append(values.Bars(at, np.full(at.size, 0.62), begin, end, style, lying=True))
    y = rows_axis([style.label for style in styles.values()][::-1])
    return Figure([over_time(scene, y, marks)], height_in=0.75 + 0.24 * len(styles))


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
    """Shows a panel per quantity over time, with a line per series; their frames have time_s."""
    found = []
    for quantity in quantities:
        column = quantity.column
        finite = [(style, f.filter(pl.col(column).is_finite())) for style, f in series]
        divisor, unit = 1.0, quantity.unit
        if unit in units.STEPS:
            top = max((maximum(frame, column) for _, frame in finite), default=0.0)
            divisor, unit = units.step(top, units.STEPS[unit])
        marks = [
            Line(
                floats(frame["time_s"]),
                floats(frame[column]) / divisor,
                style if len(series) > 1 else replace(style, label=""),
                width=THIN,
            )
            for style, frame in finite
        ]
        y = Axis(f"{quantity.label} ({unit})" if unit else quantity.label)
        found.append(over_time(scene, y, marks))
    rows = -(-len(found) // 2)
    return Figure(found, columns=2, height_in=0.4 + 1.5 * rows if len(found) > 1 else 2.2)


def events(counts: pl.DataFrame, scene: Scene) -> Figure:
    """Shows events by kind (a name of theme.STYLES): per_s in a bin width_s wide around time_s."""
    found = []
    for kind in sorted(counts["kind"].unique()):
        style = theme.style(kind)
        part = counts.filter(pl.col("kind") == kind).sort("time_s")
        time, width, rate = (floats(part[name]) for name in ("time_s", "width_s", "per_s"))
        bars = values.Bars(time, width, np.zeros(time.size), rate, replace(style, label=""))
        y = Axis("per second", 0, whole=True)
        found.append(Panel(time_axis(scene), y, [bars], style.label))
    return Figure(found, height_in=0.55 + 0.72 * len(found))


def completion(times: pl.DataFrame, scene: Scene) -> Figure:
    """Shows completion time by size, median and 99th percentile; slowdown, where any is known.

    times: see completion_times; none of its sizes is 0.
    """
    divisor, unit = units.step(float(maximum(times, "p99_ns")), units.TIME_STEPS)
    shown = [(f"completion time ({unit})", ("p50_ns", "p99_ns"), divisor)]
    if times["slowdown_mean"].count() > 0:
        shown.append(("slowdown", ("slowdown_mean", "slowdown_p99"), 1.0))
    found = []
    for label, (middle, high), by in shown:
        marks = []
        for group, own in split_by(times, "group"):
            style, size = (
                replace(scene.group(group), marker="o", dash="-"),
                floats(own["mean_bytes"]),
            )
            late = replace(style, label=f"{style.label}, 99th percentile", dash=theme.DASHES[2])
            size = floats(own["mean_bytes"]) / 1e3
            for column, drawn in ((middle, style), (high, late)):
                marks.append(Line(size, floats(own[column]) / by, drawn, markers=1))
        found.append(Panel(Axis("size (kB)", scale="log"), Axis(label, scale="log"), marks))
    return beside(*found)


def __dir__() -> list[str]:
    return own_names(globals())
