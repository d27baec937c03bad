# SPDX-License-Identifier: BSD-3-Clause
"""CUBIC against the arithmetic of RFC 9438."""

from __future__ import annotations

import numpy as np
import pytest

from .conftest import Simulate

ALONE = "cubic-curve"
BDP_PKTS = 100e6 * 0.100 / (1538 * 8)
RTT_MAX_NS = 200_000_000
REDUCTION = 1
RECOVERED = 3


def test_alone_on_one_bdp(simulate: Simulate) -> None:
    """The curve from 0.7 W to W = 2 BDP and back, a loss every K seconds.

    Without fast convergence: losses a hair below the last W_max are the rule here and would
    alternate. 0.7 W is 1.4 BDP: the queue never empties. In terms of s = t/K, the window is
    W (1 - 0.3 (1-s)^3), its mean over time W (1 - 0.3/4), of which one BDP is in the pipe.
    """
    run = simulate(ALONE)
    events, records = run.records("events"), run.records("cc")
    cuts = events[events["event"] == REDUCTION]
    k_s = np.cbrt(0.3 * cuts["before"] / 0.4)

    assert run.link["utilisation"] >= 0.99
    assert len(cuts) >= 8
    assert np.all(np.abs(cuts["value"] / cuts["before"] - 0.7) < 1e-6)
    assert np.all(np.abs(cuts["before"] / (2 * BDP_PKTS) - 1) < 0.02)
    # The overflow is noticed one round trip late, at W (1 + a little): a bit more than K.
    periods_s = np.diff(cuts["ts_ns"].astype(float)) * 1e-9
    assert periods_s == pytest.approx(k_s[1:], rel=0.10)
    assert run.link["queue_mean_pkts"] == pytest.approx(
        2 * BDP_PKTS * (1 - 0.3 / 4) - BDP_PKTS, rel=0.05
    )
    assert run.groups[0]["timeouts"] == 0
    # Between two losses the window is the curve, t counting from the end of recovery, to a segment.
    # Not in the first two round trips: the ACKs are those of the larger window, srtt falls by 0.3.
    records = records[np.searchsorted(records["ts_ns"], cuts["ts_ns"][0]) :]
    recovered = events[(events["event"] == RECOVERED) & (events["ts_ns"] > cuts["ts_ns"][0])]
    worst = 0.0
    for start, end in zip(recovered["ts_ns"], cuts["ts_ns"][1:], strict=False):
        part = records[(records["ts_ns"] >= start + 2 * RTT_MAX_NS) & (records["ts_ns"] < end)]
        w_max, k = float(part["obs1"][-1]), float(part["obs2"][-1])
        t_s = (part["ts_ns"] - start).astype(float) * 1e-9
        curve = 0.4 * (t_s - k) ** 3 + w_max
        worst = max(worst, float(np.max(np.abs(part["cwnd_segs"] - curve))))
    assert worst < 1


def test_modes_are_recorded(simulate: Simulate) -> None:
    """CSS, concave growth, recovery leave events."""
    changes = simulate(ALONE, "duration=40s", "warmup=0s").modes()

    assert changes[0][2:] == ("slow_start", "css")
    assert "recovery" in [before for *_, before, _ in changes]
    assert "concave" in [after for *_, after in changes]


NS3 = """
duration: 20s
paths:
  forward:
    - link: {rate: 50Mbit, queue: {codel: {}}}
    - delay: {delay: 25ms}
  reverse: [{delay: {delay: 25ms}}]
flows:
  - {count: 1, cc: {cubic: {slow_start: classic}}, start: 5s}
telemetry: {level: 1}
"""


def test_ns3_validation(simulate: Simulate) -> None:
    """ns-3's published tcp-validation run: peaks of 236 segments at 14.28 s, 234 at 18.05 s.

    Its first peak, 511 at 5.459 s, ours reaches at the same time (5.463 s) and higher, as L = 8
    counts the segments that an ACK acknowledges. The next test has the same with L = 1.
    """
    events = simulate(NS3).records("events")
    cuts = events[events["event"] == REDUCTION]
    late = cuts[cuts["ts_ns"] > 10e9]

    assert cuts["ts_ns"][0] * 1e-9 == pytest.approx(5.459, abs=0.05)
    assert late["before"] == pytest.approx([236, 234], rel=0.10)
    assert late["ts_ns"] * 1e-9 == pytest.approx([14.28, 18.05], rel=0.10)


def test_ns3_validation_with_acks_counted(simulate: Simulate) -> None:
    """The same run's start: 511 segments at 5.459 s, 173 at 5.803 s, which is 0.7^3 of it.

    With L = 1 and delayed ACKs slow start grows by half per round trip. Ours peaks at 492, three
    losses leave 169. It does so 0.16 s later than ns-3, why is not known to us.
    """
    events = simulate(NS3, "flows.0.cc.cubic.abc_limit=1").records("events")
    cuts = events[events["event"] == REDUCTION]
    late = cuts[cuts["ts_ns"] > 10e9]

    assert cuts["before"][0] == pytest.approx(511, rel=0.10)
    assert cuts["value"][2] == pytest.approx(173, rel=0.10)
    assert cuts["ts_ns"][[0, 2]] * 1e-9 == pytest.approx([5.459, 5.803], rel=0.10)
    assert late["before"] == pytest.approx([236, 234], rel=0.10)
    assert late["ts_ns"] * 1e-9 == pytest.approx([14.28, 18.05], rel=0.10)
