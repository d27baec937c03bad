# SPDX-License-Identifier: BSD-3-Clause
"""The spaces of observations and actions, and what an action decides."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from gymnasium.spaces import Box

from weir.control import Measurements
from weir.environments.features import HIGH

WINDOW_MIN_SEGS = 2.0
PACED_WINDOWS = 2.0  # of a rate's round trip: the window that does not limit it
ACTIONS = ("cwnd", "pacing", "both")


def observation_space() -> Box:
    """Returns the space of observations: for each of FEATURES, 0 to its bound."""
    return Box(np.zeros_like(HIGH), HIGH, dtype=np.float32)


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
        size = 2 if self.kind == "both" else 1
        try:
            values = np.asarray(action, np.float64)
        except (TypeError, ValueError, OverflowError):
            values = np.array([np.nan])
        numbers: list[float] = values.tolist() if values.shape == (size,) else []
        if not (numbers and all(map(math.isfinite, numbers))):
            raise ValueError(
                f"action{f' of {agent}' if agent else ''}: {action!r} must be {size} finite "
                f"number{'s'[: size - 1]} from -1 to 1, in an array of one dimension"
            )
        return [self.factor ** min(max(power, -1.0), 1.0) for power in numbers]

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
