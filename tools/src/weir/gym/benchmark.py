# SPDX-License-Identifier: BSD-3-Clause
"""The environments of the benchmark as Gymnasium and PettingZoo have them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from weir.analysis import folder
from weir.base.errors import UserError, nearest
from weir.environments import benchmark
from weir.environments.benchmark import TESTS as TESTS
from weir.environments.features import utility
from weir.gym.env import CongestionEnv, Observation
from weir.gym.parallel import CongestionParallelEnv

Playable = CongestionEnv | CongestionParallelEnv
Policy = Callable[[Observation], NDArray[np.float32]]


def make(name: str, **settings: Any) -> Playable:
    """Makes an environment of the benchmark: PettingZoo's if it has several agents.

    settings are Bottleneck's. The reward is the benchmark's: of the path's smallest RTT.
    """
    environments = benchmark.read()
    if name not in environments:
        meant = nearest(name, list(environments), f"they are {', '.join(environments)}")
        raise UserError(f"'{name}' is no environment of the benchmark; {meant}")
    one = environments[name]
    episodes = one.episodes()
    settings = {"reward": partial(utility, base_rtt_ns=one.base_rtt_ns)} | settings
    kind = CongestionEnv if episodes.agents == 1 else CongestionParallelEnv
    return kind(episodes, **settings)


def register() -> None:
    """Registers those of one agent in Gymnasium, as weir/NAME-v0."""
    for name, one in benchmark.read().items():
        if one.episodes().agents == 1:
            gymnasium.register(f"weir/{name}-v0", f"{__name__}:make", kwargs={"name": name})


def play(env: Playable, policy: Policy, seed: int) -> float:
    """Plays an episode and returns the mean reward over time, of flows that have begun."""
    if isinstance(env, CongestionParallelEnv):
        return play_several(env, policy, seed)
    return play_one(env, policy, seed)


def play_one(env: CongestionEnv, policy: Policy, seed: int) -> float:
    """Plays an episode of one agent."""
    rewards: list[tuple[float, float]] = []  # with the length of the interval
    observation, _ = env.reset(seed=seed)
    over = False
    while not over:
        observation, reward, _, over, _ = env.step(policy(observation))
        rewards.append((reward, env.measurements.interval_ns))
    return mean(rewards)


def play_several(env: CongestionParallelEnv, policy: Policy, seed: int) -> float:
    """Plays an episode of several agents with the same policy."""
    rewards: list[tuple[float, float]] = []
    observations, _ = env.reset(seed=seed)
    while env.agents:
        measured = {name: env.measurements(name) for name in env.agents}  # as of the next step
        observations, given, *_ = env.step({n: policy(one) for n, one in observations.items()})
        rewards += [(given[name], m.interval_ns) for name, m in measured.items() if m is not None]
    return mean(rewards)


def mean(weighed: Sequence[tuple[float, float]]) -> float:
    values, weights = zip(*weighed, strict=True)
    return float(np.average(values, weights=weights))


def score(name: str, policy: Policy, seeds: Sequence[int] = TESTS) -> list[float]:
    """Returns a policy's scores in the episodes of some seeds, as `weir league --gym` has them."""
    one, found = benchmark.read()[name], []
    with TemporaryDirectory(prefix="weir-gym-") as place:
        env = make(name, out=Path(place) / "run")
        for seed in seeds:
            play(env, policy, seed)
            found.append(benchmark.measured(folder.load(Path(place) / "run"), one.base_rtt_ns)[0])
        env.close()
    return [float(value) for value in found if value is not None]
