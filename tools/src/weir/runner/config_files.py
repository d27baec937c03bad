# SPDX-License-Identifier: BSD-3-Clause
"""The files that a config names. weir-sim's tables say which keys have files as values."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from weir.base import configs, tables


@functools.cache
def keys() -> frozenset[str]:
    """Returns the keys whose values are files: of the tables, and of the user's controls."""
    entries = [entry for kind in tables.read().values() for entry in kind.values()]
    listed = [item for entry in entries for item in tables.keys(entry).items()]
    return frozenset({*configs.OUTSIDE, *(key for key, row in listed if row["type"] == "file")})


def renamed(config: Any, name: Callable[[Path], object]) -> Any:
    """Returns a config, or a part of one, in which each file has the name that `name` gives it.

    The class in FILE:CLASS stays, and so does standard input, "-".
    """
    if isinstance(config, list):
        return [renamed(part, name) for part in config]
    if not isinstance(config, dict):
        return config
    made = {}
    for key, value in config.items():
        if key in keys() and isinstance(value, str) and value not in ("", "-"):
            file, colon, part = value.rpartition(":") if key == "python" else (value, "", "")
            made[key] = f"{name(Path(file))}{colon}{part}"
        else:
            made[key] = renamed(value, name)
    return made


def named(config: object) -> list[Path]:
    found: list[Path] = []
    renamed(config, found.append)
    return found


def content(file: Path) -> str:
    """Returns a digest of what is in a file, wherever it is; of none its name."""
    return hashlib.sha256(file.read_bytes()).hexdigest() if file.is_file() else str(file)
