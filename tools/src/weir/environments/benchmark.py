# SPDX-License-Identifier: BSD-3-Clause
"""The benchmark: its environments, and the score of an episode.

The score is the mean reward over the intervals of all flows that are scored, each from its start:

    log2(Mbit/s) - log2(mean RTT / the path's smallest RTT) - 10 * lost segments

It is computed from the records of a run's intervals, which are as long as an agent's steps, for
agents and for built-in controls alike.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import numpy as np

from weir.analysis.folder import Run
from weir.base import configs, foreign, units
from weir.bootstrap import ROOT
from weir.environments import episodes, oracle
from weir.environments.episodes import Episodes
from weir.environments.features import worth
from weir.environments.oracle import Network, at_least

PLACE = ROOT / "configs/gym/benchmark.yaml"
LINK = PLACE.with_name("benchmark-link.yaml")
STEP = "50ms"
AGENT = f"cc: {{python: {episodes.AGENT}, every: {STEP}}}"  # the keys of an agent's group
TESTS = range(1_000_000, 1_000_010)  # seeds of episodes that no agent may be trained on


Values = list[float | None]


class Environment(msgspec.Struct, frozen=True):
    """An environment as the file has it; all values are text."""

    shows: str
    base_rtt: str = "40ms"
    flows: str = "{NEW}"
    set: dict[str, str] = {}
    draw: dict[str, dict[str, list[str]]] = {}

    @property
    def base_rtt_ns(self) -> float:
        return units.measured(units.config_time_ns(self.base_rtt))

    def episodes(self, keys: str = AGENT) -> Episodes:
        """Returns its episodes with these keys of a config where the agent is."""
        flows = f"[{self.flows.replace('NEW', keys)}]"
        groups = foreign.decode_yaml(f"flows: [{self.flows.replace('NEW', AGENT)}]", str(PLACE))
        assert isinstance(groups, Mapping)
        fixed = {**self.set, "flows": flows}
        draws = episodes.draws(PLACE, {"draw": self.draw})
        return Episodes(LINK, draws, episodes.agents(PLACE, groups), fixed)


def read() -> dict[str, Environment]:
    """Returns all environments by their names."""
    return foreign.check(configs.mapping(PLACE), dict[str, Environment], str(PLACE))


def measured(run: Run, base_rtt_ns: float) -> Values:
    """Returns the score of a run, its goodput in percent of the path's, its queue, and a bound.

    The goodput is that of all flows that are scored, the queue the mean RTT beyond the path's (ms),
    the bound the oracle's score.
    """
    network = Network(run)
    records = run.stream("interval").records
    records = records[records["group"] == 0]
    rewards = [
        worth(
            8e9 * float(record["delivered_bytes"]) / network.step_ns,
            float(record["rtt_mean_ns"]) / base_rtt_ns,
            lost_part(float(record["lost_segs"]), float(record["delivered_bytes"]) / network.mss),
        )
        for record in records
    ]
    samples = records["rtt_samples"].astype(float)
    base = [at_least(network.delays, float(at), float(at)) for at in records["ts_ns"]]
    queue = np.maximum(records["rtt_mean_ns"] - np.array(base), 0) @ samples / samples.sum()
    most = np.diff(network.carried(np.array([network.starts_ns[0], network.end_ns])))[0]
    goodput = 100 * records["delivered_bytes"].sum() / most
    return [float(np.mean(rewards)), float(goodput), float(queue) / 1e6, oracle.score(network)]


def lost_part(lost: float, acked: float) -> float:
    return lost / (lost + acked) if lost > 0 else 0.0
