# SPDX-License-Identifier: BSD-3-Clause
"""weir probe: what a Copa flow would obtain on an experiment's path, from a few small packets.

The experiment runs with one more group of flows, whose source is `probe`; sender/source/probe.c has
the formulas.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from weir.analysis.model_parts import Probe
from weir.analysis.run_summary import RunSummary
from weir.base import configs, units
from weir.base.configs import Config
from weir.base.errors import UserError
from weir.base.page import Table

NAME = "weir probe"
PARAMETERS = ("count", "interval", "delta", "size", "rtt_min")  # of the source
# What the probes have in common with the flows they are sent beside. If base_rtt is a distribution,
# the flow of the probes has a draw of its own, as one more flow would.
LIKE_FLOWS = ("path", "base_rtt", "mss", "dscp", "timestamps")


@dataclass(frozen=True)
class Probing:
    """Parameters of probes; times are as configs write them. None: the source's default."""

    at: str | None = None  # default: in the middle of what is measured
    count: int | None = None
    interval: str | None = None
    delta: float | None = None
    size: str | None = None
    rtt_min: str | None = None
    alone: bool = False  # without the experiment's own flows

    def source(self) -> dict[str, str]:
        """Returns the source's parameters that are not its defaults."""
        given = {key: getattr(self, key) for key in PARAMETERS}
        return {key: str(value) for key, value in given.items() if value is not None}


def override(config: Path, probing: Probing, duration: str | None) -> str:
    """Returns `flows=...` of the config with the group of probes as its last."""
    read = configs.mapping(config)
    flows = read.get("flows")
    if not isinstance(flows, list) or not all(isinstance(group, dict) for group in flows):
        raise UserError(f"{config}: flows: a list of groups of flows is expected", 2)
    like = {key: flows[0][key] for key in LIKE_FLOWS if flows and key in flows[0]}
    probes = {
        "name": NAME,
        "cc": "fixed",
        "start": probing.at or middle(config, duration or read.get("duration"), read),
        "source": {"probe": probing.source()},
    }
    own = [] if probing.alone else flows
    return "flows=" + json.dumps([*own, like | probes])


def renamer(config: Path) -> Callable[[str], str]:
    """Returns a function that names the config in a message in place of the probes' override."""
    place = re.compile(r"-o flows=\[.*?(\]|\.\.\.)(?=: [a-z])")
    return lambda line: place.sub(lambda _: f"{config}, with the probes", line, count=1)


def middle(config: Path, duration: object, read: Config) -> str:
    """Returns the middle between the warm-up, whose probes do not count, and the run's end."""
    ns = units.config_time_ns(duration)
    if ns is None:
        raise UserError(f"{config}: duration: say with --at when the probes are to start", 2)
    warmup_ns = units.config_time_ns(read.get("warmup", "0s")) or 0.0
    return f"{round((ns + min(warmup_ns, ns)) / 2)}ns"


def found(summary: RunSummary) -> Probe:
    """Returns the estimate in a run's summary. UserError: no probe was answered."""
    for group in summary.groups:
        if group.name == NAME and group.probe and group.probe.flows:
            return group.probe
    after = " after the warm-up and" if summary.warmup_s else ""
    raise UserError(f"no probe was answered{after} before the run ended", 1)


def table(probe: Probe) -> Table:
    """Returns the estimate as a table."""
    rate = units.known(probe.rate_bps)
    return Table(
        ("estimate", "value"),
        [
            ["probes answered", units.count(probe.answered)],
            ["RTT without queues", units.time(units.known(probe.rtt_min_ns))],
            ["queueing delay (dq)", units.time(units.known(probe.dq_ns))],
            [
                f"rate of a Copa flow, delta {units.known(probe.delta):g}",
                "not limited: no queue was seen" if rate is None else units.rate(rate),
            ],
            [
                f"time to transfer {units.size(units.known(probe.size_bytes))}",
                units.time(units.known(probe.completion_ns)),
            ],
        ],
        left=2,
    )
