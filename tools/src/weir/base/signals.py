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


@contextmanager
def passed_to(handler: Callable[[int, FrameType | None], object]) -> Iterator[None]:
    """Calls a handler for each of them while the block runs, but for SIGHUP under nohup.

    Only the main thread gets signals: in another one this does nothing.
    """
    numbers = set(ENDING)
    if signal.getsignal(signal.SIGHUP) == signal.SIG_IGN:
        numbers.remove(signal.SIGHUP)
    if threading.current_thread() is not threading.main_thread():
        numbers.clear()
    before = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield
    finally:
        for number, former in before.items():
            signal.signal(number, former)


@contextmanager
def held(react: Callable[[], object] = lambda: None) -> Iterator[None]:
    """Delivers them once the block has ended, which `react` may hasten.

    Python raises an exception for a signal wherever it is, with a lock half taken, too.
    """
    pending: list[int] = []

    def hold(number: int, _: object) -> None:
        pending.append(number)
        react()

    try:
        with passed_to(hold):
            yield
    finally:
        if pending:
            signal.raise_signal(pending[0])
