# SPDX-License-Identifier: BSD-3-Clause
"""Where Weir keeps what is no run of the user's: the XDG base directories."""

from __future__ import annotations

import os
from pathlib import Path


def cache() -> Path:
    """What can be made again: ~/.cache/weir."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "weir"


SHARED = Path("/var/cache/weir")  # as cache(), by root for every user


def state() -> Path:
    """What cannot: ~/.local/state/weir."""
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local/state") / "weir"
