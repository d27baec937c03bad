# SPDX-License-Identifier: BSD-3-Clause
"""Writes token_bucket.csv: colors and tokens of the markers of RFC 2697 and RFC 2698.

Fractions; nothing is shared with the implementation in C.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

GREEN, YELLOW, RED = 0, 1, 2
SECOND_NS = 10**9

Packet = tuple[int, int]  # time in ns, bytes


@dataclass
class Single:
    """RFC 2697, color-blind: tokens fill C, and E once C is full."""

    rate_bps: int
    burst: int
    excess: int = 0

    def colors(self, packets: Iterator[Packet]) -> Iterator[tuple[Packet, int, Fraction, Fraction]]:
        """Each packet with its color and the tokens behind it, in bytes."""
        committed, excess = Fraction(self.burst), Fraction(self.excess)
        last_ns = 0
        for now_ns, size in packets:
            both = committed + Fraction(self.rate_bps * (now_ns - last_ns), 8 * SECOND_NS)
            committed = min(both, Fraction(self.burst))
            excess = min(excess + both - committed, Fraction(self.excess))
            last_ns = now_ns
            if committed >= size:
                color, committed = GREEN, committed - size
            elif excess >= size:
                color, excess = YELLOW, excess - size
            else:
                color = RED
            yield (now_ns, size), color, committed, excess


@dataclass
class Two:
    """RFC 2698, color-blind: P and C fill at rates of their own."""

    rate_bps: int
    burst: int
    peak_bps: int
    peak_burst: int

    def colors(self, packets: Iterator[Packet]) -> Iterator[tuple[Packet, int, Fraction, Fraction]]:
        """Each packet with its color and the tokens behind it, in bytes."""
        committed, peak = Fraction(self.burst), Fraction(self.peak_burst)
        last_ns = 0
        for now_ns, size in packets:
            seconds = Fraction(now_ns - last_ns, SECOND_NS)
            committed = min(committed + self.rate_bps * seconds / 8, Fraction(self.burst))
            peak = min(peak + self.peak_bps * seconds / 8, Fraction(self.peak_burst))
            last_ns = now_ns
            if peak < size:
                color = RED
            elif committed < size:
                color, peak = YELLOW, peak - size
            else:
                color, peak, committed = GREEN, peak - size, committed - size
            yield (now_ns, size), color, committed, peak


def at_once() -> Iterator[Packet]:
    """Five packets of 1500 bytes: the burst has tokens for four."""
    for _ in range(5):
        yield 0, 1500


def spaced() -> Iterator[Packet]:
    """1000 bytes each 0.1 s from 0.2 s on, and the last one again 0.1 s later."""
    for i in range(2, 12):
        yield i * SECOND_NS // 10, 1000
    yield 12 * SECOND_NS // 10, 1000


def mixed() -> Iterator[Packet]:
    """Sizes and gaps of a linear congruential generator, with pauses that fill the buckets."""
    state, now_ns = 1, 0
    for i in range(300):
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        gap = (state >> 33) % 3_000_000
        now_ns += gap if i % 50 else 40_000_000 + gap
        yield now_ns, 46 + (state >> 20) % 1455


SCENARIOS = {
    "ns3_burst": (Single(48_000, 6000), at_once),
    "ns3_equal_rate": (Single(80_000, 10_000), spaced),
    "ns3_low_rate": (Single(40_000, 5000), spaced),
    "srtcm": (Single(3_000_001, 4000, 6000), mixed),
    "srtcm_without_excess": (Single(3_000_001, 4000), mixed),
    "trtcm": (Two(2_000_000, 3000, 3_000_000, 4000), mixed),
}


def main() -> None:
    """The table on standard output."""
    print(
        "# Token buckets: the color of each packet (0 green, 1 yellow, 2 red) and the tokens after"
    )
    print("# it: in the committed bucket, and in the excess (srtcm) or the peak bucket (trtcm).")
    print(
        "# Source: RFC 2697, section 3, and RFC 2698, section 3, color-blind, with tokens that come"
    )
    print(
        "# continuously; tests/vectors/token_bucket.py, whose table SCENARIOS has the parameters."
    )
    print(
        "# The scenarios ns3_... are those of ns-3's tbf-queue-disc-test-suite, tests 1 to 3: four"
    )
    print("# packets empty a burst of 6000 B; at 10 kB/s of 10 kB/s all pass; at 5 kB/s the tenth")
    print("# packet finds too few tokens, and enough 0.1 s later.")
    print("# Units: ns, bytes (rounded from a fraction to a double).")
    print("scenario,time_ns,size_bytes,color,committed_bytes,other_bytes")
    for name, (meter, packets) in SCENARIOS.items():
        for (now_ns, size), color, committed, other in meter.colors(packets()):
            print(f"{name},{now_ns},{size},{color},{float(committed)!r},{float(other)!r}")


if __name__ == "__main__":
    main()
