# SPDX-License-Identifier: BSD-3-Clause
"""FAST against the equilibrium of its law: alpha segments of each flow in the queue."""

from __future__ import annotations

import pytest

from .conftest import Simulate

CONFIG = "fast-queue"


@pytest.mark.parametrize(("flows", "alpha"), [(1, 20), (2, 20), (5, 20), (5, 10)])
def test_each_flow_keeps_alpha(simulate: Simulate, flows: int, alpha: int) -> None:
    """The law rests where cwnd (1 - baseRTT / RTT) is alpha, for each flow alike.

    They start together, so that no flow takes another's queue for its path. The queue may differ
    by one packet of each flow: a window counts half a segment more than is sent, and baseRTT has
    the transmission of two packets in it, as every second one is acknowledged.
    """
    run = simulate(
        CONFIG, f"flows.0={{count: {flows}, cc: {{fast: {{alpha: {alpha}}}}}, stagger: 5ms}}"
    )

    assert run.link["utilisation"] >= 0.999
    assert run.link["drops"] == 0
    assert run.link["queue_mean_pkts"] == pytest.approx(flows * alpha, abs=flows)
    assert run.summary["jfi"] >= 0.99
