# SPDX-License-Identifier: BSD-3-Clause
"""The estimates of small probes beside closed forms, and beside what a Copa flow then obtains."""

from __future__ import annotations

import json

import numpy as np
import pytest

from .conftest import Simulate

PROBE_EVENT = 12
PAYLOAD_BITS = 1448 * 8
FRAME_S = 1538 * 8 / 100e6
PROBE_S = (54 + 12 + 1 + 24) * 8 / 100e6
WINDOW = 263
PATH = """
seed: 1
duration: {duration}
paths:
  forward:
    - link: {{rate: 100Mbit, queue: {{fifo: {{limit: 5BDP}}}}}}
    - delay: {{delay: 10ms}}
  reverse:
    - delay: {{delay: 10ms}}
telemetry: {{level: 1, interval: 100ms}}
flows:
"""
LOAD = "  - {{cc: {{fixed: {{cwnd: {window}}}}}, ack_every: 1, start: {start}}}\n"
PROBES = "  - {{name: probes, cc: fixed, start: {start}, source: {{probe: {{{options}}}}}}}\n"


@pytest.mark.parametrize(
    ("load_start", "probe_start", "options"),
    [
        ("0s", "1s", f"rtt_min: {20e6 + PROBE_S * 1e9:.0f}ns, count: 30"),
        ("100ms", "0s", "count: 60"),
    ],
    ids=["RTTmin is given", "RTTmin was seen before the load"],
)
def test_a_known_load(simulate: Simulate, load_start: str, probe_start: str, options: str) -> None:
    """A window of W segments keeps W - 1 of them waiting or on the path when one arrives.

    So the queue holds (W - 1) frames less 20 ms when a segment arrives, and one frame more behind
    it; a probe that comes in between waits for something between the two. dq is that wait, the
    rate 1 / (delta dq), and 1 MB takes 2 RTT + l / lambda.
    """
    text = PATH.format(duration="2s") + LOAD.format(window=WINDOW, start=load_start)
    run = simulate(text + PROBES.format(start=probe_start, options=options))
    probe = run.groups[1]["probe"]
    wait_ns = ((WINDOW - 1) * FRAME_S - 20e-3) * 1e9
    slack_ns = 4 * PROBE_S * 1e9  # the probes of one round trip wait for each other

    assert probe["rtt_min_ns"] == pytest.approx(20e6 + PROBE_S * 1e9, abs=2)
    assert wait_ns - slack_ns <= probe["dq_ns"] <= wait_ns + FRAME_S * 1e9 + slack_ns
    assert probe["rate_bps"] == pytest.approx(PAYLOAD_BITS / (0.5 * probe["dq_ns"] * 1e-9))
    segments = 1e6 / 1448
    rtt_ns = probe["rtt_min_ns"] + probe["dq_ns"]
    transfer_ns = segments * 0.5 * probe["dq_ns"]
    assert probe["completion_ns"] == pytest.approx(2 * rtt_ns + transfer_ns)

    event = next(e for e in run.records("events") if e["event"] == PROBE_EVENT)
    assert event["value"] == probe["dq_ns"]
    assert event["before"] == pytest.approx(probe["rtt_min_ns"], rel=1e-6)
    assert event["value2"] == pytest.approx(probe["rate_bps"], rel=1e-6)
    assert event["value3"] == pytest.approx(probe["completion_ns"], rel=1e-6)


def test_an_empty_path_has_no_limit(simulate: Simulate) -> None:
    """Without a queue 1 / (delta dq) is infinite: null in JSON; two round trips remain."""
    run = simulate(PATH.format(duration="1s") + PROBES.format(start="0s", options=""))
    probe = run.groups[0]["probe"]

    assert (probe["flows"], probe["answered"]) == (1, 20)
    assert probe["dq_ns"] == 0
    assert probe["rate_bps"] is None
    assert probe["completion_ns"] == 2 * probe["rtt_min_ns"]
    assert json.dumps(probe)
    assert np.sum(run.records("events")["event"] == PROBE_EVENT) == 1


@pytest.mark.parametrize(("flows", "delta"), [(10, 0.5), (20, 1.0), (40, 2.0)])
def test_what_a_copa_flow_then_obtains(simulate: Simulate, flows: int, delta: float) -> None:
    """Beside n Copa flows the estimate is C / n; a further flow obtains C / (n + 1).

    Both within 20 % of each other, the band that the reference of this project sets ("accurate" in
    the paper).
    """
    copa = f"cc: {{copa: {{delta: {delta}}}}}, ack_every: 1"
    text = (
        PATH.format(duration="60s")
        + f"  - {{{copa}, count: {flows}, stagger: 200ms}}\n"
        + PROBES.format(start="20s", options=f"count: 64, interval: 5ms, delta: {delta}")
        + f"  - {{name: newcomer, {copa}, start: 21s}}\n"
    )
    run = simulate(text, "warmup=20s")  # probes of the warm-up do not count
    estimate_bps = run.groups[1]["probe"]["rate_bps"]
    obtained_bps = run.groups[2]["goodput_bps"]
    capacity_bps = PAYLOAD_BITS / FRAME_S

    assert obtained_bps == pytest.approx(capacity_bps / (flows + 1), rel=0.1)
    assert estimate_bps == pytest.approx(obtained_bps, rel=0.2)
