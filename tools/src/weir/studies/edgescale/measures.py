# SPDX-License-Identifier: BSD-3-Clause
"""The measures of EdgeScale: CoreScale's, and the phases that BBR's flows are in."""

from __future__ import annotations

import numpy as np
import polars as pl

from weir.analysis import metrics
from weir.analysis.folder import Run
from weir.base import units
from weir.studies.corescale.measures import c_halving, known, lowest, mean_of, measured
from weir.study.measures import PAYLOAD_BYTES, Floats, of_kind, of_run
from weir.study.scenario import first_link

__all__ = ("c_halving", "c_halving_when_full", "lowest", "mean_of", "most_at_once", "phases")


def c_halving_when_full(run: Run) -> float:
    """Returns C by halvings where the RTT is that of a full queue, in place of the mean one.

    A window is halved about then. The RTTs of all flows grow by what the longest time in the queue
    is above the mean.
    """
    links = first_link(run, units.measured(run.summary.warmup_s))
    mean_ns = np.average(links["sojourn_mean_ns"], weights=links["out_pkts"])
    more_ns = float(links["sojourn_max_ns"].max() - mean_ns)
    flows = measured(run).flows.with_columns(pl.col("rtt_mean_ns") + more_ns)
    return known(metrics.mathis(flows, "cwnd_reductions", PAYLOAD_BYTES).c)


def phases(run: Run, times_s: Floats) -> Floats:
    """Returns the share of the first group's flows in each mode of its control (rows), over time.

    A flow is in the first mode until it says otherwise.
    """
    records, group = of_kind(run, "events", "cc_mode", whole=True), run.summary.groups[0]
    shares = np.zeros((len(group.modes), times_s.size))
    places = np.arange(times_s.size)
    for flow in range(group.flows):
        own = records[records["flow_id"] == flow]
        reached = np.searchsorted(own["ts_ns"], times_s * 1e9, "right")
        modes = np.concatenate(([0], own["value"])).astype(np.int64)
        shares[modes[reached], places] += 1 / group.flows
    return shares


@of_run
def most_at_once(run: Run, mode: str, from_s: float) -> float:
    """Returns the largest share of flows in a mode from a time on, in percent."""
    times_s = np.arange(from_s, units.measured(run.summary.virtual_s), 0.1)
    return 100 * float(phases(run, times_s)[run.summary.groups[0].modes.index(mode)].max())
