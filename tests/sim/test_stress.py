# SPDX-License-Identifier: BSD-3-Clause
"""Each congestion control where paths misbehave: what it may cost, and why no more.

`pytest tests/sim/test_stress.py -s -q` prints a row for each run: the table of control by scenario.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from .conftest import ROOT, Program, Run, Simulate

STUDIES = ROOT / "tools/src/weir/studies"
CONTROLS = ("newreno", "cubic", "bbr", "copa")
LOSS_BASED = ("newreno", "cubic")
PAYLOAD = 1448 / 1538  # of a frame's time on the wire
SEG_BITS = 1448 * 8
TIMEOUT, UNDO = 2, 10  # enum tel_event
ENQUEUE = 1  # enum tel_packet_event

PATHS = """
seed: {seed}
duration: {duration}
warmup: {warmup}
paths:
  forward:
    - loss: {{rate: {loss}}}
    - link: {{rate: {rate}, queue: {{fifo: {{limit: {limit}}}}}}}
    - delay: {{delay: {delay}{late}, on_decrease: {on_decrease}}}
  reverse:
    - loss: {{rate: 0%}}
    - delay: {{delay: {delay}, on_decrease: {on_decrease}}}
flows: [{{count: {flows}, cc: {cc}, ack_every: {ack_every}}}]
schedule: [{change}]
telemetry: {{level: {level}}}
"""
USUAL = {
    "seed": 1,
    "duration": "20s",
    "warmup": "0s",
    "rate": "100Mbit",
    "limit": "1BDP",
    "loss": "0%",
    "delay": "20ms",
    "late": "",
    "on_decrease": "fifo",
    "flows": 1,
    "ack_every": 1,
    "change": "",
    "level": 0,
}

Stress = Callable[..., tuple[Run, dict[str, Any]]]


@pytest.fixture
def stress(simulate: Simulate, request: pytest.FixtureRequest) -> Stress:
    """stress(cc, key=value, ...): a run on the paths above, and the figures of its flows."""

    def run(cc: str, **values: object) -> tuple[Run, dict[str, Any]]:
        done = simulate(PATHS.format(**{**USUAL, "cc": cc, **values}))
        flows = done.groups[0]
        print(
            f"\n{request.node.name:44} {flows['goodput_bps'] / 1e6:9.3f} Mbit/s"
            f" {flows['timeouts']:4d} timeouts ({flows['spurious_timeouts']} undone)"
            f" {flows['retransmits']:6d} sent again ({flows['spurious']} for nothing)"
            f" {flows['cwnd_reductions']:4d} reductions ({flows['spurious_recoveries']} undone)",
            end="",
        )
        return done, flows

    return run


@pytest.mark.parametrize("cc", CONTROLS)
def test_outage(stress: Stress, cc: str) -> None:
    """Half a second of 100 % loss. CUBIC stood at one segment ever after: 30.9 Mbit/s.

    The timeouts come 0.24 and 0.72 s after the last ACK, the second one into the mended path. With
    the starts before and after, ten round trips each, 2 of 30 s are without the full rate.
    """
    outage = "{at: 10s, forward.loss.rate: 100%}, {at: 10500ms, forward.loss.rate: 0%}"
    _, flows = stress(cc, change=outage, duration="30s")

    assert flows["goodput_bps"] >= (1 - 3 / 30) * 100e6 * PAYLOAD
    assert 1 <= flows["timeouts"] <= 2
    assert flows["spurious"] <= 1
    assert (
        flows["cwnd_reductions"] <= 6
    )  # the first overshoot and the outage, a few round trips each


@pytest.mark.parametrize("loss", [0.0074, 0.03])
@pytest.mark.parametrize("cc", CONTROLS)
def test_satellite(stress: Stress, cc: str, loss: float) -> None:
    """42 Mbit/s, 800 ms, as in Copa's paper, section 5.1.4: timeouts where repairs were lost.

    One Copa flow had 33.3 Mbit/s and 3 timeouts at 0.74 %; it ignores loss, and so does BBR but for
    the two states in which it measures. Ten loss-based flows have windows of sqrt(3 / 2p) (Mathis),
    and CUBIC those of its curve (RFC 9438, section 5.1) where these are larger.
    """
    flows = 10 if cc in LOSS_BASED else 1
    values = {"rate": "42Mbit", "delay": "400ms", "duration": "120s", "warmup": "40s"}
    run, flows_total = stress(cc, loss=f"{100 * loss}%", flows=flows, **values)
    mathis = math.sqrt(3 / (2 * loss)) * SEG_BITS / 0.8 * flows
    cubic = 1.054 * (0.8 / loss) ** 0.75 * SEG_BITS / 0.8 * flows

    if cc in LOSS_BASED:
        expected = mathis if cc == "newreno" else max(mathis, cubic)
        assert 0.7 * expected <= flows_total["goodput_bps"] <= 1.5 * expected
        # A window of 7 that loses a repair or its tail may have nothing left that tells of it.
        assert flows_total["timeouts"] <= 0.06 * flows_total["cwnd_reductions"] + 1
    else:
        least = 0.95 if cc == "copa" else 0.8
        assert flows_total["goodput_bps"] >= least * (1 - loss) * 42e6 * PAYLOAD
        assert flows_total["timeouts"] == 0
        assert run.link["drops"] == 0
    # Only a timeout or a probe of the tail may be for nothing: nothing is late.
    assert flows_total["spurious"] <= flows_total["timeouts"] + 2


def test_two_copa_flows_by_satellite(stress: Stress) -> None:
    """3 % lost: 17.4 Mbit/s and 12 timeouts, each from a repair that was lost as well."""
    values = {"rate": "42Mbit", "delay": "400ms", "duration": "120s", "warmup": "40s"}
    _, flows = stress("copa", loss="3%", flows=2, **values)

    assert flows["goodput_bps"] >= 0.95 * 0.97 * 42e6 * PAYLOAD
    assert flows["timeouts"] == 0


def test_the_papers_rules_do_not_send_without_end(simulate: Simulate) -> None:
    """One of twenty flows sent 960,000 segments in 45 s, of which 170,000 arrived.

    It saw no delay after RTTmin had expired in a full queue, and its velocity doubled on.
    """
    config = (STUDIES / "copa/c8.yaml").read_text()
    flow = "cc={copa: {dialect: paper, mode: auto}}", "sack=yes", "jitter=0ms"
    changes = [f"flows.{i}.{change}" for i in range(20) for change in flow]
    starts = [f"flows.{i}.start={100 * i}ms" for i in range(20)]
    run = simulate(config, "duration=45s", *changes, *starts)

    assert sum(group["sent_segs"] for group in run.groups) < 1.05 * run.link["out_pkts"]


@pytest.mark.parametrize("seed", range(1, 6))
@pytest.mark.parametrize("cc", CONTROLS)
def test_late_packets(stress: Stress, cc: str, seed: int) -> None:
    """One in 2000 comes 15 ms late, none is lost: CUBIC had 15 to 20 Mbit/s, NewReno 17 to 94.

    Reordering was not learned where every late packet had been sent again first. A late packet
    costs a repair until the window for reordering, in steps of 10 ms, is above 15 ms: at the
    second.
    """
    late = ", late: 0.05%, late_by: 15ms"
    _, flows = stress(cc, seed=seed, late=late, duration="30s", warmup="5s")

    assert flows["goodput_bps"] >= 90e6
    assert flows["timeouts"] == 0
    # Nor is the window for reordering forgotten at once: 16 recoveries, some 100 late packets.
    assert flows["spurious"] <= 5
    assert flows["cwnd_reductions"] - flows["spurious_recoveries"] <= 4  # a full queue's


@pytest.mark.parametrize("cc", CONTROLS)
def test_delay_rises(stress: Stress, cc: str) -> None:
    """20 to 600 ms: 507 of 508 retransmissions were for nothing, and the window was halved.

    The ACKs come 580 ms late, the timeout is at 200 and something. What it and the probe before it
    sent again is for nothing; the first ACK says so (F-RTO, Eifel), and the window is as it was.
    """
    rise = "{at: 5s, forward.delay.delay: 590ms}"
    values = {"delay": "10ms", "limit": "1000pkt", "duration": "15s", "warmup": "4500ms"}
    run, flows = stress(cc, change=rise, level=1, **values)
    events = run.records("events")
    (timeout,) = events[events["event"] == TIMEOUT]
    undo = events[events["event"] == UNDO][0]

    assert (flows["timeouts"], flows["spurious_timeouts"]) == (1, 1)
    assert flows["spurious"] <= 3
    # Growth goes on in the round trip until the timeout is found out, hence not less.
    assert undo["value"] >= 0.99 * timeout["before"]


@pytest.mark.parametrize("on_decrease", ["fifo", "step", "reorder"])
@pytest.mark.parametrize("cc", CONTROLS)
def test_delay_falls(stress: Stress, cc: str, on_decrease: str) -> None:
    """50 to 5 ms: CUBIC's recovery took 4.1 s, its repairs left in bursts into the full queue.

    In order nothing is lost but by the queue. Overtaken by more than a round trip, a packet cannot
    be told from a lost one: all on the way (45 ms, 366 segments) may be sent again, not more.
    """
    fall = "{at: 5s, forward.delay.delay: 2500us, reverse.delay.delay: 2500us}"
    run, flows = stress(
        cc, change=fall, delay="25ms", on_decrease=on_decrease, duration="15s", warmup="4900ms"
    )
    overtaken = 0.045 * 100e6 / (1538 * 8) if on_decrease == "reorder" else 0

    assert flows["goodput_bps"] >= 0.93 * 100e6 * PAYLOAD
    assert flows["timeouts"] == 0
    assert flows["spurious"] <= overtaken
    # A window for 50 ms is 450 segments too large, and is found out once in one or two round trips.
    assert run.link["drops"] <= 1000


RATE_STEPS = {
    # The least goodput after a rise, in Mbit/s. Slow start goes on or is long over: CUBIC's curve
    # leaves its window of a few segments at 0.4 t^3 (RFC 9438), NewReno adds one per round trip.
    "10kbit-100Mbit": {"newreno": 60, "cubic": 80, "bbr": 80, "copa": 80},
    "1Mbit-10Gbit": {"newreno": 250, "cubic": 10, "bbr": 500, "copa": 500},
}


@pytest.mark.parametrize("step", RATE_STEPS)
@pytest.mark.parametrize("cc", CONTROLS)
def test_rate_rises(stress: Stress, cc: str, step: str) -> None:
    """Four decades up: no timeout, nothing sent again for nothing, and the rate is found."""
    low, high = step.split("-")
    start = 60 if low == "10kbit" else 5
    values = {"limit": "100pkt", "duration": "90s"}
    if low == "1Mbit":
        values = {"limit": "1000pkt", "duration": "8s"}
    rise = f"{{at: {start}s, forward.link.rate: {high}}}"
    _, flows = stress(cc, rate=low, change=rise, warmup=f"{start}s", **values)

    assert flows["goodput_bps"] >= RATE_STEPS[step][cc] * 1e6
    assert flows["timeouts"] == 0
    assert flows["spurious"] == 0
    assert flows["cwnd_reductions"] <= 6


@pytest.mark.parametrize("step", ["100Mbit-10kbit", "10Gbit-1Mbit"])
@pytest.mark.parametrize("cc", CONTROLS)
def test_rate_falls(stress: Stress, cc: str, step: str) -> None:
    """Four decades down: the queue of 100 or 1000 packets takes 123 or 12 s to drain, then and now.

    Timers run out while the first packet of the new rate takes longer than they are: each doubles,
    0.24 s to 4 s, and each is undone. The link idles for one timeout at most, of an RTT as long as
    the queue but not more than 60 s (RFC 6298), when all that was behind the full queue is lost.
    At 3.2 s no flow repairs losses of its own: a timeout in recovery is not undone (RFC 5682).
    """
    high, low = step.split("-")
    values = {"limit": "100pkt", "duration": "305s"}
    if high == "10Gbit":
        values = {"limit": "1000pkt", "duration": "33s"}
    fall = f"{{at: 3200ms, forward.link.rate: {low}}}"
    run, flows = stress(cc, rate=high, change=fall, warmup="3200ms", **values)

    assert run.link["utilisation"] >= 1 - 61 / 302
    assert flows["timeouts"] <= 5
    assert flows["spurious"] <= flows["timeouts"]


@pytest.mark.parametrize("flows", [1, 10])
@pytest.mark.parametrize("cc", CONTROLS)
def test_one_packet_of_buffer(stress: Stress, cc: str, flows: int) -> None:
    """Nothing queues: who overshoots loses, and recovers.

    A window that only grows by a segment per round trip is, from nothing to the pipe's 325 in
    13 s, half of it on average, later three quarters. BBR fills the pipe and pays. Copa paces at
    twice its window's rate, so that beyond half a pipe it loses half of what it sends; its answer
    to that much loss (copa.c, 12) keeps it between a quarter and a half.
    """
    least = {"newreno": 0.45, "cubic": 0.45, "bbr": 0.85, "copa": 0.25}[cc]
    _, flows_total = stress(cc, limit="1pkt", flows=flows)

    assert flows_total["goodput_bps"] >= least * 100e6 * PAYLOAD
    # Alone, one that arrives tells of those that did not. Ten may be left with too few for that:
    # BBR, which loses a sixth whatever comes, once a second and flow.
    assert flows_total["timeouts"] <= (0 if flows == 1 else 200 if cc == "bbr" else 10)
    assert flows_total["spurious"] <= flows_total["timeouts"]


@pytest.mark.parametrize("percent", [1, 10, 50])
@pytest.mark.parametrize("cc", CONTROLS)
def test_acks_are_lost(stress: Stress, cc: str, percent: int) -> None:
    """ACKs are cumulative and SACK repeats itself: of every other one no harm comes.

    From the second second on, lest the handshake's own timeouts be measured.
    """
    loss = f"{{at: 1s, reverse.loss.rate: {percent}%}}"
    _, flows = stress(cc, change=loss, warmup="1s")

    assert flows["goodput_bps"] >= 0.97 * 100e6 * PAYLOAD
    assert flows["timeouts"] == 0
    assert flows["spurious"] == 0
    assert flows["cwnd_reductions"] <= 4


@pytest.mark.parametrize("cc", CONTROLS)
def test_stretch_acks(stress: Stress, cc: str) -> None:
    """An ACK for 64 segments lets out 64 at once, into a buffer for five of these.

    Loss-based windows halve below a pipe that bursts do not fill. Copa takes the burst and the wait
    for the 64th, up to 40 ms, for a queue (its limits: copa.c), so 64 to 128 segments per 40 ms and
    that wait are all it has.
    """
    least = {"newreno": 0.75, "cubic": 0.85, "bbr": 0.9, "copa": 64 * SEG_BITS / 0.08 / 100e6}[cc]
    _, flows = stress(cc, ack_every=64)

    assert flows["goodput_bps"] >= least * 100e6 * PAYLOAD
    assert flows["timeouts"] == 0
    assert flows["spurious"] == 0


def test_overshoot_without_hystart_paced(simulate: Simulate) -> None:
    """1 Gbit/s, 100 ms, CUBIC stood at one segment after its first overshoot: 2.8 Mbit/s.

    When slow start paces at twice the rate (Linux), it fills the queue, and the losses are repaired
    without a timeout.
    """
    config = """
duration: 12s
warmup: 5s
paths:
  forward:
    - link: {rate: 1Gbit, queue: {fifo: {limit: 1BDP}}}
  reverse:
    - delay: {delay: 100ms}
flows: [{count: 1, cc: {cubic: {slow_start: classic}}, pacing: srtt}]
telemetry: {level: 0}
"""
    flows = simulate(config).groups[0]

    assert flows["goodput_bps"] >= 0.98 * 1e9 * PAYLOAD
    assert flows["timeouts"] == 0


def test_a_lone_newreno_loses_one_segment_per_halving(simulate: Simulate) -> None:
    """It lost two: three SACKs had let the window grow once more before the loss was declared."""
    config = PATHS.format(
        **{**USUAL, "cc": "newreno", "delay": "10ms", "duration": "60s", "warmup": "10s"}
    )
    flows = simulate(config).groups[0]

    assert flows["cwnd_reductions"] >= 8
    assert flows["retransmits"] == flows["cwnd_reductions"]


def test_paced_slow_start_doubles(simulate: Simulate) -> None:
    """`pacing: srtt` paced slow start at 1.2 windows per round trip: it grew by 1.77, not 2.

    Linux: 2 in slow start. The window when a segment is acknowledged, a round trip later.
    """
    config = PATHS.format(
        **{**USUAL, "cc": "newreno", "rate": "10Gbit", "delay": "50ms", "level": 3, "warmup": "0s"}
    ).replace("ack_every: 1", "ack_every: 1, pacing: srtt")
    records = simulate(config.replace("duration: 20s", "duration: 900ms")).records("cc")
    window = [
        float(records["cwnd_segs"][np.searchsorted(records["ts_ns"], at * 1e8) - 1])
        for at in (4.99, 5.99, 6.99, 7.99)
    ]

    assert np.diff(np.log2(window)) == pytest.approx(1, abs=0.05)


def test_bbr_paces_its_first_window_by_the_handshake(simulate: Simulate) -> None:
    """It was paced as if the RTT were 1 ms: 10 segments at once. Linux takes the SYN's RTT.

    2.89 windows per round trip: the ten take a third of one.
    """
    config = PATHS.format(**{**USUAL, "cc": "bbr", "delay": "50ms", "level": 3})
    records = simulate(config.replace("duration: 20s", "duration: 190ms")).records("packets")
    sent_ns = records["ts_ns"][(records["event"] == ENQUEUE) & (records["size_bytes"] > 1000)]

    assert len(sent_ns) == 10
    assert (sent_ns[-1] - sent_ns[0]) / 100e6 == pytest.approx(0.9 / 2.89, rel=0.05)


@pytest.mark.parametrize("cc", ["bbr", "fixed"])
def test_control_that_hears_no_ecn_refuses_it(sim: Program, cc: str) -> None:
    """BBR ignored 28,422 marks in silence, and starved CUBIC."""
    text = PATHS.format(**{**USUAL, "cc": cc})
    text = text.replace("ack_every: 1", "ack_every: 1, ecn: ect0")
    sim.refuse(text, f"ecn: {cc} does not answer ECN marks")
    text = text.replace("ecn: ect0", "ecn: ect0, ecn_unheard: allow")
    assert sim(text, "--check").returncode == 0
