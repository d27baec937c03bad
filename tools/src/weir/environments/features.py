# SPDX-License-Identifier: BSD-3-Clause
"""Observations and the reward of an interval: each a list or a function, with its meaning."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from weir.control import Measurements

THROUGHPUT_MIN_BPS = 1e4  # of the utility: an interval without an ACK is bad, not infinitely so


@dataclass(frozen=True)
class Feature:
    """A number of an observation, cut off at its bounds."""

    name: str
    high: float
    meaning: str
    value: Callable[[Measurements], float]


def _mbps(bps: float) -> float:
    return math.log2(1 + bps / 1e6)


def _part(some: float, whole: float) -> float:
    return some / whole if whole > 0 else 0.0


FEATURES = (
    Feature("throughput", 20, "log2(1 + acknowledged Mbit/s)", lambda m: _mbps(m.throughput_bps)),
    Feature(
        "rtt_ratio",
        100,
        "mean RTT of the interval over the connection's smallest; 0: no sample",
        lambda m: _part(m.rtt_mean_ns, m.rtt_min_ns),
    ),
    Feature(
        "rtt_min",
        20,
        "log2(1 + smallest RTT of the connection in ms)",
        lambda m: math.log2(1 + m.rtt_min_ns / 1e6),
    ),
    Feature(
        "loss",
        1,
        "segments declared lost, of those acknowledged or lost",
        lambda m: _part(m.lost_segs, m.acked_segs + m.lost_segs),
    ),
    Feature(
        "ce",
        1,
        "segments marked CE, of those acknowledged",
        lambda m: _part(m.ce_segs, m.acked_segs),
    ),
    Feature("timeout", 1, "1: the retransmission timer ran out", lambda m: float(m.timeouts > 0)),
    Feature("cwnd", 24, "log2(window in segments)", lambda m: math.log2(max(m.cwnd_segs, 1))),
    Feature(
        "pacing",
        20,
        "log2(1 + pacing rate in Mbit/s); 0: not paced",
        lambda m: _mbps(m.pacing_bps),
    ),
    Feature(
        "inflight",
        4,
        "segments in flight over the window",
        lambda m: _part(m.inflight_segs, m.cwnd_segs),
    ),
    Feature(
        "interval",
        100,
        "length of the interval in smoothed RTTs",
        lambda m: _part(m.interval_ns, m.srtt_ns),
    ),
    Feature("acked", 1, "1: there were ACKs in the interval", lambda m: float(m.acks > 0)),
)


_VALUES = tuple(feature.value for feature in FEATURES)
HIGH = np.array([feature.high for feature in FEATURES], np.float32)


def observe(m: Measurements) -> NDArray[np.float32]:
    """Returns FEATURES of an interval; a Control can call it and so run a trained agent."""
    found = [value(m) for value in _VALUES]
    return np.minimum(np.array(found, np.float32), HIGH)


def nothing() -> NDArray[np.float32]:
    """Returns the observation of a flow that has not begun."""
    return np.zeros(len(FEATURES), np.float32)


def utility(m: Measurements, base_rtt_ns: float | None = None) -> float:
    """Returns the default reward: log2(Mbit/s) - log2(mean RTT / smallest RTT) - 10 * loss.

    The objective of Remy (Winstein and Balakrishnan, SIGCOMM 2013) with delta 1, and a price for
    losses. What an agent can win by a change does not depend on the link's rate or delay. The
    smallest RTT is the connection's, or the path's if it is given.
    """
    lost = _part(m.lost_segs, m.acked_segs + m.lost_segs)
    return worth(m.throughput_bps, _part(m.rtt_mean_ns, base_rtt_ns or m.rtt_min_ns), lost)


def worth(throughput_bps: float, rtt_ratio: float, lost: float) -> float:
    """Returns the utility of an interval: mean RTT over the smallest, lost segments of all."""
    queue = math.log2(max(rtt_ratio, 1))
    return math.log2(max(throughput_bps, THROUGHPUT_MIN_BPS) / 1e6) - queue - 10 * lost
