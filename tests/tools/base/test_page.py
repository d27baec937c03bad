# SPDX-License-Identifier: BSD-3-Clause
"""A page is a value, and its renderers agree on it."""

import io
from dataclasses import dataclass

from rich.console import Console
from weir.base import markdown, terminal
from weir.base.page import Column, Link, Mark, Page, Table, Text, joined, section
from weir.report import document


@dataclass
class Measured:
    name: str
    rtt_mean_ns: float | None
    drops: int


COLUMNS = (Column("who", "name"), Column("RTT", "rtt_mean_ns"), Column("drops"))
ROWS = [["a|<b>", "20.3 ms", "1,234"], ["c", "–", "0"]]


def test_a_record_is_an_object_a_mapping_or_a_list_and_unknown_is_a_dash():
    objects = [Measured("a|<b>", 20.34e6, 1234), Measured("c", None, 0)]
    mappings = [vars(objects[0]), {"name": "c", "drops": 0}]
    lists = [list(vars(one).values()) for one in objects]
    for records in (objects, mappings, lists):
        assert Table(COLUMNS, records).rows == ROWS
    assert Table(COLUMNS, mappings).values[1] == ["c", None, 0]


def test_a_table_is_shown_on_a_terminal_in_markdown_and_in_html():
    made = Table(COLUMNS, ROWS)
    screen = Console(width=80, file=io.StringIO())
    terminal.print_table(screen, made)
    assert screen.file.getvalue().splitlines()[1:] == [
        "a|<b>  20.3 ms  1,234",
        "c            –      0",
    ]
    lines = markdown.table(made, aligned=True).splitlines()
    assert lines[1:] == ["|---|--:|--:|", "| a\\|<b> | 20.3 ms | 1,234 |", "| c | – | 0 |"]
    assert '<td class="l">a|&lt;b&gt;</td><td class="r">20.3 ms</td>' in document.render(
        Page("numbers", [made])
    )


def test_what_is_empty_is_left_out():
    assert section("Nothing", Table(COLUMNS, []), Text("")) == []
    words = joined([Link("run", "r/x.html"), ["of ", Mark("a<b")]])
    assert markdown.words(words) == "[run](r/x.html), of `a<b`"
    assert document.in_html(words) == '<a href="r/x.html">run</a>, of <code>a&lt;b</code>'
