# SPDX-License-Identifier: BSD-3-Clause
"""How far a mean over seeds may be off, and whether two differ by more than that.

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
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
from scipy import special

from weir.base import units

Floats = npt.NDArray[np.float64]

COVERED = 0.95
STATED = (
    f"{100 * COVERED:g} % intervals (Student's t, for values that are about normal)"  # in captions
)
USED = "seed_used"  # a column: whether anything random was drawn


def replicas(frame: pl.DataFrame, settings: Sequence[str]) -> pl.Series:
    """Says for each run whether it is a sample of its settings (columns of the frame).

    It is none if nothing random was drawn and a run with the same settings stands before it.
    """
    if USED not in frame.columns:
        return pl.repeat(True, frame.height, eager=True)
    first = pl.struct(*settings, USED).is_first_distinct()
    return frame.select(pl.col(USED).fill_null(True) | first).to_series()


def means(frame: pl.DataFrame, by: Sequence[str], settings: Sequence[str]) -> pl.DataFrame:
    """The columns `by`; mean, low and high of `value` over replicas; and n, how many have it.

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
) -> dict[tuple[Any, ...], Floats]:
    """The known values of replicas by the values of the columns `by`, in the frame's order."""
    known = frame.filter(replicas(frame, settings)).with_columns(pl.col("value").fill_nan(None))
    if not by:
        return {(): known["value"].drop_nulls().to_numpy()}
    grouped = known.group_by(by, maintain_order=True).agg(pl.col("value").drop_nulls())
    return {row[:-1]: np.array(row[-1], np.float64) for row in grouped.rows()}


def intervals(parts: Sequence[Floats]) -> tuple[Floats, Floats, Floats]:
    """Mean, low and high of each part; one value, or equal ones, have no interval: NaN."""
    mean = np.array([part.mean() if part.size else np.nan for part in parts])
    size = np.array([part.size for part in parts], np.float64)
    error = np.array([part.std(ddof=1) if part.size and np.ptp(part) else np.nan for part in parts])
    half = error / np.sqrt(np.maximum(size, 1)) * special.stdtrit(size - 1, (1 + COVERED) / 2)
    return mean, mean - half, mean + half


def stated(show: Callable[[float], str], mean: float, low: float, high: float) -> str:
    """A mean with half of its interval, as `show` writes numbers: 1.50 ± 0.20 ms."""
    if not math.isfinite(mean):
        return units.NONE
    if not math.isfinite(low):
        return show(mean)
    number, space, unit = show(mean).partition(" ")
    half = show(high - mean)
    return f"{number} ± {half}" if half.endswith(space + unit) else f"{number} {unit} ± {half}"


def welch(a: Floats, b: Floats) -> float:
    """The p value of two samples' means being the same; NaN: one has fewer than two values."""
    if a.size < 2 or b.size < 2:
        return math.nan
    of_a, of_b = float(a.var(ddof=1)) / a.size, float(b.var(ddof=1)) / b.size
    apart = abs(float(a.mean() - b.mean()))
    if of_a + of_b == 0:
        return 1.0 if apart == 0 else 0.0
    freedom = (of_a + of_b) ** 2 / (of_a**2 / (a.size - 1) + of_b**2 / (b.size - 1))
    return beyond(apart / math.sqrt(of_a + of_b), freedom)


def beyond(t: float, freedom: float) -> float:
    """The chance of a t of Student's as far from 0."""
    return 2 * float(special.stdtr(freedom, -abs(t)))


def holm(p: Sequence[float]) -> list[float]:
    """p values raised for their number; those that are NaN were no comparison."""
    known = [i for i, value in enumerate(p) if not math.isnan(value)]
    raised: list[Any] = [math.nan] * len(p)
    largest = 0.0
    for rank, place in enumerate(sorted(known, key=lambda i: p[i])):
        largest = max(largest, min(1.0, (len(known) - rank) * p[place]))
        raised[place] = largest
    return raised


def detectable(spread: float, n: int, tests: int, level: float) -> float:
    """The least difference of two means of n values that is surely found among so many tests."""
    least = float(special.stdtrit(2 * (n - 1), 1 - level / tests / 2))
    return least * spread * math.sqrt(2 / n)
