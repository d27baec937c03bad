# SPDX-License-Identifier: BSD-3-Clause
"""Weir's bottleneck as an environment for reinforcement learning.

    import weir.gym

    env = weir.gym.CongestionEnv("configs/gym/one-flow.yaml", action="cwnd")
    observation, info = env.reset(seed=1)
    observation, reward, terminated, truncated, info = env.step([0.5])

`CongestionEnv` has one flow (Gymnasium), `CongestionParallelEnv` several agents in one bottleneck
(PettingZoo). `make` makes the environments of the benchmark.
tools/docs/how-to/python-controls.md has the page about them.
"""

try:
    import gymnasium
    import pettingzoo  # noqa: F401
except ImportError as missing:
    packages = "gymnasium pettingzoo"
    raise ImportError(f"{missing}: weir.gym needs it (pip install {packages})") from missing

from weir.environments.features import FEATURES, observe, utility
from weir.gym.benchmark import TESTS, make, register, score
from weir.gym.env import CongestionEnv
from weir.gym.parallel import CongestionParallelEnv

__all__ = [
    "FEATURES",
    "TESTS",
    "CongestionEnv",
    "CongestionParallelEnv",
    "make",
    "observe",
    "score",
    "utility",
]

gymnasium.register(id="weir/Congestion-v1", entry_point="weir.gym.env:CongestionEnv")
register()
