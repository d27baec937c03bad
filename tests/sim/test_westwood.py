# SPDX-License-Identifier: BSD-3-Clause
"""Westwood+ against the models of AIMD and of its authors."""

from __future__ import annotations

import numpy as np
import pytest

from .conftest import Run, Simulate

CONFIG = "westwood-loss"
P = 0.01
BASE_S = 0.100
CWND_REDUCTION = 1
SEG_BITS = 1448 * 8


def segs_per_s(run: Run) -> float:
    """Goodput in segments per second."""
    return float(run.groups[0]["goodput_bps"]) / SEG_BITS


def aimd_segs(backoff: float) -> float:
    """Mean window with one segment more per round trip, and `backoff` less at each loss.

    From (1 - b) W to W in b W round trips, in which 1 / p segments are sent:
    b W (2 - b) W / 2 = 1 / p. The mean is (2 - b) W / 2. For b = 1/2 it is sqrt(3 / (2 p)).
    """
    return float(np.sqrt((2 - backoff) / (2 * backoff * P)))


def test_random_loss_costs_less_than_newreno(simulate: Simulate) -> None:
    """Without a queue BWE RTTmin is nearly the mean window, so a reduction takes the growth alone.

    Its authors' model, sqrt((1 - p) / (p RTT Tq)) with Tq the mean queueing delay, is the upper
    bound (Grieco and Mascolo, CCR 2004). Twice NewReno's goodput needs b < 2/13 in `aimd_segs`.
    """
    westwood = simulate(CONFIG)
    newreno = simulate(CONFIG, "flows.0.cc=newreno")
    rtt_s = westwood.groups[0]["rtt_mean_ns"] * 1e-9
    events = westwood.records("events")
    cuts = events[events["event"] == CWND_REDUCTION]
    backoff = 1 - np.mean(cuts["value"] / cuts["before"])
    bound = np.sqrt((1 - P) / (P * rtt_s * (rtt_s - BASE_S)))

    assert segs_per_s(newreno) == pytest.approx(aimd_segs(0.5) / BASE_S, rel=0.15)
    assert len(cuts) >= 300
    assert backoff < 2 / 13
    assert segs_per_s(westwood) == pytest.approx(aimd_segs(backoff) / rtt_s, rel=0.15)
    assert segs_per_s(westwood) > 2 * segs_per_s(newreno)
    assert segs_per_s(westwood) < bound
