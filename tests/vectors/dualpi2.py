# SPDX-License-Identifier: BSD-3-Clause
"""Writes dualpi2.csv: DualPI2's probabilities after each update, from RFC 9332's formulas.

Exact rational numbers; nothing is shared with the implementation in C.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

MS = 1_000_000
K = 2

# Target in ms, alpha and beta in 1/s.
RFC = (15, Fraction(15, 100), Fraction(3))
# Linux multiplies nanoseconds by 44 and 879, for its alpha of 41/256 and beta of 819/256, and
# divides by 64 * 2^32. It truncates each step to a multiple of 2^-32, which is not done here.
LINUX = (15, Fraction(44 * 10**9, 64 * 2**32), Fraction(879 * 10**9, 64 * 2**32))
# tc: typical_rtt 20ms max_rtt 200ms; typical_rtt 50ms max_rtt 300ms.
RTT_200MS = (20, Fraction(5, 100), Fraction(3, 2))
RTT_300MS = (50, Fraction(1, 18), Fraction(1))

# Gains, and delays at successive updates in ms.
SCENARIOS: dict[str, tuple[tuple[int, Fraction, Fraction], list[int]]] = {
    "constant_20ms": (RFC, [20] * 200),
    "constant_30ms": (RFC, [30] * 200),
    "constant_100ms": (RFC, [100] * 100),
    "below_target": (RFC, [10] * 20),
    "at_target": (RFC, [15] * 20),
    "decay": (RFC, [60] * 60 + [0] * 300),
    "overload": (RFC, [10 * i for i in range(60)] + [600] * 20 + [0] * 200),
    "sawtooth": (RFC, [(7 * i) % 45 for i in range(300)]),
    "linux_20ms": (LINUX, [20] * 100),
    "linux_30ms": (LINUX, [30] * 100),
    "linux_100ms": (LINUX, [100] * 50),
    "max_rtt_200ms": (RTT_200MS, [(11 * i) % 70 for i in range(100)]),
    "max_rtt_300ms": (RTT_300MS, [(23 * i) % 160 for i in range(100)]),
}


def updates(
    gains: tuple[int, Fraction, Fraction], delays_ms: list[int]
) -> Iterator[tuple[int, Fraction, Fraction, Fraction]]:
    """Delay, p', p_C and p_L after each update, while no L4S packet waits as long as the ramp."""
    target_ms, alpha, beta = gains
    base, old_ms = Fraction(0), 0
    for delay_ms in delays_ms:
        base += alpha * Fraction(delay_ms - target_ms, 1000)
        base += beta * Fraction(delay_ms - old_ms, 1000)
        base = min(max(base, Fraction(0)), Fraction(1))
        old_ms = delay_ms
        yield delay_ms * MS, base, base**2, min(K * base, Fraction(1))


def main() -> None:
    """The table on standard output."""
    print(
        "# DualPI2: probabilities after each update, given the delay of the queues at each update."
    )
    print("# Source: RFC 9332, appendix A.1, dualpi2_update; tests/vectors/dualpi2.py.")
    print(
        "# Parameters: alpha, beta and the target are in the rows; k 2. Each scenario starts with"
    )
    print("# probability 0 and delay 0. l4s_probability is that of the coupling, min(k p', 1).")
    print("# Units: 1/s, ns, probabilities in [0, 1] (rounded from exact fractions to a double).")
    print(
        "scenario,update,alpha,beta,target_ns,delay_ns,base_probability,"
        "classic_probability,l4s_probability"
    )
    for name, (gains, delays_ms) in SCENARIOS.items():
        target_ms, alpha, beta = gains
        rows = updates(gains, delays_ms)
        for n, (delay_ns, base, classic, l4s) in enumerate(rows, 1):
            print(
                f"{name},{n},{float(alpha)!r},{float(beta)!r},{target_ms * MS},{delay_ns},"
                f"{float(base)!r},{float(classic)!r},{float(l4s)!r}"
            )


if __name__ == "__main__":
    main()
