# SPDX-License-Identifier: BSD-3-Clause
"""Queue disciplines in a closed loop."""

from __future__ import annotations

import pytest

from .conftest import Simulate


def test_codel_holds_its_target_where_a_fifo_fills_its_buffer(simulate: Simulate) -> None:
    """RFC 8289: the standing delay stays near 5 ms; a fifo's is its buffer."""
    codel = simulate("codel-vs-fifo").link
    fifo = simulate("codel-vs-fifo", "paths.forward.link.queue={fifo: {limit: 4BDP}}").link

    assert codel["sojourn_p50_ns"] < 10e6
    assert codel["utilisation"] >= 0.9
    assert fifo["sojourn_p50_ns"] > 40e6
    assert fifo["sojourn_max_ns"] == pytest.approx(80e6, rel=0.02)


def test_codel_marks_instead_of_dropping(simulate: Simulate) -> None:
    """With ECN there is nothing to retransmit, and the queue is as short."""
    run = simulate(
        "codel-vs-fifo",
        "paths.forward.link.queue={codel: {limit: 4BDP, ecn: yes}}",
        "flows.0.ecn=ect0",
    )
    group = run.groups[0]

    assert run.link["marks"] > 0
    assert run.link["drops"] == 0
    assert group["retransmits"] == 0
    assert group["ecn_echoes"] == group["cwnd_reductions"] > 0
    assert run.link["sojourn_p50_ns"] < 10e6


@pytest.mark.parametrize("limit", ["375kB", "100pkt", "25ms", "2BDP"])
def test_a_fifo_is_full_at_its_limit(simulate: Simulate, limit: str) -> None:
    """Bytes and packets count frames, times and BDPs what the link transmits."""
    run = simulate("codel-vs-fifo", f"paths.forward.link.queue={{fifo: {{limit: {limit}}}}}")
    full = {
        "375kB": 375_000 // 1518,
        "100pkt": 100,
        "25ms": int(100e6 / 8 * 0.025 / 1538),
        "2BDP": int(100e6 / 8 * 0.040 / 1538),
    }[limit]

    assert run.link["queue_max_pkts"] == pytest.approx(full, abs=2)
    assert run.link["drops"] > 0
