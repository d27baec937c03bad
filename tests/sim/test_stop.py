# SPDX-License-Identifier: BSD-3-Clause
"""A stop rule ends a run when its metrics are known: which, when, and how often it is right."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import numpy as np
import pytest
import yaml
from scipy.stats import t

from .conftest import Program, Simulate

LOSSY = """
duration: 1h
warmup: 10s
stop: {metric: goodput, change: 5%, confidence: 95%, over: 20s}
paths:
  forward: [{loss: {rate: 2%}}, {link: {rate: 10Mbit, queue: {fifo: {limit: 100pkt}}}}]
  reverse: [{delay: {delay: 50ms}}]
flows: [{cc: newreno}]
telemetry: {level: 1, interval: 1s}
"""
TWO = """
duration: 10min
warmup: 10s
stop: {metric: [share, delay], change: 2%, over: 20s}
paths:
  forward: [{link: {rate: 10Mbit, queue: {fifo: {limit: 1BDP}}}}]
  reverse: [{delay: {delay: 50ms}}]
flows: [{cc: cubic, count: 2}, {cc: newreno, count: 2}]
telemetry: {level: 1, interval: 1s}
"""


def test_the_interval_is_that_of_the_records(simulate: Simulate) -> None:
    """Batches of the interval records by numpy alone give the half-width that ended the run."""
    run = simulate(LOSSY)
    stop = run.summary["stop"]
    records = run.records("interval")
    seconds, length = round(stop["at_s"] - 10), 1
    while seconds > 40 * length:
        length *= 2
    batches = seconds // length
    each = np.zeros(batches)
    at = (records["ts_ns"] // 10**9 - 11) // length
    own = (at >= 0) & (at < batches)  # the first of all ends with the warm-up
    np.add.at(each, at[own], records["delivered_bytes"][own])

    off = each - each.mean()
    lag = max(0.0, float((off[1:] * off[:-1]).sum() / (off**2).sum()))
    half = (
        float(t.ppf(0.975, batches - 1))
        * off.std(ddof=1)
        / np.sqrt(batches)
        * np.sqrt((1 + lag) / (1 - lag))
    )
    assert stop["settled"]
    assert stop["metric"] == "goodput"
    assert stop["moved"] is None
    assert stop["interval"]["half_width"] == pytest.approx(half / each.mean(), rel=1e-3)
    assert 0.03 < stop["interval"]["half_width"] <= 0.05


@pytest.mark.slow
def test_intervals_have_the_true_mean_as_often_as_they_say(weir_sim: Path) -> None:
    """Of 200 runs 190 are to; 2.6 standard deviations less are 182. The truth is of 3 h."""
    config = yaml.safe_load(LOSSY)
    config["telemetry"] = {"level": 0}
    whole = config | {"stop": {"metric": "none"}, "duration": "3h", "seed": 1000}
    lines = [json.dumps(config | {"seed": seed}) for seed in range(1, 201)]
    asked = "\n".join([json.dumps(whole), *lines]) + "\n"
    done = subprocess.run(
        [weir_sim, "--trials"], input=asked, capture_output=True, text=True, check=True
    )
    truth, *runs = [json.loads(line) for line in done.stdout.splitlines()]
    true_bps = truth["groups"][0]["goodput_bps"]
    covered = 0
    for run in runs:
        bps, half = run["groups"][0]["goodput_bps"], run["stop"]["interval"]["half_width"]
        assert run["stop"]["settled"]
        covered += abs(bps - true_bps) <= half * bps
    assert covered >= 182


def test_a_share_and_a_delay_settle(simulate: Simulate) -> None:
    """The run ends at the first tick at which both have moved by less than 2 % in 20 s."""
    run = simulate(TWO)
    stop = run.summary["stop"]
    assert stop["metric"] == "share, delay"
    assert stop["settled"]
    assert "interval" not in stop
    records, links = run.records("interval"), run.records("links")
    records = records[records["ts_ns"] > 10 * 10**9]  # the first ends with the warm-up
    links = links[(links["link"] == 0) & (links["ts_ns"] > 10 * 10**9)]
    end_s = stop["at_s"]

    def at(seconds: int) -> tuple[float, float]:
        own = records[records["ts_ns"] <= seconds * 10**9]
        link = links[links["ts_ns"] <= seconds * 10**9]
        bytes_of = own["delivered_bytes"]
        return (
            bytes_of[own["group"] == 0].sum() / bytes_of.sum(),
            np.average(link["sojourn_mean_ns"], weights=link["out_pkts"]),
        )

    settled = [
        seconds
        for seconds in range(31, round(end_s) + 1)
        if all(
            abs(now - before) < 0.02 * before
            for now, before in zip(at(seconds), at(seconds - 20), strict=True)
        )
    ]
    assert settled == [end_s]


def test_a_delay_needs_a_link(sim: Program) -> None:
    config = (
        "stop: {metric: delay}\npaths: {forward: [{delay: {delay: 1ms}}], reverse:"
        " [{delay: {delay: 1ms}}]}\nflows: [{cc: cubic, rwnd: 64kB}]\n"
    )
    sim.refuse(config, "x.yaml:1:7: stop: delay: the first group passes no link")
