# SPDX-License-Identifier: BSD-3-Clause
"""The behaviour of a flow in a capture: how its window falls and grows, what queue it keeps.

Everything is counted in round trips, so that paths of any rate and length can be compared: a step
is the least RTT of the flow; growth is counted per round trip as it was then, with its queue.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from weir.analysis.metrics import NS_PER_S, Floats

if TYPE_CHECKING:
    from weir.analysis.folder import Run

MSS = 1448  # bytes: only a scale, that of the windows in segments
STEPS_MIN = 100  # round trips that a flow must last
EPOCH_MIN = 8  # steps between two reductions from which growth is read
GROWTH_MIN = 3  # segments of growth from which its shape is read
FLAT = 4  # steps over which a window is flat, or grows
START = 25  # round trips of the start


@dataclass(frozen=True)
class Behaviour:
    """Numbers that are compared; NaN: not seen. Medians are over reductions and between them."""

    cut: float = np.nan  # window after a loss over that before; median
    cut_spread: float = np.nan  # log10 of the distance of its quartiles
    halves: float = np.nan  # log10 of the distance of the cut from a half
    ecn_cut: float = np.nan  # the same after a mark
    ecn_share: float = 0.0  # of the reductions
    after_bdp: float = np.nan  # log2 of the window after a reduction over the path's BDP
    after_spread: float = np.nan  # log10 of the distance of its quartiles
    often: float = np.nan  # log10 of the reductions per 100 round trips
    growth: float = np.nan  # segments per round trip, as log(1 + x)
    growth_first: float = np.nan  # in the first third after a reduction
    growth_last: float = np.nan  # in the last third before the next one
    growth_spread: float = np.nan  # log10 of the distance of its quartiles
    shape_25: float = np.nan  # of the growth, the share that is done after a quarter of the time
    shape_50: float = np.nan
    shape_75: float = np.nan
    queue: float = np.nan  # log2 of segments
    trough: float = np.nan  # log2 of the 5th percentile of RTTs over the least one
    least: float = np.nan  # log2 of the least window in segments
    low: float = np.nan  # 5th percentile of the windows over their median
    flat: float = np.nan  # share of the steps in which the window stays within half a segment
    variation: float = np.nan  # of the windows: deviation over mean
    start: float = np.nan  # log2 of the largest window of the start over the BDP
    start_lost: float = np.nan  # log10 of the segments lost in the start
    lost: float = np.nan  # log10 of the share of segments that were lost
    lost_each: float = np.nan  # log10 of the segments lost per reduction

    def vector(self) -> Floats:
        return np.array([getattr(self, name) for name in NAMES])


NAMES = tuple(field.name for field in fields(Behaviour))


@dataclass(frozen=True)
class Steps:
    """A flow in steps of its least RTT; NaN where nothing was seen."""

    start_s: float
    step_s: float
    window: Floats  # segments in flight, mean
    rtt: Floats  # seconds; what was seen last where nothing was
    sent: Floats  # segments
    lost: Floats
    acked: Floats
    rounds: Floats  # round trips since the start

    def at(self, time_s: float) -> int:
        return min(max(int((time_s - self.start_s) / self.step_s), 0), len(self.window) - 1)


def in_steps(interval: pl.DataFrame) -> Steps | None:
    """Returns a flow's intervals in steps; None: too few RTTs were seen."""
    time = interval["ts_ns"].to_numpy() / NS_PER_S
    seen = interval["rtt_samples"].to_numpy() > 0
    if np.count_nonzero(seen) < STEPS_MIN:
        return None
    rtt = interval["rtt_mean_ns"].to_numpy() / NS_PER_S
    length = max(float(np.diff(time).min()), 1e-9)
    start, step = float(time[0]) - length, max(float(rtt[seen].min()), length)
    place = ((time - start) / step).astype(int)
    count = int(place.max()) + 1

    def total(column: str) -> Floats:
        return np.bincount(place, interval[column].to_numpy(), count).astype(float)

    def mean(values: Floats, where: np.ndarray) -> Floats:
        number = np.bincount(place[where], minlength=count)
        whole = np.bincount(place[where], values[where], count)
        return np.where(number > 0, whole / np.maximum(number, 1), np.nan)

    trips = carried(mean(rtt, seen), step)
    window = mean(interval["inflight_segs"].to_numpy().astype(float), np.ones(len(time), bool))
    return Steps(
        start, step, window, trips, total("sent_segs"), total("lost_segs"),
        total("acked_bytes") / MSS, np.cumsum(step / trips),
    )  # fmt: skip


def carried(values: Floats, first: float) -> Floats:
    known = np.where(np.isfinite(values), np.arange(len(values)), -1)
    last = np.maximum.accumulate(known)
    return np.where(last >= 0, values[last], first)


@dataclass(frozen=True)
class Reduction:
    """A reduction of the window: before, after, and until when it grew."""

    before: float
    after: float
    begin: int  # steps of the growth that followed
    end: int
    lost: bool  # something was lost; else it was a mark
    closed: bool  # another reduction ended the growth


@dataclass(frozen=True)
class Cuts:
    """Times in s at which a flow's window was reduced, and at which each recovery ended."""

    begin: Floats
    end: Floats


def times(frame: pl.DataFrame) -> Floats:
    return np.sort(frame["ts_ns"].to_numpy()) / NS_PER_S


def reductions(steps: Steps, interval: pl.DataFrame, of: Cuts) -> list[Reduction]:
    """Returns the reductions after the flow's start, which the first one ends."""
    cuts, ends = of.begin, of.end
    losses = times(interval.filter(pl.col("lost_segs") > 0))
    found = []
    for number, cut in enumerate(cuts[1:], 1):
        closed = number + 1 < len(cuts)
        until = cuts[number + 1] if closed else steps.start_s + steps.step_s * len(steps.window)
        recovered = min((end for end in ends if end > cut), default=cut + 2 * steps.step_s)
        at, begin = steps.at(cut), min(steps.at(min(recovered, until)) + 1, len(steps.window) - 1)
        near = 2 * steps.rtt[at] + 2 * steps.step_s
        found.append(
            Reduction(
                before=float(np.nanmax(steps.window[max(0, at - 2) : at + 1])),
                after=float(steps.window[begin]),
                begin=begin,
                end=steps.at(until),
                lost=bool(np.any(np.abs(losses - cut) < near)),
                closed=closed,
            )
        )
    return found


@dataclass(frozen=True)
class Growth:
    """Straight lines over what lies between two reductions: all, the first third, the last."""

    slopes: tuple[float, float, float]  # segments per round trip
    first: float  # the window where it begins, and where it ends
    last: float
    shape: tuple[float, ...]  # shares of it that are done after a quarter, half, three quarters


NO_GROWTH = Growth((np.nan,) * 3, np.nan, np.nan, (np.nan,) * 3)


def growth(steps: Steps, one: Reduction) -> Growth:
    """Returns the growth after a reduction; NO_GROWTH: too short, or no reduction ended it."""
    window, rounds = steps.window[one.begin : one.end], steps.rounds[one.begin : one.end]
    if not one.closed or len(window) < EPOCH_MIN:
        return NO_GROWTH
    part = max(4, len(window) // 3)
    every = line(rounds, window)[0]
    begin, first, _ = line(rounds[:part], window[:part])
    end, _, last = line(rounds[-part:], window[-part:])
    shape: tuple[float, ...] = NO_GROWTH.shape
    if last - first >= GROWTH_MIN:
        places = (int(len(window) * share) for share in (0.25, 0.5, 0.75))
        shape = tuple((mean_of(window[p - 1 : p + 2]) - first) / (last - first) for p in places)
    return Growth((every, begin, end), first, last, shape)


def line(x: Floats, y: Floats) -> tuple[float, float, float]:
    """Returns the slope of a line through points, and its first and last value; NaN: too few."""
    known = np.isfinite(y)
    if known.sum() <= 3:
        return np.nan, np.nan, np.nan
    slope, at_0 = np.polyfit(x[known], y[known], 1)
    return float(slope), float(at_0 + slope * x[0]), float(at_0 + slope * x[-1])


def cut_of(one: Reduction, before: Growth, after: Growth) -> float:
    """Returns the window after a reduction over that before, by the growth's lines if it can."""
    known = np.isfinite(before.last) and np.isfinite(after.first)
    return after.first / before.last if known else one.after / one.before


def mean_of(values: Floats) -> float:
    known = values[np.isfinite(values)]
    return float(known.mean()) if len(known) else np.nan


def percentile(values: Floats, *ranks: float) -> Floats:
    known = np.asarray(values, float)
    known = known[np.isfinite(known)]
    return np.percentile(known, ranks) if len(known) else np.full(len(ranks), np.nan)


def median(values: Floats) -> float:
    return float(percentile(values, 50)[0])


def spread(values: Floats) -> float:
    """Returns the distance of the quartiles of known values; NaN: fewer than three."""
    low, high = percentile(values, 25, 75)
    return float(high - low) if np.isfinite(values).sum() > 2 else np.nan


def of_reductions(steps: Steps, found: list[Reduction], bdp: float) -> dict[str, float]:
    """Returns what a flow does when it loses packets or sees marks, and after that."""
    grown = [growth(steps, one) for one in found]
    cuts = np.array(
        [cut_of(*three) for three in zip(found, [NO_GROWTH, *grown], grown, strict=False)]
    )
    lost = np.array([one.lost for one in found], bool)
    slopes = np.array([one.slopes for one in grown]).reshape(-1, 3)
    shapes = np.array([one.shape for one in grown]).reshape(-1, 3)
    slope = np.array([median(each) for each in slopes.T])
    every, first, last = np.sign(slope) * np.log1p(np.abs(slope))
    shape = [median(share) for share in shapes.T]
    afters = np.array([one.after for one in found]) / bdp
    return {
        "cut": median(cuts[lost]), "cut_spread": np.log10(0.01 + spread(cuts[lost])),
        "halves": np.log10(0.01 + abs(median(cuts[lost]) - 0.5)),
        "ecn_cut": median(cuts[~lost]), "ecn_share": float(np.mean(~lost)) if found else 0.0,
        "after_bdp": np.log2(max(median(afters), 0.01)),
        "after_spread": np.log10(0.01 + spread(afters)),
        "often": np.log10((len(found) + 0.5) / len(steps.window) * 100),
        "growth": every, "growth_first": first, "growth_last": last,
        "growth_spread": np.log10(0.01 + spread(slopes[:, 0])),
        **dict(zip(("shape_25", "shape_50", "shape_75"), shape, strict=True)),
        "lost_each": np.log10((1 + steps.lost.sum()) / (1 + len(found))),
    }  # fmt: skip


def of_windows(steps: Steps, bdp: float) -> dict[str, float]:
    """Returns the queue that a flow keeps, its windows and its start."""
    late = slice(len(steps.window) // 4, None)
    window = steps.window[late]
    low, median = percentile(window, 5, 50)
    trough, usual = percentile(steps.rtt[late], 5, 50)
    start = percentile(steps.window[:START], 100)[0]
    return {
        "queue": np.log2(1 + (usual - steps.step_s) / steps.step_s * bdp),
        "trough": np.log2(trough / steps.step_s),
        "least": np.log2(1 + percentile(window, 0)[0]),
        "low": low / median,
        "flat": float(np.mean(np.abs(window[FLAT:] - window[:-FLAT]) < 0.5 * FLAT)),
        "variation": float(np.nanstd(window) / np.nanmean(window)),
        "start": np.log2(start / bdp),
        "start_lost": np.log10(1 + steps.lost[: 2 * START].sum()),
        "lost": np.log10(1e-5 + steps.lost.sum() / max(1.0, steps.sent.sum())),
    }


def of_flow(interval: pl.DataFrame, cuts: Cuts) -> Behaviour | None:
    """Returns a flow's behaviour from its intervals; None: it is too short to tell."""
    steps = in_steps(interval)
    if steps is None or len(steps.window) < STEPS_MIN:
        return None
    bdp = max(2.0, mean_of(steps.acked[len(steps.acked) // 4 :]))
    found = reductions(steps, interval, cuts)
    return Behaviour(**of_reductions(steps, found, bdp), **of_windows(steps, bdp))


def of_run(run: Run) -> dict[int, Behaviour | None]:
    """Returns the behaviour of each flow of an analysed capture; None: too short to tell."""
    intervals, events = run.frame("interval"), run.frame("events")
    if intervals is None:
        return {}
    named = run.values("events", "event") if events is not None else {}

    def at(flow: int, *names: str) -> Floats:
        if events is None:
            return np.array([])
        wanted = pl.col("event").is_in([named[name] for name in names])
        return times(events.filter((pl.col("flow_id") == flow) & wanted))

    return {
        flow: of_flow(own, Cuts(at(flow, "reduction", "timeout"), at(flow, "recovered")))
        for (flow,), own in sorted(intervals.group_by("flow_id"))
    }
