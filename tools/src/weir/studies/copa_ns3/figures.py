# SPDX-License-Identifier: BSD-3-Clause
"""Figures of the blog of a port of Copa to ns-3."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from weir.studies.copa_ns3.study import B1, B5, beside
from weir.study import curves
from weir.study.claim import Found

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw(found: Found) -> Iterator[tuple[Figure, str]]:
    """The blog's curves: rates and queueing delays over time."""
    shown = (
        (B1, "B1: three Copa flows."),
        (beside("BBR", "default"), "B2: the second flow is BBR."),
        (beside("BBR", "auto"), "B2 with mode switching."),
        (beside("CUBIC", "default"), "B3: the second flow is CUBIC."),
        (beside("CUBIC", "auto"), "B3 with mode switching."),
        (B5, "B5: six Copa flows."),
    )
    for one, title in shown:
        runs = found.runs(one)
        if runs is not None:
            yield curves.rates_and_delay(runs[0]), f"{title} Goodput of each flow, and the queue."
