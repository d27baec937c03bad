# SPDX-License-Identifier: BSD-3-Clause
"""The trials of the study of Copa, and what its measures have in common."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from weir.study.claim import Trial, trial_of
from weir.study.measures import (
    queue_pkts,
)

if TYPE_CHECKING:
    from weir.analysis.folder import Run


OURS = "our own band"
FORMULA = "our own band: packets are whole, and RTTstanding lags by half a round trip"
RATE, CC = "paths.forward.link.rate", "flows.0.cc"
LINUX = ("flows.0.host=linux", "flows.0.ack_every=cc")
trial = partial(trial_of, Path(__file__).parent)


def steady(flows: int) -> Trial:
    """n flows of delta 0.5."""
    return trial(f"c1-{flows}", f"flows.0.count={flows}")


def per_flow(run: Run) -> float:
    """Packets of queue for each flow."""
    return float(queue_pkts(run) / sum(group.flows for group in run.summary.groups))
