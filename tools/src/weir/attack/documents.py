# SPDX-License-Identifier: BSD-3-Clause
"""The tables of attack.md: the attacks that are known, and worst cases under one box."""

from __future__ import annotations

from collections.abc import Sequence

from weir.attack import registry
from weir.attack.goals import goal_of
from weir.attack.run import COLUMNS
from weir.base import units
from weir.bootstrap import ROOT

PAGE = ROOT / "tools/docs/how-to/attack.md"
KNOWN = ("attack", "goal", "harm", "without it", "trials", "seed")
PARTS = {  # of the page: between these two lines
    "worst": ("<!-- worst cases: --write-docs -->\n", "<!-- end of worst cases -->"),
    "known": ("<!-- known attacks: --register -->\n", "<!-- end of known attacks -->"),
}


def markdown(columns: Sequence[str], rows: Sequence[Sequence[str]], right: range) -> str:
    """A table whose columns of numbers are to the right."""
    sides = ["---:" if index in right else "---" for index in range(len(columns))]
    return "".join(f"| {' | '.join(line)} |\n" for line in [columns, sides, *rows])


def worst(rows: Sequence[Sequence[str]]) -> str:
    """Controls under one box; what its network does is in the attack's folder."""
    return markdown(COLUMNS[:-1], [row[:-1] for row in rows], range(1, 5))


def known() -> str:
    """What the index has."""
    rows = []
    for name, one in registry.index().items():
        goal = goal_of(one["goal"])
        link = f"[{name}](../../../configs/attacks/{name}.yaml)"
        harms = [goal.text(one[key]) for key in ("left", "benign")]
        rows.append([link, goal.name, *harms, units.count(one["trials"]), str(one["seed"])])
    return markdown(KNOWN, rows, range(2, 6))


def part(name: str) -> str:
    """What the page has now."""
    begin, end = PARTS[name]
    return PAGE.read_text().partition(begin)[2].partition(end)[0]


def write(name: str, text: str) -> None:
    """In place of what the page has."""
    begin, end = PARTS[name]
    before, _, rest = PAGE.read_text().partition(begin)
    PAGE.write_text(before + begin + text + end + rest.partition(end)[2])
