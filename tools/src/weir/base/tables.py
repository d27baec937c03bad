# SPDX-License-Identifier: BSD-3-Clause
"""Tables of all config keys, plug-ins and telemetry fields, as weir-sim lists them."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import NotRequired, TypedDict

import msgspec

from weir.base.errors import UserError
from weir.base.programs import find_program


class Key(TypedDict):
    """A key of a section or a parameter of a plug-in."""

    type: str
    unit: str
    default: str | None  # None: a config must have the key
    min: int | float
    max: int | float | None
    range: str
    choices: list[str]
    live: bool  # it may be changed while the switch runs
    help: str
    of: NotRequired[str]  # the kind or the section that is its value, or a part of that
    zero: NotRequired[bool]
    seconds: NotRequired[bool]


class Field(TypedDict):
    """A field of a stream's records."""

    dtype: str
    unit: str
    meaning: str


class Entry(TypedDict, total=False):
    """A plug-in, a section, a stream, a unit or a number of a summary."""

    summary: str
    reference: str
    alias: str
    params: dict[str, Key]
    keys: dict[str, Key]
    observed: list[str]
    modes: list[str]  # of a control: the names of 0, 1, ...
    fields: dict[str, Field]  # of a stream
    suffixes: list[str]  # of a unit
    factors: list[float]
    unit: str  # of a number
    over: str
    over_meaning: str
    source: str
    unknown: str


Tables = dict[str, dict[str, Entry]]  # by kind and name


def ask(*words: str) -> subprocess.CompletedProcess[str]:
    """Runs `weir-sim --list`; it runs this Python to read classes of the user's."""
    argv = [str(find_program("sim")), "--list", *words]
    env = {"WEIR_PYTHON": sys.executable, **os.environ}
    return subprocess.run(argv, capture_output=True, text=True, env=env)


def read() -> Tables:
    """Returns entries by kind and name: read()["aqm"]["codel"]["params"]["target"]["default"]."""
    done = ask("--json")
    done.check_returncode()
    return msgspec.json.decode(done.stdout, type=Tables)


def of_outside(control: str) -> Entry:
    """Returns the entry of a control of the user's, FILE or FILE:CLASS; UserError: it is none."""
    done = ask(control, "--json")
    if done.returncode != 0:
        raise UserError(done.stderr.strip().partition(": ")[2])
    return next(iter(msgspec.json.decode(done.stdout, type=Tables)["cc"].values()))


def keys(entry: Entry) -> dict[str, Key]:
    """Returns all keys of a section: its parameters, and those whose values other code reads."""
    return {**entry.get("params", {}), **entry.get("keys", {})}


def required(entry: Entry) -> list[str]:
    """Returns the keys that a config must have, as they have no default."""
    return [key for key, row in keys(entry).items() if row["default"] is None]
