# SPDX-License-Identifier: BSD-3-Clause
"""Trains an agent of weir.gym by PPO, with stable-baselines3: train-sb3.py [STEPS].

The reward per step is printed before and after, on episodes that it was not trained on. It needs
these versions, with Debian's torch for the CPU:

    apt-get install python3-torch
    /usr/bin/python3 -m venv --system-site-packages sb3
    sb3/bin/pip install 'numpy<2' pandas cloudpickle gymnasium==0.29.1 pettingzoo==1.24.3 ./dist/*.whl
    sb3/bin/pip install --no-deps stable-baselines3==2.3.2
    sb3/bin/python configs/notebooks/train-sb3.py
"""

import sys
from pathlib import Path

import torch
from stable_baselines3 import PPO
from stable_baselines3.common.monitor import Monitor

from weir.gym import CongestionEnv

CONFIG = Path(__file__).resolve().parents[1] / "gym/one-flow.yaml"
HELD_OUT = range(1000, 1010)  # seeds of episodes


def reward_per_step(model: PPO, env: CongestionEnv) -> float:
    """Of the policy without noise, the mean over the held-out episodes."""
    total, steps = 0.0, 0
    for seed in HELD_OUT:
        observation, _ = env.reset(seed=seed)
        over = False
        while not over:
            action, _ = model.predict(observation, deterministic=True)
            observation, reward, _, over, _ = env.step(action)
            total, steps = total + reward, steps + 1
    return total / steps


def main() -> None:
    """Trains, and says what it was good for."""
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else 40_000
    env = CongestionEnv(CONFIG)
    torch.set_num_threads(1)  # the network is small
    # What a step does shows within a few round trips, so that 20 steps later count little. A first
    # deviation of 1 would halve or double the window at random.
    model = PPO(
        "MlpPolicy",
        Monitor(env),
        n_steps=1000,
        batch_size=250,
        learning_rate=1e-3,
        gamma=0.9,
        policy_kwargs={"log_std_init": -1.0},
        seed=1,
        device="cpu",
    )
    print(f"before: {reward_per_step(model, env):.2f} per step")
    model.learn(steps)
    print(f"after {model.num_timesteps} steps: {reward_per_step(model, env):.2f} per step")
    env.close()


if __name__ == "__main__":
    main()
