# SPDX-License-Identifier: BSD-3-Clause
"""Costs of the cells of a batch, estimated from those that have ended.

    estimate = m * product over the cell's settings of (m_setting / m)

m is the geometric mean of the ended cells' wall times, m_setting that of those with the same
setting (one override, config or duration). A setting that no ended cell had counts as 1.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Hashable, Sequence

WALL_S_MIN = 1e-4


class Costs:
    """Wall times of ended cells, by their settings."""

    def __init__(self) -> None:
        self.ended = 0
        self._sum = 0.0
        self._of: dict[Hashable, tuple[int, float]] = defaultdict(lambda: (0, 0.0))

    def add(self, settings: Sequence[Hashable], wall_s: float) -> None:
        """Adds the cost of a cell that has ended."""
        cost = math.log(max(wall_s, WALL_S_MIN))
        self.ended += 1
        self._sum += cost
        for setting in settings:
            count, total = self._of[setting]
            self._of[setting] = count + 1, total + cost

    def estimate_s(self, settings: Sequence[Hashable]) -> float | None:
        """Returns what a cell will cost; None if no cell has ended."""
        if not self.ended:
            return None
        mean = self._sum / self.ended
        known = [self._of[setting] for setting in settings if setting in self._of]
        return math.exp(mean + sum(total / count - mean for count, total in known))
