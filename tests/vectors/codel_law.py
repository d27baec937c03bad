# SPDX-License-Identifier: BSD-3-Clause
"""Writes codel_law.csv: the time from each drop to the next, for counts of 1 to 1000.

Integers; nothing is shared with the implementation in C.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal, getcontext
from math import isqrt

INTERVAL_NS = 100_000_000
TICK_BITS = 10  # Linux's clock counts 1024 ns
COUNTS = 1000
INV_SQRT_BITS = 16
INV_SQRT_ONE = 2**INV_SQRT_BITS - 1  # of count 1


def exact_ns(interval_ns: int, count: int) -> int:
    """RFC 8289: interval / sqrt(count), rounded down."""
    return isqrt(interval_ns * interval_ns // count)


def newton(inv_sqrt: int, count: int) -> int:
    """Linux: one step x (3 - count x^2) / 2 from x, on fractions of 16, 32 and 64 bits."""
    x = inv_sqrt << (32 - INV_SQRT_BITS)
    square = x * x >> 32
    three_less = ((3 << 32) - count * square) % 2**64
    return ((three_less >> 2) * x % 2**64 >> 31) % 2**32 >> (32 - INV_SQRT_BITS)


def linux_ticks(interval_ticks: int, inv_sqrt: int) -> int:
    """Linux: interval times the fraction of 16 bits."""
    return interval_ticks * (inv_sqrt << (32 - INV_SQRT_BITS)) >> 32


def exact() -> Iterator[tuple[int, str, int, str]]:
    """Count, 1/sqrt(count), nanoseconds to the next drop, and since the first."""
    since = Decimal(0)
    for count in range(1, COUNTS + 1):
        since += INTERVAL_NS / Decimal(count).sqrt()
        inverse = float(1 / Decimal(count).sqrt())
        yield count, repr(inverse), exact_ns(INTERVAL_NS, count), repr(float(since))


def linux() -> Iterator[tuple[int, int, int, int]]:
    """The same in Linux's units: 2^-16, and ticks."""
    inv_sqrt, since = INV_SQRT_ONE, 0
    for count in range(1, COUNTS + 1):
        if count > 1:
            inv_sqrt = newton(inv_sqrt, count)
        ticks = linux_ticks(INTERVAL_NS >> TICK_BITS, inv_sqrt)
        since += ticks
        yield count, inv_sqrt, ticks, since


def main() -> None:
    """The table on standard output."""
    getcontext().prec = 50
    print("# CoDel's control law: the time from the count-th drop of a persistent overload to the")
    print(
        "# next one. Source: exact: RFC 8289, section 5.3, interval / sqrt(count). linux: the Linux"
    )
    print("# kernel's codel (Dumazet, 2012): a clock of 1024 ns, and one Newton step per drop on a")
    print("# reciprocal square root of 16 bits that begins at 65535; tests/vectors/codel_law.py.")
    print("# Parameters: interval 100 ms, 97656 ticks of 1024 ns.")
    print("# Units: exact: inv_sqrt as a ratio, spacing in ns, rounded down, since_first in ns,")
    print("# rounded from 50 digits to a double. linux: inv_sqrt in 2^-16, the others in ticks.")
    print("scenario,count,inv_sqrt,spacing,since_first")
    for row in exact():
        print("exact," + ",".join(map(str, row)))
    for row in linux():
        print("linux," + ",".join(map(str, row)))


if __name__ == "__main__":
    main()
