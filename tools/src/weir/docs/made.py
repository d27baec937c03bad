# SPDX-License-Identifier: BSD-3-Clause
"""Pages of the site, and parts of pages, that are made of what the programs say of themselves."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperGroup

import weir
from weir.base import markdown
from weir.base.markdown import code
from weir.base.page import Heading, Page, Part, Source, Table, Text
from weir.base.tables import Entry, Tables
from weir.base.typed import program
from weir.docs import gallery, reference
from weir.league import agents
from weir.league import page as league
from weir.study import documents, find

if TYPE_CHECKING:
    from typer._click.core import Command, Context

LISTS = {  # a page, its title, what it has, and the kinds of its parts
    "controls": ("Congestion controls", "What `cc:` of a group of flows takes.", ("cc",)),
    "disciplines": ("Queue disciplines", "What `queue:` of a link takes.", ("aqm",)),
    "stages": ("Stages", "What a path is made of, from its first stage to its last.", ("stage",)),
    "sources": ("Sources of traffic", "What `source:` of a group of flows takes.", ("source",)),
    "keys": (
        "Keys of a config",
        "All keys but those of the parts that have pages of their own: controls, disciplines, "
        "stages and sources.",
        ("run", "flows", "path", "stack", "quic", "base_rtt", "live"),
    ),
}
# Makes a page of what weir-sim lists, and of the command line (click's Group).
Maker = Callable[[Tables, TyperGroup], str]
PYTHON = ("weir", *(f"weir.{name}" for name in weir.__all__))


def commands(group: TyperGroup, path: str) -> Iterator[tuple[str, Command]]:
    """Yields each command with all words of its name."""
    context = typer.Context(group)
    for name in group.list_commands(context):
        words, command = f"{path} {name}", group.get_command(context, name)
        if isinstance(command, TyperGroup):
            yield from commands(command, words)
        elif command is not None:
            yield words, command


def option(param: Any, context: Context) -> tuple[str, str]:
    """Returns an argument or an option with what it takes, and what it is for."""
    names, meaning = param.get_help_record(context) or (param.make_metavar(context), "")
    return code(names), meaning or param.help or ""


def command_section(words: str, command: Command) -> list[Part]:
    """Returns what `--help` says."""
    context = command.make_context(words, [], resilient_parsing=True)
    usage = command.get_usage(context).removeprefix("Usage: ")
    ending = (command.epilog or "").replace("\b\n", "").partition("Examples:\n")[2]
    return [
        Heading(words),
        Text(re.sub(r"\n\s*\n\s*", "\n\n", command.help or "").replace("\b\n", "")),
        Source("text", usage),
        Source("sh", re.sub(rf"(?m)^  (?:{re.escape(program())} )?", "tools/weir ", ending)),
        Table(("", ""), [option(param, context) for param in command.get_params(context)]),
    ]


def command_page(_: Tables, group: TyperGroup) -> str:
    """Returns the page of all commands of the command line, group."""
    parts = [part for found in commands(group, "weir") for part in command_section(*found)]
    return markdown.page(
        Page("Commands", [Text("From a clone `tools/weir` is the command."), *parts])
    )


def sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}"


def row(what: str, names: list[str]) -> Text:
    return Text(f"{what}: {', '.join(map(code, names))}." if names else "")


def part(name: str, entry: Entry) -> list[Part]:
    """Returns what a discipline, a control or a section of a config is, and its keys."""
    source = entry.get("reference")
    return [
        Heading(name),
        Text(f"{sentence(entry['summary'])}."),
        Text(f"Source: {source}." if source else ""),
        reference.parameters(entry),
        row("Observed", entry.get("observed", [])),
        row("Modes", entry.get("modes", [])),
    ]


def list_page(name: str) -> Maker:
    """Returns the maker of a page of LISTS."""
    title, text, kinds = LISTS[name]

    def page(listed: Tables, _: TyperGroup) -> str:
        entries = (item for kind in kinds for item in listed[kind].items())
        parts = [each for entry in entries for each in part(*entry)]
        return markdown.page(Page(title, [Text(text), *parts]))

    return page


def stream_page(listed: Tables, _: TyperGroup) -> str:
    """Returns the page of all streams."""
    parts: list[Part] = [Text("What a `.ring` file holds.")]
    for name, entry in listed["stream"].items():
        parts += [
            Heading(name), Text(f"{sentence(entry['summary'])}."), reference.fields(entry)
        ]  # fmt: skip
    return markdown.page(Page("Streams and their fields", parts))


PAGES: dict[str, Maker] = {
    "commands": command_page,
    **{name: list_page(name) for name in LISTS},
    "streams": stream_page,
    "python": lambda *_: "# Python\n\n" + "\n".join(f"::: {name}\n" for name in PYTHON),
    "league": lambda *_: league.site(),
    "gallery": lambda *_: gallery.page(),
}


def results(name: str) -> Callable[[Tables], str]:
    return lambda _: documents.table(name)


# A line `<!-- made: NAME -->` of a page stands for one of these.
PARTS: dict[str, Callable[[Tables], str]] = {
    "configs": reference.configs,
    "numbers": reference.numbers,
    "measurements": reference.measurements,
    "features": reference.features,
    "gym": lambda _: markdown.render(agents.site()),
    **{f"results {name}": results(name) for name in (find.ALL, *find.suites())},
}
PLACE = re.compile(r"^<!-- made: (.+) -->$", re.MULTILINE)


def whole(text: str, listed: Tables) -> str:
    """Returns a page of the repository with the parts that are made."""
    return PLACE.sub(lambda place: PARTS[place[1]](listed), text)
