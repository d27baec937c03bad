# SPDX-License-Identifier: BSD-3-Clause
"""Writes codel_control_law.csv: when the next drop is due, after a time."""

from codel_law import INTERVAL_NS, TICK_BITS, linux_ticks

NS_PER_MS = 1_000_000


def main() -> None:
    """The table on standard output."""
    print("# CoDel as Linux has it: the time of the next drop, time + interval * inv_sqrt.")
    print("# Source: the points of ns-3's test 4, ControlLaw (codel-queue-disc-test-suite.cc),")
    print("# computed by tests/vectors/codel_control_law.py from the formula.")
    print("# Parameters: interval 100 ms. Units: inv_sqrt in 2^-16, times in ticks of 1024 ns.")
    print("scenario,time_ticks,inv_sqrt,next_ticks")
    for ms in range(0, 20_001, 100):
        ticks = ms * NS_PER_MS >> TICK_BITS
        for inv_sqrt in (0xFF >> k for k in range(8)):
            due = ticks + linux_ticks(INTERVAL_NS >> TICK_BITS, inv_sqrt)
            print(f"control_law,{ticks},{inv_sqrt},{due}")


if __name__ == "__main__":
    main()
