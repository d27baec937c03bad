# SPDX-License-Identifier: BSD-3-Clause
"""Elements of the box: how their bounds are read, and how they change a config."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from weir.base import configs, units
from weir.base.configs import Config
from weir.base.errors import UserError

PATH, BACK = "forward", "reverse"
GUESTS = ("linux", "quic")  # stacks that are programs and kernels


def log_between(low: float, high: float, x: float) -> float:
    """Returns low for x = 0 and high for x = 1, and goes from one to the other by factors."""
    return low * math.exp(x * math.log(high / low))


def rounded(value: float, digits: int = 3) -> float:
    """Shortens a number to few digits, so that what is found can be read."""
    return float(f"{value:.{digits - 1}e}")


def time_text(ns: float) -> str:
    """Writes a time as the config has it: 12.5ms."""
    return f"{ns / 1e6:.7g}ms"


def rate_text(bps: float) -> str:
    """Writes a rate as the config has it: 12Mbit."""
    return f"{rounded(bps) / 1e6:g}Mbit"


@dataclass(frozen=True)
class Network:
    """The facts of a config that elements work with."""

    duration_ns: float
    rate_bps: float
    victims: tuple[int, ...]  # groups with a congestion control, which the attack is on
    guests: bool = False  # some of these are guests'


class Element:
    """A thing that a network may do. `names` has a word for each number.

    keys: what the box may have, and the defaults; "": none. ours: it sets what guests do not have.
    """

    keys: ClassVar[Mapping[str, str]]
    ours: ClassVar[bool]

    def __init_subclass__(cls, keys: Mapping[str, str], ours: bool = False) -> None:
        cls.keys, cls.ours = keys, ours

    def __init__(self, of: Bounds, network: Network) -> None:
        self.network = network
        self.names: list[str] = []
        self.benign: list[float | None] = []
        self._read(of)

    def _read(self, of: Bounds) -> None:
        """Reads its bounds, and names its numbers."""
        raise NotImplementedError

    def amount(self, name: str, benign: float = 0.0) -> None:
        """Adds a number that is an amount."""
        self.names.append(name)
        self.benign.append(benign)

    def place(self, name: str) -> None:
        """Adds a number that says where or when."""
        self.names.append(name)
        self.benign.append(None)

    def apply(self, config: Config, x: Sequence[float]) -> None:
        """Writes into the config what the network does at this point."""
        raise NotImplementedError


class Bounds:
    """An element's map in the box, read with units."""

    def __init__(self, name: str, given: object, keys: Mapping[str, str]) -> None:
        self.name = name
        if given in (None, ""):
            given = {}
        if not isinstance(given, Mapping):
            raise UserError(f"box: {name}: is no map, such as {{{', '.join(keys)}: ...}}")
        if unknown := [str(key) for key in given if key not in keys]:
            raise UserError(f"box: {name}: {unknown[0]} is none of {', '.join(keys)}")
        self.values = {**keys, **{str(key): value for key, value in given.items()}}

    def fail(self, key: str, wanted: str) -> UserError:
        """Makes the error of a value that cannot be."""
        given = configs.text(self.values[key])
        return UserError(f"box: {self.name}: {key}: {given} is not {wanted}")

    def _number(self, key: str, text: object, unit: str) -> float:
        read = {
            "time": units.config_time_ns,
            "rate": units.config_rate_bps,
            "ratio": units.config_ratio,
            "size": units.config_bytes,
        }[unit]
        value = read(text)
        if value is None or value < 0:
            raise self.fail(key, f"a {unit}")
        return value

    def number(self, key: str, unit: str) -> float:
        """Reads a time in ns, a rate in bit/s, a size in bytes or a ratio."""
        return self._number(key, self.values[key], unit)

    def interval(self, key: str, unit: str) -> tuple[float, float]:
        """Reads [low, high], both above 0."""
        pair = self.values[key]
        if isinstance(pair, str):
            pair = pair.strip("[]").split(",")
        if not (isinstance(pair, Sequence) and len(pair) == 2):
            raise self.fail(key, "a list of two")
        low, high = (self._number(key, str(text).strip(), unit) for text in pair)
        if not 0 < low <= high:
            raise self.fail(key, "two numbers above 0, the smaller one first")
        return low, high

    def count(self, key: str, most: int) -> int:
        """Reads a whole number from 1."""
        text = str(self.values[key])
        if not text.isdigit() or not 1 <= int(text) <= most:
            raise self.fail(key, f"a number from 1 to {most}")
        return int(text)

    def choice(self, key: str, words: Sequence[str]) -> str:
        """Reads one of some words."""
        text = str(self.values[key])
        if text not in words:
            raise self.fail(key, f"one of {', '.join(words)}")
        return text


def stages(config: Config, path: str) -> list[Config]:
    """Returns a path's list of stages."""
    found = config["paths"][path]
    assert isinstance(found, list)
    return found


def link_of(config: Config) -> tuple[int, Config]:
    """Returns the place and the parameters of the first link of the path forward."""
    for place, stage in enumerate(stages(config, PATH)):
        if isinstance(stage, Mapping) and "link" in stage:
            return place, stage["link"]
    raise UserError(f"attack: paths: {PATH}: has no link")


def at(config: Config, when_ns: float, key: str, value: str) -> None:
    """Adds a change to the schedule; changes at one time are one item."""
    items = config.setdefault("schedule", [])
    for item in items:
        if item["at"] == time_text(when_ns):
            item[key] = value
            return
    items.append({"at": time_text(when_ns), key: value})
