# SPDX-License-Identifier: BSD-3-Clause
"""Sprout (tools/sdk/sprout.c) against what its filter must forecast and its paper promises."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from weir.plugin import check

from .conftest import ROOT, Run, Simulate

LINK = """
seed: 1
duration: 60s
warmup: 10s
paths:
  forward:
    - {link}
    - delay: {{delay: 20ms}}
  reverse: [{{delay: {{delay: 20ms}}}}]
flows:
  - {{cc: {cc}}}
telemetry: {{level: 3}}
"""
STEADY = "link: {{rate: {rate}Mbit, queue: {{fifo: {{limit: 1000pkt}}}}}}"
LTE = f"mahimahi_link: {{file: {ROOT / 'configs/traces/lte-like.trace'}, queue: %s}}"
FRAME_BITS = 1538 * 8
SIGMA = 200  # packets/s per root of a second
TICK_S, HORIZON_S = 0.02, 0.1


def waits_ms(run: Run, part: float) -> float:
    """Returns the queueing delay that so many packets do not exceed."""
    cdf = run.link["sojourn_cdf"]
    return float(next(ns for ns, at_most in cdf if at_most >= part)) / 1e6


@pytest.mark.parametrize("rate", [5, 8])
def test_the_forecast_is_that_of_a_filter(compiled: Path, simulate: Simulate, rate: int) -> None:
    """At a steady rate the belief is nearly normal, and its variance that of a Kalman filter.

    Each tick adds sigma^2 tick to it, and measures with rate / tick. The forecast leaves out 1.645
    deviations of the packets of the horizon: those of a Poisson process, and of the belief. Whole
    packets, and a tail that is longer above than below, make one more.
    """
    plugin = f"{{plugin: {compiled}/sprout.so}}"
    run = simulate(LINK.format(link=STEADY.format(rate=rate), cc=plugin))
    segs_s = rate * 1e6 / FRAME_BITS
    added, noise = SIGMA**2 * TICK_S, segs_s / TICK_S
    before = added / 2 + math.sqrt(added**2 / 4 + added * noise)
    belief = before * noise / (before + noise) + added * HORIZON_S / TICK_S
    mean = segs_s * HORIZON_S
    forecast = mean - 1.645 * math.sqrt(mean + belief * HORIZON_S**2)
    records = run.records("cc")
    assert np.mean(records["obs1"]) == pytest.approx(segs_s, rel=0.03)
    assert np.mean(records["obs0"]) == pytest.approx(forecast, rel=0.07)
    assert run.link["utilisation"] > 0.99


def test_packets_wait_as_long_as_promised(compiled: Path, simulate: Simulate) -> None:
    """On a cellular link 95 % wait less than 100 ms, and it is as fast as CUBIC behind CoDel.

    CUBIC alone fills the queue of a phone (section 5).
    """
    fifo, codel = "{fifo: {limit: 5000pkt}}", "{codel: {limit: 5000pkt}}"
    run = simulate(LINK.format(link=LTE % fifo, cc=f"{{plugin: {compiled}/sprout.so}}"))
    cubic = simulate(LINK.format(link=LTE % fifo, cc="cubic"))
    managed = simulate(LINK.format(link=LTE % codel, cc="cubic"))
    assert waits_ms(run, 0.95) < 100
    assert waits_ms(cubic, 0.95) > 1000
    assert run.link["utilisation"] > 0.95 * managed.link["utilisation"]


def test_calls_with_more_memory_than_a_page(compiled: Path) -> None:
    """Its belief is 11 kB, which the checker has ready; each answer is a window, twice the same."""
    assert all(row.passed is not False for row in check.by_hand(str(compiled / "sprout.so")))
