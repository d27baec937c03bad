# SPDX-License-Identifier: BSD-3-Clause
"""Writes codel_scenarios.csv: queues of 1000 B packets through CoDel, after ns-3's scenarios.

A model of RFC 8289's pseudocode, with its own queue and both laws; nothing is shared with the
implementation in C.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

from codel_law import INV_SQRT_ONE, TICK_BITS, exact_ns, linux_ticks, newton

MS = 1_000_000
PACKET_BYTES = 1000
MAX_PACKET_BYTES = 1500
RECENT_INTERVALS = 16
EXACT, LINUX = 0, 1
PUT, ECT, TAKE = range(
    3
)  # of an action: how many packets, of which codepoint, or how many dequeues

Action = tuple[int, int, int, int]  # time in ns, then the three


@dataclass
class Codel:
    """RFC 8289, section 5, with the marks that Linux and ns-3 have."""

    law: int
    limit_pkts: int = 500
    target_ns: int = 5 * MS
    interval_ns: int = 100 * MS
    use_ecn: bool = False
    ce_threshold_ns: int = 0

    queue: deque[tuple[int, int]] = field(default_factory=deque)  # arrival, codepoint
    drops: int = 0
    marks: int = 0
    first_above: int | None = None
    dropping: bool = False
    drop_next: int = 0
    count: int = 0
    last_count: int = 0
    inv_sqrt: int = 0

    def clock(self, ns: int) -> int:
        """A time in the units of the law."""
        return ns >> TICK_BITS if self.law == LINUX else ns

    def set_count(self, count: int) -> None:
        """Linux keeps the square root of the last count."""
        self.inv_sqrt = INV_SQRT_ONE if count == 1 else newton(self.inv_sqrt, count)
        self.count = count

    def next(self, time: int) -> int:
        """Section 5.3."""
        if self.law == LINUX:
            return time + linux_ticks(self.clock(self.interval_ns), self.inv_sqrt)
        return time + exact_ns(self.interval_ns, self.count)

    def mark(self, codepoint: int) -> bool:
        """Whether it could be marked instead of dropped."""
        able = self.use_ecn and codepoint > 0
        self.marks += able
        return able

    def do_dequeue(self, now: int) -> tuple[tuple[int, int] | None, bool]:
        """Section 5.5: the packet, and whether it may be dropped."""
        if not self.queue:
            self.first_above = None
            return None, False
        packet = self.queue.popleft()
        sojourn = now - self.clock(packet[0])
        if sojourn < self.clock(self.target_ns) or (
            len(self.queue) * PACKET_BYTES <= MAX_PACKET_BYTES
        ):
            self.first_above = None
            return packet, False
        if self.first_above is None:
            self.first_above = now + self.clock(self.interval_ns)
            return packet, False
        return packet, now > self.first_above if self.law == LINUX else now >= self.first_above

    def dequeue(self, now_ns: int) -> None:
        """Section 5.6."""
        now = self.clock(now_ns)
        packet, may_drop = self.do_dequeue(now)
        marked = False
        if self.dropping:
            if not may_drop:
                self.dropping = False
            while self.dropping and now >= self.drop_next:
                assert packet is not None
                self.set_count(self.count + 1)
                if self.mark(packet[1]):
                    marked = True
                    self.drop_next = self.next(self.drop_next)
                    break
                self.drops += 1
                packet, may_drop = self.do_dequeue(now)
                if may_drop:
                    self.drop_next = self.next(self.drop_next)
                else:
                    self.dropping = False
        elif may_drop:
            assert packet is not None
            marked = self.mark(packet[1])
            if not marked:
                self.drops += 1
                packet, _ = self.do_dequeue(now)
            self.dropping = True
            delta = self.count - self.last_count
            recent = now - self.drop_next < RECENT_INTERVALS * self.clock(self.interval_ns)
            self.set_count(delta if delta > 1 and recent else 1)
            self.last_count = self.count
            self.drop_next = self.next(now)
        late = packet is not None and now_ns - packet[0] > self.ce_threshold_ns > 0
        if packet is not None and late and packet[1] > 0 and not marked:
            self.marks += 1

    def act(self, action: Action) -> None:
        """Packets come, then packets are taken."""
        now_ns, put, codepoint, take = action
        for _ in range(put):
            if len(self.queue) < self.limit_pkts:
                self.queue.append((now_ns, codepoint))
            else:
                self.drops += 1
        for _ in range(take):
            self.dequeue(now_ns)


Scenario = tuple[dict[str, int], list[Action]]
# The times of ns-3's tests 5 and 6: 2 target, 2 interval later, again, and twice that time.
TAKEN: list[Action] = [(t * MS, 0, 0, 1) for t in (10, 210, 210, 420)]
ECN = {"use_ecn": 1}
THRESHOLD = {"use_ecn": 1, "ce_threshold_ns": 2 * MS}
SCENARIOS: dict[str, Scenario] = {
    "1_enqueue_dequeue": (
        {"limit_pkts": 1500, "target_ns": 4 * MS, "interval_ns": 50 * MS},
        [(0, 1, 0, 0)] * 6 + [(0, 0, 0, 1)] * 7,
    ),
    "2_overflow": ({}, [(0, 500, 0, 0), *[(0, 1, 0, 0)] * 3]),
    "5_drop": ({}, [(0, 20, 0, 0), *TAKEN]),
    "6.1_not_ecn_capable": (ECN, [(0, 20, 0, 0), *TAKEN[:2]]),
    "6.2_mark": (ECN, [(0, 20, 2, 0), *TAKEN]),
    "6.3_some_ecn_capable": (THRESHOLD, [(0, 3, 2, 0), (0, 17, 0, 0), *TAKEN]),
    "6.4_ce_threshold": (
        THRESHOLD,
        [(0, 20, 2, 0), *[(t * MS, 0, 0, 1) for t in (1, 3, 10, 210)]],
    ),
    "dropping_is_resumed": (
        {},
        [(0, 40, 0, 0)]
        + [(t * MS, 0, 0, 1) for t in range(10, 500, 10)]
        + [(500 * MS, 40, 0, 0)]
        + [(t * MS, 0, 0, 1) for t in range(520, 1200, 20)],
    ),
}
PARAMETERS = ("limit_pkts", "target_ns", "interval_ns", "use_ecn", "ce_threshold_ns")


def rows() -> Iterator[str]:
    """A line for each action."""
    for name, (parameters, actions) in SCENARIOS.items():
        for law in (EXACT, LINUX):
            codel = Codel(law=law)
            for key, value in parameters.items():
                setattr(codel, key, value)
            for action in actions:
                codel.act(action)
                now_ns, put, codepoint, take = action
                fixed = [int(getattr(codel, key)) for key in PARAMETERS]
                seen = [len(codel.queue), codel.drops, codel.marks]
                title = f"{name}_{'linux' if law == LINUX else 'exact'}"
                numbers = [law, *fixed, now_ns, put, codepoint, take, *seen]
                yield f"{title}," + ",".join(map(str, numbers))


def main() -> None:
    """The table on standard output."""
    print("# CoDel: what is left in the queue, dropped and marked so far, after each action.")
    print("# Source: scenarios 1, 2, 5 and 6 of ns-3's codel-queue-disc-test-suite.cc (3 and 4 are")
    print("# codel_newton.csv and codel_control_law.csv) and one more, played with RFC 8289's")
    print("# pseudocode (sections 5.3 to 5.6), with the marks that Linux has, by")
    print("# tests/vectors/codel_scenarios.py. Law 0: RFC 8289; 1: Linux (codel_law.csv).")
    print("# At time_ns so many packets of 1000 B come, with an ECN codepoint (2: ECT(0)), then so")
    print("# many are taken. A queue of one full frame, 1500 B, or less is never above the target.")
    print("# Units: ns, packets; drops, also those above the limit, and marks since the start.")
    print(
        "scenario,law,limit_pkts,target_ns,interval_ns,use_ecn,ce_threshold_ns,"
        "time_ns,put,codepoint,take,left_pkts,drops,marks"
    )
    for row in rows():
        print(row)


if __name__ == "__main__":
    main()
