# SPDX-License-Identifier: BSD-3-Clause
"""Pages (base/page.py) and their parts as Markdown.

Texts are not escaped: they may hold Markdown. A Source is a code block in the language that its
title names.
"""

from __future__ import annotations

from collections.abc import Iterable

from weir.base.page import Heading, Link, Mark, Page, Part, Source, Table, Text, Words


def page(made: Page) -> str:
    return f"# {made.title}\n\n{render(made.parts)}"


def render(parts: Iterable[Part]) -> str:
    """Returns parts with a blank line between each two; empty ones are left out."""
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
    """Returns the words of a text, its links and its marks."""
    if isinstance(given, str):
        return given
    if isinstance(given, Link):
        return f"[{given.text}]({given.href})"
    if isinstance(given, Mark):
        return code(given.text)
    return "".join(map(words, given))


def cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def code(text: str) -> str:
    """Returns a text between backticks; an empty one stays empty."""
    return f"`{text}`" if text else ""


def table(made: Table, *, aligned: bool = False) -> str:
    """Returns a table; if it is aligned, its columns of numbers stand at the right."""
    rule = "|".join("---" if left or not aligned else "--:" for left in made.at_left)
    head, *rows = (f"| {' | '.join(map(cell, row))} |" for row in (made.columns, *made.rows))
    return "\n".join([head, f"|{rule}|", *rows])
