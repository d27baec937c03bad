# SPDX-License-Identifier: BSD-3-Clause
"""SCReAM and C4 (tools/sdk), each against what its draft says or what follows from its rules."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import pytest
from weir.analysis import folder as folders
from weir.many.cells import run_cells
from weir.plugin import check
from weir.studies.c4 import study as c4
from weir.studies.rmcat import study as rmcat
from weir.study.claim import Found, Setup

from .conftest import Run, Simulate

BULK = """
seed: 1
duration: {seconds}s
warmup: {warmup}s
paths:
  forward:
    - loss: {{rate: {loss}}}
    - link: {{rate: {rate}Mbit, queue: {queue}}}
    - delay: {{delay: {delay}ms}}
  reverse: [{{delay: {{delay: {delay}ms}}}}]
flows:
  - {{count: {flows}, jitter: 100ms, cc: {{plugin: {plugin}{more}}}, ecn: {ecn}}}
telemetry: {{level: {level}}}
"""
FIFO = "{fifo: {limit: 300ms}}"
USUAL = {
    "seconds": 120, "warmup": 40, "loss": "0%", "rate": 10, "queue": FIFO, "delay": 20,
    "flows": 1, "more": "", "ecn": "off", "level": 0,
}  # fmt: skip


def bulk(simulate: Simulate, plugin: Path, **network: object) -> Run:
    """Runs flows that always have data."""
    return simulate(BULK.format(plugin=plugin, **{**USUAL, **network}))


def runs_of(setup: Setup, folder: Path) -> list[folders.Run]:
    """Runs a setup of a study."""
    done = run_cells(list(setup.cells(True)), folder, workers=1)
    found = Found({one.cell.name: one.folder for one in done}, True).runs(setup)
    assert found is not None
    return found


def factors_of(run: Run) -> np.ndarray:
    """Returns what each ACK has made of the first observed number."""
    values = run.records("cc")["obs0"].astype(float)
    return np.asarray(values[1:] / values[:-1])


@pytest.mark.parametrize(("target_ms", "rate"), [(60, 10), (60, 50), (100, 10)])
def test_scream_keeps_half_of_its_target(
    compiled: Path, simulate: Simulate, target_ms: int, rate: int
) -> None:
    """Near its last one the window grows by 1/4 of a segment each RTT, and falls by alpha_v / 2.

    So alpha_v, which is 0 where the queue is half of the target, is 0.01 for 50 segments.
    """
    more = f", rmax: 1Gbit, target: {target_ms}ms"
    run = bulk(simulate, compiled / "scream.so", rate=rate, more=more)
    assert run.link["utilisation"] > 0.999
    assert run.link["queue_mean_ns"] == pytest.approx(target_ms * 1e6 / 2, rel=0.05)


def test_scream_shares_with_itself(compiled: Path, simulate: Simulate) -> None:
    """Flows that see one queue, from an empty one on, have as much each, and no longer queue."""
    run = bulk(simulate, compiled / "scream.so", flows=2, more=", rmax: 1Gbit")
    assert run.groups[0]["jfi"] > 0.99
    assert run.link["queue_mean_ns"] == pytest.approx(30e6, rel=0.06)


def test_scream_answers_losses_and_marks(compiled: Path, simulate: Simulate) -> None:
    """BETA_LOSS is 0.7, BETA_ECN 0.8; with L4S it is half of the average part of marks at most.

    Between two answers are 25 ms.
    """
    plugin = compiled / "scream.so"
    network: dict[str, object] = {"rate": 40, "delay": 12.5, "more": ", rmax: 1Gbit", "level": 3}
    lossy = factors_of(bulk(simulate, plugin, loss="0.1%", **network))
    assert np.median(lossy[lossy < 0.9]) == pytest.approx(0.7, abs=0.01)
    codel = "{codel: {target: 5ms, ecn: yes}}"
    run = bulk(simulate, plugin, ecn="ect0", queue=codel, **network)
    marked = factors_of(run)
    assert run.link["drops"] == 0
    assert np.median(marked[marked < 0.9]) == pytest.approx(0.8, abs=0.01)
    network["more"] = ", rmax: 1Gbit, l4s: yes"
    step = "{step: {limit: 300ms, threshold: 1ms}}"
    run = bulk(simulate, plugin, ecn="ect1", queue=step, **network)
    factors, alpha = factors_of(run), run.records("cc")["obs3"][1:]
    answers = factors < 1
    assert answers.sum() > 200
    assert np.all(1 - factors[answers] < alpha[answers] / 2 + 0.001)
    times = run.records("cc")["ts_ns"][1:][answers]
    assert np.diff(times.astype(np.int64)).min() >= 25_000_000
    assert run.link["queue_mean_ns"] < 1e6
    assert run.link["utilisation"] > 0.95


def test_scream_carries_media(compiled: Path, tmp_path: Path) -> None:
    """RFC 8867, 5.1: it follows a link's rate as CUBIC does, and frames come sooner.

    Its queue is half of the target, 30 ms, where CUBIC's is that of the link, 300 ms.
    """
    case = rmcat.BY_NAME["variable"]
    found = {}
    for name in (f"{{plugin: {compiled / 'scream.so'}}}", "cubic"):
        setup = replace(case.setup(name), name=case.name)
        override = (
            text.replace("reaction: 100ms", "reaction: 100ms, fraction: 0.67")
            for text in setup.override
        )
        (run,) = runs_of(
            replace(setup, override=tuple(override), seeds=(1, 1)), tmp_path / name[:2]
        )
        found[name] = rmcat.frame_ms(case)(run)
        assert rmcat.follows(case, slice(0, 1), case.rate)(run) > 0.8
    scream, cubic = found.values()
    assert scream < 0.85 * cubic


# Means of 100 runs of picoquic, as those of the suite c4 (doc/c4-tests.md at 0863b68), in seconds.
PUBLISHED = {
    "alone": 4.502913,
    "alone_1_5M": 21.504710,
    "low_and_up": 7.569237,
    "drop_and_back": 7.554195,
    "blackhole": 5.591981,
    "short_long": 17.536781,
    "wifi_fade": 5.065021,
    "wifi_suspension": 4.564740,
    "vs_bbr": 2.817663,
    "vs_c4": 4.361871,
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_c4_takes_as_long_as_published(compiled: Path, tmp_path: Path, name: str) -> None:
    """Within 6 % of the mean: networks that change, a pause of the link, BBR, another C4.

    Beside BBR it owes that to INITIAL, which follows the largest rate between two ACKs: by the
    rate of whole round trips alone it takes 5.0 s.
    """
    one = next(scenario for scenario in c4.SCENARIOS if scenario.name == name)
    plugin = f"{{plugin: {compiled / 'c4.so'}}}"
    one = msgspec.structs.replace(one, set=[text.replace("=c4", f"={plugin}") for text in one.set])
    times = [one.time_s(run) for run in runs_of(replace(one.setup(plugin), name=name), tmp_path)]
    assert sum(times) / len(times) == pytest.approx(PUBLISHED[name], rel=0.06)


@pytest.mark.usefixtures("weir_sim")
def test_what_any_control_must_do(compiled: Path, tmp_path: Path) -> None:
    """SCReAM fills a link if rmax allows it; C4's rate grows from a window of three segments.

    There a probe of 1/16 more is no segment more: the rate must come down to what is reached, so
    that the next one is seen.
    """
    scream = f"{{plugin: {compiled / 'scream.so'}, rmax: 1Gbit}}"
    assert check.bounded("steady link", scream, tmp_path).passed
    assert not check.bounded("steady link", str(compiled / "scream.so"), tmp_path).passed
    assert check.bounded("after losses", str(compiled / "c4.so"), tmp_path).passed


def test_c4_cycles_as_its_states_say(compiled: Path, simulate: Simulate) -> None:
    """Alone: the rate is the link's, and each cycle is two eras of CRUISING and one of each other.

    alpha is 1, 17/16 and 15/16; pacing is alpha times the rate. An era is a round trip: a window
    of the longest RTT and 15 ms at 15/16 leaves some queue.
    """
    run = bulk(simulate, compiled / "c4.so", level=3, rate=20, delay=40)
    assert run.link["utilisation"] > 0.98
    records = run.records("cc")
    rate, alpha = (records[name].astype(float) for name in ("obs0", "obs3"))
    assert np.median(rate) == pytest.approx(20e6 * 1448 / 1538, rel=0.01)
    assert set(np.unique(alpha).tolist()) <= {15 / 16, 1, 17 / 16}
    np.testing.assert_allclose(records["pacing_bps"], alpha * rate, rtol=1e-6)
    changes = [change for change in run.modes() if change[0] > 40]
    after = {"recovery": "cruising", "cruising": "probing", "probing": "recovery"}
    assert all(after[before] == mode for _, _, before, mode in changes)
    begun = np.array([time for time, _, _, mode in changes if mode == "recovery"])
    rtt = np.median(records["rtt_ns"]) / 1e9
    assert np.median(np.diff(begun)) == pytest.approx(4 * rtt, rel=0.1)


def test_c4_answers_losses_by_its_rate(compiled: Path, simulate: Simulate) -> None:
    """A loss makes an average of 1/16, and the threshold is 0.02 + (1 - s) / 2.

    At 0.5 MB/s sensitivity s is 0.45 and the threshold 0.30: 1 % of losses at random is nothing.
    At 2.4 MB/s they are 0.95 and 0.045, so that each loss takes (1 + s) / 8 of the rate.
    """
    network = {"loss": "1%", "delay": 40, "queue": "{fifo: {limit: 80ms}}", "level": 3}
    slow = bulk(simulate, compiled / "c4.so", rate=4, **network)
    assert slow.groups[0]["goodput_bps"] > 0.95 * 4e6 * 1448 / 1538 * 0.99
    assert factors_of(slow).min() > 0.95
    fast = bulk(simulate, compiled / "c4.so", rate=20, **network)
    factors = factors_of(fast)
    assert np.median(factors[factors < 0.8]) == pytest.approx(1 - 1.95 / 8, abs=0.004)
    assert fast.link["utilisation"] < 0.7


def test_c4_answers_marks_in_proportion(compiled: Path, simulate: Simulate) -> None:
    """After marks it probes with 33/32, and the queue stays at DualPI2's threshold of 1 ms."""
    queue = "{dualpi2: {limit: 1000pkt}}"
    run = bulk(simulate, compiled / "c4.so", ecn="ect1", level=3, rate=20, delay=40, queue=queue)
    assert run.link["drops"] == 0
    assert run.link["utilisation"] > 0.9
    assert run.link["queue_mean_ns"] < 2e6
    alpha = run.records("cc")["obs3"]
    assert {33 / 32, 1} <= set(np.unique(alpha).tolist()) <= {33 / 32, 1, 15 / 16, 7 / 8}


@pytest.mark.parametrize("seed", [1, 2])
def test_c4_shares_a_marking_queue(compiled: Path, simulate: Simulate, seed: int) -> None:
    """Two flows have as much each; marks count by what an ACK of picoquic's covers.

    With an average for each quarter of a window one flow had a single segment per round trip for
    good, where each mark is one of all: Jain's index was 0.51 and 0.59 with these seeds.
    """
    queue = "{dualpi2: {limit: 1000pkt}}"
    network = {"seconds": 80, "warmup": 20, "rate": 20, "delay": 40, "queue": queue}
    text = BULK.replace("seed: 1", f"seed: {seed}")
    keys = {**USUAL, **network, "plugin": compiled / "c4.so", "ecn": "ect1", "flows": 2}
    run = simulate(text.format(**keys))
    assert run.groups[0]["jfi"] > 0.85
    assert run.link["utilisation"] > 0.8
    assert run.link["queue_mean_ns"] < 4e6
