# SPDX-License-Identifier: BSD-3-Clause
"""The measures of CoreScale's claims: fits of Mathis' formula, losses per halving, and shares."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from weir.analysis import metrics
from weir.analysis.folder import Run
from weir.base import units
from weir.study.measures import PAYLOAD_BYTES
from weir.study.scenario import share_percent

Of = Callable[[Run], float]
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


CORE = tuple(f"core-newreno-{flows}" for flows in FLOWS)
EDGES = tuple(f"edge-newreno-{flows}" for flows in EDGE_FLOWS)
FAIR = ("newreno", "cubic", "bbr")


def of_figure_4(cc: str, flows: int) -> str:
    """Returns the name of the run of all flows of one control at the core, with 20 ms."""
    return f"fair-{cc}-{flows}-20" if cc in FAIR else f"core-{cc}-{flows}"


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


def error_loss(run: Run) -> float:
    return 100 * known(measured(run).by_loss.error_median)


def losses(run: Run) -> float:
    return known(measured(run).losses.total)


def times_fair(run: Run) -> float:
    """Returns the first group's share of 5000 flows, over that of one flow."""
    return share_percent(0)(run) / 100 * 5000


def mean_of(measure: Of) -> Callable[..., float]:
    return lambda *runs: sum(map(measure, runs)) / len(runs)


def lowest(measure: Of) -> Callable[..., float]:
    return lambda *runs: min(map(measure, runs))


def cwnd_reductions(cell: Measured) -> metrics.MathisFit:
    return cell.by_halving


def drops(cell: Measured) -> metrics.MathisFit:
    return cell.by_loss


def error_of_edge(fit: Callable[[Measured], metrics.MathisFit]) -> Callable[..., float]:
    """Makes the measure of the median error of the core's flows with the edge's C, in percent.

    fit: `drops` or `cwnd_reductions`. The first run is the core's.
    """

    def error(at_core: Run, *at_edge: Run) -> float:
        c = mean_of(lambda run: known(fit(measured(run)).c))(*at_edge)
        own = metrics.mathis(measured(at_core).flows, fit.__name__, PAYLOAD_BYTES, c)
        return 100 * known(own.error_median)

    return error
