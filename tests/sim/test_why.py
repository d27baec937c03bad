# SPDX-License-Identifier: BSD-3-Clause
"""Why a queue never builds: the summary says it, and is silent where one does."""

from __future__ import annotations

import re

import pytest
from weir.analysis.run_summary import decode
from weir.analysis.summary import why_lines

from .conftest import Run, Simulate

# 100 Mbit/s and 20 ms: 163 full frames of 1538 B on the wire fill it.
CONFIG = """
duration: 10s
warmup: 2s
paths:
  forward:
    - link: {rate: 100Mbit, queue: {fifo: {limit: 1BDP}}}
    - delay: {delay: 10ms}
  reverse:
    - delay: {delay: 10ms}
flows:
  - {count: 2, cc: newreno}
telemetry: {level: 0}
"""
BDP_PKTS = 100e6 * 0.020 / 8 / 1538


def why(run: Run) -> str:
    """The only sentence."""
    assert len(run.summary["why"]) == 1
    return why_lines(decode(run.summary, "summary"))[0]


def percent(text: str, after: str) -> float:
    """The first percentage behind some words of a sentence."""
    found = re.search(rf"{after} ([0-9.]+) %", text)
    assert found is not None, text
    return float(found[1])


@pytest.mark.parametrize("queue", ["fifo: {limit: 1BDP}", "codel: {limit: 4BDP}", "fq_codel: {}"])
def test_a_queue_that_builds_needs_no_reason(simulate: Simulate, queue: str) -> None:
    """Two NewReno flows fill the link, and the queue of each discipline."""
    run = simulate(CONFIG, f"paths.forward.link.queue={{{queue}}}")

    assert run.link["queue_mean_pkts"] > 1
    assert run.summary["why"] == []


@pytest.mark.parametrize("cc", ["copa", "bbr"])
def test_a_full_link_needs_no_reason(simulate: Simulate, cc: str) -> None:
    """A control that wants a short queue uses the whole link."""
    run = simulate(CONFIG, f"flows.0.cc={cc}", "flows.0.ack_every=1", "duration=30s")

    assert run.link["utilisation"] > 0.95
    assert run.summary["why"] == []


@pytest.mark.parametrize("segments", [20, 35])
def test_the_receive_window(simulate: Simulate, segments: int) -> None:
    """Two windows of W segments in 20 ms are 2 W / 163 of the link."""
    run = simulate(CONFIG, f"flows.0.rwnd={segments * 1448}B")

    assert percent(why(run), "the senders offered") == pytest.approx(
        200 * segments / (BDP_PKTS + 1), abs=2
    )
    assert "all 2 flows were limited by their receive window" in why(run)


def test_the_control_s_own_rate(simulate: Simulate) -> None:
    """Two flows are paced at 10 Mbit/s of payload each: 21.2 % of the link with their headers."""
    run = simulate(CONFIG, "flows.0.cc={fixed: {rate: 10Mbit, cwnd: 100}}")

    assert percent(why(run), "the senders offered") == pytest.approx(20 * 1538 / 1448, abs=0.6)
    assert "all 2 flows were limited by their pacing rate" in why(run)


def test_losses_elsewhere(simulate: Simulate) -> None:
    """1 % of loss holds a NewReno flow at a window of sqrt(1.5 / 1 %), 12 segments."""
    run = simulate(CONFIG, "paths.forward.1={loss: {rate: 1%}}")

    assert percent(why(run), "the senders offered") < 30
    assert percent(why(run), "other stages dropped") == pytest.approx(1, abs=0.3)
    assert "loss" in why(run)
    assert "limited by their congestion window" in why(run)


def test_a_policer(simulate: Simulate) -> None:
    """It holds the flows below a fifth of the link, and no queue is there to see it."""
    text = CONFIG.replace(
        "  forward:\n", "  forward:\n    - policer: {rate: 20Mbit, burst: 30kB}\n"
    )
    run = simulate(text)

    assert percent(why(run), "the senders offered") < 21
    assert "of the path's packets (policed)" in why(run)


def test_flows_that_have_ended(simulate: Simulate) -> None:
    """1 MB each takes a quarter of a second, and the warm-up is two."""
    run = simulate(CONFIG, "flows.0.source={size: {bytes: 1MB}}")

    assert why(run) == "forward: no standing queue: no packet came; all 2 flows had ended"


def test_all_was_lost_before_the_link(simulate: Simulate) -> None:
    """Five SYNs of each flow were lost in front of it, and it said that no packet came."""
    run = simulate(CONFIG.replace("  forward:\n", "  forward:\n    - loss: {rate: 100%}\n"))

    assert why(run) == (
        "forward: no standing queue: no packet came; other stages dropped 100 % of the path's"
        " packets (loss); all 2 flows had no answer to their SYN"
    )


def test_nothing_came(simulate: Simulate) -> None:
    """The flows begin after the end."""
    run = simulate(CONFIG, "flows.0.start=20s")

    assert why(run) == "forward: no standing queue: no packet came; all 2 flows had not begun"


def test_some_of_each(simulate: Simulate) -> None:
    """Groups differ: each reason has its number of flows."""
    two = CONFIG.replace(
        "  - {count: 2, cc: newreno}",
        "  - {count: 3, cc: newreno, rwnd: 14480B}\n"
        "  - {count: 2, cc: {fixed: {rate: 1Mbit, cwnd: 100}}}",
    )
    run = simulate(two)

    assert why(run).endswith(
        "of 5 flows 3 were limited by their receive window, 2 were limited by their pacing rate"
    )


@pytest.mark.parametrize("place", ["before", "behind"])
def test_the_bottleneck_is_another_link(simulate: Simulate, place: str) -> None:
    """A link of half the rate stands in front of it or behind it: that is full."""
    fast = "    - link: {rate: 100Mbit, queue: {fifo: {limit: 1BDP}}}\n"
    slow = "    - link: {name: slow, rate: 50Mbit, queue: {fifo: {limit: 1BDP}}}\n"
    run = simulate(CONFIG.replace(fast, slow + fast if place == "before" else fast + slow))

    assert why(run).startswith("forward.link2: " if place == "before" else "forward: ")
    assert "the bottleneck is elsewhere: forward.slow was 100 % used" in why(run)


def test_the_bottleneck_is_another_path_of_the_route(simulate: Simulate) -> None:
    """Two hops and a way back: the second hop is full. The ACKs' link is not asked."""
    hops = """
paths:
  hop1: [{link: {rate: 100Mbit, queue: {fifo: {limit: 1BDP}}}}]
  hop2: [{link: {rate: 50Mbit, queue: {fifo: {limit: 1BDP}}}}, {delay: {delay: 10ms}}]
  back: [{link: {rate: 100Mbit, queue: fifo}}, {delay: {delay: 10ms}}]
"""
    head, _, rest = CONFIG.partition("paths:\n")
    flows = rest.partition("flows:\n")[2]
    route = "cc: newreno, path: {forward: [hop1, hop2], reverse: back}"
    run = simulate(f"{head}{hops}flows:\n{flows.replace('cc: newreno', route)}")

    assert why(run).startswith("hop1: no standing queue: the senders offered 50 % of the link")
    assert "the bottleneck is elsewhere: hop2.link was 100 % used" in why(run)


def test_the_bottleneck_is_an_edge(simulate: Simulate) -> None:
    """Each flow has an edge of 20 Mbit/s, 20 % of the link; edges are no links in the summary."""
    edges = "    - edges: {count: 2, rate: 20Mbit, limit: 1BDP}\n"
    run = simulate(CONFIG.replace("  forward:\n", "  forward:\n" + edges))

    assert percent(why(run), "the senders offered") == pytest.approx(40, abs=1)
    assert percent(why(run), "elsewhere: forward.edges was") > 98


def test_a_discipline_that_allows_no_queue(simulate: Simulate) -> None:
    """A buffer of two packets: flows of NewReno reach 75 % of the link at most, and lose often."""
    run = simulate(CONFIG, "paths.forward.link.queue={fifo: {limit: 2pkt}}")

    assert run.link["queue_mean_pkts"] < 1
    assert "its own queue dropped" in why(run)
    assert "2 packets" in why(run)


def test_only_data_paths_are_asked(simulate: Simulate) -> None:
    """The link of the ACKs has no queue either, as it should be."""
    acks = CONFIG.replace("  reverse:\n", "  reverse:\n    - link: {rate: 100Mbit, queue: fifo}\n")
    run = simulate(acks)

    assert run.summary["links"]["reverse"]["utilisation"] < 0.1
    assert run.summary["why"] == []


def test_a_slow_path_of_the_acks_is_a_bottleneck(simulate: Simulate) -> None:
    """The ACKs that are left acknowledge several segments each, and release them in bursts."""
    acks = CONFIG.replace(
        "  reverse:\n", "  reverse:\n    - link: {rate: 500kbit, queue: {fifo: {limit: 1000pkt}}}\n"
    )
    run = simulate(acks, "duration=30s", "warmup=10s")

    assert run.link["queue_mean_pkts"] > 1  # bursts, not a standing queue
    assert "the bottleneck is elsewhere: reverse.link was 100 % used" in why(run)
