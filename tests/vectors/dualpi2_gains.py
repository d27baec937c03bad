# SPDX-License-Identifier: BSD-3-Clause
"""Writes dualpi2_gains.csv: DualPI2's update time and gains, from RFC 9332's formulas.

Exact rational numbers; nothing is shared with the implementation in C.
"""

from __future__ import annotations

from fractions import Fraction

MS = 1_000_000
# The largest RTT and the target, which is a typical RTT, in ms.
SCENARIOS = {
    "rfc_9332": (100, 15),
    "tc_200ms": (200, 20),
    "tc_300ms": (300, 50),
    "short": (9, 5),
    "satellite": (1200, 15),
}


def main() -> None:
    """The table on standard output."""
    print("# DualPI2: time between updates and gains, given the largest RTT and the target.")
    print("# Source: RFC 9332, appendix A.1, dualpi2_params_init; tests/vectors/dualpi2_gains.py.")
    print("# iproute2 computes them likewise from max_rtt and typical_rtt, in multiples of 1/256.")
    print("# Units: ns, 1/s (rounded from exact fractions to a double).")
    print("scenario,max_rtt_ns,target_ns,update_ns,alpha,beta")
    for name, (max_ms, target_ms) in SCENARIOS.items():
        update_ms = min(Fraction(target_ms), Fraction(max_ms, 3))
        largest_s = Fraction(max_ms, 1000)
        alpha = Fraction(1, 10) * update_ms / 1000 / largest_s**2
        beta = Fraction(3, 10) / largest_s
        update_ns = int(update_ms * MS)
        print(f"{name},{max_ms * MS},{target_ms * MS},{update_ns},{float(alpha)!r},{float(beta)!r}")


if __name__ == "__main__":
    main()
