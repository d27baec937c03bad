# SPDX-License-Identifier: BSD-3-Clause
"""Disciplines with a queue per flow: isolation and equal shares."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import numpy as np
import pytest

from .conftest import ROOT, Run, Simulate

SHARE_BPS = 50e6 * 1448 / 1538 / 11  # of the eleven flows in fq-codel.yaml


def own_target_ns(goodput_bps: float) -> float:
    """Copa's target for its queueing delay: 1/(lambda delta), delta 0.5 (NSDI 2018, section 2)."""
    return 1e9 / (goodput_bps / 1448 / 8 * 0.5)


@pytest.mark.parametrize(
    ("queue", "near"), [("fq_codel: {target: 20ms}", 0.15), ("fq_pie: {target: 40ms}", 0.15)]
)
def test_flow_queues_isolate_a_copa_flow(simulate: Simulate, queue: str, near: float) -> None:
    """Ten NewReno flows beside it change neither its share nor its delay.

    The median delay of a lone flow is of whole packets, which last 2.7 ms at this share: half of
    its target. Copa's queue, of 13.5 ms at most, stays below half of PIE's target, where PIE drops
    nothing.
    Each of the ten leaves up to 0.7 % of its share after a loss, which Copa takes: 3 to 7 % more.
    """
    run = simulate("fq-codel", "telemetry.level=3", f"paths.forward.link.queue={{{queue}}}")
    copa, newreno = run.groups
    records = run.records("cc")
    dq_ns = float(np.median(records["obs2"][records["flow_id"] == 0]))

    assert SHARE_BPS < copa["goodput_bps"] < 1.08 * SHARE_BPS
    assert dq_ns == pytest.approx(own_target_ns(copa["goodput_bps"]), rel=near)
    assert copa["retransmits"] == 0
    assert newreno["goodput_bps"] / 10 == pytest.approx(SHARE_BPS, rel=0.05)
    assert newreno["jfi"] > 0.999
    assert run.link["utilisation"] > 0.99


def test_with_codels_default_copa_takes_a_part_of_what_newreno_leaves(simulate: Simulate) -> None:
    """A target of 5 ms is less than two packets at this share, and Copa has 13 % more than C / 11.

    Half a window after a loss, of BDP plus two packets, does not fill a NewReno flow's share: its
    queue is empty for a while, alone on a link of that rate too. Max-min fairness then gives what
    it leaves to flows that have a backlog. So a share is to be compared with two others: with that
    of a flow which always has a backlog, which bounds it, and with what NewReno flows have beside
    such a flow, which is the least that they can have.
    """

    def shares(cc: str) -> tuple[float, float]:
        """Of C / 11: the first flow's, and the mean of the ten."""
        queue = "paths.forward.link.queue={fq_codel: {target: 5ms}}"
        run = simulate("fq-codel", queue, f"flows.0.cc={cc}")
        first, newreno = run.groups
        assert newreno["jfi"] > 0.999
        return first["goodput_bps"] / SHARE_BPS, newreno["goodput_bps"] / 10 / SHARE_BPS

    copa, beside_copa = shares("copa")
    backlogged, beside_backlogged = shares("{fixed: {cwnd: 60}}")
    eleventh, beside_another = shares("newreno")

    assert eleventh == pytest.approx(beside_another, rel=0.01)
    assert beside_another < 0.99  # eleven of them do not fill the link either
    assert 1 < copa < backlogged
    assert beside_copa == pytest.approx(beside_backlogged, rel=0.01)
    assert beside_copa > 0.95
    assert beside_copa > 0.98 * beside_another
    assert copa - 1 < 10 * (1 - beside_copa)  # a part of what they leave


def test_a_fifo_does_not(simulate: Simulate) -> None:
    """The comment of fq-codel.yaml: behind a FIFO Copa has neither its share nor a short queue."""
    run = simulate("fq-codel", "paths.forward.link.queue={fifo: {limit: 4BDP}}")
    copa = run.groups[0]

    assert copa["goodput_bps"] < 0.5 * SHARE_BPS
    assert copa["rtt_mean_ns"] > 150e6


def test_cake_isolates_a_copa_flow(simulate: Simulate) -> None:
    """As fq_codel, with a queue per flow and no hosts; `triple` gives a group half of the link.

    COBALT's target is 40 ms. It returns at once to the rate of drops that it had; so at 20 ms,
    enough with CoDel, NewReno flows do not always use their shares: Copa takes what they leave, and
    has too long a queue when they come back.
    """
    cake = "paths.forward.link.queue={cake: {isolation: flows, target: 40ms}}"
    run = simulate("fq-codel", "telemetry.level=3", cake)
    copa, newreno = run.groups
    records = run.records("cc")
    dq_ns = float(np.median(records["obs2"][records["flow_id"] == 0]))

    assert SHARE_BPS < copa["goodput_bps"] < 1.08 * SHARE_BPS
    assert dq_ns == pytest.approx(own_target_ns(copa["goodput_bps"]), rel=0.05)
    assert copa["retransmits"] == 0
    assert newreno["goodput_bps"] / 10 == pytest.approx(SHARE_BPS, rel=0.05)
    assert newreno["jfi"] > 0.999
    assert run.link["utilisation"] > 0.99


@pytest.mark.parametrize("isolation", ["triple", "dual-srchost", "dual-dsthost"])
def test_cake_gives_two_hosts_half_of_the_link_each(simulate: Simulate, isolation: str) -> None:
    """The comment of cake-hosts.yaml: one flow of one host, ten of another."""
    run = simulate("cake-hosts", f"paths.forward.link.queue.cake.isolation={isolation}")
    one, ten = run.groups
    half_bps = 50e6 * 1448 / 1538 / 2

    assert one["goodput_bps"] == pytest.approx(half_bps, rel=0.01)
    assert ten["goodput_bps"] == pytest.approx(half_bps, rel=0.01)
    assert ten["jfi"] > 0.999
    assert run.link["utilisation"] > 0.999


def test_cake_without_hosts_gives_each_flow_its_share(simulate: Simulate) -> None:
    """The comment of cake-hosts.yaml; with one queue, COBALT's, shares depend on the flows."""
    run = simulate("cake-hosts", "paths.forward.link.queue.cake.isolation=flows")
    one_queue = simulate("cake-hosts", "paths.forward.link.queue={cobalt: {limit: 4BDP}}")
    one, ten = run.groups

    assert one["goodput_bps"] == pytest.approx(SHARE_BPS, rel=0.01)
    assert ten["goodput_bps"] / 10 == pytest.approx(SHARE_BPS, rel=0.01)
    assert ten["jfi"] > 0.9999 > one_queue.groups[1]["jfi"]


def test_cake_holds_cubic_below_its_target(simulate: Simulate) -> None:
    """Ten CUBIC flows at 50 Mbit/s, each with COBALT's 5 ms: less delay than in one queue of it."""
    flows = ("flows.0.count=5", "flows.1.count=5")
    run = simulate("cake-hosts", "paths.forward.link.queue={cake: {}}", *flows)
    one_queue = simulate("cake-hosts", "paths.forward.link.queue={cobalt: {limit: 4BDP}}", *flows)

    assert run.link["queue_mean_ns"] < one_queue.link["queue_mean_ns"] < 5.5e6
    assert run.link["utilisation"] > 0.98
    assert run.groups[0]["goodput_bps"] == pytest.approx(run.groups[1]["goodput_bps"], rel=0.05)


RTTS = """
duration: 60s
warmup: 10s
paths:
  forward:
    - link: {rate: 50Mbit, queue: fifo}
    - delay: {delay: 5ms}
  reverse:
    - delay: {delay: 5ms}
flows:
  - {count: 5, cc: cubic, stagger: 100ms, base_rtt: 10ms}
  - {count: 5, cc: cubic, stagger: 100ms, base_rtt: 100ms}
telemetry: {level: 1, interval: 100ms}
"""


def shares(run: Run) -> float:
    """What flows of 10 ms get, over what those of 100 ms get; within a group they are equal."""
    short, long = run.groups
    assert short["jfi"] > 0.999
    assert long["jfi"] > 0.999
    assert run.link["utilisation"] > 0.99
    return short["goodput_bps"] / long["goodput_bps"]


def test_flows_of_different_rtts_have_equal_shares(simulate: Simulate) -> None:
    """Exactly with DRR and a buffer for all; else as far as the target lets them fill a queue.

    A CUBIC flow of 100 ms empties a queue of 5 ms after each reduction, and the others use that:
    what it leaves alone on a link of its share is the most that they can have. (That would be 1.20;
    the ratio is 1.16 +-0.01 for ten starts of the first group.) With one queue, CoDel gives the
    shorter RTT six times as much.
    """
    ratio = {
        queue: shares(simulate(RTTS, f"paths.forward.link.queue={{{queue}}}"))
        for queue in (
            "drr: {limit: 100ms}",
            "fq_codel: {target: 20ms}",
            "fq_codel: {}",
            "fq_pie: {target: 30ms}",
            "fq_pie: {}",
        )
    }
    one = simulate(RTTS, "paths.forward.link.queue={codel: {}}")
    share = "paths.forward.link={rate: 5Mbit, queue: {codel: {}}}"
    alone = simulate(RTTS, share, "flows=[{cc: cubic, base_rtt: 100ms}]")
    alone_bps = alone.groups[0]["goodput_bps"]

    assert ratio["drr: {limit: 100ms}"] == pytest.approx(1, abs=0.002)
    assert ratio["fq_codel: {target: 20ms}"] == pytest.approx(1, abs=0.05)
    assert 1 < ratio["fq_codel: {}"] < (2 * 5e6 * 1448 / 1538 - alone_bps) / alone_bps < 1.25
    assert ratio["fq_pie: {target: 30ms}"] == pytest.approx(1, abs=0.05)
    assert ratio["fq_pie: {}"] == pytest.approx(1, abs=0.1)
    assert one.groups[0]["goodput_bps"] > 4 * one.groups[1]["goodput_bps"]


def test_the_seed_decides_which_flows_share_a_queue(simulate: Simulate) -> None:
    """In four queues, ten flows share; in 65536 none does, and seeds make no difference."""
    few = "paths.forward.link.queue={drr: {limit: 100ms, buckets: 4}}"
    many = "paths.forward.link.queue={fq_codel: {}}"
    first, repeated, other = (simulate(RTTS, few, f"seed={n}") for n in (1, 1, 2))
    alone = simulate(RTTS, many)

    assert first.summary["digest"] == repeated.summary["digest"]
    goodputs = [[g["goodput_bps"] for g in run.groups] for run in (first, other)]
    assert goodputs[0] != goodputs[1]
    assert first.summary["seed_used"]
    assert not alone.summary["seed_used"]


PAGE = (ROOT / "tools/docs/how-to/flent.md").read_text()
TINS = re.findall(r"^\| (drop-tail|`\w+`) \| ([\d.| ]+) \|$", PAGE, re.MULTILINE)


@pytest.mark.parametrize(("queue", "said"), TINS, ids=[queue for queue, _ in TINS])
def test_tins_part_rrul_as_the_page_says(simulate: Simulate, queue: str, said: str) -> None:
    mode = queue.strip("`")
    cake = f".link.queue={{cake: {{diffserv: {mode}}}}}"
    ways = () if mode == "drop-tail" else (f"paths.forward{cake}", f"paths.reverse{cake}")
    run = simulate("flent/rrul", *ways)

    of = {group["name"]: group for group in run.groups}
    found = [of[f"TCP upload {mark}"]["goodput_bps"] / 1e6 for mark in ("BE", "BK", "CS5", "EF")]
    pings = (of[f"Ping (ms) UDP {mark}"]["transfers"] for mark in ("BE", "BK", "EF"))
    found += [ping["completion_p50_ns"] / 1e6 for ping in pings]
    assert found == pytest.approx([float(number) for number in said.split("|")], rel=0.03)


def test_tins_are_told_to_those_who_ask_for_others(weir_sim: Path) -> None:
    argv = [weir_sim, ROOT / "configs/cake-hosts.yaml", "--check", "-o"]
    argv += ["paths.forward.link.queue.cake.diffserv=diffserv5"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert "diffserv: 'diffserv5' is not one of besteffort, precedence, diffserv3" in done.stderr
