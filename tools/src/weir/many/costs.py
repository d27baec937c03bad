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
from dataclasses import dataclass
from pathlib import Path

import yaml
from rich.console import Console

from weir.analysis import folder, run_summary
from weir.base import terminal, units
from weir.base.configs import Config
from weir.base.errors import UserError
from weir.base.foreign import Json
from weir.base.page import Column, Table
from weir.many.travel import resolved
from weir.runner.options import Options

WALL_S_MIN = 1e-4
NS_PER_PACKET = 150.0  # of weir-sim on one core, for estimates
GUEST_NS_PER_PACKET = 30_000.0  # with Linux guests at both ends, ACKs included
PER_PACKET = f"{NS_PER_PACKET:.0f} ns per packet, {GUEST_NS_PER_PACKET / 1e3:.0f} us with guests"
START_S = 0.3
WIRE_BITS = 1538 * 8


FIRST_END = 1.05  # of a stop rule's `over`: 21 ticks, 20 of them after the first


@dataclass(frozen=True)
class Cost:
    """Time of a run on one core; a stop rule may end it at any time between the two."""

    least_s: float
    most_s: float

    def __str__(self) -> str:
        if self.least_s == self.most_s:
            return f"{self.most_s:,.1f} s"
        return f"{self.least_s:,.1f} to {self.most_s:,.1f} s"


def cost(config: Config, speed: float | None = None) -> Cost:
    """Estimates how long a run takes.

    speed: processor seconds per virtual second of such a run [by what the slowest forward link can
    carry].
    """
    links = [
        units.config_rate_bps(stage["link"]["rate"])
        for name, stages in config["paths"].items()
        for stage in stages
        if "link" in stage and name != "reverse"
    ]
    bps = min((bps for bps in links if bps), default=0.0)
    linux = any("linux" in group.get("stack", ()) for group in config.get("flows", ()))
    per_packet_ns = GUEST_NS_PER_PACKET if linux else NS_PER_PACKET
    each_s = bps / WIRE_BITS * per_packet_ns / 1e9 if speed is None else speed
    most_s = _seconds(config, "duration")
    least_s = most_s
    rule = config.get("stop")
    if rule and rule["metric"] != "none":
        ends_s = _seconds(config, "warmup") + FIRST_END * _seconds(rule, "over")
        least_s = min(most_s, ends_s)
    return Cost(START_S + least_s * each_s, START_S + most_s * each_s)


def _seconds(section: Config, key: str) -> float:
    return (units.config_time_ns(section[key]) or 0.0) / 1e9


def speed(place: Path) -> float | None:
    """Returns the processor seconds per virtual second of a run's measured part; None: no run."""
    try:
        summary = run_summary.decode(folder.read_json(place / "summary.json"), str(place))
    except UserError:
        return None
    measured = summary.measured
    if measured is None or not measured.cpu_s or not measured.virtual_s:
        return None
    return measured.cpu_s / measured.virtual_s


def costs(cells: Sequence[Options], before: Sequence[Path] = ()) -> list[Cost]:
    """Estimates what cells cost; before: folders where cells of the same name may have been run.

    UserError: weir-sim refuses one.
    """
    found = []
    for cell in cells:
        speeds = (speed(place / cell.name) for place in before)
        config = yaml.load(resolved(cell), yaml.CSafeLoader)
        found.append(cost(config, next((one for one in speeds if one is not None), None)))
    return found


def show_plan(
    rows: Sequence[Json],
    columns: Sequence[Column],
    per: str,
    workers: int,
    screen: Console,
) -> None:
    """Shows cells and what they cost, without running any.

    A row's `wall_s` is the least that it takes, `wall_s_max` the most, where it has one. per says
    at what rate, for people.
    """
    each = [Cost(float(r["wall_s"]), float(r.get("wall_s_max") or r["wall_s"])) for r in rows]
    named = {id(row): str(one) for row, one in zip(rows, each, strict=True)}
    wall = Column("wall", lambda row: named[id(row)])
    terminal.print_table(screen, Table([*columns, wall], rows))
    sums = sum(one.least_s for one in each), sum(one.most_s for one in each)
    ends = dict.fromkeys(units.time(max(total / workers, 1.0) * 1e9) for total in sums)
    screen.print(
        f"{len(rows)} cells, {Cost(*sums)} of one core at {per}:"
        f" about {' to '.join(ends)} on {workers} cores",
        soft_wrap=True,
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
