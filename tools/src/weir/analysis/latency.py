# SPDX-License-Identifier: BSD-3-Clause
"""Delay as an application sees it: pings beside a load, and packets one way.

A **ping** is a transfer of one segment: of a group whose source is `closed` or `request` and whose
sizes have a fixed mean that fits a segment. Its time is from when it is written until it is
acknowledged, of a new connection with the handshake before it.

**Responsiveness** is round trips per minute under working conditions (RPM), as in
draft-ietf-ippm-responsiveness, section 4: 60 s over the mean of two trimmed means, each of the
95 % of times that are smallest:

    foreign   round trips on connections of their own: of pings; one on a new connection is two
              round trips, a handshake and a request, and each counts
    self      round trips on the connections that carry the load, as their senders measure them

What is not computed: TLS handshakes and HTTP/2 (there are none; the draft's foreign time is the
mean of TCP's, TLS's and HTTP's), and the search for the number of connections that saturates the
path: the load is the config's.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from weir.analysis import metrics, routes
from weir.analysis import one_way as steady
from weir.base import units
from weir.base.configs import Config
from weir.base.page import Column, Table

if TYPE_CHECKING:
    from weir.analysis.folder import Run
    from weir.analysis.ring import Values

SEGMENT_BYTES = 1448
TRIMMED = 0.95
MINUTE_NS = 60 * metrics.NS_PER_S


def source(config: Config, group: int) -> str:
    """Returns the name of a group's source."""
    groups = config.get("flows") or []
    given = (groups[group] if group < len(groups) else {}).get("source", "bulk")
    return str(next(iter(given), "bulk")) if isinstance(given, dict) else str(given)


def ping_groups(config: Config) -> dict[int, int]:
    """Returns the groups that ping, and how many round trips one takes."""
    found = {}
    for number, group in enumerate(config.get("flows") or []):
        name = source(config, number)
        given = mapping(mapping(group.get("source")).get(name))
        sizes = mapping(given.get("sizes"))
        small = (units.config_bytes(sizes.get("mean", "100kB")) or 0) <= SEGMENT_BYTES
        if name in ("closed", "request") and small and sizes.get("law", "fixed") == "fixed":
            opens = name == "closed" and given.get("connection", "new") == "new"
            found[number] = 2 if opens else 1
    return found


def mapping(value: object) -> Config:
    """Returns a map as it is; anything else has no keys."""
    return value if isinstance(value, dict) else {}


def pings(run: Run) -> pl.DataFrame:
    """Returns each answered ping: ts_ns (of the answer), start_ns, flow_id, group, rtt_ns.

    Of several round trips, their mean.
    """
    groups, frame = ping_groups(run.config), run.frame("transfers")
    names = ["ts_ns", "start_ns", "flow_id", "group", "rtt_ns"]
    if frame is None or not groups:
        return pl.DataFrame(schema=dict.fromkeys(names, pl.Float64))
    closed = run.values("transfers", "event")["close"]
    trips = pl.col("group").replace_strict(groups, default=1, return_dtype=pl.Float64)
    took = (pl.col("ts_ns") - pl.col("start_ns")).cast(pl.Float64) / trips
    done = frame.filter((pl.col("event") == closed) & pl.col("group").is_in(list(groups)))
    return done.with_columns(rtt_ns=took).select(names).sort("ts_ns")


def one_way(run: Run, flow: int) -> pl.DataFrame:
    """Returns ts_ns (at the receiver) and delay_ns of a flow's recorded packets.

    The delay is of the path in which its data enters the network: time in queues and constant
    delays, without the time that a link needs to send the packet itself.
    """
    group = int(routes.group_of(run.config, [flow])[0])
    path = routes.data_path(run.config, group)
    dequeue = run.values("packets", "event").get("dequeue", -1)
    own = (pl.col("flow_id") == flow) & (pl.col("path") == path) & (pl.col("event") == dequeue)
    names = ("ts_ns", "sojourn_ns", "flow_id", "pkt_id", "event", "path")
    parts = [part.filter(own) for part in run.chunk_frames("packets", names)]
    if not parts:
        return pl.DataFrame()
    delay_ns = round(steady.delay_ns([*run.config.get("paths", {}).values()][path]))
    found = pl.concat(parts).group_by("pkt_id", maintain_order=True)
    summed = found.agg(pl.col("ts_ns").max(), pl.col("sojourn_ns").sum())
    both = (pl.col("ts_ns") + delay_ns, (pl.col("sojourn_ns") + delay_ns).alias("delay_ns"))
    return summed.select(*both).sort("ts_ns")


@dataclass(frozen=True)
class UnderLoad:
    """Delay without and with the load; None where nothing was measured."""

    idle_ns: float | None  # median of the pings before the load
    median_ns: float | None  # of those during it
    p95_ns: float | None
    p99_ns: float | None
    foreign_ns: float | None  # trimmed means
    self_ns: float | None

    @property
    def rpm(self) -> float | None:
        """Round trips per minute; without a measured self the pings' alone."""
        known = [t for t in (self.foreign_ns, self.self_ns) if t]
        return MINUTE_NS / (sum(known) / len(known)) if self.foreign_ns else None

    @property
    def table(self) -> Table:
        return Table(COLUMNS, [self])


COLUMNS = (
    Column("idle", "idle_ns"),
    Column("under load", "median_ns"),
    Column("p95", "p95_ns"),
    Column("p99", "p99_ns"),
    Column("round trips per minute", lambda of: of.rpm or None),
)


def under_load(run: Run) -> UnderLoad | None:
    """Returns figures of all pings; None: no group pings, or nothing else sends."""
    pinging, config = ping_groups(run.config), run.config
    groups = dict(enumerate(config.get("flows") or []))
    load = [n for n in groups if n not in pinging and source(config, n) == "bulk"]
    if not pinging or not load:
        return None
    begins = [time_ns(groups[n], "start") for n in load]
    stops = [time_ns(groups[n], "stop") for n in load]
    first = max(*begins, time_ns(config, "warmup"))
    last = max(stops) if all(stops) else math.inf
    found = pings(run)
    idle = found.filter(pl.col("ts_ns") <= min(begins))["rtt_ns"]
    during = found.filter((pl.col("start_ns") >= first) & (pl.col("ts_ns") <= last))["rtt_ns"]
    rtts = load_rtts(run, load, first, last)
    return UnderLoad(
        metrics.percentile(idle, 50),
        metrics.percentile(during, 50),
        metrics.percentile(during, 95),
        metrics.percentile(during, 99),
        trimmed_mean(during.to_numpy()),
        trimmed_mean(rtts["rtt_mean_ns"].to_numpy(), rtts["rtt_samples"].to_numpy()),
    )


def time_ns(keys: Config, name: str) -> float:
    """Returns a time of the config; one that is not there is 0."""
    return units.config_time_ns(keys.get(name, "0s")) or 0.0


def load_rtts(run: Run, load: Sequence[int], first_ns: float, last_ns: float) -> pl.DataFrame:
    """Returns interval records of the load's groups that have samples of the RTT."""
    interval = run.frame("interval")
    if interval is None:
        return pl.DataFrame(schema={"rtt_mean_ns": pl.Float64, "rtt_samples": pl.Float64})
    ends = pl.col("ts_ns")
    own = pl.col("group").is_in(list(load)) & (pl.col("rtt_samples") > 0)
    return interval.filter(own & (ends > first_ns) & (ends <= last_ns))


def trimmed_mean(
    values: Values, weights: Values | None = None, part: float = TRIMMED
) -> float | None:
    """Returns the mean of the smallest `part` of the values, by weight; None of nothing."""
    if values.size == 0:
        return None
    order = np.argsort(values, kind="stable")
    weight = (np.ones(values.size) if weights is None else weights)[order].astype(np.float64)
    before = np.cumsum(weight) - weight
    kept = np.clip(part * weight.sum() - before, 0, weight)
    return float((values[order] * kept).sum() / kept.sum())
