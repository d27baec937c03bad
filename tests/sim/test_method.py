# SPDX-License-Identifier: BSD-3-Clause
"""What an experiment's method needs: drops per flow."""

from __future__ import annotations

import numpy as np
from weir.ring import open_ring

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
