# SPDX-License-Identifier: BSD-3-Clause
"""The score that no control can surpass on a path that is known, and what is known of it.

In each interval of each flow the oracle has the most that the path allows, whether or not a sender
could have all of it at once, so that its score is a bound:

- throughput: all that the link (or the policer, with its burst spread over the run) lets through,
  less the mean random loss, in equal parts for the flows that are open, which maximises the sum of
  their logarithms; nothing in a flow's first two round trips, its handshake and its first data;
- RTT: the least delay of the path in that interval or a round trip before it, and the time that the
  link takes for one packet;
- losses: the mean of the network's own.

Beside flows of another control it is not known: what these leave depends on what the agent does.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np

from weir.analysis.folder import Run
from weir.analysis.spread import Floats
from weir.base import units
from weir.base.configs import Config
from weir.environments.features import worth

HEADERS = 40  # TCP and IP, without options
TIMESTAMPS = 12
FRAME = 14 + 24  # Ethernet: header; FCS, preamble and gap
History = list[tuple[float, float]]  # a value from a time in ns on


def at_least(history: History, from_ns: float, to_ns: float) -> float:
    """Returns the least value of a time."""
    before = [value for at, value in history if at <= from_ns]
    return min(before[-1:] + [value for at, value in history if from_ns < at <= to_ns])


def after(history: History, change: Config, key: str, read: Callable[[object], float]) -> None:
    """Adds the value that an item of the schedule sets, if it is of this key."""
    if key in change:
        history.append((time_ns(change["at"]), read(change[key])))


def time_ns(text: object) -> float:
    return units.measured(units.config_time_ns(text))


def rate_bps(text: object) -> float:
    return units.measured(units.config_rate_bps(text))


class Network:
    """What the resolved config of a run says of the path of its first group of flows."""

    def __init__(self, run: Run) -> None:
        config = run.config
        stages: Config = {
            kind: of for part in config["paths"]["forward"] for kind, of in part.items()
        }
        group = config["flows"][0]
        self.end_ns = time_ns(config["duration"])
        self.step_ns = time_ns(config["telemetry"]["interval"])
        self.alone = len(config["flows"]) == 1
        count, stagger = int(group["count"]), time_ns(group["stagger"])
        self.starts_ns = time_ns(group["start"]) + stagger * np.arange(count)
        size = units.measured(units.config_bytes(group["mss"]))
        self.mss = size - (TIMESTAMPS if group["timestamps"] == "yes" else 0)
        self.lost = units.measured(units.config_ratio(stages.get("loss", {}).get("rate", "0")))
        self.rates: History = []  # bit/s of the link
        self.delays: History = [(0.0, 2 * time_ns(stages["delay"]["delay"]))]
        for change in config.get("schedule") or []:
            after(self.rates, change, "forward.link.rate", rate_bps)
            after(self.delays, change, "forward.delay.delay", lambda text: 2 * time_ns(text))
        self.burst = 0.0
        self.opportunities: Floats | None = None  # ns, of a trace
        if "mahimahi_link" in stages:
            place = run.path / stages["mahimahi_link"]["file"]
            self.opportunities = np.loadtxt(place, np.float64, ndmin=1) * 1e6
        else:
            self.rates.insert(0, (0.0, rate_bps(stages["link"]["rate"])))
        self.payload = self.mss / (size + HEADERS + FRAME)  # of what the link carries
        if "policer" in stages:
            self.payload = self.mss / (size + HEADERS)
            self.rates = [(0.0, rate_bps(stages["policer"]["rate"]))]
            self.burst = units.measured(units.config_bytes(stages["policer"]["burst"]))
        self.packet_bits = 8 * self.mss / self.payload if not self.burst else 0.0

    def carried(self, at_ns: Floats) -> Floats:
        """Returns the payload bytes that can be through until each time."""
        at_ns = np.maximum(at_ns, 0)
        if self.opportunities is not None:
            whole, part = np.divmod(at_ns, self.opportunities[-1])
            counts = np.searchsorted(self.opportunities, part, side="right")
            return np.asarray(self.mss * (whole * self.opportunities.size + counts))
        times = np.array([at for at, _ in self.rates] + [max(self.end_ns, at_ns.max())])
        rates = np.array([rate for _, rate in self.rates]) * self.payload / 8e9
        sums = np.concatenate([[0.0], np.cumsum(rates * np.diff(times))])
        return np.asarray(np.interp(at_ns, times, sums) + self.burst * at_ns / self.end_ns)

    def rtt_least(self, from_ns: float, to_ns: float) -> float:
        """Returns the least RTT of a packet that is acknowledged in a time."""
        before = from_ns - max(rtt for _, rtt in self.delays)
        times = [(at, self.packet_bits * 1e9 / rate) for at, rate in self.rates] or [(0.0, 0.0)]
        return at_least(self.delays, before, to_ns) + at_least(times, before, to_ns)


def score(network: Network) -> float | None:
    """Returns the oracle's mean reward; None: it is not known."""
    if not network.alone:
        return None
    base = min(rtt for _, rtt in network.delays)
    ends = np.arange(0, network.end_ns + network.step_ns / 2, network.step_ns)
    first = network.starts_ns + 2 * network.delays[0][1]  # when a flow's first data may be acked
    times = np.unique(np.concatenate([ends, first]))
    amounts = np.diff(network.carried(times - base)) * (1 - network.lost)
    open_ = first[:, None] <= times[:-1]
    shares = open_ * amounts / np.maximum(open_.sum(0), 1)
    places = np.searchsorted(ends, times[:-1], side="right") - 1
    ratios = [network.rtt_least(low, high) / base for low, high in pairwise(map(float, ends))]
    rewards = []
    for start, share in zip(network.starts_ns, shares, strict=True):
        acked = np.bincount(places, share, len(ratios))
        rewards += [
            worth(
                8e9 * float(size) / network.step_ns,
                ratio if size else 1.0,
                network.lost if size else 0.0,
            )
            for end, size, ratio in zip(ends[1:], acked, ratios, strict=True)
            if end > start
        ]
    return float(np.mean(rewards))
