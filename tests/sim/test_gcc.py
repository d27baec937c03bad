# SPDX-License-Identifier: BSD-3-Clause
"""GCC (tools/sdk/gcc.c) against libwebrtc's rules, what follows from them, and RFC 8867's cases."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from weir.analysis import folder as folders
from weir.many.cells import run_cells
from weir.studies.rmcat import study as rmcat
from weir.study.claim import Found

from .conftest import Run, Simulate

BULK = """
seed: 1
duration: {seconds}s
warmup: {warmup}s
paths:
  forward:
    - loss: {{rate: {loss}}}
    - link: {{rate: {rate}Mbit, queue: {{fifo: {{limit: 300ms}}}}}}
    - delay: {{delay: 25ms}}
  reverse: [{{delay: {{delay: 25ms}}}}]
flows:
  - {{count: {flows}, jitter: 100ms, cc: {{plugin: {plugin}{more}}}}}
{beside}
telemetry: {{level: {level}}}
"""
USUAL = {
    "seconds": 200, "warmup": 100, "loss": "0%", "rate": 1, "flows": 1, "more": "", "beside": "",
    "level": 0,
}  # fmt: skip
PAYLOAD = 1448 / 1538  # of a frame
NEWRENO = "  - {cc: newreno, start: 5s}"


@pytest.fixture
def bulk(compiled: Path, simulate: Simulate) -> Simulate:
    """bulk(key=value, ...): runs flows that always have data."""
    plugin = compiled / "gcc.so"
    return lambda **network: simulate(BULK.format(plugin=plugin, **{**USUAL, **network}))


def rates(run: Run) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns times in s, the rate and the acknowledged rate at each ACK in bit/s."""
    records = run.records("cc")
    values = (records[name].astype(float) for name in ("ts_ns", "obs0", "obs1"))
    times, rate, acked = values
    return times / 1e9, rate, acked


def test_it_rises_and_falls_as_its_rules_say(bulk: Simulate) -> None:
    """1.08 times as much each second; at overuse 0.85 of what was acknowledged, less 5 kbit/s.

    Then a packet of 1200 B in 2 (RTT + 100 ms), each second.
    """
    times, rate, acked = rates(bulk(seconds=60, warmup=0, rate=20, level=3, more=", start: 2Mbit"))
    at = np.searchsorted(times, [5, 15])
    assert rate[at[1]] / rate[at[0]] == pytest.approx(1.08**10, rel=0.01)
    falls = np.flatnonzero(rate[1:] < 0.98 * rate[:-1])
    first = falls[0] + 1
    assert rate[first] == pytest.approx(0.85 * acked[first] - 5e3, rel=0.01)
    at = np.searchsorted(times, [times[first] + 4, times[first] + 9])
    packet = rate[first] / 30 / math.ceil(rate[first] / 30 / 9600)
    assert rate[at[1]] - rate[at[0]] == pytest.approx(5 * packet / 0.3, rel=0.05)


@pytest.mark.parametrize(("rate", "flows"), [(5, 1), (10, 1), (10, 2)])
def test_a_slow_rise_is_overuse_late(bulk: Simulate, rate: int, flows: int) -> None:
    """The queue that the rise has filled when it is 1/40 of the link's rate, and half as much."""
    law_ns = 150e6 * (math.exp(rate * PAYLOAD / flows / 15.36) - 1)
    near = rate * 0.9 / flows
    run = bulk(seconds=300, rate=rate, flows=flows, more=f", start: {near}Mbit")
    assert law_ns < run.link["sojourn_max_ns"] < 1.6 * law_ns
    assert run.link["utilisation"] > 0.93
    assert run.link["drops"] == 0


def test_a_queue_below_that_stays_full(bulk: Simulate) -> None:
    """At 25 Mbit/s the law has 0.54 s, and the queue 0.3 s."""
    run = bulk(seconds=300, rate=25, more=", start: 22Mbit")
    assert run.link["queue_mean_ns"] > 240e6
    assert run.link["drops"] > 10000


def test_the_threshold_of_the_draft_is_never_reached(bulk: Simulate) -> None:
    """12.5 ms per group of 12 ms: as the delay of 1.04 of the time."""
    assert bulk().link["queue_mean_ns"] < 5e6
    literal = bulk(more=", gain: 0.2")
    assert literal.link["queue_mean_ns"] > 280e6
    assert literal.link["drops"] > 500


def test_flows_share(bulk: Simulate) -> None:
    """Two have as much each; beside NewReno it is the adaptation that decides who starves."""
    run = bulk(rate=2, flows=2, seconds=300)
    assert run.groups[0]["jfi"] > 0.98
    assert run.link["utilisation"] > 0.9
    assert run.link["queue_mean_ns"] < 8e6
    part = {}
    for more in ("", ", k_up: 0.01, k_down: 0.00018"):
        run = bulk(rate=2, beside=NEWRENO, more=more)
        part[more] = run.groups[0]["goodput_bps"] / (2e6 * PAYLOAD)
    assert part[""] < 0.2
    assert part[", k_up: 0.01, k_down: 0.00018"] > 0.9


def test_losses_count_from_a_tenth_on(bulk: Simulate) -> None:
    """1 % are nothing, and of 15 % nothing remains."""
    assert bulk(loss="1%").groups[0]["goodput_bps"] > 0.9 * 1e6 * PAYLOAD
    assert bulk(loss="15%").groups[0]["goodput_bps"] < 0.1e6


def test_it_carries_media(compiled: Path, tmp_path: Path) -> None:
    """RFC 8867, 5.1: frames come in time for a conversation, as the link's rate changes."""
    case = rmcat.BY_NAME["variable"]
    setup = case.setup(f"{{plugin: {compiled / 'gcc.so'}}}")
    setup = replace(setup, name=case.name, seeds=(1, 1))
    done = run_cells(list(setup.cells(True)), tmp_path, workers=1)
    (run,) = Found({one.cell.name: one.folder for one in done}, True).runs(setup) or ()
    assert isinstance(run, folders.Run)
    assert rmcat.frame_ms(case)(run) < 400
    assert rmcat.follows(case, slice(0, 1), case.rate)(run) > 0.5
