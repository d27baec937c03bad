# SPDX-License-Identifier: BSD-3-Clause
"""Tables in pages of the site, made of what weir-sim lists and of the sources."""

from __future__ import annotations

import re

from weir.base.markdown import cell, code
from weir.base.tables import Entry, Tables
from weir.bootstrap import ROOT

UNITS = {"ns": "time", "bit/s": "rate", "B": "bytes"}


def row(name: str, param: Entry) -> str:
    unit = "limit" if param["type"] == "limit" else UNITS.get(param["unit"], param["unit"])
    default = "required" if param["default"] is None else code(param["default"])
    live = " (live)" if param["live"] else ""
    cells = ["", f"`{name}`", default, unit, param["range"], param["help"] + live]
    return "|" + "|".join(f" {cell(text)} " if text else " " for text in cells) + "|"


def configs(_: Tables) -> str:
    """Returns a table of the configs that are no study's, with the first sentence of each."""
    folder = ROOT / "configs"
    lines = ["| config | shows |", "|---|---|"]
    for path in [*sorted(folder.glob("*.yaml")), *sorted(folder.glob("flent/*.yaml"))]:
        comment = re.split(r"\n(?!# \S)", path.read_text(encoding="utf-8"), maxsplit=1)[0]
        shows = re.split(
            r"(?<=\.)\s+(?=[A-Z]|weir )", comment.removeprefix("# ").replace("\n# ", " ")
        )[0]
        lines.append(f"| {code(str(path.relative_to(folder)))} | {cell(shows)} |")
    return "\n".join(lines) + "\n"


def numbers(listed: Tables) -> str:
    """Returns the definitions of numbers: their times, then a table for each place."""
    entries = listed["number"]
    times = {entry["over"]: entry["over_meaning"] for entry in entries.values()}
    lines = ["| over | the time that counts |", "|---|---|"]
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
    return "\n".join(lines) + "\n"


def measurement_list() -> list[tuple[str, str, str]]:
    """Yields what a control in Python is given: type in C, name and meaning."""
    text = (ROOT / "tools/sim/agent/measurements.h").read_text(encoding="utf-8")
    found: list[tuple[str, str, str]] = re.findall(r'V\((\w+), (\w+), +"([^"]*)"\)', text)
    return found


def measurements(_: Tables) -> str:
    """Returns the members of a control's measurements: first those that are of an interval."""
    text = (ROOT / "tools/sim/agent/measurements.h").read_text(encoding="utf-8")
    interval = text.partition("#define MEASUREMENTS_LAST")[0]
    lines = ["| of | measurement | meaning |", "|---|---|---|"]
    for _kind, name, meaning in measurement_list():
        of = "the interval" if f", {name}, " in interval else "now"
        lines.append(f"| {of} | `{name}` | {cell(meaning)} |")
    return "\n".join(lines) + "\n"


def features(_: Tables) -> str:
    """Returns the numbers of an agent's observation."""
    from weir.gym import FEATURES

    lines = ["| number | at most | meaning |", "|---|---|---|"]
    lines += [f"| `{f.name}` | {f.high:g} | {cell(f.meaning)} |" for f in FEATURES]
    return "\n".join(lines) + "\n"
