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


def packets_per_s(config: Config) -> float:
    """Returns what the slowest forward link can carry, in full frames; 0: there is no link."""
    links = [
        units.config_rate_bps(stage["link"]["rate"])
        for name, stages in config["paths"].items()
        for stage in stages
        if "link" in stage and name != "reverse"
    ]
    return min((bps for bps in links if bps), default=0.0) / WIRE_BITS


def cost(config: Config, speed: float | None = None, ns_per_packet: float | None = None) -> Cost:
    """Estimates how long a run takes.

    speed: processor seconds per virtual second of such a run [ns_per_packet of what the slowest
    forward link can carry].
    """
    linux = any("linux" in group.get("stack", ()) for group in config.get("flows", ()))
    assumed_ns = GUEST_NS_PER_PACKET if linux else ns_per_packet or NS_PER_PACKET
    each_s = packets_per_s(config) * assumed_ns / 1e9 if speed is None else speed
    most_s = _seconds(config, "duration")
    least_s = most_s
    rule = config.get("stop")
    if rule and rule["metric"] != "none":
        ends_s = _seconds(config, "warmup") + FIRST_END * _seconds(rule, "over")
        least_s = min(most_s, ends_s)
    return Cost(START_S + least_s * each_s, START_S + most_s * each_s)


def _seconds(section: Config, key: str) -> float:
    return (units.config_time_ns(section[key]) or 0.0) / 1e9


@dataclass(frozen=True)
class Speed:
    """The measured part of a run: processor seconds, and packets that its slowest link can carry.

    Where it has no link there are none.
    """

    cpu_s: float
    virtual_s: float
    packets: float

    def of(self, config: Config) -> float:
        """Returns processor seconds per virtual second of a run like it, in proportion to rates."""
        each_s = self.cpu_s / self.virtual_s
        rate = packets_per_s(config)
        return each_s * rate / (self.packets / self.virtual_s) if rate and self.packets else each_s


def speed(place: Path) -> Speed | None:
    """Returns how fast the run of a folder was; None: there is none."""
    try:
        summary = run_summary.decode(folder.read_json(place / "summary.json"), str(place))
        config = yaml.load((place / "config.yaml").read_bytes(), yaml.CSafeLoader)
    except (UserError, OSError):
        return None
    measured = summary.measured
    if measured is None or not measured.cpu_s or not measured.virtual_s:
        return None
    packets = packets_per_s(config) * measured.virtual_s
    return Speed(measured.cpu_s, measured.virtual_s, packets)


def ns_per_packet(speeds: Sequence[Speed]) -> float | None:
    """Returns the processor time of some runs over the packets that their links can carry."""
    packets = sum(one.packets for one in speeds)
    return 1e9 * sum(one.cpu_s for one in speeds if one.packets) / packets if packets else None


def costs(
    cells: Sequence[Options], before: Sequence[Path] = (), ns_per_packet: float | None = None
) -> list[Cost]:
    """Estimates what cells cost; before: folders where cells of the same name may have been run.

    ns_per_packet: of those that were not [what `cost` assumes]. UserError: weir-sim refuses one.
    """
    found = []
    for cell in cells:
        speeds = (speed(place / cell.name) for place in before)
        config = yaml.load(resolved(cell), yaml.CSafeLoader)
        known = next((one.of(config) for one in speeds if one is not None), None)
        found.append(cost(config, known, ns_per_packet))
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
