# SPDX-License-Identifier: BSD-3-Clause
"""TCP LoLa (Hock et al., LCN 2017): the experiments of its testbed, at their own size."""

from __future__ import annotations

import math
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from weir.base import units
from weir.study.claim import Claim, Experiment, Study, Trial, near, trial_of
from weir.study.measures import (
    Floats,
    drops,
    flow_goodputs,
    jain,
    jfi,
    queue_ms,
    rtt_peak_ms,
    rtt_trough_ms,
    used,
)

if TYPE_CHECKING:
    from weir.analysis.folder import Run

FAIR, HOLD = 2, 3  # modes, MODE_FAIR and MODE_HOLD of sender/cc/lola.c
DATA = 1448 / 1538  # of the link's rate
TARGET_S = 5e-3  # Qtarget
ONE_RUN = "our own band: the paper shows one run of at least ten"
TIMES = "our own band: the window also grows by a round trip and by tmeasure"


HERE = Path(__file__).parent
trial = partial(trial_of, HERE)


def base(ms: float) -> tuple[str, ...]:
    """Another base RTT."""
    return tuple(f"paths.{path}.delay.delay={ms / 2}ms" for path in ("forward", "reverse"))


TWO = trial("l1-two")
ALONE = trial("l1-one", "flows.0.count=1", "duration=42s", "warmup=11s")
RTTS_MS = (5, 61, 101)


def at(ms: int) -> Trial:
    """L2: two flows with another base RTT."""
    longer = ("duration=200s",) if ms == 101 else ()
    return Trial(f"l2-{ms}", HERE / "l1.yaml", (*base(ms), *longer))


UNEQUAL, SLOW, MANY = trial("l3-unequal"), trial("l4-two"), trial("l5-eighteen")


def starts_s(run: Run, flow: int, mode: int, from_s: float = 0.0) -> Floats:
    """When a flow entered a mode."""
    events, change = run.stream("events").records, run.stream("events").number("event", "cc_mode")
    chosen = (events["event"] == change) & (events["value"] == mode) & (events["flow_id"] == flow)
    times = events["ts_ns"][chosen] / 1e9
    return np.asarray(times[times > from_s], dtype=np.float64)


def windows_at(run: Run, time_s: float) -> Floats:
    """Of both flows, at the interval's end that follows."""
    records = run.stream("interval").records
    found = []
    for flow in (0, 1):
        own = records[records["flow_id"] == flow]
        place = min(np.searchsorted(own["ts_ns"], time_s * 1e9), len(own) - 1)
        found.append(float(own["cwnd_segs"][place]))
    return np.array(found)


def rounds_until_fair(run: Run) -> float:
    """After how many rounds of balancing both windows are within 10 % of each other.

    A round ends where the second flow begins to hold; its first belongs to its slow start.
    """
    ends = starts_s(run, 1, HOLD)
    balanced = starts_s(run, 1, FAIR)
    ends = ends[ends > balanced[0]]
    for number, end in enumerate(ends, start=1):
        first, second = windows_at(run, float(end))
        if min(first, second) / max(first, second) >= 0.9:
            return float(number)
    return math.nan


def cycle_s(run: Run) -> float:
    """Median time between holds of the first flow, after the warm-up."""
    return float(np.median(np.diff(starts_s(run, 0, HOLD, units.measured(run.summary.warmup_s)))))


def end_jfi(run: Run) -> float:
    """Of the last 40 s: flows with long round trips have had fewer rounds before."""
    end_s = units.measured(run.summary.virtual_s)
    return jain(flow_goodputs(run, end_s - 40, end_s))


def full(trial: Trial, source: str) -> Claim:
    """High utilisation."""
    return Claim("the link is used", source, "direction", (trial,), used, "of it", low=0.97)


def lossless(trial: Trial, source: str) -> Claim:
    """No loss."""
    return Claim(
        "nothing is lost: packets dropped", source, "direction", (trial,), drops, "", high=0
    )


def peak(trial: Trial, base_ms: int, source: str) -> Claim:
    """Base and 5 ms."""
    return Claim(
        f"the round trip peaks at the base of {base_ms} ms and 5 ms more",
        source,
        "number",
        (trial,),
        lambda run: rtt_peak_ms(run) - base_ms,
        "ms",
        published=5,
        low=5,
        high=7 if base_ms < 60 else 9,
        tolerance="at least the target, and what windows grow until it is noticed: a round trip and"
        " tmeasure",
    )


def balancing_s(rate_bps: float, flows: int) -> float:
    """Equation 2 until X is a flow's part of Qtarget: phi cbrt(bytes) ms, phi = 35."""
    return 35e-3 * float(np.cbrt(rate_bps / 8 * DATA * TARGET_S / flows))


def balanced_s(run: Run) -> float:
    """Median length of the first flow's balancing."""
    since = units.measured(run.summary.warmup_s)
    begin, end = (starts_s(run, 0, mode, since) for mode in (FAIR, HOLD))
    end = end[end > begin[0]]
    count = min(len(begin), len(end))
    return float(np.median(end[:count] - begin[:count]))


EXPERIMENTS = (
    Experiment(
        "L1",
        "two flows at 10 Gbit/s and 21 ms",
        (
            Claim(
                "they are fair after four rounds of fair flow balancing",
                "section IV, figure 5",
                "number",
                (TWO,),
                rounds_until_fair,
                "rounds",
                published=4,
                low=3,
                high=5,
                tolerance=ONE_RUN,
            ),
            peak(TWO, 21, "figure 6"),
            Claim(
                "and falls to about 21 ms",
                "figure 6",
                "number",
                (TWO,),
                rtt_trough_ms,
                "ms",
                published=21,
                low=21,
                high=21.5,
                tolerance=TIMES,
            ),
            full(TWO, "figure 4"),
            lossless(TWO, "section IV"),
            Claim(
                "one flow: balancing lasts phi cbrt(Qtarget rate)",
                "equation 2",
                "derived",
                (ALONE,),
                balanced_s,
                "s",
                **near(balancing_s(10e9, 1), 0.10),
                tolerance=TIMES,
            ),
            Claim(
                "one flow: its cycle",
                "equations 1 and 2",
                "derived",
                (ALONE,),
                cycle_s,
                "s",
                **near(9.7, 0.15),
                tolerance=TIMES,
            ),
            Claim(
                "two flows: their cycle",
                "equations 1 and 2",
                "derived",
                (TWO,),
                cycle_s,
                "s",
                **near(7.7, 0.15),
                tolerance=TIMES,
            ),
        ),
    ),
    Experiment(
        "L2",
        "base RTTs of 5, 61 and 101 ms",
        tuple(
            claim
            for ms in RTTS_MS
            for claim in (
                peak(at(ms), ms, "section IV"),
                Claim(
                    f"{ms} ms: the flows are fair: Jain's index of the last 40 s",
                    "section IV ('the same behaviour')",
                    "direction",
                    (at(ms),),
                    end_jfi,
                    "",
                    low=0.95,
                ),
                lossless(at(ms), "section IV"),
            )
        ),
    ),
    Experiment(
        "L3",
        "21 ms beside 101 ms",
        (
            Claim(
                "they are fair: Jain's index",
                "section IV ('still fair')",
                "direction",
                (UNEQUAL,),
                jfi,
                "",
                low=0.97,
            ),
            lossless(UNEQUAL, "section IV"),
        ),
    ),
    Experiment(
        "L4",
        "two flows at 100 Mbit/s",
        (
            full(SLOW, "section IV"),
            Claim(
                "they are fair: Jain's index",
                "section IV",
                "direction",
                (SLOW,),
                jfi,
                "",
                low=0.97,
            ),
            Claim(
                "the delay is low: mean time in the queue",
                "section IV",
                "direction",
                (SLOW,),
                queue_ms,
                "ms",
                high=5,
            ),
            Claim(
                "their cycle",
                "equations 1 and 2",
                "derived",
                (SLOW,),
                cycle_s,
                "s",
                **near(1.9, 0.15),
                tolerance=TIMES,
            ),
        ),
    ),
    Experiment(
        "L5",
        "eighteen flows",
        (
            lossless(MANY, "section IV ('no packet loss')"),
            peak(MANY, 21, "section IV"),
            Claim(
                "windows have converged: Jain's index from 100 s on",
                "section IV",
                "direction",
                (MANY,),
                jfi,
                "",
                low=0.98,
            ),
            full(MANY, "section IV"),
        ),
    ),
)


STUDY = Study(
    "lola",
    "TCP LoLa: low latency and high throughput",
    "M. Hock, F. Neumeister, M. Zitterbart, R. Bless, TCP LoLa: Congestion Control for Low"
    " Latencies and High Throughput, LCN 2017",
    EXPERIMENTS,
    HERE,
    with_all=True,
)
