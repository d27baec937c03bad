# SPDX-License-Identifier: BSD-3-Clause
"""Tables in pages, made of what weir-sim lists: of disciplines and stages, and of numbers."""

from __future__ import annotations

import re
from pathlib import Path

from weir import tables
from weir.analysis import folder
from weir.bootstrap import ROOT
from weir.errors import UserError
from weir.tables import Entry, Tables

BEGIN = "<!-- tables: tools/weir list --update configs/README.md -->\n"
END = "<!-- end of tables -->\n"
NUMBERS_BEGIN = "<!-- numbers: tools/weir list --update tools/docs/reference/numbers.md -->\n"
NUMBERS_END = "<!-- end of numbers -->\n"
MEASUREMENTS_BEGIN = (
    "<!-- measurements: tools/weir list --update tools/docs/how-to/python-controls.md -->\n"
)
MEASUREMENTS_END = "<!-- end of measurements -->\n"
FEATURES_BEGIN = (
    "<!-- features: tools/weir list --update tools/docs/how-to/python-controls.md -->\n"
)
FEATURES_END = "<!-- end of features -->\n"
TITLES = {"aqm": "queue discipline", "stage": "stage"}
UNITS = {"ns": "time", "bit/s": "rate", "B": "bytes"}


def cell(text: str) -> str:
    """Text in a cell of a table."""
    return text.replace("|", "\\|").replace("\n", " ")


def code(text: str) -> str:
    """Text as in a config; there is nothing to show of an empty one."""
    return f"`{text}`" if text else ""


def row(name: str, param: Entry) -> str:
    """One parameter."""
    unit = "limit" if param["type"] == "limit" else UNITS.get(param["unit"], param["unit"])
    default = "required" if param["default"] is None else code(param["default"])
    live = " (live)" if param["live"] else ""
    cells = ["", f"`{name}`", default, unit, param["range"], param["help"] + live]
    return "|" + "|".join(f" {cell(text)} " if text else " " for text in cells) + "|"


def table(kind: str, entries: dict[str, Entry]) -> str:
    """All of a kind: a line with its source for each, then a line for each of its parameters."""
    lines = [
        f"| {TITLES[kind]} | parameter | default | unit | range | meaning |",
        "|---|---|---|---|---|---|",
    ]
    for name, entry in entries.items():
        source = f". Source: {entry['reference']}" if entry.get("reference") else ""
        lines.append(f"| **{name}** | | | | | {cell(entry['summary'] + source)} |")
        lines += [row(key, param) for key, param in tables.keys(entry).items()]
        if entry.get("observed"):
            names = ", ".join(f"`{observed}`" for observed in entry["observed"])
            lines.append(f"| | | | | | observed: {names} |")
    return "\n".join(lines) + "\n"


def markdown(listed: Tables) -> str:
    """Both tables, without the lines between which they stand."""
    return "\n" + "\n".join(table(kind, listed[kind]) for kind in TITLES) + "\n"


def numbers(listed: Tables) -> str:
    """The definitions of numbers: the times that they count, then a table for each place."""
    entries = listed["number"]
    times = {entry["over"]: entry["over_meaning"] for entry in entries.values()}
    lines = ["", "| over | the time that counts |", "|---|---|"]
    lines += [f"| {name} | {cell(meaning)} |" for name, meaning in times.items()]
    for place in dict.fromkeys(name.rpartition(".")[0].partition(".")[0] for name in entries):
        own = {
            name: entry
            for name, entry in entries.items()
            if name.rpartition(".")[0].partition(".")[0] == place
        }
        lines += [
            "",
            f"| {code(place) or 'the run'} | unit | over | definition | recorded in | null |",
            "|---|---|---|---|---|---|",
        ]
        lines += [
            f"| {code(name.removeprefix(place + '.'))} | {entry['unit']} | {entry['over']} |"
            f" {cell(entry['summary'])} | {cell(entry['source'])} | {cell(entry['unknown'])} |"
            for name, entry in own.items()
        ]
    return "\n".join(lines) + "\n\n"


def measurement_list() -> list[tuple[str, str, str]]:
    """What a control in Python is given: type in C, name and meaning."""
    text = (ROOT / "tools/sim/agent/measurements.h").read_text(encoding="utf-8")
    found: list[tuple[str, str, str]] = re.findall(r'V\((\w+), (\w+), +"([^"]*)"\)', text)
    return found


def measurements(_: Tables) -> str:
    """The members of a control's measurements: first those that are of an interval."""
    text = (ROOT / "tools/sim/agent/measurements.h").read_text(encoding="utf-8")
    interval = text.partition("#define MEASUREMENTS_LAST")[0]
    lines = ["", "| of | measurement | meaning |", "|---|---|---|"]
    for _kind, name, meaning in measurement_list():
        of = "the interval" if f", {name}, " in interval else "now"
        lines.append(f"| {of} | `{name}` | {cell(meaning)} |")
    return "\n".join(lines) + "\n\n"


def features(_: Tables) -> str:
    """The numbers of an agent's observation."""
    from weir.gym import FEATURES

    lines = ["", "| number | at most | meaning |", "|---|---|---|"]
    lines += [f"| `{f.name}` | {f.high:g} | {cell(f.meaning)} |" for f in FEATURES]
    return "\n".join(lines) + "\n\n"


PAGES = (
    (BEGIN, END, markdown),
    (NUMBERS_BEGIN, NUMBERS_END, numbers),
    (MEASUREMENTS_BEGIN, MEASUREMENTS_END, measurements),
    (FEATURES_BEGIN, FEATURES_END, features),
)


def update(path: Path) -> None:
    """Replaces the tables in a file."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not text"
        raise UserError(f"{path}: cannot be read: {reason}", 1) from None
    written = 0
    for begin, end, make in PAGES:
        head, found, rest = text.partition(begin)
        _, ended, tail = rest.partition(end)
        if found and ended:
            text = head + begin + make(tables.read()) + end + tail
            written += 1
    if written == 0:
        marks = f"{BEGIN.strip()} and {END.strip()}"
        raise UserError(f"{path}: it has no lines {marks}, between which the tables stand")
    folder.write_whole(path, text)
