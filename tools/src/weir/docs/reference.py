# SPDX-License-Identifier: BSD-3-Clause
"""Tables in pages of the site, made of what weir-sim lists and of the sources."""

from __future__ import annotations

import re
from collections.abc import Mapping

from weir.base import tables
from weir.base.markdown import code, render
from weir.base.page import Column, Table
from weir.base.tables import Entry, Field, Key, Tables
from weir.bootstrap import ROOT
from weir.environments.features import FEATURES

UNITS = {"ns": "time", "bit/s": "rate", "B": "bytes"}
PARAMETERS = (
    Column("parameter", "name", code),
    Column("default", lambda of: "required" if of["default"] is None else code(of["default"])),
    Column(
        "unit", lambda of: "limit" if of["type"] == "limit" else UNITS.get(of["unit"], of["unit"])
    ),
    Column("range"),
    Column("meaning", lambda of: of["help"] + (" (live)" if of["live"] else "")),
)
FIELDS = (
    Column("field", "name", code),
    Column("type", lambda of: code(of["dtype"].lstrip("<|"))),
    Column("unit"),
    Column("meaning"),
)
NUMBERS = (
    Column("unit"),
    Column("over"),
    Column("definition", "summary"),
    Column("recorded in", "source"),
    Column("null", "unknown"),
)


def named(entries: Mapping[str, Key | Field | Entry]) -> list[dict[str, object]]:
    return [{"name": name, **entry} for name, entry in entries.items()]


def parameters(entry: Entry) -> Table:
    return Table(PARAMETERS, named(tables.keys(entry)))


def fields(entry: Entry) -> Table:
    return Table(FIELDS, named(entry["fields"]))


def configs(_: Tables) -> str:
    """Returns a table of the configs that are no study's, with the first sentence of each."""
    folder = ROOT / "configs"
    rows = []
    for path in (
        p for place in ("", "course/", "flent/") for p in sorted(folder.glob(f"{place}*.yaml"))
    ):
        comment = re.split(r"\n(?!# \S)", path.read_text(encoding="utf-8"), maxsplit=1)[0]
        shows = re.split(
            r"(?<=\.)\s+(?=[A-Z]|weir )", comment.removeprefix("# ").replace("\n# ", " ")
        )[0]
        rows.append((code(str(path.relative_to(folder))), shows))
    return render([Table(("config", "shows"), rows)])


def numbers(listed: Tables) -> str:
    """Returns the definitions of numbers: the times that they count, a table for each place."""
    entries = listed["number"]
    times = {entry["over"]: entry["over_meaning"] for entry in entries.values()}
    places: dict[str, list[dict[str, object]]] = {}
    for name, entry in entries.items():
        place = name.rpartition(".")[0].partition(".")[0]
        own = {"name": name.removeprefix(f"{place}."), **entry}
        places.setdefault(place, []).append(own)
    return render([
        Table(("over", "the time that counts"), list(times.items())),
        *(
            Table((Column(code(place) or "the run", "name", code), *NUMBERS), own)
            for place, own in places.items()
        ),
    ])  # fmt: skip


def measurement_list() -> list[tuple[str, str, str]]:
    """Returns what a control in Python is given: type in C, name and meaning."""
    text = (ROOT / "tools/sim/agent/measurements.h").read_text(encoding="utf-8")
    found: list[tuple[str, str, str]] = re.findall(r'V\((\w+), (\w+), +"([^"]*)"\)', text)
    return found


def measurements(_: Tables) -> str:
    """Returns the table of a control's measurements: of the interval, or of now."""
    text = (ROOT / "tools/sim/agent/measurements.h").read_text(encoding="utf-8")
    interval = text.partition("#define MEASUREMENTS_LAST")[0]
    rows = [
        ("the interval" if f", {name}, " in interval else "now", code(name), meaning)
        for _kind, name, meaning in measurement_list()
    ]
    return render([Table(("of", "measurement", "meaning"), rows)])


def features(_: Tables) -> str:
    """Returns the numbers of an agent's observation."""
    columns = (
        Column("number", "name", code),
        Column("at most", "high", "{:g}".format),
        Column("meaning"),
    )
    return render([Table(columns, FEATURES)])
