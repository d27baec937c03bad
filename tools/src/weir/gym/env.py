# SPDX-License-Identifier: BSD-3-Clause
"""An environment of Gymnasium with a flow in a bottleneck."""

from __future__ import annotations

from typing import cast

import gymnasium
import numpy as np
from gymnasium import Space
from numpy.typing import NDArray

from weir.base.errors import UserError
from weir.control import Measurements
from weir.environments.features import observe
from weir.gym.bottleneck import RENDER_MODES, Bottleneck, Info
from weir.gym.spaces import observation_space

Observation = NDArray[np.float32]


class CongestionEnv(Bottleneck, gymnasium.Env[Observation, NDArray[np.float32]]):
    """Environment that sets the window or rate of one flow, once per interval (`every`).

    Its parameters are Bottleneck's. An episode ends, truncated, with the config's duration.
    `measurements` has all that the transport measured in the interval that the last observation is
    of.
    """

    metadata = {"render_modes": RENDER_MODES, "render_fps": 30}  # noqa: RUF012

    def _prepare(self) -> None:
        if self._episodes.agents != 1:
            raise UserError(
                f"{self._episodes.config}: {self._episodes.agents} flows are agents; CongestionEnv "
                "is of one, CongestionParallelEnv of several"
            )
        self.observation_space = cast("Space[Observation]", observation_space())
        self.action_space = cast("Space[Observation]", self._actions.space())

    @property
    def measurements(self) -> Measurements:
        """Measurements of the last interval."""
        return self._running().page.measurements(0)

    def reset(
        self, *, seed: int | None = None, options: Info | None = None
    ) -> tuple[Observation, Info]:
        """Begins an episode. The same seed gives the same episode, bit for bit, in any process.

        options may have `overrides`, values of the config for this episode, by their keys.
        """
        gymnasium.Env.reset(self, seed=seed)
        info = self._begin(self.np_random, options, "its flow")
        return observe(self.measurements), info

    def step(self, action: NDArray[np.float32]) -> tuple[Observation, float, bool, bool, Info]:
        """Decides, and runs to the end of the next interval."""
        simulation = self._running()
        powers = self._actions.powers(action)
        simulation.page.decide(0, *self._actions.decide(powers, self.measurements))
        running = simulation.step()
        self._see()
        m = self.measurements
        return observe(m), self._rewarded(m), False, not running, {"now_s": m.now_ns / 1e9}
