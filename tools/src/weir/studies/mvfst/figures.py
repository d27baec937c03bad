# SPDX-License-Identifier: BSD-3-Clause
"""The post's figures: retransmissions against queueing delay, and percentiles over the users."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from matplotlib.figure import Figure

from weir.report import axes, theme
from weir.studies.mvfst import measures
from weir.study.claim import Found
from weir.study.measures import only_queue_ms, rtx_per_acked

CONTROLS = ("cubic", "bbr", "copa")
USERS = 39  # with each control
PERCENTS = np.arange(1, 100)


def draw(found: Found) -> Iterator[tuple[Figure, str]]:
    """Draws each figure whose runs are there, with its caption."""
    if figure := signatures(found):
        yield (
            figure,
            "Retransmissions against queueing delay. One flow behind a policer, and in front of a"
            " link of the same rate with 50 and 200 ms of buffer.",
        )
    if figure := percentiles(found):
        yield (
            figure,
            "Percentiles over the population. Round trips of the transport, times of the video's"
            " segments, and retransmissions of users.",
        )


def signatures(found: Found) -> Figure | None:
    """Draws retransmissions over delay, of F2."""
    figure, (axis,) = axes.subplots(1)
    for cc in ("cubic", "copa"):
        style = theme.style(cc)
        for where, marker in zip(("policer", "tail-200ms", "tail-50ms"), "os^", strict=True):
            runs = found.runs(f"f2-{where}-{cc}")
            if runs is not None:
                axis.plot(
                    only_queue_ms(runs[0]),
                    rtx_per_acked(runs[0]),
                    marker,
                    color=style.colour,
                    label=f"{style.label}, {where.replace('-', ' ')}",
                )
    if not axis.lines:
        return None
    axis.set(xlabel="mean time in the queue (ms)", ylabel="sent again per acknowledged byte")
    axis.set_yscale("symlog", linthresh=1e-3)
    axes.legend(figure)
    return figure


def percentiles(found: Found) -> Figure | None:
    """Draws the rows of the A/B table as curves."""
    figure, columns = axes.subplots(3)
    what = (
        (measures.rtts_ms, "round trip (ms)", "log"),
        (measures.segment_ms, "time of a segment (ms)", "log"),
        (measures.overhead, "sent again per acknowledged", "symlog"),
    )
    for cc in CONTROLS:
        runs = found.runs(f"user-{cc}-*") or []
        if len(runs) < USERS:
            continue
        style = theme.style(cc)
        for axis, (samples, _, _) in zip(columns, what, strict=True):
            values = [measures.over_all(runs, samples, float(p)) for p in PERCENTS]
            axis.plot(PERCENTS, values, color=style.colour, ls=style.dash, label=style.label)
    if not columns[0].lines:
        return None
    for axis, (_, label, scale) in zip(columns, what, strict=True):
        axis.set_yscale(scale, **({"linthresh": 1e-3} if scale == "symlog" else {}))
        axis.set(xlabel="percentile", title=label)
    axes.legend(figure)
    return figure
