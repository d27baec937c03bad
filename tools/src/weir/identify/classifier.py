# SPDX-License-Identifier: BSD-3-Clause
"""The known runs that behave most like a flow: their control is its, or it is unknown.

Known are runs of Linux's controls in guests and of ours, over paths drawn at random (train.py);
each is a row of known.csv: the control, and the numbers of behaviour.py. The distance of two flows
is that of their numbers, each in units of its deviation among runs of one control; a number that
only one of them has counts as MISSING. The nearest NEAREST have votes, by the inverse of the
distance's square. A flow is unknown if it lies further from all than known runs of one control lie
from each other, or if no control has most of the votes.
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
CONFIDENCE_MIN = 0.5
UNKNOWN = "unknown"


@dataclass(frozen=True)
class Known:
    """Runs whose control is known."""

    controls: tuple[str, ...]
    paths: tuple[str, ...]  # which of the drawn paths each had
    vectors: Floats  # (runs, numbers)
    deviation: Floats  # of each number among runs of one control
    far: float  # a distance to the nearest that 99 % of the known runs do not reach


@dataclass(frozen=True)
class Found:
    """What a flow is taken for."""

    control: str  # or "unknown"
    confidence: float  # share of the votes of the first
    votes: dict[str, float]  # shares, most first
    distance: float  # of the nearest known run


def known_from(controls: list[str], paths: list[str], vectors: Floats) -> Known:
    """The runs with what their numbers are divided by."""
    known = Known(tuple(controls), tuple(paths), vectors, deviations(controls, vectors), np.inf)
    nearest = []
    for number, (control, path) in enumerate(zip(controls, paths, strict=True)):
        others = [c == control and p != path for c, p in zip(controls, paths, strict=True)]
        if any(others):
            nearest.append(float(distances(known, vectors[number])[others].min()))
    far = float(np.percentile(nearest, 99)) if nearest else np.inf
    return replace(known, far=far)


def deviations(controls: list[str], vectors: Floats) -> Floats:
    """Of each number among runs of one control: the root of the variances' mean over controls."""
    with warnings.catch_warnings():  # of a number that no run of a control has
        warnings.simplefilter("ignore", RuntimeWarning)
        own = [vectors[np.array(controls) == name] for name in sorted(set(controls))]
        variance = np.nanmean([np.nanvar(rows, axis=0) for rows in own], axis=0)
    found: Floats = np.sqrt(np.nan_to_num(variance)) + 1e-9
    return found


@cache
def known(path: Path = KNOWN) -> Known:
    """The runs that come with Weir."""
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    vectors = np.array([[float(row[name] or "nan") for name in NAMES] for row in rows])
    return known_from([row["control"] for row in rows], [row["path"] for row in rows], vectors)


def distances(of: Known, vector: Floats) -> Floats:
    """From a flow to each known run."""
    apart = (of.vectors - vector) / of.deviation
    one_lacks = np.isnan(of.vectors) != np.isnan(vector)
    apart = np.where(np.isnan(apart), np.where(one_lacks, MISSING, 0.0), apart)
    found: Floats = np.sqrt((apart**2).sum(axis=1))
    return found


def identify(behaviour: Behaviour, of: Known | None = None) -> Found:
    """The control of a flow, by the runs that come with Weir or by others."""
    of = of or known()
    far = distances(of, behaviour.vector())
    votes: dict[str, float] = defaultdict(float)
    for place in np.argsort(far, kind="stable")[:NEAREST]:
        votes[of.controls[place]] += 1 / (1e-3 + far[place] ** 2)
    whole = sum(votes.values())
    shares = {name: votes[name] / whole for name in sorted(votes, key=lambda n: -votes[n])}
    first, share = next(iter(shares.items()))
    sure = share >= CONFIDENCE_MIN and far.min() <= of.far
    return Found(first if sure else UNKNOWN, share, shares, float(far.min()))
