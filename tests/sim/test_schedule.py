# SPDX-License-Identifier: BSD-3-Clause
"""Changes while a run goes on, and what they and extreme configs ask of virtual time."""

from __future__ import annotations

import numpy as np
import pytest

from .conftest import Simulate

PATHS = """
duration: {duration}
warmup: {warmup}
paths:
  forward:
    - link: {{rate: {rate}, queue: {{fifo: {{limit: 1000pkt}}}}}}
    - delay: {{delay: {delay}}}
  reverse: [{{delay: {{delay: {delay}, on_decrease: {how}}}}}]
flows:
  - {{count: {flows}, cc: {cc}}}
schedule: [{change}]
telemetry: {{level: 3}}
"""


def config(**values: object) -> str:
    """The text above, with these values in place of the usual ones."""
    usual = {
        "duration": "2s",
        "warmup": "0s",
        "rate": "10Mbit",
        "delay": "10ms",
        "how": "reorder",
    }
    return PATHS.format(**{**usual, "flows": 1, "cc": "cubic", "change": "", **values})


def test_a_slow_frame_does_not_hold_the_link(simulate: Simulate) -> None:
    """1 kbit/s for 200 ms, then 100 Mbit/s: nothing was delivered for 12 s."""
    change = "{at: 1s, forward.link.rate: 1kbit}, {at: 1200ms, forward.link.rate: 100Mbit}"
    run = simulate(config(change=change, warmup="1500ms", duration="3s"))

    assert run.groups[0]["goodput_bps"] > 50e6


@pytest.mark.parametrize(("how", "together"), [("reorder", 1), ("fifo", 30), ("step", 30)])
def test_a_lowered_delay_of_acks(simulate: Simulate, how: str, together: int) -> None:
    """50 -> 5 ms on the way back: only in order do the ACKs of 45 ms come in one nanosecond."""
    change = "{at: 1s, reverse.delay.delay: 5ms}"
    cc = "{fixed: {cwnd: 100}}, ack_every: 1"
    run = simulate(config(change=change, delay="50ms", how=how, cc=cc))
    acks = run.records("cc")["ts_ns"]
    most = int(np.unique(acks, return_counts=True)[1].max())

    assert most == together if together == 1 else most >= together


def test_memory_for_what_the_schedule_leads_to(simulate: Simulate) -> None:
    """A hundredfold rate: flows were held back by a scoreboard for the first one."""
    run = simulate(
        config(
            change="{at: 500ms, forward.link.rate: 1Gbit}",
            duration="3s",
            warmup="2s",
            flows=4,
            cc="bbr",
        ),
        "telemetry.level=1",
    )

    assert run.groups[0]["goodput_bps"] > 0.9e9


def test_a_microsecond_of_delay_costs_nothing_while_nothing_happens(
    simulate: Simulate,
) -> None:
    """1000 virtual seconds of 2 us took minutes: windows were as short as the delay."""
    run = simulate(
        config(rate="100kbit", delay="1us", duration="1000s"),
        "telemetry.level=0",
        "warmup=1s",
    )

    assert run.link["utilisation"] > 0.99


def test_edges_that_are_slower_than_what_comes(simulate: Simulate) -> None:
    """They dropped nothing, held what came for ever, and the run aborted."""
    run = simulate(
        config(duration="60s", flows=4, cc="{fixed: {cwnd: 5000}}").replace(
            "    - link", "    - edges: {count: 1, rate: 1Mbit}\n    - link"
        ),
        "telemetry.level=1",
    )
    drops = run.summary["ledger"]["paths"]["forward"]["drops"]

    assert drops["queue_full"]["pkts"] > 10000
