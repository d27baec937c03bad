# SPDX-License-Identifier: BSD-3-Clause
"""Losses and other impairments of a path as TCP sees them."""

import math

import numpy as np
import pytest

from .conftest import Simulate

RTT_S, SEGMENT_BITS = 0.02, 1460 * 8


def mathis_bps(events_per_packet: float) -> float:
    """MSS/RTT sqrt(3/(2p)), an ACK per packet (Mathis and others, CCR 27(3), 1997)."""
    return SEGMENT_BITS / RTT_S * math.sqrt(1.5 / events_per_packet)


def test_what_is_corrupted_is_discarded_by_the_receiver(simulate: Simulate) -> None:
    """To TCP it is a loss (Mathis, as above); no path counts a drop, each host counts its own."""
    run = simulate(
        "bursty-loss",
        "paths.forward.0={corrupt: {rate: 0.5%}}",
        "paths.reverse=[{corrupt: {rate: 0.1%}}, {delay: {delay: 10ms}}]",
    )
    group, ledger = run.summary["groups"][0], run.summary["ledger"]["paths"]
    assert group["goodput_bps"] / 10 == pytest.approx(mathis_bps(0.005), rel=0.05)
    assert ledger["forward"]["drops"] == ledger["reverse"]["drops"] == {}
    for path, host, rate in (("forward", "receiver", 0.005), ("reverse", "sender", 0.001)):
        packets = ledger[path]["out"]["pkts"]
        deviation = math.sqrt(packets * rate)
        errors = run.summary["ledger"]["hosts"][f"{host}_checksum_errors"]
        assert abs(errors - packets * rate) < 3.3 * deviation


TWICE = """
seed: 1
duration: 20s
paths:
  forward:
    - duplicate: {{rate: {data}}}
    - link: {{rate: 40Mbit, queue: {{fifo: {{limit: 2BDP}}}}}}
    - duplicate: {{rate: {behind}, correlation: 50%}}
    - delay: {{delay: 10ms}}
  reverse:
    - duplicate: {{rate: {acks}}}
    - delay: {{delay: 10ms}}
flows:
  - {{count: 2, cc: {{fixed: {{cwnd: 20}}}}, stop: 15s}}
telemetry: {{level: 3, arrivals: yes}}
"""


def test_duplicates_cost_the_sender_nothing(simulate: Simulate) -> None:
    """Each is reported by D-SACK, which reduces no window (RFC 2883, section 5.1).

    Nor do ACKs that come twice. The numbers of packets are the hosts' own; a copy's number in
    telemetry is its original's with one bit more: the highest, and behind the link the next one.
    """
    run = simulate(TWICE.format(data="10%", behind="3%", acks="10%"))
    group, ledger = run.groups[0], run.summary["ledger"]
    forward, back = (ledger["paths"][path] for path in ("forward", "reverse"))
    assert group["retransmits"] == group["cwnd_reductions"] == group["spurious"] == 0
    assert group["timeouts"] == 0
    for path, rate in ((forward, 0.1 + 0.03 + 0.003), (back, 0.1)):
        packets = path["in"]["pkts"]
        assert path["drops"] == {}
        assert path["inside"]["pkts"] == 0
        assert path["duplicated"]["pkts"] / packets == pytest.approx(rate, rel=0.1)
        assert path["out"]["pkts"] == packets + path["duplicated"]["pkts"]
    # Of each flow the SYN may be one of them.
    copies = forward["duplicated"]["pkts"] - run.summary["receivers"]["duplicate_segs"]
    assert 0 <= copies <= 4
    records = run.records("packets")
    records = records[records["path"] == 0]
    made = records[records["event"] == 7]
    assert len(made) == forward["duplicated"]["pkts"]
    assert set(made["pkt_id"][made["stage"] == 0] >> 30) == {2}
    assert set(made["pkt_id"][made["stage"] == 2] >> 30) == {1, 3}
    assert len(np.unique(made["pkt_id"])) == len(made)


def test_duplicates_make_no_loss_a_spurious_one(simulate: Simulate) -> None:
    """A D-SACK tells of a retransmission only if its range was sent again (RFC 2883, section 4).

    A copy of a retransmission cannot be told from one that was not needed (RFC 3708, section 3).
    """
    text = TWICE.format(data="2%", behind="2%", acks="0%").replace("fixed: {cwnd: 20}", "bbr: {}")
    run = simulate(text.replace("    - link", "    - loss: {rate: 0.5%}\n    - link"))
    group, forward = run.groups[0], run.summary["ledger"]["paths"]["forward"]
    assert group["retransmits"] > 200
    assert forward["duplicated"]["pkts"] > 5 * group["retransmits"]
    copies = 0.04 * group["retransmits"]
    assert abs(group["spurious"] - copies) < 3.3 * math.sqrt(copies)


def test_a_copy_may_be_lost_where_its_packet_is_not(simulate: Simulate) -> None:
    """With all sent twice through independent losses, one in 400 is lost twice, not one in 20."""
    text = TWICE.format(data="100%", behind="0%", acks="0%")
    run = simulate(text.replace("    - link", "    - loss: {rate: 5%}\n    - link"))
    forward = run.summary["ledger"]["paths"]["forward"]
    sent = forward["in"]["pkts"]
    assert forward["duplicated"]["pkts"] == sent
    lost = forward["drops"]["loss"]["pkts"]
    assert abs(lost - 0.05 * 2 * sent) < 3.3 * math.sqrt(0.05 * 0.95 * 2 * sent)
    twice = run.groups[0]["retransmits"]
    assert abs(twice - sent / 400) < 3.3 * math.sqrt(sent / 400) + 1
