# SPDX-License-Identifier: BSD-3-Clause
"""One flow in a bottleneck, as Gymnasium's Env."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import gymnasium
import numpy as np
from gymnasium import Space
from numpy.typing import NDArray

from weir.control import Measurements
from weir.errors import UserError
from weir.gym import episodes
from weir.gym.simulation import Simulation
from weir.gym.spaces import FEATURES, Actions, observation_space, observe, utility

Observation = NDArray[np.float32]
SEEDS = 2**31


class CongestionEnv(gymnasium.Env[Observation, NDArray[np.float32]]):
    """The window or rate of one flow, once per interval (`every`) of the config.

    path is a file of episodes (weir.gym.episodes) or a config; action is cwnd, pacing or both;
    reward is a function of the interval's Measurements; out keeps the run folder of the last
    episode. An episode ends, truncated, with the config's duration. `measurements` has all that the
    transport measured in the interval that the last observation is of.
    """

    metadata = {"render_modes": []}  # noqa: RUF012
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
        if self._episodes.agents != 1:
            raise UserError(
                f"{path}: {self._episodes.agents} flows are agents; CongestionEnv is of one, "
                "CongestionParallelEnv of several"
            )
        self._actions = Actions(action, factor, cwnd_max_segs)
        self._reward = reward
        self._out = None if out is None else Path(out)
        self._simulation: Simulation | None = None
        self.observation_space = cast("Space[Observation]", observation_space())
        self.action_space = cast("Space[Observation]", self._actions.space())

    @property
    def measurements(self) -> Measurements:
        """Of the last interval."""
        return self._running().page.measurements(0)

    def _running(self) -> Simulation:
        if self._simulation is None:
            raise UserError("an episode begins with reset()")
        return self._simulation

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Begins an episode. The same seed gives the same episode, bit for bit, in any process.

        options may have `overrides`, values of the config for this episode, by their keys.
        """
        super().reset(seed=seed)
        self.close()
        overrides = self._episodes.overrides(self.np_random) | (options or {}).get("overrides", {})
        number = int(self.np_random.integers(SEEDS))
        self._simulation = Simulation(self._episodes.config, overrides, number, self._out)
        if not self._simulation.running:
            self.close()
            raise UserError("the episode ended before its flow had an ACK", 1)
        return observe(self.measurements), {"overrides": overrides, "seed": number}

    def step(
        self, action: NDArray[np.float32]
    ) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Decides, and runs to the end of the next interval."""
        simulation = self._running()
        simulation.page.decide(0, *self._actions.decide(action, self.measurements))
        running = simulation.step()
        m = self.measurements
        return observe(m), self._reward(m), False, not running, {"now_s": m.now_ns / 1e9}

    def close(self) -> None:
        """Ends the episode."""
        if self._simulation is not None:
            self._simulation.close()
            self._simulation = None
