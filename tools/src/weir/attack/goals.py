# SPDX-License-Identifier: BSD-3-Clause
"""Goals of an attack: each says from a run's summary how much harm was done; more is worse."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from weir.analysis import metrics, one_way
from weir.analysis.run_summary import RunSummary
from weir.attack.box import stack, victims
from weir.attack.element import BACK, PATH
from weir.base import units
from weir.base.configs import Config
from weir.base.errors import UserError

# Of a segment with timestamps: payload below the MSS, frame above it.
OPTIONS_BYTES, HEADERS_BYTES = 12, 66
QUIC_BYTES = 1452  # of a QUIC packet: each stack's program sets it


@dataclass(frozen=True)
class Goal:
    """The aim of an attack. `harm` is a number of `unit`."""

    name: str
    says: str
    unit: str
    harm: Callable[[Config, RunSummary], float]

    def beside(self, control: str) -> Goal:
        """Returns the same goal where harms are less those of another control in each network."""
        says = f"{self.says}, beyond that with {control}"
        return replace(self, name=f"{self.name} beside {control}", says=says)

    def text(self, harm: float) -> str:
        """Returns a harm for people."""
        if self.unit != "%":
            return f"{units.number(harm)} {self.unit}"
        if self.name == "starvation" and harm < 1:
            return f"{units.percent(harm, 1)} (1 to {units.number(1 / (1 - harm))})"
        return units.percent(harm, 1)


def goodputs(config: Config, summary: RunSummary) -> list[float]:
    """Returns the mean goodput of a flow in each group of victims, in bit/s."""
    groups = [summary.groups[index] for index in victims(config)]
    return [units.measured(group.goodput_bps) / group.flows for group in groups]


def base_rtt_ns(config: Config) -> float:
    """Returns the delay of both paths without queues and without what an attack adds (by name)."""
    stages = [stage for path in (PATH, BACK) for stage in config["paths"].get(path, [])]
    return one_way.delay_ns([stage for stage in stages if "name" not in stage.get("delay", {})])


def payload_share(config: Config) -> float:
    """Returns the part of the link's bits that is payload, if all segments are full."""
    first = config["flows"][victims(config)[0]]
    if stack(first) == "quic":
        return QUIC_BYTES / (QUIC_BYTES + HEADERS_BYTES)
    mss = units.config_bytes(first.get("mss", "1460B")) or 1460
    return (mss - OPTIONS_BYTES) / (mss + HEADERS_BYTES + OPTIONS_BYTES)


def unused(config: Config, summary: RunSummary) -> float:
    """Returns the part of the capacity left to the victims that they did not use."""
    rates = [units.measured(group.goodput_bps) for group in summary.groups]
    own = sum(rates[index] for index in victims(config))
    other = sum(rates) - own
    capacity = units.measured(summary.links[PATH].rate_mean_bps) * payload_share(config) - other
    return max(0.0, 1 - own / capacity) if capacity > 0 else 0.0


def starved(config: Config, summary: RunSummary) -> float:
    """Returns how far the slowest flow is below the fastest, as a part of the fastest."""
    rates = goodputs(config, summary)
    if len(rates) < 2:
        raise UserError("attack: starvation is of two groups of flows or more")
    return 1 - min(rates) / max(rates) if max(rates) > 0 else 0.0


def delayed(config: Config, summary: RunSummary) -> float:
    """Returns the time in the queue that one packet in a hundred exceeds, in base RTTs."""
    return (units.known(summary.links[PATH].sojourn_p99_ns) or 0) / base_rtt_ns(config)


def lost(config: Config, summary: RunSummary) -> float:
    """Returns the part of the victims' segments that the queue dropped or the path lost."""
    groups = [summary.groups[index] for index in victims(config)]
    sent = sum(units.measured(group.sent_segs) for group in groups)
    return sum(units.measured(group.drops) for group in groups) / sent if sent else 0.0


def oscillating(config: Config, summary: RunSummary) -> float:
    """Returns the 5th to 95th percentile range of the time in the queue, in base RTTs."""
    ends, shares = np.reshape(summary.links[PATH].sojourn_cdf, (-1, 2)).T
    low, high = (metrics.quantile_of_cdf(ends, shares, q) or 0.0 for q in (0.05, 0.95))
    return (high - low) / base_rtt_ns(config)


GOALS = {
    goal.name: goal
    for goal in (
        Goal(
            "utilisation", "of the link's capacity that other traffic left is unused", "%", unused
        ),
        Goal("starvation", "is what the slowest flow has less than the fastest", "%", starved),
        Goal("delay", "of queueing, the 99th percentile", "base RTT", delayed),
        Goal("loss", "of the segments are lost", "%", lost),
        Goal(
            "oscillation",
            "between the 5th and 95th percentile of queueing",
            "base RTT",
            oscillating,
        ),
    )
}


def goal_of(name: str) -> Goal:
    """Finds a goal by its name."""
    if name not in GOALS:
        raise UserError(f"attack: goal: '{name}' is none of {', '.join(GOALS)}")
    return GOALS[name]
