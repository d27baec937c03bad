# SPDX-License-Identifier: BSD-3-Clause
"""Observations, actions and the reward: each a list or a function, with its meaning."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from gymnasium.spaces import Box
from numpy.typing import NDArray

from weir.control import Measurements

THROUGHPUT_MIN_BPS = 1e4  # of the utility: an interval without an ACK is bad, not infinitely so
WINDOW_MIN_SEGS = 2.0
PACED_WINDOWS = 2.0  # of a rate's round trip: the window that does not limit it
ACTIONS = ("cwnd", "pacing", "both")


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
_HIGH = np.array([feature.high for feature in FEATURES], np.float32)


def observation_space() -> Box:
    """Returns the space of observations: for each of FEATURES, 0 to its bound."""
    return Box(np.zeros_like(_HIGH), _HIGH, dtype=np.float32)


def observe(m: Measurements) -> NDArray[np.float32]:
    """Returns FEATURES of an interval; a Control can call it and so run a trained agent."""
    found = [value(m) for value in _VALUES]
    return np.minimum(np.array(found, np.float32), _HIGH)


def nothing() -> NDArray[np.float32]:
    """Returns the observation of a flow that has not begun."""
    return np.zeros(len(FEATURES), np.float32)


def utility(m: Measurements) -> float:
    """Returns the default reward: log2(Mbit/s) - log2(mean RTT / smallest RTT) - 10 * loss.

    The objective of Remy (Winstein and Balakrishnan, SIGCOMM 2013) with delta 1, and a price for
    losses. What an agent can win by a change does not depend on the link's rate or delay.
    """
    lost = _part(m.lost_segs, m.acked_segs + m.lost_segs)
    queue = math.log2(max(_part(m.rtt_mean_ns, m.rtt_min_ns), 1))
    return math.log2(max(m.throughput_bps, THROUGHPUT_MIN_BPS) / 1e6) - queue - 10 * lost


@dataclass(frozen=True)
class Actions:
    """Decisions of an agent: factors between 1/factor and factor, as powers in [-1, 1].

    cwnd: of the window, not paced unless the group's `pacing` is. pacing: of the rate, with a
    window of two round trips of it. both: of both, each by its own.
    """

    kind: str = "cwnd"
    factor: float = 2.0
    cwnd_max_segs: float = 10000.0

    def __post_init__(self) -> None:
        if self.kind not in ACTIONS:
            raise ValueError(f"action: {self.kind} is none of {', '.join(ACTIONS)}")
        if not 1 < self.factor < math.inf:
            raise ValueError(f"factor: {self.factor} is not above 1, or not finite")
        if not WINDOW_MIN_SEGS <= self.cwnd_max_segs < math.inf:
            raise ValueError(
                f"cwnd_max_segs: {self.cwnd_max_segs} is below {WINDOW_MIN_SEGS:g}, or not finite"
            )

    def space(self) -> Box:
        return Box(-1, 1, (2 if self.kind == "both" else 1,), np.float32)

    def powers(self, action: object, agent: str = "") -> list[float]:
        """Returns the factors of an action, which is cut off at -1 and 1.

        ValueError: it is not of space()'s shape, or has a number that is not finite.
        """
        shape = self.space().shape
        try:
            values = np.asarray(action, np.float64)
        except (TypeError, ValueError, OverflowError):
            values = np.array([np.nan])
        if values.shape != shape or not np.isfinite(values).all():
            raise ValueError(
                f"action{f' of {agent}' if agent else ''}: {action!r} must be {shape[0]} finite "
                f"number{'s'[: shape[0] - 1]} from -1 to 1, in an array of one dimension"
            )
        return [self.factor**power for power in np.clip(values, -1, 1).tolist()]

    def decide(self, powers: list[float], m: Measurements) -> tuple[float, float]:
        """Returns window (segments) and pacing rate (bit/s; 0: not paced) from now on."""
        cwnd = self._window(m.cwnd_segs * powers[0])
        if self.kind == "cwnd":
            return cwnd, 0.0
        segment_bits = 8.0 * m.mss_bytes
        rtt_s = max(m.srtt_ns, 1) / 1e9
        rate = (m.pacing_bps or m.cwnd_segs * segment_bits / rtt_s) * powers[-1]
        rate = min(max(rate, segment_bits / rtt_s), self.cwnd_max_segs * segment_bits / rtt_s)
        if self.kind == "pacing":
            cwnd = self._window(PACED_WINDOWS * rate * rtt_s / segment_bits)
        return cwnd, rate

    def _window(self, segs: float) -> float:
        return min(max(segs, WINDOW_MIN_SEGS), self.cwnd_max_segs)
