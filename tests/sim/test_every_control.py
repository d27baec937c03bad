# SPDX-License-Identifier: BSD-3-Clause
"""Every control on paths that few are tried on: round trips of seconds, a link that was down."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from .conftest import ROOT, Run, Simulate

# All but `fixed`, which ignores what the tests below change.
REGISTRY = (ROOT / "sender/cc/registry.c").read_text()
CONTROLS = sorted({*re.findall(r"^\tV\((\w+)\)", REGISTRY, re.MULTILINE)} - {"fixed"})


def test_none_is_left_out(weir_sim: Path) -> None:
    """The registry lists what the program does."""
    listed = subprocess.run(
        [weir_sim, "--list", "cc", "--json"], capture_output=True, text=True, check=True
    )
    assert sorted({*CONTROLS, "fixed"}) == sorted(json.loads(listed.stdout)["cc"])


BDP_PKTS = 200
WIRE_BITS, PAYLOAD_BITS = 1538 * 8, 1448 * 8  # of a full packet, its gaps included

LONG = """
seed: 1
duration: {duration}s
warmup: {warmup}s
paths:
  forward:
    - link: {{rate: {rate:.0f}bit, queue: {{fifo: {{limit: {bdp}pkt}}}}}}
    - delay: {{delay: {half}s}}
  reverse:
    - delay: {{delay: {half}s}}
flows:
  - {{cc: {{{cc}: {{{parameters}}}}}, ack_every: 1}}
telemetry: {{level: 1, interval: {interval}s}}
"""

# What controls have of absolute times and rates, per second of the base RTT; rates times it.
TIMES = {
    "bbr": {"min_rtt_window": 5, "probe_rtt": 0.1},
    "bbr3": {
        "min_rtt_window": 5,
        "probe_rtt": 0.1,
        "probe_rtt_interval": 2.5,
        "probe_wait": 1,
    },
    "copa": {"rtt_min_window": 5},
    "lola": {"qlow": 0.005, "qtarget": 0.025, "hold": 1.25, "measure": 0.2},
    "ledbat": {"target": 0.0025},
    "swift": {"base_target": 0.025, "fs_range": 0},
    "timely": {"t_low": 0.0025, "t_high": 0.025},
}
RATES = {
    "pcc": {"min_rate": 40e3},
    "vivace": {"min_rate": 40e3},
    "timely": {"min_rate": 40e3, "delta": 40e3},
}


def parameters(cc: str, rtt_s: float) -> str:
    """A control's parameters for a base RTT of so many seconds."""
    of = {key: f"{value * rtt_s:.6f}s" for key, value in TIMES.get(cc, {}).items()}
    of |= {key: f"{value / rtt_s:.3f}bit" for key, value in RATES.get(cc, {}).items()}
    if cc in ("cubic", "lola"):
        of["c"] = f"{64 / rtt_s**3:.6f}"
    if cc == "lola":
        of["phi"] = f"{175 * rtt_s:g}"
    if cc == "vivace":
        of["theta"] = f"{2 / rtt_s:g}"
    return ", ".join(f"{key}: {value}" for key, value in of.items())


def long_run(simulate: Simulate, cc: str, rtt_s: float) -> tuple[float, float]:
    """200 round trips after 100 of warm-up: utilisation, and packets in the queue."""
    rate = BDP_PKTS * WIRE_BITS / rtt_s
    config = LONG.format(
        duration=300 * rtt_s,
        warmup=100 * rtt_s,
        rate=rate,
        bdp=BDP_PKTS,
        half=rtt_s / 2,
        cc=cc,
        parameters=parameters(cc, rtt_s),
        interval=10 * rtt_s,
    )
    run = simulate(config)
    used = run.groups[0]["goodput_bps"] / rate * WIRE_BITS / PAYLOAD_BITS
    return used, run.link["queue_mean_pkts"]


def alike(of: tuple[float, float], base: tuple[float, float]) -> bool:
    """The same use of the link to 2 %, and the same queue to 5 packets or a quarter.

    What is left are draws of the time (PCC, Vivace, BBR), the floor of the timeout, and LoLa, whose
    queue is at its limit: which of its few packets are lost changes with each nanosecond.
    """
    return of[0] == pytest.approx(base[0], abs=0.02) and of[1] == pytest.approx(
        base[1], rel=0.25, abs=5
    )


@pytest.mark.parametrize("cc", ["bbr3", "copa", "vivace"])
def test_six_seconds_are_two_scaled(simulate: Simulate, cc: str) -> None:
    """The three that kept RTTs in 32 bits of nanoseconds, and were blind from 4.29 s on.

    BBRv3 sent four segments per round trip, Copa and Vivace kept the buffer full.
    """
    of, base = long_run(simulate, cc, 6), long_run(simulate, cc, 2)

    assert base[0] > 0.7
    assert base[1] < 0.1 * BDP_PKTS
    assert alike(of, base), (of, base)


@pytest.mark.slow
@pytest.mark.parametrize("cc", CONTROLS)
def test_any_round_trip_is_another_scaled(simulate: Simulate, cc: str) -> None:
    """1, 4, 6 and 40 s, times and rates in proportion: what 2 s show, in the same round trips."""
    runs = {rtt_s: long_run(simulate, cc, rtt_s) for rtt_s in (1, 2, 4, 6, 40)}

    assert all(alike(run, runs[2]) for run in runs.values()), runs


RECORDED = """
seed: 1
duration: 4s
paths:
  forward:
    - loss: {{rate: 0.1%}}
    - link: {{rate: 20Mbit, queue: {{fifo: {{limit: 50pkt}}}}}}
    - delay: {{delay: 10ms}}
  reverse:
    - delay: {{delay: 10ms}}
flows:
  - {{count: 2, cc: {cc}}}
telemetry: {{level: {level}}}
"""


@pytest.mark.parametrize("cc", CONTROLS)
def test_a_record_of_each_ack_changes_nothing(simulate: Simulate, cc: str) -> None:
    """With records segments have samples; a control that reads them always has (`samples`)."""
    plain, recorded = (simulate(RECORDED.format(cc=cc, level=level)) for level in (1, 3))

    assert len(recorded.records("cc")) > 100
    for stream in ("interval", "events"):
        assert plain.records(stream).tolist() == recorded.records(stream).tolist()


OUTAGE = """
seed: 1
duration: 120s
paths:
  forward:
    - link: {{rate: 10Mbit, queue: {{fifo: {{limit: 50pkt}}}}}}
    - delay: {{delay: 10ms}}
  reverse:
    - delay: {{delay: 10ms}}
flows:
  - {{cc: {cc}}}
schedule:
  - {{at: 20s, forward.link.rate: 0}}
  - {{at: 80s, forward.link.rate: 10Mbit}}
telemetry: {{level: 1, interval: 1s}}
"""
# The fabrics' controls with targets for this path.
FOR_20_MS = {
    "swift": "{swift: {base_target: 5ms, fs_range: 0s}}",
    "timely": "{timely: {t_low: 500us, t_high: 5ms}}",
}
# Seconds until the first whole second at 90 % of the rate of before; all others: 2. The packets of
# before the outage are still queued, so that the first ACKs measure 60 s, and srtt is 55 s.
BACK_S = {
    "copa": 3,  # its window has doubled into the full buffer
    "pcc": 3,  # begins with half the rate, and tries a higher one for a round trip each
    "timely": 4,  # begins with half the rate, and adds 10 Mbit/s per 64 KB at most
    "prague": 10,  # paced by srtt, which falls by an eighth per ACK
}


def seconds_until_back(run: Run) -> float:
    """From the link's return to the end of the first second at 90 % of the rate of before."""
    records = run.records("interval")
    end_s, delivered = records["ts_ns"] / 1e9, records["delivered_bytes"]
    before = delivered[(end_s > 10) & (end_s <= 20)].mean()
    # The first second has what was queued, and a hole that is filled counts all behind it.
    full = end_s[(end_s > 81) & (delivered >= 0.9 * before)]
    return float(full[0]) - 80 if len(full) else float("inf")


@pytest.mark.parametrize("cc", CONTROLS)
def test_back_after_a_minute_without_a_link(simulate: Simulate, cc: str) -> None:
    """LoLa needed 144 s, PCC 95 and Vivace 57; Linux's reno with fq needs 20.

    LoLa's pace was a window per srtt; PCC and Vivace halved their rate with each of eight timeouts.
    """
    run = simulate(OUTAGE.format(cc=FOR_20_MS.get(cc, cc)))

    assert seconds_until_back(run) <= BACK_S.get(cc, 2)
