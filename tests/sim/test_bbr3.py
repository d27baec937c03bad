# SPDX-License-Identifier: BSD-3-Clause
"""BBR version 3 against its draft: the link, fairness, losses, CUBIC."""

from __future__ import annotations

from .conftest import Simulate


def test_drain_ends_beside_a_full_queue(simulate: Simulate) -> None:
    """Section 5.3.2: after more than three round trips Drain ends whatever is in flight.

    CUBIC, which starts at the same time, keeps 4 BDP full. Half of bw times that round trip is more
    than the BDP of the empty path, so that Drain went on for 4.3 s, until ProbeRTT ended it.
    """
    run = simulate("bbr3-cubic", "duration=10s", "warmup=0s")
    left = [at for at, _, before, _ in run.modes() if before == "drain"]
    entered = [at for at, *_, after in run.modes() if after == "drain"]

    assert len(left) == len(entered) == 1
    assert left[0] - entered[0] < 4 * 5 * 0.040  # four round trips of 4 BDP and the path
