# SPDX-License-Identifier: BSD-3-Clause
"""Minimises an attack: as little of it as still does most of its harm.

First whole elements are dropped, then single amounts, then what is left is brought nearer to the
benign network by halves; each step that keeps the harm above the share stays. This goes on until
nothing can be left out: the result has no part that it does not need.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from weir.attack.box import Box
from weir.attack.search import DIGITS, Point

HALVES = 4  # an amount is brought to a sixteenth at most
ROUNDS_MAX = 4


def without(box: Box, x: Point, indices: Sequence[int]) -> Point:
    """Returns the point with some amounts benign."""
    pairs = enumerate(zip(x, box.benign, strict=True))
    return [value if b is None or i not in indices else b for i, (value, b) in pairs]


def smaller(box: Box, x: Point) -> Iterator[list[int]]:
    """Yields what may be left out: elements, the larger ones first, then single amounts."""
    spans = [list(range(len(x))[span]) for _, span in box.elements]
    yield from sorted(spans, key=len, reverse=True)
    yield from ([index] for index in _amounts(box, x))


def minimise(
    box: Box, x: Point, harm_of: Callable[[Point], float], at_least: float
) -> tuple[Point, float]:
    """Returns the point that is left, and its harm."""
    kept, harm = list(x), harm_of(x)

    def attempt(point: Point) -> bool:
        nonlocal kept, harm
        if point == kept:
            return False
        tried = harm_of(point)
        if tried < at_least:
            return False
        kept, harm = point, tried
        return True

    for _ in range(ROUNDS_MAX):
        before = list(kept)
        for indices in list(smaller(box, kept)):
            attempt(without(box, kept, indices))
        for _ in range(HALVES):
            if not any([attempt(_moved(box, kept, i)) for i in _amounts(box, kept)]):
                break
        if kept == before:
            break
    return kept, harm


def _amounts(box: Box, x: Point) -> list[int]:
    return [i for i, benign in enumerate(box.benign) if benign is not None and x[i] != benign]


def _moved(box: Box, x: Point, index: int) -> Point:
    pairs = zip(x, without(box, x, [index]), strict=True)
    return [a if a == b else round((a + b) / 2, DIGITS) for a, b in pairs]
