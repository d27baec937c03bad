# SPDX-License-Identifier: BSD-3-Clause
"""Writes the traces of this folder, and larger ones that are not kept.

Those that configs name are in git: a config runs from a clone as it is, and so do weir-sim's users.

python configs/traces/make.py lte > configs/traces/lte-like.trace
python configs/traces/make.py fast > fast.trace       ten times 100 ms near 10 Gbit/s, in us
python configs/traces/make.py steps > configs/traces/handover.csv
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator

SEED = 1


def lte() -> Iterator[str]:
    """mahimahi, ms: 10 s of a cellular link as Sprout models one (Winstein et al., NSDI 2013, 3.1).

    Packets may leave at the times of a Poisson process whose rate moves as a Brownian motion of
    200 packets/s per root of a second, and sticks at 0 for a while.
    """
    numbers = random.Random(SEED)
    rate, until_ms = 700.0, 10_000
    for ms in range(1, until_ms + 1):
        rate = max(0.0, rate + numbers.gauss(0.0, 200.0 * 0.001**0.5 * 3))
        if rate == 0.0 and numbers.random() < 0.99:
            continue
        threshold, product, packets = 2.718281828 ** (-rate / 1000), numbers.random(), 0
        while product > threshold:
            packets += 1
            product *= numbers.random()
        for _ in range(packets):
            yield str(ms)
    yield str(until_ms)


def fast() -> Iterator[str]:
    """mahimahi, us: 1 s whose 100 ms alternate between 8 and 12 Gbit/s."""
    numbers = random.Random(SEED)
    at_ns = 0.0
    while at_ns < 1e9:
        gap_ns = 1500 * 8 / (8 if int(at_ns / 1e8) % 2 else 12)
        at_ns += gap_ns * (0.5 + numbers.random())
        yield str(min(1_000_000, int(at_ns / 1000)))
    yield "1000000"


def steps() -> Iterator[str]:
    """theaterq: a handover between two cells every 4 s, with an outage and losses between them."""
    yield "KEEP,LATENCY,RATE,LOSS,LIMIT"
    yield "2s,20ms,40Mbit,0,500"
    yield "100ms,20ms,5Mbit,1%,500"
    yield "80ms,35ms,0,0,500"
    yield "1820ms,35ms,15Mbit,0,500"


def main() -> None:
    """The trace whose name is the argument, on standard output."""
    for line in {"lte": lte, "fast": fast, "steps": steps}[sys.argv[1]]():
        print(line)


if __name__ == "__main__":
    main()
