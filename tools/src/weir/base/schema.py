# SPDX-License-Identifier: BSD-3-Clause
"""The JSON Schema of a config, made from the C programs' own tables.

Editors complete and check with it while one types; the programs themselves know more. What no JSON
Schema can say: the range of a number with a unit ("500bit" as a rate), whole numbers with a unit,
rules between two keys (stop after start, a BDP without a delay, ports that do not exist), which
program needs which section, and duplicate keys. All else that the programs refuse, this refuses.
The programs also take names in any case, and other names of controls (reno): editors offer one.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

from weir.base import tables
from weir.base.tables import Entry, Key, Tables

Schema = dict[str, Any]

DRAFT = "http://json-schema.org/draft-07/schema#"
NUMBER = r"([0-9]+(\.[0-9]+)?|\.[0-9]+)([eE][-+]?[0-9]+)?"
NAME = "^[A-Za-z0-9_-]+$"
CHANGE = r"^(at|seed|[A-Za-z0-9_-]+\.[A-Za-z0-9_.-]+)$"
# YAML 1.1 reads these words as booleans, YAML 1.2 as texts.
BOOLEANS = {"no": False, "off": False, "false": False, "yes": True, "on": True, "true": True}
# Names of the definitions of numbers, by unit.
NAMES = {
    "": "plain",
    "ns": "time",
    "bit/s": "rate",
    "B": "size",
    "ratio": "ratio",
    "limit": "limit",
}
NOTHING: Mapping[str, Entry] = MappingProxyType({})
SCALAR: Schema = {"type": ["string", "number", "boolean"]}


def of_config(control: str | None = None) -> Schema:
    """Returns the schema of this build, and of a control of the user's, FILE or FILE:CLASS."""
    if control is None:
        return make(tables.read())
    kind = "python" if ":" in control else "plugin"
    return make(tables.read(), {kind: tables.of_outside(control)})


def text(schema: Schema) -> str:
    return json.dumps(schema, indent=1) + "\n"


def make(listed: Tables, outside: Mapping[str, Entry] = NOTHING) -> Schema:
    """Returns the schema of tables; outside: entries of user's controls by the keys of OUTSIDE."""
    makers = Maker(listed, outside)
    sections = {
        name: makers.table(entry, name)
        for kind in ("run", "flows", "live")
        for name, entry in listed[kind].items()
        if name != "run"
    }
    plugins = {
        f"{kind}.{name}": makers.table(entry, name)
        for kind in ("aqm", "stage", "path", "cc", "source", "stack", "quic", "base_rtt")
        for name, entry in listed[kind].items()
    }
    plugins["stack.quic"] = makers.plugin(["quic"])  # one more name: {quic: {ngtcp2: {...}}}
    return {
        "$schema": DRAFT,
        "title": "A Weir experiment",
        **makers.table(listed["run"]["run"], "run"),
        "definitions": {**makers.numbers(), **sections, **plugins},
    }


# {plugin: FILE, its parameters} and {python: FILE:CLASS, its parameters}.
OUTSIDE: dict[str, Schema] = {
    "plugin": {
        "type": "object",
        "properties": {
            "plugin": {"description": "a congestion control of yours: a shared object", **SCALAR},
            "digest": SCALAR,
        },
        "required": ["plugin"],
    },
    "python": {
        "type": "object",
        "properties": {
            "python": {
                "description": "a congestion control of yours: FILE:CLASS, or an agent of weir.gym",
                "type": "string",
                "pattern": ":|^agent$",
            },
            "digest": SCALAR,
            "every": {
                "description": "when it is called: ack, rtt or a time such as 10ms",
                "type": "string",
            },
        },
        "required": ["python"],
    },
}


class Maker:
    """Makes the schema of each table of weir-sim."""

    def __init__(self, listed: Tables, outside: Mapping[str, Entry]) -> None:
        self.listed = listed
        self.outside = outside
        self.suffixes = {unit: row["suffixes"] for unit, row in listed["unit"].items()}

    def numbers(self) -> Schema:
        """Returns the forms of numbers with each unit, to which keys refer."""
        suffixes = {**self.suffixes, "B": [*self.suffixes["B"], ""]}
        suffixes["limit"] = [*suffixes["limit"], *self.suffixes["B"]]
        made: Schema = {}
        for unit, row in self.listed["unit"].items():
            wrong = f"this is not {row['summary']}"
            said = {"patternErrorMessage": wrong, "errorMessage": wrong}  # of another type
            form = pattern(suffixes[unit])
            if unit in ("ns", "limit"):  # of times also a sum, such as 1h30m
                times = f"{NUMBER} ?({'|'.join(suffixes['ns'])})"
                sums = f"^{times}( ?{times})*$"
                form = sums if unit == "ns" else f"{form}|{sums}"
            name = f"number.{NAMES[unit]}"
            made[name] = {"type": "string", "pattern": form, **said}
            made[f"{name}_or_0"] = {"type": "string", "pattern": f"{form}|^0+$", **said}
        return made

    def table(self, entry: Entry, name: str) -> Schema:
        """Returns the schema of a map with the keys of a table."""
        made: Schema = {
            "type": "object",
            "description": entry["summary"],
            "properties": {key: self.value(row) for key, row in tables.keys(entry).items()},
            "required": tables.required(entry),
            "additionalProperties": False,
        }
        # Other keys than these are parameters of stages.
        changes: Schema = {"propertyNames": {"pattern": CHANGE}, "additionalProperties": SCALAR}
        if name == "schedule":
            made |= changes | {"minProperties": 2}
        if name == "branches":
            branch = {"type": ["object", "null"], **changes}
            made["properties"]["runs"] = {"type": "object", "additionalProperties": branch}
        if name == "hosts":  # one kind of hosts, or several with names
            own: Schema = {"type": "string", "pattern": NAME}
            named = {"type": "object", "required": ["name"], "properties": {"name": own}}
            for side, form in made["properties"].items():
                kind = {"allOf": [{"$ref": f"#/definitions/hosts.{side}"}, named]}
                form["anyOf"].append({"type": "array", "items": kind, "minItems": 1})
        if name == "flows":  # a Linux stack has its own congestion control, datagrams have none
            udp = {"properties": {"source": {"type": "object", "required": ["udp"]}}}
            made["anyOf"] = [
                {"required": ["cc"]},
                {"required": ["stack"]},
                {"required": ["source"], **udp},
            ]
        if name == "linux":  # the names of settings are the kernel's
            settings = {"type": "object", "additionalProperties": SCALAR}
            made["properties"]["sysctl"] |= settings
            made["properties"]["module"] |= {"type": "object", "additionalProperties": settings}
        return made

    def value(self, row: Key) -> Schema:
        """Returns the schema of a key's value, with what an editor shows about it."""
        shown = {"description": described(row)}
        if row["default"]:
            shown["default"] = row["default"]
        return {**shown, **self.form(row)}

    def form(self, row: Key) -> Schema:
        """Returns the schema of what may be written for a key."""
        kind, of = row["type"], row.get("of", "")
        if kind in ("text", "scalar", "file"):
            return {"type": [*SCALAR["type"], "null"]} if row["default"] == "" else SCALAR
        if kind in ("bool", "enum"):
            return words(row["choices"], any_case=kind == "bool")
        if kind == "limit":
            return number_of("limit")
        if kind == "plugin":
            return self.plugin([of])
        if kind == "map":
            return self.map_of(of)
        if kind == "list":
            return self.list_of(row)
        if kind == "paths":
            return self.paths(of)
        if kind == "names":
            one: Schema = {"type": "string", "pattern": NAME}
            name = words(row["choices"], any_case=False) if row["choices"] else one
            some = {"type": "array", "items": name, "minItems": 1, "uniqueItems": True}
            return {"anyOf": [name, some]}
        if row["choices"]:
            return {"anyOf": [words(row["choices"], any_case=False), self.number(row)]}
        return {"anyOf": [self.number(row), self.plugin([of])]} if of else self.number(row)

    def number(self, row: Key) -> Schema:
        """Returns the schema of a number, with its unit or without where that is allowed.

        Text comes first: an editor shows what is wrong by the first form.
        """
        unit, low, high = row["unit"], row["min"], row["max"]
        plain: Schema = {"type": "integer" if row["type"] == "u64" else "number", "minimum": low}
        if high is not None:
            plain["maximum"] = high
        if unit not in ("ns", "bit/s"):
            zero: list[Schema] = [{"const": 0}] if row.get("zero") and low > 0 else []
            return {"anyOf": [number_of(unit), plain, *zero]}
        if row.get("seconds"):
            return {"anyOf": [number_of(unit), number_of(""), {"type": "number", "minimum": 0}]}
        if low <= 0 or row.get("zero"):
            return {"anyOf": [{"$ref": f"{number_of(unit)['$ref']}_or_0"}, {"const": 0}]}
        return number_of(unit)

    def plugin(self, kinds: Iterable[str]) -> Schema:
        """Returns the schema of a plug-in: its name if it needs no parameters, or {name: {...}}."""
        entries = {
            name: (f"#/definitions/{kind}.{name}", entry)
            for kind in kinds
            for name, entry in self.listed[kind].items()
        }
        whole: Schema = {}
        bare: list[str] = []
        for name, (reference, entry) in entries.items():
            whole[name] = {"$ref": reference}
            if not tables.required(entry) and reference != "#/definitions/stack.quic":
                bare.append(name)
                described = {"description": entry["summary"]}
                whole[name] = {**described, "anyOf": [{"$ref": reference}, {"type": "null"}]}
        one = {"minProperties": 1, "maxProperties": 1, "additionalProperties": False}
        section: Schema = {"type": "object", "properties": whole, **one}
        if not bare:  # an empty "enum" is no schema
            return section
        shown = {"enumDescriptions": [entries[name][1]["summary"] for name in bare]}
        outside = map(self.from_outside, OUTSIDE) if "cc" in kinds else ()
        return {"anyOf": [{"enum": bare, **shown}, section, *outside]}

    def from_outside(self, kind: str) -> Schema:
        """Returns the schema of a control from OUTSIDE, strict if its parameters are known."""
        made = OUTSIDE[kind]
        if kind not in self.outside:
            return {**made, "additionalProperties": SCALAR}
        own = self.table(self.outside[kind], kind)
        return {
            **made,
            "properties": made["properties"] | own["properties"],
            "required": made["required"] + own["required"],
            "additionalProperties": False,
        }

    def map_of(self, name: str) -> Schema:
        """Returns the schema of a section, which may be empty if nothing in it is required."""
        entry = next(part[name] for part in self.listed.values() if name in part)
        reference = {"$ref": f"#/definitions/{name}"}
        if tables.required(entry) or name.startswith("live"):
            return reference
        return {"anyOf": [reference, {"type": "null"}]}

    def list_of(self, row: Key) -> Schema:
        """Returns the schema of a list of sections or of numbers."""
        if "of" not in row:
            item = self.number({**row, "type": "u64"})
            return {"type": "array", "items": item, "minItems": 1, "uniqueItems": True}
        some: Schema = {"$ref": f"#/definitions/{row['of']}"}
        made: Schema = {"type": "array", "items": some}
        if row["max"] is not None:
            made["maxItems"] = row["max"]
        return {**made, "minItems": row["min"]}

    def paths(self, kind: str) -> Schema:
        """Returns the schema of `paths`: lists of stages by name; a capture may come first."""
        stages = {
            "type": "array",
            "items": [self.plugin([kind, "path"])],
            "additionalItems": self.plugin([kind]),
            "minItems": 1,
        }
        names = {"propertyNames": {"pattern": NAME}, "minProperties": 1}
        return {"type": "object", "additionalProperties": stages, **names}


def number_of(unit: str) -> Schema:
    return {"$ref": f"#/definitions/number.{NAMES[unit]}"}


def described(row: Key) -> str:
    return row["help"] + (" (live)" if row["live"] else "")


def pattern(suffixes: Iterable[str]) -> str:
    """Returns the pattern of a number with a suffix behind it; a space may stand between them."""
    some = "|".join(suffix for suffix in suffixes if suffix)
    without = "?" if "" in suffixes else ""
    return f"^{NUMBER}( ?({some})){without}$" if some else f"^{NUMBER}$"


def words(choices: Iterable[str], any_case: bool) -> Schema:
    """Returns the schema of a choice of words, with the booleans that YAML 1.1 makes of them."""
    choices = list(choices)
    values = sorted({BOOLEANS[choice] for choice in choices if choice in BOOLEANS})
    if any_case:
        letters = [
            "".join(f"[{letter.upper()}{letter}]" for letter in choice) for choice in choices
        ]
        text = {"type": "string", "pattern": f"^({'|'.join(letters)})$"}
        return {"anyOf": [{"enum": choices}, {"type": "boolean"}, text]}
    return {"enum": [*choices, *values]}
