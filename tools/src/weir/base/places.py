# SPDX-License-Identifier: BSD-3-Clause
"""The XDG base directories in which Weir keeps what is no run of the user's."""

from __future__ import annotations

import os
from pathlib import Path


def cache() -> Path:
    """Returns the folder of what can be made again: ~/.cache/weir."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "weir"


SHARED = Path("/var/cache/weir")  # as cache(), by root for every user


def state() -> Path:
    """Returns the folder of what cannot be made again: ~/.local/state/weir."""
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local/state") / "weir"
