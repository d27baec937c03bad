# SPDX-License-Identifier: BSD-3-Clause
"""Losses that come without a queue: a policer's signature.

A link drops when its buffer is full, so that the round trips at a loss are long. A policer has no
buffer. "COPA congestion control for video performance" (Facebook Engineering, 2019) tells the two
by retransmissions against queueing delay, and says that a short buffer may be taken for a policer.
So may random losses, and those of an AQM that keeps the queue short. A run of Weir knows what
dropped its packets; a capture does not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from weir.base import units

if TYPE_CHECKING:
    from weir.analysis.folder import Run

FEWEST = 20  # losses, below which a share of them says little
RATE = 0.001  # of segments lost: fewer cost a flow little, whatever drops them
INFLATED = 1.1  # round trips at losses, over the least: what a tenth of a round trip of buffer adds


@dataclass(frozen=True)
class Lossy:
    """Lost and sent segments of a flow; inflated: its RTT when losses were found over its least."""

    flow_id: int
    lost: int
    sent: int
    inflated: float

    @property
    def without_queue(self) -> bool:
        return self.inflated <= INFLATED


def lossy(run: Run) -> list[Lossy]:
    """Returns flows that lose enough to tell, by intervals; the least RTT is the whole run's.

    Flows of a capture whose losses are mostly before it are left out: the queue is before it, too.

    The round trip at losses is the mean of the intervals in which they were found, each weighted by
    how many: they are found a round trip after the drop, when the queue that dropped still stands.
    """
    records = run.frame("interval")
    if records is None:
        return []
    known = records.filter(pl.col("rtt_samples") > 0)
    least = known.group_by("flow_id").agg(least=pl.col("rtt_mean_ns").min())
    delays, behind = run.frame("delays"), run.frame("losses")
    if delays is not None:
        shortest = delays.filter(pl.col("rtt_samples") > 0).select("flow_id", "rtt_min_ns")
        least = (
            least.join(shortest, "flow_id", "left")
            .with_columns(least=pl.min_horizontal("least", "rtt_min_ns"))
            .select("flow_id", "least")
        )
    if behind is not None:
        before = behind.filter(2 * pl.col("lost_before") > pl.col("lost_segs"))
        least = least.join(before, "flow_id", "anti")
    weight = pl.col("lost_segs").cast(pl.Float64)
    at_losses = (
        known.filter(pl.col("lost_segs") > 0)
        .group_by("flow_id")
        .agg(rtt=(pl.col("rtt_mean_ns") * weight).sum() / weight.sum())
    )
    counted = records.group_by("flow_id").agg(
        lost=pl.col("lost_segs").sum(), sent=pl.col("sent_segs").sum()
    )
    found = counted.join(at_losses, "flow_id").join(least, "flow_id").sort("flow_id")
    return [
        Lossy(row["flow_id"], row["lost"], row["sent"], row["rtt"] / row["least"])
        for row in found.iter_rows(named=True)
        if row["lost"] >= FEWEST and row["lost"] >= RATE * row["sent"] and row["least"] > 0
    ]


def sentences(run: Run) -> list[str]:
    """Returns sentences on which flows lose without a queue, if any does."""
    flows = lossy(run)
    found = [flow for flow in flows if flow.without_queue]
    if not found:
        return []
    lost, sent = sum(flow.lost for flow in found), sum(flow.sent for flow in found)
    which = f"flow {found[0].flow_id}" if len(found) == 1 else f"{len(found)} flows"
    verb = "loses" if len(found) == 1 else "lose"
    return [
        f"{which} of {len(flows)} that lose {verb} without a queue: {units.percent(lost / sent)} of"
        f" {units.count(sent)} segments, found at round trips of"
        f" {units.number(min(flow.inflated for flow in found))} to"
        f" {units.number(max(flow.inflated for flow in found))} times the least. That is what a"
        " policer does; so do random loss, and a queue that is kept below a tenth of a round trip."
    ]
