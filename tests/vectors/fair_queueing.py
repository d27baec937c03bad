# SPDX-License-Identifier: BSD-3-Clause
"""Writes fair_queueing.csv: the order in which backlogged queues are served, and how fair it is.

Models of deficit round robin and of RFC 8290's lists, with a queue per flow; nothing is shared with
the implementation in C.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from itertools import product

DRR, FQ_CODEL = 0, 1
NAMES = {DRR: "drr", FQ_CODEL: "fq_codel"}
FRAME_BYTES_MAX = 1518

Packets = list[tuple[int, int]]  # flow and size, in order of arrival


def sizes(flows: int, each: int) -> Packets:
    """Flow 0 sends the smallest frames, flow 1 the largest, the others any (Lehmer's generator)."""
    state, packets = 4711, []
    for flow in list(range(flows)) * each:
        state = state * 48271 % (2**31 - 1)
        drawn = 64 + state % (FRAME_BYTES_MAX - 63)
        packets.append((flow, {0: 64, 1: FRAME_BYTES_MAX}.get(flow, drawn)))
    return packets


# As in figures 2 and 3 of the paper: four queues, a quantum of 500.
PAPER: Packets = [
    *((0, size) for size in (200, 750, 20)),
    *((1, size) for size in (500, 500)),
    *((2, size) for size in (600, 100, 400)),
    *((3, size) for size in (50, 700, 180)),
]
SCENARIOS: dict[str, tuple[int, Packets]] = {
    "small_quantum": (64, sizes(4, 60)),
    "less_than_a_frame": (300, sizes(4, 60)),
    "paper": (500, PAPER),
    "one_frame": (FRAME_BYTES_MAX, sizes(8, 60)),
    "three_frames": (3 * FRAME_BYTES_MAX, sizes(8, 60)),
}

Queues = dict[int, deque[int]]


def queues_of(packets: Packets) -> Queues:
    """A queue per flow."""
    queues: Queues = {}
    for flow, size in packets:
        queues.setdefault(flow, deque()).append(size)
    return queues


def drr(queues: Queues, quantum: int) -> Iterator[tuple[int, int]]:
    """Shreedhar and Varghese (1995), section 3."""
    active = deque(queues)
    deficit = dict.fromkeys(queues, 0)
    while active:
        flow = active.popleft()
        queue = queues[flow]
        deficit[flow] += quantum
        while queue and queue[0] <= deficit[flow]:
            deficit[flow] -= queue[0]
            yield flow, queue.popleft()
        if queue:
            active.append(flow)


def fq_codel(queues: Queues, quantum: int) -> Iterator[tuple[int, int]]:
    """RFC 8290, sections 4.1 and 4.2, with a CoDel that never drops."""
    new, old = deque(queues), deque[int]()
    credits = dict.fromkeys(queues, quantum)
    while new or old:
        source = new or old
        flow = source[0]
        if credits[flow] <= 0:
            credits[flow] += quantum
            source.popleft()
            old.append(flow)
        elif queues[flow]:
            size = queues[flow].popleft()
            credits[flow] -= size
            yield flow, size
        else:
            source.popleft()
            if source is new:
                old.append(flow)


def rows() -> Iterator[str]:
    """Arrivals, then departures with the largest difference between two queues with a backlog."""
    for (name, (quantum, packets)), kind in product(SCENARIOS.items(), NAMES):
        head = f"{NAMES[kind]}_{name},{kind},{quantum}"
        for flow, size in packets:
            yield f"{head},0,{flow},{size},0"
        queues = queues_of(packets)
        sent = dict.fromkeys(queues, 0)
        worst = 0
        model = drr if kind == DRR else fq_codel
        for flow, size in model(queues, quantum):
            sent[flow] += size
            if all(queues.values()):
                worst = max(worst, max(sent.values()) - min(sent.values()))
            yield f"{head},1,{flow},{size},{worst}"
        assert worst < quantum + FRAME_BYTES_MAX


def main() -> None:
    """The table on standard output."""
    print("# Fair queueing: the order of departures of queues that all have a backlog.")
    print(
        "# Source: discipline 0: Shreedhar and Varghese, Efficient Fair Queuing using Deficit Round"
    )
    print("# Robin, SIGCOMM 1995, section 3; 1: RFC 8290, sections 4.1 and 4.2, where CoDel drops")
    print("# nothing; played by tests/vectors/fair_queueing.py. Each flow has a queue of its own.")
    print(
        "# First all packets arrive (taken 0), then all leave (taken 1). worst_bytes is the largest"
    )
    print("# difference in bytes sent between two queues so far, while all have packets left: less")
    print("# than a quantum and a packet (lemma 2 of the paper).")
    print("# Units: bytes, FCS included.")
    print("scenario,discipline,quantum_bytes,taken,flow,size_bytes,worst_bytes")
    for row in rows():
        print(row)


if __name__ == "__main__":
    main()
