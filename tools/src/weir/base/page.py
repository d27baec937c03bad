# SPDX-License-Identifier: BSD-3-Clause
"""A page as a value: a title and a list of texts, tables and figures.

report/document.py renders pages as HTML, base/terminal.py tables as text, base/markdown.py as
Markdown. A part that is empty, such as a table without rows, is false and is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from weir.base import units


@dataclass(frozen=True)
class Column:
    """A column of a table: its header, where a value comes from and how it is shown.

    value is a key or an attribute of a record, or a function of it [the header in lower case, with
    underscores]; unit is one that `units.shown` knows, or a function that shows a value [the one in
    which the key ends].
    """

    header: str
    value: str | Callable[[Any], object] = ""
    unit: str | Callable[[Any], str] | None = None
    words: bool = False  # left-aligned, as names are

    def of(self, record: Any) -> object:
        """Returns the record's value; None where a mapping has no such key."""
        if callable(self.value):
            return self.value(record)
        if isinstance(record, Mapping):
            return record.get(self.key)
        return getattr(record, self.key)

    @property
    def key(self) -> str:
        """The name under which records have the value."""
        named = self.value if isinstance(self.value, str) else ""
        return named or self.header.lower().replace(" ", "_")

    def text(self, value: Any) -> str:
        """Returns the value as it is shown, a dash if it is not known."""
        if callable(self.unit):
            return units.NONE if value is None else self.unit(value)
        return units.shown(value, units.unit_of(self.key) if self.unit is None else self.unit)


@dataclass(frozen=True)
class Table:
    """A table: its columns, and records, each of which is a row.

    A record is a list of values, or a mapping or an object from which the columns take them. A
    column that is only a header shows its values as they are. The first `left` columns hold names.
    """

    declared: Sequence[Column | str]
    records: Sequence[Any]
    left: int = 1

    def __bool__(self) -> bool:
        return len(self.records) > 0

    @cached_property
    def _columns(self) -> list[Column]:
        return [one if isinstance(one, Column) else Column(one, unit="") for one in self.declared]

    @property
    def columns(self) -> list[str]:
        return [column.header for column in self._columns]

    @property
    def at_left(self) -> list[bool]:
        """True for each column that is left-aligned."""
        return [n < self.left or column.words for n, column in enumerate(self._columns)]

    @cached_property
    def values(self) -> list[Sequence[Any]]:
        """The rows as numbers and texts; None is what is not known."""
        return [
            one if isinstance(one, list | tuple) else [column.of(one) for column in self._columns]
            for one in self.records
        ]

    @cached_property
    def rows(self) -> list[list[str]]:
        """The rows as they are shown."""
        return [
            [column.text(value) for column, value in zip(self._columns, row, strict=True)]
            for row in self.values
        ]

    def chosen(self, places: Sequence[int]) -> Table:
        """Returns the table of the columns at some places, counted from 0."""
        records = [[row[place] for place in places] for row in self.values]
        left = sum(place < self.left for place in places)
        return Table([self._columns[place] for place in places], records, left)

    def without(self, header: str) -> Table:
        """Returns the table without a column."""
        return self.chosen([n for n, name in enumerate(self.columns) if name != header])


@dataclass(frozen=True)
class Status:
    """An outcome at the top of a page: kind is good, warn or bad, text says it in words."""

    kind: str
    text: str


@dataclass(frozen=True)
class Link:
    """Words of a text that link to `href`."""

    text: str
    href: str


@dataclass(frozen=True)
class Mark:
    """Words of a text that look different; kind is code, bad, small or em."""

    text: str
    kind: str = "code"


Word = str | Link | Mark  # a string may have several lines
Words = Word | Sequence[Word]


@dataclass(frozen=True)
class Text:
    """A paragraph; kind is empty, small, note, differs or, as of a Status, "status good"."""

    words: Words
    kind: str = ""

    def __bool__(self) -> bool:
        return bool(self.words)


@dataclass(frozen=True)
class Heading:
    """A heading, and a name that links lead to."""

    words: Words
    name: str = ""


@dataclass(frozen=True)
class Bullets:
    """A list of short texts."""

    items: Sequence[Words]

    def __bool__(self) -> bool:
        return len(self.items) > 0


@dataclass(frozen=True)
class Facts:
    """Names and values, one below the other."""

    pairs: Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Source:
    """A file's text under its title, folded."""

    title: str
    text: str

    def __bool__(self) -> bool:
        return bool(self.text)


@dataclass(frozen=True)
class Figures:
    """Figures of a page, as its renderer takes them."""

    shown: Sequence[Any]

    def __bool__(self) -> bool:
        return len(self.shown) > 0


Part = Text | Heading | Table | Bullets | Facts | Source | Figures


@dataclass(frozen=True)
class Page:
    """A whole page; headline has the few numbers that a reader wants first.

    A wide one has tables that need more than the usual width.
    """

    title: str
    parts: Sequence[Part]
    status: Status | None = None
    headline: Sequence[tuple[str, str]] = ()
    wide: bool = False


def section(title: Words, *parts: Part, name: str = "") -> list[Part]:
    """Returns the parts that are not empty below a heading, or nothing if all are empty."""
    kept = [part for part in parts if part]
    return [Heading(title, name), *kept] if kept else []


def coded(text: str) -> list[Word]:
    """Returns a text in which what stands between backticks is code."""
    return [Mark(one) if n % 2 else one for n, one in enumerate(text.split("`")) if one]


def joined(items: Iterable[Words], between: str = ", ") -> list[Word]:
    """Returns the words of all items with a text between each two."""
    return [word for item in items for word in (between, *listed(item))][1:]


def listed(words: Words) -> Sequence[Word]:
    """Returns words as a list, also one alone."""
    return words if isinstance(words, list | tuple) else [words]  # type: ignore[list-item]
