# SPDX-License-Identifier: BSD-3-Clause
"""Compound against the model of its window, and what remains of it when there is a queue."""

from __future__ import annotations

import numpy as np
import pytest

from .conftest import Run, Simulate

CWND_REDUCTION = 1
MSS_BITS = 1448 * 8
EVERY = 10000
ALPHA, BETA, K = 0.125, 0.5, 0.75
SHORT_PATH = (
    "paths.forward=[{link: {rate: 50Mbit, queue: {fifo: {limit: 1BDP}}}}, {delay: {delay: 20ms}}]",
    "paths.reverse=[{delay: {delay: 20ms}}]",
)


def mean_window(run: Run) -> float:
    """In segments, by Little's law."""
    (group,) = run.groups
    return float(group["goodput_bps"] * group["rtt_mean_ns"] * 1e-9 / MSS_BITS)


def test_the_window_follows_the_loss_rate(simulate: Simulate) -> None:
    """Without a queue the window grows by alpha w^k per round trip and loses beta at each loss.

    A cycle from (1 - beta) W to W sends W^(2-k) (1 - (1-beta)^(2-k)) / (alpha (2-k)) segments,
    10000, and takes W^(1-k) (1 - (1-beta)^(1-k)) / (alpha (1-k)) round trips: 405 segments in
    the mean. NewReno's sawtooth has sqrt(3/2 10000) = 122. Recovery costs a round trip of 25.
    """
    left = 1 - BETA
    most = (EVERY * ALPHA * (2 - K) / (1 - left ** (2 - K))) ** (1 / (2 - K))
    rounds = most ** (1 - K) * (1 - left ** (1 - K)) / (ALPHA * (1 - K))
    compound = mean_window(simulate("compound-loss"))
    reno = mean_window(simulate("compound-loss", "flows.0.cc=newreno"))

    assert compound == pytest.approx(EVERY / rounds, rel=0.05)
    assert reno == pytest.approx((1.5 * EVERY) ** 0.5, rel=0.05)


def test_a_queue_leaves_reno(simulate: Simulate) -> None:
    """The delay window is gone before the buffer overflows, so that a loss halves the window."""
    run = simulate(
        "compound-loss",
        *SHORT_PATH,
        "telemetry.level=3",
    )
    records = run.records("cc")
    queued = records[records["obs2"] >= 60]  # twice gamma, for a round trip at least
    events = run.records("events")
    cuts = events[events["event"] == CWND_REDUCTION]

    assert run.link["utilisation"] >= 0.99
    assert len(cuts) >= 3
    assert np.all(np.abs(cuts["value"] / cuts["before"] - 0.5) < 1e-6)
    assert len(queued) > 0
    assert np.all(queued["obs1"] == 0)


def test_beside_newreno(simulate: Simulate) -> None:
    """With a queue that NewReno keeps, too, Compound takes little more than its half."""
    run = simulate(
        "compound-loss",
        *SHORT_PATH,
        "flows=[{count: 2, cc: compound}, {count: 2, cc: newreno}]",
    )
    compound, reno = (g["goodput_bps"] for g in run.groups)

    assert run.link["utilisation"] >= 0.95
    assert 0.4 <= compound / (compound + reno) <= 0.6
