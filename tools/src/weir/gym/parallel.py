# SPDX-License-Identifier: BSD-3-Clause
"""Several agents in one bottleneck, as PettingZoo's ParallelEnv."""

from __future__ import annotations

import numpy as np
from gymnasium.spaces import Box
from gymnasium.utils import seeding
from numpy.typing import NDArray
from pettingzoo import ParallelEnv

from weir.base.errors import UserError
from weir.control import Measurements
from weir.environments.features import nothing, observe
from weir.gym.bottleneck import RENDER_MODES, Bottleneck, Info
from weir.gym.env import Observation
from weir.gym.simulation import Simulation
from weir.gym.spaces import observation_space


class CongestionParallelEnv(Bottleneck, ParallelEnv):  # type: ignore[misc]
    """A CongestionEnv for every flow of the config whose control is an agent.

    All agents step at once: at the first ACK, loss or timeout of any of them at or after a multiple
    of `every`. What an agent decides applies from its flow's next such event. agent_0 is the flow
    that starts first. An agent whose flow has not begun observes zeros and is rewarded with 0; one
    that had no ACK in the interval sees it by `acked`.
    """

    metadata = {"name": "weir_congestion_v1", "render_modes": RENDER_MODES}  # noqa: RUF012

    def _prepare(self) -> None:
        self._rng = seeding.np_random(None)[0]
        self.possible_agents = [f"agent_{i}" for i in range(self._episodes.agents)]
        self.agents: list[str] = []
        self._spaces = {
            name: (observation_space(), self._actions.space()) for name in self.possible_agents
        }

    def observation_space(self, agent: str) -> Box:
        return self._spaces[agent][0]

    def action_space(self, agent: str) -> Box:
        return self._spaces[agent][1]

    def measurements(self, agent: str) -> Measurements | None:
        """Returns measurements of an agent's last interval; None: its flow has not begun."""
        slot = self.possible_agents.index(agent)
        if self._simulation is None or slot >= self._simulation.flows:
            return None
        return self._simulation.page.measurements(slot)

    def _observations(self) -> dict[str, Observation]:
        measured = {name: self.measurements(name) for name in self.agents}
        return {name: nothing() if m is None else observe(m) for name, m in measured.items()}

    def _decide(self, simulation: Simulation, actions: dict[str, NDArray[np.float32]]) -> None:
        if unknown := set(actions) - set(self.possible_agents):
            raise ValueError(f"action: {sorted(unknown)[0]!r} is no agent of this environment")
        powers = {name: self._actions.powers(action, name) for name, action in actions.items()}
        for slot, name in enumerate(self.possible_agents):
            m = self.measurements(name)
            if m is not None and name in powers:
                simulation.page.decide(slot, *self._actions.decide(powers[name], m))

    def reset(
        self, seed: int | None = None, options: Info | None = None
    ) -> tuple[dict[str, Observation], dict[str, Info]]:
        """Begins an episode, as CongestionEnv.reset."""
        if seed is not None:
            self._rng = seeding.np_random(seed)[0]
        info = self._begin(self._rng, options, "any flow")
        self.agents = list(self.possible_agents)
        return self._observations(), {name: dict(info) for name in self.agents}

    def step(
        self, actions: dict[str, NDArray[np.float32]]
    ) -> tuple[
        dict[str, Observation],
        dict[str, float],
        dict[str, bool],
        dict[str, bool],
        dict[str, Info],
    ]:
        """Decides for all agents, and runs to their next step."""
        if self._simulation is None or not self.agents:
            raise UserError("an episode begins with reset()")
        self._decide(self._simulation, actions)
        running = self._simulation.step()
        self._see()
        measured = {name: self.measurements(name) for name in self.agents}
        rewards = {n: 0.0 if m is None else self._rewarded(m) for n, m in measured.items()}
        observations = self._observations()
        ended = dict.fromkeys(self.agents, not running)
        terminated = dict.fromkeys(self.agents, False)
        infos: dict[str, Info] = {name: {} for name in self.agents}
        if not running:
            self.agents = []
        return observations, rewards, terminated, ended, infos
