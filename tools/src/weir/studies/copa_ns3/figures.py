# SPDX-License-Identifier: BSD-3-Clause
"""Figures of the blog of a port of Copa to ns-3."""

from __future__ import annotations

from collections.abc import Iterator

from weir.report.figure import Figure, named
from weir.study import curves
from weir.study.claim import Found


def draw(found: Found) -> Iterator[Figure]:
    """Yields each figure whose runs are there, with its caption."""
    shown = (
        ("b1-copa", "B1: three Copa flows."),
        ("b2-default", "B2: the second flow is BBR."),
        ("b2-auto", "B2 with mode switching."),
        ("b3-default", "B3: the second flow is CUBIC."),
        ("b3-auto", "B3 with mode switching."),
        ("b5-copa", "B5: six Copa flows."),
    )
    for one, title in shown:
        runs = found.runs(one)
        if runs is not None:
            caption = f"{title} Above is the goodput of each flow, below the queue."
            yield named("", curves.rates_and_delay(runs[0]), caption)
