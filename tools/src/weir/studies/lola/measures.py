# SPDX-License-Identifier: BSD-3-Clause
"""The measures of TCP LoLa's claims: its rounds of fair flow balancing and of holding."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from weir.analysis.folder import Run
from weir.base import units
from weir.study.measures import Floats, of_kind, rtt_peak_ms


def starts_s(run: Run, flow: int, mode: str, from_s: float = 0.0) -> Floats:
    """Returns when a flow entered a mode."""
    changes = of_kind(run, "events", "cc_mode", whole=True)
    entered = changes["value"] == run.summary.groups[0].modes.index(mode)
    times = changes["ts_ns"][entered & (changes["flow_id"] == flow)] / 1e9
    return np.asarray(times[times > from_s], dtype=np.float64)


def windows_at(run: Run, time_s: float) -> Floats:
    """Returns the windows of both flows, at the end of the interval that follows."""
    records = run.stream("interval").records
    found = []
    for flow in (0, 1):
        own = records[records["flow_id"] == flow]
        place = min(np.searchsorted(own["ts_ns"], time_s * 1e9), len(own) - 1)
        found.append(float(own["cwnd_segs"][place]))
    return np.array(found)


def rounds_until_fair(run: Run) -> float:
    """Counts the rounds of balancing until both windows are within 10 % of each other.

    A round ends where the second flow begins to hold; its first belongs to its slow start.
    """
    ends = starts_s(run, 1, "hold")
    balanced = starts_s(run, 1, "fair")
    ends = ends[ends > balanced[0]]
    for number, end in enumerate(ends, start=1):
        first, second = windows_at(run, float(end))
        if min(first, second) / max(first, second) >= 0.9:
            return float(number)
    return math.nan


def cycle_s(run: Run) -> float:
    """Returns the median time between holds of the first flow, after the warm-up."""
    return float(np.median(np.diff(starts_s(run, 0, "hold", units.measured(run.summary.warmup_s)))))


def balanced_s(run: Run) -> float:
    """Returns the median length of the first flow's balancing."""
    since = units.measured(run.summary.warmup_s)
    begin, end = (starts_s(run, 0, mode, since) for mode in ("fair", "hold"))
    end = end[end > begin[0]]
    count = min(len(begin), len(end))
    return float(np.median(end[:count] - begin[:count]))


def peak_above_ms(base_ms: float) -> Callable[[Run], float]:
    """Makes the measure of the longest round trip, less the base."""
    return lambda run: rtt_peak_ms(run) - base_ms
