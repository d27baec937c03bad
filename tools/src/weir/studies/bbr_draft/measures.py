# SPDX-License-Identifier: BSD-3-Clause
"""Measures of the BBR draft's test cases, in a flow's trace.

A measure is not a number where the phase or event that it asks about never happened.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import wraps

import numpy as np

from weir.studies.bbr_draft.paths import UP_S, WIRE_PKT_BITS, Place
from weir.studies.bbr_draft.trace import (
    CRUISE,
    DOWN,
    DRAIN,
    MARGIN,
    PROBE_RTT,
    REFILL,
    STARTUP,
    UP,
    Phase,
    Trace,
)
from weir.study.measures import SEGMENT_BITS

ACK_SEGS = 2  # a delayed ACK's: that many are aggregated on any path
DATA = SEGMENT_BITS / WIRE_PKT_BITS  # payload of what is on the wire
Measure = Callable[[Trace, Place], float]
Find = Callable[[Trace], Phase | None]


def in_phase(find: Find) -> Callable[[Callable[[Trace, Place, Phase], float]], Measure]:
    """Makes a measure of what a function measures in a phase; not a number without that phase."""

    def made(measure: Callable[[Trace, Place, Phase], float]) -> Measure:
        @wraps(measure)
        def measured(t: Trace, at: Place) -> float:
            phase = find(t)
            return math.nan if phase is None else float(measure(t, at, phase))

        return measured

    return made


# Phases


def first(mode: str, since: float = 0.0) -> Find:
    return lambda t: next(iter(t.of(mode, since)), None)


def longest(mode: str, since: float = 0.0) -> Find:
    return lambda t: max(t.of(mode, since), key=lambda one: one.length, default=None)


def plain_up(t: Trace) -> Phase | None:
    """Finds the first UP that ProbeRTT did not cut short."""
    return next((one for one in t.of(UP) if t.after(one) != PROBE_RTT), None)


def lasting_up(t: Trace) -> Phase | None:
    """Finds the UP in which an application-limited flow stays."""
    return next((one for one in t.phases if one.mode == UP and one.start < UP_S < one.end), None)


def plain_down(t: Trace) -> Phase | None:
    downs = (one for one in t.of(DOWN) if t.phases[t.phases.index(one) - 1].mode == UP)
    return next(downs, None)


def full_down(t: Trace) -> Phase | None:
    """Finds the first DOWN after 3 s that REFILL followed, and no CRUISE."""
    return next((one for one in t.of(DOWN, 3.0) if t.after(one) == REFILL), None)


# Measures of any phase


def then(find: Find, *modes: str) -> Measure:
    """Makes the measure that is 1 if one of these modes followed a phase."""
    return in_phase(find)(
        lambda t, at, phase: t.after(phase) in modes if phase in t.phases[:-1] else math.nan
    )


def rounds(find: Find) -> Measure:
    return in_phase(find)(lambda t, at, phase: t.rounds(phase.start, phase.end))


def pacing(find: Find) -> Measure:
    """Makes the measure of the pacing rate over bw."""
    return in_phase(find)(lambda t, at, phase: t.pacing_gain(phase))


def flat_rounds(find: Find) -> Measure:
    return in_phase(find)(
        lambda t, at, phase: t.flat_rounds(phase, t.at("delivery_bps", phase.start))
    )


def inflight(find: Find, before: int = 0) -> Measure:
    """Makes the measure of what was in flight over Inflight(1.0), at a phase's end or before.

    before: how many ACKs before. Nothing was lost there, so bw is max_bw.
    """

    @in_phase(find)
    def measure(t: Trace, at: Place, phase: Phase) -> float:
        place = t.place(phase.end) - before
        time = float(t.time[place])
        segs = float(t.acks["obs0"][place]) * t.at("obs1", time) * 1e-9 / SEGMENT_BITS
        return float(t.acks["inflight_segs"][place]) / t.budget(time, segs)

    return measure


def window_gain(find: Find, more: int) -> Measure:
    """Makes the measure of the largest window less `more` and an ACK's segments, over bw min_rtt.

    Where the offload budget is more than that, it is over the budget.
    """

    @in_phase(find)
    def measure(t: Trace, at: Place, phase: Phase) -> float:
        start = phase.start + t.at("obs1", phase.end) * 1e-9
        segs = float(np.max(t.within("cwnd_segs", start, phase.end)))
        return (segs - more - ACK_SEGS) / t.bdp(phase.end - 1e-6)

    return measure


def rate(at: Place, factor: float = 1.0) -> float:
    return at.mbit * 1e6 * DATA * factor


# Startup and Drain


@in_phase(first(STARTUP))
def startup_bw(t: Trace, at: Place, phase: Phase) -> float:
    """Returns max_bw at the end of Startup over the rate."""
    return t.at("obs0", phase.end) / rate(at)


@in_phase(first(STARTUP))
def loss_to_drain(t: Trace, at: Place, phase: Phase) -> float:
    return t.rounds(first_loss(t, 0), phase.end)


@in_phase(first(STARTUP))
def startup_pacing(t: Trace, at: Place, phase: Phase) -> float:
    """Returns pacing over bw, or over the first window in a round trip: it does not fall."""
    initial = 10 * SEGMENT_BITS * 1e9 / t.at("obs1", phase.start)
    bw = np.maximum(t.within("obs0", phase.start, phase.end) * MARGIN, initial)
    return float(np.median(t.within("pacing_bps", phase.start, phase.end) / bw))


@in_phase(first(STARTUP))
def startup_losses(t: Trace, at: Place, phase: Phase) -> float:
    return float(np.sum(np.diff(t.within("lost_segs", phase.start, phase.end + 1e-9)) > 0))


@in_phase(first(STARTUP))
def startup_limited(t: Trace, at: Place, phase: Phase) -> float:
    return float(np.mean(t.within("app_limited", phase.end - 2 * at.rtt_s, phase.end)))


@in_phase(first(STARTUP))
def startup_window(t: Trace, at: Place, phase: Phase) -> float:
    """Returns the largest window of Startup, over bw min_rtt at its end."""
    return float(np.max(t.within("cwnd_segs", phase.start, phase.end))) / t.bdp(phase.end)


def only_startup(t: Trace, at: Place) -> float:
    return float(all(one.mode == STARTUP or one.start > 4.9 for one in t.phases))


def filled(t: Trace, at: Place) -> float:
    """Returns 1 if the second pause, at 9 s, found the flow in PROBE_BW."""
    cruise = first(CRUISE)(t)
    return float(cruise is not None and (cruise.end < 14 or cruise.start < 11))


def drained(t: Trace, at: Place) -> float:
    """Returns 1 if DRAIN ended in time.

    That is with the first ACK with little enough in flight, by its time limit, or by ProbeRTT.
    """
    drain = first(DRAIN)
    if rounds(drain)(t, at) == 4 or then(drain, PROBE_RTT)(t, at) == 1:
        return 1.0
    return float(inflight(drain)(t, at) <= 1 < inflight(drain, 1)(t, at))  # 0 too if it never came


# UP


@in_phase(lasting_up)
def long_up(t: Trace, at: Place, phase: Phase) -> float:
    return UP_S - phase.start


@in_phase(lasting_up)
def up_goes_on(t: Trace, at: Place, phase: Phase) -> float:
    """Returns how long UP lasted beyond the first loss, in s."""
    return phase.end - first_loss(t, UP_S - 1)


def first_loss(t: Trace, since: float) -> float:
    """Returns the time of the first ACK from `since` on that reports a loss, in s."""
    lost = np.diff(t.acks["lost_segs"].astype(np.int64), prepend=0) > 0
    places = np.flatnonzero(lost & (t.time >= since))
    return float(t.time[places[0]]) if len(places) else math.nan


@in_phase(lasting_up)
def loss_to_down(t: Trace, at: Place, phase: Phase) -> float:
    lost = first_loss(t, UP_S)
    if then(lasting_up, DOWN, CRUISE)(t, at) != 1 or math.isnan(lost):
        return math.nan
    return t.rounds(lost, phase.end)


@in_phase(lasting_up)
def no_long_bound(t: Trace, at: Place, phase: Phase) -> float:
    """Returns 1 if the losses in UP set no long-term bound."""
    return t.at("obs2", phase.end) == 0


# DOWN, CRUISE


def down_then_refill(t: Trace, at: Place) -> float:
    return float(full_down(t) is not None)


@in_phase(full_down)
def down_wait(t: Trace, at: Place, phase: Phase) -> float:
    """Returns 1 if DOWN lasted 2 to 3 s, or the draft's rounds where these are over first."""
    count = t.rounds(phase.start, phase.end)
    most = min(math.floor(t.bdp(phase.end)), 63)
    by_rounds = most - 1 <= count <= most + 1 and phase.length <= 3.0
    return float(by_rounds or 2.0 <= phase.length <= 3.0 + 1e-3 + at.rtt_s / 10)


@in_phase(first(CRUISE))
def cruise_window(t: Trace, at: Place, phase: Phase) -> float:
    return float(np.median(t.within("cwnd_segs", phase.start, phase.end))) / t.bdp(phase.end)


@in_phase(longest(CRUISE))
def cruise_use(t: Trace, at: Place, phase: Phase) -> float:
    """Returns what the longest CRUISE delivered over what the link can carry."""
    return delivered(t, phase.start, phase.end) / rate(at)


def delivered(t: Trace, start: float, end: float) -> float:
    """Returns the mean goodput of the intervals within, each 100 ms, in bit/s."""
    records = t.run.stream("interval").records
    times = records["ts_ns"] * 1e-9
    some = records[(times > start + 0.1) & (times <= end)]
    return float(np.mean(some["delivered_bytes"])) * 80 if len(some) else math.nan


def least_window(t: Trace, at: Place) -> float:
    return float(np.min(t.acks["cwnd_segs"]))


def late_pacing(t: Trace, at: Place) -> float:
    """Returns the median pacing rate of the run's second half over the link's rate."""
    return float(np.median(t.within("pacing_bps", t.seconds / 2, t.seconds))) / rate(at)


def use(t: Trace, at: Place) -> float:
    return delivered(t, t.seconds / 2, t.seconds) / rate(at)


# ProbeRTT


def handshake(t: Trace, at: Place) -> float:
    """Returns when the handshake measured its RTT, which is that of packets shorter than data."""
    return float(t.time[0]) - at.rtt_s


@in_phase(first(PROBE_RTT))
def probe_rtt_after(t: Trace, at: Place, phase: Phase) -> float:
    """Returns the time from the handshake to ProbeRTT, in s: on a link data's RTTs are longer."""
    return phase.start - handshake(t, at)


@in_phase(first(PROBE_RTT))
def probe_rtt_window(t: Trace, at: Place, phase: Phase) -> float:
    """Returns the window at its end over bw min_rtt; 0.5 is 4 segments where that is more."""
    half = 0.5 * t.bdp(phase.end - 1e-6)
    return 0.5 * t.at("cwnd_segs", phase.end - 1e-6) / max(half, 4)


@in_phase(first(PROBE_RTT))
def probe_rtt_length(t: Trace, at: Place, phase: Phase) -> float:
    """Returns ProbeRTT's length beyond 200 ms or a round trip, in s.

    It counts from the first ACK with half a BDP, or 4 segments, or less in flight.
    """
    for place in range(t.place(phase.start), t.place(phase.end)):
        time = float(t.time[place])
        if t.acks["inflight_segs"][place] <= max(0.5 * t.bdp(time), 4):
            return phase.end - time - max(0.2, at.rtt_s)
    return math.nan


def probe_rtts(t: Trace, at: Place) -> float:
    return float(sum(one.mode == PROBE_RTT for one in t.phases))


def min_rtt_after(t: Trace, at: Place) -> float:
    """Returns how long the handshake's RTT, the smallest, was min_rtt, in s.

    After that min_rtt is what ProbeRTT has seen.
    """
    risen = np.flatnonzero(np.diff(t.acks["obs1"]) > 0)
    return float(t.time[risen[0] + 1]) - handshake(t, at) if len(risen) else math.nan
