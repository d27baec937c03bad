# SPDX-License-Identifier: BSD-3-Clause
"""The signals that end a command: SIGINT (Ctrl-C), SIGTERM and SIGHUP."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def end_in_order() -> None:
    """Lets SIGTERM and SIGHUP end this program as Ctrl-C does: what it has started goes, too."""

    def leave(number: int, _: object) -> None:
        raise SystemExit(128 + number)

    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) == signal.SIG_DFL:  # of nohup it is ignored
            signal.signal(number, leave)


def obeyed() -> set[signal.Signals]:
    """Returns those that are not ignored: SIGHUP is under nohup, SIGINT behind `&` of a script."""
    return {number for number in ENDING if signal.getsignal(number) != signal.SIG_IGN}


@contextmanager
def passed_to(
    handler: Callable[[int, FrameType | None], object], numbers: set[signal.Signals]
) -> Iterator[None]:
    """Calls a handler for those of `numbers` while the block runs.

    Only the main thread gets signals: in another one this does nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        numbers = set()
    before = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield
    finally:
        for number, former in before.items():
            signal.signal(number, former)


@contextmanager
def held(react: Callable[[], object] = lambda: None) -> Iterator[None]:
    """Holds them back until the block has ended; `react` is called at once, and may hasten that.

    A handler that raised would do so wherever Python is, also with a lock or a thread half made.
    """
    pending: list[int] = []

    def hold(number: int, _: object) -> None:
        pending.append(number)
        react()

    try:
        with passed_to(hold, obeyed()):
            yield
    finally:
        if pending:
            signal.raise_signal(pending[0])
