# SPDX-License-Identifier: BSD-3-Clause
"""Progress of a batch of cells: a bar on a terminal, and a file in its folder for `weir top`."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from rich.console import Console

from weir.analysis import folder
from weir.base import terminal, units
from weir.base.errors import UserError

FILE = ".progress.json"
LOCK = ".weir-lock"  # held by the batch that writes into a folder: cells.py
WRITE_S = 0.5  # at least, between two writings
STATUSES = ("done", "reused", "failed")


def counted(statuses: Iterable[str]) -> str:
    """Returns the number of cells of each status: 3 cells: 2 done, 1 failed."""
    counts = Counter(statuses)
    each = ", ".join(f"{counts[status]:,} {status}" for status in STATUSES if counts[status])
    return f"{counts.total():,} cells: {each}"


class Progress:
    """Counts the cells of a batch as they end; the file stays when all have ended.

    costs_s says what each of the cells costs [all alike]: what is left is estimated by it. Why a
    cell failed is said above the bar.
    """

    def __init__(
        self,
        out: Path,
        cells: Sequence[str],
        here: bool,
        console: Console | None = None,
        costs_s: Sequence[float] | None = None,
    ) -> None:
        self.path = out / FILE
        self.cells = len(cells)
        self.here = here
        self.costs_s = dict(zip(cells, costs_s or [1.0] * self.cells, strict=True))
        self.counts: Counter[str] = Counter()
        self.left_s = sum(self.costs_s.values())  # costs of cells that have not ended
        self.ran_s = 0.0  # of those that have, and were not reused
        self.began_s = time.monotonic()
        self.next_s = self.began_s
        self.console = console or Console(quiet=True)
        self.bar = terminal.progress(self.console)
        self.task = self.bar.add_task("running", total=self.cells, times=self.text)

    def __enter__(self) -> Progress:
        self.write()
        self.bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.bar.stop()

    @property
    def ended(self) -> int:
        """The number of cells that have ended: done, reused or failed."""
        return self.counts.total()

    @property
    def left_ns(self) -> float | None:
        """The time that is left, estimated; None before a cell has run and when all have ended."""
        if not self.ran_s or self.ended >= self.cells:
            return None
        return (time.monotonic() - self.began_s) / self.ran_s * self.left_s * 1e9

    @property
    def text(self) -> str:
        """The words beside the bar."""
        parts = [f"{self.ended:,} of {self.cells:,} cells"]
        if failed := self.counts["failed"]:
            parts.append(f"{failed:,} failed")
        if (left_ns := self.left_ns) is not None:
            parts.append(f"about {units.time(left_ns)} left")
        return ", ".join(parts)

    def add(self, name: str, status: str, message: str = "") -> None:
        """Counts a cell that has ended."""
        self.counts[status] += 1
        self.left_s -= self.costs_s[name]
        self.ran_s += self.costs_s[name] if status != "reused" else 0.0
        if time.monotonic() >= self.next_s or self.ended == self.cells:
            self.write()
        if status == "failed":
            said = f"weir: {name}: {message}"
            self.console.print(said, markup=False, highlight=False, soft_wrap=True)
        self.bar.update(self.task, completed=self.ended, times=self.text)

    def write(self) -> None:
        """Writes the file; a disk that is full does not end the batch."""
        self.next_s = time.monotonic() + WRITE_S
        counts = {status: self.counts[status] for status in STATUSES}
        row = {"cells": self.cells, **counts, "left_ns": self.left_ns, "here": self.here}
        with contextlib.suppress(UserError):
            folder.write_whole(self.path, json.dumps(row))


Row = dict[str, str | int | float | None]  # of a frame


class Watch:
    """Frames of one row, of the sweep that runs in a folder; a context manager."""

    last: tuple[()] = ()  # it has no counters of its own for Prometheus

    def __init__(self, out: Path) -> None:
        if not out.is_dir():
            raise UserError(f"{out}: no such folder: --sweep wants that of a sweep that runs")
        if not running(out):
            raise UserError(f"{out}: no sweep runs there", 1)
        self.out = out

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def frames(
        self, interval_s: float, quits: Callable[[float], bool]
    ) -> Iterator[dict[str, list[Row]]]:
        """Yields a frame at once, one per interval and one of the end, until the user quits."""
        goes_on = True
        while goes_on:
            goes_on = running(self.out)
            if (found := row(self.out)) is not None:
                yield {"sweeps": [found]}
            if goes_on and quits(interval_s):
                return


def running(out: Path) -> bool:
    """Returns whether a batch holds the folder's lock."""
    try:
        with (out / LOCK).open() as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except FileNotFoundError:
        return False
    return False


def row(out: Path) -> Row | None:
    """Returns how far the sweep is; None before it has said so."""
    try:
        found = json.loads((out / FILE).read_text())
    except (FileNotFoundError, ValueError):
        return None
    here = found.pop("here")
    with os.scandir(out) as entries:
        partial = sum(e.name.startswith(".") and e.name.endswith(".cell") for e in entries)
    return {"name": str(out), **found, "running": partial if here else None}
