# SPDX-License-Identifier: BSD-3-Clause
"""Several agents in one bottleneck, as PettingZoo's ParallelEnv."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium.spaces import Box
from gymnasium.utils import seeding
from numpy.typing import NDArray
from pettingzoo import ParallelEnv

from weir.control import Measurements
from weir.errors import UserError
from weir.gym import episodes
from weir.gym.env import SEEDS, Observation
from weir.gym.simulation import Simulation
from weir.gym.spaces import FEATURES, Actions, nothing, observation_space, observe, utility


class CongestionParallelEnv(ParallelEnv):  # type: ignore[misc]
    """As CongestionEnv, for every flow of the config whose control is an agent.

    All agents step at once: at the first ACK, loss or timeout of any of them at or after a multiple
    of `every`. What an agent decides applies from its flow's next such event. agent_0 is the flow
    that starts first. An agent whose flow has not begun observes zeros and is rewarded with 0; one
    that had no ACK in the interval sees it by `acked`.
    """

    metadata = {"name": "weir_congestion_v1", "render_modes": []}  # noqa: RUF012
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
        self._rng = seeding.np_random(None)[0]
        self.render_mode = None
        self.possible_agents = [f"agent_{i}" for i in range(self._episodes.agents)]
        self.agents: list[str] = []
        self._spaces = {
            name: (observation_space(), self._actions.space()) for name in self.possible_agents
        }

    def observation_space(self, agent: str) -> Box:
        """FEATURES."""
        return self._spaces[agent][0]

    def action_space(self, agent: str) -> Box:
        """One power, or two."""
        return self._spaces[agent][1]

    def measurements(self, agent: str) -> Measurements | None:
        """Of an agent's last interval; None: its flow has not begun."""
        slot = self.possible_agents.index(agent)
        if self._simulation is None or slot >= self._simulation.flows:
            return None
        return self._simulation.page.measurements(slot)

    def _observations(self) -> dict[str, Observation]:
        measured = {name: self.measurements(name) for name in self.agents}
        return {name: nothing() if m is None else observe(m) for name, m in measured.items()}

    def _decide(self, simulation: Simulation, actions: dict[str, NDArray[np.float32]]) -> None:
        for slot, name in enumerate(self.possible_agents):
            m = self.measurements(name)
            if m is not None and name in actions:
                simulation.page.decide(slot, *self._actions.decide(actions[name], m))

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Observation], dict[str, dict[str, Any]]]:
        """Begins an episode, as CongestionEnv.reset."""
        if seed is not None:
            self._rng = seeding.np_random(seed)[0]
        self.close()
        overrides = self._episodes.overrides(self._rng) | (options or {}).get("overrides", {})
        number = int(self._rng.integers(SEEDS))
        self._simulation = Simulation(self._episodes.config, overrides, number, self._out)
        if not self._simulation.running:
            self.close()
            raise UserError("the episode ended before any flow had an ACK", 1)
        self.agents = list(self.possible_agents)
        info = {"overrides": overrides, "seed": number}
        return self._observations(), {name: dict(info) for name in self.agents}

    def step(
        self, actions: dict[str, NDArray[np.float32]]
    ) -> tuple[
        dict[str, Observation],
        dict[str, float],
        dict[str, bool],
        dict[str, bool],
        dict[str, dict[str, Any]],
    ]:
        """Decides for all agents, and runs to their next step."""
        if self._simulation is None or not self.agents:
            raise UserError("an episode begins with reset()")
        self._decide(self._simulation, actions)
        running = self._simulation.step()
        measured = {name: self.measurements(name) for name in self.agents}
        rewards = {n: 0.0 if m is None else self._reward(m) for n, m in measured.items()}
        observations = self._observations()
        ended = dict.fromkeys(self.agents, not running)
        terminated = dict.fromkeys(self.agents, False)
        infos: dict[str, dict[str, Any]] = {name: {} for name in self.agents}
        if not running:
            self.agents = []
        return observations, rewards, terminated, ended, infos

    def render(self) -> None:
        """Nothing to see; `out` keeps a run folder, of which there are reports."""

    def close(self) -> None:
        """Ends the episode."""
        if self._simulation is not None:
            self._simulation.close()
            self._simulation = None
