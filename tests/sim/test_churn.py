# SPDX-License-Identifier: BSD-3-Clause
"""Flows that come and go one after the other."""

from __future__ import annotations

import numpy as np
import pytest

from .conftest import Program, Simulate

CLOSE = 2
CHURN = """
duration: 20s
paths:
  forward:
    - link: {rate: 100Mbit, queue: {fifo: {limit: 1BDP}}}
    - delay: {delay: 10ms}
  reverse: [{delay: {delay: 10ms}}]
flows: [%s]
"""


def test_flows_come_and_go_each_second(simulate: Simulate) -> None:
    """configs/churn.yaml: flow i opens at i and closes at 10 + i seconds."""
    run = simulate("churn")
    flows = run.records("flows")
    opened = flows[flows["event"] == 1]
    closed = flows[flows["event"] == CLOSE]

    assert opened["flow_id"].tolist() == list(range(10))
    assert opened["start_ns"].tolist() == [i * 10**9 for i in range(10)]
    # The last ends with the run; what others have in flight at their stop takes a round trip more.
    assert closed["flow_id"].tolist() == list(range(len(closed)))
    assert len(closed) >= 9
    late_ns = closed["ts_ns"].astype(np.int64) - (10 + closed["flow_id"].astype(np.int64)) * 10**9
    assert (late_ns >= 0).all()
    assert (late_ns < 0.2e9).all()


@pytest.mark.parametrize(
    ("group", "sentence"),
    [
        ("{cc: cubic, stop_stagger: 1s}", "without stop no flow stops"),
        ("{cc: cubic, count: 3, stagger: 9s, stop: 5s, stop_stagger: 1s}", "before it starts"),
        ("{cc: cubic, stop: 5s, stop_stagger: 1s, source: {closed: {}}}", "source closed says"),
    ],
)
def test_wrong_times_are_refused(sim: Program, group: str, sentence: str) -> None:
    sim.refuse(CHURN % group, sentence)
