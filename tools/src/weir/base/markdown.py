# SPDX-License-Identifier: BSD-3-Clause
"""Parts of pages as Markdown."""

from __future__ import annotations

from weir.base.page import Table


def cell(text: str) -> str:
    """Returns a text for a cell of a table."""
    return text.replace("|", "\\|").replace("\n", " ")


def code(text: str) -> str:
    """Returns a text as in a config; there is nothing to show of an empty one."""
    return f"`{text}`" if text else ""


def table(made: Table, *, aligned: bool = False) -> str:
    """Returns a table, its numbers at the right if it is aligned."""
    rule = ["---" if left or not aligned else "--:" for left in made.at_left]
    lines = ([cell(text) for text in made.columns], rule, *(map(cell, row) for row in made.rows))
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
