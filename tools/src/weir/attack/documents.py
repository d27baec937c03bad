# SPDX-License-Identifier: BSD-3-Clause
"""The tables of attack.md: the attacks that are known, and worst cases under one box."""

from __future__ import annotations

from collections.abc import Sequence

from weir.attack import registry
from weir.attack.goals import goal_of
from weir.attack.run import COLUMNS
from weir.base import markdown, units
from weir.base.page import Table
from weir.bootstrap import ROOT

PAGE = ROOT / "tools/docs/how-to/attack.md"
KNOWN = ("attack", "goal", "harm", "without it", "trials", "seed")
PARTS = {  # of the page: between these two lines
    "worst": ("<!-- worst cases: --write-docs -->\n", "<!-- end of worst cases -->"),
    "known": ("<!-- known attacks: --register -->\n", "<!-- end of known attacks -->"),
}


def worst(rows: Sequence[Sequence[str]]) -> str:
    """Returns the table of controls in one box; an attack's folder says what its network does."""
    made = Table(COLUMNS[:-1], [row[:-1] for row in rows])
    return markdown.table(made, aligned=True) + "\n"


def known() -> str:
    """Returns the table of the attacks in the index."""
    rows = []
    for name, entry in registry.index().items():
        goal = goal_of(entry.goal)
        link = f"[{name}](../../../configs/attacks/{name}.yaml)"
        harms = [goal.text(harm) for harm in (entry.left, entry.benign)]
        rows.append([link, goal.name, *harms, units.count(entry.trials), str(entry.seed)])
    return markdown.table(Table(KNOWN, rows, left=2), aligned=True) + "\n"


def part(name: str) -> str:
    """Returns a part of the page as it is."""
    begin, end = PARTS[name]
    return PAGE.read_text().partition(begin)[2].partition(end)[0]


def write(name: str, text: str) -> None:
    """Replaces a part of the page."""
    begin, end = PARTS[name]
    before, _, rest = PAGE.read_text().partition(begin)
    PAGE.write_text(before + begin + text + end + rest.partition(end)[2])
