# SPDX-License-Identifier: BSD-3-Clause
"""The known runs that behave most like a flow: their control is its, or it is unknown.

Known are runs of Linux's controls in guests and of ours, over paths drawn at random (train.py);
each is a row of known.csv: the control, and the numbers of behaviour.py. Two flows are apart by the
difference of their numbers, each in units of its deviation among runs of one control; a number that
only one of them has counts as MISSING. The nearest NEAREST have votes, by the inverse of the
square; the flow's distance is that of the nearest run over the first control's share of the votes.

How far is too far is tried: each known run is looked up among the others, over other paths, once
with its control among them and once without it, as a flow of an unknown control. What was nearest
then, and how far, tells up to which distance each control is believed, and how often that is right
for a flow at about that distance.
"""

from __future__ import annotations

import csv
import warnings
from collections import defaultdict
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np

from weir.analysis.metrics import Floats
from weir.identify.behaviour import NAMES, Behaviour

KNOWN = Path(__file__).with_name("known.csv")
NEAREST = 5
MISSING = 1.0  # deviations
UNKNOWN = "unknown"
WITHOUT = 0.5  # weight of a lookup without its control: two of three flows are of a known one
ABOUT = 20  # lookups at about a flow's distance


@dataclass(frozen=True)
class Lookups:
    """Known runs of which one control was the nearest, by distance."""

    distances: Floats
    weights: Floats  # 1: it was theirs; -WITHOUT: theirs was left out; 0: theirs was another
    far: float  # the control is believed up to this distance


@dataclass(frozen=True)
class Known:
    """Runs whose control is known."""

    controls: tuple[str, ...]
    paths: tuple[str, ...]  # which of the drawn paths each had
    vectors: Floats  # (runs, numbers)
    deviation: Floats  # of each number among runs of one control
    lookups: dict[str, Lookups]  # by the control that was nearest


@dataclass(frozen=True)
class Found:
    """The controls that a flow is taken for."""

    control: str  # or "unknown"
    confidence: float | None  # of the lookups at about this distance, those right; None: unknown
    votes: dict[str, float]  # shares of the nearest runs, most first
    distance: float | None  # over that up to which the first is believed; None: not tried


def known_from(controls: list[str], paths: list[str], vectors: Floats) -> Known:
    """Returns runs, with the divisors of their numbers and what lookups of them show."""
    deviation = deviations(controls, vectors)
    runs = Known(tuple(controls), tuple(paths), vectors, deviation, {})
    names, places = np.array(controls), np.array(paths)
    seen: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for control, path, vector in zip(controls, paths, vectors, strict=True):
        apart = np.where(places == path, np.inf, distances(runs, vector))
        for own, hidden in ((True, apart), (False, np.where(names == control, np.inf, apart))):
            if np.isfinite(hidden).any():
                votes, distance = nearest(runs, hidden)
                first = next(iter(votes))
                right = float(first == control) if own else -WITHOUT
                seen[first].append((distance, right))
    return replace(runs, lookups={name: lookups(rows) for name, rows in seen.items()})


def lookups(rows: list[tuple[float, float]]) -> Lookups:
    """Returns lookups in order, with the distance up to which most is gained."""
    at, weights = np.array(sorted(rows)).T
    gained = np.cumsum(np.where(weights == 0, -1.0, weights))
    best = int(gained.argmax())
    far = at[best : best + 2].mean() if gained[best] > 0 else at[0] / 2
    return Lookups(at, weights, float(far))


def deviations(controls: list[str], vectors: Floats) -> Floats:
    """Returns each number's spread within a control: the root of the mean of variances."""
    with warnings.catch_warnings():  # of a number that no run of a control has
        warnings.simplefilter("ignore", RuntimeWarning)
        own = [vectors[np.array(controls) == name] for name in sorted(set(controls))]
        variance = np.nanmean([np.nanvar(rows, axis=0) for rows in own], axis=0)
    found: Floats = np.sqrt(np.nan_to_num(variance)) + 1e-9
    return found


@cache
def known(path: Path = KNOWN) -> Known:
    """Returns the runs that come with Weir."""
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    vectors = np.array([[float(row[name] or "nan") for name in NAMES] for row in rows])
    return known_from([row["control"] for row in rows], [row["path"] for row in rows], vectors)


def distances(of: Known, vector: Floats) -> Floats:
    apart = (of.vectors - vector) / of.deviation
    one_lacks = np.isnan(of.vectors) != np.isnan(vector)
    apart = np.where(np.isnan(apart), np.where(one_lacks, MISSING, 0.0), apart)
    found: Floats = np.sqrt((apart**2).sum(axis=1))
    return found


def nearest(of: Known, apart: Floats) -> tuple[dict[str, float], float]:
    """Returns shares of the votes, most first, and the distance; apart: from each run."""
    votes: dict[str, float] = defaultdict(float)
    for place in np.argsort(apart, kind="stable")[:NEAREST]:
        votes[of.controls[place]] += 1 / (1e-3 + apart[place] ** 2)
    whole = sum(votes.values())
    shares = {name: votes[name] / whole for name in sorted(votes, key=lambda n: -votes[n])}
    return shares, float(apart.min() / next(iter(shares.values())))


def identify(behaviour: Behaviour, of: Known | None = None, path: str = "") -> Found:
    """Returns what a flow is taken for, by known runs without those over `path`."""
    of = of or known()
    apart = distances(of, behaviour.vector())
    if path:
        apart = np.where(np.array(of.paths) == path, np.inf, apart)
    shares, distance = nearest(of, apart)
    tried = of.lookups.get(next(iter(shares)))
    if tried is None or distance > tried.far:
        return Found(UNKNOWN, None, shares, None if tried is None else distance / tried.far)
    about = tried.weights[np.argsort(np.abs(tried.distances - distance), kind="stable")[:ABOUT]]
    right, hidden, wrong = ((about == weight).sum() for weight in (1, -WITHOUT, 0))
    confidence = right / (right + WITHOUT * hidden + wrong)
    return Found(next(iter(shares)), float(confidence), shares, distance / tried.far)
