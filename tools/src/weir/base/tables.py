# SPDX-License-Identifier: BSD-3-Clause
"""Tables of all config keys, plug-ins and telemetry fields, as weir-sim lists them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

from weir.base.errors import UserError
from weir.base.programs import find_program

Entry = dict[str, Any]
Tables = dict[str, dict[str, Entry]]


def ask(*words: str) -> subprocess.CompletedProcess[str]:
    """Runs `weir-sim --list`; it runs this Python to read classes of the user's."""
    argv = [str(find_program("sim")), "--list", *words]
    env = {"WEIR_PYTHON": sys.executable, **os.environ}
    return subprocess.run(argv, capture_output=True, text=True, env=env)


def read() -> Tables:
    """Returns entries by kind and name: read()["aqm"]["codel"]["params"]["target"]["default"]."""
    done = ask("--json")
    done.check_returncode()
    tables: Tables = json.loads(done.stdout)
    return tables


def of_outside(control: str) -> Entry:
    """Returns the entry of a control of the user's, FILE or FILE:CLASS; UserError: it is none."""
    done = ask(control, "--json")
    if done.returncode != 0:
        raise UserError(done.stderr.strip().partition(": ")[2])
    listed: Tables = json.loads(done.stdout)
    return next(iter(listed["cc"].values()))


def keys(entry: Entry) -> dict[str, Entry]:
    """Returns all keys of a section: its parameters, and those whose values other code reads."""
    return {**entry.get("params", {}), **entry.get("keys", {})}


def required(entry: Entry) -> list[str]:
    """Returns the keys that a config must have, as they have no default."""
    return [key for key, row in keys(entry).items() if row["default"] is None]
