# SPDX-License-Identifier: BSD-3-Clause
"""The measures of claims about controls and disciplines that no other study has."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from weir.analysis.folder import Run
from weir.base import units
from weir.studies.lola.measures import balanced_s, peak_above_ms
from weir.study.measures import (
    SEGMENT_BITS,
    after_warmup,
    goodputs,
    jain,
    of_kind,
    of_run,
    percentile,
    rtt_trough_ms,
    within,
)

__all__ = ("balanced_s", "peak_above_ms")  # which study.yaml names
COMPETITIVE = 2  # MODE_COMPETITIVE of sender/cc/copa.c


def fair_of_means(*runs: Run) -> float:
    """Returns Jain's index of the groups' mean goodputs."""
    return jain(np.mean([goodputs(run) for run in runs], axis=0))


def signalled_percent(run: Run) -> float:
    """Returns the packets that the link dropped or marked, in percent of those that left it."""
    link = run.summary.links["forward"]
    return 100 * (link.drops + link.marks) / link.out_pkts


def resent_percent(run: Run) -> float:
    """Returns the first group's retransmissions, in percent of the segments that it sent."""
    group = run.summary.groups[0]
    return float(100 * units.measured(group.retransmits) / group.sent_segs)


def resent_of_drops(run: Run) -> float:
    return float(
        units.measured(run.summary.groups[0].retransmits) / run.summary.links["forward"].drops
    )


def reduced_percent(run: Run) -> float:
    """Returns the first group's window reductions, in percent of the segments that it sent."""
    group = run.summary.groups[0]
    return 100 * units.measured(group.cwnd_reductions) / group.sent_segs


def cuts(run: Run) -> float:
    """Returns the mean part of the window that a reduction leaves."""
    found = of_kind(run, "events", "reduction")
    return float(np.mean(found["value"] / found["before"]))


def cut_from(run: Run) -> float:
    return float(np.mean(of_kind(run, "events", "reduction")["before"]))


def window_segs(run: Run) -> float:
    """Returns the mean window of one flow of the first group, by Little's law."""
    group = run.summary.groups[0]
    rtt_s = units.measured(group.rtt_mean_ns) * 1e-9
    return float(group.goodput_bps / group.flows * rtt_s / SEGMENT_BITS)


@of_run
def of_aimd(run: Run, p: float) -> float:
    """Returns the window over that of AIMD with the mean reduction that was seen.

    With one segment more per round trip and b of the window less at each loss, the mean is
    sqrt((2 - b)/(2 b p)).
    """
    backoff = 1 - cuts(run)
    return window_segs(run) / math.sqrt((2 - backoff) / (2 * backoff * p))


@of_run
def of_bound(run: Run, p: float, base_s: float) -> float:
    """Returns segments per second over sqrt((1 - p)/(p RTT Tq))."""
    group = run.summary.groups[0]
    rtt_s = units.measured(group.rtt_mean_ns) * 1e-9
    bound = math.sqrt((1 - p) / (p * rtt_s * (rtt_s - base_s)))
    return float(group.goodput_bps / SEGMENT_BITS / bound)


def acks_percentile(name: str, percent: float) -> Callable[[Run], float]:
    return lambda run: percentile(after_warmup(run, "cc")[name], percent)


def window_swing(run: Run) -> float:
    """Returns the largest window of a flow less its smallest, of the flow that moves most."""
    acks = after_warmup(run, "cc")
    flows = np.unique(acks["flow_id"])
    return max(float(np.ptp(acks["cwnd_segs"][acks["flow_id"] == flow])) for flow in flows)


def largest_window(run: Run) -> float:
    return float(after_warmup(run, "interval")["cwnd_segs"].max())


def first_threshold(run: Run) -> float:
    """Returns CUBIC's first slow start threshold."""
    thresholds = after_warmup(run, "cc")["obs0"]
    return float(thresholds[thresholds < 1e8][0])


def delay_window(run: Run) -> float:
    """Returns the largest delay window of Compound while it sees 60 segments in the queue."""
    acks = after_warmup(run, "cc")
    return float(acks["obs1"][acks["obs2"] >= 60].max())


def trough_above_ms(base_ms: float) -> Callable[[Run], float]:
    return lambda run: rtt_trough_ms(run) - base_ms


def dq_of_target(run: Run) -> float:
    """Returns the first flow's median queueing delay over Copa's target, 1/(lambda delta)."""
    acks = after_warmup(run, "cc")
    own = acks["obs2"][acks["flow_id"] == 0]
    return float(np.median(own)) * 1e-9 * 0.5 * run.summary.groups[0].goodput_bps / SEGMENT_BITS


@of_run
def competitive(run: Run, from_s: float, to_s: float) -> float:
    """Returns the time in Copa's competitive mode, in percent, of the first group."""
    changes = of_kind(run, "events", "cc_mode", whole=True)
    flows, spent_s = run.summary.groups[0].flows, 0.0
    for flow in range(flows):
        own = changes[changes["flow_id"] == flow]
        edges = np.clip(np.append(own["ts_ns"] * 1e-9, to_s), from_s, to_s)
        spent_s += float(np.diff(edges)[own["value"] == COMPETITIVE].sum())
    return 100 * spent_s / (to_s - from_s) / flows


@of_run
def acked_share(run: Run, from_s: float, to_s: float) -> float:
    """Returns the first group's part of what is acknowledged, in percent."""
    rows = within(run, "interval", from_s, to_s)
    own = rows["acked_bytes"][rows["group"] == 0].sum()
    return 100 * float(own / rows["acked_bytes"].sum())


def long_over_mathis(run: Run) -> float:
    """Returns the goodput of a flow over three hops over 1/(RTT sqrt(3)) of one over the first."""
    long, cross = run.summary.groups[:2]
    trips = units.measured(cross.rtt_mean_ns) / units.measured(long.rtt_mean_ns)
    return float(long.goodput_bps / cross.goodput_bps / (trips / 3**0.5))


def of_queue(run: Run, kind: str, l4s: bool) -> npt.NDArray[np.void]:
    """Returns the link's records of an event, of the first group's flows or of the others."""
    found = of_kind(run, "packets", kind)
    return np.asarray(found[(found["flow_id"] < run.summary.groups[0].flows) == l4s])


def marked(run: Run) -> float:
    """Returns the part of the first group's packets that was marked."""
    return len(of_queue(run, "mark", True)) / len(of_queue(run, "dequeue", True))


def classic_median_ms(run: Run) -> float:
    return float(np.median(of_queue(run, "dequeue", False)["sojourn_ns"])) / 1e6


def classic_share(run: Run) -> float:
    """Returns the part of the bytes that left the link that is not of the first group."""
    l4s, classic = (float(of_queue(run, "dequeue", of)["size_bytes"].sum()) for of in (True, False))
    return classic / (l4s + classic)


def coupled(run: Run) -> float:
    """Returns the drop probability of the Classic queue over (p/2)^2, p the marks of the other."""
    sent, dropped = (len(of_queue(run, kind, False)) for kind in ("dequeue", "drop"))
    return dropped / (sent + dropped) / (marked(run) / 2) ** 2


def of_balance(run: Run) -> float:
    """Returns what Prague's window has over 2 (1 - p)/p, which its marks balance in 25 ms.

    It is a part of that balance times 1/(p W), the distance of two marks: a flow that has reduced
    its window waits for the next mark.
    """
    p = marked(run)
    window = float(goodputs(run)[0] * 1e6 * 25e-3 / SEGMENT_BITS)
    return (window / (2 * (1 - p) / p) - 1) * p * window
