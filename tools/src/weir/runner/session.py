# SPDX-License-Identifier: BSD-3-Clause
"""The programs of a run while they run: what they say, and how they end."""

from __future__ import annotations

import fcntl
import os
import queue
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Protocol

import msgspec

from weir.base.errors import UserError
from weir.base.signals import ENDING, obeyed, passed_to
from weir.runner import receiver
from weir.runner.child import Child

READY_S_MAX = 60.0
STOP_S_MAX = 20.0
INTERRUPTED = tuple(128 + number for number in ENDING)


class Progress(msgspec.Struct):
    """A line of --progress, of which each program has some of the members."""

    ready: bool | None = None
    virtual_s: float | None = None
    duration_s: float | None = None
    wall_s: float = 0
    utilisation: float | None = None
    read_bytes: float | None = None
    all_bytes: float | None = None  # unknown of a pipe
    packets: int = 0
    connections: int = 0


class Listener(Protocol):
    """A receiver of what the programs print while they run."""

    def progress(self, now: Progress) -> None:
        """Takes a line of --progress."""

    def message(self, line: str) -> None:
        """Takes any other line, which is for the user."""


class Silent:
    """A listener that keeps messages and shows nothing."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def progress(self, now: Progress) -> None:
        """Ignores it."""

    def message(self, line: str) -> None:
        self.lines.append(line)


Inbox = queue.Queue[tuple["Program", str | None]]


class Program(Child):
    """A C program whose lines of standard error go to an inbox."""

    def __init__(self, name: str, argv: Sequence[str], inbox: Inbox) -> None:
        self.name = name
        self.ready = False
        self.eof = False
        self.asked = False
        self._runtime: dict[Path, int] = {}  # its files in DPDK's runtime folder, with their inodes
        self._inbox = inbox
        environment = os.environ | {"WEIR_RUNNER": str(os.getpid())}  # it ends when we do
        live = name not in ("sim", "pcap")
        super().__init__(argv, first=live, stdout=subprocess.DEVNULL, env=environment)

    def said(self, line: str) -> None:
        """Puts a line into the inbox."""
        self._inbox.put((self, line))

    def closed(self) -> None:
        """Puts None into the inbox when the program closed its output."""
        self._inbox.put((self, None))

    def opened(self) -> None:
        """Keeps the paths of its memif sockets and DPDK lock, which stay behind if it is killed."""
        with suppress(OSError):
            names = []
            for descriptor in Path(f"/proc/{self.process.pid}/fd").iterdir():
                with suppress(OSError):  # closed meanwhile
                    names.append(str(descriptor.readlink()))
            listed = Path("/proc/net/unix").read_text(errors="replace").splitlines()
            rows = [row.split(maxsplit=7) for row in listed]
            names += [row[7] for row in rows if f"socket:[{row[6]}]" in names and row[7:]]
            paths = (Path(name) for name in names if name.endswith((".memif", "/weir.lock")))
            self._runtime = {path: path.stat().st_ino for path in paths}

    def remove_left(self) -> None:
        """Removes the sockets and the DPDK folder of a killed program that no other one uses."""
        for path, inode in self._runtime.items():
            with suppress(OSError):
                if path.suffix == ".memif" and path.stat().st_ino == inode:
                    path.unlink()
                elif path.suffix == ".lock":
                    with path.open() as lock:
                        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                        shutil.rmtree(path.parent)

    @property
    def ended_as_asked(self) -> bool:
        """Is true once SIGINT has ended it, also before it catches that."""
        return self.asked and self.process.wait() in (128 + signal.SIGINT, -signal.SIGINT)

    def finish(self) -> None:
        """Sends SIGINT once: a second one would kill it while it writes its run folder."""
        if not self.asked:
            self.asked = True
            self.send(signal.SIGINT)


@dataclass
class Session:
    """The programs of a run, and the signals that were sent to this process."""

    listener: Listener
    children: list[Program] = field(default_factory=list)
    inbox: Inbox = field(default_factory=queue.Queue)
    interrupts: int = 0
    signal: int = 0  # the first one that we were sent

    def start(self, name: str, argv: Sequence[str]) -> Program:
        child = Program(name, argv, self.inbox)
        self.children.append(child)
        return child

    def interrupt(self, number: int, _frame: FrameType | None) -> None:
        """Asks the programs to finish on the first Ctrl-C, and ends them on the third."""
        self.signal = self.signal or number
        self.interrupts += 1
        for child in self.children:
            if self.interrupts < 3:
                child.finish()
            else:
                child.send(signal.SIGKILL)

    def hear(self, timeout_s: float = 0.2) -> None:
        """Waits for a line of a program, and passes it on."""
        try:
            child, line = self.inbox.get(timeout=timeout_s)
        except queue.Empty:
            return
        if line is None:
            child.eof = True
            return
        now = progress_object(line)
        if now is not None and now.ready is not None:
            child.ready = now.ready
            child.opened()
        elif now is not None or line.strip():
            self.pass_on(receiver.said(line) if child.name == receiver.NAME else line, now)

    def pass_on(self, line: str, now: Progress | None) -> None:
        """Gives a line to the listener. If a terminal or pipe is gone, the run goes on unseen."""
        try:
            if now is not None:
                self.listener.progress(now)
            else:
                self.listener.message(from_weir(line))
        except OSError:
            self.listener = Silent()

    def wait_ready(self, child: Program) -> None:
        """Waits until it is ready or has ended; UserError: it is neither in time."""
        deadline = time.monotonic() + READY_S_MAX
        while not child.ready and not child.eof and not self.interrupts:
            self.hear()
            if time.monotonic() > deadline:
                child.send(signal.SIGKILL)
                raise UserError(f"weir-{child.name} was not ready after {READY_S_MAX:.0f} s", 1)

    def wait_any(self) -> Program:
        """Returns the first program to end."""
        while True:
            for child in self.children:
                if child.eof:
                    return child
            self.hear()

    def wait_all(self, seconds: float) -> None:
        """Waits until all that end by themselves have done so, or for so long."""
        deadline = time.monotonic() + seconds
        ending = [child for child in self.children if child.name != receiver.NAME]
        while not all(child.eof for child in ending) and time.monotonic() < deadline:
            self.hear()

    def stop(self, child: Program) -> None:
        """Asks it to end and waits, as it writes its run folder; kills it after STOP_S_MAX."""
        if child.eof:
            return
        child.finish()
        deadline = time.monotonic() + STOP_S_MAX
        while not child.eof and time.monotonic() < deadline:
            self.hear()
        if not child.eof:
            self.pass_on(f"weir-{child.name} did not stop; it was killed", None)
            child.send(signal.SIGKILL)

    def end(self) -> None:
        """Lets those that still run end and write their folders."""
        for child in self.children:
            child.finish()
        for child in self.children:
            self.stop(child)
            if child.process.wait() < 0:
                child.remove_left()

    def status(self, child: Program) -> int:
        """Returns its exit status, once it has ended; a signal as a shell counts it.

        A program that ended because it was asked to has not failed. If it has not failed and a
        signal was sent to this process, the status is that signal's.
        """
        code = child.process.wait()
        if child.ended_as_asked:
            code = 0
        if code == 0 and self.signal:
            return 128 + self.signal
        return code if code >= 0 else 128 - code

    def killed(self) -> dict[str, str]:
        """Returns a sentence for each program that a signal ended."""
        ended = (child for child in self.children if not child.ended_as_asked)
        codes = {child.name: child.process.wait() for child in ended}
        return {
            name: f"weir-{name} was killed ({signal.Signals(-code).name})"
            for name, code in codes.items()
            if code < 0
        }


def end_if_interrupted(status: int) -> None:
    """Ends this program, too, as the signal would have that ended a run early; else returns."""
    if status == 128 + signal.SIGINT:
        raise KeyboardInterrupt
    if status in INTERRUPTED:
        raise SystemExit(status)


@contextmanager
def catching(session: Session) -> Iterator[None]:
    """Passes signals on to the programs, and ends those that still run at the end."""
    with passed_to(session.interrupt, {signal.SIGINT} | obeyed()):  # SIGINT in any case
        try:
            yield
        finally:
            session.end()


def run_one(listener: Listener, name: str, argv: Sequence[str]) -> int:
    """Runs a program to its end and returns its exit status."""
    session = Session(listener)
    with catching(session):
        child = session.start(name, argv)
        session.wait_any()
        for sentence in session.killed().values():
            session.pass_on(sentence, None)
        return session.status(child)


def from_weir(line: str) -> str:
    return re.sub(r"^weir-(sim|pcap): ", "weir: ", line)


def progress_object(line: str) -> Progress | None:
    """Returns a line of --progress; None for anything else."""
    try:
        found = msgspec.json.decode(line, type=Progress)
    except msgspec.MsgspecError:
        return None
    known = (found.ready, found.virtual_s, found.read_bytes)
    return found if any(value is not None for value in known) else None
