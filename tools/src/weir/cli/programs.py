# SPDX-License-Identifier: BSD-3-Clause
"""weir sim|switch|sender ARGS: a C program, which takes the place of this one."""

from __future__ import annotations

import os
import sys

from weir.base import programs
from weir.base.errors import guarded


def main() -> int:
    return guarded(start)


def start() -> int:
    programs.identify()
    program = str(programs.find_program(sys.argv[1]))
    os.execv(program, [program, *sys.argv[2:]])
