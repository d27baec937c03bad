# SPDX-License-Identifier: BSD-3-Clause
"""Episodes of a config, with what is drawn anew for each of them.

    config: ../quickstart.yaml
    draw:
      paths.forward.link.rate: {loguniform: [5Mbit, 100Mbit]}
      paths.forward.delay.delay: {uniform: [5ms, 50ms]}
      paths.forward.link.queue.fifo.limit: {choice: [0.5BDP, 2BDP]}

Distributions: uniform and loguniform between two numbers with units of one kind, integers from the
first to the second inclusive, and choice among values.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from weir.base import configs, units
from weir.base.errors import UserError

BASE = {"ns": "ns", "bit/s": "bit", "B": "B"}  # a unit's suffix, for numbers in it
KINDS = ("uniform", "loguniform", "integers", "choice")
AGENT = "agent"
SEEDS = 2**31


@dataclass(frozen=True)
class Draw:
    """A value of the config that is drawn for each episode."""

    key: str
    kind: str
    texts: tuple[str, ...] = ()  # of a choice
    low: float = 0
    high: float = 0
    unit: str = ""

    def text(self, rng: np.random.Generator) -> str:
        """Returns a drawn value as the config has it."""
        if self.kind == "choice":
            return self.texts[int(rng.integers(len(self.texts)))]
        if self.kind == "integers":
            return str(int(rng.integers(int(self.low), int(self.high), endpoint=True)))
        if self.kind == "uniform":
            value = float(rng.uniform(self.low, self.high))
        else:
            value = float(np.exp(rng.uniform(np.log(self.low), np.log(self.high))))
        return f"{value!r}{self.unit}"


@dataclass(frozen=True)
class Episodes:
    """A config and its draws; agents: how many of its flows are agents."""

    config: Path
    draws: tuple[Draw, ...]
    agents: int
    fixed: Mapping[str, str] = field(default_factory=dict)  # other values, by their keys

    def overrides(self, rng: np.random.Generator) -> dict[str, str]:
        return {**self.fixed, **{draw.key: draw.text(rng) for draw in self.draws}}

    def begin(self, rng: np.random.Generator) -> tuple[dict[str, str], int]:
        """Returns the overrides of the next episode, and its seed."""
        return self.overrides(rng), int(rng.integers(SEEDS))


def read(path: Path | str) -> Episodes:
    """Reads a file of episodes, or a config that is the same in each."""
    place = Path(path)
    content = configs.mapping(place)
    if "config" not in content:
        return Episodes(place, (), agents(place, content))
    if unknown := set(content) - {"config", "draw"}:
        raise UserError(f"{place}: {sorted(unknown)[0]} is neither config nor draw")
    config = place.parent / str(content["config"])
    return Episodes(config, draws(place, content), agents(config, configs.mapping(config)))


def draws(place: Path, content: Mapping[str, object]) -> tuple[Draw, ...]:
    """Reads the part `draw` of a file."""
    draw = content.get("draw") or {}
    if not isinstance(draw, Mapping):
        raise UserError(f"{place}: draw: is no map of keys to distributions")
    return tuple(_draw(place, str(key), of) for key, of in draw.items())


def _draw(place: Path, key: str, of: object) -> Draw:
    if not (isinstance(of, Mapping) and len(of) == 1 and next(iter(of)) in KINDS):
        raise UserError(f"{place}: draw: {key}: one of {', '.join(KINDS)}, as {{uniform: [1, 2]}}")
    kind, values = next(iter(of.items()))
    if not (isinstance(values, list) and values and (kind == "choice" or len(values) == 2)):
        raise UserError(f"{place}: draw: {key}: {kind} is of a list of two, choice of any number")
    if re.fullmatch(r"flows\.\d+\.count", key):
        raise UserError(f"{place}: draw: {key}: the number of agents is that of the config")
    if kind == "choice":
        return Draw(key, kind, tuple(map(str, values)))
    numbers = [_number(text) for text in values]
    (low, unit), (high, other) = numbers
    if unit is None or unit != other or not low <= high or (kind == "loguniform" and low <= 0):
        raise UserError(
            f"{place}: draw: {key}: {kind} is of two numbers of one unit, the smaller one first"
            + (" and above 0" if kind == "loguniform" else "")
        )
    return Draw(key, kind, (), low, high, BASE.get(unit, unit))


def _number(text: object) -> tuple[float, str | None]:
    """Returns a number in its base unit, and the unit: "", that of a dimension, or a suffix."""
    match = re.fullmatch(rf"({units.NUMBER}) ?([a-zA-Zµμ/%]*)", str(text))
    if match is None:  # only a time may be a sum, such as 1m30s
        found = units.config_time_ns(text)
        return (0.0, None) if found is None else (found, "ns")
    value, suffix = float(match[1]), match[2]
    for unit, suffixes in units.SUFFIXES.items():
        if suffix in suffixes:
            return value * suffixes[suffix], unit
    return value, suffix


def agents(place: Path, content: Mapping[str, object]) -> int:
    """Returns how many flows are agents. UserError: none is, or they cannot step at once."""
    groups = content.get("flows")
    flows = [g for g in groups if isinstance(g, Mapping)] if isinstance(groups, list) else []
    mine = [g for g in flows if isinstance(g.get("cc"), Mapping) and g["cc"].get("python") == AGENT]
    try:
        count = sum(int(group.get("count", 1)) for group in mine)
    except ValueError:
        count = 0
    if count == 0:
        raise UserError(f"{place}: no flow has `cc: {{python: {AGENT}, every: 10ms}}`")
    every = {str(group["cc"].get("every", "ack")) for group in mine}
    if count > 1 and (len(every) > 1 or every & {"ack", "rtt"}):
        raise UserError(f"{place}: agents step at once: all have the same `every`, a time")
    return count
