# SPDX-License-Identifier: BSD-3-Clause
"""Intervals of means over seeds, and whether two means differ by more.

A mean's interval is Student's: mean - t s/sqrt(n) to mean + t s/sqrt(n), with t of n - 1 degrees of
freedom, so that of normal values it covers their mean in 95 % of the cases for any number of seeds.
Values that are far from normal, such as those of rare losses, are covered less often. Of one value,
or of equal ones, the interval is not known: equal samples do not say how far others may be.

Seeds of a run in which nothing random was drawn are one run, not replicas: `replicas` leaves the
others out, by this cause and never by their numbers, as two samples may be equal by chance.

Two means are compared by Welch's t test, which assumes no common spread. Of many comparisons some
differ by chance, so their p values are raised by Holm's method: the chance that any of the changes
reported is none is at most the level, whatever depends on what.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
import polars as pl

from weir.base import units

Floats = npt.NDArray[np.float64]
Value = str | int | float | bool | None  # of a parameter

COVERED = 0.95
STATED = (
    f"{100 * COVERED:g} % intervals (Student's t, for values that are about normal)"  # in captions
)
WELCH = f"{100 * COVERED:g} % intervals (Welch's t, which assumes no common spread)"
USED = "seed_used"  # a column: whether anything random was drawn


def replicas(frame: pl.DataFrame, settings: Sequence[str]) -> pl.Series:
    """Returns for each run whether it is a sample of its settings (columns of the frame).

    It is none if nothing random was drawn and a run with the same settings stands before it.
    """
    if USED not in frame.columns:
        return pl.repeat(True, frame.height, eager=True)
    first = pl.struct(*settings, USED).is_first_distinct()
    return frame.select(pl.col(USED).fill_null(True) | first).to_series()


def means(frame: pl.DataFrame, by: Sequence[str], settings: Sequence[str]) -> pl.DataFrame:
    """Returns the columns `by`; mean, low and high of `value` over replicas; n, their number.

    frame has a row per run. Means are NaN where no run has the value, intervals where only one has.
    """
    parts = samples(frame, by, settings)
    mean, low, high = intervals(list(parts.values()))
    made = {key: pl.Series([row[i] for row in parts], dtype=frame.schema[key])
            for i, key in enumerate(by)}  # fmt: skip
    n = [part.size for part in parts.values()]
    return pl.DataFrame({**made, "mean": mean, "low": low, "high": high, "n": n})


def samples(
    frame: pl.DataFrame, by: Sequence[str], settings: Sequence[str]
) -> dict[tuple[Value, ...], Floats]:
    """Returns known values of replicas by the values of the columns `by`, in the frame's order."""
    known = frame.filter(replicas(frame, settings)).with_columns(pl.col("value").fill_nan(None))
    if not by:
        return {(): known["value"].drop_nulls().to_numpy()}
    grouped = known.group_by(by, maintain_order=True).agg(pl.col("value").drop_nulls())
    return {row[:-1]: np.array(row[-1], np.float64) for row in grouped.rows()}


def intervals(parts: Sequence[Floats]) -> tuple[Floats, Floats, Floats]:
    """Returns mean, low and high of each part; one value, or equal ones, have no interval: NaN."""
    mean = np.array([part.mean() if part.size else np.nan for part in parts])
    size = np.array([part.size for part in parts], np.float64)
    error = np.array([part.std(ddof=1) if part.size and np.ptp(part) else np.nan for part in parts])
    from scipy import special

    half = error / np.sqrt(np.maximum(size, 1)) * special.stdtrit(size - 1, (1 + COVERED) / 2)
    return mean, mean - half, mean + half


def differences(pairs: Sequence[tuple[Floats, Floats]]) -> tuple[Floats, Floats, Floats]:
    """Returns how far each second mean is above the first, with Welch's low and high.

    The ends are NaN where a part has fewer than two values, or neither has any spread.
    """
    count = np.array([[part.size for part in pair] for pair in pairs], np.float64)
    mean = np.array([[p.mean() if p.size else np.nan for p in pair] for pair in pairs])
    var = np.array([[p.var(ddof=1) if p.size > 1 else np.nan for p in pair] for pair in pairs])
    error = var / np.maximum(count, 1)
    whole = error.sum(axis=1)
    whole[whole == 0] = np.nan
    freedom = whole**2 / (error**2 / np.maximum(count - 1, 1)).sum(axis=1)
    from scipy import special

    half = np.sqrt(whole) * special.stdtrit(freedom, (1 + COVERED) / 2)
    change = mean[:, 1] - mean[:, 0]
    return change, change - half, change + half


def stated(show: Callable[[float], str], mean: float, low: float, high: float) -> str:
    """Returns a mean with half of its interval, numbers as `show` has them: 1.50 ± 0.20 ms."""
    if not math.isfinite(mean):
        return units.NONE
    if not math.isfinite(low):
        return show(mean)
    number, space, unit = show(mean).partition(" ")
    half = show(high - mean)
    return f"{number} ± {half}" if half.endswith(space + unit) else f"{number} {unit} ± {half}"


def welch(a: Floats, b: Floats) -> float:
    """Returns Welch's p value of equal means; NaN: a sample has fewer than two values.

    Welch's test has no answer for samples without any spread, such as two seeds without losses and
    two with one loss each: the value is then that of the exact test, by permutations.
    """
    if a.size < 2 or b.size < 2:
        return math.nan
    if np.ptp(a) == np.ptp(b) == 0:
        return 1.0 if a[0] == b[0] else 2 / math.comb(a.size + b.size, a.size)
    from scipy import stats

    return float(stats.ttest_ind(a, b, equal_var=False).pvalue)


def holm(p: Sequence[float]) -> list[float]:
    """Returns p values raised by Holm's method; NaN is no comparison, and stays."""
    raised = np.array(p, np.float64)
    order = np.argsort(raised)[: np.count_nonzero(~np.isnan(raised))]  # NaN come last
    raised[order] *= np.arange(order.size, 0, -1)
    raised[order] = np.minimum(np.maximum.accumulate(raised[order]), 1)
    return [float(value) for value in raised]


def detectable(spread: float, n: int, tests: int, level: float) -> float:
    """Returns the least significant difference of two means of n values, in `tests` tests."""
    from scipy import special

    least = float(special.stdtrit(2 * (n - 1), 1 - level / tests / 2))
    return least * spread * math.sqrt(2 / n)
