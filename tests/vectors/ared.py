# SPDX-License-Identifier: BSD-3-Clause
"""Writes ared.csv: Adaptive RED's max_p, from the rule of Floyd, Gummadi and Shenker (2001).

Exact rational numbers; nothing is shared with the implementation in C.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

MIN, MAX = 5, 15
START = Fraction(105, 1000)
# Averages at successive intervals, in packets.
SCENARIOS = {
    "rise": [20] * 60,
    "fall": [6] * 40,
    "fall_and_rise": [6] * 25 + [20] * 25,
    "inside": [9, 10, 11] * 3,
    "edges": [8, 12] * 10,
    "rise_and_fall": [14] * 50 + [7] * 50,
}


def adapt(averages: list[int]) -> Iterator[Fraction]:
    """max_p after each interval."""
    max_p = START
    for average in averages:
        if average > MIN + Fraction(6, 10) * (MAX - MIN) and max_p <= Fraction(1, 2):
            max_p += min(Fraction(1, 100), max_p / 4)
        elif average < MIN + Fraction(4, 10) * (MAX - MIN) and max_p >= Fraction(1, 100):
            max_p *= Fraction(9, 10)
        yield max_p


def main() -> None:
    """The table on standard output."""
    print("# Adaptive RED: max_p after each interval, given the average queue at its end.")
    print("# Source: Floyd, Gummadi and Shenker, Adaptive RED: An Algorithm for Increasing the")
    print("# Robustness of RED's Active Queue Management, 2001, figure 2; tests/vectors/ared.py.")
    print(
        "# Parameters: min 5, max 15, alpha min(0.01, max_p / 4), beta 0.9; max_p starts at 0.105."
    )
    print("# Units: packets, probabilities in [0, 1] (rounded from exact fractions to a double).")
    print("scenario,interval,average_pkts,max_p")
    for name, averages in SCENARIOS.items():
        for n, (average, max_p) in enumerate(zip(averages, adapt(averages), strict=True), 1):
            print(f"{name},{n},{average},{float(max_p)!r}")


if __name__ == "__main__":
    main()
