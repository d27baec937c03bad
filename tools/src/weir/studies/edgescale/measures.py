# SPDX-License-Identifier: BSD-3-Clause
"""The measures of EdgeScale: CoreScale's, and the phases that BBR's flows are in."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from weir.analysis.folder import Run
from weir.base import units
from weir.studies.corescale.measures import c_halving, lowest
from weir.study.measures import Floats

__all__ = ("c_halving", "lowest", "most_at_once", "phases")


def phases(run: Run, times_s: Floats) -> Floats:
    """Returns the share of the first group's flows in each mode of its control (rows), over time.

    A flow is in the first mode until it says otherwise.
    """
    events, group = run.stream("events"), run.summary.groups[0]
    records = events.records[events.records["event"] == events.number("event", "cc_mode")]
    shares = np.zeros((len(group.modes), times_s.size))
    places = np.arange(times_s.size)
    for flow in range(group.flows):
        own = records[records["flow_id"] == flow]
        reached = np.searchsorted(own["ts_ns"], times_s * 1e9, "right")
        modes = np.concatenate(([0], own["value"])).astype(np.int64)
        shares[modes[reached], places] += 1 / group.flows
    return shares


def most_at_once(mode: str, from_s: float) -> Callable[[Run], float]:
    """Makes the measure of the largest share of flows in a mode from a time on, in percent."""

    def measure(run: Run) -> float:
        times_s = np.arange(from_s, units.measured(run.summary.virtual_s), 0.1)
        return 100 * float(phases(run, times_s)[run.summary.groups[0].modes.index(mode)].max())

    return measure
