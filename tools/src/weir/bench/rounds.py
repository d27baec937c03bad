# SPDX-License-Identifier: BSD-3-Clause
"""The rounds in which benchmarks measure all programs one after the other."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from rich.console import Console

from weir.base import units


def rounds(
    repeat: int, screen: Console, clock_s: Callable[[], float] = time.monotonic
) -> Iterator[int]:
    """Yields numbers from 1; behind each round it prints how long the rest will take.

    Every round measures the same, so that those before are the estimate.
    """
    began_s = clock_s()
    for number in range(1, repeat + 1):
        yield number
        if number < repeat:
            left_s = (clock_s() - began_s) / number * (repeat - number)
            screen.print(f"about {units.time(left_s * 1e9)} left")
