# SPDX-License-Identifier: BSD-3-Clause
"""What the user typed."""

from __future__ import annotations

import os
import shlex


def program() -> str:
    """What the user types for this command: tools/weir says it in WEIR_COMMAND."""
    typed = os.environ.get("WEIR_COMMAND", "")
    return shlex.split(typed)[0] if typed else "weir"
