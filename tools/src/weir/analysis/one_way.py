# SPDX-License-Identifier: BSD-3-Clause
"""The delay of packets from their sender to their receiver, where it follows from one link."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from weir.analysis import metrics, routes
from weir.analysis.run_summary import RunSummary
from weir.base import units
from weir.base.configs import Config

LINKS = {"link", "mahimahi_link"}
# Stages that delay no packet, or all by the same time.
STEADY = {
    "delay", "loss", "loss_gilbert", "loss_markov", "loss_periodic", "loss_mask",
    "loss_trace", "loss_target", "ecn", "clear_options", "corrupt", "duplicate", "policer",
}  # fmt: skip


def own_base_rtt(groups: Sequence[Config]) -> bool:
    """Returns whether any group adds a delay of its own to that of its paths."""
    asked = [group.get("base_rtt", "0") for group in groups]
    return any(isinstance(rtt, dict) or bool(units.config_time_ns(rtt)) for rtt in asked)


def delay_ns(stages: Sequence[object]) -> float:
    """Returns the sum of the constant delays of a path's stages."""
    delays = [stage.get("delay") for stage in stages if isinstance(stage, dict)]
    return sum(
        units.config_time_ns(params.get("delay", "0")) or 0.0
        for params in delays
        if isinstance(params, dict)
    )


def p95_ns(config: Config, report: RunSummary) -> float | None:
    """Returns the 95th percentile over all packets: propagation, and time in the link's queue.

    To within 3 %, as a summary's distribution is. None: flows have several paths or base RTTs, more
    than one link's queue changes the delay, or no packet was measured.
    """
    stages = way(config)
    if stages is None:
        return None
    name = next(name for name, stage in stages if LINKS & set(stage))
    link = report.links.get(name)
    if link is None or not link.sojourn_cdf:
        return None
    ends, share = np.asarray(link.sojourn_cdf, np.float64).T
    largest = link.sojourn_max_ns or np.inf
    waited = metrics.quantile_of_cdf(*metrics.within_bins(ends, share, largest), 0.95)
    return None if waited is None else delay_ns([stage for _, stage in stages]) + waited


def way(config: Config) -> list[tuple[str, Config]] | None:
    """Returns path and stage of all that data passes; None: not one link and constant delays."""
    groups, paths = routes.groups(config), config.get("paths", {})
    ways = {tuple(routes.route(group, "forward")) for group in groups}
    if len(ways) != 1 or own_base_rtt(groups) or config.get("schedule"):
        return None
    stages = [
        (name, stage)
        for name in ways.pop()
        for stage in paths.get(name, [])
        if isinstance(stage, dict)
    ]
    kinds = [next(iter(stage), "") for _, stage in stages]
    late = [units.config_ratio(stage["delay"].get("late", "0")) for _, stage in stages
            if isinstance(stage.get("delay"), dict)]  # fmt: skip
    links = sum(bool(LINKS & set(stage)) for _, stage in stages)
    steady = set(kinds) <= STEADY | LINKS and links == 1 and not any(late)
    return stages if steady else None
