# SPDX-License-Identifier: BSD-3-Clause
"""Links and policers in a closed loop."""

from __future__ import annotations

from .conftest import Simulate

DROP_TAIL = (
    "paths.forward=[{link: {rate: 10Mbit, queue: {fifo: {limit: 1BDP}}}}, {delay: {delay: 10ms}}]"
)
BASE_RTT_NS = 20e6


def test_a_policer_takes_throughput_and_adds_no_delay(simulate: Simulate) -> None:
    """Its signature, beside a drop-tail queue of the same rate (Flach et al., SIGCOMM 2016, 3)."""
    policed, queued = simulate("policer"), simulate("policer", DROP_TAIL)

    # Losses without a queue before them, where drop-tail loses only what a full queue refuses.
    assert policed.groups[0]["rtt_mean_ns"] < BASE_RTT_NS + 1e6
    assert queued.groups[0]["rtt_mean_ns"] > BASE_RTT_NS + 10e6
    assert set(policed.summary["ledger"]["paths"]["forward"]["drops"]) == {"policed"}
    assert policed.groups[0]["rtx_overhead"] > 3 * queued.groups[0]["rtx_overhead"]
    # At the rate: goodput counts payload, 1448 of the 1500 bytes that the policer counts.
    assert 0.8 * 10e6 < policed.groups[0]["goodput_bps"] < 10e6 * 1448 / 1500
    assert queued.groups[0]["goodput_bps"] > 0.9 * 10e6
    # In no interval more than the rate and the burst.
    most = 10e6 * 0.1 / 8 + 25e3
    links = policed.records("links")
    sent = links["out_bytes"] - 18.0 * links["out_pkts"]
    assert len(sent) > 400
    assert sent.max() <= most


def test_a_link_that_is_down_counts_the_time_and_recovers(simulate: Simulate) -> None:
    """Rate 0 from 20 s to 22 s: two seconds without a packet, then as before."""
    run = simulate(
        "policer",
        DROP_TAIL,
        "schedule=[{at: 20s, forward.link.rate: 0}, {at: 22s, forward.link.rate: 10Mbit}]",
    )
    links = run.records("links")
    down = (links["ts_ns"] > 20.1e9) & (links["ts_ns"] <= 22e9)

    assert run.link["down_ns"] == 2e9
    assert run.link["rate_min_bps"] == 0
    assert links["out_pkts"][down].sum() == 0
    assert links["out_bytes"][links["ts_ns"] > 30e9].sum() * 8 > 0.9 * 10e6 * 30
    assert run.link["utilisation"] > 0.9  # of what it could have sent
