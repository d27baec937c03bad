# SPDX-License-Identifier: BSD-3-Clause
"""The box: what a network may do to the flows of a config, and within which bounds.

    box:
      rate: {pieces: 8, low: 50%}
      delay: {most: 20ms, pieces: 6, period: [20ms, 2s]}

Each key is an element. A point of the box is a list of numbers in [0, 1], a few for each element,
which it turns into ordinary sections of the config. Some numbers are amounts: at their benign value
the element does nothing there (`benign`); the others say where or when (benign is None).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy

from weir.attack.element import BACK, GUESTS, PATH, Bounds, Element, Network, link_of
from weir.attack.elements import ELEMENTS
from weir.base import units
from weir.base.configs import Config
from weir.base.errors import UserError
from weir.guests.kernels import CURRENT


def victims(config: Config) -> tuple[int, ...]:
    """Returns the groups that have a congestion control, by their indices."""
    groups = config.get("flows")
    if not isinstance(groups, list):
        raise UserError("attack: the config has no flows")
    return tuple(
        index
        for index, group in enumerate(groups)
        if not (isinstance(group.get("source"), Mapping) and "udp" in group["source"])
    )


def stack(group: Config, side: str = "stack") -> str:
    """Returns whose stack a side of a group has: weir, linux or quic."""
    written = group.get(side) or (group.get("stack") if side == "peer" else None) or "weir"
    return str(_name_and_parameters(written)[0])


def guests_of(group: Config) -> set[str]:
    """Returns the names of the kernels and the QUIC stack that a group's guests run."""
    found = set()
    for side in ("stack", "peer"):
        kind, of = _name_and_parameters(group.get(side))
        if kind == "quic":
            name, of = _name_and_parameters(of)
            found.add(str(name))
        if kind in GUESTS:
            found.add(str(of.get("kernel", CURRENT) if isinstance(of, Mapping) else CURRENT))
    return found


def _name_and_parameters(written: object) -> tuple[object, object]:
    """Returns the name and the parameters of NAME or {NAME: PARAMETERS}."""
    return next(iter(written.items())) if isinstance(written, Mapping) else (written, None)


def network_of(config: Config) -> Network:
    """Returns what elements know of a config; refuses one that they cannot change."""
    paths = config.get("paths")
    if not (isinstance(paths, Mapping) and isinstance(paths.get(PATH), list)):
        raise UserError(f"attack: paths: {PATH}: is wanted, a list of stages with a link")
    rate_bps = units.config_rate_bps(link_of(config)[1].get("rate"))
    duration_ns = units.config_time_ns(config.get("duration", "30s"))
    if not rate_bps or not duration_ns:
        raise UserError("attack: the link's rate and the duration of the config are wanted")
    own = [config["flows"][index] for index in victims(config)]
    guests = any(stack(group, side) in GUESTS for group in own for side in ("stack", "peer"))
    return Network(duration_ns, rate_bps, victims(config), guests)


class Box:
    """All elements of a box; a point is as many numbers in [0, 1] as they have."""

    def __init__(self, config: Config, box: Config) -> None:
        self.config = config
        network = network_of(config)
        self.elements: list[tuple[Element, slice]] = []  # each with its part of a point
        self.names: list[str] = []
        for name, given in box.items():
            if name not in ELEMENTS:
                raise UserError(f"box: {name} is none of {', '.join(ELEMENTS)}")
            kind = ELEMENTS[name]
            if kind.ours and network.guests:
                raise UserError(f"box: {name}: is of Weir's own hosts; with guests leave it out")
            keys = dict(kind.keys) | ({"path": BACK} if name in ("acks", "ack_loss") else {})
            element, begin = kind(Bounds(name, given, keys), network), len(self.names)
            self.names += element.names
            self.elements.append((element, slice(begin, len(self.names))))
        self.benign = [value for element, _ in self.elements for value in element.benign]
        if not self.names:
            raise UserError(f"box: has none of {', '.join(ELEMENTS)}")

    def nothing(self) -> list[float]:
        """Returns a point at which the network is benign."""
        return [0.5 if value is None else value for value in self.benign]

    def configured(self, x: Sequence[float]) -> Config:
        """Returns the config under the network of this point."""
        config = deepcopy(self.config)
        for element, span in self.elements:
            part = list(x[span])
            pairs = zip(part, element.benign, strict=True)
            amounts = [(a, b) for a, b in pairs if b is not None]
            if len(amounts) in (0, len(part)) or any(a != b for a, b in amounts):
                element.apply(config, part)
        if config.get("schedule"):
            config["schedule"].sort(key=lambda item: units.config_time_ns(item["at"]) or 0)
        return config

    def distance(self, x: Sequence[float]) -> float:
        """Returns the mean distance of amounts from the benign network, 0 to 1."""
        parts = [
            abs(value - benign) / max(benign, 1 - benign)
            for value, benign in zip(x, self.benign, strict=True)
            if benign is not None
        ]
        return sum(parts) / len(parts) if parts else 0.0
