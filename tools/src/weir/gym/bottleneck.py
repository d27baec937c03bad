# SPDX-License-Identifier: BSD-3-Clause
"""What both environments are: episodes of a config, and the one that runs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from weir.control import Measurements
from weir.errors import UserError
from weir.gym import episodes
from weir.gym.simulation import Simulation
from weir.gym.spaces import FEATURES, Actions, utility

SEEDS = 2**31


class Bottleneck:
    """path is a file of episodes (weir.gym.episodes) or a config; action is cwnd, pacing or both;
    reward is a function of the interval's Measurements; out keeps the run folder of the last
    episode.
    """

    names = tuple(feature.name for feature in FEATURES)

    def __init__(
        self,
        path: Path | str,
        *,
        action: str = "cwnd",
        factor: float = 2.0,
        cwnd_max_segs: float = 10000.0,
        reward: Callable[[Measurements], float] = utility,
        out: Path | str | None = None,
    ) -> None:
        self._episodes = episodes.read(path)
        self._actions = Actions(action, factor, cwnd_max_segs)
        self._reward = reward
        self._out = None if out is None else Path(out)
        self._simulation: Simulation | None = None
        self._prepare(path)

    def _prepare(self, path: Path | str) -> None:
        """What an environment has besides: its agents and their spaces."""
        raise NotImplementedError

    def _begin(
        self, rng: np.random.Generator, options: dict[str, Any] | None, flow: str
    ) -> dict[str, Any]:
        """Begins an episode; what was drawn for it."""
        self.close()
        overrides = self._episodes.overrides(rng) | (options or {}).get("overrides", {})
        number = int(rng.integers(SEEDS))
        self._simulation = Simulation(self._episodes.config, overrides, number, self._out)
        if not self._simulation.running:
            self.close()
            raise UserError(f"the episode ended before {flow} had an ACK", 1)
        return {"overrides": overrides, "seed": number}

    def close(self) -> None:
        """Ends the episode."""
        if self._simulation is not None:
            self._simulation.close()
            self._simulation = None
