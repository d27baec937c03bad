# SPDX-License-Identifier: BSD-3-Clause
"""Writes fattest_queue.csv: which queue loses packets when the limit of all is exceeded.

A search over all queues, as RFC 8290 has it; nothing is shared with the implementation in C.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

BATCH_PKTS = 64
FRAME_BYTES_MAX = 1518
FLOWS = 12


def arrivals(count: int, favoured: int) -> Iterator[tuple[int, int]]:
    """Flows and sizes; every `favoured`-th packet is flow 0's (Lehmer's generator)."""
    state = 42
    for n in range(count):
        state = state * 48271 % (2**31 - 1)
        flow = 0 if n % favoured == 0 else state % FLOWS
        yield flow, 64 + state // FLOWS % (FRAME_BYTES_MAX - 63)


def fat_in_bytes() -> Iterator[tuple[int, int]]:
    """300 small packets are less than 99 large ones: section 4.1 counts bytes."""
    yield from [(1, 64)] * 300
    yield from [(2, 1500)] * 99
    yield from [(3, 1518), (4, 64)]
    yield from [(1, 1518)] * 50


SCENARIOS: dict[str, tuple[int, list[tuple[int, int]]]] = {
    "bytes_count": (400, list(fat_in_bytes())),
    "one_is_fat": (300, list(arrivals(1500, 2))),
    "all_are_alike": (100, list(arrivals(1500, FLOWS))),
    "a_small_limit": (5, list(arrivals(300, 3))),
}


def rows() -> Iterator[str]:
    """Each arrival, and what it made the fattest queue lose."""
    for name, (limit_pkts, packets) in SCENARIOS.items():
        queues: dict[int, deque[int]] = {}
        for flow, size in packets:
            queues.setdefault(flow, deque()).append(size)
            victim, lost = 0, []
            if sum(map(len, queues.values())) > limit_pkts:
                most = max(sum(queue) for queue in queues.values())
                fattest = [flow for flow, queue in queues.items() if sum(queue) == most]
                assert len(fattest) == 1  # the RFC does not say which of two
                victim = fattest[0]
                half = min((len(queues[victim]) + 1) // 2, BATCH_PKTS)
                lost = [queues[victim].popleft() for _ in range(half)]
            yield f"{name},{limit_pkts},{flow},{size},{victim},{len(lost)},{sum(lost)}"


def main() -> None:
    """The table on standard output."""
    print(
        "# The fattest queue: when a packet exceeds the limit of all queues together, the one with"
    )
    print(f"# the most bytes loses half of its packets, {BATCH_PKTS} at most, from its head.")
    print("# Source: RFC 8290, section 4.1, by a search over all queues;")
    print(
        "# tests/vectors/fattest_queue.py. Each flow has a queue of its own, nothing is dequeued,"
    )
    print("# and no two queues are the fattest at once. A half is rounded up.")
    print("# Units: packets; bytes, FCS included.")
    print("scenario,limit_pkts,flow,size_bytes,victim_flow,dropped_pkts,dropped_bytes")
    for row in rows():
        print(row)


if __name__ == "__main__":
    main()
