# SPDX-License-Identifier: BSD-3-Clause
"""Pure functions from frames to numbers and frames.

A frame has the columns of its telemetry stream (common/telemetry/schema.h). A record of an interval
stream stands for the interval that ends at its ts_ns.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from weir.base.names import own_names

Floats = npt.NDArray[np.float64]

NS_PER_S = 1e9


def jfi(x: npt.ArrayLike) -> float | None:
    """Returns Jain's fairness index, (sum x)^2 / (n sum x^2), in [1/n, 1].

    One flow is fair to itself: 1. Nothing to share (no flows, all zero): None. ValueError: a share
    is negative or not finite.
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
    """Returns the share of a link's capacity that left it; None for a span or a rate of 0."""
    if rate_bps <= 0 or span_ns <= 0:
        return None
    return out_bytes * 8 / (rate_bps * span_ns / NS_PER_S)


def percentile(x: npt.ArrayLike, p: float) -> float | None:
    """Returns the smallest value that at least p percent do not exceed; None of nothing."""
    values = np.asarray(x, dtype=np.float64)
    if values.size == 0:
        return None
    return float(np.percentile(values, p, method="inverted_cdf"))


def ecdf(x: npt.ArrayLike, weights: npt.ArrayLike | None = None) -> tuple[Floats, Floats]:
    """Returns the distinct values, ascending, and the share of the weight at or below each."""
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
    """Returns the value at which a CDF reaches q."""
    if x.size == 0:
        return None
    return float(x[min(int(np.searchsorted(share, q - 1e-12)), x.size - 1)])


class Binned:
    """A distribution of whole numbers that come in parts, to within the largest over bins / 2."""

    def __init__(self, bins: int = 1 << 17) -> None:
        self.counts = np.zeros(bins, dtype=np.int64)
        self.shift = 0  # a bin is 2^shift wide

    def add(self, values: npt.NDArray[np.unsignedinteger]) -> None:
        """Counts values; where one is beyond the last bin, each two become one."""
        bins = self.counts.size
        while values.size and int(values.max()) >> self.shift >= bins:
            self.counts = np.pad(self.counts[0::2] + self.counts[1::2], (0, bins // 2))
            self.shift += 1
        places = (values >> values.dtype.type(self.shift)).astype(np.int64)
        self.counts += np.bincount(places, minlength=bins)

    def cdf(self) -> tuple[Floats, Floats]:
        """Returns the same as ecdf of all values."""
        used = np.flatnonzero(self.counts)
        cumulative = np.cumsum(self.counts[used])
        return used.astype(np.float64) * (1 << self.shift), cumulative / cumulative[-1:]


BINS = 32  # of a power of two, in the distributions of summaries: common/base/hist.h


def within_bins(
    ends: Floats, share: Floats, largest: float, points: int = 5
) -> tuple[Floats, Floats]:
    """Returns a polygon through the CDF of a summary: it rises within each bin that has values.

    ends: the largest value of each such bin, of BINS per power of two.
    """
    widths = 2.0 ** np.maximum(np.floor(np.log2(np.maximum(ends, 1) / BINS)), 0)
    lows = np.minimum(ends - widths + 1, largest)
    before = np.concatenate([[0.0], share[:-1]])
    part = np.linspace(0, 1, points)  # several, for axes that are logarithmic
    x = lows[:, None] + (np.minimum(ends, largest) - lows)[:, None] * part
    return x.ravel(), (before[:, None] + (share - before)[:, None] * part).ravel()


def episodes(states: pl.DataFrame, end_s: float) -> pl.DataFrame:
    """Returns when flows were not open: flow_id, from_s, to_s, state.

    states: ts_ns, flow_id and state, a name, at each time when it is known; open before the first.
    """
    was = pl.col("state").shift(1).over("flow_id").fill_null("open")
    changes = states.sort("flow_id", "ts_ns", maintain_order=True).filter(pl.col("state") != was)
    from_s = pl.col("ts_ns") / NS_PER_S
    to_s = from_s.shift(-1).over("flow_id").fill_null(end_s)
    return changes.select("flow_id", from_s=from_s, to_s=to_s, state="state").filter(
        pl.col("state") != "open"
    )


def step_ns(frame: pl.DataFrame) -> int:
    """Returns the usual length of the intervals of a stream: the median distance of their ends."""
    ends = np.unique(frame["ts_ns"].to_numpy())
    if ends.size == 0:
        return 0
    distances = np.diff(ends) if ends.size > 1 else ends
    return int(np.percentile(distances, 50, method="higher"))


@dataclass(frozen=True)
class Intervals:
    """Boundaries of a run's intervals: each length_ns, the end of the warm-up, the end of the run.

    Live they end a little late, so that an interval there begins where the one before ended.
    """

    length_ns: int
    warmup_ns: int = 0
    end_ns: int | None = None  # of the run; None: the last interval is whole
    exact: bool = True  # in virtual time, and of a capture

    def lengths(self, ends: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Returns the lengths of intervals that end at `ends`, ascending.

        Where no flow had a record for a while, the next end is not one length away.
        """
        if self.exact:
            begin = (ends - 1) // self.length_ns * self.length_ns
            cut = (begin < self.warmup_ns) & (self.warmup_ns < ends)
            begin = np.where(cut, self.warmup_ns, begin)
            last = ends if self.end_ns is None else np.minimum(ends, self.end_ns)
            return np.asarray(np.maximum(last - begin, 1), dtype=np.int64)
        apart = np.diff(ends, prepend=max(0, int(ends[0]) - self.length_ns))
        return np.where(apart > 1.5 * self.length_ns, self.length_ns, apart)


def with_times(frame: pl.DataFrame, intervals: Intervals | None = None) -> pl.DataFrame:
    """Adds length_ns, how long each interval was, and time_s, its middle.

    Without the run's intervals they are as long as the records are usually apart.
    """
    ends = np.unique(frame["ts_ns"].to_numpy()).astype(np.int64)
    known = intervals or Intervals(max(1, step_ns(frame)), exact=False)
    lengths = known.lengths(ends) if ends.size > 0 else ends
    last = ends if known.end_ns is None else np.minimum(ends, known.end_ns)
    times = pl.DataFrame(
        {
            "ts_ns": ends.astype(np.uint64),
            "length_ns": lengths,
            "time_s": (last - lengths / 2) / NS_PER_S,
        }
    )
    return frame.join(times, on="ts_ns", how="left", maintain_order="left")


def gaps(timed: pl.DataFrame) -> list[tuple[float, float]]:
    """Returns spans in seconds in which with_times's frame has no record between two it has."""
    if timed.height == 0:
        return []
    ends = timed.select("time_s", half=pl.col("length_ns") / (2 * NS_PER_S)).unique().sort("time_s")
    time, half = ends["time_s"].to_numpy(), ends["half"].to_numpy()
    first, last = (time + half)[:-1], (time - half)[1:]
    apart = last - first > 0.5 * half[1:]  # live an interval may be a little late
    return list(zip(first[apart].tolist(), last[apart].tolist(), strict=True))


def with_gaps(timed: pl.DataFrame) -> pl.DataFrame:
    """Adds an empty record within each gap, so that a line in a figure breaks there."""
    middles = [(first + last) / 2 for first, last in gaps(timed)]
    if not middles:
        return timed
    empty = pl.DataFrame({"time_s": middles}, schema={"time_s": pl.Float64})
    return pl.concat([timed, empty], how="diagonal")


def between(frame: pl.DataFrame, t0_ns: float, t1_ns: float | None = None) -> pl.DataFrame:
    """Returns records in (t0, t1]: for intervals, those after a warm-up that ends at t0."""
    keep = pl.col("ts_ns") > round(t0_ns)  # 1.05 s is no double
    if t1_ns is not None:
        keep &= pl.col("ts_ns") <= t1_ns
    return frame.filter(keep)


@dataclass(frozen=True)
class Tally:
    """Interval records added up per flow. Its size is bounded by the flows, not by the records."""

    sums: pl.DataFrame  # flow_id, group and the sums of INTERVAL_SUMS, one row per flow
    rtts: pl.DataFrame  # flow_id, group, code, samples: means of intervals, as rtt_of_code gives


INTERVAL_SUMS = (
    "acked_bytes",
    "delivered_bytes",
    "sent_segs",
    "retransmits",
    "cwnd_reductions",
    "drops",
    "rtt_samples",
)
RTT_CODES = 1000  # per factor e: a percentile is within 0.05 %
PER_FLOW = ("flow_id", "group")


def rtt_of_code(code: pl.Expr) -> pl.Expr:
    """Returns the RTT in ns that a code stands for."""
    return (code.cast(pl.Float64) / RTT_CODES).exp()


def known_sum(values: pl.Expr) -> pl.Expr:
    """Returns the sum; null if one of them is not known."""
    return pl.when(values.null_count() == 0).then(values.sum())


def tally(frames: Iterable[pl.DataFrame], t0_ns: float = 0.0) -> Tally:
    """Adds up what flows did after t0_ns, a frame of interval records at a time.

    A flow that has records only before t0_ns is there with zeros.
    """
    everyone: list[pl.DataFrame] = []
    sums: list[pl.DataFrame] = []
    rtts: list[pl.DataFrame] = []
    for frame in frames:
        everyone = [pl.concat([*everyone, frame.select(PER_FLOW).unique()]).unique()]
        late = between(frame, t0_ns).with_columns(
            code=(pl.col("rtt_mean_ns").clip(1).log() * RTT_CODES).round().cast(pl.UInt16)
        )
        weighed = pl.col("rtt_mean_ns").cast(pl.Float64) * pl.col("rtt_samples")
        counted = {name: known_sum(pl.col(name).cast(pl.UInt64)) for name in INTERVAL_SUMS}
        sums.append(late.group_by(PER_FLOW).agg(**counted, rtt_weighed=weighed.sum()))
        samples = pl.col("rtt_samples").cast(pl.UInt64).sum()
        coded = late.filter(pl.col("rtt_samples") > 0).group_by(*PER_FLOW, "code")
        rtts.append(coded.agg(samples=samples))
        sums, rtts = [_added(sums, PER_FLOW)], [_added(rtts, (*PER_FLOW, "code"))]
    if not everyone:
        return Tally(pl.DataFrame(), pl.DataFrame())
    late = sums[0].with_columns(there=True)
    whole = everyone[0].join(late, on=PER_FLOW, how="left")
    counts = pl.exclude(*PER_FLOW, "there")
    absent = pl.col("there").is_null()
    whole = whole.with_columns(pl.when(absent).then(0).otherwise(counts).name.keep()).drop("there")
    return Tally(whole.sort("flow_id"), rtts[0].sort("flow_id", "code"))


def _added(parts: Sequence[pl.DataFrame], keys: Sequence[str]) -> pl.DataFrame:
    if len(parts) == 1:
        return parts[0]
    return pl.concat(parts).group_by(keys).agg(known_sum(pl.exclude(*keys)))


def rtt_percentiles(rtts: pl.DataFrame, by: str, points: Sequence[int] = (50, 99)) -> pl.DataFrame:
    """Returns percentiles of a tally's RTTs per flow_id or group: columns rtt_p50_ns, rtt_p99_ns.

    They are percentiles of the intervals' means, each weighted by its samples: single packets vary
    more.
    """
    ranked = rtts.group_by(by, "code").agg(pl.col("samples").sum()).sort(by, "code")
    up_to = pl.col("samples").cum_sum() / pl.col("samples").sum()
    shares = ranked.with_columns(up_to=up_to.over(by))
    reached = {
        f"rtt_p{p}_ns": rtt_of_code(pl.col("code").filter(pl.col("up_to") >= p / 100 - 1e-12).min())
        for p in points
    }
    return shares.group_by(by).agg(**reached).sort(by)


def per_flow(interval: pl.DataFrame, span_ns: float, t0_ns: float = 0.0) -> pl.DataFrame:
    """Returns a row per flow of the time after t0_ns: see flow_table.

    span_ns is that time's length, also for a flow that was there for part of it or not at all.
    """
    return flow_table(tally([interval], t0_ns), span_ns)


def flow_table(counted: Tally, span_ns: float) -> pl.DataFrame:
    """Returns a row per flow: group, goodput_bps, RTT (mean over samples, percentiles), counts."""
    return (
        counted.sums.join(rtt_percentiles(counted.rtts, "flow_id"), on="flow_id", how="left")
        .with_columns(
            goodput_bps=pl.col("delivered_bytes") * 8 / (span_ns / NS_PER_S),
            rtt_mean_ns=pl.when(pl.col("rtt_samples") > 0).then(
                pl.col("rtt_weighed") / pl.col("rtt_samples")
            ),
        )
        .drop("rtt_weighed")
        .sort("flow_id")
    )


def rtx_overhead(retransmits: float, sent_segs: float) -> float | None:
    """Returns segments sent again over those sent for the first time; None if these are none.

    At the end of a flow that is mvfst's definition, bytes sent again per byte acknowledged.
    """
    first = sent_segs - retransmits
    return retransmits / first if first > 0 else None


def objective(goodput_bps: float, delay_ns: float, delta: float = 0.5) -> float | None:
    """Returns Copa's objective: log(throughput) - delta log(delay), in Mbit/s and ms.

    Larger is better. Natural logarithms, so that other units only move the scale: a difference of
    0.1 is 10 % more throughput, or at delta 0.5 18 % less delay. None where one of them is not
    above 0. Arun and Balakrishnan, Copa, NSDI 2018, section 1.
    """
    if goodput_bps <= 0 or delay_ns <= 0:
        return None
    return math.log(goodput_bps / 1e6) - delta * math.log(delay_ns / 1e6)


def mean_of_samples(flows: pl.DataFrame) -> float | None:
    """Returns the mean of all RTT samples of per_flow's flows; None without any."""
    samples = float(flows["rtt_samples"].sum())
    if samples == 0:
        return None
    return float((flows["rtt_mean_ns"].fill_null(0) * flows["rtt_samples"]).sum()) / samples


GROUP_SUMS = ("acked_bytes", "sent_segs", "retransmits", "cwnd_reductions", "drops")


def per_group(flows: pl.DataFrame) -> pl.DataFrame:
    """Returns a row per group: flows, goodput_bps, share, jfi, rtt_mean_ns, counts."""
    total = float(flows["goodput_bps"].sum())
    rows = [
        {
            "group": key[0],
            "flows": part.height,
            "goodput_bps": float(part["goodput_bps"].sum()),
            "share": float(part["goodput_bps"].sum()) / total if total > 0 else None,
            "jfi": jfi(part["goodput_bps"].to_numpy()),
            "rtt_mean_ns": mean_of_samples(part),
            **{
                name: None if part[name].null_count() else int(part[name].sum())
                for name in GROUP_SUMS
            },
        }
        for key, part in flows.group_by("group", maintain_order=True)
    ]
    means = dict.fromkeys(("goodput_bps", "share", "jfi", "rtt_mean_ns"), pl.Float64())
    counts = dict.fromkeys(GROUP_SUMS, pl.Int64())
    schema = {"group": pl.UInt16(), "flows": pl.Int64(), **means, **counts}
    return pl.DataFrame(rows, schema=schema).sort("group")


@dataclass(frozen=True)
class MathisFit:
    """Goodput = C MSS / (RTT sqrt p) fitted to flows (Mathis et al., CCR 1997)."""

    c: float | None  # None: no flow to fit
    flow_id: npt.NDArray[np.uint32]  # flows that were fitted
    error: Floats  # of each, |y - C x| / y
    left_out: dict[str, int]  # why flows could not be fitted: how many

    @property
    def error_median(self) -> float | None:
        """The median flow's prediction error."""
        return float(np.median(self.error)) if self.error.size > 0 else None


def mathis(flows: pl.DataFrame, losses: str, mss_bytes: float, c: float | None = None) -> MathisFit:
    """Fits C by least squares, sum(x y) / sum(x^2), over per_flow's flows, unless it is given.

    losses is the column that p counts per data segment sent: `cwnd_reductions` or `drops`.
    mss_bytes is payload; y is goodput in bytes per second, RTT each flow's mean, with the queue.
    """
    delivered = (pl.col("acked_bytes") > 0) & (pl.col("sent_segs") > 0)
    needs = {
        "nothing delivered": delivered,
        "no RTT sample": pl.col("rtt_mean_ns") > 0,
        "no loss event": pl.col(losses) > 0,
    }
    left_out = {}
    for reason, need in needs.items():
        usable = flows.filter(need)
        left_out[reason] = flows.height - usable.height
        flows = usable
    p = (flows[losses] / flows["sent_segs"]).to_numpy()
    y = flows["goodput_bps"].to_numpy() / 8
    x = mss_bytes / (flows["rtt_mean_ns"].to_numpy() / NS_PER_S * np.sqrt(p))
    if c is None and x.size > 0:
        c = float(x @ y / (x @ x))
    error = np.abs(y - c * x) / y if c is not None else np.empty(0)
    return MathisFit(c, flows["flow_id"].to_numpy(), error, left_out)


@dataclass(frozen=True)
class LossesPerHalving:
    """Drops per window reduction, of all flows and of each."""

    total: float | None  # all drops over all window reductions
    per_flow: Floats  # of flows that halved


def losses_per_halving(flows: pl.DataFrame) -> LossesPerHalving:
    """Returns drops per window reduction from per_flow's columns."""
    flows = flows.drop_nulls(["cwnd_reductions", "drops"])  # null of kernels' flows, and live
    halved = flows.filter(pl.col("cwnd_reductions") > 0)
    reductions = float(flows["cwnd_reductions"].sum())
    total = float(flows["drops"].sum()) / reductions if reductions > 0 else None
    return LossesPerHalving(total, (halved["drops"] / halved["cwnd_reductions"]).to_numpy())


def per_link(links: pl.DataFrame) -> pl.DataFrame:
    """Returns a row per link of with_times's frame, named as in a summary.

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


@dataclass(frozen=True)
class Observed:
    """Numbers that a stage, or the discipline of a link, observed."""

    name: str  # of the discipline or stage
    link: int  # index of the link; 255: not a link
    path: int  # index of the path in the config
    numbers: pl.DataFrame  # ts_ns, and a column for each number


OBSERVED = ("value", "value2", "value3", "value4")  # fields of an event


def observed(
    events: pl.DataFrame, event: int, observers: Mapping[int, tuple[str, Sequence[str]]]
) -> list[Observed]:
    """Returns what each stage and discipline observed, by their first events.

    event: the number of the kind of event that holds it. observers: by number, the name of each and
    of what it observes.
    """
    keys = ("detail", "group", "path", "stage")
    found = []
    for key, part in events.filter(pl.col("event") == event).group_by(keys, maintain_order=True):
        of = dict(zip(keys, key, strict=True))
        name, names = observers.get(of["detail"], ("", ()))
        pairs = zip(OBSERVED, names, strict=False)
        numbers = [pl.col(field).cast(pl.Float64).alias(own) for field, own in pairs]
        if numbers:
            frame = part.select("ts_ns", *numbers).sort("ts_ns")
            found.append(Observed(name, of["group"], of["path"], frame))
    return found


def with_rates(interval: pl.DataFrame, intervals: Intervals | None = None) -> pl.DataFrame:
    """Adds goodput_bps and what with_times adds.

    Goodput is of what was delivered. An ACK that fills a hole acknowledges in one interval what
    arrived in many: that would be a rate above the link's.
    """
    bits = pl.col("delivered_bytes") * (8 * NS_PER_S)
    return with_times(interval, intervals).with_columns(goodput_bps=bits / pl.col("length_ns"))


def spread_over_time(frame: pl.DataFrame, column: str, low: float, high: float) -> pl.DataFrame:
    """Returns quantiles of a column over the flows of each group and interval.

    Of rtt_mean_ns: low_rtt_mean_ns, median_rtt_mean_ns, high_rtt_mean_ns. Names end in the unit.
    """
    parts = {"low": low, "median": 0.5, "high": high}
    value = pl.col(column)
    return (
        frame.group_by("time_s", "group")
        .agg(value.quantile(q, "nearest").alias(f"{name}_{column}") for name, q in parts.items())
        .sort("group", "time_s")
    )


def typical_flows(flows: pl.DataFrame, limit: int) -> dict[int, str]:
    """Returns flows that stand for the rest: per group the median, least and best served.

    Each with which of these it is; empty where all flows are there, or all of a group.
    """
    if flows.height <= limit:
        return {int(flow): "" for flow in flows["flow_id"]}
    groups = [part.sort("goodput_bps", "flow_id") for _, part in flows.group_by("group")]
    groups.sort(key=lambda part: int(part["group"][0]))
    chosen: dict[int, str] = {}
    for share, role in ((0.5, "median"), (0.0, "least"), (1.0, "best")):
        for part in groups:
            flow = int(part["flow_id"][round(share * (part.height - 1))])
            if flow not in chosen and len(chosen) < limit:
                chosen[flow] = role if part.height > 1 else ""
    return dict(sorted(chosen.items()))


SIZE_EDGES = (10_000, 64_000, 100_000, 1_000_000, 10_000_000)  # bytes: bins end with these


def completion_times(transfers: pl.DataFrame, closed: int, t0_ns: float = 0.0) -> pl.DataFrame:
    """Returns completion times by group and size, of those begun at t0_ns or later.

    bin: how many of SIZE_EDGES are below the size; null: of what has no end, such as an on time.
    closed: the number of the event `close`.
    unfinished: how many did not, whose times would be longer: the percentiles are the others'.
    Slowdown is the time over that on an empty path.
    """
    took = (pl.col("ts_ns") - pl.col("start_ns")).cast(pl.Float64)
    ideal = pl.when(pl.col("ideal_ns") > 0).then(pl.col("ideal_ns"))
    begun = transfers.filter(pl.col("start_ns") >= t0_ns)
    above = pl.sum_horizontal((pl.col("size_bytes") > edge).cast(pl.UInt8) for edge in SIZE_EDGES)
    binned = begun.with_columns(
        took_ns=took,
        slowdown=took / ideal,
        bin=pl.when(pl.col("size_bytes").is_not_null()).then(above),
    )
    done = pl.col("event") == closed
    rows = binned.group_by("group", "bin").agg(
        count=done.sum(),
        unfinished=(~done).sum(),
        mean_bytes=pl.col("size_bytes").filter(done).cast(pl.Float64).mean(),
        mean_ns=pl.col("took_ns").filter(done).mean(),
        **{f"p{p}_ns": percentile_of(pl.col("took_ns").filter(done), p) for p in (50, 95, 99)},
        slowdown_mean=pl.col("slowdown").filter(done).mean(),
        slowdown_p99=percentile_of(pl.col("slowdown").filter(done), 99),
    )
    return rows.sort("group", "bin", nulls_last=True)


def percentile_of(values: pl.Expr, p: float) -> pl.Expr:
    """Returns `percentile` of the known values as an expression; null of none."""
    known = values.drop_nulls()
    place = (known.len() * p / 100 - 1e-9).ceil().cast(pl.Int64) - 1
    return known.sort().get(place.clip(0), null_on_oob=True)


def size_bin(number: int | None) -> str:
    """Returns in words what a bin of completion_times holds."""
    if number is None:
        return "not known"
    edges = [
        f"{edge // 1_000_000} MB" if edge >= 1_000_000 else f"{edge // 1000} kB"
        for edge in SIZE_EDGES
    ]
    if number == 0:
        return f"to {edges[0]}"
    if number == len(edges):
        return f"above {edges[-1]}"
    return f"{edges[number - 1]} to {edges[number]}"


def video_streams(transfers: pl.DataFrame, closed: int, t0_ns: float = 0.0) -> pl.DataFrame:
    """Returns streams of the source `video` by flow: bitrate, and how long playback stalled.

    A player has one segment in reserve: it starts when the second segment has arrived. From then on
    a segment plays for as long as it took to encode, and playback stands still until the next one
    is there. closed: the number of the event `close`; of segments written after t0_ns.
    """
    rows = []
    finished = transfers.filter((pl.col("event") == closed) & (pl.col("start_ns") >= t0_ns))
    for (group, flow), own in finished.sort("group", "flow_id", "number").group_by(
        "group", "flow_id", maintain_order=True
    ):
        arrived = np.maximum.accumulate(own["ts_ns"].to_numpy().astype(np.float64))
        length_ns = own["gap_ns"].to_numpy().astype(np.float64)
        bps = own["size_bytes"].to_numpy() * 8 * NS_PER_S / length_ns
        late_ns = arrived - (np.cumsum(length_ns) - length_ns)  # as if it played from 0 on
        late_ns[0] = arrived[:2][-1]
        still_ns = np.diff(np.maximum.accumulate(late_ns))
        rows.append(
            {
                "group": group,
                "flow_id": flow,
                "segments": own.height,
                "bitrate_mean_bps": float(bps.mean()),
                "switches": int(np.count_nonzero(np.diff(bps))),
                "still_ns": float(still_ns.sum()),
                "stalls": int(np.count_nonzero(still_ns)),
                "played_ns": float(length_ns.sum()),
            }
        )
    return pl.DataFrame(rows)


def __dir__() -> list[str]:
    return own_names(globals())
