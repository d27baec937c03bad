# SPDX-License-Identifier: BSD-3-Clause
"""Long round trips: links that stand still, paths that become shorter, delays beyond seconds."""

from __future__ import annotations

import pytest

from .conftest import Run, Simulate

PATH = """
seed: 1
duration: {duration}
paths:
  forward:
    - link: {{rate: 10Mbit, queue: {{fifo: {{limit: 50pkt}}}}}}
    - delay: {{delay: {delay}}}
  reverse:
    - delay: {{delay: {delay}}}
flows:
  - {{cc: newreno, host: linux, pacing: fq}}
schedule: {schedule}
telemetry: {{level: 1, interval: 5s}}
"""
PAYLOAD_BPS = 10e6 * 1448 / 1538  # of a link of 10 Mbit/s


def interval_bps(run: Run, end_s: int) -> float:
    """Goodput of the interval of 5 s that ends then, in bit/s."""
    records = run.records("interval")
    found = records[records["ts_ns"] == end_s * 10**9]
    return float(found["delivered_bytes"].sum()) * 8 / 5


def test_srtt_follows_a_link_that_was_down(simulate: Simulate) -> None:
    """No rate from 5 to 60 s: 55 s are in srtt, which paces the recovery that follows.

    Every ACK of it is of a segment sent twice, and srtt learns from their timestamps (RFC 6298,
    section 3). Linux (reno, fq) is back in the interval that ends at 80 s, with 4.13 Mbit/s in all.
    A pacing slot is 3 s while srtt is 55 s; one more or less is 6 % of the run. With a srtt that
    stood still the flow was back in the interval to 105 s, with 1.64 Mbit/s.
    """
    down = "[{at: 5s, forward.link.rate: 0}, {at: 60s, forward.link.rate: 10Mbit}]"
    run = simulate(PATH.format(duration="120s", delay="10ms", schedule=down))

    assert interval_bps(run, 60) == 0
    for end_s in range(80, 125, 5):
        assert interval_bps(run, end_s) >= 0.95 * PAYLOAD_BPS, end_s
    assert run.groups[0]["goodput_bps"] == pytest.approx(4.13e6, rel=0.06)


def test_srtt_follows_a_path_that_becomes_shorter(simulate: Simulate) -> None:
    """1.2 s become 10 ms, in a recovery. The next 5 s: Linux 9.6 Mbit/s; with a srtt of 1.2 s 6.8.

    What the first repair lets through was sent before, so that it may be more than the link's rate.
    """
    shorter = "[{at: 60s, forward.delay.delay: 5ms}, {at: 60s, reverse.delay.delay: 5ms}]"
    run = simulate(PATH.format(duration="70s", delay="600ms", schedule=shorter))

    assert interval_bps(run, 65) >= 0.9 * 9.6e6
    assert interval_bps(run, 70) >= 0.99 * PAYLOAD_BPS


def test_no_timeout_at_a_round_trip_of_80_seconds(simulate: Simulate) -> None:
    """`rto_max` is 60 s, and a cap of the backoff: no timeout is shorter than the path.

    It cut what was measured, so that nearly each window timed out: 0.03 of 1 Mbit/s. Right: NewReno
    with a buffer of one BDP fills the link but for slow start, some 13 of 250 round trips, and the
    loss at its end.
    """
    run = simulate(
        PATH.format(duration="20000s", delay="40s", schedule="[]"),
        "paths.forward.link={rate: 1Mbit, queue: {fifo: {limit: 1BDP}}}",
        "flows=[{cc: newreno}]",
        "telemetry.interval=1000s",
    )

    assert run.groups[0]["timeouts"] == 0
    assert run.groups[0]["goodput_bps"] > 0.9 * PAYLOAD_BPS / 10
