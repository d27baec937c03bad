# SPDX-License-Identifier: BSD-3-Clause
"""Base RTTs that are drawn for each flow, in closed loops."""

from __future__ import annotations

import numpy as np
import pytest
from weir.analysis import folder
from weir.analysis.ring import open_ring
from weir.report import bottleneck, sections
from weir.report.data import read

from .conftest import Replay, Run, Simulate

BASE_RTT = 13  # event
ALONE = """
seed: 3
duration: 20s
paths:
  forward:
    - link: {rate: 1Gbit, queue: {fifo: {limit: 100MB}}}
    - delay: {delay: 2ms}
  reverse: [{delay: {delay: 2ms}}]
flows:
  - name: far
    count: 200
    cc: fixed
    source: {size: {bytes: 1kB}}
    stagger: 40ms
    base_rtt: {log_uniform: {min: 4ms, max: 200ms}}
telemetry: {level: 3}
"""
BUSY = """
seed: 5
duration: 6s
warmup: 1s
paths:
  forward:
    - link: {rate: 100Mbit, queue: {fifo: {limit: 300kB}}}
  reverse:
    - delay: {delay: 4ms, late: 1%, late_by: 1ms}
flows:
  - {count: 30, cc: newreno, jitter: 100ms, base_rtt: {log_uniform: {min: 4ms, max: 200ms}}}
  - {count: 5, cc: cubic, base_rtt: 40ms}
  - count: 10
    cc: copa
    base_rtt: {pareto: {min: 5ms, shape: 1.2, max: 1s}}
    source: {closed: {think: 50ms, sizes: {mean: 20kB}}}
schedule:
  - {at: 2s, reverse.delay.delay: 30ms}
  - {at: 4s, reverse.delay.delay: 1ms}
telemetry: {level: 3, interval: 100ms, arrivals: yes}
"""


def drawn(run: Run) -> dict[int, float]:
    """The base RTT of each flow that opened, in ns, of groups that draw them."""
    events = open_ring(run.folder / "events.ring").records
    events = events[events["event"] == BASE_RTT]
    return dict(zip(events["flow_id"].tolist(), events["value"].tolist(), strict=True))


def least_rtts(run: Run) -> dict[int, float]:
    """The smallest RTT sample of each flow, in ns."""
    acks = open_ring(run.folder / "cc.ring").records
    acks = acks[acks["rtt_ns"] > 0]
    return {
        int(flow): float(acks["rtt_ns"][acks["flow_id"] == flow].min())
        for flow in np.unique(acks["flow_id"])
    }


def test_each_flow_has_the_rtt_that_was_drawn(simulate: Simulate) -> None:
    """Flow after flow, alone: base RTT and the wire times of handshake ACK, data and FIN.

    The FIN is the second segment, which the receiver answers at once (RFC 5681). On the wire a
    segment has 20 + 20 + 12 + 14 + 24 bytes around its payload (IPv4, TCP, timestamps, Ethernet).
    """
    run = simulate(ALONE)
    base_ns, rtt_ns = drawn(run), least_rtts(run)

    assert len(base_ns) == len(rtt_ns) == 200
    wire_ns = (3 * 90 + 1000) * 8  # at 1 Gbit/s
    assert {rtt_ns[flow] - base_ns[flow] for flow in base_ns} == {wire_ns}
    said = run.groups[0]["base_rtt"]
    assert said["distribution"] == "log_uniform"
    values = sorted(base_ns.values())
    assert [said["min_ns"], said["median_ns"], said["max_ns"]] == [
        values[0],
        values[99],
        values[-1],
    ]
    assert values[0] < 5e6 < 150e6 < values[-1]
    assert run.summary["seed_used"]


def test_a_draw_is_the_flows_own(simulate: Simulate) -> None:
    """Neither the number of flows nor another group in front of it matters; the seed does."""
    few = drawn(simulate(ALONE, "flows.far.count=20"))
    many = drawn(simulate(ALONE))
    moved = drawn(
        simulate(ALONE.replace("flows:\n", "flows:\n  - {count: 7, cc: fixed, stop: 1s}\n"))
    )
    other = drawn(simulate(ALONE, "seed=4", "flows.far.count=20"))

    assert len(few) == 20
    assert all(many[flow] == base_ns for flow, base_ns in few.items())
    assert all(moved[flow + 7] == base_ns for flow, base_ns in many.items())
    assert not set(other.values()) & set(few.values())


def test_a_range_of_fifty_to_one(simulate: Simulate, replay: Replay) -> None:
    """With losses, reordering and delays that change: nothing is lost, no RTT is too small.

    The same seed gives the same bytes, and the recorded arrivals the same decisions again.
    """
    run, repeated = simulate(BUSY), simulate(BUSY)
    base_ns, rtt_ns = drawn(run), least_rtts(run)

    assert run.summary["ledger"]["balanced"]
    assert run.summary["digest"] == repeated.summary["digest"]
    assert max(base_ns[flow] for flow in range(30)) > 30 * min(base_ns[flow] for flow in range(30))
    # The schedule shortens all round trips by 3 ms at last.
    assert all(rtt_ns[flow] >= base_ns[flow] - 3e6 for flow in base_ns)
    assert "base_rtt" not in run.groups[1]
    done = replay(run.folder)
    assert done.status == 0, done.err


def test_an_empty_path_is_the_flows_own(simulate: Simulate) -> None:
    """The completion time to compare with has two of the flow's round trips; the rest is wire."""
    run = simulate(BUSY)
    transfers = open_ring(run.folder / "transfers.ring").records
    transfers = transfers[(transfers["ideal_ns"] > 0) & (transfers["flow_id"] < 2**32 - 1)]
    base_ns = drawn(run)
    trips = {
        round(
            float(t["ideal_ns"] - (t["size_bytes"] + 90 * -(-int(t["size_bytes"]) // 1448)) * 80)
            / base_ns[int(t["flow_id"])],
            2,
        )
        for t in transfers
    }

    assert len(transfers) > 50
    assert trips == {2.0}


@pytest.mark.slow
def test_newreno_favours_short_round_trips_and_copa_does_not(simulate: Simulate) -> None:
    """Mathis et al.: 1/RTT at the same loss. Copa: 1 / (delta dq), whatever the RTT."""
    run = simulate("rtt-unfairness")
    base_ns, interval = drawn(run), run.records("interval")
    slopes = []
    for group in (0, 1):
        own = interval[interval["group"] == group]
        flows = np.unique(own["flow_id"])
        goodput = [own["acked_bytes"][own["flow_id"] == flow].sum() for flow in flows]
        # With the queue's 200 kB, most of the time full: 8 ms.
        rtt_ns = [base_ns[int(flow)] + (8e6 if group == 0 else 0) for flow in flows]
        slopes.append(np.polyfit(np.log(rtt_ns), np.log(goodput), 1)[0])

    assert slopes[0] == pytest.approx(-1, abs=0.2)
    assert abs(slopes[1]) < 0.15
    assert run.groups[1]["jfi"] > 0.95 > 0.7 > run.groups[0]["jfi"]


def test_the_report_shows_goodput_against_base_rtt(simulate: Simulate) -> None:
    """One dot per flow that sent something, and what was drawn; nothing where all are alike."""
    run = simulate("rtt-unfairness", "duration=3s", "warmup=1s")
    data = read(folder.load(run.folder))
    assert data.flows is not None
    (figure,) = sections.draw_base_rtts(data, data.flows)
    base_ms = sorted(float(x) for mark in figure.panels[0].marks for x in mark.x)
    sent = data.flows.each.filter(data.flows.each["goodput_bps"] > 0)

    assert 70 < len(base_ms) == sent.height
    assert base_ms == pytest.approx(
        sorted(drawn(run)[flow] / 1e6 for flow in sent["flow_id"].to_list())
    )
    assert "newreno: log_uniform, 6.09 ms to 222 ms, median 45.2 ms; copa: " in figure.caption
    assert bottleneck.propagation_ns(data.run.config) is None
    alike = simulate(
        "rtt-unfairness",
        "duration=3s",
        "warmup=1s",
        "flows=[{cc: copa, path: {forward: [newreno_link, copa_link], reverse: back}}]",
    )
    data = read(folder.load(alike.folder))
    assert data.flows is not None
    assert not list(sections.draw_base_rtts(data, data.flows))


@pytest.mark.parametrize(
    ("base_rtt", "sentence"),
    [
        ("{uniform: {min: 1ms, max: 2ms}}", "draws begin at 1 ms, which is less than the delay"),
        (
            "{uniform: {min: 9s, max: 30s}}",
            "not less than the run, 20000 ms; write a smaller max or a longer duration",
        ),
        ("{uniform: {min: 90ms, max: 50ms}}", "max: 50 ms is less than min, 90 ms"),
        ("{table: {file: missing.txt}}", "missing.txt"),
    ],
)
def test_a_wrong_one_is_refused(simulate: Simulate, base_rtt: str, sentence: str) -> None:
    """One sentence with its place."""
    text = ALONE.replace("{log_uniform: {min: 4ms, max: 200ms}}", base_rtt)
    with pytest.raises(AssertionError, match=sentence):
        simulate(text)
