# SPDX-License-Identifier: BSD-3-Clause
"""A model of a trace's rate: two states (markov_link), or an autoregression (replay).

Both are of the mean rates of intervals.

markov  Rates above a threshold are good, the others bad; the threshold leaves the least variance
        within both (Otsu, 1979), and a state's rate is its mean. The times in the states are those
        of the chain whose probabilities of a change per interval, p = left / intervals in it, are
        the trace's: each is left at the rate p * -ln(1 - sum of both p) / (sum * interval).
ar      Rates become normal numbers by their ranks: x[t] = sum a[i] x[t - i] + noise, with the
        coefficients of Yule and Walker. What is drawn becomes rates of the trace's own
        distribution, which so is kept, outages included.

The error of a model is measured on a long series drawn from it: the distance of the distributions
(Wasserstein's, the mean difference between equal quantiles, as part of the mean rate), and the mean
difference of the autocorrelations over all lags up to a tenth of the trace, LAGS_MAX at most.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from statistics import NormalDist

import numpy as np

from weir.base import units
from weir.base.errors import UserError
from weir.trace import steps
from weir.trace.steps import NS_PER_S, Floats, Steps

LAGS_MAX = 100
DRAWN_MIN = 20_000  # intervals of a series whose error is measured
LEAST = 20  # intervals that say something
NORMAL = NormalDist()


@dataclass(frozen=True)
class Markov:
    """The parameters of markov_link."""

    good_bps: float
    bad_bps: float
    good_mean_ns: float
    bad_mean_ns: float

    def draw(self, count: int, step_ns: float, rng: np.random.Generator) -> Floats:
        """Returns the mean rates of so many intervals, drawn at random."""
        mean_ns = self.good_mean_ns + self.bad_mean_ns
        end_ns = count * step_ns
        cycles = int(2 * end_ns / mean_ns) + 20
        times = rng.exponential((self.good_mean_ns, self.bad_mean_ns), (cycles, 2)).ravel()
        ends = np.append(np.cumsum(times), np.inf)
        ends = ends[: int(np.searchsorted(ends, end_ns)) + 1]
        ends[-1] = end_ns
        states = np.where(np.arange(len(ends)) % 2, self.bad_bps, self.good_bps)
        return steps.make(np.append(0.0, ends[:-1]), end_ns, states).series(step_ns)

    def stage(self, file: str) -> str:
        return (
            f"- markov_link: {{good: {rate(self.good_bps)}, bad: {rate(self.bad_bps)}, "
            f"good_mean: {time(self.good_mean_ns)}, bad_mean: {time(self.bad_mean_ns)}}}"
        )


@dataclass(frozen=True)
class Autoregression:
    """Coefficients of normal numbers, and the rates that stand for their ranks."""

    coefficients: list[float]
    noise: float  # standard deviation
    rates_bps: Floats  # sorted

    def draw(self, count: int, step_ns: float, rng: np.random.Generator) -> Floats:
        """Returns the mean rates of so many intervals, drawn at random."""
        order = len(self.coefficients)
        before = 100 * order
        noise = rng.normal(0.0, self.noise, count + before)
        x = np.zeros(count + before)
        a = np.array(self.coefficients[::-1])
        for i in range(order, count + before):
            x[i] = a @ x[i - order : i] + noise[i]
        u = np.array([NORMAL.cdf(value) for value in x[before:]])
        place = np.minimum((u * len(self.rates_bps)).astype(int), len(self.rates_bps) - 1)
        return np.asarray(self.rates_bps[place])

    def stage(self, file: str) -> str:
        return f"- replay: {{file: {file}}}"


@dataclass(frozen=True)
class Error:
    """Distances of a model's series from the trace."""

    distribution: float  # part of the mean rate
    autocorrelation: float
    lags: int


def rate(bps: float) -> str:
    return f"{bps / 1e3:.6g}kbit" if bps < 1e6 else f"{bps / 1e6:.6g}Mbit"


def time(ns: float) -> str:
    return f"{ns / 1e6:.6g}ms"


def rates_of(trace: Steps, step_ns: float) -> Floats:
    """Returns the mean rates of intervals. UserError: there is nothing to model."""
    rates = trace.series(step_ns)
    if len(rates) < LEAST:
        raise UserError(f"{len(rates)} intervals of {units.time(step_ns)} are too few for a model")
    if rates.max() - rates.min() <= 1e-9 * rates.max():
        raise UserError("the rate never changes: a link of constant rate is its model")
    return rates


def markov(rates: Floats, step_ns: float) -> Markov:
    """Returns a model of two states."""
    ordered = np.sort(rates)
    below = np.arange(1, len(rates))
    sums = np.cumsum(ordered)[:-1]
    low, high = sums / below, (ordered.sum() - sums) / below[::-1]
    between = below * below[::-1] * (high - low) ** 2  # what is not within
    between[ordered[1:] == ordered[:-1]] = -1.0  # equal rates are in one state
    threshold = ordered[int(np.argmax(between))]
    good = rates > threshold
    # The last stay ends with the trace, and is none that was left.
    left_good = max(1, int(np.count_nonzero(good[:-1] & ~good[1:]))) / np.count_nonzero(good)
    left_bad = max(1, int(np.count_nonzero(~good[:-1] & good[1:]))) / np.count_nonzero(~good)
    changes = min(0.99, left_good + left_bad)
    seen = -np.log1p(-changes) / changes  # changes per change that is seen once an interval
    return Markov(
        round(float(rates[good].mean())),
        round(float(rates[~good].mean())),
        float(step_ns / (left_good * seen)),
        float(step_ns / (left_bad * seen)),
    )


def autocorrelation(values: Floats, lags: int) -> Floats:
    """Returns the autocorrelations of lags 0 to `lags`."""
    x = values - values.mean()
    products = np.array([x[: len(x) - k] @ x[k:] for k in range(lags + 1)], dtype=np.float64)
    return products / float(x @ x)


def autoregression(rates: Floats, order: int) -> Autoregression:
    """Returns the coefficients of an autoregression of this order, and the noise."""
    if not 0 < order < len(rates) // 4:
        raise UserError(f"--order {order}: between 1 and a quarter of the {len(rates)} intervals")
    _, inverse, counts = np.unique(rates, return_inverse=True, return_counts=True)
    middle = np.cumsum(counts) - counts / 2  # of the ranks of equal rates
    x = np.array([NORMAL.inv_cdf(u) for u in middle / len(rates)])[inverse]
    r = autocorrelation(x, order)
    lag = np.arange(order)
    a = np.linalg.solve(r[np.abs(lag[:, None] - lag)], r[1:])
    noise = max(0.0, 1 - float(a @ r[1:])) ** 0.5
    return Autoregression([float(v) for v in a], noise, np.sort(rates))


def error(rates: Floats, drawn: Floats) -> Error:
    """Returns the errors of a model, by a series drawn from it."""
    quantiles = (np.arange(1000) + 0.5) / 1000
    apart = np.abs(np.quantile(rates, quantiles) - np.quantile(drawn, quantiles)).mean()
    lags = max(1, min(LAGS_MAX, len(rates) // 10))
    differ = np.abs(autocorrelation(rates, lags) - autocorrelation(drawn, lags))[1:].mean()
    return Error(float(apart / rates.mean()), float(differ), lags)


@dataclass(frozen=True)
class Fitted:
    """A model, its error, and a series drawn from it."""

    model: Markov | Autoregression
    error: Error
    step_ns: float
    drawn_bps: Floats

    def steps(self, count: int) -> Steps:
        """Returns the first `count` of the drawn rates as a trace."""
        rates = self.drawn_bps[:count]
        at_ns = np.arange(len(rates)) * self.step_ns
        return steps.make(at_ns, len(rates) * self.step_ns, rates)

    def numbers(self, file: str) -> dict[str, object]:
        model = {k: v for k, v in asdict(self.model).items() if k != "rates_bps"}
        named = {"step_s": self.step_ns / NS_PER_S, "stage": self.model.stage(file)}
        return {"model": model, "error": asdict(self.error), **named}


def fit(trace: Steps, kind: str, step_ns: float, order: int, seed: int, count: int) -> Fitted:
    """Returns the model of this kind, and at least `count` intervals drawn from it."""
    rates = rates_of(trace, step_ns)
    if kind not in ("markov", "ar"):
        raise UserError(f"--model: '{kind}' is not a model; there is markov, ar")
    model = markov(rates, step_ns) if kind == "markov" else autoregression(rates, order)
    rng = np.random.default_rng(seed)
    drawn = model.draw(max(count, DRAWN_MIN, len(rates)), step_ns, rng)
    return Fitted(model, error(rates, drawn), step_ns, drawn)
