# SPDX-License-Identifier: BSD-3-Clause
"""What is longer than the terminal is shown page by page."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys

PAGER = "less -FRX"  # stays where it was, and leaves what was read on the screen


def show(text: str) -> None:
    """Prints a text, through PAGER if it is longer than the terminal it goes to."""
    whole = len(text.splitlines()) < shutil.get_terminal_size().lines
    argv = shlex.split(os.environ.get("PAGER") or PAGER)
    if whole or not sys.stdout.isatty() or not sys.stdin.isatty() or not shutil.which(argv[0]):
        print(text, end="")
        return
    subprocess.run(argv, input=text, text=True, check=False)
