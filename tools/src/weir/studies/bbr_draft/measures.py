# SPDX-License-Identifier: BSD-3-Clause
"""Measures of the BBR draft's test cases, in a flow's trace.

A measure is not a number where the phase or event that it asks about never happened.
"""

from __future__ import annotations

import math

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
NEVER = Phase("", math.nan, math.nan)


def first(t: Trace, mode: str, since: float = 0.0) -> Phase:
    return next(iter(t.of(mode, since)), NEVER)


def followed(t: Trace, phase: Phase, *modes: str) -> float:
    return math.nan if phase not in t.phases[:-1] else float(t.after(phase) in modes)


def rate(at: Place, factor: float = 1.0) -> float:
    return at.mbit * 1e6 * DATA * factor


# Startup


def startup_bw(t: Trace, at: Place) -> float:
    """Returns max_bw at the end of Startup over the rate."""
    phase = first(t, STARTUP)
    return math.nan if phase is NEVER else t.at("obs0", phase.end) / rate(at)


def startup_flat(t: Trace, at: Place) -> float:
    phase = first(t, STARTUP)
    return math.nan if phase is NEVER else t.flat_rounds(phase, t.at("delivery_bps", phase.start))


def startup_then_drain(t: Trace, at: Place) -> float:
    return followed(t, first(t, STARTUP), DRAIN)


def startup_left(t: Trace, at: Place) -> float:
    """Returns 1 if DRAIN, DOWN or CRUISE followed: with nothing queued one ACK ends DRAIN too."""
    return followed(t, first(t, STARTUP), DRAIN, DOWN, CRUISE)


def loss_to_drain(t: Trace, at: Place) -> float:
    phase = first(t, STARTUP)
    return math.nan if phase is NEVER else float(t.rounds(first_loss(t, 0), phase.end))


def startup_pacing(t: Trace, at: Place) -> float:
    """Returns pacing over bw, or over the first window in a round trip: it does not fall."""
    phase = first(t, STARTUP)
    if phase is NEVER:
        return math.nan
    initial = 10 * SEGMENT_BITS * 1e9 / t.at("obs1", phase.start)
    bw = np.maximum(t.within("obs0", phase.start, phase.end) * MARGIN, initial)
    return float(np.median(t.within("pacing_bps", phase.start, phase.end) / bw))


def startup_losses(t: Trace, at: Place) -> float:
    phase = first(t, STARTUP)
    if phase is NEVER:
        return math.nan
    return float(np.sum(np.diff(t.within("lost_segs", phase.start, phase.end + 1e-9)) > 0))


def startup_limited(t: Trace, at: Place) -> float:
    end = first(t, STARTUP).end
    if math.isnan(end):
        return math.nan
    return float(np.mean(t.within("app_limited", end - 2 * at.rtt_s, end)))


def startup_window(t: Trace, at: Place) -> float:
    """Returns the largest window of Startup, over bw min_rtt at its end."""
    phase = first(t, STARTUP)
    cwnd = t.within("cwnd_segs", phase.start, phase.end)
    return math.nan if phase is NEVER else float(np.max(cwnd)) / t.bdp(phase.end)


def only_startup(t: Trace, at: Place) -> float:
    return float(all(one.mode == STARTUP or one.start > 4.9 for one in t.phases))


def filled(t: Trace, at: Place) -> float:
    """Returns 1 if the second pause, at 9 s, found the flow in PROBE_BW."""
    return float(first(t, CRUISE).end < 14 or first(t, CRUISE).start < 11)


# Drain


def drain_pacing(t: Trace, at: Place) -> float:
    return t.pacing_gain(first(t, DRAIN)) if first(t, DRAIN) is not NEVER else math.nan


def over_budget(t: Trace, place: int, bw_bps: float) -> float:
    time = float(t.time[place])
    segs = bw_bps * t.at("obs1", time) * 1e-9 / SEGMENT_BITS
    return float(t.acks["inflight_segs"][place]) / t.budget(time, segs)


def drain_inflight(t: Trace, at: Place) -> float:
    phase = first(t, DRAIN)
    if phase is NEVER:
        return math.nan
    return over_budget(t, t.place(phase.end), t.at("obs0", phase.end))


def drain_inflight_before(t: Trace, at: Place) -> float:
    phase = first(t, DRAIN)
    if phase is NEVER:
        return math.nan
    place = t.place(phase.end) - 1
    return over_budget(t, place, float(t.acks["obs0"][place]))


def drained(t: Trace, at: Place) -> float:
    """Returns 1 if DRAIN ended in time.

    That is with the first ACK with little enough in flight, by its time limit, or by ProbeRTT.
    """
    if drain_rounds(t, at) == 4 or followed(t, first(t, DRAIN), PROBE_RTT) == 1:
        return 1.0
    before, after = drain_inflight_before(t, at), drain_inflight(t, at)
    return float(after <= 1 < before)  # 0 too if it never came


def drain_then_probe_bw(t: Trace, at: Place) -> float:
    """Returns 1 if DOWN followed, or CRUISE: the same ACK may end DOWN too."""
    return followed(t, first(t, DRAIN), DOWN, CRUISE)


def drain_rounds(t: Trace, at: Place) -> float:
    phase = first(t, DRAIN)
    return math.nan if phase is NEVER else t.rounds(phase.start, phase.end)


# UP


def plain_up(t: Trace) -> Phase:
    """Finds the first UP that ProbeRTT did not cut short."""
    return next((one for one in t.of(UP) if t.after(one) != PROBE_RTT), NEVER)


def up_flat(t: Trace, at: Place) -> float:
    phase = plain_up(t)
    if phase is NEVER:
        return math.nan
    return t.flat_rounds(phase, t.at("delivery_bps", phase.start))


def up_then_down(t: Trace, at: Place) -> float:
    return followed(t, plain_up(t), DOWN)


def up_pacing(t: Trace, at: Place) -> float:
    phase = plain_up(t)
    return math.nan if phase is NEVER else t.pacing_gain(phase)


def window_gain(t: Trace, phase: Phase, more: int) -> float:
    """Returns the largest window, without `more` and two segments of an ACK, over bw min_rtt.

    Where the offload budget is more than that, over it.
    """
    if phase is NEVER:
        return math.nan
    segs = float(
        np.max(t.within("cwnd_segs", phase.start + t.at("obs1", phase.end) * 1e-9, phase.end))
    )
    return (segs - more - ACK_SEGS) / t.bdp(phase.end - 1e-6)


def up_window(t: Trace, at: Place) -> float:
    return window_gain(t, plain_up(t), 2)


def plain_window(t: Trace, at: Place) -> float:
    """Returns the window's gain in the first CRUISE.

    Nothing is aggregated there but by delayed ACKs.
    """
    return window_gain(t, first(t, CRUISE), 0)


def last_up_before(t: Trace, time: float) -> Phase:
    """Finds the UP that lasts at this time."""
    return next((one for one in t.phases if one.mode == UP and one.start < time < one.end), NEVER)


def long_up(t: Trace, at: Place) -> float:
    phase = last_up_before(t, UP_S)
    return math.nan if phase is NEVER else UP_S - phase.start


def up_goes_on(t: Trace, at: Place) -> float:
    """Returns how long UP lasted beyond the first loss, in s."""
    phase = last_up_before(t, UP_S)
    return math.nan if phase is NEVER else phase.end - first_loss(t, UP_S - 1)


def first_loss(t: Trace, since: float) -> float:
    """Returns the time of the first ACK from `since` on that reports a loss, in s."""
    lost = np.diff(t.acks["lost_segs"].astype(np.int64), prepend=0) > 0
    places = np.flatnonzero(lost & (t.time >= since))
    return float(t.time[places[0]]) if len(places) else math.nan


def loss_to_down(t: Trace, at: Place) -> float:
    phase = last_up_before(t, UP_S)
    lost = first_loss(t, UP_S)
    if followed(t, phase, DOWN, CRUISE) != 1 or math.isnan(lost):
        return math.nan
    return float(t.rounds(lost, phase.end))


def no_long_bound(t: Trace, at: Place) -> float:
    """Returns 1 if the losses in UP set no long-term bound."""
    phase = last_up_before(t, UP_S)
    return math.nan if phase is NEVER else float(t.at("obs2", phase.end) == 0)


# DOWN, CRUISE


def plain_down(t: Trace) -> Phase:
    downs = (one for one in t.of(DOWN) if t.phases[t.phases.index(one) - 1].mode == UP)
    return next(downs, NEVER)


def down_pacing(t: Trace, at: Place) -> float:
    return t.pacing_gain(plain_down(t)) if plain_down(t) is not NEVER else math.nan


def down_inflight(t: Trace, at: Place) -> float:
    """Returns what was in flight at DOWN's end; nothing was lost, so bw is max_bw."""
    phase = plain_down(t)
    if phase is NEVER:
        return math.nan
    return over_budget(t, t.place(phase.end), t.at("obs0", phase.end))


def down_inflight_before(t: Trace, at: Place) -> float:
    phase = plain_down(t)
    if phase is NEVER:
        return math.nan
    place = t.place(phase.end) - 1
    return over_budget(t, place, float(t.acks["obs0"][place]))


def down_then_cruise(t: Trace, at: Place) -> float:
    return followed(t, plain_down(t), CRUISE)


def cruise_pacing(t: Trace, at: Place) -> float:
    phase = first(t, CRUISE)
    return math.nan if phase is NEVER else t.pacing_gain(phase)


def full_down(t: Trace) -> Phase:
    """Finds the first DOWN after 3 s that REFILL followed, and no CRUISE."""
    return next((one for one in t.of(DOWN, 3.0) if t.after(one) == REFILL), NEVER)


def down_then_refill(t: Trace, at: Place) -> float:
    return float(full_down(t) is not NEVER)


def down_wait(t: Trace, at: Place) -> float:
    """Returns 1 if DOWN lasted 2 to 3 s, or the draft's rounds where these are over first."""
    phase = full_down(t)
    if phase is NEVER:
        return math.nan
    rounds = t.rounds(phase.start, phase.end)
    most = min(math.floor(t.bdp(phase.end)), 63)
    by_rounds = most - 1 <= rounds <= most + 1 and phase.length <= 3.0
    return float(by_rounds or 2.0 <= phase.length <= 3.0 + 1e-3 + at.rtt_s / 10)


def cruise_window(t: Trace, at: Place) -> float:
    phase = first(t, CRUISE)
    if phase is NEVER:
        return math.nan
    return float(np.median(t.within("cwnd_segs", phase.start, phase.end))) / t.bdp(phase.end)


def cruise_use(t: Trace, at: Place) -> float:
    """Returns what the longest CRUISE delivered over what the link can carry."""
    phase = max(t.of(CRUISE), key=lambda one: one.length, default=NEVER)
    return math.nan if phase is NEVER else delivered(t, phase.start, phase.end) / rate(at)


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


def probe_rtt_after(t: Trace, at: Place) -> float:
    """Returns the time from the handshake to ProbeRTT, in s: on a link data's RTTs are longer."""
    phase = first(t, PROBE_RTT)
    return math.nan if phase is NEVER else phase.start - handshake(t, at)


def probe_rtt_window(t: Trace, at: Place) -> float:
    """Returns the window at its end over bw min_rtt; 0.5 is 4 segments where that is more."""
    phase = first(t, PROBE_RTT)
    if phase is NEVER:
        return math.nan
    segs = t.at("cwnd_segs", phase.end - 1e-6)
    half = 0.5 * t.bdp(phase.end - 1e-6)
    return 0.5 * segs / max(half, 4)


def probe_rtt_length(t: Trace, at: Place) -> float:
    """Returns ProbeRTT's length beyond 200 ms or a round trip, in s.

    It counts from the first ACK with half a BDP, or 4 segments, or less in flight.
    """
    phase = first(t, PROBE_RTT)
    if phase is NEVER:
        return math.nan
    first_place = t.place(phase.start)
    for place in range(first_place, t.place(phase.end)):
        segs = max(0.5 * t.bdp(float(t.time[place])), 4)
        if t.acks["inflight_segs"][place] <= segs:
            begun = float(t.time[place])
            return phase.end - begun - max(0.2, at.rtt_s)
    return math.nan


def probe_rtt_then_cruise(t: Trace, at: Place) -> float:
    return followed(t, first(t, PROBE_RTT), CRUISE)


def probe_rtt_then_startup(t: Trace, at: Place) -> float:
    return followed(t, first(t, PROBE_RTT), STARTUP)


def probe_rtts(t: Trace, at: Place) -> float:
    return float(sum(one.mode == PROBE_RTT for one in t.phases))


def min_rtt_after(t: Trace, at: Place) -> float:
    """Returns how long the handshake's RTT, the smallest, was min_rtt, in s.

    After that min_rtt is what ProbeRTT has seen.
    """
    risen = np.flatnonzero(np.diff(t.acks["obs1"]) > 0)
    return float(t.time[risen[0] + 1]) - handshake(t, at) if len(risen) else math.nan
