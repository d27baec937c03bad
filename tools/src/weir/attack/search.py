# SPDX-License-Identifier: BSD-3-Clause
"""The search: CMA-ES over the box, begun anew where it no longer gets on.

CMA-ES (Hansen; the package `cma`) needs no gradient and no shape of the harm, takes steps that
depend only on the order of the harms, and asks for whole generations, which are measured side by
side. Its generations have a size of their own, so that the number of processes changes nothing: a
search is determined by its seed. Each start is at a random point; every second one has larger
generations.

Trials are written to trials.jsonl as they are measured. A search with the same seed goes through
the same points, so that what is there already is not measured again: so a search is resumed.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import msgspec
import numpy as np

from weir.analysis import folder
from weir.base import foreign
from weir.base.errors import UserError

Point = list[float]
Measure = Callable[[Sequence[Point]], list[float]]
SIGMA = 0.3  # of the first steps, in a box from 0 to 1
DIGITS = 6  # of points, so that they are the same when read again


@dataclass
class Found:
    """The worst point so far, and the worst harm after each trial."""

    point: Point = field(default_factory=list)
    harm: float = -np.inf
    worst: list[float] = field(default_factory=list)

    def add(self, point: Point, harm: float) -> None:
        """Counts one more trial."""
        if harm > self.harm:
            self.point, self.harm = point, harm
        self.worst.append(self.harm)


@dataclass(frozen=True)
class Budget:
    """The end of a search: a number of trials, a time, or a harm."""

    trials: int | None = None
    seconds: float | None = None
    enough: float = np.inf


class Line(msgspec.Struct):
    """A trial that was measured, as trials.jsonl has it."""

    x: Point
    harm: float


class Journal:
    """The file trials.jsonl: of which search it is, then a trial a line."""

    def __init__(self, path: Path, of: dict[str, str | int]) -> None:
        self.path = path
        before = foreign.read_bytes(path) if path.exists() else b""
        # The last line may be cut off.
        lines = [x for x in before.splitlines(keepends=True) if x.endswith(b"\n")]
        if lines and foreign.decode(lines[0], foreign.Json, f"{path}:1") != of:
            raise UserError(
                f"attack: {path} is of another search, another version of Weir, or a plug-in that"
                " has changed; give another --out"
            )
        found = (foreign.decode(x, Line, f"{path}:{n}") for n, x in enumerate(lines[1:], 2))
        self._known = iter(list(found))
        # A new file is written, even where a link was.
        folder.write_whole(path, b"".join(lines or [msgspec.json.encode(of) + b"\n"]))
        self._file = path.open("ab")

    def measured(self, points: Sequence[Point], measure: Measure) -> list[float]:
        """Returns harms of points: those that are known, then those that are measured now."""
        harms: list[float] = []
        for point in points:
            known = next(self._known, None)
            if known is None:
                break
            if known.x != point:
                raise UserError(f"attack: {self.path} is not of this version of the search", 1)
            harms.append(known.harm)
        new = points[len(harms) :]
        for point, harm in zip(new, measure(new) if new else [], strict=True):
            self._file.write(msgspec.json.encode(Line(point, harm)) + b"\n")
            harms.append(harm)
        self._file.flush()
        return harms

    def close(self) -> None:
        """Closes the file."""
        self._file.close()


Generation = tuple[list[Point], Callable[[list[float]], None]]


def generations(dimensions: int, seed: int) -> Iterator[Generation]:
    """Yields generations of points without end, each with a function that learns from losses."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what the package could also do with others
        import cma
    rng = np.random.default_rng(seed)
    for start in range(1 << 30):
        usual = 4 + int(3 * np.log(dimensions + 1))
        options = {
            "seed": seed * 1000 + start + 1,
            "bounds": [0, 1],
            "popsize": usual * (2 if start % 2 else 1),
            "verbose": -9,
            "tolfun": 1e-4,
            "tolflatfitness": 10,
            "maxiter": 40 + 10 * dimensions,
        }
        # The package has no search in one dimension: the second number then does nothing.
        first = rng.uniform(0, 1, max(2, dimensions))
        search = cma.CMAEvolutionStrategy(first, SIGMA, options)
        while not search.stop():
            asked = search.ask()
            points = [[round(float(x), DIGITS) for x in one[:dimensions]] for one in asked]
            yield points, partial(search.tell, asked)


def search(
    dimensions: int,
    measure: Measure,
    budget: Budget,
    seed: int,
    journal: Journal,
    on_trials: Callable[[Found], None] = lambda found: None,
) -> Found:
    """Goes through generations until the budget is spent."""
    found, begun = Found(), time.monotonic()
    for points, learn_from in generations(dimensions, seed):
        if budget.trials is not None:
            points = points[: budget.trials - len(found.worst)]
        harms = journal.measured(points, measure)
        for point, harm in zip(points, harms, strict=True):
            found.add(point, harm)
        on_trials(found)
        spent = budget.trials is not None and len(found.worst) >= budget.trials
        late = budget.seconds is not None and time.monotonic() - begun >= budget.seconds
        if spent or late or found.harm >= budget.enough:
            return found
        learn_from([-harm for harm in harms])  # it looks for the least
    return found
