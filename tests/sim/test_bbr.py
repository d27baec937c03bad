# SPDX-License-Identifier: BSD-3-Clause
"""BBR against the constants of its draft."""

from __future__ import annotations

import numpy as np
import pytest

from .conftest import Simulate

IDLE = """
duration: 16s
paths:
  forward: [{link: {rate: 100Mbit, queue: {fifo: {limit: 4BDP}}}}, {delay: {delay: 20ms}}]
  reverse: [{delay: {delay: 20ms}}]
flows:
  - {cc: CONTROL, source: {request: {service: 11s, times: fixed, sizes: {mean: 500kB}}}}
telemetry: {level: 3}
"""


@pytest.mark.parametrize("control", ["bbr", "bbr3"])
def test_the_first_data_after_an_idle_start_begins_no_probe_rtt(
    simulate: Simulate, control: str
) -> None:
    """A server that answers 11 s after the handshake: RTprop is old, but nothing was queued.

    Linux's bbr sends 10 10 20 36 in the first round trips, as its windows grow; PROBE_RTT would be
    4 segments for five round trips (200 ms).
    """
    run = simulate(IDLE.replace("CONTROL", control))
    sent = run.records("packets")
    at_ns = sent["ts_ns"][sent["event"] == 2]  # a segment waits for 10 in front of it, 1.2 ms
    rounds = np.bincount(
        (at_ns - at_ns[at_ns > 5e9][0]).astype(np.int64)[at_ns > 5e9] // 39_000_000
    )

    assert run.modes() == [] or run.modes()[0][3] != "probe_rtt"
    assert rounds[0] == 10
    assert rounds[1] == 20
    assert np.all(rounds[:4] >= 10)


def test_states_and_gains(simulate: Simulate) -> None:
    """STARTUP doubles the rate per round trip, DRAIN empties the queue, then gains cycle."""
    run = simulate("bbr-lone", "duration=9s", "warmup=0s")
    records = run.records("cc")
    changes = run.modes()

    assert [mode for *_, mode in changes] == ["drain", "probe_bw"]
    assert changes[1][0] < 1.5
    # The pipe was full after log2(BDP / 10) = 5 round trips; 3 more say so, queueing.
    steady = records[records["ts_ns"] > changes[1][0] * 1e9]
    gains = np.unique(np.round(steady["obs2"], 4))
    assert gains.tolist() == [0.75, 1.0, 1.25]
    paced = steady["pacing_bps"] / (0.99 * steady["obs2"] * steady["obs0"])
    assert np.all(np.abs(paced - 1) < 1e-5)
    # Each cycle has one round trip of 1.25, at most one of 0.75, and six of 1.
    of_one = np.mean(np.diff(steady["ts_ns"].astype(float))[steady["obs2"][1:] == 1]) * np.sum(
        steady["obs2"][1:] == 1
    )
    share = of_one / float(steady["ts_ns"][-1] - steady["ts_ns"][0])
    assert 0.65 <= share <= 0.80
    # BtlBw is the link's rate in payload.
    assert float(np.median(steady["obs0"])) == pytest.approx(100e6 * 1448 / 1538, rel=0.01)


@pytest.mark.parametrize("cc", ["bbr", "bbr3"])
def test_pauses_measure_the_round_trip(simulate: Simulate, cc: str) -> None:
    """Linux's CA_EVENT_TX_START, section 5.4.1 of BBRv3's draft: a pause has emptied the queue.

    Responses with pauses of 50 ms, below the least timeout of 200 ms. Only pauses longer than a
    timeout counted, and so PROBE_RTT came as often as in a flow that never pauses.
    """
    run = simulate(PAUSES.replace("CC", cc))

    assert "probe_rtt" not in [mode for *_, mode in run.modes()]


PAUSES = """
duration: 30s
warmup: 0s
paths:
  forward:
    - link: {rate: 100Mbit, queue: {fifo: {limit: 1BDP}}}
    - delay: {delay: 10ms}
  reverse: [{delay: {delay: 10ms}}]
flows:
  - {cc: CC, source: {request: {think: 50ms, times: fixed, sizes: {mean: 201272B}}}}
telemetry: {level: 1}
"""
