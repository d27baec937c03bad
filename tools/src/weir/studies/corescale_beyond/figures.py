# SPDX-License-Identifier: BSD-3-Clause
"""The figures beyond CoreScale: shares by round trip, and fairness over time."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from weir.report import theme
from weir.report.figure import Axis, Figure, Mark, Panel, named
from weir.studies.corescale.measures import NAMES
from weir.studies.corescale_beyond import measures
from weir.study.claim import Found
from weir.study.curves import points
from weir.study.measures import after_warmup

PARTS = 20  # of the flows in order of their base RTTs


def draw(found: Found) -> Iterator[Figure]:
    """Yields both figures of the controls whose runs are there."""
    shares: list[Mark] = []
    indices: list[Mark] = []
    for place, (cc, name) in enumerate(NAMES.items()):
        runs = found.runs(f"beyond-{cc}")
        if runs is None:
            continue
        (run,), style = runs, theme.style(cc, name, place)
        records = after_warmup(run, "interval")
        rtts = measures.base_rtts_ms(run)
        delivered = np.bincount(records["flow_id"], records["delivered_bytes"], minlength=rtts.size)
        parts = np.array_split(np.argsort(rtts), min(PARTS, rtts.size))
        fair = delivered.mean()
        by_rtt = [(float(np.median(rtts[p])), float(delivered[p].mean() / fair)) for p in parts]
        shares.append(points(by_rtt, style))
        times, of_time = (one.tolist() for one in measures.index(run))
        indices.append(points(zip(times, of_time, strict=True), style))
    if not shares:
        return
    x, y = Axis("base RTT (ms)", scale="log"), Axis("goodput / mean goodput", scale="log")
    caption = (
        "Mean goodput of each twentieth of the flows, in order of their base RTTs, over that of all"
        " flows."
    )
    yield named("", Figure([Panel(x, y, shares)], height_in=3.0), caption)
    panel = Panel(Axis("time (s)", 0, is_time=True), Axis("Jain's index", 0, 1.03), indices)
    caption = "Jain's index of all flows' goodputs in windows of 10 s, starts included."
    yield named("", Figure([panel], height_in=2.6), caption)
