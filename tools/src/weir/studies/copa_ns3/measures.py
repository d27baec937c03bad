# SPDX-License-Identifier: BSD-3-Clause
"""The measures of the claims about Copa on ns-3: shares of two and of three flows."""

from __future__ import annotations

from weir.analysis.folder import Run
from weir.study.measures import WIRE_BITS, acks_median, goodputs
from weir.study.scenario import share_percent

LINK_S_PER_PACKET = WIRE_BITS / 100e6  # of B6's link
standing_pkts = acks_median("obs2", 1e-9 / LINK_S_PER_PACKET)


def copas_in_percent(run: Run) -> float:
    """Returns what the first and the third of three flows have of the goodput together."""
    return 100 - share_percent(1)(run)


def apart(run: Run) -> float:
    """Returns the larger of two flows' goodputs over the smaller."""
    short, long = goodputs(run)
    return float(max(short / long, long / short))
