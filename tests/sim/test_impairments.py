# SPDX-License-Identifier: BSD-3-Clause
"""Losses and other impairments of a path as TCP sees them."""

import math

import pytest

from .conftest import Simulate

SINGLE = "paths.forward.0={loss: {rate: 0.5%}}"
RTT_S, SEGMENT_BITS = 0.02, 1460 * 8


def mathis_bps(events_per_packet: float) -> float:
    """MSS/RTT sqrt(3/(2p)), an ACK per packet (Mathis and others, CCR 27(3), 1997)."""
    return SEGMENT_BITS / RTT_S * math.sqrt(1.5 / events_per_packet)


def test_goodput_follows_from_loss_events(simulate: Simulate) -> None:
    """0.5 % of packets one by one are as many events; in rows of 5 they are a fifth."""
    single = simulate("bursty-loss", SINGLE).summary["groups"][0]
    rows = simulate("bursty-loss").summary["groups"][0]
    assert single["goodput_bps"] / 10 == pytest.approx(mathis_bps(0.005), rel=0.05)
    # A row may meet two flows, so there are a few more events than rows.
    assert rows["goodput_bps"] / 10 == pytest.approx(mathis_bps(0.001), rel=0.08)
