# SPDX-License-Identifier: BSD-3-Clause
"""Measures of the BBR draft's test cases: bounds, losses, and recoveries that were none."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np

from weir.studies.bbr_draft.measures import delivered, first, first_loss, in_phase, longest, rate
from weir.studies.bbr_draft.paths import UP_S, Place
from weir.studies.bbr_draft.trace import CRUISE, DOWN, REFILL, UP, Phase, Trace
from weir.study.measures import SEGMENT_BITS


@in_phase(longest(UP, 8.0))
def long_growth(t: Trace, at: Place, phase: Phase) -> float:
    """Returns the mean factor by which inflight_longterm grows from round to round in an UP."""
    bounds = [float(t.acks["obs2"][place]) for place in t.round_starts(phase.start, phase.end)]
    steps = [after - before for before, after in pairwise(bounds)]
    rising = next((i for i, (a, b) in enumerate(pairwise(steps)) if b <= a), len(steps) - 1)
    return float((steps[rising] / steps[0]) ** (1 / rising)) if rising else math.nan


def tenfold_rounds(t: Trace, at: Place) -> float:
    """Returns the rounds in UP until bw is the whole rate, over log2(BDP) + 16."""
    full = np.flatnonzero((t.acks["obs0"] >= 0.98 * rate(at)) & (t.time > 8))
    if len(full) == 0:
        return math.nan
    end = float(t.time[full[0]])
    ups = [one for one in t.phases if one.mode == UP and 8.0 < one.start < end]
    count = sum(t.rounds(one.start, min(one.end, end)) for one in ups)
    return count / (math.log2(max(at.bdp, 2)) + 16)


def halved_rounds(t: Trace, at: Place) -> float:
    """Returns the rounds from the first loss after the fall until bw is below half of the rate."""
    lost = first_loss(t, 5.0)
    low = np.flatnonzero((t.acks["obs0"] < 0.5 * rate(at)) & (t.time > 5))
    if math.isnan(lost) or len(low) == 0:
        return math.nan
    return float(t.rounds(lost, float(t.time[low[0]])))


def least_step(t: Trace, at: Place) -> float:
    bounds = t.acks["obs3"][t.time > 5]
    bounds = bounds[np.flatnonzero(np.diff(bounds, prepend=0))]
    steps = [b / a for a, b in pairwise(bounds) if a > 0 and b > 0]
    return float(min(steps, default=math.nan))


def tenth_bw(t: Trace, at: Place) -> float:
    """Returns bw over the new rate at the end of the third REFILL after the fall.

    No short-term bound holds then.
    """
    refills = t.of(REFILL, 5.0)
    if len(refills) < 3:
        return math.nan
    return t.at("obs0", refills[2].end - 1e-6) / rate(at, 0.1)


def short_bounds(t: Trace, at: Place) -> float:
    bounded = t.acks["obs3"] > 0
    largest = float(np.max(t.acks["obs0"]))
    return float(np.any(bounded) and np.any(t.acks["obs0"][bounded] < largest))


def late_use(t: Trace, at: Place) -> float:
    """Returns the second half's goodput over the rate; the policer counts IP packets."""
    return delivered(t, t.seconds / 2, t.seconds) / (at.mbit * 1e6 * 1448 / 1500)


def late_losses(t: Trace, at: Place) -> float:
    """Returns the segments lost in the second half, as a part of what was delivered in it."""
    start = t.seconds / 2
    lost = np.ptp(t.within("lost_segs", start, t.seconds))
    return float(lost) * SEGMENT_BITS / (delivered(t, start, t.seconds) * start)


# Spurious recoveries


def undone(t: Trace, at: Place) -> float:
    return float(len(t.events("undo")))


def starts(t: Trace) -> list[float]:
    """Returns the times of reductions and timeouts, in s."""
    found = [float(e["ts_ns"]) * 1e-9 for k in ("reduction", "timeout") for e in t.events(k)]
    return sorted(found)


def restored(t: Trace, at: Place) -> float:
    """Returns 1 if the first undo left no bound, as none was before, and no smaller window."""
    for event in t.events("undo"):
        time = float(event["ts_ns"]) * 1e-9
        bounded = t.at("obs2", time) + t.at("obs3", time) > 0
        return float(event["value"] >= event["before"] and not bounded)
    return math.nan


def back_up(t: Trace, at: Place) -> float:
    """Returns 1 if the undo of false losses turned their DOWN into REFILL, and UP came next."""
    for event in t.events("undo"):
        time = float(event["ts_ns"]) * 1e-9
        refill = next(
            (p for p in t.phases if abs(p.start - time) < 1e-9 and p.mode == REFILL), None
        )
        if refill is not None:
            place = t.phases.index(refill)
            before = UP in (t.phases[place - 1].mode, t.phases[place - 2].mode)
            return float(before and t.after(refill) == UP)
    return math.nan


# Lossy probes: losses from 3 s to 6.5 s and from 12 s on


@in_phase(first(UP, 12.0))
def long_set(t: Trace, at: Place, phase: Phase) -> float:
    """Returns inflight_longterm after the UP, over the smaller of bw min_rtt and the window."""
    before = phase.end - 1e-6
    return t.at("obs2", phase.end) / min(t.bdp(before), t.at("cwnd_segs", before))


def headroom(t: Trace, at: Place) -> float:
    """Returns what is in flight over the bound less headroom, as the first bounded DOWN ends."""
    downs = [p for p in t.of(DOWN, 3.0) if t.after(p) == CRUISE and t.at("obs2", p.end) > 0]
    if not downs:
        return math.nan
    bound = t.at("obs2", downs[0].end)
    return t.at("inflight_segs", downs[0].end) / max(bound - max(0.15 * bound, 1), 4)


def cruise_headroom(t: Trace, at: Place) -> float:
    """Returns the largest window in CRUISE over the bound less 0.15 of it, or a segment."""
    found = []
    for phase in t.of(CRUISE, 6.5):
        bound = t.at("obs2", phase.end - 1e-6)
        if bound > 0:
            segs = t.within("cwnd_segs", phase.start + at.rtt_s, phase.end)
            found.append(np.max(segs, initial=0) / max(bound - max(0.15 * bound, 1), 4))
    return 0.85 * float(max(found, default=math.nan))


def losses(t: Trace, start: float, end: float) -> float:
    return t.at("lost_segs", end) - t.at("lost_segs", start)


def careful(t: Trace) -> Phase | None:
    """Finds the first UP without losses after one with them, both a round trip later."""
    for before, one in pairwise(t.of(UP, 3.0)):
        rtt_s = 1.5e-9 * t.at("rtt_ns", one.end)
        if losses(t, before.start, before.end + rtt_s) and not losses(
            t, one.start, one.end + rtt_s
        ):
            return one
    return None


@in_phase(careful)
def careful_repeated(t: Trace, at: Place, phase: Phase) -> float:
    """Returns 1 if one round of DOWN and then REFILL followed the careful UP."""
    place = t.phases.index(phase) + 1
    while place < len(t.phases) and t.phases[place].mode in (DOWN, CRUISE):
        place += 1
    if place == len(t.phases) or t.phases[place].mode != REFILL:
        return 0.0
    return float(t.rounds(phase.end, t.phases[place].start) == 1)


# REFILL while the application limits


def late_refill(t: Trace) -> Phase | None:
    """Finds the first REFILL of which the application limited every sample."""
    refills = t.of(REFILL, UP_S)
    return next((p for p in refills if t.within("app_limited", p.start, p.end).all()), None)


@in_phase(late_refill)
def refill_bw(t: Trace, at: Place, phase: Phase) -> float:
    """Returns bw after that REFILL over bw before: limited samples must not lower it."""
    return t.at("obs0", phase.end - 1e-6) / t.at("obs0", UP_S)
