# SPDX-License-Identifier: BSD-3-Clause
"""The 22 test cases of draft-ietf-ccwg-bbr (appendix A, text of 3 August 2026), one by one.

Each is run at three round trips and three rates (bbr_draft_paths.py) and read from what BBR does at
every ACK (bbr_draft_trace.py). A case is an experiment, what it verifies are claims, and where the
draft gives no number the claim says whose band it is. Where Google's BBRv3 for Linux does something
else, as far as we know it, the title says so.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from weir.studies.bbr_draft import bounds, paths
from weir.studies.bbr_draft import measures as m
from weir.studies.bbr_draft.paths import PLACES, TINY, Place
from weir.studies.bbr_draft.trace import Trace
from weir.study.claim import Claim, Experiment, Kind, Setup, Study

if TYPE_CHECKING:
    from weir.analysis.folder import Run

EXACT = "exact; the rest is the records' single precision"
FOLLOWS = "the bound also follows what was in flight, by a segment in each round"
SEGMENT = "without the two segments of a delayed ACK, which count as aggregation"
BETA = (0.699, 0.83)  # 0.7 but where 4 segments are more
OURS = "our own band: the text gives no number"
Measure = Callable[[Trace, Place], float]


@dataclass(frozen=True)
class Check:
    """A number or an order that a case verifies, with its bounds."""

    says: str
    measure: Measure
    low: float = -math.inf
    high: float = math.inf
    number: float | None = None  # that the draft has
    tolerance: str = ""
    unit: str = ""


def about(says: str, measure: Measure, number: float, part: float, tolerance: str = EXACT) -> Check:
    return Check(says, measure, number * (1 - part), number * (1 + part), number, tolerance)


def exactly(says: str, measure: Measure, number: float) -> Check:
    return Check(says, measure, number, number, number, "a count")


def holds(says: str, measure: Measure) -> Check:
    return Check(says, measure, low=1)


@dataclass(frozen=True)
class DraftCase:
    """A test case: where it is run, and what it verifies."""

    number: int
    title: str
    run: Callable[[Place], Setup]
    checks: tuple[Check, ...]
    places: tuple[Place, ...] = PLACES
    google: str = ""  # where Google's BBRv3 for Linux differs
    not_at: str = ""  # why the case cannot be had at the other places


CASES = (
    DraftCase(
        1,
        "Exiting STARTUP on Bandwidth Plateau",
        paths.bulk,
        (
            about("max_bw over the link's rate", m.startup_bw, 1, 0.02, "the draft's 2 %"),
            exactly("rounds of less than 25 % of growth at the end", m.startup_flat, 3),
            holds("DRAIN follows STARTUP", m.startup_then_drain),
            about("pacing in STARTUP over bw", m.startup_pacing, 2.77, 0.001),
        ),
    ),
    DraftCase(
        2,
        "Exiting STARTUP on Loss When Application-Limited",
        paths.startup_loss,
        (
            holds("STARTUP ends", m.startup_left),
            Check("rounds after the first loss", m.loss_to_drain, 0, 2, unit="rounds"),
            Check("ACKs that report losses until then", m.startup_losses, low=6),
            holds("every sample was limited by the application", m.startup_limited),
        ),
        tuple(at for at in PLACES if at.bdp > 80),
        not_at="half of its BDP is too small a flight to lose six ranges of a round in",
    ),
    DraftCase(
        3,
        "Exiting DRAIN Based on Inflight",
        paths.bulk,
        (
            about("pacing in DRAIN over bw", m.drain_pacing, 0.5, 0.001),
            Check("in flight at its end over Inflight(1.0)", m.drain_inflight, 0, 1.0),
            Check("and an ACK before that", m.drain_inflight_before, low=1.0),
            holds("PROBE_BW follows", m.drain_then_probe_bw),
        ),
    ),
    DraftCase(
        4,
        "Exiting DRAIN Based on Time",
        paths.drain_cut,
        (
            exactly("rounds in DRAIN: the first beyond three", m.drain_rounds, 4),
            Check("in flight at its end over Inflight(1.0)", m.drain_inflight, low=1.0),
        ),
        google="has no such limit",
    ),
    DraftCase(
        5,
        "Exiting PROBE_UP on Bandwidth Plateau",
        paths.bulk,
        (
            exactly("rounds of less than 25 % of growth at the end", m.up_flat, 3),
            holds("DOWN follows UP", m.up_then_down),
            about("pacing in UP over bw", m.up_pacing, 1.25, 0.001),
            about("the window in UP over bw min_rtt", m.up_window, 2.25, 0.02, SEGMENT),
        ),
    ),
    DraftCase(
        6,
        "Exiting PROBE_UP on Loss When Application-Limited",
        paths.up_loss,
        (
            Check("rounds from the first loss to DOWN", m.loss_to_down, 0, 2, unit="rounds"),
            holds("inflight_longterm is not set by a limited sample", m.no_long_bound),
        ),
    ),
    DraftCase(
        7,
        "Never Exiting PROBE_UP (or STARTUP) When Application-Limited With No Loss",
        paths.unfilled,
        (holds("STARTUP for 4.9 s", m.only_startup),),
    ),
    DraftCase(
        7,
        "and UP",
        paths.up_loss,
        (Check("how long the last UP before the losses was", m.long_up, low=2, unit="s"),),
    ),
    DraftCase(
        7,
        "and with less than LossThresh",
        paths.up_some_loss,
        (Check("UP goes on with losses of 1.8 %", m.up_goes_on, low=1, unit="s"),),
        tuple(at for at in PLACES if at.bdp > 700),
        not_at="a single loss is 2 % of such a flight, or two are",
    ),
    DraftCase(
        8,
        "Exiting PROBE_DOWN on Inflight",
        paths.bulk,
        (
            about("pacing in DOWN over bw", m.down_pacing, 0.9, 0.001),
            Check("in flight at its end over Inflight(max_bw, 1.0)", m.down_inflight, 0, 1.0),
            Check("and an ACK before that", m.down_inflight_before, low=1.0),
            holds("CRUISE follows", m.down_then_cruise),
            about("pacing in CRUISE over bw", m.cruise_pacing, 1, 0.001),
            about("the window in CRUISE over bw min_rtt", m.plain_window, 2, 0.02, SEGMENT),
        ),
    ),
    DraftCase(
        9,
        "Exiting PROBE_DOWN After Max Time",
        paths.down_cut,
        (
            holds("REFILL follows DOWN", m.down_then_refill),
            Check("how long it was over the wait, 2 to 3 s or 62 to 63 rounds", m.down_wait, 1, 1),
        ),
    ),
    DraftCase(
        10,
        "Entering and Exiting PROBE_RTT",
        paths.bulk,
        (
            about("s without a lower RTT before it", m.probe_rtt_after, 5, 0.02, OURS),
            about(
                "the window over bw min_rtt, or 4", m.probe_rtt_window, 0.5, 0.02, "whole segments"
            ),
            Check("s at it beyond 200 ms", m.probe_rtt_length, 0, 0.02, unit="s"),
            holds("PROBE_BW follows", m.probe_rtt_then_cruise),
            about("s until min_rtt is renewed", m.min_rtt_after, 10, 0.02, OURS),
        ),
    ),
    DraftCase(
        11,
        "Skipping PROBE_RTT Due to Application-Limited Sending",
        paths.idle,
        (
            exactly("times in PROBE_RTT", m.probe_rtts, 0),
            holds("it had left STARTUP before the second pause", m.filled),
        ),
    ),
    DraftCase(
        12,
        "Achieving Expected STARTUP Bandwidth on a Link With Aggregation",
        paths.aggregated,
        (
            Check("the largest window in STARTUP over bw min_rtt", m.startup_window, low=2),
            Check("max_bw at its end over the link's rate", m.startup_bw, 0.98, 1.05),
        ),
    ),
    DraftCase(
        13,
        "Achieving Expected Cruise Bandwidth on a Link With Aggregation",
        paths.aggregated,
        (
            Check("the window over bw min_rtt in CRUISE", m.cruise_window, low=2.1),
            Check("the link's use in CRUISE", m.cruise_use, low=0.9),
        ),
    ),
    DraftCase(
        14,
        "Correctly Managing Sub-Packet BDPs",
        paths.tiny,
        (
            exactly("the smallest window", m.least_window, 4),
            holds("DRAIN ends at 6 segments, after 3 rounds, or by ProbeRTT", m.drained),
            about("pacing over the link's rate", m.late_pacing, 0.99, 0.02, OURS),
            Check("the link's use", m.use, low=0.95),
        ),
        TINY,
    ),
    DraftCase(
        15,
        "Increasing Bandwidth 10x and Ensuring Full Bandwidth is Reached",
        paths.tenfold,
        (Check("rounds in UP to the full rate over log2(BDP) + 16", bounds.tenfold_rounds, 0, 1),),
    ),
    DraftCase(
        15,
        "and the steps of inflight_longterm double",
        paths.tenfold,
        (about("its growth from round to round", bounds.long_growth, 2, 0.3, FOLLOWS),),
        tuple(at for at in PLACES if at.bdp > 40),
        not_at="its tenth has a BDP of 1 or 3 packets, and UP loses none in a buffer of 6",
    ),
    DraftCase(
        16,
        "Decreasing Bandwidth 10x and Ensuring Max Bandwidth Adapts Down",
        paths.tenth,
        (
            Check("rounds from the first loss to bw below half", bounds.halved_rounds, 0, 5),
            Check("the least that a round leaves of inflight_shortterm", bounds.least_step, *BETA),
            about("max_bw two cycles later over the link's", bounds.tenth_bw, 1, 0.02, OURS),
        ),
    ),
    DraftCase(
        17,
        "Handling Token Bucket Policers",
        paths.policed,
        (
            holds("losses set bw_shortterm and inflight_shortterm", bounds.short_bounds),
            Check("of the last 15 s, goodput over the token rate", bounds.late_use, low=0.8),
            Check("and segments lost", bounds.late_losses, high=0.1),
        ),
    ),
    DraftCase(
        18,
        "Handling Spurious Fast Recovery",
        paths.up_late,
        (
            Check("recoveries taken back", bounds.undone, low=1),
            holds("what an undo has restored is not below what was before", bounds.restored),
            holds("after one that ended UP: REFILL, then UP", bounds.back_up),
        ),
        google="saves the state once for each recovery",
    ),
    DraftCase(
        19,
        "Handling Spurious RTO Recovery",
        paths.up_spike,
        (
            Check("timeouts taken back", bounds.undone, low=1),
            holds("what an undo has restored is not below what was before", bounds.restored),
            holds("after one that ended UP: REFILL, then UP", bounds.back_up),
        ),
        google="saves the state once for each recovery",
    ),
    DraftCase(
        20,
        "Entering and Exiting PROBE_RTT During STARTUP",
        paths.unfilled,
        (
            exactly("times in PROBE_RTT", m.probe_rtts, 1),
            holds("STARTUP follows", m.probe_rtt_then_startup),
        ),
    ),
    DraftCase(
        21,
        "Handling Loss During PROBE_UP After inflight_longterm is Set",
        paths.lossy_probes,
        (
            Check("rounds in UP with losses", bounds.lossy_up, 0, 3, unit="rounds"),
            holds("DOWN follows", bounds.lossy_up_then_down),
            Check("inflight_longterm then over min(bw min_rtt, cwnd)", bounds.long_set, 0.699, 1.3),
            Check("in flight at the end of DOWN over 0.85 of it", bounds.headroom, 0, 1.0),
            about(
                "the window in CRUISE over it", bounds.cruise_headroom, 0.85, 0.02, "whole segments"
            ),
        ),
    ),
    DraftCase(
        21,
        "and the probe after it is precautionary (5.3.3.4)",
        paths.lossy_probes,
        (
            Check("rounds in UP", bounds.careful_rounds, 0, 1, unit="rounds"),
            holds("REFILL a round after it", bounds.careful_repeated),
        ),
        google="does the same, but waits a whole cycle with the second probe",
    ),
    DraftCase(
        22,
        "Handling Application-Limited Sending During PROBE_REFILL",
        paths.up_late,
        (
            about("bw after REFILL over max_bw before", bounds.refill_bw, 1, 1e-6),
            Check("rounds in REFILL", bounds.refill_rounds, 0, 1, unit="rounds"),
            holds("UP follows", bounds.refill_then_up),
        ),
    ),
)

STUCK = (
    "a round of its 16 segments lasts 5 to 10 s, and ProbeRTT comes every 5 s: no round of STARTUP"
    " ends, so it is never left, and the pacing of the first window stays. The draft has it so"
)
WHY = {(14, at.name): STUCK for at in TINY if at.rtt_ms == 160 and at.mbit < 0.05}

_traces: dict[Path, Trace] = {}


def trace_of(run: Run) -> Trace:
    return _traces.setdefault(run.path, Trace(run))


def measured(measure: Measure, at: Place) -> Callable[[Run], float]:
    return lambda run: float(measure(trace_of(run), at))


def claims(case: DraftCase) -> list[Claim]:
    """Makes the claims of a case, at each place."""
    source = f"appendix A, case {case.number}"
    found = []
    for at in case.places:
        for check in case.checks:
            kind: Kind = "direction" if check.number is None else "number"
            why = WHY.get((case.number, at.name), "")
            found.append(
                Claim(
                    f"{at.name}: {check.says}",
                    source,
                    kind,
                    (case.run(at),),
                    measured(check.measure, at),
                    check.unit,
                    check.number,
                    check.low,
                    check.high,
                    check.tolerance or OURS,
                    why,
                )
            )
    missing = [at for at in PLACES if at not in case.places and case.places is not TINY]
    found += [Claim(f"{at.name}", source, "not comparable", why=case.not_at) for at in missing]
    return found


def experiments() -> tuple[Experiment, ...]:
    """Makes an experiment of each case; parts of a case are one."""
    numbers = sorted({case.number for case in CASES})
    made = []
    for number in numbers:
        parts = [case for case in CASES if case.number == number]
        google = "; ".join(case.google for case in parts if case.google)
        title = parts[0].title + (f" (Google's BBRv3 {google})" if google else "")
        made.append(
            Experiment(str(number), title, tuple(c for case in parts for c in claims(case)))
        )
    return tuple(made)


STUDY = Study(
    "bbr-draft",
    "BBR: the test cases of its draft",
    "N. Cardwell, I. Swett, J. Beshay (editors), BBR Congestion Control, draft-ietf-ccwg-bbr,"
    " appendix A, text of 3 August 2026",
    experiments(),
    Path(__file__).parent,
)
