# SPDX-License-Identifier: BSD-3-Clause
"""Pages of the site, and parts of pages, that are made of what the programs say of themselves."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import weir
from weir.base import tables
from weir.base.markdown import cell, code
from weir.base.tables import Entry, Tables
from weir.base.typed import program
from weir.docs import gallery, reference
from weir.study import documents, find

LISTS = {  # a page, its title, what it has, and the kinds of its parts
    "controls": ("Congestion controls", "What `cc:` of a group of flows takes.", ("cc",)),
    "disciplines": ("Queue disciplines", "What `queue:` of a link takes.", ("aqm",)),
    "stages": ("Stages", "What a path is made of, from its first stage to its last.", ("stage",)),
    "sources": ("Sources of traffic", "What `source:` of a group of flows takes.", ("source",)),
    "keys": (
        "Keys of a config",
        "All keys but those of the parts that have pages of their own: controls, disciplines, "
        "stages and sources.",
        ("run", "flows", "path", "stack", "base_rtt", "live"),
    ),
}
# Makes a page of what weir-sim lists, and of the command line (click's Group).
Page = Callable[[Tables, Any], str]
PYTHON = ("weir", *(f"weir.{name}" for name in weir.__all__))


def commands(group: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Yields each command with all words of its name."""
    for name, command in group.commands.items():
        words = f"{path} {name}"
        if hasattr(command, "commands"):
            yield from commands(command, words)
        else:
            yield words, command


def option(param: Any, context: Any) -> str:
    """Returns the row of an argument or an option: what it takes, what it is for."""
    names, meaning = param.get_help_record(context) or (param.make_metavar(context), "")
    return f"| {code(cell(names))} | {cell(meaning or param.help or '')} |"


def command_section(words: str, command: Any) -> str:
    """Returns what `--help` says, as Markdown."""
    context = command.make_context(words, [], resilient_parsing=True)
    usage = command.get_usage(context).removeprefix("Usage: ")
    rows = [option(param, context) for param in command.get_params(context)]
    text = re.sub(r"\n\s*\n\s*", "\n\n", command.help or "").replace("\b\n", "")
    ending = (command.epilog or "").replace("\b\n", "").partition("Examples:\n")[2]
    typed = re.sub(rf"(?m)^  (?:{re.escape(program())} )?", "tools/weir ", ending)
    examples = f"\n```sh\n{typed}\n```\n" if ending else ""
    table = "| | |\n|---|---|\n" + "\n".join(rows)
    return f"## {words}\n\n{text}\n\n```text\n{usage}\n```\n{examples}\n{table}\n"


def command_page(_: Tables, group: Any) -> str:
    """Returns all commands of a group."""
    found = commands(group, "weir")
    sections = [command_section(words, command) for words, command in found]
    return "# Commands\n\nFrom a clone `tools/weir` is the command.\n\n" + "\n".join(sections)


def sentence(text: str) -> str:
    """Returns a summary, which has no full stop, as one."""
    return f"{text[:1].upper()}{text[1:]}"


def part(name: str, entry: Entry) -> str:
    """Returns what a discipline, a control or a section of a config is, and its keys."""
    text = f"## {name}\n\n{sentence(entry['summary'])}.\n"
    if entry.get("reference"):
        text += f"\nSource: {entry['reference']}.\n"
    if keys := tables.keys(entry):
        text += "\n| parameter | default | unit | range | meaning |\n|---|---|---|---|---|\n"
        text += "\n".join(
            reference.row(key, param).removeprefix("| ") for key, param in keys.items()
        )
    if entry.get("observed"):
        text += f"\n\nObserved: {', '.join(map(code, entry['observed']))}."
    return text + "\n"


def list_page(name: str) -> Page:
    """Returns a page of LISTS."""
    title, text, kinds = LISTS[name]

    def page(listed: Tables, _: Any) -> str:
        parts = [part(*item) for kind in kinds for item in listed[kind].items()]
        return f"# {title}\n\n{text}\n\n" + "\n".join(parts)

    return page


def stream(name: str, entry: Entry) -> str:
    """Returns the table of a stream's fields."""
    rows = [
        f"| `{field}` | `{of['dtype'].lstrip('<|')}` | {of['unit']} | {cell(of['meaning'])} |"
        for field, of in entry["fields"].items()
    ]
    head = "| field | type | unit | meaning |\n|---|---|---|---|\n"
    return f"## {name}\n\n{sentence(entry['summary'])}.\n\n{head}" + "\n".join(rows) + "\n"


def stream_page(listed: Tables, _: Any) -> str:
    parts = [stream(*item) for item in listed["stream"].items()]
    return "# Streams and their fields\n\nWhat a `.ring` file holds.\n\n" + "\n".join(parts)


def python_page(*_: Any) -> str:
    """Returns the Python API, from its docstrings."""
    return "# Python\n\n" + "\n".join(f"::: {name}\n" for name in PYTHON)


PAGES: dict[str, Page] = {
    "commands": command_page,
    **{name: list_page(name) for name in LISTS},
    "streams": stream_page,
    "python": python_page,
    "gallery": lambda *_: gallery.page(),
}


def results(name: str) -> Callable[[Tables], str]:
    """Returns the claims of studies."""
    return lambda _: documents.table(name)


# A line `<!-- made: NAME -->` of a page stands for one of these.
PARTS: dict[str, Callable[[Tables], str]] = {
    "configs": reference.configs,
    "numbers": reference.numbers,
    "measurements": reference.measurements,
    "features": reference.features,
    **{f"results {name}": results(name) for name in (find.ALL, *find.suites())},
}
PLACE = re.compile(r"^<!-- made: (.+) -->$", re.MULTILINE)


def whole(text: str, listed: Tables) -> str:
    """Returns a page of the repository with the parts that are made."""
    return PLACE.sub(lambda place: PARTS[place[1]](listed), text)
