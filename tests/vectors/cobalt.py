# SPDX-License-Identifier: BSD-3-Clause
"""Writes cobalt.csv: COBALT's state after each packet or overflow, from its published description.

Integers only: floor(interval / sqrt(n)) = isqrt(interval^2 / n); nothing is shared with the
implementation in C.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import isqrt

MS = 1_000_000
TARGET_NS = 5 * MS
INTERVAL_NS = 100 * MS
ONE = 4096  # BLUE's probability: increment 1/256, decrement 1/4096
PACKET, LAST, OVERFLOW = range(3)

Event = tuple[int, int, int]  # what, when, and the packet's sojourn; ns
Row = tuple[bool, int, int, int]  # signal, count, drop_next, BLUE's probability


def spacing_ns(count: int) -> int:
    """The time until the next signal."""
    return isqrt(INTERVAL_NS**2 // max(count, 1))


class Cobalt:
    """One queue. It is empty between a LAST and the arrival of the next packet."""

    def __init__(self) -> None:
        self.dropping = False
        self.count = self.drop_next_ns = 0
        self.blue = self.blue_free_ns = 0  # when BLUE may step again
        self.emptied_ns: int | None = None

    def decay(self, now_ns: int) -> None:
        """The count falls at the times at which signals would have come."""
        while self.count > 0 and self.drop_next_ns <= now_ns:
            self.count -= 1
            self.drop_next_ns += spacing_ns(self.count)

    def arrived(self, now_ns: int) -> None:
        """The packet that ends an idle time, of which BLUE uses each target once."""
        if self.emptied_ns is None:
            return
        self.dropping = False
        self.decay(now_ns)
        step_ns = max(self.emptied_ns, self.blue_free_ns)
        while self.blue > 0 and step_ns <= now_ns:
            self.blue -= 1
            step_ns += TARGET_NS
            self.blue_free_ns = step_ns
        self.emptied_ns = None

    def overflow(self, now_ns: int) -> None:
        """The limit drops a packet."""
        if now_ns >= self.blue_free_ns:
            self.blue = min(self.blue + ONE // 256, ONE)
            self.blue_free_ns = now_ns + TARGET_NS
        self.dropping, self.drop_next_ns, self.count = True, now_ns, max(self.count, 1)

    def packet(self, now_ns: int, sojourn_ns: int) -> bool:
        """Whether CoDel's part signals."""
        due = self.count > 0 and self.drop_next_ns <= now_ns
        if sojourn_ns <= TARGET_NS:
            self.dropping = False
            self.decay(now_ns)
            return False
        if not self.dropping:
            self.dropping, self.count = True, max(self.count, 1)
            self.drop_next_ns = now_ns + spacing_ns(self.count)
        if due:
            self.count += 1
            self.drop_next_ns += spacing_ns(self.count)
        return due


def play(events: list[Event]) -> Iterator[Row]:
    """The state after each event."""
    c = Cobalt()
    for what, now_ns, sojourn_ns in events:
        c.arrived(now_ns - sojourn_ns)
        signal = False
        if what == OVERFLOW:
            c.overflow(now_ns)
        else:
            signal = c.packet(now_ns, sojourn_ns)
        if what == LAST and (c.count > 0 or c.blue > 0):
            c.emptied_ns = now_ns
        yield signal, c.count, c.drop_next_ns, c.blue


def packets(start_ms: int, n: int, sojourn_ms: int, step_ms: int = 1) -> list[Event]:
    """Packets that leave at a steady pace after one sojourn."""
    return [(PACKET, (start_ms + step_ms * i) * MS, sojourn_ms * MS) for i in range(n)]


def overflows(start_ms: int, n: int, step_ms: int) -> list[Event]:
    """Packets that do not fit; the oldest packet in the queue arrived 4 ms before each."""
    return [(OVERFLOW, (start_ms + step_ms * i) * MS, 4 * MS) for i in range(n)]


def idle(start_ms: int, gaps_ms: list[int]) -> list[Event]:
    """Lone packets that leave as they arrive, each after an idle time."""
    times = [start_ms + sum(gaps_ms[: i + 1]) for i in range(len(gaps_ms))]
    return [(LAST, ms * MS, 0) for ms in times]


SCENARIOS: dict[str, list[Event]] = {
    "persistent": packets(1000, 1500, 20, 2),
    "at_target": packets(1000, 60, 5, 2),
    "short_relief": packets(1000, 300, 20, 5) + packets(2500, 12, 2, 5) + packets(2560, 200, 20, 3),
    "long_relief": packets(1000, 200, 20, 5) + packets(2000, 300, 2, 5) + packets(3500, 200, 20, 3),
    "sawtooth": [
        event
        for start_ms in range(1000, 4600, 300)
        for event in packets(start_ms, 50, 9, 4) + packets(start_ms + 200, 25, 1, 4)
    ],
    "idle": [*packets(1000, 500, 20, 2), (LAST, 2000 * MS, 20 * MS), *packets(2530, 200, 20, 2)],
    "overflow": packets(1000, 50, 3) + overflows(1050, 200, 1) + packets(1250, 300, 6),
    "blue_saturates": overflows(1000, 300, 5),
    "blue_decays": [
        *overflows(1000, 3, 5),
        (LAST, 1020 * MS, 4 * MS),
        *idle(1020, [1, 1, 3, 5, 4, 2, 100, 4, 6, 40, 1000]),
    ],
}


def main() -> None:
    """The table on standard output."""
    print("# COBALT: state of a queue after each event. Events: 0 a packet leaves and others wait,")
    print("# 1 the last packet leaves, 2 the limit drops a packet (sojourn: the oldest one's age).")
    print("# Source: Palmei and others, LANMAN 2019; Piece of CAKE, LANMAN 2018; constants of")
    print(
        "# Linux 4.19; tests/vectors/cobalt.py. Exact 1/sqrt(count), intervals rounded down to ns."
    )
    print("# Parameters: target 5 ms, interval 100 ms, BLUE + 1/256, - 1/4096, once per target.")
    print("# signal: CoDel's part drops or marks the packet; a drop as far as time is concerned.")
    print(
        "# Units: ns; blue in 1/4096. A queue that has emptied decays when its next packet leaves."
    )
    print("scenario,step,event,now_ns,sojourn_ns,signal,count,drop_next_ns,blue")
    for name, events in SCENARIOS.items():
        rows = zip(events, play(events), strict=True)
        for n, ((what, now_ns, sojourn_ns), row) in enumerate(rows, 1):
            signal, count, drop_next_ns, blue = row
            print(
                f"{name},{n},{what},{now_ns},{sojourn_ns},{signal:d},{count},{drop_next_ns},{blue}"
            )


if __name__ == "__main__":
    main()
