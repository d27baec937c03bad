# SPDX-License-Identifier: BSD-3-Clause
"""Writes red.csv: RED's average queue, from the formulas of Floyd and Jacobson (1993).

Decimal numbers of 50 digits; nothing is shared with the implementation in C.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal, getcontext

WEIGHT = Decimal("0.002")
PACKET_NS = 100_000
PACKETS_MAX = 1 << 18

Row = tuple[int, int, int]  # time, arrivals, then departures


def constant() -> Iterator[Row]:
    """A queue of 50 packets."""
    yield 0, 51, 1
    for i in range(1, 400):
        yield i * PACKET_NS, 1, 1


def idle() -> Iterator[Row]:
    """An average of about 18 packets, and idle times of 0 to 5000 packets."""
    yield 0, 200, 200
    now_ns = 0
    for tenths in (0, 5, 10, 25, 1000, 5555, 50_000):
        now_ns += tenths * PACKET_NS // 10
        yield now_ns, 1, 1
    yield now_ns, 100, 0
    yield now_ns + 50 * PACKET_NS, 0, 100
    yield now_ns + 60 * PACKET_NS, 1, 1


def large() -> Iterator[Row]:
    """A queue that grows to 2^18 packets, and stays."""
    packets = 0
    while packets < PACKETS_MAX:
        more = max(1, packets)
        packets += more
        yield packets, more, 0
    for i in range(1, 40):
        yield packets + i, 1, 1


def averages(rows: Iterator[Row]) -> Iterator[tuple[Row, Decimal]]:
    """The average after each row's arrivals."""
    average, queue, empty_ns = Decimal(0), 0, 0
    for row in rows:
        now_ns, arrivals, departures = row
        for _ in range(arrivals):
            if queue > 0:
                average = (1 - WEIGHT) * average + WEIGHT * queue
            else:
                missed = Decimal(now_ns - empty_ns) / PACKET_NS
                average *= (1 - WEIGHT) ** missed
            queue += 1
        queue -= departures
        if queue == 0:
            empty_ns = now_ns
        yield row, average


def main() -> None:
    """The table on standard output."""
    getcontext().prec = 50
    print("# RED: the average queue length after arrivals.")
    print("# Source: Floyd and Jacobson, Random Early Detection Gateways for Congestion Avoidance,")
    print("# IEEE/ACM Transactions on Networking 1(4), 1993, figure 2; tests/vectors/red.py.")
    print(
        "# Parameters: weight 0.002, thresholds so high that nothing is dropped, and a mean packet"
    )
    print("# takes 100 us to send. At time_ns so many packets arrive one after the other, each")
    print("# averaging the queue that it finds, and then so many leave.")
    print("# Units: ns, packets (rounded from 50 digits to a double).")
    print("scenario,time_ns,arrivals,departures,average_pkts")
    for name, rows in (("constant", constant()), ("idle", idle()), ("large", large())):
        for (now_ns, arrivals, departures), average in averages(rows):
            print(f"{name},{now_ns},{arrivals},{departures},{float(average)!r}")


if __name__ == "__main__":
    main()
