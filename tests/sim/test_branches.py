# SPDX-License-Identifier: BSD-3-Clause
"""Branches of a run: what each would be alone, whatever happens to the others."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

import processes
import pytest
import yaml
from waiting import wait_for
from weir import bootstrap
from weir.analysis.ring import open_ring

from .conftest import Program, Replay, Simulate

CONFIG = """
duration: 2s
warmup: 500ms
title: a
paths:
  forward:
    - loss: {rate: 0.1%}
    - link: {rate: 20Mbit, queue: {fifo: {limit: 1BDP}}}
    - delay: {delay: 10ms}
  reverse: [{delay: {delay: 10ms}}]
flows:
  - {count: 4, cc: cubic, jitter: 100ms}
  - {count: 2, cc: copa, source: {poisson: {load: 2Mbit, sizes: {mean: 20kB}}}}
schedule:
  - {at: 300ms, forward.link.rate: 25Mbit}
  - {at: 1s, forward.loss.rate: 0.2%}
  - {at: 1500ms, forward.link.rate: 15Mbit}
telemetry: {level: 3}
"""
BRANCHES = """
branches:
  at: 1s
  runs:
    same: {}
    slow: {forward.link.rate: 5Mbit}
    far: {forward.delay.delay: 30ms, forward.loss.rate: 3%}
"""
LONG = CONFIG.replace("duration: 2s", "duration: 20h").replace("level: 3", "level: 0")
WAIT_S_MAX = 60
PCAP = "d4c3b2a1020004000000000000000000ffff000001000000"  # of Ethernet, without packets


def test_a_branch_is_what_it_is_alone(simulate: Simulate) -> None:
    """Each branch has, byte by byte, the records that its config.yaml gives without a trunk."""
    trunk = simulate(CONFIG + BRANCHES)
    assert 1 - 2 / 512 <= trunk.summary["virtual_s"] < 1  # up to its last step before
    for name in ("same", "slow", "far"):
        branch = trunk.folder / "branches" / name
        alone = simulate((branch / "config.yaml").read_text())
        files = {file.name for file in branch.iterdir()} - {"manifest.json", "summary.json"}
        assert files == {file.name for file in alone.folder.iterdir()} - {
            "manifest.json",
            "summary.json",
        }
        assert len(files) > 5
        for file in files:
            assert (branch / file).read_bytes() == (alone.folder / file).read_bytes(), file
        summary = json.loads((branch / "summary.json").read_text())
        assert summary["ledger"] == alone.summary["ledger"]
        assert summary["digest"] == alone.summary["digest"]
        assert summary["measured"]["cpu_s"] > 0


def test_a_branch_without_changes(simulate: Simulate) -> None:
    """It is the run without branches."""
    trunk = simulate(CONFIG + BRANCHES)
    whole = simulate(CONFIG)
    same = json.loads((trunk.folder / "branches/same/summary.json").read_text())

    assert same["digest"] == whole.summary["digest"] != trunk.summary["digest"]
    assert same["groups"] == whole.groups


def test_what_a_branch_says_of_itself(simulate: Simulate) -> None:
    """Its trunk, the time and the changes are in its summary, its manifest and its config."""
    trunk = simulate(CONFIG + BRANCHES)
    far = trunk.folder / "branches/far"
    changes = {"forward.delay.delay": "30ms", "forward.loss.rate": "3%"}
    manifest = json.loads((far / "manifest.json").read_text())
    run_id = json.loads((trunk.folder / "manifest.json").read_text())["run_id"]

    assert manifest["branch"] == {"name": "far", "trunk": run_id, "at_s": 1, "changes": changes}
    assert json.loads((far / "summary.json").read_text())["branch"] == manifest["branch"]
    config = yaml.load((far / "config.yaml").read_text(), yaml.BaseLoader)
    assert config["schedule"][-1] == {"at": "1s", **changes}
    assert "branches" not in config
    assert open_ring(far / "links.ring").records["ts_ns"][0] < 1e9  # the trunk's too


def test_force_takes_the_branches_of_the_run_before_away(sim: Program) -> None:
    """Its folder has those of the new run, no others; what is no run stays, and a link's end."""
    branches = sim.folder / "run/branches"

    def run(*names: str) -> list[str]:
        runs = ", ".join(f"{name}: {{}}" for name in names)
        more = f"branches: {{at: 1s, runs: {{{runs}}}}}" if names else ""
        assert sim(f"{CONFIG}\n{more}\n", "--out", "run", "--force").returncode == 0
        return sorted(place.name for place in branches.glob("*"))

    assert run("a", "b") == ["a", "b"]
    (branches / "notes").mkdir()
    (branches / "b/replay").mkdir()
    other = branches.parent.with_name("other")
    (branches / "a").rename(other)
    (branches / "a").symlink_to(other)
    assert run("c") == ["c", "notes"]
    (branches / "notes").rmdir()
    assert run() == []
    assert not branches.exists()
    assert (other / "manifest.json").exists()
    elsewhere = sim.folder / "elsewhere"
    elsewhere.mkdir()
    other.rename(elsewhere / "a")
    branches.symlink_to(elsewhere)
    assert run() == ["a"]


def test_a_trunk_s_time_is_without_that_of_its_branches(simulate: Simulate) -> None:
    trunk = simulate(CONFIG + BRANCHES.replace("at: 1s", "at: 600ms"))
    for place in (trunk.folder / "branches").iterdir():
        branch = json.loads((place / "summary.json").read_text())
        assert trunk.summary["wall_s"] < branch["wall_s"]
        assert trunk.summary["measured"]["wall_s"] < branch["measured"]["wall_s"]


def test_a_trunk_and_its_branches_can_be_replayed(simulate: Simulate, replay: Replay) -> None:
    trunk = simulate(CONFIG + BRANCHES, "telemetry.arrivals=yes")
    for place in (trunk.folder, *(trunk.folder / "branches").iterdir()):
        assert replay(place).status == 0


@pytest.mark.slow
def test_no_error_that_sanitizers_find(weir_sim: Path, tmp_path: Path) -> None:
    """In the trunk, in a branch that ends, in one that is killed: same bytes, nothing said.

    At the end of each process LeakSanitizer looks for memory that nobody freed.
    """
    program = bootstrap.sanitized() / "tools/sim/weir-sim"
    runs = "{same: {}, slow: {forward.link.rate: 5Mbit}, busy: {forward.link.rate: 100Gbit}}"
    config = f"{CONFIG}branches: {{at: 1s, runs: {runs}}}\n"
    process = begin(program, tmp_path, config, "-o", "duration=4s")
    os.kill(branch_of(process, tmp_path, "busy"), signal.SIGKILL)
    _, said = process.communicate(timeout=2 * WAIT_S_MAX)

    assert said == "weir-sim: these branches failed: busy (killed by signal 9)\n"
    for name in ("same", "slow"):
        branch = tmp_path / "run/branches" / name
        alone = tmp_path / name
        subprocess.run([weir_sim, branch / "config.yaml", "--out", alone], check=True)
        digests = [
            json.loads((each / "summary.json").read_text())["digest"] for each in (branch, alone)
        ]
        assert digests[0] == digests[1]


def begin(program: Path, folder: Path, config: str, *argv: str) -> subprocess.Popen[str]:
    """Starts a run of three branches at a time, and waits until all of them go on."""
    path = folder / "x.yaml"
    path.write_text(config)
    command = [program, path, "--out", folder / "run", "--threads", "3", *argv]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    branches = folder / "run/branches"
    wait_for(lambda: len(list(branches.glob("*/manifest.json"))) == 3)
    return process


def branch_of(process: subprocess.Popen[str], folder: Path, name: str) -> int:
    """Returns the process of a branch: the one that has its lock open."""
    lock = folder / "run/branches" / name / ".weir-lock"
    for child in processes.children(process.pid):
        if str(lock) in processes.links(child, "fd/"):
            return child
    raise AssertionError(f"{name} does not run")


def manifests(folder: Path) -> dict[str, dict[str, object]]:
    found = sorted((folder / "run/branches").glob("*/manifest.json"))
    return {file.parent.name: json.loads(file.read_text()) for file in found}


def test_a_branch_that_is_killed(weir_sim: Path, tmp_path: Path) -> None:
    """The others end as if nothing had happened; the trunk says which failed and how."""
    runs = "{slow: {forward.link.rate: 1kbit}, idle: {forward.link.rate: 2kbit}, busy: {}}"
    flows = "flows: [{count: 1, cc: cubic}]"
    config = LONG.split("flows:")[0] + f"{flows}\nbranches: {{at: 1s, runs: {runs}}}\n"
    process = begin(weir_sim, tmp_path, config, "--duration", "5000s")
    os.kill(branch_of(process, tmp_path, "busy"), signal.SIGKILL)
    _, said = process.communicate(timeout=WAIT_S_MAX)

    assert process.returncode == 1
    assert said == "weir-sim: these branches failed: busy (killed by signal 9)\n"
    left = manifests(tmp_path)
    assert [left[name]["verdict"] for name in ("slow", "idle")] == ["ok", "ok"]
    assert left["busy"]["verdict"] == "running"
    assert not (tmp_path / "run/branches/busy/summary.json").exists()
    for name in ("slow", "idle"):
        path = tmp_path / "run/branches" / name
        assert json.loads((path / "summary.json").read_text())["ledger"]["balanced"]
        config = (path / "config.yaml").read_text()
        (tmp_path / "alone.yaml").write_text(config)
        argv = [weir_sim, tmp_path / "alone.yaml", "--out", tmp_path / name]
        subprocess.run(argv, check=True)
        digests = [
            json.loads((each / "summary.json").read_text())["digest"]
            for each in (path, tmp_path / name)
        ]
        assert digests[0] == digests[1]
    assert json.loads((tmp_path / "run/manifest.json").read_text())["exit"] == 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_the_end_of_the_trunk(weir_sim: Path, tmp_path: Path, number: signal.Signals) -> None:
    """However it ends, its branches end too, each with all that was measured so far."""
    process = begin(weir_sim, tmp_path, LONG + BRANCHES)
    process.send_signal(number)
    process.communicate(timeout=WAIT_S_MAX)
    assert process.returncode in (128 + number, -number)
    wait_for(lambda: all(each["verdict"] != "running" for each in manifests(tmp_path).values()))
    for each in manifests(tmp_path).values():
        assert each["verdict"] == "interrupted"
    for file in (tmp_path / "run/branches").glob("*/summary.json"):
        summary = json.loads(file.read_text())
        assert summary["ledger"]["balanced"]
        assert summary["virtual_s"] > 0.9


def test_a_branch_that_cannot_begin(weir_sim: Path, tmp_path: Path) -> None:
    """The folder of one holds another run, which stays; the others and the trunk's stay whole."""
    (tmp_path / "x.yaml").write_text(CONFIG + BRANCHES)
    taken = tmp_path / "run/branches/slow"
    taken.mkdir(parents=True)
    (taken / "manifest.json").write_text("{}")
    argv = [weir_sim, tmp_path / "x.yaml", "--out", tmp_path / "run"]
    done = subprocess.run(argv, capture_output=True, text=True)

    assert done.returncode == 1
    held = f"weir-sim: {taken} already holds a run: choose another --out or --force\n"
    assert held in done.stderr
    assert done.stderr.endswith("these branches failed: slow (exit status 2)\n")
    assert (taken / "manifest.json").read_text() == "{}"
    for place in (tmp_path / "run/branches/same", tmp_path / "run/branches/far", tmp_path / "run"):
        assert json.loads((place / "summary.json").read_text())["ledger"]["balanced"]
        open_ring(place / "links.ring").check()


REFUSED = {
    "no time": ("{runs: {a: {}}}", "at is required"),
    "the end": ("{at: 2s, runs: {a: {}}}", "at: must be earlier than the run's end, 2 s"),
    "no runs": ("{at: 1s}", "runs: must be a map of 1 to 256 branches such as"),
    "a list": ("{at: 1s, runs: [a]}", "runs: must be a map of 1 to 256 branches such as"),
    "a path": ("{at: 1s, runs: {../a: {}}}", "'../a' cannot name a folder"),
    "a value": ("{at: 1s, runs: {a: 3}}", "a: must be a map such as {forward.link.rate: 5Gbit}"),
    "own time": ("{at: 1s, runs: {a: {at: 1s}}}", "a: must be a map such as"),
    "other key": ("{at: 1s, runs: {}, run: {}}", "branches: unknown key 'run'"),
    "flows": ("{at: 1s, runs: {a: {flows.0.count: 3}}}", "flows.0.count: does not start with"),
    "level": ("{at: 1s, runs: {a: {telemetry.level: 3}}}", "telemetry.level: does not start"),
    "stage": ("{at: 1s, runs: {a: {forward.loss2.rate: 1%}}}", "has no such stage; it has loss"),
    "queue": ("{at: 1s, runs: {a: {forward.link.queue: red}}}", "cannot be changed while running"),
    "unit": ("{at: 1s, runs: {a: {forward.link.rate: 3ms}}}", "'3ms' is not a rate"),
    "no delay": (
        "{at: 1s, runs: {a: {forward.delay.delay: 0ms, reverse.delay.delay: 0ms}}}",
        "this leaves no delay in either direction",
    ),
}


def test_a_run_of_captures_has_no_branches(sim: Program) -> None:
    path = "[{source: {pcap: a.pcap}}, {delay: {delay: 1ms}}]"
    config = f"paths: {{forward: {path}}}\nbranches: {{at: 1s, runs: {{a: {{}}}}}}\n"
    (sim.folder / "a.pcap").write_bytes(bytes.fromhex(PCAP))
    sim.refuse(config, "branches: a run without flows of ours has none")


@pytest.mark.parametrize("name", REFUSED)
def test_branches_that_cannot_be(sim: Program, name: str) -> None:
    branches, said = REFUSED[name]
    sim.refuse(f"{CONFIG}branches: {branches}\n", said)


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["-o", "flows.0={stack: linux}"], "branches: a run with guests, which are processes"),
        (["--pcap", "x.pcap"], "--pcap: a run with branches has no capture"),
    ],
)
def test_runs_that_cannot_branch(sim: Program, argv: list[str], said: str) -> None:
    """What another process has of a run is not copied with it."""
    sim.refuse(CONFIG + BRANCHES, said, *argv)


def test_a_stop_before_the_branches(sim: Program) -> None:
    """A run that ends by its rule before their time is no trunk, and says so."""
    stop = "stop: {metric: goodput, change: 100%, over: 100ms}\n"
    done = sim(CONFIG + stop + BRANCHES, "--out", "run")

    assert done.returncode == 1
    assert "no branch began" in done.stderr
    assert not (sim.folder / "run/branches").exists()
