# SPDX-License-Identifier: BSD-3-Clause
"""Flows in windows of a second or so: fairness over time, and throughput against delay."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from weir.analysis.metrics import NS_PER_S, Floats

WINDOWS = 120  # at most, as many as a figure can show


def length_s(duration_s: float, interval_ns: int) -> float:
    """Returns the length of windows in s: whole intervals, 1 s at least if the run has 10 s."""
    interval = max(interval_ns, 1) / NS_PER_S
    wanted = max(duration_s / WINDOWS, min(1.0, duration_s / 10))
    return max(1, round(wanted / interval)) * interval


def windows(rated: pl.DataFrame, length: float, end_s: float) -> pl.DataFrame:
    """Returns each flow in each window: time_s (its middle), flow_id, group, goodput and RTT.

    rated: intervals as metrics.with_rates gives them; end_s: the run's end, with which the last
    window ends. goodput_bps is what was delivered over the length of the window, not of the flow's
    records: a flow that sends for a tenth of it has a tenth. rtt_mean_ns is the mean of samples;
    null without any.
    """
    weight = pl.col("rtt_samples").cast(pl.Float64)
    number = (pl.col("time_s") / length).floor()
    begin, end = pl.col("window") * length, (pl.col("window") + 1) * length
    last = pl.min_horizontal(end, pl.lit(end_s))
    return (
        rated.group_by("flow_id", "group", window=number)
        .agg(
            bits=(pl.col("goodput_bps") * (pl.col("length_ns") / NS_PER_S)).sum(),
            rtt=(pl.col("rtt_mean_ns") * weight).sum(),
            samples=weight.sum(),
        )
        .with_columns(
            time_s=(begin + last) / 2,
            goodput_bps=pl.col("bits") / (last - begin),
            rtt_mean_ns=pl.when(pl.col("samples") > 0).then(pl.col("rtt") / pl.col("samples")),
        )
        .select("time_s", "flow_id", "group", "goodput_bps", "rtt_mean_ns")
        .sort("time_s", "flow_id")
    )


def jfi_over_time(windowed: pl.DataFrame) -> pl.DataFrame:
    """Returns Jain's index of flows with records in each window: time_s, jfi; null if idle."""
    x = pl.col("goodput_bps")
    squares = (x * x).sum()
    return (
        windowed.group_by("time_s")
        .agg(jfi=pl.when(squares > 0).then(x.sum() * x.sum() / (pl.len() * squares)))
        .sort("time_s")
    )


@dataclass(frozen=True)
class Ellipse:
    """The mean of points, and the contour one standard deviation from it (39 % if normal)."""

    x: float
    y: float
    contour_x: Floats
    contour_y: Floats


def ellipse(x: Floats, y: Floats, points: int = 73) -> Ellipse | None:
    """Returns the ellipse of the covariance of points; None of no points."""
    keep = np.isfinite(x) & np.isfinite(y)
    if not keep.any():
        return None
    data = np.stack([x[keep], y[keep]])
    centre = data.mean(axis=1)
    # Axes of such different units are scaled first: eigenvectors would lose the smaller.
    scale = np.where(data.std(axis=1) > 0, data.std(axis=1), 1.0)
    values, vectors = np.linalg.eigh(np.cov(data / scale[:, None], bias=True))
    angle = np.linspace(0, 2 * np.pi, points)
    circle = np.stack([np.cos(angle), np.sin(angle)])
    contour = vectors @ (np.sqrt(np.maximum(values, 0))[:, None] * circle) * scale[:, None]
    return Ellipse(
        float(centre[0]), float(centre[1]), contour[0] + centre[0], contour[1] + centre[1]
    )
