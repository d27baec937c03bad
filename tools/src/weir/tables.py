# SPDX-License-Identifier: BSD-3-Clause
"""What there is to configure and to record, as weir-sim's own tables have it."""

from __future__ import annotations

import json
import subprocess
from typing import Any

from weir.runner import find_program

Entry = dict[str, Any]
Tables = dict[str, dict[str, Entry]]


def read() -> Tables:
    """Entries by kind and name: read()["aqm"]["codel"]["params"]["target"]["default"]."""
    program = str(find_program("sim"))
    done = subprocess.run([program, "--list", "--json"], capture_output=True, check=True)
    tables: Tables = json.loads(done.stdout)
    return tables


def keys(entry: Entry) -> dict[str, Entry]:
    """All keys of a section: its parameters, and those whose values other code reads."""
    return {**entry.get("params", {}), **entry.get("keys", {})}


def required(entry: Entry) -> list[str]:
    """Keys that must be written."""
    return [key for key, row in keys(entry).items() if row["default"] is None]
