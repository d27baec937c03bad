# SPDX-License-Identifier: BSD-3-Clause
"""Queue disciplines in a closed loop."""

from __future__ import annotations

import pytest

from .conftest import Run, Simulate

# 50 Mbit/s and 50 ms: a BDP of 203 full frames.
BOTTLENECK = """
seed: 1
duration: 60s
warmup: 20s
paths:
  forward:
    - link: {rate: 50Mbit, queue: {fifo: {limit: 4BDP}}}
    - delay: {delay: 25ms}
  reverse:
    - delay: {delay: 25ms}
flows:
  - {count: 10, cc: newreno, stagger: 100ms}
"""
BDP_PKTS = 50e6 * 0.050 / 8 / 1538


def behind(simulate: Simulate, queue: str, cc: str, flows: int, ecn: str = "off") -> Run:
    """Flows of one control through a discipline at 50 Mbit/s and 50 ms."""
    return simulate(
        BOTTLENECK,
        f"paths.forward.link.queue={{{queue}}}",
        f"flows.0.cc={cc}",
        f"flows.0.count={flows}",
        f"flows.0.ecn={ecn}",
    )


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


@pytest.mark.parametrize("ecn", ["off", "ect0"])
@pytest.mark.parametrize("cc", ["newreno", "cubic"])
def test_cobalt_holds_its_target(simulate: Simulate, cc: str, ecn: str) -> None:
    """LANMAN 2019, section IV: the delay is as near to the target as CoDel's, or nearer.

    COBALT keeps its rate of drops while the delay is around the target; CoDel starts again.
    """
    run = behind(simulate, "cobalt: {limit: 4BDP}", cc, 10, ecn)
    codel = behind(simulate, "codel: {limit: 4BDP, ecn: yes}", cc, 10, ecn)

    assert run.link["queue_mean_ns"] == pytest.approx(5e6, rel=0.1)
    assert run.link["sojourn_p99_ns"] < codel.link["sojourn_p99_ns"] < 15e6
    assert run.link["utilisation"] > 0.99
    assert (run.link["marks"] > 0, run.link["drops"] > 0) == (ecn != "off", ecn == "off")


def test_cobalt_holds_its_target_against_unresponsive_flows(simulate: Simulate) -> None:
    """The comment of cobalt-unresponsive.yaml; what is dropped is the excess, no more."""
    run = simulate("cobalt-unresponsive")
    codel = simulate("cobalt-unresponsive", "paths.forward.link.queue={codel: {limit: 4BDP}}")
    offered_bps, capacity_bps = 60e6, 50e6 * 1448 / 1538

    assert run.link["queue_mean_ns"] < 5.5e6
    assert codel.link["queue_mean_ns"] > 100e6
    assert run.link["utilisation"] > 0.9999
    dropped = run.link["drops"] / (run.link["drops"] + run.link["out_pkts"])
    assert dropped == pytest.approx(1 - capacity_bps / offered_bps, abs=0.002)
    assert run.summary["seed_used"]


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


@pytest.mark.parametrize("ecn", ["off", "ect0"])
@pytest.mark.parametrize("cc", ["newreno", "cubic"])
def test_pie_holds_its_target(simulate: Simulate, cc: str, ecn: str) -> None:
    """RFC 8033, section 4.2: a PI controller has no steady-state error, so the mean is the target.

    A NewReno flow with a window of W packets per reduction needs 1.5 / W^2 of them (Mathis and
    others, 1997): that is the probability which PIE has to find.
    """
    run = behind(simulate, "pie: {limit: 4BDP, ecn: yes}", cc, 10, ecn)
    signals = run.link["drops"] + run.link["marks"]

    assert run.link["queue_mean_ns"] == pytest.approx(15e6, rel=0.1)
    assert run.link["sojourn_p99_ns"] < 45e6
    assert run.link["utilisation"] > 0.99
    assert (run.link["marks"] > 0, run.link["drops"] > 0) == (ecn != "off", ecn == "off")
    assert run.summary["seed_used"]
    if cc == "newreno":
        window = BDP_PKTS * 65 / 50 / 10
        assert signals / run.link["out_pkts"] == pytest.approx(1.5 / window**2, rel=0.3)


@pytest.mark.parametrize("rate", [6, 12])
def test_pie_holds_its_target_against_unresponsive_flows(simulate: Simulate, rate: int) -> None:
    """Ten flows that ignore losses, of so many Mbit/s each: no error remains, however much."""
    link = simulate(
        "cobalt-unresponsive",
        "paths.forward.link.queue={pie: {limit: 4BDP}}",
        f"flows.0.cc={{fixed: {{cwnd: 100000, rate: {rate}Mbit}}}}",
        "duration=40s",
    ).link

    assert link["queue_mean_ns"] == pytest.approx(15e6, rel=0.05)
    assert link["utilisation"] > 0.9999


@pytest.mark.parametrize("cc", ["newreno", "cubic"])
def test_docsis_pie_holds_its_target(simulate: Simulate, cc: str) -> None:
    """RFC 8034, section 4.1: 10 ms. Its buffer is 100 ms, a third of which begins the control."""
    run = behind(simulate, "docsis_pie: {limit: 2BDP}", cc, 10)

    assert run.link["queue_mean_ns"] == pytest.approx(10e6, rel=0.2)
    assert run.link["sojourn_p99_ns"] < 35e6
    assert run.link["utilisation"] > 0.99
    assert run.link["drops"] > 0


@pytest.mark.parametrize("ecn", ["off", "ect0"])
@pytest.mark.parametrize("cc", ["newreno", "cubic"])
def test_dualpi2_holds_its_target_for_classic_traffic(
    simulate: Simulate, cc: str, ecn: str
) -> None:
    """RFC 9332, appendix A.1: a PI controller on p', whose square is the probability; mean 15 ms.

    As for PIE, NewReno's window gives the probability (Mathis and others, 1997).
    """
    run = behind(simulate, "dualpi2: {}", cc, 10, ecn)
    signals = run.link["drops"] + run.link["marks"]

    assert run.link["queue_mean_ns"] == pytest.approx(15e6, rel=0.1)
    assert run.link["sojourn_p99_ns"] < 45e6
    assert run.link["utilisation"] > 0.99
    assert (run.link["marks"] > 0, run.link["drops"] > 0) == (ecn != "off", ecn == "off")
    assert not run.summary["seed_used"]
    if cc == "newreno":
        window = BDP_PKTS * 65 / 50 / 10
        assert signals / run.link["out_pkts"] == pytest.approx(1.5 / window**2, rel=0.3)


@pytest.mark.parametrize("cc", ["newreno", "cubic"])
def test_adaptive_red_holds_its_target(simulate: Simulate, cc: str) -> None:
    """ARED, section 5: the average stays in the middle fifth of [min, max], 5 ms +- 10 %.

    40 flows need a drop probability of some 4 %, which max_p can give. Ten need 0.3 %: max_p
    stays at its floor of 1 %, and the average nearer to min = 2.5 ms.
    """
    many = behind(simulate, "red: {limit: 4BDP, adaptive: yes}", cc, 40)
    few = behind(simulate, "red: {limit: 4BDP, adaptive: yes}", cc, 10)

    assert many.link["queue_mean_ns"] == pytest.approx(5e6, rel=0.15)
    assert many.link["utilisation"] > 0.95
    assert 2.5e6 < few.link["queue_mean_ns"] < 4.5e6
    assert few.link["utilisation"] > 0.9


def test_red_without_adaption_depends_on_the_load(simulate: Simulate) -> None:
    """The reason for ARED (its section 3): with one max_p the average follows the load."""
    queue = "red: {limit: 4BDP, target: 20ms, max_p: 0.1}"
    few = behind(simulate, queue, "newreno", 4)
    many = behind(simulate, queue, "newreno", 80)

    assert few.link["queue_mean_ns"] < 0.75 * many.link["queue_mean_ns"]
    # min = 10 ms and max = 30 ms hold the average of any load.
    assert many.link["queue_mean_ns"] < 30e6


@pytest.mark.parametrize("threshold", ["0.17BDP", "35pkt", "8.5ms"])
def test_a_step_marks_at_its_threshold(simulate: Simulate, threshold: str) -> None:
    """DCTCP's marking, here for a control that halves: the queue ends where the marks begin.

    W grows by one packet per RTT up to (1 + 0.17) BDP, then halves: between 0.585 and 1.17 BDP the
    link is used to 86 % (the integral of min(W, 1 BDP) over the sawtooth). The first packet after a
    reduction may still be marked, which is a reduction of its own (RFC 3168, section 6.1.2): then W
    starts at 0.29 BDP, and the link is used to 72 %.
    """
    run = behind(simulate, f"step: {{limit: 4BDP, threshold: {threshold}}}", "newreno", 1, "ect0")

    assert run.link["drops"] == 0
    assert run.link["marks"] > 0
    assert run.link["queue_max_pkts"] == pytest.approx(0.17 * BDP_PKTS, abs=4)
    assert 0.68 < run.link["utilisation"] < 0.88


@pytest.mark.parametrize("cc", ["newreno", "cubic"])
def test_a_step_and_many_flows(simulate: Simulate, cc: str) -> None:
    """Each flow adds a packet or two in the RTT until its reduction; the mean stays below K."""
    run = behind(simulate, "step: {limit: 4BDP}", cc, 10, "ect0")

    assert run.link["drops"] == 0
    assert run.link["queue_max_pkts"] <= 0.17 * BDP_PKTS + 2 * 10
    assert run.link["queue_mean_ns"] < 0.17 * 50e6
    assert run.link["utilisation"] > 0.75
