# SPDX-License-Identifier: BSD-3-Clause
"""Progress at a terminal: bars, and how long the rest takes."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import TaskID

from weir.base import units
from weir.base.terminal import progress

if TYPE_CHECKING:
    from weir.runner.session import Progress

ESTIMATE_S_MIN = 1.0  # of a run, before what is left is estimated


class Bar:
    """The listener for a terminal: a progress bar, messages above it.

    `done` and `whole` are members of its Progress; `text` makes the words beside the bar,
    `rename` what is shown of a message.
    """

    def __init__(
        self,
        console: Console,
        what: str = "running",
        done: str = "virtual_s",
        whole: str = "duration_s",
        text: Callable[[Progress], str] | None = None,
        rename: Callable[[str], str] | None = None,
    ) -> None:
        self.console = console
        self.rename = rename or str
        self.what, self.done, self.whole = what, done, whole
        self.text = text or times
        self.bar = progress(console)
        self.task: TaskID | None = None

    def __enter__(self) -> Bar:
        self.bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(OSError):  # a terminal that is gone
            self.bar.stop()

    def progress(self, now: Progress) -> None:
        """Shows a progress object of a program."""
        whole = getattr(now, self.whole)
        if self.task is None:
            self.task = self.bar.add_task(self.what, total=whole, times="")
        self.bar.update(
            self.task, completed=getattr(now, self.done) or 0, total=whole, times=self.text(now)
        )

    def message(self, line: str) -> None:
        self.console.print(self.rename(line), markup=False, highlight=False, soft_wrap=True)


def left(wall_s: float, done: float, whole: float) -> list[str]:
    """Returns a text on the time that the rest takes at the speed so far, or nothing if unknown."""
    if wall_s < ESTIMATE_S_MIN or not 0 < done < whole:
        return []
    rest_s = math.ceil(wall_s * (whole - done) / done)
    return [f"about {rest_s} s left" if rest_s < 120 else f"about {round(rest_s / 60)} min left"]


class Count:
    """A bar for each of several things that are counted, with an estimate, on a terminal.

    of: what is counted.
    """

    def __init__(self, console: Console, of: str = "records") -> None:
        self.bar = progress(console)
        self.of = of
        self.tasks: dict[str, tuple[TaskID, float]] = {}

    def __enter__(self) -> Count:
        self.bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.bar.stop()

    def update(self, what: str, done: int, whole: int) -> None:
        """Shows how many of a thing's `whole` are done."""
        if what not in self.tasks:
            self.tasks[what] = self.bar.add_task(what, total=whole, times=""), time.monotonic()
        task, started_s = self.tasks[what]
        rest = left(time.monotonic() - started_s, done, whole)
        counted = f"{units.count(done)} of {units.count(whole)} {self.of}"
        self.bar.update(task, completed=done, total=whole, times=", ".join([counted, *rest]))


def times(now: Progress) -> str:
    """Returns a progress object as text."""
    virtual, wall, whole = now.virtual_s or 0, now.wall_s, now.duration_s or 0
    parts = [f"{virtual:.1f} of {whole:.1f} s"]
    if wall > 0:
        parts.append(f"{units.number(virtual / wall, 2)}× real time")
    parts += left(wall, virtual, whole)
    if now.utilisation is not None:
        parts.append(f"{units.percent(now.utilisation, 1)} used")
    return ", ".join(parts)
