# SPDX-License-Identifier: BSD-3-Clause
"""What a run's figures are drawn from, read once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import polars as pl

from weir import summary, units
from weir.analysis import captures, metrics
from weir.errors import UserError
from weir.report import axes, theme

if TYPE_CHECKING:
    from weir.analysis.folder import Run


@dataclass(frozen=True)
class RunData:
    """A run's data, read once."""

    run: Run
    numbers: dict[str, Any]  # the summary, or what telemetry says in its place
    flows: FlowData | None
    links: pl.DataFrame | None  # with lengths and times
    scene: axes.Scene

    @property
    def captured(self) -> bool:
        """Is it the analysis of a capture?"""
        return bool(self.run.summary.get("program") == summary.ANALYSER)


def read(run: Run) -> RunData:
    """Reads the streams that are drawn."""
    interval, links = run.frame("interval"), run.frame("links")
    length = duration_s(run, interval, links)
    warmup = warmup_s(run) if warmup_s(run) < length else 0.0  # ended before: all of it counts
    flows = None if interval is None else flow_data(interval, warmup, length)
    timed = None if links is None else metrics.with_times(links)
    numbers = run.summary
    if not numbers:
        numbers = recovered(run.config, flows, timed, warmup)
    scene = axes.Scene(
        groups=theme.group_styles(
            [
                (name, str(group.get("cc", "")))
                for name, group in zip(
                    summary.group_names(numbers), numbers.get("groups", []), strict=True
                )
            ]
        ),
        duration_s=length,
        warmup_s=warmup,
        links=list(numbers.get("links", {})),
        flows=captures.flow_names(run),
    )
    return RunData(run, numbers, flows, timed, scene)


def relabelled(read_data: RunData, labels: Sequence[str]) -> RunData:
    """The same with other names of the groups in legends; UserError: not one for each."""
    scene = read_data.scene
    if len(labels) != len(scene.groups):
        raise UserError(
            f"--label is given {len(labels)} times; the run has {len(scene.groups)} groups of"
            " flows: give one for each"
        )
    groups = [replace(s, label=name) for s, name in zip(scene.groups, labels, strict=True)]
    return replace(read_data, scene=replace(scene, groups=groups))


def warmup_s(run: Run) -> float:
    """Where measuring began: live, counted from when traffic did."""
    known = run.summary.get("warmup_s")
    if known is None:
        known = (units.config_time_ns(run.config.get("warmup", "0")) or 0.0) / metrics.NS_PER_S
    return float(known) + float(run.summary.get("start_s") or 0.0)


def duration_s(run: Run, *frames: pl.DataFrame | None) -> float:
    """Length of the time axis: what the summary says of virtual time, else the last record."""
    known = run.summary.get("virtual_s")
    if known and run.summary.get("program") == summary.SIMULATOR:
        return float(known)
    ends = [f["ts_ns"].to_numpy().max() for f in frames if f is not None]
    return float(max(ends, default=metrics.NS_PER_S)) / metrics.NS_PER_S


def recovered(
    config: dict[str, Any], flows: FlowData | None, links: pl.DataFrame | None, warmup: float
) -> dict[str, Any]:
    """The tables of a summary that was never written, from telemetry and config."""
    found: dict[str, Any] = {}
    if flows is not None:
        groups = metrics.per_group(flows.each).to_dicts()
        named = config.get("flows", [])
        for group in groups:
            own = named[group["group"]] if group["group"] < len(named) else {}
            cc = own.get("cc", "")
            group["cc"] = next(iter(cc), "") if isinstance(cc, dict) else cc
            group["name"] = own.get("name") or group["cc"] or f"group {group['group']}"
        found["groups"] = groups
        found["jfi"] = metrics.jfi(flows.each["goodput_bps"].to_numpy())
    if links is not None:
        measured = metrics.between(links, warmup * metrics.NS_PER_S)
        rows = metrics.per_link(measured if measured.height > 0 else links).to_dicts()
        found["links"] = {f"link {row['link']}": row for row in rows}
    return found


@dataclass(frozen=True)
class FlowData:
    """What the intervals say about flows."""

    length_ns: int  # of an interval
    rated: pl.DataFrame  # the intervals, with rates
    each: pl.DataFrame  # one row per flow, after the warm-up

    @property
    def few(self) -> bool:
        """Are they drawn one by one?"""
        return self.each.height <= axes.FEW

    @property
    def drawn(self) -> str:
        """How a group's flows are drawn if they are not few, in words."""
        band = self.each["group"].n_unique() <= axes.BANDS
        return f"Line: median flow{'; band: 5th to 95th percentile' if band else ''}."


def flow_data(interval: pl.DataFrame, warmup: float, length: float) -> FlowData:
    """Rates of the intervals, and totals of the flows after the warm-up; both in seconds."""
    span_ns, warmup_ns = (length - warmup) * metrics.NS_PER_S, warmup * metrics.NS_PER_S
    each = metrics.per_flow(interval, span_ns, warmup_ns)
    return FlowData(metrics.step_ns(interval), metrics.with_rates(interval), each)
