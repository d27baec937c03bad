# SPDX-License-Identifier: BSD-3-Clause
"""The measures beyond CoreScale: shares by round trip, and how long until they are steady."""

from __future__ import annotations

import math

import numpy as np

from weir.analysis.folder import Run
from weir.base import units
from weir.studies.corescale.measures import c_halving, c_loss
from weir.study.measures import Floats, flow_goodputs, jain

__all__ = ("c_halving", "c_loss", "index", "of_quarters", "steady_s")

WINDOW_S = 10.0
LATE = 0.25  # of a run, of whose windows the mean is what is steady
BAND = 0.05  # by which a window's index may be off it


def base_rtts_ms(run: Run) -> Floats:
    """Returns the base RTT of each flow, by its number."""
    events = run.stream("events")
    own = events.records[events.records["event"] == events.number("event", "base_rtt")]
    found = np.full(sum(group.flows for group in run.summary.groups), math.nan)
    found[own["flow_id"]] = own["value"] / 1e6
    return found


def of_quarters(run: Run) -> float:
    """Returns the goodput of the quarter of flows with the least base RTTs over the last one's."""
    order = np.argsort(base_rtts_ms(run))
    count = len(order) // 4
    warmup_s, end_s = units.measured(run.summary.warmup_s), units.measured(run.summary.virtual_s)
    goodputs = flow_goodputs(run, warmup_s, end_s)
    last = goodputs[order[-count:]].sum()
    return float(goodputs[order[:count]].sum() / last) if last else math.nan


def index(run: Run) -> tuple[Floats, Floats]:
    """Returns the ends of windows of 10 s, and Jain's index of the flows' goodputs in each."""
    end_s = units.measured(run.summary.virtual_s)
    ends = np.arange(WINDOW_S, end_s + WINDOW_S / 2, WINDOW_S)
    found = [jain(flow_goodputs(run, end - WINDOW_S, end)) for end in ends]
    return ends, np.array(found)


def steady_s(run: Run) -> float:
    """Returns from when on Jain's index keeps to where it ends, in s since the first start.

    That is the end of the last window whose index is more than 5 % off the mean of those in the
    last quarter of the run. Not a number: one of these is.
    """
    ends, found = index(run)
    late = ends > ends[-1] * (1 - LATE)
    off = np.abs(found / found[late].mean() - 1) > BAND
    return math.nan if off[late].any() else float(ends[off].max(initial=0.0))
