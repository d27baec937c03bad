# SPDX-License-Identifier: BSD-3-Clause
"""Pairs of flow groups of several runs that stand beside each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from weir.analysis.run_summary import RunSummary

Key = tuple[str, int]  # a group's name, and how many of that name came before it


@dataclass
class Pair:
    """A group of each run, by its index there; None: the run has none like it."""

    keys: list[Key]
    groups: list[int | None]
    label: str = ""  # the groups' name; all of them, if they have several

    def put(self, run: int, index: int, key: Key) -> None:
        """Adds a run's group."""
        self.groups[run] = index
        if key not in self.keys:
            self.keys.append(key)


def pairs(reports: Sequence[RunSummary]) -> list[Pair]:
    """Returns the groups of all runs: those of one name beside each other, whatever their places.

    A group without a name has that of its congestion control. Of several with one name the first
    stands beside the first. Those of a run that are like none of the others' take the places
    that are left, in their order: of two runs with one group each, CUBIC stands beside BBR.
    """
    keys = [_keys(report) for report in reports]
    found: list[Pair] = []
    for run, each in enumerate(keys):
        left = dict(enumerate(each))
        for like in (_first_is, _any_is, _is_free):
            for index, key in list(left.items()):
                pair = next((p for p in found if p.groups[run] is None and like(p, key)), None)
                if pair is not None:
                    pair.put(run, index, left.pop(index))
        for index, key in left.items():
            found.append(Pair([key], [None] * len(reports)))
            found[-1].groups[run] = index
    several = {name for each in keys for name, place in each if place > 0}
    for pair in found:
        shown = [f"{name} ({n + 1})" if name in several else name for name, n in pair.keys]
        pair.label = " / ".join(dict.fromkeys(shown))
    return found


def _first_is(pair: Pair, key: Key) -> bool:
    return pair.keys[0] == key


def _any_is(pair: Pair, key: Key) -> bool:
    return key in pair.keys


def _is_free(pair: Pair, key: Key) -> bool:
    return True


def _keys(report: RunSummary) -> list[Key]:
    found: list[Key] = []
    for index, group in enumerate(report.groups):
        name = group.name or group.cc or str(index)
        found.append((name, sum(known == name for known, _ in found)))
    return found
