# SPDX-License-Identifier: BSD-3-Clause
"""What an experiment's method needs: drops per flow, a rule for its end, edges."""

from __future__ import annotations

import numpy as np
import pytest
from weir.analysis import folder, summary
from weir.analysis.ring import open_ring
from weir.report import page

from .conftest import Simulate

# Two groups that keep overflowing a small buffer; ACKs are lost too, which is nobody's drop.
SMALL_BUFFER = """
seed: 3
duration: 20s
warmup: 5s
paths:
  forward:
    - link: {rate: 20Mbit, queue: {fifo: {limit: 20pkt}}}
    - delay: {delay: 10ms}
  reverse:
    - loss: {rate: 1%}
    - delay: {delay: 10ms}
flows:
  - {count: 3, cc: newreno}
  - {count: 3, cc: cubic, ack_every: 1}
telemetry: {level: 1, interval: 100ms}
"""


def test_drops_of_flows_add_up_to_the_links(simulate: Simulate) -> None:
    """In each interval and since the warm-up, and no flow takes them all."""
    run = simulate(SMALL_BUFFER)
    flows = open_ring(run.folder / "interval.ring").records
    links = open_ring(run.folder / "links.ring").records
    links = links[links["link"] == 0]
    per_interval = [int(flows["drops"][flows["ts_ns"] == t].sum()) for t in links["ts_ns"]]

    # All flows start at once: some ACKs that end a handshake, which are not data, are dropped too.
    assert per_interval[0] <= links["drops"][0] <= per_interval[0] + 6
    assert per_interval[1:] == list(links["drops"][1:])
    assert run.link["drops"] == sum(group["drops"] for group in run.groups)
    for number, group in enumerate(run.groups):
        measured = flows[(flows["group"] == number) & (flows["ts_ns"] > 5e9)]
        assert group["drops"] == measured["drops"].sum() > 0
        # What was lost for good is what was dropped, but for what is not yet detected.
        assert abs(int(group["lost_segs"]) - int(group["drops"])) <= 0.1 * group["drops"]
    assert np.unique(flows["flow_id"][flows["drops"] > 0]).size == 6


def test_drops_of_every_reason_count(simulate: Simulate) -> None:
    """A loss stage and a discipline in the forward path both drop data."""
    run = simulate(
        SMALL_BUFFER,
        "warmup=0s",
        "paths.forward=[{loss: {rate: 0.5%}}, {link: {rate: 20Mbit, queue: codel}},"
        " {delay: {delay: 10ms}}]",
    )
    forward = run.summary["ledger"]["paths"]["forward"]["drops"]

    assert forward.keys() == {"loss", "aqm", "queue_full"}
    assert sum(count["pkts"] for count in forward.values()) == sum(g["drops"] for g in run.groups)


def test_an_ack_that_fills_a_hole_delivers_no_more_than_the_link(simulate: Simulate) -> None:
    """What arrived behind the hole was delivered when SACK said so. Each byte counts once."""
    flow, end = "cc: newreno, ack_every: 1", "source: {size: {bytes: 3000001B}}"
    run = simulate(
        SMALL_BUFFER,
        "paths.forward=[{link: {rate: 200Mbit, queue: {fifo: {limit: 1BDP}}}},"
        " {delay: {delay: 10ms}}]",
        f"flows=[{{{flow}}}, {{{flow}, {end}}}, {{{flow}, {end}, sack: no, start: 2s}}]",
        "telemetry.interval=10ms",
        "duration=10s",
        "warmup=0s",
    )
    records = open_ring(run.folder / "interval.ring").records
    without_sack = records[records["group"] < 2]  # without SACK the sender learns less, and late
    acked, delivered = (
        np.array(
            [
                without_sack[field][without_sack["ts_ns"] == end].sum()
                for end in np.unique(without_sack["ts_ns"])
            ]
        )
        for field in ("acked_bytes", "delivered_bytes")
    )
    sent_at_most = 200e6 / 8 * 0.01  # by the link in an interval, headers and all

    assert acked.max() > 1.5 * sent_at_most  # as goodput over time this would be 300 Mbit/s
    assert delivered.max() <= sent_at_most
    endless, *ended = (records[records["group"] == group] for group in range(3))
    for flow in ended:
        assert flow["retransmits"].sum() > 0
        assert flow["delivered_bytes"].sum() == flow["acked_bytes"].sum() == 3000001
    beyond = endless["delivered_bytes"].cumsum() - endless["acked_bytes"].cumsum()
    assert endless["delivered_bytes"].sum() >= endless["acked_bytes"].sum()
    assert 0 < beyond.max() <= 1448 * endless["cwnd_segs"].max()


@pytest.mark.parametrize("level", [0, 1])
def test_goodput_is_of_its_interval(simulate: Simulate, level: int) -> None:
    """A warm-up that ends in a recovery: what arrived before is acknowledged, in one, after it.

    CUBIC alone: a full queue of 1 Gbit/s passes 1448 of 1538 bytes as payload, 0.9415 Gbit/s.
    Acknowledged bytes alone gave 1.263.
    """
    run = simulate(
        """
duration: 320ms
warmup: 260ms
paths:
  forward: [{link: {rate: 1Gbit, queue: {fifo: {limit: 1BDP}}}}, {delay: {delay: 7.5ms}}]
  reverse: [{delay: {delay: 7.5ms}}]
flows: [{count: 1, cc: cubic}]
""",
        f"telemetry.level={level}",
    )
    (group,) = run.groups
    assert group["acked_bytes"] * 8 / 0.06 > 1.2e9
    assert group["goodput_bps"] == pytest.approx(1e9 * 1448 / 1538, rel=0.01)


def test_a_settled_run_ends(simulate: Simulate) -> None:
    """At a tick, 1/20 of `over`; up to there it is the run of that duration, byte for byte."""
    rule = "stop={metric: goodput, change: 0.2%, over: 2s}"
    settled = simulate(SMALL_BUFFER, rule)
    stop = settled.summary["stop"]

    assert (stop["metric"], stop["change"], stop["over_s"]) == ("goodput", 0.002, 2)
    assert stop["settled"]
    assert stop["moved"] < 0.002
    assert settled.summary["virtual_s"] == stop["at_s"]
    assert 5 + 2 < stop["at_s"] < 20
    assert (stop["at_s"] - 5) / 0.1 == pytest.approx(round((stop["at_s"] - 5) / 0.1))

    same = simulate(SMALL_BUFFER, f"duration={stop['at_s']}s")
    assert "stop" not in same.summary
    assert same.summary["digest"] == settled.summary["digest"]
    assert same.groups == settled.groups
    assert same.summary["links"] == settled.summary["links"]

    # The rule by hand: goodput since the warm-up at each tick and 2 s earlier, from the records.
    flows = open_ring(settled.folder / "interval.ring").records
    flows = flows[flows["ts_ns"] > 5e9]
    total = [flows["acked_bytes"][flows["ts_ns"] <= 5e9 + k * 1e8].sum() / k for k in range(1, 200)]
    moved = [abs(now / before - 1) for before, now in zip(total, total[20:], strict=False)]
    last = round((stop["at_s"] - 5) / 0.1) - 21
    assert last > 0
    assert moved[last] == pytest.approx(stop["moved"], rel=1e-6)
    assert min(moved[:last]) >= 0.002


@pytest.mark.parametrize("metric", ["jfi", "cwnd_reductions", "drops"])
def test_a_run_that_does_not_settle_lasts_its_duration(simulate: Simulate, metric: str) -> None:
    """The rule looks and changes nothing. (With the seed 3 drops have the same mean twice.)"""
    rule = f"stop={{metric: {metric}, change: 0.001%, over: 5s}}"
    plain = simulate(SMALL_BUFFER, "seed=5")
    run = simulate(SMALL_BUFFER, "seed=5", rule)

    assert not run.summary["stop"]["settled"]
    assert run.summary["stop"]["moved"] >= 0.00001
    assert run.summary["stop"]["at_s"] == run.summary["virtual_s"] == 20
    assert run.summary["digest"] == plain.summary["digest"]


def test_edges_space_packets_and_nothing_else(simulate: Simulate) -> None:
    """What reaches the bottleneck from one of three edges is spaced by its frames at 50 Mbit/s."""
    overrides = ["duration=5s", "telemetry.level=3", "flows.0.count=5"]
    link = "{link: {rate: 20Mbit, queue: {fifo: {limit: 20pkt}}}}, {delay: {delay: 10ms}}]"
    with_edges = f"paths.forward=[{{edges: {{count: 3, rate: 50Mbit}}}}, {link}"
    gaps = {}
    for name, forward in (("edges", with_edges), ("none", f"paths.forward=[{link}")):
        run = simulate(SMALL_BUFFER, forward, "warmup=2s", *overrides)
        packets = open_ring(run.folder / "packets.ring").records
        # As they come: what is enqueued, and what finds the queue full.
        packets = packets[np.isin(packets["event"], (1, 3)) & (packets["link"] == 0)]
        gaps[name] = []
        for edge in range(3):
            mine = packets[packets["flow_id"] % 3 == edge]
            frame_ns = (mine["size_bytes"][1:].astype(np.int64) + 20) * 160
            gaps[name].append(np.diff(mine["ts_ns"].astype(np.int64)) - frame_ns)
        assert run.link["utilisation"] > 0.9

    for with_them, without in zip(gaps["edges"], gaps["none"], strict=True):
        assert with_them.min() >= -1  # of rounding
        assert (np.abs(with_them) <= 1).sum() > 100  # back to back
        assert without.min() < -200_000


@pytest.mark.slow
def test_a_path_whose_stages_have_no_figures(simulate: Simulate) -> None:
    """`edges` serialise and count nothing: no link anywhere, the rest of the results is there."""
    edges = "{edges: {count: 3, rate: 8Mbit, limit: 20pkt}}, {delay: {delay: 10ms}}"
    run = simulate(
        SMALL_BUFFER, f"paths.forward=[{edges}]", "duration=5s", "warmup=1s", "telemetry.level=3"
    )
    assert run.summary["verdict"] == "ok"
    assert run.summary["ledger"]["balanced"]
    assert run.summary["links"] == {}
    assert run.summary["ledger"]["paths"]["forward"]["drops"]["queue_full"]["pkts"] > 0
    assert len(open_ring(run.folder / "links.ring").records) == 0
    packets = open_ring(run.folder / "packets.ring").records
    assert set(packets["link"]) == {255}
    loaded = folder.load(run.folder)
    assert not summary.links(loaded.summary)
    assert "What edges observed at path forward" in page.write(loaded).read_text()
