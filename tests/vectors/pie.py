# SPDX-License-Identifier: BSD-3-Clause
"""Writes pie.csv: PIE's drop probability after each update, from RFC 8033's formulas.

Exact rational numbers; nothing is shared with the implementation in C.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

MS = 1_000_000
TARGET_NS = 15 * MS
UPDATE_NS = 15 * MS
MAX_BURST_NS = 150 * MS
ALPHA = Fraction(1, 8)
BETA = Fraction(5, 4)
DIVISORS = [(-6, 2048), (-5, 512), (-4, 128), (-3, 32), (-2, 8), (-1, 2)]  # below 10^x

# Delays at successive updates, in ms.
SCENARIOS: dict[str, list[int]] = {
    "constant_20ms": [20] * 200,
    "constant_30ms": [30] * 200,
    "constant_100ms": [100] * 200,
    "below_target": [10] * 20,
    "burst_allowance": [60] * 12 + [0] * 30 + [5] * 3 + [60] * 12,
    "cap": [100] * 60 + [400] * 20,
    "decay": [200] * 60 + [0] * 300,
    "half_target": [200] * 60 + [7] * 100 + [8] * 100,
    "wind_up": [300] * 400 + list(range(300, 0, -20)) + [0] * 400,
    "sawtooth": [(7 * i) % 45 for i in range(300)],
}


def updates(delays_ms: list[int]) -> Iterator[tuple[int, Fraction, int]]:
    """Delay, probability and burst allowance after each update.

    Before an update with a delay one packet has arrived at an empty queue, so long ago; without a
    delay none has.
    """
    probability, burst_ns, old_ns = Fraction(0), 0, 0
    for delay_ns in (ms * MS for ms in delays_ms):
        if delay_ns > 0 and probability == 0 and 2 * old_ns < TARGET_NS:
            burst_ns = MAX_BURST_NS  # section 4.4
        above = Fraction(delay_ns - TARGET_NS, 10**9)
        rise = Fraction(delay_ns - old_ns, 10**9)
        step = ALPHA * above + BETA * rise
        step /= next((d for x, d in DIVISORS if probability < Fraction(10) ** x), 1)  # 4.2
        if probability >= Fraction(1, 10):
            step = min(step, Fraction(2, 100))  # 5.5
        probability += step
        if delay_ns == 0 and old_ns == 0:
            probability *= Fraction(98, 100)  # 4.2
        probability = min(max(probability, Fraction(0)), Fraction(1))
        burst_ns = max(0, burst_ns - UPDATE_NS)
        old_ns = delay_ns
        yield delay_ns, probability, burst_ns


def main() -> None:
    """The table on standard output."""
    print("# PIE: probability after each update, given the queueing delay at each update.")
    print("# Source: RFC 8033, sections 4.2, 4.4 and 5.5; tests/vectors/pie.py.")
    print("# Parameters: QDELAY_REF 15 ms, T_UPDATE 15 ms, MAX_BURST 150 ms, alpha 1/8 1/s,")
    print("# beta 5/4 1/s. Each scenario starts with probability 0, delay 0 and no allowance.")
    print("# Before an update with a delay > 0 one packet has arrived at an empty queue.")
    print("# Units: ns, probabilities in [0, 1] (rounded from exact fractions to a double).")
    print("scenario,update,delay_ns,probability,burst_allowance_ns")
    for name, delays_ms in SCENARIOS.items():
        for n, (delay_ns, probability, burst_ns) in enumerate(updates(delays_ms), 1):
            print(f"{name},{n},{delay_ns},{float(probability)!r},{burst_ns}")


if __name__ == "__main__":
    main()
