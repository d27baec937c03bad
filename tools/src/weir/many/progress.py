# SPDX-License-Identifier: BSD-3-Clause
"""How far a sweep is: a file in its folder while it runs, written by it and read by `weir top`."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from weir.analysis import folder
from weir.base.errors import UserError

FILE = ".progress.json"
LOCK = ".weir-lock"  # held by the batch that writes into a folder: cells.py
WRITE_S = 0.5  # at least, between two writings


class Progress:
    """What became of a sweep's cells until now; the file stays when all have ended."""

    def __init__(self, out: Path, cells: int, here: bool) -> None:
        self.path = out / FILE
        self.cells = cells
        self.here = here
        self.counts: Counter[str] = Counter()
        self.began_s = time.monotonic()
        self.next_s = self.began_s

    @property
    def ended(self) -> int:
        """Cells that are done, were there, or failed."""
        return self.counts.total()

    @property
    def left_ns(self) -> float | None:
        """An estimate; None: none has run yet, or all have."""
        ran = self.ended - self.counts["reused"]
        if not ran or self.ended >= self.cells:
            return None
        return (time.monotonic() - self.began_s) / ran * (self.cells - self.ended) * 1e9

    def add(self, status: str) -> None:
        """A cell ended."""
        self.counts[status] += 1
        if time.monotonic() >= self.next_s or self.ended == self.cells:
            self.write()

    def write(self) -> None:
        """Into the folder; a disk that is full does not end the sweep."""
        self.next_s = time.monotonic() + WRITE_S
        counts = {status: self.counts[status] for status in ("done", "reused", "failed")}
        row = {"cells": self.cells, **counts, "left_ns": self.left_ns, "here": self.here}
        with contextlib.suppress(UserError):
            folder.write_whole(self.path, json.dumps(row))


class Watch:
    """A sweep that runs, by its folder: frames of one row. A context manager."""

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
    ) -> Iterator[dict[str, list[dict[str, Any]]]]:
        """One per interval and one of the end, the first at once, or until the user quits."""
        goes_on = True
        while goes_on:
            goes_on = running(self.out)
            if (found := row(self.out)) is not None:
                yield {"sweeps": [found]}
            if goes_on and quits(interval_s):
                return


def running(out: Path) -> bool:
    """Whether a batch holds the folder's lock."""
    try:
        with (out / LOCK).open() as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except FileNotFoundError:
        return False
    return False


def row(out: Path) -> dict[str, Any] | None:
    """How far the sweep is; None: it has not said so yet."""
    try:
        found = json.loads((out / FILE).read_text())
    except (FileNotFoundError, ValueError):
        return None
    here = found.pop("here")
    with os.scandir(out) as entries:
        partial = sum(e.name.startswith(".") and e.name.endswith(".cell") for e in entries)
    return {"name": str(out), **found, "running": partial if here else None}
