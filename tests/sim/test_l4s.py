# SPDX-License-Identifier: BSD-3-Clause
"""L4S: Prague beside Classic controls through DualPI2 (RFC 9330 to 9332)."""

from __future__ import annotations

import numpy as np
import pytest

from .conftest import Replay, Run, Simulate

CONFIG = "dualpi2-l4s"
DEQUEUE, DROP = 2, 3
TARGET_NS = 15e6


def packets(run: Run, event: int) -> tuple[np.ndarray, np.ndarray]:
    """The link's records of an event: of L4S flows, the first group, and of the others."""
    records = run.records("packets")
    records = records[records["event"] == event]
    l4s = records["flow_id"] < run.groups[0]["flows"]
    return records[l4s], records[~l4s]


def beside(simulate: Simulate, cc: str, flows: int, *overrides: str) -> Run:
    """`flows` Prague flows beside as many of a Classic control, 20 Mbit/s for each."""
    return simulate(
        CONFIG,
        "telemetry.level=3",
        f"paths.forward.link.rate={40 * flows}Mbit",
        f"flows.0.count={flows}",
        f"flows.1.count={flows}",
        f"flows.1.cc={cc}",
        *overrides,
    )


def test_overload_drops_or_overflows(simulate: Simulate) -> None:
    """100 flows of two segments each send 200 packets in 62 ms of the link, whatever they are told.

    With drops (RFC 9332, section 4.2) the delay stays at the target; without, as Linux's
    `overflow`, it becomes what these windows ask for, and nothing is lost. The second segment of a
    window leaves srtt / 2.4 behind the first (a pacing gain of 1.2), and one ACK acknowledges both:
    srtt, of the first one, is the 62 ms, and the second one's RTT is what remains of them.
    """
    many = ("flows.0.count=100", "paths.forward.link.rate=40Mbit")
    queue = "paths.forward.link.queue.dualpi2.overload"
    drop = beside(simulate, "cubic", 1, *many, f"{queue}=drop")
    overflow = beside(simulate, "cubic", 1, *many, f"{queue}=overflow")

    assert len(packets(drop, DROP)[0]) > 0
    assert drop.link["queue_mean_ns"] < 1.2 * TARGET_NS
    assert len(packets(overflow, DROP)[0]) == 0
    l4s = overflow.groups[0]
    window_ns = 200 * 1448 * 8e9 / l4s["goodput_bps"]
    rtt_ns = window_ns * (1 - 1 / 2.4)
    assert l4s["rtt_mean_ns"] == pytest.approx(rtt_ns, rel=0.01)
    queue_ns = rtt_ns - 10e6 - 1538 * 8e9 / 40e6
    assert overflow.link["queue_mean_ns"] == pytest.approx(queue_ns, rel=0.02)
    assert overflow.link["queue_mean_ns"] > 1.5 * TARGET_NS


@pytest.mark.parametrize(("dscp", "waits_ns"), [(45, 2e6), (46, TARGET_NS)])
def test_a_dscp_brings_a_classic_flow_into_the_l4s_queue(
    simulate: Simulate, replay: Replay, dscp: int, waits_ns: float
) -> None:
    """Dropped with the Classic probability of the L4S queue's delay, it keeps that queue short.

    With another DSCP it waits in the Classic queue, as long as PI2's target. A replay of recorded
    arrivals has the DSCP from them, and decides the same.
    """
    run = simulate(
        CONFIG,
        "telemetry={level: 3, arrivals: yes}",
        "duration=12s",
        "warmup=5s",
        "paths.forward.link.queue.dualpi2.l4s_dscp=45",
        f"flows.1.dscp={dscp}",
        "flows.1.ecn=off",
        "flows.1.cc=newreno",
    )
    _, classic = packets(run, DEQUEUE)
    median_ns = np.median(classic["sojourn_ns"])
    assert (median_ns < waits_ns) if dscp == 45 else median_ns == pytest.approx(waits_ns, rel=0.25)
    arrivals = run.records("arrivals")
    heads = arrivals[arrivals["event"] == 4]
    assert set(heads["param"]) == {0, dscp}
    assert replay(run.folder).out.startswith("identical:")
