# SPDX-License-Identifier: BSD-3-Clause
"""Pure functions from frames to numbers and frames.

A frame has the columns of its telemetry stream (common/tel_schema.h). A record of an interval
stream stands for the interval that ends at its ts_ns.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
import polars as pl

Floats = npt.NDArray[np.float64]

NS_PER_S = 1e9


def jfi(x: npt.ArrayLike) -> float | None:
    """Jain's fairness index, (sum x)^2 / (n sum x^2), in [1/n, 1].

    One flow is fair to itself: 1. Nothing to share (no flows, all zero): None.
    """
    values = np.asarray(x, dtype=np.float64)
    if values.size == 0:
        return None
    if not np.all(np.isfinite(values)) or np.any(values < 0):
        raise ValueError("shares must be finite and not negative")
    largest = values.max()
    if largest == 0:
        return None
    scaled = values / largest  # squares neither overflow nor vanish
    index = scaled.sum() ** 2 / (values.size * (scaled**2).sum())
    return float(np.clip(index, 1 / values.size, 1.0))


def utilisation(out_bytes: float, rate_bps: float, span_ns: float) -> float | None:
    """Share of a link's capacity that left it; None for a span or a rate of 0."""
    if rate_bps <= 0 or span_ns <= 0:
        return None
    return out_bytes * 8 / (rate_bps * span_ns / NS_PER_S)


def percentile(x: npt.ArrayLike, p: float) -> float | None:
    """The smallest value that at least p percent of the values do not exceed; None of nothing."""
    values = np.asarray(x, dtype=np.float64)
    if values.size == 0:
        return None
    return float(np.percentile(values, p, method="inverted_cdf"))


def ecdf(x: npt.ArrayLike, weights: npt.ArrayLike | None = None) -> tuple[Floats, Floats]:
    """Distinct values, ascending, and the share of the weight at or below each."""
    values = np.asarray(x, dtype=np.float64)
    mass = np.ones(values.size) if weights is None else np.asarray(weights, dtype=np.float64)
    keep = mass > 0
    values, mass = values[keep], mass[keep]
    if values.size == 0:
        return np.empty(0), np.empty(0)
    distinct, where = np.unique(values, return_inverse=True)
    cumulative = np.cumsum(np.bincount(where, weights=mass))
    return distinct, cumulative / cumulative[-1]


def quantile_of_cdf(x: Floats, share: Floats, q: float) -> float | None:
    """The value at which a CDF reaches q."""
    if x.size == 0:
        return None
    return float(x[min(int(np.searchsorted(share, q - 1e-12)), x.size - 1)])


def binned_cdf(
    chunks: Iterable[npt.NDArray[np.uint32]], bins: int = 65536
) -> tuple[Floats, Floats]:
    """Like ecdf, for any number of values: exact to max/bins."""
    parts = [chunk for chunk in chunks if chunk.size > 0]
    if not parts:
        return np.empty(0), np.empty(0)
    width = max(1, -(-int(max(part.max() for part in parts)) // (bins - 1)))
    counts = np.zeros(bins, dtype=np.int64)
    for part in parts:
        counts += np.bincount(part // np.uint32(width), minlength=bins)
    used = np.flatnonzero(counts)
    cumulative = np.cumsum(counts[used])
    return used.astype(np.float64) * width, cumulative / cumulative[-1]


def step_ns(frame: pl.DataFrame) -> int:
    """The usual length of the intervals of a stream: the median distance of their ends."""
    ends = np.unique(frame["ts_ns"].to_numpy())
    if ends.size == 0:
        return 0
    distances = np.diff(ends) if ends.size > 1 else ends
    return int(np.percentile(distances, 50, method="higher"))


def with_times(frame: pl.DataFrame) -> pl.DataFrame:
    """Adds length_ns, the time since the end before, and time_s, the middle of the interval.

    Live, intervals vary; in any run the last may be short.
    """
    ends = np.unique(frame["ts_ns"].to_numpy())
    first = min(step_ns(frame), int(ends[0])) if ends.size > 0 else 0
    lengths = np.diff(ends, prepend=ends[:1] - np.uint64(first))
    middles = (ends - lengths / 2) / NS_PER_S
    times = pl.DataFrame({"ts_ns": ends, "length_ns": lengths, "time_s": middles})
    return frame.join(times, on="ts_ns", how="left", maintain_order="left")


def between(frame: pl.DataFrame, t0_ns: float, t1_ns: float | None = None) -> pl.DataFrame:
    """Records in (t0, t1]: for intervals, those after a warm-up that ends at t0."""
    keep = pl.col("ts_ns") > t0_ns
    if t1_ns is not None:
        keep &= pl.col("ts_ns") <= t1_ns
    return frame.filter(keep)


def per_flow(interval: pl.DataFrame, span_ns: float, t0_ns: float = 0.0) -> pl.DataFrame:
    """One row per flow: group, goodput_bps, rtt_mean_ns, sent_segs, retransmits, halvings.

    Of the time after t0_ns; span_ns is its length, also for a flow that was there for part of it
    or not at all.
    """
    everyone = interval.select("flow_id", "group").unique()
    interval = between(interval, t0_ns)
    samples = pl.col("rtt_samples").cast(pl.Float64)
    return (
        interval.group_by("flow_id", "group")
        .agg(
            goodput_bps=pl.col("acked_bytes").sum() * 8 / (span_ns / NS_PER_S),
            acked_bytes=pl.col("acked_bytes").sum(),
            rtt_mean_ns=(pl.col("rtt_mean_ns") * samples).sum() / samples.sum(),
            sent_segs=pl.col("sent_segs").cast(pl.UInt64).sum(),
            retransmits=pl.col("retransmits").cast(pl.UInt64).sum(),
            halvings=pl.col("halvings").cast(pl.UInt64).sum(),
        )
        .with_columns(pl.col("rtt_mean_ns").fill_nan(None))
        .join(everyone, on=["flow_id", "group"], how="right")
        .with_columns(pl.exclude("rtt_mean_ns").fill_null(0))
        .sort("flow_id")
    )


def per_group(flows: pl.DataFrame) -> pl.DataFrame:
    """One row per group from per_flow's: flows, goodput_bps, jfi, rtt_mean_ns, retransmits, ..."""
    rows = [
        {
            "group": key[0],
            "flows": part.height,
            "goodput_bps": float(part["goodput_bps"].sum()),
            "jfi": jfi(part["goodput_bps"].to_numpy()),
            "rtt_mean_ns": part["rtt_mean_ns"].mean(),
            "retransmits": int(part["retransmits"].sum()),
            "halvings": int(part["halvings"].sum()),
        }
        for key, part in flows.group_by("group", maintain_order=True)
    ]
    schema = {
        "group": pl.UInt16,
        "flows": pl.Int64,
        "goodput_bps": pl.Float64,
        "jfi": pl.Float64,
        "rtt_mean_ns": pl.Float64,
        "retransmits": pl.Int64,
        "halvings": pl.Int64,
    }
    return pl.DataFrame(rows, schema=schema).sort("group")


def per_link(links: pl.DataFrame) -> pl.DataFrame:
    """One row per link of with_times's frame, named as in a summary.

    Utilisation counts frames, without what surrounds them on the wire.
    """
    rows = []
    for key, part in links.group_by("link", maintain_order=True):
        span = float(part["length_ns"].sum())
        weights, packets = part["length_ns"].to_numpy(), part["out_pkts"].to_numpy()
        mean = part["queue_mean_pkts"].to_numpy()
        delay = part["sojourn_mean_ns"].to_numpy()
        rate = float(np.average(part["rate_bps"].to_numpy(), weights=weights)) if span else 0.0
        rows.append(
            {
                "link": key[0],
                "rate_bps": rate,
                "utilisation": utilisation(float(part["out_bytes"].sum()), rate, span),
                "queue_mean_pkts": float(np.average(mean, weights=weights)) if span else None,
                "queue_mean_ns": float(np.average(delay, weights=packets))
                if packets.sum()
                else None,
                "drops": int(part["drops"].sum()),
                "marks": int(part["marks"].sum()),
            }
        )
    return pl.DataFrame(rows).sort("link") if rows else pl.DataFrame()


def with_rates(interval: pl.DataFrame) -> pl.DataFrame:
    """Adds goodput_bps to what with_times adds."""
    bits = pl.col("acked_bytes") * (8 * NS_PER_S)
    return with_times(interval).with_columns(goodput_bps=bits / pl.col("length_ns"))


def spread_over_time(frame: pl.DataFrame, column: str, low: float, high: float) -> pl.DataFrame:
    """Quantiles of a column over the flows of each group and interval: low, median, high."""
    value = pl.col(column)
    return (
        frame.group_by("time_s", "group")
        .agg(
            low=value.quantile(low, "nearest"),
            median=value.quantile(0.5, "nearest"),
            high=value.quantile(high, "nearest"),
        )
        .sort("group", "time_s")
    )


def typical_flows(flows: pl.DataFrame, limit: int) -> list[int]:
    """A few flows that stand for the rest: per group the median, the least and the best served."""
    if flows.height <= limit:
        return [int(flow) for flow in flows["flow_id"]]
    groups = [part.sort("goodput_bps", "flow_id") for _, part in flows.group_by("group")]
    groups.sort(key=lambda part: int(part["group"][0]))
    chosen: list[int] = []
    for share in (0.5, 0.0, 1.0):
        for part in groups:
            flow = int(part["flow_id"][round(share * (part.height - 1))])
            if flow not in chosen and len(chosen) < limit:
                chosen.append(flow)
    return sorted(chosen)
