# SPDX-License-Identifier: BSD-3-Clause
"""The agent that `python -m weir.gym.train` has trained, as a control; called every 50 ms."""

import json
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from weir.control import Control, Measurements
from weir.environments.features import FEATURES, observe

PLACE = Path(__file__).with_name("trained.json")
USUAL = np.array([5, 1.5, 5, 0.1, 0.1, 1, 6, 5, 1, 1, 1])  # what a feature about is
SIZE = 1 + len(FEATURES)
INTERVAL = [feature.name for feature in FEATURES].index("interval")
CWND_SEGS = (2.0, 10000.0)


def power(weights: NDArray[np.float64], observation: NDArray[np.float32]) -> float:
    """Returns the action of a policy: a bias and a weight for each feature.

    What a window does shows a round trip later, so that actions are smaller the longer that is.
    """
    action = np.tanh(weights[0] + weights[1:] @ (observation / USUAL))
    return float(np.float32(action * min(float(observation[INTERVAL]), 1.0)))


class Trained(Control):
    """Twelve numbers, found by CMA-ES over the benchmark of weir.gym."""

    ecn = True
    together = True
    weights = (
        np.array(json.loads(PLACE.read_text())["weights"]) if PLACE.exists() else np.zeros(SIZE)
    )

    def on_ack(self, m: Measurements) -> None:
        window = self.cwnd_segs * 2 ** power(self.weights, observe(m))
        self.cwnd_segs = min(max(window, CWND_SEGS[0]), CWND_SEGS[1])
