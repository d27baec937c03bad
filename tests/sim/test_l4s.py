# SPDX-License-Identifier: BSD-3-Clause
"""L4S: Prague beside Classic controls through DualPI2 (RFC 9330 to 9332)."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from .conftest import Run, Simulate

CONFIG = "dualpi2-l4s"
DEQUEUE, DROP, MARK = 2, 3, 4
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


@pytest.mark.slow
@pytest.mark.parametrize("flows", [1, 5])
@pytest.mark.parametrize(("cc", "ecn"), [("cubic", "off"), ("cubic", "ect0"), ("newreno", "off")])
def test_low_delay_and_near_equal_shares(simulate: Simulate, cc: str, ecn: str, flows: int) -> None:
    """L4S packets wait less than 1 ms at p99; Classic ones as PI2 wants it; neither is starved.

    RFC 9332, section 2.1: with k = 2 the rates of equal RTTs are equal, but for the factor between
    Reno and CUBIC. Prague's rtt_virt of 25 ms is the Classic RTT, 10 ms and the target.
    """
    run = beside(simulate, cc, flows, f"flows.1.ecn={ecn}")
    l4s, classic = run.groups
    l4s_ns, classic_ns = (p["sojourn_ns"] for p in packets(run, DEQUEUE))

    assert np.percentile(l4s_ns, 99) < 1e6
    assert np.median(classic_ns) == pytest.approx(TARGET_NS, rel=0.15)
    assert 0.7 < l4s["goodput_bps"] / classic["goodput_bps"] < 1.3
    assert l4s["retransmits"] == 0
    assert l4s["jfi"] > 0.99
    assert run.link["utilisation"] > 0.99
    assert (run.link["drops"] == 0) == (ecn == "ect0")


def test_the_probabilities_are_coupled(simulate: Simulate) -> None:
    """Equation (1) of RFC 9332 as flows meet it: p_C = (p_L / k)^2."""
    run = beside(simulate, "newreno", 5)
    sent, marked, dropped = (packets(run, event) for event in (DEQUEUE, MARK, DROP))
    p_l = len(marked[0]) / len(sent[0])
    p_c = len(dropped[1]) / (len(sent[1]) + len(dropped[1]))

    assert len(marked[1]) == len(dropped[0]) == 0
    assert p_c == pytest.approx((p_l / 2) ** 2, rel=0.1)


def test_prague_is_in_balance_with_its_marks(simulate: Simulate) -> None:
    """W = 2 (1 - p) / p segments per RTT_virt: growth by 1 - p, reduction by p / 2 of W.

    So much if it reduces once per RTT_virt. After that time it waits for its next mark, for the
    distance of two marks at most, which is RTT_virt / (p W).
    """
    run = beside(simulate, "newreno", 5)
    sent, marked = (packets(run, event)[0] for event in (DEQUEUE, MARK))
    p = len(marked) / len(sent)
    window = run.groups[0]["goodput_bps"] / 5 * 25e-3 / (1448 * 8)

    assert 1 <= window / (2 * (1 - p) / p) <= 1 + 1 / (p * window)


def test_short_paths_have_the_rates_of_rtt_virt(simulate: Simulate) -> None:
    """With each RTT for itself, 10 ms gets more than CUBIC's 25 ms, as DCTCP would."""
    own = beside(simulate, "cubic", 1, "flows.0.cc={prague: {rtt_virt: 0}}")
    virtual = beside(simulate, "cubic", 1)
    ratios = [r.groups[0]["goodput_bps"] / r.groups[1]["goodput_bps"] for r in (own, virtual)]

    assert ratios[0] > 1.7 * ratios[1]


def test_without_coupling_the_scheduler_decides(simulate: Simulate) -> None:
    """Then L4S flows see no Classic queue, and only the round robin leaves it something: 1/16."""
    run = beside(simulate, "cubic", 1, "paths.forward.link.queue.dualpi2.coupling=0")
    sent = [p["size_bytes"].sum() for p in packets(run, DEQUEUE)]

    assert sent[1] / sum(sent) == pytest.approx(1 / 16, rel=0.02)
    assert run.link["utilisation"] > 0.99


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
    simulate: Simulate, dscp: int, waits_ns: float
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
    argv = [sys.executable, "-m", "weir", "replay", str(run.folder)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("identical:")
