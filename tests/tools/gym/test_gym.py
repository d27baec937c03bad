# SPDX-License-Identifier: BSD-3-Clause
"""weir.gym: the checkers of Gymnasium and PettingZoo, exact seeds, and what cannot be."""

import gc
import hashlib
import os
import pickle
import re
import subprocess
import sys
from pathlib import Path

import gymnasium
import matplotlib
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AsyncVectorEnv
from gymnasium.wrappers import DiscretizeAction, FrameStackObservation
from pettingzoo.test import parallel_api_test
from weir import UserError
from weir.bench import agents
from weir.gym import FEATURES, CongestionEnv, CongestionParallelEnv

ROOT = Path(__file__).resolve().parents[3]
EPISODES = ROOT / "configs/gym/one-flow.yaml"
LINK = """
duration: 1s
paths:
  forward:
    - link: {rate: 20Mbit, queue: {fifo: {limit: 2BDP}}}
    - delay: {delay: 10ms}
  reverse:
    - delay: {delay: 10ms}
flows:
"""
AGENT = "cc: {python: agent, every: 20ms}"
SHORT = {"overrides": {"duration": "1s"}}
ACTIONS = 40

pytestmark = pytest.mark.usefixtures("weir_sim")


@pytest.fixture
def env():
    made = CongestionEnv(EPISODES)
    yield made
    made.close()


@pytest.fixture
def write(tmp_path):
    """write(flows, name): a config's file with these groups."""

    def place(*flows, name="c.yaml"):
        (tmp_path / name).write_text(LINK + "".join(f"  - {{{flow}}}\n" for flow in flows))
        return tmp_path / name

    return place


def test_gymnasium_has_nothing_to_complain_of():
    made = gymnasium.make("weir/Congestion-v1", path=EPISODES, render_mode="rgb_array")
    assert made.observation_space.shape == (len(FEATURES),)
    check_env(made.unwrapped)
    made.close()


def test_a_picture_is_of_the_last_seconds(write):
    """As RecordVideo and the helpers that evaluate an agent take it, by their own collector."""
    path = write(AGENT)
    made = gymnasium.make("weir/Congestion-v1", path=path, render_mode="rgb_array_list")
    made.reset(seed=1)
    for _ in range(3):
        made.step(np.ones(1, np.float32))
    frames = made.render()
    assert len(frames) == 4
    assert {(frame.shape, frame.dtype) for frame in frames} == {((360, 480, 3), np.dtype("uint8"))}
    assert len({frame.tobytes() for frame in frames}) == 4, "each step is drawn"
    made.close()
    several = CongestionParallelEnv(write(f"{AGENT}, count: 2"), render_mode="rgb_array")
    several.reset(seed=1)
    # Whatever the process draws besides, as with the theme of the figures.
    with matplotlib.rc_context({"figure.constrained_layout.use": True}):
        coloured = several.render().reshape(-1, 3).astype(int)
    assert np.ptp(coloured, axis=1).max() > 100, "lines in the colours of the figures"
    several.close()
    with pytest.raises(ValueError, match="render_mode: 'human' is none of rgb_array"):
        CongestionEnv(path, render_mode="human")


def test_an_action_that_is_no_number_is_refused(env, write):
    """The window stays, and the episode goes on with the next action."""
    several = CongestionParallelEnv(write(f"{AGENT}, count: 2"))
    several.reset(seed=1)
    env.reset(seed=1, options=SHORT)
    for action in ([np.nan], [np.inf], [-np.inf], [], [0, 0], 0, None, ["up"], [None], [10**400]):
        with pytest.raises(ValueError, match=r"action: .* must be 1 finite number from -1 to 1"):
            env.step(action)
        with pytest.raises(ValueError, match=r"action of agent_1: .* must be 1 finite number"):
            several.step({"agent_0": [1.0], "agent_1": action})
    with pytest.raises(ValueError, match="action: 'agent_2' is no agent"):
        several.step({"agent_2": [1.0]})
    observation, *_ = env.step([5])
    assert env.observation_space.contains(observation)
    assert env.measurements.cwnd_segs == 20, "twice the initial window"
    several.step({"agent_1": [0.0]})
    assert several.measurements("agent_0").cwnd_segs == 10
    several.close()


@pytest.mark.parametrize("reward", [np.nan, np.inf, None, "much"])
def test_a_reward_that_is_no_number_is_refused(reward):
    env = CongestionEnv(EPISODES, reward=lambda m: reward)
    env.reset(seed=1, options=SHORT)
    with pytest.raises(ValueError, match=r"reward: .* is no finite number"):
        env.step([0.0])
    env.close()


@pytest.mark.parametrize(
    ("setting", "sentence"),
    [
        ({"action": "speed"}, "action: speed is none of cwnd, pacing, both"),
        ({"factor": np.inf}, "factor: inf is not above 1, or not finite"),
        ({"factor": np.nan}, "factor: nan is not above 1, or not finite"),
        ({"cwnd_max_segs": np.nan}, "cwnd_max_segs: nan is below 2, or not finite"),
    ],
)
def test_settings_that_are_none(setting, sentence):
    with pytest.raises(ValueError, match=sentence):
        CongestionEnv(EPISODES, **setting)


def test_an_environment_that_is_dropped_ends_its_program():
    env = CongestionEnv(EPISODES)
    env.reset(seed=1, options=SHORT)
    program = env._simulation._process.pid
    del env
    gc.collect()
    assert not Path(f"/proc/{program}").exists()


def test_an_environment_is_pickled_without_its_episode(env, write):
    """A copy draws the same episodes, and its program is its own."""
    env.reset(seed=1, options=SHORT)
    copy = pickle.loads(pickle.dumps(env))
    with pytest.raises(UserError, match=r"an episode begins with reset\(\)"):
        copy.step([0.0])
    assert copy.reset(options=SHORT)[1] == env.reset(options=SHORT)[1]
    env.step([0.0])
    copy.close()
    several = pickle.loads(pickle.dumps(CongestionParallelEnv(write(f"{AGENT}, count: 2"))))
    assert several.possible_agents == ["agent_0", "agent_1"]


def episode(env, seed, steps=ACTIONS):
    """The bytes of all observations and rewards, hashed."""
    observation, info = env.reset(seed=seed, options=SHORT)
    seen = hashlib.sha256(observation.tobytes() + repr(sorted(info["overrides"])).encode())
    for n in range(steps):
        observation, reward, _, over, _ = env.step(np.array([np.sin(n)], np.float32))
        assert env.observation_space.contains(observation)
        seen.update(observation.tobytes() + np.float64(reward).tobytes())
        if over:
            break
    return seen.hexdigest()


@pytest.mark.slow
def test_a_seed_is_an_episode_in_any_process(env):
    first = episode(env, 5)
    assert episode(env, 6) != first
    assert episode(env, 5) == first
    code = (
        f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r}); import test_gym as t\n"
        "print(t.episode(t.CongestionEnv(t.EPISODES), 5))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.stdout.strip() == first, done.stderr


def test_without_a_seed_the_next_episode_is_another(env):
    _, first = env.reset(seed=1, options=SHORT)
    _, second = env.reset(options=SHORT)
    assert first["seed"] != second["seed"]
    rate = "paths.forward.link.rate"
    assert first["overrides"][rate] != second["overrides"][rate]
    env.reset(seed=1)
    assert env.reset()[1]["seed"] == second["seed"]


def test_vectors_of_processes_have_the_same_episodes(env):
    expected = [env.reset(seed=seed, options=SHORT)[0] for seed in (3, 4)]
    with_two = AsyncVectorEnv([lambda: CongestionEnv(EPISODES)] * 2)
    found, _ = with_two.reset(seed=[3, 4], options=SHORT)
    with_two.close()
    assert np.array_equal(found, np.stack(expected))


@pytest.mark.parametrize(("action", "size"), [("cwnd", 1), ("pacing", 1), ("both", 2)])
def test_an_action_is_a_factor(action, size):
    env = CongestionEnv(EPISODES, action=action)
    assert env.action_space.shape == (size,)
    env.reset(seed=1, options=SHORT)
    env.step(np.zeros(size, np.float32))
    window, rate = env.measurements.cwnd_segs, env.measurements.pacing_bps
    env.step(np.ones(size, np.float32))
    m = env.measurements
    if action != "pacing":
        assert m.cwnd_segs == 2 * window
    if action != "cwnd":
        assert m.pacing_bps == pytest.approx(2 * rate)
    assert (m.pacing_bps > 0) == (action != "cwnd")
    env.close()


def test_gymnasium_s_wrappers_make_discrete_actions_and_a_history(env):
    """Five actions, of which the middle one keeps the window; the last four observations."""
    wrapped = FrameStackObservation(DiscretizeAction(env, 5), 4)
    assert wrapped.action_space == gymnasium.spaces.Discrete(5)
    first, _ = wrapped.reset(seed=1, options=SHORT)
    assert first.shape == (4, len(FEATURES))
    cwnd = env.names.index("cwnd")
    kept, *_ = wrapped.step(2)
    assert kept[-1][cwnd] == kept[-2][cwnd]
    halved, *_ = wrapped.step(0)
    assert (halved[:-1] == kept[1:]).all()
    doubled, *_ = wrapped.step(4)
    assert doubled[-1][cwnd] > doubled[-2][cwnd] > 0


def test_an_episode_ends_with_the_run_and_keeps_its_folder(tmp_path):
    env = CongestionEnv(EPISODES, out=tmp_path / "run", reward=lambda m: float(m.acked_segs))
    env.reset(seed=2, options=SHORT)
    steps, acked, over = 0, 0.0, False
    while not over:
        _, reward, ended, over, info = env.step(np.zeros(1, np.float32))
        steps, acked = steps + 1, acked + reward
        assert not ended
    # Each step is at least as long as the interval, and ends with an ACK.
    assert 30 <= steps <= 50
    assert 0.9 < info["now_s"] <= 1
    assert 0 < env.measurements.delivered_segs - acked <= 11, "those of the first observation"
    assert (tmp_path / "run/summary.json").exists()
    env.close()


def test_several_agents_step_at_once(write):
    path = write(f"{AGENT}, count: 2, stagger: 300ms", "cc: cubic")
    env = CongestionParallelEnv(path)
    parallel_api_test(env, num_cycles=60)
    observations, _ = env.reset(seed=1)
    assert list(observations) == ["agent_0", "agent_1"]
    assert env.measurements("agent_1") is None
    assert not observations["agent_1"].any()
    began, times = 0, []
    while env.agents:
        actions = {name: np.zeros(1, np.float32) for name in env.agents}
        observations, rewards, _, _, _ = env.step(actions)
        measured = [env.measurements(name) for name in env.possible_agents]
        times.append(measured[0].now_ns)
        if measured[1] is not None:
            began += 1
            assert measured[1].now_ns == measured[0].now_ns
        else:
            assert rewards["agent_1"] == 0
    grid = [now // 20_000_000 for now in times[:-1]]
    assert grid == sorted(set(grid)), "one step for each multiple of `every`"
    assert 0 < began < len(times)


@pytest.mark.parametrize(
    ("flows", "sentence"),
    [
        ([f"{AGENT}, count: 2"], "2 flows are agents; CongestionEnv is of one"),
        (["cc: cubic"], "no flow has `cc: {python: agent, every: 10ms}`"),
        ([AGENT.replace("20ms", "soon")], "every"),
        ([f"{AGENT}, start: 10s"], "the episode ended before its flow had an ACK"),
    ],
)
def test_configs_that_are_no_environment(write, flows, sentence):
    with pytest.raises(UserError, match=sentence):
        CongestionEnv(write(*flows)).reset(seed=1)


def test_agents_step_at_once_or_not_at_all(write):
    other = AGENT.replace("20ms", "30ms")
    for flows in ([AGENT.replace("20ms", "rtt") + ", count: 2"], [AGENT, other]):
        with pytest.raises(UserError, match="agents step at once: all have the same `every`"):
            CongestionParallelEnv(write(*flows))


def test_the_benchmark_measures(tmp_path, monkeypatch):
    monkeypatch.setenv("WEIR_PYTHON", sys.executable)
    rows = agents.rows(tmp_path, 1)
    for name in list(rows)[:3]:
        assert rows[name]() > 0


@pytest.mark.parametrize(
    ("draw", "sentence"),
    [
        ("a: {normal: [1, 2]}", "draw: a: one of uniform, loguniform, integers, choice"),
        ("a: {uniform: [1]}", "draw: a: uniform is of a list of two"),
        ("a: {uniform: [1ms, 2Mbit]}", "draw: a: uniform is of two numbers of one unit"),
        ("a: {loguniform: [0, 2]}", "the smaller one first and above 0"),
        ("flows.0.count: {choice: [1, 2]}", "the number of agents is that of the config"),
        ("paths.forward.delay.tempo: {choice: [1]}", "tempo"),
    ],
)
def test_draws_that_are_none(write, tmp_path, draw, sentence):
    write(AGENT)
    place = tmp_path / "episodes.yaml"
    place.write_text(f"config: c.yaml\ndraw:\n  {draw}\n")
    with pytest.raises(UserError, match=sentence):
        CongestionEnv(place).reset(seed=1)


def test_what_is_drawn(write, tmp_path):
    from weir.environments import episodes

    write(AGENT)
    place = tmp_path / "episodes.yaml"
    place.write_text(
        "config: c.yaml\ndraw:\n  a: {uniform: [1ms, 2ms]}\n  b: {loguniform: [1Mbit, 1Gbit]}\n"
        "  c: {integers: [1, 3]}\n  d: {choice: [red, codel]}\n  e: {uniform: [1BDP, 2BDP]}\n"
    )
    rng = np.random.default_rng(1)
    drawn = [episodes.read(place).overrides(rng) for _ in range(200)]
    a = [float(one["a"].removesuffix("ns")) for one in drawn]
    b = [float(one["b"].removesuffix("bit")) for one in drawn]
    assert 1e6 <= min(a) < 1.05e6 < 1.95e6 < max(a) <= 2e6
    assert 50 < sum(value < 3.16e7 for value in b) < 150, "half of them below the middle decade"
    assert {one["c"] for one in drawn} == {"1", "2", "3"}
    assert {one["d"] for one in drawn} == {"red", "codel"}
    assert all(one["e"].endswith("BDP") for one in drawn)


def test_agent_is_no_control_elsewhere(weir_sim, write, monkeypatch):
    monkeypatch.setenv("WEIR_PYTHON", sys.executable)
    argv = [str(weir_sim), str(write(AGENT)), "--check"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=120)
    assert done.returncode == 2
    assert "agent is a flow of weir.gym" in done.stderr


def test_an_episode_that_has_ended_goes_no_further(env):
    env.reset(seed=1, options=SHORT)
    keep = np.zeros(1, np.float32)
    while not env.step(keep)[3]:
        pass
    with pytest.raises(UserError, match=r"another begins with reset\(\)"):
        env.step(keep)


def test_the_example_for_stable_baselines3(weir_sim):
    """A short training: the page has a whole one. torch is no dependency of the tests."""
    python = os.environ.get("WEIR_SB3", sys.executable)
    found = subprocess.run([python, "-c", "import stable_baselines3"], capture_output=True)
    if found.returncode != 0:
        pytest.skip("no stable_baselines3; WEIR_SB3 may name a Python that has it")
    argv = [python, str(ROOT / "configs/notebooks/train-sb3.py"), "1000"]
    env = {**os.environ, "WEIR_BUILD": str(weir_sim.parents[2])}
    done = subprocess.run(argv, capture_output=True, text=True, timeout=240, env=env)
    number = r"-?[0-9]+\.[0-9]{2} per step\n"
    assert re.fullmatch(f"before: {number}after 1000 steps: {number}", done.stdout), done.stderr
