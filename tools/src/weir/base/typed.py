# SPDX-License-Identifier: BSD-3-Clause
"""The command as the user typed it."""

from __future__ import annotations

import os
import shlex


def program() -> str:
    """Returns the program's name as the user typed it: tools/weir sets WEIR_COMMAND."""
    typed = os.environ.get("WEIR_COMMAND", "")
    return shlex.split(typed)[0] if typed else "weir"
