# SPDX-License-Identifier: BSD-3-Clause
"""Pages and their parts as Markdown. Texts are taken as they are: they may have marks of their own.

A Source is a block of its title's language.
"""

from __future__ import annotations

from collections.abc import Iterable

from weir.base.page import Heading, Link, Mark, Page, Part, Source, Table, Text, Words


def page(made: Page) -> str:
    """Returns a whole page."""
    return f"# {made.title}\n\n{render(made.parts)}"


def render(parts: Iterable[Part]) -> str:
    """Returns parts, without those that are empty."""
    return "\n\n".join(part(one) for one in parts if one) + "\n"


def part(one: Part) -> str:
    """Returns a part; facts, figures and lists are on no page in Markdown."""
    if isinstance(one, Table):
        return table(one)
    if isinstance(one, Heading):
        return f"## {words(one.words)}"
    if isinstance(one, Source):
        return f"```{one.title}\n{one.text}\n```"
    assert isinstance(one, Text)
    return words(one.words)


def words(given: Words) -> str:
    """Returns words of a text."""
    if isinstance(given, str):
        return given
    if isinstance(given, Link):
        return f"[{given.text}]({given.href})"
    if isinstance(given, Mark):
        return code(given.text)
    return "".join(map(words, given))


def cell(text: str) -> str:
    """Returns a text for a cell of a table."""
    return text.replace("|", "\\|").replace("\n", " ")


def code(text: str) -> str:
    """Returns a text as in a config; there is nothing to show of an empty one."""
    return f"`{text}`" if text else ""


def table(made: Table, *, aligned: bool = False) -> str:
    """Returns a table, its numbers at the right if it is aligned."""
    rule = "|".join("---" if left or not aligned else "--:" for left in made.at_left)
    head, *rows = (f"| {' | '.join(map(cell, row))} |" for row in (made.columns, *made.rows))
    return "\n".join([head, f"|{rule}|", *rows])
