# SPDX-License-Identifier: BSD-3-Clause
"""The runs of a folder by their numbers, read again once a file of theirs was written.

This module imports no library of numbers or figures, as a table of runs is there before those are.
"""

from __future__ import annotations

import contextlib
import os
import threading
from dataclasses import dataclass, field
from pathlib import Path

from weir.analysis import folder, listing
from weir.analysis.listing import Entry
from weir.base.errors import UserError
from weir.base.foreign import Json
from weir.base.page import Column, Table

ROWS_SENT = 200  # at most, in one answer: as many as a page shows at first
Stamp = frozenset[tuple[str, int, int]]  # files: name, when it was written, size in bytes
COLUMNS = (
    Column("began (UTC)", "date"),
    Column("goodput", "goodput_bps"),
    Column("delay", "delay_ns"),
    Column("flows", "flows"),
    Column("verdict"),
    Column("groups"),
    Column("title"),
    Column("tags", lambda one: " ".join(one.tags)),
    Column("note"),
)


@dataclass
class Shelf:
    """The runs of a folder by their numbers, and what was read of them last."""

    top: Path
    paths: list[Path] = field(default_factory=list)
    present: set[Path] = field(default_factory=set)  # when they were last looked for
    entries: dict[Path, tuple[Stamp, Entry]] = field(default_factory=dict)
    reading: threading.Lock = field(default_factory=threading.Lock)

    def find(self) -> None:
        """Looks for runs. Each keeps its number, as a page that is open asks for it by that."""
        numbered = {*self.paths}
        found = list(listing.find_all(self.top))
        self.present = {*found}
        self.paths += [path for path in found if path not in numbered]

    def entry(self, path: Path) -> Entry | None:
        """Returns a run's line, read again if it was written to; None: the run has gone."""
        if path not in self.present:
            return None
        try:
            now = stamp(path)
            then, entry = self.entries.get(path, (None, None))
            if entry is None or then != now or entry.verdict == listing.WRITING:
                entry = listing.read(path)
                self.entries[path] = (now, entry)
        except (UserError, OSError):
            return None
        return entry

    def name(self, path: Path) -> str:
        """Returns how the page calls a run: its path below the folder."""
        if path == self.top:
            return self.top.resolve().name
        return str(path).removeprefix(f"{self.top}/")  # 10,000 relative_to: 0.2 s

    def rows(self, first: int) -> Json:
        """Returns lines from one on, null where a run has gone; the first answer has all names."""
        if first == 0:
            self.find()
        found = [self.entry(path) for path in self.paths[first : first + ROWS_SENT]]
        table = Table(COLUMNS, [one for one in found if one])
        rows = iter(table.rows)
        sent: Json = {"columns": table.columns, "rows": [one and next(rows) for one in found]}
        sent["sorts"] = [one and [one.goodput_bps, one.delay_ns, one.flows] for one in found]
        if first == 0:
            sent["names"] = [
                self.name(path) if path in self.present else None for path in self.paths
            ]
        return sent


def stamp(path: Path) -> Stamp:
    """Returns what changes when a file in a folder is written. UserError: the folder has gone."""
    found = set()
    try:
        with os.scandir(path) as files:
            for file in files:
                with contextlib.suppress(FileNotFoundError):  # it has got its name meanwhile
                    about = file.stat(follow_symlinks=False)
                    found.add((file.name, about.st_mtime_ns, about.st_size))
    except OSError:
        folder.check(path)
        raise
    return frozenset(found)
