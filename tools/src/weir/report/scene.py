# SPDX-License-Identifier: BSD-3-Clause
"""The parts that figures share: the scene, axes of time, looks of flows, medians with bands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import polars as pl

from weir.base import units
from weir.report import theme
from weir.report.figure import MOMENT, Axis, Band, Figure, Line, Mark, Panel, Points, Rule, floats
from weir.report.theme import INK, Style

FEW = 10  # as many flows are drawn one by one; more as median and band
HIDING = 2.5  # a start with a peak of more times what comes later hides that
BANDS = len(theme.CYCLE)  # as many groups have a band of their own; those of more hide each other
TIME = "time (s)"


@dataclass(frozen=True)
class Scene:
    """The groups, links and times that every figure of a run shares."""

    groups: Sequence[Style]  # by group index
    duration_s: float
    warmup_s: float = 0.0
    links: Sequence[str] = ()  # names by link index
    link_styles: Sequence[Style] = ()  # likewise; of none, a link looks as its name does
    flows: Mapping[int, str] = field(default_factory=dict)  # of a capture: their addresses

    def flow(self, flow_id: int) -> str:
        return self.flows.get(flow_id, f"flow {flow_id}")

    def group(self, index: int) -> Style:
        """Returns the look of a group, also of one that the summary does not know."""
        if index < len(self.groups):
            return self.groups[index]
        return theme.style("", f"group {index}", index)


def split_by(frame: pl.DataFrame, key: str) -> list[tuple[int, pl.DataFrame]]:
    """Returns a frame's rows by the values of an integer column, in its order."""
    values = sorted(int(value) for value in frame[key].unique())
    return [(value, frame.filter(pl.col(key) == value)) for value in values]


def flow_styles(
    flows: pl.DataFrame, scene: Scene, roles: Mapping[int, str] | None = None
) -> dict[int, Style]:
    """Returns the looks of flows: the group's colour, with shades and dashes if it has several.

    roles: what a flow stands for in its group, see metrics.typical_flows.
    """
    styles: dict[int, Style] = {}
    groups = split_by(flows, "group")
    for group, part in groups:
        base = scene.group(group)
        ids = sorted(int(flow) for flow in part["flow_id"])
        several = len(ids) > 1
        colours = (
            list(theme.CYCLE)
            if several and len(groups) == 1 and len(ids) <= len(theme.CYCLE)
            else theme.shades(base.colour, len(ids), light=0.35)
        )
        for k, (flow, colour) in enumerate(zip(ids, colours, strict=False)):
            dash = theme.DASHES[k % len(theme.DASHES)] if several else base.dash
            role = (roles or {}).get(flow, "")
            parts = [base.label] if len(groups) > 1 or not (several or role) else []
            name = scene.flow(flow)
            parts += [f"{role} ({name})"] if role else [name] if several else []
            styles[flow] = Style(", ".join(parts), colour, base.marker, dash)
    return styles


def spread_column(spread: pl.DataFrame, name: str) -> str:
    """Returns the column of metrics.spread_over_time that has low, median or high of something."""
    return next(column for column in spread.columns if column.startswith(f"{name}_"))


def maximum(frame: pl.DataFrame, column: str) -> float:
    """Returns a column's largest value; 0 if it has none."""
    value = frame[column].max()
    return float(value) if isinstance(value, int | float) else 0.0


def time_axis(scene: Scene) -> Axis:
    """Returns an axis of time from 0 to the run's end."""
    return Axis(TIME, 0, scene.duration_s, is_time=True)


def over_time(scene: Scene, y: Axis, marks: Sequence[Mark], title: str = "") -> Panel:
    """Returns a panel over the run's time, with a line where the warm-up ends."""
    end = replace(MOMENT, label="end of the warm-up")
    ended = [Rule(scene.warmup_s, end, upright=True)] if scene.warmup_s > 0 else []
    low = replace(y, low=0.0) if y.low is None else y
    return Panel(time_axis(scene), low, [*marks, *ended], title)


def steady(
    scene: Scene,
    panel: Panel,
    frame: pl.DataFrame,
    column: str,
    scale: tuple[float, str],
    base: float = 0.0,
) -> Panel:
    """Cuts the y axis where the run settled, if its start would hide that, and marks the peak.

    scale: divisor and unit of the axis. base: where it begins, e.g. at the propagation delay.
    """
    divisor, unit = scale
    late = maximum(frame.filter(pl.col("time_s") > scene.warmup_s), column) / divisor
    peak = maximum(frame, column) / divisor
    if scene.warmup_s <= 0 or late <= base or peak - base < HIDING * (late - base):
        return panel
    at = frame.filter(pl.col(column) == frame[column].max())["time_s"][0]
    style = Style(f"peak {units.number(peak)} {unit}", INK, "^")
    mark = Points(floats(at), floats(peak), style, at_edge=True)
    axis = replace(panel.y, high=base + 1.5 * (late - base))
    return replace(panel, y=axis, marks=[*panel.marks, mark])


def bands(spread: pl.DataFrame, divisor: float, scene: Scene) -> list[Mark]:
    """Returns the median flow of each group, and if they are few a band around it."""
    groups = split_by(spread, "group")
    names = [spread_column(spread, name) for name in ("low", "median", "high")]
    found: list[Mark] = []
    for group, part in groups:
        style, time = scene.group(group), floats(part["time_s"])
        low, median, high = (floats(part[name]) / divisor for name in names)
        if len(groups) <= BANDS:
            found.append(Band(time, low, high, style))
        found.append(Line(time, median, style))
    return found


def banded(spread: pl.DataFrame, steps: units.Steps, label: str, scene: Scene) -> Figure:
    """Shows the median flow of each group over time, of metrics.spread_over_time."""
    divisor, unit = units.step(maximum(spread, spread_column(spread, "high")), steps)
    axis = Axis(f"{label} ({unit})")
    return Figure([over_time(scene, axis, bands(spread, divisor, scene))], height_in=2.1)
