# SPDX-License-Identifier: BSD-3-Clause
"""NewReno against arithmetic."""

from __future__ import annotations

import numpy as np
import pytest

from .conftest import Simulate

ALONE = """
duration: 120s
warmup: 20s
paths:
  forward:
    - link: {rate: 100Mbit, queue: {fifo: {limit: 1BDP}}}
    - delay: {delay: 10ms}
  reverse: [{delay: {delay: 10ms}}]
flows:
  - {count: 1, cc: newreno, ack_every: 1}
telemetry: {level: 3}
"""
BDP_PKTS = 100e6 * 0.020 / (1538 * 8)


def test_alone_on_one_bdp(simulate: Simulate) -> None:
    """A sawtooth between W/2 and W = 2 BDP that never empties the queue for long.

    Between halvings the queue q rises by one packet per RTT from 0 to B, and an RTT takes
    R (1 + q/B): averaged over time, q = B (1/2 + 1/3) / (1 + 1/2) = 5/9 B.
    """
    run = simulate(ALONE)
    events = run.records("events")
    cuts = events[events["event"] == 1]

    assert run.link["utilisation"] >= 0.97
    assert run.link["queue_mean_pkts"] == pytest.approx(5 / 9 * BDP_PKTS, rel=0.05)
    assert len(cuts) >= 10
    assert np.all(np.abs(cuts["value"] / cuts["before"] - 0.5) < 1e-6)
    assert np.all(np.abs(cuts["before"] / (2 * BDP_PKTS) - 1) < 0.02)
    # One round trip per segment of growth, each at least R and at most 2 R: 5/3 as above.
    rtts = np.diff(cuts["ts_ns"].astype(float)) / 20e6
    assert np.median(rtts) == pytest.approx(1.5 * BDP_PKTS, rel=0.05)
    assert run.groups[0]["timeouts"] == 0
    assert run.groups[0]["retransmits"] == run.link["drops"]


def test_delayed_acks_halve_the_growth(simulate: Simulate) -> None:
    """RFC 3465 counts bytes, so in congestion avoidance delayed ACKs change nothing."""
    each = simulate(ALONE)
    delayed = simulate(ALONE, "flows.0.ack_every=2")

    assert delayed.groups[0]["cwnd_reductions"] == pytest.approx(
        each.groups[0]["cwnd_reductions"], abs=1
    )
