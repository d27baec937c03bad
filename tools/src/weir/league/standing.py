# SPDX-License-Identifier: BSD-3-Clause
"""Means over scenes with intervals, and ranks with theirs, by a paired bootstrap.

Scenes are what is drawn, with replacement, and with --full the seeds within each of them: the
question is what another choice of scenes would have given. All controls have the same draws, so
what makes a scene hard for all of them cancels out, as in a paired test. Each draw has means and
ranks of its own; an interval is the middle 95 % of them. Of a column with few scenes it goes from
about the least to the largest, and says little more than that.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np

from weir.analysis import spread
from weir.analysis.spread import COVERED, Floats
from weir.base import units
from weir.league import entry
from weir.league.entry import Entry
from weir.studies.evaluate.scene import Scene

DRAWS, SEED = 2000, 1


@dataclass(frozen=True)
class Column:
    """A column of the league: a mean over scenes of one of the values of `entry.measures`.

    A ratio is to the value with CUBIC in the control's place, and its mean the geometric one, in
    percent.
    least: smaller values count as this, so that a ratio of two that are nearly 0 says nothing.
    """

    name: str
    says: str
    index: int | None = None  # of the value; None: the part of demands that hold
    wanted: Callable[[Scene], bool] = lambda _: True
    ratio: bool = False
    less: bool = False  # less is better
    unit: str = "%"
    least: float = 0.0

    def scenes(self) -> list[Scene]:
        return [one for one in entry.questions() if self.wanted(one)]


def beside(scene: Scene) -> bool:
    return entry.partner(scene) is not None


COLUMNS = (
    Column("demands", "demands of RFC 9743 that hold, of those that are judged, most beside CUBIC",
           wanted=lambda one: bool(entry.questions()[one])),
    Column("use", "use of the link, of CUBIC's", 0, entry.alone, ratio=True, least=0.1),
    Column("queue", "mean time in the queue, of CUBIC's", 1, entry.alone, ratio=True, less=True,
           least=0.1),
    Column("losses", "packets dropped by the queue", 2, entry.alone, less=True),
    Column("fairness", "Jain's index of its flows among themselves", 3, entry.alike, unit=""),
    Column("short", "median completion of 100 kB, of CUBIC's", 4, entry.short, ratio=True,
           less=True),
    Column("others", "goodput of CUBIC and NewReno beside it, of that beside CUBIC", 5, beside,
           ratio=True, least=0.01),
)  # fmt: skip


@dataclass(frozen=True)
class Cell:
    """A mean and a rank with their intervals; NaN is not known."""

    value: float
    low: float
    high: float
    rank: float
    rank_low: float
    rank_high: float

    @property
    def places(self) -> str:
        """The rank with the ends of its interval."""
        if not math.isfinite(self.rank):
            return units.NONE
        return f"{self.rank:.0f} ({self.rank_low:.0f}–{self.rank_high:.0f})"

    def text(self, show: Callable[[float], str] = units.number) -> str:
        """Returns the mean with the ends of its interval; without one where it has no width."""
        if not math.isfinite(self.value):
            return units.NONE
        interval = f" ({show(self.low)}–{show(self.high)})" if self.low < self.high else ""
        return f"{show(self.value)}{interval}"


@dataclass(frozen=True)
class Standing:
    """The league: rows in the order of their places, each with a cell for each of COLUMNS."""

    entries: list[Entry]
    cells: list[list[Cell]]
    places: list[Cell]  # over all columns; its value is the mean rank

    def of(self, name: str) -> tuple[Entry, list[Cell], Cell]:
        index = [one.name for one in self.entries].index(name)
        return self.entries[index], self.cells[index], self.places[index]


@contextmanager
def unknown_stays() -> Iterator[None]:
    """Lets means of nothing be NaN without numpy's warning."""
    with warnings.catch_warnings(), np.errstate(invalid="ignore"):
        warnings.simplefilter("ignore", RuntimeWarning)
        yield


def values(entries: Sequence[Entry], column: Column) -> tuple[Floats, Floats]:
    """Returns values by control, scene and seed (logarithms of ratios), and weights of scenes."""
    base, scenes = entry.base_of(entries), column.scenes()
    if column.index is None:
        return held(entries, base, scenes)
    found = np.array([
        [[np.nan if v[column.index] is None else v[column.index] for v in one.scores[s.name]]
         for s in scenes] for one in entries
    ], np.float64)  # fmt: skip
    if column.ratio:
        found = np.log(np.maximum(found, column.least))
        found -= found[[one.name for one in entries].index(entry.BASE)].copy()
    return found, np.ones(len(scenes))


def held(entries: Sequence[Entry], base: Entry, scenes: Sequence[Scene]) -> tuple[Floats, Floats]:
    """Returns what part of each scene's demands holds, in percent, and how many it has."""
    places = {scene: place for place, scene in enumerate(scenes)}
    good = np.zeros((len(entries), len(scenes), 1))
    known = np.zeros(good.shape)
    for row, one in enumerate(entries):
        for scene, _, _, holds in entry.judged(one, base):
            good[row, places[scene], 0] += bool(holds)
            known[row, places[scene], 0] += holds is not None
    with unknown_stays():
        return 100 * good / known, known.max(axis=(0, 2))


def mean(found: Floats, weights: Floats) -> Floats:
    """Returns weighted means over the last two axes without what is not known."""
    weighed = np.where(np.isfinite(found), weights, 0.0)
    sums = (weighed * np.nan_to_num(found)).sum((-2, -1))
    with unknown_stays():
        return np.asarray(sums / weighed.sum((-2, -1)), np.float64)


def ranked(found: Floats, less: bool) -> Floats:
    """Returns the ranks along the first axis, 1 for the best; equal ones share the best of them."""
    from scipy import stats

    return np.asarray(
        stats.rankdata(found if less else -found, "min", axis=0, nan_policy="omit"), np.float64
    )


def ends(drawn: Floats, whole: bool = False) -> tuple[Floats, Floats]:
    """Returns the ends of the middle 95 % of the draws; `whole`: as numbers that were drawn."""
    half = 50 * (1 - COVERED)
    with unknown_stays():
        low, high = (
            np.nanpercentile(drawn, at, axis=1, method="inverted_cdf" if whole else "linear")
            for at in (half, 100 - half)
        )
    return np.asarray(low, np.float64), np.asarray(high, np.float64)


def cells(found: Floats, drawn: Floats, column: Column | None = None) -> tuple[list[Cell], Floats]:
    """Returns the cell of each control, and its rank in each draw; without a column of places."""
    less = column is None or column.less
    ranks, in_draws = ranked(found, less), ranked(drawn, less)
    ratio = column is not None and column.ratio
    power = (lambda logs: 100 * np.exp(logs)) if ratio else np.asarray
    rows = zip(
        *(power(found), *map(power, ends(drawn)), ranks, *ends(in_draws, whole=True)), strict=True
    )
    return [Cell(*map(float, row)) for row in rows], in_draws


def standing(entries: Sequence[Entry]) -> Standing:
    """Draws, and puts the rows in the order of their mean rank over all columns."""
    rng = np.random.default_rng(SEED)
    columns, ranks, mean_ranks = [], [], []
    for column in COLUMNS:
        found, weights = values(entries, column)
        scenes, seeds = found.shape[1:]
        places = rng.integers(scenes, size=(DRAWS, scenes))
        of_seed = rng.integers(seeds, size=(DRAWS, scenes, seeds))
        sample = found[:, places[..., None], of_seed]
        at, drawn = mean(found, weights[:, None]), mean(sample, weights[places][..., None])
        made, in_draws = cells(at, drawn, column)
        columns.append(made)
        ranks.append([one.rank for one in made])
        mean_ranks.append(in_draws)
    with unknown_stays():
        overall, _ = cells(np.nanmean(ranks, axis=0), np.nanmean(mean_ranks, axis=0))
    order = sorted(
        range(len(entries)),
        key=lambda row: (math.isnan(overall[row].value), overall[row].value, entries[row].name),
    )
    return Standing(
        [entries[row] for row in order],
        [[column[row] for column in columns] for row in order],
        [overall[row] for row in order],
    )


@dataclass(frozen=True)
class Change:
    """How far one row's column is from another's: of ratios the factor, else the difference."""

    column: Column
    before: float
    after: float
    change: float
    low: float
    high: float
    p: float = math.nan  # raised by Holm's method for the number of columns

    @property
    def judged(self) -> str:
        """Returns "better" or "worse", or "" where chance may have done it."""
        if not self.p < 1 - COVERED:
            return ""
        none = 1.0 if self.column.ratio else 0.0
        return "better" if (self.change < none) == self.column.less else "worse"


def changes(before: Entry, after: Entry, others: Sequence[Entry]) -> list[Change]:
    """Compares two rows in the same scenes, column by column.

    A change's p value is that of the paired test of permutations: how often a mean as far from none
    comes out where the sign of each scene's change is drawn. Of few scenes it is never small.
    """
    rng, found, p, base = np.random.default_rng(SEED), [], [], entry.base_of(others)
    for column in COLUMNS:
        both, weights = values([base, before, after], column)
        old, new = (mean(one, weights[:, None]) for one in both[1:])
        apart = both[2] - both[1]
        scenes, seeds = apart.shape
        places = rng.integers(scenes, size=(DRAWS, scenes))
        of_seed = rng.integers(seeds, size=(DRAWS, scenes, seeds))
        drawn = mean(apart[places[..., None], of_seed], weights[places][..., None])
        low, high = ends(drawn[None])
        signs = rng.choice([-1.0, 1.0], size=(DRAWS, scenes, 1))
        change, by_chance = (mean(one, weights[:, None]) for one in (apart, signs * apart))
        as_far = np.count_nonzero(np.abs(by_chance) >= np.abs(change) * (1 - 1e-9))
        p.append((1 + as_far) / (1 + DRAWS) if np.isfinite(change) else math.nan)
        numbers = [float(one) for one in (old, new, change, low[0], high[0])]
        if column.ratio:
            numbers = [
                scale * math.exp(one)
                for one, scale in zip(numbers, (100, 100, 1, 1, 1), strict=True)
            ]
        found.append(Change(column, *numbers))
    return [replace(one, p=raised) for one, raised in zip(found, spread.holm(p), strict=True)]
