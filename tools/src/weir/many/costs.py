# SPDX-License-Identifier: BSD-3-Clause
"""Costs of the cells of a batch: beforehand by their configs, then from those that have ended.

    estimate = m * product over the cell's settings of (m_setting / m)

m is the geometric mean of the ended cells' wall times, m_setting that of those with the same
setting (one override, config or duration). A setting that no ended cell had counts as 1.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Hashable, Sequence

import yaml
from rich.console import Console

from weir.base import terminal, units
from weir.base.configs import Config
from weir.base.foreign import Json
from weir.base.page import Column, Table
from weir.many.travel import resolved
from weir.runner.options import Options

WALL_S_MIN = 1e-4
NS_PER_PACKET = 150.0  # of weir-sim on one core, for estimates
PER_PACKET = f"{NS_PER_PACKET:.0f} ns per packet"
START_S = 0.3
WIRE_BITS = 1538 * 8


def cost_s(config: Config) -> float:
    """Estimates how long a run takes on one core, by what its slowest forward link can carry."""
    links = [
        units.config_rate_bps(stage["link"]["rate"])
        for name, stages in config["paths"].items()
        for stage in stages
        if "link" in stage and name != "reverse"
    ]
    rates = [bps for bps in links if bps]
    duration_s = (units.config_time_ns(config["duration"]) or 0.0) / 1e9
    packets = min(rates, default=0.0) * duration_s / WIRE_BITS
    return START_S + packets * NS_PER_PACKET / 1e9


def costs_s(cells: Sequence[Options]) -> list[float]:
    """Estimates what cells cost. UserError: weir-sim refuses one."""
    return [cost_s(yaml.load(resolved(cell), yaml.CSafeLoader)) for cell in cells]


def show_plan(
    rows: Sequence[Json],
    columns: Sequence[Column],
    per: str,
    workers: int,
    screen: Console,
) -> None:
    """Shows cells and what they cost, `wall_s` of each row, without running any.

    per says at what rate, for people.
    """
    wall = Column("wall", "wall_s", lambda seconds: f"{seconds:,.1f} s")
    terminal.print_table(screen, Table([*columns, wall], rows))
    total_s = sum(row["wall_s"] for row in rows)
    screen.print(
        f"{len(rows)} cells, {total_s:,.0f} s of one core at {per}:"
        f" about {units.time(max(total_s / workers, 1.0) * 1e9)} on {workers} cores"
    )


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
        """Estimates the cost of a cell in s; None if no cell has ended."""
        if not self.ended:
            return None
        mean = self._sum / self.ended
        known = [self._of[setting] for setting in settings if setting in self._of]
        return math.exp(mean + sum(total / count - mean for count, total in known))
