# SPDX-License-Identifier: BSD-3-Clause
"""Links into the playground, which tools/web makes: for the runs of the gallery and of pages."""

from __future__ import annotations

import html
import re
import shlex
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlencode

import msgspec

from weir.bootstrap import ROOT

FOLDER = ROOT / "build-web/playground"
RUNS = re.compile(r"^```sh\n((?:[^`\n].*\n)+)```$", re.MULTILINE)  # a block of commands


class Offered(msgspec.Struct):
    """A config that the playground offers, as its examples.json has it."""

    name: str
    native: str  # what a visitor should know before a run


@dataclass(frozen=True)
class Asked:
    """A run of a command: the playground's name of its config, and its options -o."""

    name: str
    overrides: tuple[str, ...]

    def href(self, up: str) -> str:
        fragment = urlencode([("example", self.name), *(("o", one) for one in self.overrides)])
        return f"{up}playground/index.html#{fragment}"


def offered() -> dict[str, str]:
    """Returns the note on each config that the playground offers; none without a playground."""
    file = FOLDER / "examples.json"
    if not file.exists():
        return {}
    found = msgspec.json.decode(file.read_bytes(), type=list[Offered])
    return {one.name: one.native for one in found}


def name(config: Path) -> str:
    """Returns the playground's name of a config: its path below configs/, or its own name."""
    below = config.parts[1:] if config.parts[0] == "configs" else config.parts[-1:]
    return str(Path(*below).with_suffix(""))


def asked(command: str) -> Asked | None:
    """Returns what a command `run` asks for; None: it is another, or has options that differ."""
    words = shlex.split(command)
    if len(words) < 2 or words[0] != "run":
        return None
    options = dict.fromkeys(words[2::2])
    if len(words) % 2 or any(option not in ("-o", "--out") for option in options):
        return None
    overrides = [
        value for option, value in zip(words[2::2], words[3::2], strict=True) if option == "-o"
    ]
    return Asked(name(Path(words[1])), tuple(overrides))


def links(commands: Iterable[str], up: str) -> str:
    """Returns a paragraph of links that open the runs of commands; empty: there is none.

    up: the way from the page to the site's folder.
    """
    known = offered()
    runs = list(dict.fromkeys(one for one in map(asked, commands) if one and one.name in known))
    if not runs:
        return ""
    made, notes = [], list(dict.fromkeys(known[one.name] for one in runs if known[one.name]))
    for one in runs:
        text = (
            "Open it in the playground" if len(runs) == 1 else ", ".join((one.name, *one.overrides))
        )
        href = html.escape(one.href(up))
        made.append(f'<a class="md-button playground" href="{href}">{html.escape(text)}</a>')
    before = "" if len(runs) == 1 else "In the playground: "
    return " ".join([before + " ".join(made), *notes])


def commands_of(block: str) -> Iterator[str]:
    """Yields the commands of weir in a block of a page, without what begins them."""
    for line in block.splitlines():
        if line.startswith("tools/weir "):
            yield line.removeprefix("tools/weir ")


def with_links(text: str, up: str) -> str:
    """Returns a page with links below each block of commands whose runs the playground offers."""

    def one(block: re.Match[str]) -> str:
        made = links(commands_of(block[1]), up)
        return f"{block[0]}\n\n{made}" if made else block[0]

    return RUNS.sub(one, text)
