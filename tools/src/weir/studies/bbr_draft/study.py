# SPDX-License-Identifier: BSD-3-Clause
"""The 22 test cases of draft-ietf-ccwg-bbr (appendix A, text of 3 August 2026), one by one.

Each (cases.yaml) is run at three round trips and three rates (paths.py) and read from what BBR does
at every ACK (trace.py). A case is an experiment, what it verifies are claims, and where the
draft gives no number the claim says whose band it is. Where Google's BBRv3 for Linux does something
else, as far as we know it, the title says so.
"""

from __future__ import annotations

import math
from functools import partial
from pathlib import Path

import msgspec

from weir.analysis.folder import Run
from weir.studies.bbr_draft import bounds, measures, paths
from weir.studies.bbr_draft.paths import PLACES, TINY, Place
from weir.studies.bbr_draft.trace import Trace
from weir.study import written
from weir.study.claim import Claim, Experiment, Kind, Setup, Study
from weir.study.scenario import cannot
from weir.study.written import Measure

EXACT = "exact; the rest is the records' single precision"
OURS = "our own band: the text gives no number"
HERE = Path(__file__).parent
KNOWN = vars(measures) | vars(bounds)


class Check(msgspec.Struct, forbid_unknown_fields=True):
    """A number or an order that a case verifies, with its bounds.

    about: a number of the draft, which holds within a part of it; exactly: a count of the draft.
    """

    says: str
    measure: str  # of measures.py or bounds.py
    about: int | float | None = None
    within: float = 0.0
    exactly: int | None = None
    low: int | float = -math.inf
    high: int | float = math.inf
    tolerance: str = ""
    unit: str = ""

    def __post_init__(self) -> None:
        if self.about is not None:
            self.low, self.high = self.about * (1 - self.within), self.about * (1 + self.within)
            self.tolerance = self.tolerance or EXACT
        if self.exactly is not None:
            self.about = self.low = self.high = self.exactly
            self.tolerance = "a count"

    def measured(self) -> Measure:
        return written.measure_of(self.measure, KNOWN)


class DraftCase(msgspec.Struct, forbid_unknown_fields=True):
    """A test case: where it is run, and what it verifies.

    run: a function of paths.py. bdp_above: only where so many packets are in flight, and not_at why
    it cannot be had elsewhere. tiny: at the paths of less than a packet. google: where Google's
    BBRv3 for Linux differs.
    """

    number: int
    title: str
    run: str
    checks: list[Check]
    bdp_above: float = 0.0
    tiny: bool = False
    google: str = ""
    not_at: str = ""

    @property
    def places(self) -> list[Place]:
        return [at for at in (TINY if self.tiny else PLACES) if at.bdp > self.bdp_above]

    def setup(self, at: Place) -> Setup:
        made: Setup = getattr(paths, self.run)(at)
        return made


CASES = written.rows(HERE / "cases.yaml", list[DraftCase])

STUCK = (
    "a round of its 16 segments lasts 5 to 10 s, and ProbeRTT comes every 5 s: no round of STARTUP"
    " ends, so it is never left, and the pacing of the first window stays. The draft has it so"
)
WHY = {(14, at.name): STUCK for at in TINY if at.rtt_ms == 160 and at.mbit < 0.05}

_traces: dict[Path, Trace] = {}


def trace_of(run: Run) -> Trace:
    return _traces.setdefault(run.path, Trace(run))


def traced(measure: Measure, at: Place, run: Run) -> float | None:
    """Returns a measure of the trace of a run."""
    return measure(trace_of(run), at)


def claims(case: DraftCase) -> list[Claim]:
    """Makes the claims of a case, at each place."""
    source = f"appendix A, case {case.number}"
    found = []
    for at in case.places:
        for check in case.checks:
            kind: Kind = "direction" if check.about is None else "number"
            measure = check.measured()
            found.append(
                Claim(
                    f"{at.name}: {check.says}",
                    source,
                    kind,
                    (case.setup(at),),
                    partial(traced, measure, at),
                    check.unit,
                    check.about,
                    check.low,
                    check.high,
                    check.tolerance or OURS,
                    WHY.get((case.number, at.name), ""),
                )
            )
    missing = [at for at in PLACES if at not in case.places and not case.tiny]
    found += [cannot(at.name, source, case.not_at) for at in missing]
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
    HERE,
)
