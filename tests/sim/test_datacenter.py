# SPDX-License-Identifier: BSD-3-Clause
"""Swift and TIMELY on a fabric of 10 Gbit/s and 20 us."""

from __future__ import annotations

from .conftest import Simulate


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
