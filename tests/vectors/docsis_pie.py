# SPDX-License-Identifier: BSD-3-Clause
"""Writes docsis_pie.csv: DOCSIS-PIE's drop probability after each update, from RFC 8034's formulas.

Exact rational numbers; nothing is shared with the implementation in C.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

MS = 1_000_000
TARGET_NS = 10 * MS
A = Fraction(1, 4)
B = Fraction(5, 2)
# Below a probability the step is divided by.
DIVISORS = [
    (Fraction(1, 10**6), Fraction(2048)),
    (Fraction(1, 10**5), Fraction(512)),
    (Fraction(1, 10**4), Fraction(128)),
    (Fraction(1, 10**3), Fraction(32)),
    (Fraction(1, 10**2), Fraction(8)),
    (Fraction(1, 10), Fraction(2)),
    (Fraction(1), Fraction(1, 2)),
    (Fraction(10), Fraction(1, 8)),
]
LARGEST = Fraction(85, 100) * 1024 / 64
# Delays at successive updates, in ms.
SCENARIOS: dict[str, list[int]] = {
    "constant_15ms": [15] * 200,
    "constant_30ms": [30] * 200,
    "ramp_above_200ms": [250] * 500,
    "decay": [100] * 60 + [0] * 300,
    "below_5ms": [100] * 60 + [4] * 100 + [6] * 100,
    "wind_up": [300] * 400 + list(range(300, 0, -20)) + [0] * 200,
    "sawtooth": [(7 * i) % 45 for i in range(300)],
}


def updates(delays_ms: list[int]) -> Iterator[tuple[int, Fraction]]:
    """Delay and probability after each update, without burst protection."""
    probability, old_ns = Fraction(0), 0
    for delay_ns in (ms * MS for ms in delays_ms):
        p = A * Fraction(delay_ns - TARGET_NS, 10**9) + B * Fraction(delay_ns - old_ns, 10**9)
        p /= next((d for below, d in DIVISORS if probability < below), Fraction(1, 32))
        if probability >= Fraction(1, 10):
            p = min(p, Fraction(2, 100))
        probability += p
        if delay_ns < 5 * MS and old_ns < 5 * MS:
            probability *= Fraction(98, 100)
        elif delay_ns > 200 * MS:
            probability += Fraction(2, 100)
        probability = min(max(probability, Fraction(0)), LARGEST)
        old_ns = delay_ns
        yield delay_ns, probability


def main() -> None:
    """The table on standard output."""
    print("# DOCSIS-PIE: probability after each update, given the queueing delay at each update.")
    print("# Source: RFC 8034, appendix A.2; tests/vectors/docsis_pie.py.")
    print("# Parameters: LATENCY_TARGET 10 ms, A 0.25, B 2.5 and the other constants of A.1.2; no")
    print("# burst protection. Each scenario starts with probability 0 and delay 0.")
    print("# Units: ns, probabilities (rounded from exact fractions to a double).")
    print("scenario,update,delay_ns,probability")
    for name, delays_ms in SCENARIOS.items():
        for n, (delay_ns, probability) in enumerate(updates(delays_ms), 1):
            print(f"{name},{n},{delay_ns},{float(probability)!r}")


if __name__ == "__main__":
    main()
