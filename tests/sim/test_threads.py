# SPDX-License-Identifier: BSD-3-Clause
"""--threads: the same bytes on two threads as on one, and a sentence where there is one."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
from swarm.generate import Generator, registry
from swarm.main import dump, new_seed
from weir import bootstrap

from .conftest import ROOT
from .test_determinism import MIXED

# Level 1: at level 3 all packets are recorded in one order of all paths.
PLAIN = MIXED.replace("level: 3", "level: 1")
# Parts before and behind a shared link, hops that some flows skip, and links without a delay, of
# which one changes by itself: it was once asked what had left it before the time 0.
HOPS = """
seed: 5
duration: 4s
warmup: 1s
paths:
  access: [{delay: {delay: 2ms, late: 1%, late_by: 1ms}}]
  hop1: [{link: {rate: 30Mbit, queue: {fifo: {limit: 1BDP}}}}]
  hop2: [{loss: {rate: 0.2%}}, {link: {rate: 20Mbit, queue: {codel: {}}}}, {delay: {delay: 3ms}}]
  back1: [{markov_link: {good: 2Mbit, bad: 1Mbit, queue: {fifo: {limit: 60pkt}}}}]
  back2: [{delay: {delay: 4ms}}]
flows:
  - {count: 3, cc: newreno, path: {forward: [access, hop1, hop2], reverse: [back1, back2]}}
  - {count: 3, cc: cubic, path: {forward: [hop1, hop2], reverse: back2}, jitter: 100ms}
  - {count: 2, cc: copa, path: {forward: hop2, reverse: [back1, back2]}}
  - {count: 2, cc: bbr, path: {forward: [access, hop2], reverse: back2}, base_rtt: 30ms}
schedule: [{at: 2s, hop2.delay.delay: 9ms, back2.delay.delay: 1ms}]
telemetry: {level: 1, interval: 50ms}
"""
CASES = {
    "mixed": PLAIN,
    "sampled": MIXED.replace("level: 3", "level: 2, sample: 50%"),
    "hops": HOPS,
    "hops_sampled": HOPS.replace("level: 1", "level: 2, sample: 50%"),
    "hosts": PLAIN
    + "hosts: {sending: {count: 2, coalesce: 300us}, receiving: {count: 3, cpu: 20us}}\n",
    "kinds_of_hosts": PLAIN
    + "hosts: {sending: [{name: a, card: 1Gbit, qdisc: fq}], receiving: [{name: b, cpu: 9us}]}\n",
    "delay_forward_only": PLAIN.replace("    - delay: {delay: 10ms}\nflows", "flows"),
    "delay_reverse_only": PLAIN.replace(
        "    - delay: {delay: 10ms, late: 0.5%, late_by: 2ms}\n", ""
    ).replace(", forward.delay.delay: 5ms", ""),
    "delays_shorten": PLAIN.replace(
        "forward.delay.delay: 5ms", "forward.delay.delay: 0ms, reverse.delay.delay: 1us"
    ),
    "duplicates": PLAIN.replace("    - loss: {rate: 0.3%}", "    - duplicate: {rate: 5%}"),
    "no_link": """
duration: 300ms
warmup: 100ms
paths: {forward: [{delay: {delay: 1ms}}], reverse: [{delay: {delay: 1ms}}]}
flows: [{count: 2000, cc: {fixed: {cwnd: 10}}, ack_every: 1}]
""",
    "transfers": """
duration: 3s
paths:
  forward: [{link: {rate: 100Mbit, queue: {fq_codel: {}}}}, {delay: {delay: 5ms}}]
  reverse: [{link: {rate: 2Mbit, queue: {fifo: {limit: 50pkt}}}}, {delay: {delay: 5ms}}]
flows:
  - {count: 20, cc: cubic, source: {poisson: {load: 30Mbit, sizes: {law: pareto, mean: 50kB}}}}
  - {count: 2, cc: bbr}
""",
    "idle": """
duration: 10000s
paths:
  forward: [{link: {rate: 20kbit, queue: {fifo: {limit: 270pkt}}}}, {delay: {delay: 19ms}}]
  reverse: [{delay: {delay: 9ms}}]
flows:
  - {count: 2, cc: lola, start: 40s, source: {size: {bytes: 3kB}}}
  - {count: 2, cc: newreno, start: 9000s, source: {size: {bytes: 90kB}}}
telemetry: {level: 1, interval: 10s}
""",
    "settles": """
duration: 60s
stop: {metric: goodput, change: 5%, over: 2s}
paths:
  forward: [{link: {rate: 20Mbit, queue: {fifo: {limit: 1BDP}}}}]
  reverse: [{delay: {delay: 20ms}}]
flows: [{count: 2, cc: newreno}]
""",
    "handover": (ROOT / "configs/handover.yaml")
    .read_text()
    .replace("traces/", f"{ROOT}/configs/traces/"),
}


def simulated(program: Path, config: Path, out: Path, *argv: str) -> tuple[dict[str, Any], str]:
    """The summary, and what the program said."""
    done = subprocess.run(
        [program, config, "--out", out, *argv], capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr
    return json.loads((out / "summary.json").read_text()), done.stderr


def of_the_seed(summary: dict[str, Any]) -> dict[str, Any]:
    """All but what the clock decides."""
    measured = {
        k: v for k, v in (summary["measured"] or {}).items() if k not in ("wall_s", "cpu_s")
    }
    return {k: v for k, v in summary.items() if k not in ("wall_s", "threads", "two_threads_s")} | {
        "measured": measured
    }


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_same_bytes(weir_sim: Path, tmp_path: Path, case: str) -> None:
    config = tmp_path / "x.yaml"
    config.write_text(CASES[case])
    one, said_one = simulated(weir_sim, config, tmp_path / "1", "--threads", "1")
    two, said_two = simulated(weir_sim, config, tmp_path / "2", "--threads", "2")

    assert (one["threads"], two["threads"]) == (1, 2)
    assert one["two_threads_s"] == 0 < two["two_threads_s"] <= two["wall_s"]
    assert of_the_seed(one) == of_the_seed(two)
    assert said_one == said_two
    rings = sorted((tmp_path / "1").glob("*.ring"))
    assert rings
    for ring in rings:
        assert ring.read_bytes() == (tmp_path / "2" / ring.name).read_bytes(), ring.name


@pytest.mark.parametrize(
    ("argv", "why"),
    [
        (["-o", "telemetry.level=3"], "all paths record their packets in one order"),
        (["-o", "telemetry.arrivals=yes"], "all paths record their packets in one order"),
        (["--pcap", "x.pcap"], "all paths record their packets in one order"),
        (
            ["-o", "paths.reverse.0.delay.delay=900us"],
            "the delay of the paths is too short to gain by more",
        ),
    ],
)
def test_one_thread(weir_sim: Path, tmp_path: Path, argv: list[str], why: str) -> None:
    config = tmp_path / "x.yaml"
    config.write_text(CASES["settles"])
    argv = [str(tmp_path / word) if word == "x.pcap" else word for word in argv]
    argv += ["--duration", "1s", "--threads", "4"]
    summary, said = simulated(weir_sim, config, tmp_path / "r", *argv)

    assert summary["threads"] == 1
    assert f"weir-sim: warning: --threads 4: the run has one thread; {why}\n" in said


def test_two_way_traffic_has_one_thread(weir_sim: Path, tmp_path: Path) -> None:
    summary, said = simulated(
        weir_sim,
        ROOT / "configs/flent/rrul.yaml",
        tmp_path / "r",
        *("--duration", "6s", "--threads", "2"),
    )

    assert summary["threads"] == 1
    assert "the run has one thread; a path is on the way to both hosts" in said


def test_more_than_there_are(weir_sim: Path, tmp_path: Path) -> None:
    config = tmp_path / "x.yaml"
    config.write_text(CASES["transfers"])
    summary, said = simulated(weir_sim, config, tmp_path / "r", "--threads", "8")

    assert summary["threads"] == 2
    assert "--threads 8: the run has two threads, which is the most" in said


def test_default_is_one_on_one_processor(weir_sim: Path, tmp_path: Path) -> None:
    config = tmp_path / "x.yaml"
    config.write_text(CASES["transfers"])
    cpu = min(os.sched_getaffinity(0))
    argv = ["taskset", "-c", str(cpu), str(weir_sim), str(config), "--out", str(tmp_path / "r")]
    subprocess.run(argv, check=True, capture_output=True, timeout=100)

    assert json.loads((tmp_path / "r/summary.json").read_text())["threads"] == 1


@pytest.mark.parametrize("threads", ["0", "-1", "two", "1.5", "", "100000"])
def test_not_a_number_of_threads(weir_sim: Path, threads: str) -> None:
    done = subprocess.run(
        [weir_sim, "x.yaml", f"--threads={threads}"], capture_output=True, text=True, timeout=60
    )

    assert done.returncode == 2
    assert f"--threads: '{threads}' is not a number from 1 to" in done.stderr


def test_an_interrupted_run_ends(weir_sim: Path, tmp_path: Path) -> None:
    """Both threads end at a signal, and the folder is complete."""
    config = tmp_path / "x.yaml"
    config.write_text(PLAIN.replace("duration: 8s", "duration: 10000s"))
    argv = [weir_sim, config, "--out", tmp_path / "r", "--threads", "2", "--progress"]
    with subprocess.Popen(argv, stderr=subprocess.PIPE, text=True) as child:
        assert child.stderr is not None
        child.stderr.readline()
        os.kill(child.pid, signal.SIGINT)
        child.communicate(timeout=100)

    assert child.returncode == 130
    summary = json.loads((tmp_path / "r/summary.json").read_text())
    assert summary["threads"] == 2
    assert summary["ledger"]["balanced"]


RANDOM = 30  # experiments, of which about half have two threads
SAMPLED = ["-o", "telemetry.level=2", "-o", "telemetry.sample=50%", "-o", "telemetry.arrivals=no"]


def under_race_checks(program: Path, config: Path, out: Path) -> subprocess.CompletedProcess[str]:
    """With two threads; ThreadSanitizer wants addresses that are not random."""
    argv = ["setarch", "-R", program, config, "--out", out, "--threads", "2", *SAMPLED]
    return subprocess.run(argv, capture_output=True, text=True, timeout=300)


def digest(done: subprocess.CompletedProcess[str], out: Path) -> tuple[str, int]:
    """Of a run, and its threads; the sentence of a config that is refused."""
    assert "ThreadSanitizer" not in done.stderr, done.stderr[:4000]
    if done.returncode == 2:
        return done.stderr.splitlines()[-1], 0
    assert done.returncode == 0, done.stderr
    summary = json.loads((out / "summary.json").read_text())
    return summary["digest"], summary["threads"]


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_no_races(weir_sim: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Random experiments on two threads, watched: no race, and the bytes of one thread."""
    program = bootstrap.race_checked()
    seed, kinds = new_seed(), registry(weir_sim)
    with capsys.disabled():
        print(f"\n{RANDOM} experiments from --seed {seed}")
    config, two = tmp_path / "x.yaml", 0
    for i in range(RANDOM):
        config.write_text(dump(Generator(seed + i, kinds).experiment()))
        out = tmp_path / str(i)
        found, threads = digest(under_race_checks(program, config, out / "2"), out / "2")
        argv = [weir_sim, config, "--out", out / "1", "--threads", "1", *SAMPLED]
        alone = subprocess.run(argv, capture_output=True, text=True, timeout=100)

        assert found == digest(alone, out / "1")[0], f"seed {seed + i}"
        two += threads == 2
    assert two > RANDOM / 4
