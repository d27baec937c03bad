# SPDX-License-Identifier: BSD-3-Clause
"""The data of a run's figures, read once."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from weir.analysis import captures, metrics, run_summary, summary
from weir.analysis.model_parts import Group, Link
from weir.analysis.ring import to_frame
from weir.analysis.run_summary import RunSummary
from weir.base import configs, units
from weir.base.configs import Config
from weir.base.errors import UserError
from weir.report import theme
from weir.report.scene import BANDS, FEW, Scene

if TYPE_CHECKING:
    from weir.analysis.folder import Run


@dataclass(frozen=True)
class RunData:
    """A run's data, read once."""

    run: Run
    numbers: RunSummary  # the summary, or what telemetry says in its place
    flows: FlowData | None
    links: pl.DataFrame | None  # with lengths and times
    scene: Scene

    @property
    def captured(self) -> bool:
        """Is true of a capture's analysis, which cannot know what dropped packets."""
        return self.run.summary.program == summary.ANALYSER


def read(run: Run) -> RunData:
    """Reads the streams that are drawn. UserError: their fields or times are not those of a run."""
    wrong = (pl.exceptions.ColumnNotFoundError, pl.exceptions.InvalidOperationError, OverflowError)
    try:
        return _read(run)
    except wrong as error:
        why = str(error).partition("\n")[0]
        raise UserError(f"{run.path}: its records or its config are no run's: {why}", 1) from None


def _read(run: Run) -> RunData:
    interval, links = run.frame("interval"), run.frame("links")
    length = duration_s(run, interval, links)
    warmup = warmup_s(run) if warmup_s(run) < length else 0.0  # ended before: all of it counts
    intervals = intervals_of(run, warmup, length)
    flows = None if interval is None else flow_data(interval, warmup, length, intervals)
    if flows is not None:
        flows = with_silent(flows, run.frame("flows"))
    timed = None if links is None else metrics.with_times(links, intervals)
    numbers = run.summary
    if not numbers.ended:
        numbers = recovered(run.config, flows, timed, warmup)
    scene = Scene(
        groups=theme.group_styles(
            [
                (name, group.cc or "")
                for name, group in zip(summary.group_names(numbers), numbers.groups, strict=True)
            ]
        ),
        duration_s=length,
        warmup_s=warmup,
        links=list(numbers.links),
        flows=captures.flow_names(run),
    )
    return RunData(run, numbers, flows, timed, scene)


def relabelled(read_data: RunData, labels: Sequence[str]) -> RunData:
    """Returns the data with other names of groups. UserError: there is not one for each."""
    scene = read_data.scene
    if len(labels) != len(scene.groups):
        raise UserError(
            f"--label is given {len(labels)} times; the run has {len(scene.groups)} groups of"
            " flows: give one for each"
        )
    groups = [replace(s, label=name) for s, name in zip(scene.groups, labels, strict=True)]
    return replace(read_data, scene=replace(scene, groups=groups))


def busiest_link(of: RunData) -> tuple[int, pl.DataFrame] | None:
    """Returns the index and the records of a run's busiest link."""
    busiest = summary.busiest(of.numbers)
    if busiest is None or of.links is None:
        return None
    index = list(of.numbers.links).index(busiest[0])
    own = of.links.filter(pl.col("link") == index).sort("ts_ns")
    return (index, own) if own.height > 0 else None


def warmup_s(run: Run) -> float:
    """Returns the end of the warm-up in s; live, it counts from when traffic began."""
    known = run.summary.warmup_s
    if known is None:
        known = (units.config_time_ns(run.config.get("warmup", "0")) or 0.0) / metrics.NS_PER_S
    return known + (run.summary.start_s or 0.0)


def intervals_of(run: Run, warmup: float, length: float) -> metrics.Intervals | None:
    """Returns when the intervals of the run's records end; None: the config does not say."""
    telemetry = run.config.get("telemetry")
    text = telemetry.get("interval") if isinstance(telemetry, dict) else None
    captured = run.summary.program == summary.ANALYSER
    length_ns = units.config_time_ns(run.config.get("interval") if captured else text)
    if not length_ns:
        return None
    exact = captured or run.summary.program == summary.SIMULATOR
    warmup_ns, end_ns = (round(at * metrics.NS_PER_S) for at in (warmup, length))
    return metrics.Intervals(round(length_ns), warmup_ns, end_ns, exact)


def with_silent(flows: FlowData, recorded: pl.DataFrame | None) -> FlowData:
    """Returns the flows and those that began, but sent nothing in any interval."""
    if recorded is None:
        return flows
    silent = recorded.select("flow_id", "group").unique("flow_id").sort("flow_id")
    silent = silent.join(flows.each, on="flow_id", how="anti")
    if silent.height == 0:
        return flows
    counts = ("acked_bytes", "delivered_bytes", "sent_segs", "rtt_samples", "retransmits")
    zero = [pl.lit(0).alias(name) for name in (*counts, "goodput_bps")]
    rest = silent.select("flow_id", "group", *zero).cast(
        {name: kind for name, kind in flows.each.schema.items() if name in ("goodput_bps", *counts)}
    )
    each = pl.concat([flows.each, rest], how="diagonal").sort("flow_id")
    return replace(flows, each=each)


def duration_s(run: Run, *frames: pl.DataFrame | None) -> float:
    """Returns the length of the time axis in s: virtual time, or that of the last record."""
    report = run.summary
    if report.virtual_s and report.program == summary.SIMULATOR:
        return report.virtual_s
    if report.kind == "import":
        return report.wall_s or 1.0
    if report.captured and report.captured.duration_s:
        return report.captured.duration_s  # its last interval may end behind it
    ends = [f["ts_ns"].to_numpy().max() for f in frames if f is not None]
    return float(max(ends, default=metrics.NS_PER_S)) / metrics.NS_PER_S


def recovered(
    config: Config, flows: FlowData | None, links: pl.DataFrame | None, warmup: float
) -> RunSummary:
    """Returns the tables of a summary that was never written, from telemetry and config."""
    found = RunSummary()
    if flows is not None:
        groups = metrics.per_group(flows.each).to_dicts()
        named = config.get("flows", [])
        for group in groups:
            own = named[group["group"]] if group["group"] < len(named) else {}
            group["cc"] = configs.control(own.get("cc", ""))
            group["name"] = own.get("name") or group["cc"] or f"group {group['group']}"
        found.groups = [run_summary.part(Group, group) for group in groups]
        found.jfi = metrics.jfi(flows.each["goodput_bps"].to_numpy())
    if links is not None:
        measured = metrics.between(links, warmup * metrics.NS_PER_S)
        rows = metrics.per_link(measured if measured.height > 0 else links).to_dicts()
        found.links = {f"link {row['link']}": run_summary.part(Link, row) for row in rows}
    return found


@dataclass(frozen=True)
class FlowData:
    """The intervals' rates of flows, and a row for each flow."""

    length_ns: int  # of an interval
    rated: pl.DataFrame  # the intervals, with rates
    each: pl.DataFrame  # one row per flow, after the warm-up

    @property
    def few(self) -> bool:
        return self.each.height <= FEW

    @property
    def drawn(self) -> str:
        """A sentence for captions on how flows are drawn if they are not few."""
        band = self.each["group"].n_unique() <= BANDS
        return f"Line: median flow{'; band: 5th to 95th percentile' if band else ''}."


def flow_data(
    interval: pl.DataFrame, warmup: float, length: float, intervals: metrics.Intervals | None
) -> FlowData:
    """Returns rates of the intervals, and totals of the flows after the warm-up."""
    rated = metrics.with_rates(interval, intervals)
    # An interval is of the warm-up or measured. Live it ends a little after the warm-up.
    late = rated.filter(pl.col("time_s") > warmup)["ts_ns"].min()
    t0_ns = warmup * metrics.NS_PER_S
    if isinstance(late, int):
        before = rated.filter(pl.col("ts_ns") < late)["ts_ns"].max()
        t0_ns = float(before) if isinstance(before, int) else 0.0
    each = metrics.per_flow(interval, (length - warmup) * metrics.NS_PER_S, t0_ns)
    step_ns = metrics.step_ns(interval) if intervals is None else intervals.length_ns
    return FlowData(step_ns, rated, each)


def chosen_records(
    run: Run, stream: str, names: Sequence[str], chosen: Collection[int]
) -> pl.DataFrame:
    """Returns a stream's records of some flows, with null for unknowns; no columns without any."""
    wanted = np.asarray(list(chosen), dtype=np.uint32)
    found = []
    for part in run.chunks(stream, names):
        keep = np.isin(part["flow_id"], wanted)
        own = {name: column[keep] for name, column in part.items()}
        found.append(to_frame(run.rings(stream)[0].schema, own))
    return pl.concat(found) if found else pl.DataFrame()
