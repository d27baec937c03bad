# SPDX-License-Identifier: BSD-3-Clause
"""Writes codel_newton.csv: Newton steps on the 16-bit reciprocal square root."""

from codel_law import newton


def main() -> None:
    """The table on standard output."""
    print(
        "# CoDel as Linux has it: one Newton step x (3 - count x^2) / 2 on a fraction of 16 bits."
    )
    print("# Source: the points of ns-3's test 3, NewtonStep (codel-queue-disc-test-suite.cc),")
    print("# computed by tests/vectors/codel_newton.py from the formula.")
    print("# Units: inv_sqrt in 2^-16.")
    print("scenario,inv_sqrt,count,inv_sqrt_next")
    for inv_sqrt in (0xFF >> k for k in range(8)):
        for count in (1 << k for k in range(8)):
            print(f"newton_step,{inv_sqrt},{count},{newton(inv_sqrt, count)}")


if __name__ == "__main__":
    main()
