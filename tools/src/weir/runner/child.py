# SPDX-License-Identifier: BSD-3-Clause
"""A child process: its start, its lines and its end."""

from __future__ import annotations

import signal
import subprocess
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from os import killpg
from typing import IO, Any, Self

from weir.runner import priority

STOP_S_MAX = 10.0
WAIT_S_MAX = 120.0


class Child:
    """A process in a session of its own, of higher priority unless `first` is False.

    A terminal's Ctrl-C does not reach it. Its lines are kept in `out` and `err`. As a context
    manager it is stopped at the end.
    """

    def __init__(self, argv: Sequence[object], *, first: bool = True, **options: Any) -> None:
        self.argv = [str(arg) for arg in argv]
        self.out: list[str] = []
        self.err: list[str] = []
        start: Callable[..., subprocess.Popen[str]] = priority.start if first else subprocess.Popen
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "errors": "replace"}
        self.process = start(self.argv, start_new_session=True, **pipes | options)
        self._readers = [
            threading.Thread(target=self._read, args=each, daemon=True)
            for each in ((self.process.stdout, self.out.append), (self.process.stderr, self.said))
            if each[0] is not None
        ]
        for reader in self._readers:
            reader.start()

    def _read(self, stream: IO[str], hear: Callable[[str], None]) -> None:
        with stream:
            for line in stream:
                hear(line.rstrip("\n"))
        if stream is self.process.stderr:
            self.closed()

    def said(self, line: str) -> None:
        self.err.append(line)

    def closed(self) -> None:
        """Is called when it has closed standard error."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def running(self) -> bool:
        return self.process.poll() is None

    def send(self, number: int) -> None:
        """Sends a signal, unless it has ended."""
        if self.running:
            with suppress(ProcessLookupError):
                self.process.send_signal(number)

    def wait(self, seconds: float = WAIT_S_MAX) -> int:
        """Returns its exit status when its output is read. TimeoutError: it had to be killed."""
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill()
            said = f"{self.argv} did not end within {seconds} s: {self.err[-5:]}"
            raise TimeoutError(said) from None
        self._join()
        return self.process.returncode

    def stop(self) -> int:
        """Sends SIGINT, kills it after STOP_S_MAX, and returns its exit status."""
        self.send(signal.SIGINT)
        with suppress(TimeoutError):
            self.wait(STOP_S_MAX)
        return self.process.returncode

    def kill(self) -> None:
        """Kills it and what it started in its process group."""
        with suppress(ProcessLookupError):
            killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self._join()

    def _join(self) -> None:
        # What it started may still hold its output.
        for reader in self._readers:
            reader.join(5)
