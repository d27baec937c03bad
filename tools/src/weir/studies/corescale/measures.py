# SPDX-License-Identifier: BSD-3-Clause
"""The measures of CoreScale's claims: fits of Mathis' formula, losses per halving, and shares."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from weir.analysis import metrics
from weir.base import units
from weir.study.measures import PAYLOAD_BYTES, flow_goodputs, jain
from weir.study.scenario import share_percent

if TYPE_CHECKING:
    from weir.analysis.folder import Run

Of = Callable[["Run"], float]
FLOWS = (1000, 3000, 5000)
EDGE_FLOWS = (10, 20, 30, 50)
NAMES = {
    "newreno": "NewReno",
    "cubic": "CUBIC",
    "bbr": "BBR",
    "copa": "Copa",
    "lola": "LoLa",
    "bbr3": "BBRv3",
    "prague": "Prague over DualPI2",
}


def core(cc: str, flows: int, *, hosts: bool = False) -> str:
    """Returns the name of the run of all flows of one control at the core."""
    return f"core-{cc}-{flows}" + ("-hosts" if hosts else "")


WITH_HOSTS = tuple(core("newreno", flows, hosts=True) for flows in FLOWS)
IDEAL = tuple(core("newreno", flows) for flows in FLOWS)
EDGES = tuple(f"edge-newreno-{flows}" for flows in EDGE_FLOWS)


@dataclass(frozen=True)
class Measured:
    """A cell that was run."""

    flows: pl.DataFrame  # metrics.flow_table's
    by_halving: metrics.MathisFit
    by_loss: metrics.MathisFit
    losses: metrics.LossesPerHalving


COLUMNS = ("ts_ns", *metrics.PER_FLOW, *metrics.INTERVAL_SUMS, "rtt_mean_ns")
KEPT: dict[tuple[Path, str], Measured] = {}


def measured(run: Run) -> Measured:
    """Reads a run folder, once; what happened during the warm-up is left out."""
    key = run.path, str(run.summary.digest)
    if key not in KEPT:
        KEPT[key] = read(run)
    return KEPT[key]


def read(run: Run) -> Measured:
    """Reads what is measured of a run."""
    warmup_s, end_s = units.measured(run.summary.warmup_s), units.measured(run.summary.virtual_s)
    span_ns = (end_s - warmup_s) * metrics.NS_PER_S
    counted = metrics.tally(run.chunk_frames("interval", COLUMNS), warmup_s * 1e9)
    flows = metrics.flow_table(counted, span_ns)
    return Measured(
        flows,
        metrics.mathis(flows, "cwnd_reductions", PAYLOAD_BYTES),
        metrics.mathis(flows, "drops", PAYLOAD_BYTES),
        metrics.losses_per_halving(flows),
    )


def known(value: float | None) -> float:
    return math.nan if value is None else float(value)


def c_loss(run: Run) -> float:
    """Returns C fitted with p as drops per segment."""
    return known(measured(run).by_loss.c)


def c_halving(run: Run) -> float:
    """Returns C fitted with p as window halvings per segment."""
    return known(measured(run).by_halving.c)


def error_halving(run: Run) -> float:
    """Returns the median flow's error of the fit by halvings, in percent."""
    return 100 * known(measured(run).by_halving.error_median)


def losses(run: Run) -> float:
    return known(measured(run).losses.total)


def times_fair(run: Run) -> float:
    """Returns the first group's share of 5000 flows, over that of one flow."""
    return share_percent(0)(run) / 100 * 5000


def mean_of(measure: Of) -> Callable[..., float]:
    return lambda *runs: sum(map(measure, runs)) / len(runs)


def lowest(measure: Of) -> Callable[..., float]:
    return lambda *runs: min(map(measure, runs))


def spread_of(measure: Of) -> Callable[..., float]:
    """Makes the measure of the largest value over the smallest, less 1, in percent."""
    return lambda *runs: 100 * (max(map(measure, runs)) / min(map(measure, runs)) - 1)


def least_step(measure: Of) -> Callable[..., float]:
    return lambda *runs: min(a - b for a, b in pairwise(map(measure, runs)))


def edge_used_at_core(measure: Of) -> Callable[..., float]:
    """Makes the measure of how far off the edge's C is at the core, in percent.

    The first run is the core's.
    """

    def error(at_core: Run, *at_edge: Run) -> float:
        return 100 * abs(1 - mean_of(measure)(*at_edge) / measure(at_core))

    return error


def first_minute(run: Run) -> float:
    """Returns Jain's index over 20 to 60 s: at 20 s the last flow has started."""
    return jain(flow_goodputs(run, 20, 60))
