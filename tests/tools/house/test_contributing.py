# SPDX-License-Identifier: BSD-3-Clause
"""What CONTRIBUTING.md lists for each piece is true of the example that it names."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PIECES = (
    "congestion control",
    "queue discipline",
    "stage",
    "source",
    "transport",
    "stream",
    "command",
    "figure",
    "study",
    "config",
)
PATH = r"`((?:common|configs|sender|switch|tests|tools)/[\w./-]+)`"


def sections() -> dict[str, str]:
    """The text about each piece."""
    text = (ROOT / "CONTRIBUTING.md").read_text().partition("## Adding a piece\n")[2]
    parts = re.split(r"^### An? (.*)\n", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def test_every_piece_has_a_list() -> None:
    assert tuple(sections()) == PIECES


@pytest.mark.parametrize("piece", PIECES)
def test_the_example_has_what_the_list_says(piece: str) -> None:
    """Its files exist, and it is named in each file in which it has a line."""
    text = sections()[piece]
    example = re.search(r"^As in `([\w-]+)`", text, re.MULTILINE)
    assert example
    items = re.findall(r"^- (.*)", text.replace("NAME", example[1]), re.MULTILINE)
    assert 2 <= len(items) <= 6
    for item in items:
        own, _, lists = re.sub(r"\ba row in", "a line in", item).partition("a line in")
        for name in re.findall(PATH, own + lists):
            assert (ROOT / name).exists(), name
        for name in re.findall(PATH, lists):
            assert example[1] in (ROOT / name).read_text().lower(), name
