# SPDX-License-Identifier: BSD-3-Clause
"""LEDBAT against RFC 6817: its target, and who gives way."""

from __future__ import annotations

import numpy as np

from .conftest import Simulate

CONFIG = "ledbat-background"
TARGET_NS = 100e6
MIN_CWND = 2


def test_alone_keeps_its_target(simulate: Simulate) -> None:
    """cwnd moves by (1 - delay / target) per round trip, so it rests where the delay is 100 ms."""
    run = simulate(CONFIG, "flows=[{count: 1, cc: ledbat}]")
    rtt_ns = run.records("cc")["rtt_ns"]
    base_ns = run.records("cc")["obs1"].astype(float)

    assert run.link["utilisation"] >= 0.999
    assert run.link["drops"] == 0
    assert abs(np.mean(rtt_ns - base_ns) / TARGET_NS - 1) <= 0.05


def test_yields_to_newreno(simulate: Simulate) -> None:
    """What NewReno leaves is two segments per round trip.

    Buffer and path hold 320 ms x 10 Mbit/s / (1538 x 8 bit) = 260 packets, of which NewReno keeps
    130 after a loss: 140 ms of queue, more than the target. So LEDBAT has two of 130 to 260, less
    than 1.6 %, in the long run.
    """
    run = simulate(CONFIG, "warmup=130s")
    ledbat, newreno = (g["goodput_bps"] for g in run.groups)
    records = run.records("cc")

    assert run.link["utilisation"] >= 0.999
    assert ledbat / (ledbat + newreno) <= MIN_CWND / 130
    assert np.median(records["cwnd_segs"][records["flow_id"] == 0]) == MIN_CWND
