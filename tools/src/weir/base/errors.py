# SPDX-License-Identifier: BSD-3-Clause
"""The exception whose text a user sees, and how a command ends with it."""

from __future__ import annotations

import difflib
import errno
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import TextIO, cast


class UserError(Exception):
    """An error that a command shows as one sentence; status: 1 failed, 2 bad usage or config."""

    def __init__(self, sentence: str, status: int = 2) -> None:
        super().__init__(sentence)
        self.status = status


# Control characters (C0, C1) but tab and newline, marks that change the direction of writing, bytes
# of file names that are not UTF-8: they could set a terminal's title or clipboard, or hide text.
UNPRINTABLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)


def printable(text: str) -> str:
    """Returns text with "?" for each character that acts on a terminal."""
    return UNPRINTABLE.sub("?", text)


def one_line(text: str) -> str:
    return printable(text.replace("\n", " "))


def nearest(word: str, names: Iterable[str], otherwise: str) -> str:
    """Returns "did you mean 'NAME'?" for the name most like the word, or `otherwise`."""
    near = difflib.get_close_matches(word.lower(), list(names), 1)
    return f"did you mean '{near[0]}'?" if near else otherwise


class Plain:
    """A stream that makes all text that is written to it printable.

    terminal.Screen, which does so itself and keeps its own colours, writes to `stream`.
    """

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def __getattr__(self, name: str) -> object:
        return getattr(self.stream, name)

    def write(self, text: str) -> int:
        return self.stream.write(printable(text))


def guarded(command: Callable[[], int]) -> int:
    """Runs a command as `ended` does, with all that it prints made printable."""
    with (
        redirect_stdout(cast(TextIO, Plain(sys.stdout))),
        redirect_stderr(cast(TextIO, Plain(sys.stderr))),
    ):
        return ended(command)


def ended(command: Callable[[], int]) -> int:
    """Runs a command and returns its exit status; prints one sentence if it fails."""
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
        # The reader of the output, such as head, is gone.
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
    """Opens a lock file without truncating it. UserError: it is a symbolic link.

    Whoever made the folder may have put a link to any file there.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        return os.fdopen(os.open(path, flags, 0o666), "w")
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise UserError(f"{path.parent}: cannot be written: {error.strerror}", 1) from None
    raise UserError(f"{path}: is a link: remove it", 1)


@contextmanager
def unheard() -> Iterator[None]:
    """Ignores errors of printing within it: the reader of the output, or the terminal, is gone."""
    try:
        yield
    except OSError:
        drop_output()


def drop_output() -> None:
    """Discards the rest of standard output, which Python would try to flush again at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
