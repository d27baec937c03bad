# SPDX-License-Identifier: BSD-3-Clause
"""Virtual time and a seed give the same bytes, whatever the compiler did."""

from __future__ import annotations

import hashlib
import json
import subprocess
from pathlib import Path

import numpy as np
import pytest
import yaml
from swarm.generate import Generator, registry
from swarm.main import dump, new_seed
from weir import bootstrap
from weir.analysis.ring import open_ring

from .conftest import ROOT, Run, Simulate

# Everything at once: both algorithms, loss, reordering, marks, a change of rate, short flows.
MIXED = """
seed: 7
duration: 8s
warmup: 1s
paths:
  forward:
    - loss: {rate: 0.3%}
    - link: {rate: 50Mbit, queue: {codel: {ecn: yes}}}
    - delay: {delay: 10ms, late: 0.5%, late_by: 2ms}
  reverse:
    - loss: {rate: 0.1%}
    - delay: {delay: 10ms}
flows:
  - {count: 5, cc: {copa: {mode: auto}}, jitter: 500ms, ack_every: 1}
  - {count: 5, cc: newreno, ecn: ect0, stagger: 100ms, stop: 6s}
  - {count: 5, cc: newreno, start: 2s, source: {size: {bytes: 500kB}}, base_rtt: 40ms}
schedule:
  - {at: 4s, forward.link.rate: 20Mbit}
  - {at: 6s, forward.link.rate: 80Mbit, forward.delay.delay: 5ms}
telemetry: {level: 3, interval: 100ms}
"""


def rings(run: Run) -> dict[str, str]:
    """Hashes of all files of telemetry, headers included."""
    files = sorted(run.folder.glob("*.ring"))
    assert files
    return {f.name: hashlib.sha256(f.read_bytes()).hexdigest() for f in files}


def test_the_seed_decides(simulate: Simulate) -> None:
    """Same seed, same bytes; another seed, others."""
    first, second = simulate(MIXED), simulate(MIXED)
    other = simulate(MIXED, "seed=8")

    assert rings(first) == rings(second)
    assert first.summary["digest"] == second.summary["digest"]
    assert other.summary["digest"] != first.summary["digest"]


def test_a_stage_moves_no_other_dice(simulate: Simulate) -> None:
    """A loss stage that drops nothing, added in front, changes no packet."""
    plain = simulate(MIXED)
    added = simulate(MIXED.replace("  reverse:\n", "  reverse:\n    - delay: {delay: 0ms}\n", 1))

    for ring in plain.folder.glob("*.ring"):
        before, after = (open_ring(run.folder / ring.name).records for run in (plain, added))
        names = set(before.dtype.names or ())
        # Each path's records by themselves, in time: a stage decides on a paced packet before its
        # time, and how long before follows from when its path is next looked at.
        keys = [key for key in ("event", "pkt_id", "ts_ns", "path") if key in names]
        before, after = (r[np.lexsort([r[key] for key in keys])] for r in (before, after))
        for name in names - {"stage"}:  # where a stage stands in its path has changed
            assert np.array_equal(before[name], after[name]), (ring.name, name)


@pytest.mark.slow
def test_the_compiler_does_not(simulate: Simulate) -> None:
    """gcc -O3 and link-time optimisation; gcc -O0 and clang -O2, both with sanitizers."""
    expected = rings(simulate(MIXED))

    gcc, fixed_addresses = bootstrap.race_checked(), ("setarch", "-R")
    assert rings(simulate(MIXED, program=gcc, by=fixed_addresses)) == expected
    clang = bootstrap.sanitized() / "tools/sim/weir-sim"
    assert rings(simulate(MIXED, program=clang)) == expected


def trial_digest(weir_sim: Path, config: str) -> str:
    """Of a run that answers on standard output, without a folder."""
    line = json.dumps(yaml.load(config, yaml.BaseLoader))
    argv = [weir_sim, "--trials"]
    done = subprocess.run(argv, input=line, capture_output=True, text=True, check=True)
    return str(json.loads(done.stdout).get("digest"))


def test_a_trial_is_the_run(simulate: Simulate, weir_sim: Path) -> None:
    assert trial_digest(weir_sim, MIXED) == simulate(MIXED).summary["digest"]


def test_a_trial_of_overrides_is_the_run_with_them(weir_sim: Path, tmp_path: Path) -> None:
    """Each with its own; what is wrong with one line is said in its place, and the next goes on.

    A line that was no list once closed the input: what had not been read by then had no answer.
    """
    (tmp_path / "x.yaml").write_text(MIXED)
    own = [
        ["seed=3"],
        ["seed=4", "duration=900ms", "warmup=0s", "flows.0.cc=bbr"],
        ["warmup=1d"],
        ["seed=3"],
    ]
    asked = "".join(f"{json.dumps({'o': each})}\n" for each in own)
    argv = [weir_sim, "x.yaml", "--trials", "-o", "telemetry.level=1"]
    done = subprocess.run(
        argv, input=f'{asked}{{"o": [["a"]]}}\n{{}}\n', cwd=tmp_path, capture_output=True, text=True
    )
    found = [json.loads(line) for line in done.stdout.splitlines()]
    wrong = subprocess.run(
        argv, input=9000 * '{"o": 1}\n', cwd=tmp_path, capture_output=True, text=True
    )
    assert wrong.stdout.count("trial: beside CONFIG") == 9000
    assert [one.get("error", "").partition(":")[0] for one in found] == [
        *("", "", "-o warmup=1d", "", "trial", "trial"),
    ]
    for number in (0, 1, 3):
        changes = [word for one in ["telemetry.level=1", *own[number]] for word in ("-o", one)]
        argv = [weir_sim, "x.yaml", *changes, "--out", str(number), "--json"]
        run = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, check=True)
        assert json.loads(run.stdout)["digest"] == found[number]["digest"]
    assert found[0]["digest"] == found[3]["digest"] != found[1]["digest"]


RANDOM = 100  # experiments; before trials had a run's steps an eighth differed


@pytest.mark.slow
def test_trials_are_their_runs(
    weir_sim: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Random experiments that record packets of several paths."""
    seed, kinds = new_seed(), registry(weir_sim)
    with capsys.disabled():
        print(f"\n{RANDOM} experiments from --seed {seed}")
    config, ran = tmp_path / "x.yaml", 0
    for i in range(RANDOM):
        experiment = Generator(seed + i, kinds).experiment()
        experiment["telemetry"]["level"] = str(2 + i % 2)
        config.write_text(dump(experiment))
        out = tmp_path / str(i)
        argv = [weir_sim, config, "--out", out]
        if subprocess.run(argv, capture_output=True, timeout=100).returncode == 0:
            ran += 1
            digest = json.loads((out / "summary.json").read_text())["digest"]
            assert trial_digest(weir_sim, config.read_text()) == digest, f"seed {seed + i}"
    assert ran > RANDOM / 3  # two of three are, give or take five in a hundred


GOLDEN = json.loads((ROOT / "tests/golden/digests.json").read_text())
# What to simulate for each digest: a config and overrides.
GOLDEN_RUNS: dict[str, tuple[str, ...]] = {
    "mixed": (MIXED,),
    **{name: (name, *GOLDEN["overrides"].get(name, [])) for name in GOLDEN["configs"]},
}


def test_golden_digests(simulate: Simulate) -> None:
    """A change of behaviour must be meant: a commit that alters a digest says why.

    Written by: weir-sim on these runs; see tests/golden/README.md.
    """
    found = {name: simulate(*run).summary["digest"] for name, run in GOLDEN_RUNS.items()}

    assert found == GOLDEN["digests"]
