# SPDX-License-Identifier: BSD-3-Clause
"""The one exception a user sees, and how a command ends with it."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO


class UserError(Exception):
    """One sentence for the user, and the exit status: 1 failed, 2 bad usage or config."""

    def __init__(self, sentence: str, status: int = 2) -> None:
        super().__init__(sentence)
        self.status = status


def guarded(command: Callable[[], int]) -> int:
    """Every bad end of a command is one sentence on standard error and the right exit status."""
    try:
        status = command()
        sys.stdout.flush()
        return status
    except UserError as error:
        print(f"weir: {error}", file=sys.stderr)
        return error.status
    except KeyboardInterrupt:
        print("weir: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # Whoever read our output has seen enough.
        drop_output()
        return 0
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        print(f"weir: {where}{error.strerror or error}", file=sys.stderr)
        drop_output()
        return 1
    except MemoryError:
        print("weir: not enough memory for this run's telemetry", file=sys.stderr)
        return 1


def open_lock(path: Path) -> TextIO:
    """Opens a lock file and cuts nothing off it. UserError: a link is in its place.

    Whoever made the folder may have put a link to any file there.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        return os.fdopen(os.open(path, flags, 0o666), "w")
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
    raise UserError(f"{path}: is a link: remove it", 1)


@contextmanager
def unheard() -> Iterator[None]:
    """What is printed within may find its reader, or the terminal, gone: the rest goes on."""
    try:
        yield
    except OSError:
        drop_output()


def drop_output() -> None:
    """What is left of standard output goes nowhere, or Python would try again when it ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
