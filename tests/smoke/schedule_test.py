# SPDX-License-Identifier: BSD-3-Clause
"""A live run is offered what a run in virtual time is: the schedule of every kind of source."""

import subprocess

import numpy as np
from lab import outcome
from loopback_test import Loop
from weir.analysis.ring import open_ring

CONFIG = """
seed: 11
duration: 4s
paths:
  forward:
    - link: {rate: 1Gbit, queue: {fifo: {limit: 1BDP}}}
    - delay: {delay: 5ms}
  reverse:
    - delay: {delay: 5ms}
flows:
  - {count: 64, cc: newreno, source: {poisson: {interval: 10ms, sizes: {law: pareto, mean: 20kB}}}}
  - {count: 4, cc: cubic, source: {closed: {think: 60ms, sizes: {law: exponential, mean: 30kB}}}}
  - {count: 4, cc: copa, source: {request: {think: 50ms, service: 2ms, sizes: {mean: 10kB}}}}
  - {count: 4, cc: {fixed: {cwnd: 4}}, source: {on_off: {on: 40ms, off: 80ms}}}
  - {count: 2, cc: bbr, source: {video: {segment: 200ms}}}
  - {count: 2, source: {udp: {rate: 2Mbit, gaps: exponential}}}
  - {count: 2, source: {udp: {rate: 3Mbit}}}
telemetry: {level: 1, interval: 100ms}
"""
POISSON, CLOSED, REQUEST, ON_OFF, VIDEO, RANDOM_UDP, UDP = range(7)
LIVE = """
live:
  switch:
    lcores: [1]
    start: traffic
    ports:
      - {name: left, dev: net_memif0, path: reverse}
      - {name: right, dev: net_memif1, path: forward}
  sender:
    lcores: [0]
    ports:
      - {name: a, role: sender, dev: net_memif0}
      - {name: b, role: receiver, dev: net_memif1}
"""


def schedule(transfers, group):
    """Transfers by their place: of a group's schedule, or of a flow's."""
    own = transfers[transfers["group"] == group]
    flows = np.zeros(len(own)) if group == POISSON else own["flow_id"]
    return {
        (int(flow), int(record["number"])): record for flow, record in zip(flows, own, strict=True)
    }


def test_live_and_virtual_time_offer_the_same(lab, root, build):
    """Sizes, pauses and arrivals are those of virtual time, transfer by transfer."""
    config = lab.tmp / "sources.yaml"
    config.write_text(CONFIG + LIVE)
    subprocess.run(
        [build / "tools/sim/weir-sim", config, "--out", lab.tmp / "virtual"],
        check=True,
        timeout=120,
    )
    loop = Loop(lab, root, config=config)
    switch, sender = loop.run()
    assert outcome(switch) == "ok"
    assert outcome(sender) == "ok"
    assert switch["ledger"]["balanced"]
    assert sender["ledger"]["balanced"]
    virtual = open_ring(lab.tmp / "virtual/transfers.ring").records
    live = open_ring(loop.folder / "transfers.ring").records

    for group in (POISSON, CLOSED, REQUEST, ON_OFF, VIDEO):
        ours, theirs = schedule(live, group), schedule(virtual, group)
        both = ours.keys() & theirs.keys()
        # A busy machine answers later and ends sooner, so that they get less far, but begin alike.
        assert len(both) > {POISSON: 100, CLOSED: 20, REQUEST: 20, ON_OFF: 10, VIDEO: 10}[group]
        for at in both:
            assert ours[at]["gap_ns"] == theirs[at]["gap_ns"]
        if group in (POISSON, CLOSED, REQUEST):
            assert [ours[at]["size_bytes"] for at in both] == [
                theirs[at]["size_bytes"] for at in both
            ]
        if group in (POISSON, VIDEO):  # the times do not depend on the network
            first = min(both)
            for at in both:
                if at[0] == first[0]:
                    since = ours[at]["start_ns"] - ours[first]["start_ns"]
                    assert since == theirs[at]["start_ns"] - theirs[first]["start_ns"]


def test_live_datagrams_are_as_many_as_in_virtual_time(lab, root):
    """At a rate that both keep: what was sent, arrived and was reported.

    After a stall the sender leaves datagrams out, and the switch's ring takes no more of them.
    """
    config = lab.tmp / "udp.yaml"
    config.write_text(CONFIG.replace("interval: 10ms", "interval: 100ms") + LIVE)
    loop = Loop(lab, root, config=config)
    switch, sender = loop.run()
    stalled_ns = switch["host"]["stalled_ns"] + sender["sender_host"]["stalled_ns"]
    exact, poisson = sender["groups"][UDP], sender["groups"][RANDOM_UDP]

    assert exact["cc"] == "udp"
    # Two flows, 4 s, 3 Mbit/s: the last datagrams may be late.
    for group, rate_bps, off in ((exact, 3e6, 70), (poisson, 2e6, 5 * (8 * 2e6 / 9600) ** 0.5)):
        due = 2 * 4 * rate_bps / 9600
        assert -off < due - group["sent_segs"] < off + due / 4 * stalled_ns / 1e9
        assert 0 < group["acked_bytes"] <= 1200 * group["sent_segs"]
        assert group["acked_bytes"] > (0.9 - stalled_ns / 4e9) * 1200 * group["sent_segs"]
