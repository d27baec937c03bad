# SPDX-License-Identifier: BSD-3-Clause
"""The rounds in which benchmarks measure all programs one after the other, and their results."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import msgspec
from rich.console import Console

from weir.base import units
from weir.base.page import Status, Table

QUIET = 0.95  # a core's share below which the wall clock tells of others


@dataclass(frozen=True)
class Rounds:
    """The rounds of a benchmark, and the screen on which it prints how far it is."""

    repeat: int
    screen: Console
    alone: bool = False  # without the programs that Weir is compared with
    clock_s: Callable[[], float] = time.monotonic

    def __iter__(self) -> Iterator[int]:
        """Yields numbers from 1; behind each round it prints how long the rest will take.

        Every round measures the same, so that those before are the estimate.
        """
        began_s = self.clock_s()
        for number in range(1, self.repeat + 1):
            yield number
            if number < self.repeat:
                left_s = (self.clock_s() - began_s) / number * (self.repeat - number)
                self.screen.print(f"about {units.time(left_s * 1e9)} left")

    def say(self, number: int, text: str) -> None:
        self.screen.print(f"round {number} of {self.repeat}, {text}", soft_wrap=True)


class Result(msgspec.Struct):
    """The result of a benchmark, whose fields are its JSON."""

    @property
    def failed(self) -> bool:
        """True if Weir itself could not be measured somewhere."""
        return False

    def medians(self) -> dict[str, float]:
        """Returns nanoseconds by row, of which less is better."""
        raise NotImplementedError

    def json(self) -> str:
        return json.dumps(msgspec.to_builtins(self), indent=1)

    def parts(self) -> Iterator[Table | Status | str]:
        """Yields tables, and what has to be known to read them."""
        raise NotImplementedError


def middle(values: Sequence[float]) -> float | None:
    return median(values) if values else None


def half_spread(least: float, most: float, of: float) -> str:
    """Returns half the difference of two values in percent of a third."""
    return units.percent((most - least) / 2 / of, 0)


def machine() -> str:
    """Returns the processor's name."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return f"{names[0] if names else 'unknown'}, {os.cpu_count()} cores"


def busy(share: float | None, what: str, so: str = "") -> Iterator[Status]:
    """Yields a warning if programs got less than a core; None: it is not known."""
    if share is not None and share < QUIET:
        got = units.percent(share, 0)
        yield Status("warn", f"the machine was busy: {what} got only {got} of a core{so}")
