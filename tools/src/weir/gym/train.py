# SPDX-License-Identifier: BSD-3-Clause
"""Trains the agent of the benchmark: python -m weir.gym.train [GENERATIONS].

CMA-ES seeks the weights of a linear policy whose mean reward over all environments is highest. A
generation is tried in one episode of each, whose seed is the generation's number, and no test's.
"""

from __future__ import annotations

import json
import multiprocessing
import sys
from collections.abc import Iterator, Sequence

import cma
import numpy as np
from numpy.typing import NDArray

from weir.analysis import folder
from weir.base import programs
from weir.environments import benchmark, trained
from weir.gym.benchmark import make, play

SEED, SPREAD, PROCESSES = 1, 0.5, 4
GENERATIONS = 50  # of 37, 50 and 52 the best on seeds 5000 to 5002, which no test has
Weights = NDArray[np.float64]


def tried(name: str, weights: Weights, seed: int) -> float:
    """Returns the mean reward of an episode."""
    env = make(name)
    reward = play(env, lambda seen: np.array([trained.power(weights, seen)], np.float32), seed)
    env.close()
    return reward


def train(generations: int, names: Sequence[str]) -> Iterator[Weights]:
    """Yields the mean of the search's distribution after each generation."""
    search = cma.CMAEvolutionStrategy(
        np.zeros(trained.SIZE), SPREAD, {"seed": SEED, "verbose": -9, "maxiter": generations}
    )
    with multiprocessing.get_context("fork").Pool(PROCESSES) as pool:
        while not search.stop():
            candidates = search.ask()
            asked = [(name, one, search.countiter) for one in candidates for name in names]
            worth = np.reshape(pool.starmap(tried, asked, 1), (len(candidates), -1)).mean(1)
            search.tell(candidates, list(-worth))
            print(f"{search.countiter}: {worth.max():.3f}", flush=True)
            yield np.asarray(search.result.xfavorite, np.float64)


def main() -> None:
    """Trains, and keeps the weights after each generation."""
    programs.identify()
    generations = int(sys.argv[1]) if len(sys.argv) > 1 else GENERATIONS
    for number, weights in enumerate(train(generations, list(benchmark.read())), 1):
        found = {
            "command": f"python -m weir.gym.train {number}",
            "weights": [float(f"{one:.6g}") for one in weights],
        }
        folder.write_whole(trained.PLACE, json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
