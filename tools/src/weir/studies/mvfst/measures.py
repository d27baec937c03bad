# SPDX-License-Identifier: BSD-3-Clause
"""The measures of mvfst's claims: percentiles over the samples of all users."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from weir.analysis import metrics
from weir.analysis.folder import Run
from weir.study.measures import Floats, after_warmup, of_kind, rtx_per_acked

NS_PER_MS = 1e6
Samples = Callable[[Run], Floats]


def frame_ms(run: Run) -> Floats:
    """Returns the times until the video's frames were acknowledged: its round trips, in ms."""
    done = of_kind(run, "transfers", "close")
    return np.asarray((done["ts_ns"] - done["start_ns"]) / NS_PER_MS, dtype=np.float64)


def rtts_ms(run: Run) -> Floats:
    """Returns the mean round trips of the intervals that have samples."""
    records = after_warmup(run, "interval")
    known = records["rtt_samples"] > 0
    return np.asarray(records["rtt_mean_ns"][known] / NS_PER_MS, dtype=np.float64)


def second_mbps(run: Run) -> Floats:
    """Returns the goodput of each second."""
    records = after_warmup(run, "interval")
    second = ((records["ts_ns"] - 1) // 1_000_000_000).astype(np.int64)
    bits = np.bincount(second - second[0], records["delivered_bytes"] * 8.0)
    return np.asarray(bits / 1e6, dtype=np.float64)


def overhead(run: Run) -> Floats:
    """Returns a user's retransmissions, one sample."""
    return np.array([rtx_per_acked(run)])


def over_all(runs: Sequence[Run], samples: Samples, percent: float) -> float:
    """Returns a percentile over the samples of all users; each user weighs the same."""
    found = [one for run in runs if len(one := samples(run))]
    weights = np.concatenate([np.full(len(one), 1 / len(one)) for one in found])
    x, reached = metrics.ecdf(np.concatenate(found), weights)
    value = metrics.quantile_of_cdf(x, reached, percent / 100)
    return math.nan if value is None else value


def halves(samples: Samples, percent: float) -> Callable[..., float]:
    """Makes the measure of a percentile of the first half of the runs over the second's."""

    def measure(*runs: Run) -> float:
        half = len(runs) // 2
        return over_all(runs[:half], samples, percent) / over_all(runs[half:], samples, percent)

    return measure
