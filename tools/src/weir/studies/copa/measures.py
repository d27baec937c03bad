# SPDX-License-Identifier: BSD-3-Clause
"""The measures of Copa's claims: the queue's swing, the equilibrium of section 4, and shares."""

from __future__ import annotations

import math
from collections.abc import Callable
from statistics import NormalDist

import numpy as np

from weir.analysis.folder import Run
from weir.base import units
from weir.study.measures import (
    SEGMENT_BITS,
    WIRE_BITS,
    Floats,
    after_warmup,
    goodput,
    goodputs,
    of_kind,
    of_run,
)
from weir.study.scenario import first_link

DELTAS = np.array([0.1, 0.2, 0.5, 1.0, 2.0])


def period_rtts(run: Run) -> float:
    """Returns the strongest period of the queue's swing, in mean round trips."""
    links = after_warmup(run, "links")
    first = links[links["link"] == 0]
    queue = first["queue_mean_pkts"].astype(np.float64)
    steps_ns: Floats = np.diff(first["ts_ns"])
    step_s = float(np.median(steps_ns)) / 1e9
    power = np.abs(np.fft.rfft(queue - queue.mean())) ** 2
    frequency = np.fft.rfftfreq(len(queue), step_s)[1 + int(np.argmax(power[1:]))]
    return float(1e9 / frequency / units.measured(run.summary.groups[0].rtt_mean_ns))


def velocity_is_1(run: Run) -> float:
    """Returns the share of ACKs at which the velocity is 1, in percent."""
    return 100 * float(np.mean(after_warmup(run, "cc")["obs0"] == 1))


def nash_rates(deltas: Floats, capacity: float = 1.0) -> Floats:
    """Returns the rates at which nobody gains by another rate.

    What each gains is U = log(rate) - delta log(delay), with M/M/1's delay. Each sender in turn
    takes the rate that is best for it, found by bisection of what a little more would gain,
    until none moves.
    """
    rates = np.full(len(deltas), 0.5 * capacity / len(deltas))
    for _ in range(20_000):
        before = rates.copy()
        for i, delta in enumerate(deltas):
            room = capacity - (rates.sum() - rates[i])
            low, high = 0.0, room
            for _ in range(100):
                rate = (low + high) / 2
                gain = math.log1p(1e-9) - delta * -math.log1p(
                    -1e-9 * rate / max(room - rate, 1e-300)
                )
                low, high = (rate, high) if gain > 0 else (low, rate)
            rates[i] = (low + high) / 2
        if np.abs(rates - before).max() < 1e-12 * capacity:
            break
    return rates


def formula_of_nash() -> float:
    """Returns the ratio to mu/(delta (1/delta-hat + 1)) of the sender furthest from it."""
    formula = 1 / (DELTAS * ((1 / DELTAS).sum() + 1))
    ratios = nash_rates(DELTAS) / formula
    return float(ratios[np.argmax(np.abs(ratios - 1))])


def total_of_nash() -> float:
    """Returns the rates of ten senders of delta 0.5 together; equation 8 has 1/(1 + delta-hat)."""
    return float(nash_rates(np.full(10, 0.5)).sum())


def weighed(run: Run) -> float:
    """Returns goodput times delta over its mean, of the flow that is furthest from it."""
    found = goodputs(run) * DELTAS
    ratios = found / found.mean()
    return float(ratios[np.argmax(np.abs(ratios - 1))])


def completions(run: Run) -> tuple[Floats, Floats]:
    """Returns sizes in bytes and times in microseconds of the transfers that finished."""
    found = of_kind(run, "transfers", "close")
    took_us = (found["ts_ns"] - found["start_ns"]) / 1e3
    return found["size_bytes"].astype(np.float64), took_us.astype(np.float64)


@of_run
def mean_us(run: Run, low_bytes: float, high_bytes: float) -> float:
    """Returns the mean completion time of sizes from low, below high."""
    size_bytes, took_us = completions(run)
    return float(np.mean(took_us[(size_bytes >= low_bytes) & (size_bytes < high_bytes)]))


def of_fair(group: int) -> Callable[..., float]:
    """Makes the measure of a group's goodput over its fair share of the link, over all networks."""

    def measure(*runs: Run) -> float:
        found = []
        for run in runs:
            flows = sum(one.flows for one in run.summary.groups)
            fair = run.summary.links["forward"].rate_bps * SEGMENT_BITS / WIRE_BITS / flows
            found.append(1e6 * goodput(run, group) / run.summary.groups[group].flows / fair)
        return float(np.mean(found))

    return measure


def short_over_long(flows: int) -> Callable[[Run], float]:
    """Makes the measure of the goodput of the first groups over that of as many last."""
    return lambda run: float(goodputs(run)[:flows].sum() / goodputs(run)[-flows:].sum())


@of_run
def queue_from_ms(run: Run, from_s: float) -> float:
    """Returns the mean time that the link's queue takes to drain, from a time on."""
    pkts = float(first_link(run, from_s)["queue_mean_pkts"].mean())
    return 1e3 * pkts * WIRE_BITS / run.summary.links["forward"].rate_bps


def over_other_networks(measure: Callable[..., float]) -> Callable[..., float]:
    """Makes the measure of the first half of the runs, over that of the second."""
    return lambda *runs: measure(*runs[: len(runs) // 2]) / measure(*runs[len(runs) // 2 :])


@of_run
def of_jitter(run: Run, spread_ms: float) -> float:
    """Returns one flow's rate over that which delays of this deviation leave it.

    Its rate is 1 / (delta dq), and dq the difference of two minima, over srtt/2 and over the 10 s
    of RTTmin: each in the median the least of as many normal numbers as ACKs arrive in that time.
    """
    group = run.summary.groups[0]
    rtt_s = units.measured(group.rtt_mean_ns) / 1e9
    rate = group.goodput_bps / SEGMENT_BITS
    least = [NormalDist().inv_cdf(1 - 0.5 ** (1 / (rate * s))) for s in (rtt_s / 2, 10)]
    return rate * 0.5 * (least[0] - least[1]) * spread_ms / 1e3


def estimated(run: Run) -> float:
    """Returns the rate that the probes' group estimates, over what the newcomer gets."""
    groups = {group.name: group for group in run.summary.groups}
    probe = groups["probes"].probe
    rate_bps = units.measured(probe.rate_bps if probe else None)
    return rate_bps / groups["newcomer"].goodput_bps
