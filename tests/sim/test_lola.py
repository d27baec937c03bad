# SPDX-License-Identifier: BSD-3-Clause
"""LoLa against its paper: the bounds of the delay, the length of a cycle, fairness."""

from __future__ import annotations

import numpy as np
import pytest

from .conftest import Run, Simulate

CONFIG = "lola-two"
CC_MODE = 5
SLOW_START, CUBIC, FAIR, HOLD = range(4)
QTARGET_NS, QLOW_NS = 5e6, 1e6
PACKET_BITS = 1538 * 8
ALONE = ("flows.0.count=1", "duration=32s", "warmup=11s")
DATA = 1500 / 1538 * 1448 / 1500  # of the link's rate


def of_flow(run: Run, flow: int, stream: str) -> np.ndarray:
    """A stream's records of one flow."""
    records = run.records(stream)
    return records[records["flow_id"] == flow]


def starts(run: Run, flow: int, mode: int) -> np.ndarray:
    """Times at which a flow entered a mode, in s."""
    events = of_flow(run, flow, "events")
    events = events[(events["event"] == CC_MODE) & (events["value"] == mode)]
    return events["ts_ns"] * 1e-9


def balancing_s(rate_bps: float, flows: int) -> float:
    """Equation (2) until X is a flow's part of Qtarget: phi cbrt(bytes) ms."""
    return 35e-3 * float(np.cbrt(rate_bps / 8 * DATA * QTARGET_NS * 1e-9 / flows))


def check_delay(run: Run, base_ns: float) -> None:
    """Peaks at base + 5 ms, and a little: the growth in a round trip and tmeasure. Never lost."""
    rtt_max_ns = run.records("interval")["rtt_max_ns"]

    assert run.link["drops"] == 0
    assert base_ns + QTARGET_NS <= np.max(rtt_max_ns) <= base_ns + QTARGET_NS + 2e6


@pytest.mark.slow
@pytest.mark.parametrize(("base_ms", "cycle_s"), [(21, 9.7), (5, None), (61, None), (101, None)])
def test_alone(simulate: Simulate, base_ms: int, cycle_s: float | None) -> None:
    """L1 and L2 with one flow: the same for all base RTTs, a cycle of 9.7 s at 10 Gbit/s and 21 ms.

    After each decrease the queue is empty: the smallest of the intervals' largest RTTs is
    the base.
    """
    run = simulate(
        CONFIG,
        *ALONE,
        f"paths.forward.delay.delay={base_ms / 2}ms",
        f"paths.reverse.delay.delay={base_ms / 2}ms",
    )

    assert run.link["utilisation"] >= 0.97
    check_delay(run, base_ms * 1e6)
    assert np.min(run.records("interval")["rtt_max_ns"]) <= base_ms * 1e6 + 0.5e6
    fair, hold = starts(run, 0, FAIR), starts(run, 0, HOLD)
    hold = hold[hold > fair[0]]
    for begin, end in zip(fair, hold, strict=False):
        assert end - begin == pytest.approx(balancing_s(10e9, 1), rel=0.05)
    if cycle_s is not None:
        assert np.diff(hold) == pytest.approx([cycle_s] * (len(hold) - 1), rel=0.15)


@pytest.mark.slow
def test_two_flows_are_fair_after_four_rounds(simulate: Simulate) -> None:
    """L1: 10 Gbit/s, 21 ms, the second flow at 20 s. A cycle of 7.7 s, fair after four or five."""
    run = simulate(CONFIG, "warmup=21s")

    check_delay(run, 21e6)
    holds = starts(run, 1, HOLD)
    cwnd = []
    for flow in range(2):
        records = of_flow(run, flow, "interval")
        cwnd.append(records["cwnd_segs"][np.searchsorted(records["ts_ns"], holds[4] * 1e9)])
    assert sum(cwnd) ** 2 / (2 * sum(c * c for c in cwnd)) >= 0.98
    # Once it is fair: cubic increase to Qlow, balancing to Qtarget, and 0.25 s.
    late = starts(run, 1, FAIR)[-1], starts(run, 1, HOLD)[-1]
    assert late[1] - late[0] == pytest.approx(balancing_s(10e9, 2), rel=0.05)
    assert np.diff(holds)[-1] == pytest.approx(7.7, rel=0.15)


@pytest.mark.slow
def test_unequal_round_trips(simulate: Simulate) -> None:
    """L3: 21 and 101 ms share alike, as X depends on time alone. (Here at 2 Gbit/s, for time.)"""
    run = simulate(
        CONFIG,
        "flows=[{count: 1, cc: lola, base_rtt: 21ms},"
        " {count: 1, cc: lola, base_rtt: 101ms, start: 2s}]",
        "paths.forward.link.rate=2Gbit",
        "duration=120s",
        "warmup=60s",
    )
    near, far = (g["goodput_bps"] for g in run.groups)

    assert run.link["drops"] == 0
    assert run.link["utilisation"] >= 0.97
    assert near / (near + far) == pytest.approx(0.5, abs=0.06)


def test_100_mbit(simulate: Simulate) -> None:
    """L4: two flows at 100 Mbit/s, a cycle of 1.9 s."""
    run = simulate(CONFIG, "paths.forward.link.rate=100Mbit", "flows.0.stagger=5s", "warmup=20s")

    assert run.link["utilisation"] >= 0.95
    assert run.link["drops"] == 0
    assert run.link["queue_mean_ns"] <= QTARGET_NS
    assert run.summary["jfi"] >= 0.97
    assert np.mean(np.diff(starts(run, 0, HOLD))) == pytest.approx(1.9, rel=0.15)


@pytest.mark.slow
def test_eighteen_flows(simulate: Simulate) -> None:
    """L5, at 1 Gbit/s: a flow every 4 s to 18. The delay stays at Qtarget and nothing is lost."""
    run = simulate(
        CONFIG,
        "paths.forward.link.rate=1Gbit",
        "flows.0.count=18",
        "flows.0.stagger=4s",
        "duration=110s",
        "warmup=80s",
    )

    check_delay(run, 21e6)
    assert np.sum(run.records("interval")["lost_segs"]) == 0
    assert run.link["utilisation"] >= 0.97
    assert run.summary["jfi"] >= 0.99
