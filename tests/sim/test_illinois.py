# SPDX-License-Identifier: BSD-3-Clause
"""Illinois against its formulas."""

from __future__ import annotations

import numpy as np
import pytest

from .conftest import Simulate

CWND_REDUCTION = 1
RTT_S = 0.040
BDP_PKTS = 10e6 * RTT_S / (1538 * 8)


def test_the_cycle_follows_alpha(simulate: Simulate) -> None:
    """The queue q grows from 0 to B = 1 BDP by alpha per round trip of R (1 + q/B).

    1 / alpha is linear in the delay, from 1/10 to 1/0.3: with x = q/B it is 0.1 + 3.233 x, and a
    cycle takes R B times the integral of (1 + x) (0.1 + 3.233 x), 2.84. The queue is full at each
    loss, so beta is 1/2.
    """
    run = simulate("illinois-alone")
    events = run.records("events")
    cuts = events[events["event"] == CWND_REDUCTION]
    cycles_s = np.diff(cuts["ts_ns"].astype(float)) * 1e-9

    assert run.link["utilisation"] >= 0.97
    assert len(cuts) >= 10
    assert np.all(np.abs(cuts["value"] / cuts["before"] - 0.5) < 1e-6)
    assert np.median(cycles_s) == pytest.approx(2.84 * RTT_S * BDP_PKTS, rel=0.15)
