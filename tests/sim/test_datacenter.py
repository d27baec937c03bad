# SPDX-License-Identifier: BSD-3-Clause
"""Swift and TIMELY on a fabric of 10 Gbit/s and 20 us."""

from __future__ import annotations

from math import sqrt

import pytest

from .conftest import Simulate

RATE_PPS = 10e9 / (1538 * 8)
BASE_S = 21.2e-6  # 20 us, and one packet's time


def flow_scaling(window: float) -> float:
    """Section 3.5 with the defaults: 125 us for 0.1 segments, nothing for 100."""
    least, most = 1 / sqrt(100), 1 / sqrt(0.1)
    return 125e-6 * min(max((1 / sqrt(window) - least) / (most - least), 0), 1)


def swift_queue_pkts(flows: int) -> float:
    """What n windows W with C (base + target(W)) = n W keep queued."""
    window = 10.0
    for _ in range(2000):
        window += 0.1 * (RATE_PPS * (BASE_S + 25e-6 + flow_scaling(window)) / flows - window)
    return RATE_PPS * (25e-6 + flow_scaling(window))


@pytest.mark.parametrize("flows", [1, 4, 16])
def test_swift_keeps_its_target(simulate: Simulate, flows: int) -> None:
    """SIGCOMM 2020, section 3.5: the target of the fair window is what stands in the queue."""
    run = simulate("swift-fabric", f"flows.0.count={flows}")

    assert run.link["queue_mean_pkts"] == pytest.approx(swift_queue_pkts(flows), rel=0.12)
    assert run.link["utilisation"] >= 0.995
    assert run.link["drops"] == 0
    assert run.summary["jfi"] >= 0.99


def test_swift_has_windows_below_one_segment(simulate: Simulate) -> None:
    """256 flows on a path of 17 packets: incast beyond the reach of whole segments (figure 15).

    With windows of at least one segment 256 packets less those of the path would stand in the
    queue; Swift has less than half of that and loses nothing.
    """
    run = simulate("swift-fabric", "flows.0.count=256", "flows.0.stagger=10us")

    assert run.link["queue_mean_pkts"] < 0.5 * (256 - RATE_PPS * BASE_S)
    assert run.link["drops"] == 0
    assert run.summary["jfi"] >= 0.95


def test_swift_does_not_take_a_delayed_ack_for_a_queue(simulate: Simulate) -> None:
    """A queue of 5 packets cuts the window to one segment, whose ACK a receiver would hold back.

    Hosts of Swift acknowledge each segment, and most of one leaves per round trip. 40 ms beyond a
    target of 1.9 ms kept the flow at `min_cwnd`, a segment in a second, for ever.
    """
    a_segment_per_rtt = 1538 * 8 / 1.83e-3 / 172e6
    link = "{link: {rate: 172Mbit, queue: {fifo: {limit: 5pkt}}}}"
    overrides = (
        "flows.0={count: 1, cc: swift}",
        f"paths.forward=[{link}, {{delay: {{delay: 1.76ms}}}}]",
        "paths.reverse=[{delay: {delay: 0ms}}]",
        "duration=10s",
        "warmup=1s",
    )

    run = simulate("swift-fabric", *overrides)
    assert run.link["utilisation"] >= 0.5 * a_segment_per_rtt
    held = simulate("swift-fabric", *overrides, "flows.0.ack_every=2")
    assert held.link["utilisation"] < 0.01 * a_segment_per_rtt


@pytest.mark.parametrize("flows", [1, 4, 16])
def test_timely_keeps_the_queue_below_t_high(simulate: Simulate, flows: int) -> None:
    """SIGCOMM 2015: a busy link, and RTTs around T_low, 30 us of queue, far below T_high.

    How the rates are divided is not determined (Zhu and others, CoNEXT 2016), so nothing is said
    of that.
    """
    run = simulate(
        "swift-fabric",
        f"flows.0={{count: {flows}, cc: {{timely: {{base_rtt: 21.2us}}}},"
        " stagger: 10us, ack_every: 1, rto_min: 1ms}",
        "duration=200ms",
        "warmup=100ms",
    )

    assert run.link["utilisation"] >= 0.9
    assert run.link["sojourn_p99_ns"] < 60e3
    assert run.link["drops"] == 0
