# SPDX-License-Identifier: BSD-3-Clause
"""Trend of Jain's index over the length of a run, and the length that reaches 0.99.

Flows whose shares are alike in the long run, and independent after a while, have 1 - J = a / T.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from weir.analysis.folder import Run
from weir.base import units
from weir.report import theme
from weir.report.figure import LEVEL, Axis, Figure, Floats, Line, Mark, Panel, Rule, floats
from weir.studies.corescale import measures as corescale
from weir.study.claim import Found
from weir.study.measures import after_warmup

ASKED = 0.99  # of the study, for NewReno and CUBIC
FITTED_FROM = 4  # the first quarter of a run is not fitted
LONGEST_S = 10_800.0  # the study's


def missing(run: Run) -> tuple[Floats, Floats]:
    """Returns times in s since the warm-up, and 1 - J of all flows' goodputs up to each."""
    records = after_warmup(run, "interval")
    times, at = np.unique(records["ts_ns"], return_inverse=True)
    flows, flow = np.unique(records["flow_id"], return_inverse=True)
    each = np.zeros((len(times), len(flows)))
    np.add.at(each, (at, flow), records["delivered_bytes"])
    sums = each.cumsum(axis=0)
    jain = sums.sum(axis=1) ** 2 / (len(flows) * (sums**2).sum(axis=1))
    return floats(times / 1e9 - units.measured(run.summary.warmup_s)), floats(1 - jain)


def fit(time_s: Floats, left: Floats) -> float:
    """Returns a of 1 - J = a / T, in s: the mean of T (1 - J) over the last three quarters."""
    own = time_s >= time_s[-1] / FITTED_FROM
    return float(np.mean(time_s[own] * left[own]))


def said(name: str, a_s: float, run: Run) -> str:
    """Says when the trend reaches what is asked for, and what that would cost."""
    need_s = a_s / (1 - ASKED)
    text = f"{name}: {a_s:.3g} s / T, {ASKED} at {units.time(need_s * 1e9)}"
    measured = run.summary.measured
    if measured is None or not measured.cpu_s or not measured.virtual_s:
        return text
    cost_s = need_s * measured.cpu_s / measured.virtual_s
    return f"{text} ({units.time(cost_s * 1e9)} of one core)"


def figure(found: Found) -> Figure | None:
    """Shows 1 - J over the measured time of NewReno's and CUBIC's cells, and their trends."""
    marks: list[Mark] = []
    for cc in ("newreno", "cubic"):
        for flows in corescale.FLOWS:
            runs = found.runs(corescale.of_figure_4(cc, flows))
            if runs is None:
                continue
            time_s, left = missing(runs[0])
            a_s = fit(time_s, left)
            color = theme.CYCLE[len(marks) // 2 % len(theme.CYCLE)]
            name = f"{corescale.NAMES[cc]}, {flows:,} flows"
            ends = floats([time_s[-1] / FITTED_FROM, LONGEST_S])
            marks.append(Line(time_s, left, theme.Style(name, color, "")))
            marks.append(
                Line(ends, a_s / ends, theme.Style(said(name, a_s, runs[0]), color, "", ":"))
            )
    if not marks:
        return None
    marks.append(Rule(1 - ASKED, replace(LEVEL, label=f"J = {ASKED}")))
    panel = Panel(Axis("measured time (s)", scale="log"), Axis("1 - J", scale="log"), marks)
    return Figure([panel], height_in=3.2)
