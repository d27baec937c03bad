# SPDX-License-Identifier: BSD-3-Clause
"""The base of both environments: episodes of a config, and the one that runs."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
from gymnasium import logger
from numpy.typing import NDArray

from weir.base.errors import UserError
from weir.base.foreign import Json
from weir.control import Measurements
from weir.environments import episodes
from weir.environments.episodes import Episodes
from weir.environments.features import FEATURES, utility
from weir.gym.simulation import Simulation
from weir.gym.spaces import Actions
from weir.gym.view import View

RENDER_MODES = ["rgb_array"]
Info = Json  # as Gymnasium has it


class Bottleneck:
    """Base of the environments, which takes their parameters.

    path is a file of episodes (weir.environments.episodes), its content, or a config; action is
    cwnd, pacing or both; reward is a function of the interval's Measurements; out keeps the run
    folder of the last episode; render_mode rgb_array makes render() draw the last seconds
    (weir.gym.view).

    A copy of an environment, by pickle or copy.deepcopy, has its draws but not its episode: it
    begins with reset().
    """

    names = tuple(feature.name for feature in FEATURES)

    def __init__(
        self,
        path: Path | str | Episodes,
        *,
        action: str = "cwnd",
        factor: float = 2.0,
        cwnd_max_segs: float = 10000.0,
        reward: Callable[[Measurements], float] = utility,
        out: Path | str | None = None,
        render_mode: str | None = None,
    ) -> None:
        if render_mode not in (None, *RENDER_MODES):
            raise ValueError(f"render_mode: {render_mode!r} is none of {', '.join(RENDER_MODES)}")
        self._episodes = path if isinstance(path, Episodes) else episodes.read(path)
        self._actions = Actions(action, factor, cwnd_max_segs)
        self._reward = reward
        self._out = None if out is None else Path(out)
        self.render_mode = render_mode
        self._view = View()
        self._simulation: Simulation | None = None
        self._prepare()

    def __getstate__(self) -> Info:
        return self.__dict__ | {"_simulation": None, "_view": View()}

    def _prepare(self) -> None:
        raise NotImplementedError

    def _begin(self, rng: np.random.Generator, options: Info | None, flow: str) -> Info:
        """Begins an episode, and returns its overrides and its seed."""
        self.close()
        drawn, number = self._episodes.begin(rng)
        overrides = drawn | (options or {}).get("overrides", {})
        self._simulation = Simulation(self._episodes.config, overrides, number, self._out)
        if not self._simulation.running:
            self.close()
            raise UserError(f"the episode ended before {flow} had an ACK", 1)
        self._view = View()
        self._see()
        return {"overrides": overrides, "seed": number}

    def _running(self) -> Simulation:
        if self._simulation is None:
            raise UserError("an episode begins with reset()")
        return self._simulation

    def _rewarded(self, m: Measurements) -> float:
        """Returns what the reward function gives, which must be a finite number."""
        reward = self._reward(m)
        try:
            value = float(reward)
        except (TypeError, ValueError):
            value = math.nan
        if not math.isfinite(value):
            raise ValueError(
                f"reward: {reward!r} at {m.now_ns / 1e9:g} s is no finite number; the reward "
                "function is called for every interval, also one without an ACK"
            )
        return value

    def _see(self) -> None:
        """Keeps what render() draws, if it may be called."""
        if self.render_mode is not None:
            simulation = self._running()
            self._view.add([simulation.page.measurements(n) for n in range(simulation.flows)])

    def render(self) -> NDArray[np.uint8] | None:
        """Returns the last seconds as a picture of height, width and RGB; None without a
        render_mode."""
        if self.render_mode is None:
            logger.warn('render() draws with render_mode="rgb_array" only')
            return None
        self._running()
        return self._view.picture()

    def close(self) -> None:
        if self._simulation is not None:
            self._simulation.close()
            self._simulation = None
