# SPDX-License-Identifier: BSD-3-Clause
"""Folders of Weir's own files, by the XDG base directory specification."""

from __future__ import annotations

import os
from pathlib import Path


def cache() -> Path:
    """Returns the folder of what can be made again: ~/.cache/weir, or as XDG_CACHE_HOME says."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "weir"


def plugins() -> Path:
    """Returns the folder of Linux's controls that studies run, NAME/NAME.so."""
    return cache() / "controls/plugins"


SHARED = Path("/var/cache/weir")  # cache() that root fills for every user


def state() -> Path:
    """Returns the folder of what is kept: ~/.local/state/weir, or as XDG_STATE_HOME says."""
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local/state") / "weir"
