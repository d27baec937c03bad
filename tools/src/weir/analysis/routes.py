# SPDX-License-Identifier: BSD-3-Clause
"""The paths that a flow group's packets pass: `path: {forward: [hop1, hop2], reverse: back}`."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from weir.base.configs import Config

DIRECTIONS = ("forward", "reverse")


def route(group: Config, direction: str) -> list[str]:
    """Returns the names of a group's paths in order; without `path`, the direction's name."""
    names = (group.get("path") or {}).get(direction, direction)
    return [str(name) for name in names] if isinstance(names, list) else [str(names)]


def groups(config: Config) -> list[Config]:
    """Returns the flow groups of a config, or an empty one if there are none."""
    return config.get("flows") or [{}]


def is_ipv6(config: Config) -> list[bool]:
    """Returns for each group whether its packets are of IPv6."""
    return [group.get("ip") == "ipv6" for group in groups(config)]


def host_address(ip: int, ipv6: bool) -> str:
    """Returns a host's address: of IPv6 it is in the last 32 bits of 2001:2::/96."""
    six = ipaddress.IPv6Address((0x2001_0002 << 96) + ip)
    return str(six if ipv6 else ipaddress.IPv4Address(ip))


def group_of(config: Config, flows: Iterable[int]) -> npt.NDArray[np.intp]:
    """Returns the group of each flow, numbered group by group; unknown ones: the first."""
    counts = [int(float(group.get("count", 1))) for group in groups(config)]
    found = np.searchsorted(np.cumsum(counts), np.asarray(flows, np.int64), side="right")
    return np.where(found < len(counts), found, 0)


def data_path(config: Config, group: int) -> int:
    """Returns the number of the path in which a group's data enters the network; 0: it has none."""
    paths = list(config.get("paths", {}))
    first = route(groups(config)[group], "forward")[0]
    return paths.index(first) if first in paths else 0


def backward(config: Config) -> npt.NDArray[np.bool_]:
    """Returns for each group (row) and path whether it is on the group's way back only."""
    paths = list(config.get("paths", {})) or list(DIRECTIONS)
    return np.array(
        [
            [p in route(group, "reverse") and p not in route(group, "forward") for p in paths]
            for group in groups(config)
        ]
    )
