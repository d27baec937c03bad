# SPDX-License-Identifier: BSD-3-Clause
"""The benchmark of weir.gym: environments, the oracle, kept rows, and the agent as a control."""

import json
import math
import sys

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from weir.analysis import folder
from weir.base.errors import UserError
from weir.environments import benchmark, oracle, trained
from weir.gym import TESTS, CongestionEnv, CongestionParallelEnv, make, score, train
from weir.gym.benchmark import play
from weir.league import agents
from weir.many.cells import parted, run_cells
from weir.runner.options import Options

ENVIRONMENTS = benchmark.read()
SHORT = ("ShallowBuffer", "RTTStep", "Fairness", "Policer")  # whose kept rows are measured again

pytestmark = pytest.mark.usefixtures("weir_sim")


@pytest.fixture(autouse=True)
def interpreter(monkeypatch):
    monkeypatch.setenv("WEIR_PYTHON", sys.executable)


def weights():
    return np.array(json.loads(trained.PLACE.read_text())["weights"])


def policy(observation):
    return np.array([trained.power(weights(), observation)], np.float32)


def test_twelve_environments_of_which_gymnasium_has_those_of_one_agent():
    assert len(ENVIRONMENTS) == 12
    kinds = {name: type(make(name)) for name in ENVIRONMENTS}
    assert {n for n, kind in kinds.items() if kind is CongestionParallelEnv} == {"Fairness"}
    single = sorted(name for name, kind in kinds.items() if kind is CongestionEnv)
    registered = [name for name in gymnasium.registry if name.endswith("-v0") and "weir/" in name]
    assert sorted(registered) == [f"weir/{name}-v0" for name in single]
    made = gymnasium.make("weir/ECN-v0")
    check_env(made.unwrapped, skip_render_check=True)
    made.close()
    with pytest.raises(UserError, match=r"'CoDle' is no environment of the benchmark; .*CoDel"):
        make("CoDle")


def run(tmp_path, *overrides, control="newreno", name="ShallowBuffer"):
    """A run of an environment's first test, with further overrides."""
    (cell, *_) = agents.cells(agents.control(control), name, ENVIRONMENTS[name])
    changed = Options(
        config=cell.config,
        out=cell.out,
        overrides=(*cell.overrides, *overrides),
        seed=cell.seed,
    )
    ran, failed = parted(run_cells([changed], tmp_path))
    assert not failed
    return folder.load(ran[cell.name])


def test_the_smallest_rtt_that_the_reward_knows_is_the_path_s(tmp_path):
    cells = [
        agents.cells(agents.control("newreno"), name, one)[0] for name, one in ENVIRONMENTS.items()
    ]
    cells = [
        Options(config=c.config, out=c.out, overrides=c.overrides, seed=c.seed, duration="20s")
        for c in cells
    ]
    ran, failed = parted(run_cells(cells, tmp_path))
    assert not failed
    for cell, (name, one) in zip(cells, ENVIRONMENTS.items(), strict=True):
        known = oracle.Network(folder.load(ran[cell.name]))
        assert min(rtt for _, rtt in known.delays) == one.base_rtt_ns, name


def test_the_oracle_of_a_constant_link_is_reached_but_for_the_start(tmp_path):
    """By hand: nothing is acknowledged for two round trips, then 1448 of 1538 bytes are payload.

    A window of the path's product and a packet fills the link without a queue.
    """
    done = run(
        tmp_path,
        "paths.forward.link.rate=20Mbit",
        "paths.forward.link.queue.fifo.limit=1BDP",
        "flows=[{cc: {fixed: {cwnd: 68}}}]",
    )
    reward, _, _, bound = benchmark.measured(done, 40e6)
    packet_ms = 1538 * 8 / 20e3
    rate = 20 * 1448 / 1538
    full = math.log2(rate) - math.log2((40 + packet_ms) / 40)
    first = math.log2(rate * 20 / 50) - math.log2((40 + packet_ms) / 40)
    assert bound == pytest.approx((math.log2(0.01) + first + 398 * full) / 400, abs=1e-6)
    assert bound - 0.06 < reward < bound, "delayed ACKs, and a queue of a packet or two"


def test_what_the_oracle_knows_of_losses_a_policer_and_several_flows(tmp_path):
    """Each is compared with the bound of the plain link by hand."""
    at = "paths.forward=[{link: {rate: 10Mbit}}, {delay: {delay: 20ms}}%s]"
    plain = oracle.score(oracle.Network(run(tmp_path / "a", at % "")))
    lossy = oracle.score(oracle.Network(run(tmp_path / "b", at % ", {loss: {rate: 1%}}")))
    started = 398.4 / 400  # intervals in which there are ACKs, the second one's part included
    assert lossy - plain == pytest.approx((math.log2(0.99) - 0.1) * started, abs=1e-3)
    flows = "flows=[{cc: newreno, count: 4}]"
    shared = oracle.score(oracle.Network(run(tmp_path / "c", at % "", flows)))
    assert shared - plain == pytest.approx(-2 * started, abs=2e-2)
    beside = "flows=[{cc: newreno}, {cc: cubic}]"
    assert oracle.score(oracle.Network(run(tmp_path / "d", at % "", beside))) is None


def test_the_agent_is_a_control_byte_for_byte(tmp_path):
    """In its environment and in the agent's place, of one flow and of three."""
    for name in ("ECN", "Fairness"):
        env = make(name, out=tmp_path / name)
        reward = play(env, policy, TESTS[0])
        env.close()
        played = folder.load(tmp_path / name)
        ran = run(tmp_path, control="trained", name=name)
        digests = {one.summary_json["digest"] for one in (played, ran)}
        assert len(digests) == 1, name
        found = agents.measured(tmp_path / name, ENVIRONMENTS[name])[agents.SCORE]
        assert abs(reward - found) < 0.1, "the mean of the environment's rewards"
        if name == "ECN":
            assert score(name, policy, TESTS[:1]) == [pytest.approx(found, rel=1e-4)]


def test_kept_rows_are_those_of_this_tree(tmp_path):
    """Some runs are done again and have the same values: else league --gym --write-docs."""
    file = agents.kept()
    assert file is not None, "environments have changed: tools/weir league --gym --write-docs"
    rows = {row.name: row for row in file.rows}
    assert tuple(rows) == agents.BASELINES
    cells = {
        agents.cells(agents.control(row.written), name, ENVIRONMENTS[name])[0]: (row, name)
        for row in file.rows
        for name in SHORT
    }
    ran, failed = parted(run_cells(list(cells), tmp_path))
    assert not failed
    for cell, (row, name) in cells.items():
        found = agents.measured(ran[cell.name], ENVIRONMENTS[name])
        assert row.scores[name][0] == found, cell.name


def test_no_row_is_above_the_oracle():
    for row in agents.kept().rows:
        assert set(row.scores) == set(ENVIRONMENTS)
        for name, seeds in row.scores.items():
            assert len(seeds) == len(TESTS) >= 10
            for reward, *_, bound in seeds:
                assert (bound is None) == (name == "BesideCubic")
                assert bound is None or reward < bound, (row.name, name)


def test_the_command_shows_kept_rows_and_refuses_what_it_has_not(weir):
    done = weir("league", "--gym", "--json")
    assert done.status == 0, done.err
    rows = {one["name"]: one for one in json.loads(done.out)}
    assert tuple(rows) == agents.BASELINES
    assert all(0 < row["below"] < 5 for row in rows.values())
    refused = weir("league", "--gym", "--full")
    assert (refused.status, refused.err.count("\n")) == (2, 1)
    assert "leave --full away" in refused.err
    taken = weir("league", "--gym", "cubic")
    assert (taken.status, taken.err) == (
        2,
        "weir: league: cubic: the benchmark has a row of that name\n",
    )


def test_a_run_that_failed_is_a_dash():
    (row, *_) = agents.kept().rows
    row.scores["CoDel"][3] = agents.measured(None, ENVIRONMENTS["CoDel"])
    table = agents.table([row])
    (line,) = [record for record in table.records if record[0] == "CoDel"]
    assert line[1:] == ["–", "–"]


def test_the_training_is_the_one_that_the_weights_name():
    kept = json.loads(trained.PLACE.read_text())
    assert kept["command"] == f"python -m weir.gym.train {train.GENERATIONS}"
    assert weights().shape == (trained.SIZE,)
    (first,) = train.train(1, ["Policer"])
    assert np.isfinite(first).all()
    assert first.any()
    assert {*range(train.GENERATIONS)}.isdisjoint(TESTS)
