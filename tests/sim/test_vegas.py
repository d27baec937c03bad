# SPDX-License-Identifier: BSD-3-Clause
"""Vegas against its two numbers: alpha and beta segments of each flow in the queue."""

from __future__ import annotations

import numpy as np
import pytest

from .conftest import Simulate

CONFIG = "vegas-queue"
PACKET_NS = 1538 * 8 * 10


@pytest.mark.parametrize("flows", [1, 2, 4, 8])
def test_each_flow_keeps_alpha_to_beta(simulate: Simulate, flows: int) -> None:
    """Brakmo, O'Malley, Peterson, section 3.2: 2 to 4 of each flow, and nothing moves any more.

    In Linux's arithmetic diff is truncated, so that up to 5 may wait, and up to two more in all:
    baseRTT has the transmission of two packets in it, as every second one is acknowledged.
    """
    run = simulate(CONFIG, f"flows.0.count={flows}", "warmup=50s")
    records = run.records("cc")

    assert run.link["utilisation"] >= 0.999
    assert run.link["drops"] == 0
    assert run.link["queue_mean_pkts"] >= 2 * flows
    assert run.link["queue_mean_pkts"] <= 5 * flows + 2
    assert np.all(records["obs2"] == 40e6 + 2 * PACKET_NS)
    for flow in np.unique(records["flow_id"]):
        mine = records[records["flow_id"] == flow]
        assert np.all((mine["obs1"] >= 2) & (mine["obs1"] <= 4))
        assert np.ptp(mine["cwnd_segs"]) == 0


def test_late_flows_take_the_queue_for_the_path(simulate: Simulate) -> None:
    """Known since Mo and others, INFOCOM 1999: baseRTT of a later flow has the queue in it.

    Each adds its segments on top of what it found, so the queue is longer, and the last flow,
    which sees the least of it, gets the most.
    """
    together = simulate(CONFIG)
    apart = simulate(CONFIG, "flows.0.stagger=5s")

    assert apart.link["queue_mean_pkts"] > 2 * together.link["queue_mean_pkts"]
    assert apart.summary["jfi"] < together.summary["jfi"] - 0.1


def test_gives_way_to_reno(simulate: Simulate) -> None:
    """A queue that another flow keeps is a reason to shrink: what kept Vegas from being used."""
    run = simulate(
        CONFIG,
        "flows=[{count: 1, cc: vegas}, {count: 1, cc: newreno, start: 1s}]",
    )
    vegas, reno = (g["goodput_bps"] for g in run.groups)

    assert run.link["utilisation"] >= 0.99
    assert vegas < 0.5 * reno
