# SPDX-License-Identifier: BSD-3-Clause
"""Higher priority for live programs: they poll, and need all of their CPUs."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

NICE = -10  # others keep a tenth of a CPU that such a program fills


def start(argv: Sequence[str], **options: Any) -> subprocess.Popen[Any]:
    """Starts a process, at NICE if that is permitted.

    Give it a session of its own: with autogroups, nice counts only within a session, and the
    session has a nice value of its own, which is set too.
    """
    before = os.getpriority(os.PRIO_PROCESS, 0)
    with suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, min(before, NICE))  # this thread's; children inherit it
    try:
        process = subprocess.Popen(argv, **options)
    finally:
        os.setpriority(os.PRIO_PROCESS, 0, before)
    with suppress(OSError):
        Path(f"/proc/{process.pid}/autogroup").write_text(str(NICE))
    return process
