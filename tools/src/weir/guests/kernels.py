# SPDX-License-Identifier: BSD-3-Clause
"""The built kernels of guests, and their names.

~/.cache/weir/guests/KEY/linux       KEY: a hash of all that the kernel is made of
~/.cache/weir/guests/KEY/NAME.ko     its modules
~/.cache/weir/guests/current -> KEY  what weir-sim runs; WEIR_GUESTS names another folder
~/.cache/weir/guests/NAME -> KEY     what it runs for `stack: {linux: {kernel: NAME}}`
"""

from __future__ import annotations

import json
import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from weir.base import places
from weir.base.errors import UserError

CURRENT = "current"  # Debian's kernel as it is
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,30}")
KEY = re.compile(r"[0-9a-f]{16}")


@dataclass(frozen=True)
class Kernel:
    """A built kernel, as guest.json describes it. weir-sim reads that too: all values are texts."""

    package: str  # or the name of another source
    version: str  # of the package
    release: str  # what uname -r says in a guest
    options: str  # hash of the options
    compiler: str
    key: str
    patches: str = ""  # their files' names
    modules: str = ""  # their names, in the order in which they are loaded
    controls: str = ""  # congestion controls that it has said it offers; "": was not asked


def cache() -> Path:
    if named := os.environ.get("WEIR_GUESTS"):
        return Path(named)
    return places.cache() / "guests"


def find(name: str) -> Kernel | None:
    """Returns the kernel of this name or key; None: none is built."""
    folder = cache() / name
    try:
        described = json.loads((folder / "guest.json").read_text(encoding="utf-8"))
        kernel = Kernel(**described)
    except (OSError, ValueError, TypeError):
        return None
    return kernel if os.access(folder / "linux", os.X_OK) else None


def current() -> Kernel | None:
    """Returns the kernel that weir-sim runs unless a config names one; None: none is built."""
    return find(CURRENT)


def needed(by: str) -> None:
    """Raises UserError if no kernel is built."""
    if current() is None:
        raise UserError(f"{by} needs the guests' kernel; run: tools/weir guests build", 1)


def choose(key: str, name: str = CURRENT) -> None:
    """Gives a kernel the name; the one that had it is removed if it has no other."""
    link = cache() / name
    old = link.readlink().name if link.is_symlink() else key
    new = cache() / f"{name}.{os.getpid()}"
    new.unlink(missing_ok=True)
    new.symlink_to(key)
    new.rename(link)
    if name != CURRENT and old != key:
        drop(old)


def names() -> list[str]:
    found = sorted(path.name for path in cache().glob("*") if path.is_symlink())
    return sorted(found, key=lambda name: name != CURRENT)


def named() -> dict[str, Kernel]:
    kernels = {name: find(name) for name in names()}
    return {name: kernel for name, kernel in kernels.items() if kernel is not None}


def drop(key: str) -> None:
    if all((cache() / name).readlink().name != key for name in names()):
        shutil.rmtree(cache() / key, ignore_errors=True)


def remove(name: str) -> None:
    """Removes a name, and the kernel if it has no other. UserError: there is no such name."""
    link = cache() / name
    if NAME.fullmatch(name) is None or not link.is_symlink():
        have = ", ".join(names()) or "none"
        raise UserError(f"guests: there is no kernel '{name}'; there is {have}")
    key = link.readlink().name
    link.unlink()
    drop(key)


def check_name(name: str) -> None:
    """Raises UserError for a name that may not be given, or that the cache itself uses."""
    place = cache() / name
    if NAME.fullmatch(name) is None:
        raise UserError(
            f"guests: --name: '{name}' is not 1 to 31 letters, digits, dots, dashes or underscores"
        )
    if name == CURRENT or KEY.fullmatch(name) or (place.exists() and not place.is_symlink()):
        raise UserError(f"guests: --name: '{name}' is taken by the cache itself")
