# SPDX-License-Identifier: BSD-3-Clause
"""A flow of BBR version 3 read from the telemetry of level 3: its phases, rounds and bounds.

Every ACK's record has what sender/cc/bbr3.c observes: bw, min_rtt and the two bounds of what is in
flight. A round is the draft's packet-timed one (section 5.5.1): it ends with the first ACK of a
segment that was sent after it began.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from weir.analysis.folder import Run
from weir.base import units
from weir.study.measures import SEGMENT_BITS, Floats, of_kind

STARTUP, DRAIN, DOWN, CRUISE, REFILL, UP, PROBE_RTT = (
    "startup", "drain", "down", "cruise", "refill", "up", "probe_rtt"
)  # fmt: skip
MARGIN = 0.99  # PacingMarginPercent
QUANTUM_BITS = 65536 * 8


@dataclass(frozen=True)
class Phase:
    """A mode from its start to its end, in seconds; the last one ends with the run."""

    mode: str
    start: float
    end: float

    @property
    def length(self) -> float:
        return self.end - self.start


@dataclass(frozen=True)
class Trace:
    """The only flow of a run."""

    run: Run

    @cached_property
    def acks(self) -> npt.NDArray[np.void]:
        return np.asarray(self.run.stream("cc").records)

    @cached_property
    def time(self) -> Floats:
        return np.asarray(self.acks["ts_ns"] * 1e-9)

    @cached_property
    def sent(self) -> Floats:
        """Times in s at which the newest segment that each ACK acknowledged was sent.

        They never fall.
        """
        rtt = np.where(self.acks["rtt_ns"] > 0, self.acks["rtt_ns"], np.inf)
        return np.asarray(np.maximum.accumulate(self.time - rtt * 1e-9))

    @cached_property
    def phases(self) -> list[Phase]:
        """All phases from the first ACK on.

        A timeout or an undo changes the mode without an event: the next one says from which.
        """
        changes = [(float(self.time[0]), STARTUP)]
        silent = np.sort(np.concatenate([self.events(k)["ts_ns"] for k in ("timeout", "undo")]))
        for event in self.events("cc_mode"):
            time, before = float(event["ts_ns"]) * 1e-9, self.run.summary.mode(0, event["before"])
            if before != changes[-1][1]:
                since = silent[(silent > changes[-1][0] * 1e9) & (silent <= event["ts_ns"])]
                changes.append((float(since[-1]) * 1e-9 if len(since) else time, before))
            changes.append((time, self.run.summary.mode(0, event["value"])))
        ends = [time for time, _ in changes[1:]] + [self.seconds]
        return [Phase(mode, time, end) for (time, mode), end in zip(changes, ends, strict=True)]

    @property
    def seconds(self) -> float:
        return units.measured(self.run.summary.virtual_s)

    def events(self, kind: str) -> npt.NDArray[np.void]:
        return of_kind(self.run, "events", kind, whole=True)

    def of(self, mode: str, since: float = 0.0) -> list[Phase]:
        """Returns the phases of a mode that began since then and have ended."""
        return [
            one
            for one in self.phases
            if one.mode == mode and one.start >= since and one.end < self.seconds
        ]

    def after(self, phase: Phase) -> str:
        return self.phases[self.phases.index(phase) + 1].mode

    def place(self, time: float) -> int:
        """Returns the index of the last ACK until then, at a phase's end the one that ended it."""
        return max(int(np.searchsorted(self.time, time + 1e-10, side="right")) - 1, 0)

    def at(self, name: str, time: float) -> float:
        """Returns a field of the last ACK until then."""
        return float(self.acks[name][self.place(time)])

    def within(self, name: str, start: float, end: float) -> Floats:
        """Returns a field of the ACKs from `start` to before `end`."""
        first, last = np.searchsorted(self.time, (start - 1e-10, end - 1e-10))
        return np.asarray(self.acks[name][first:last], dtype=np.float64)

    def round_starts(self, start: float, end: float) -> list[int]:
        """Lists the ACKs that ended a round, the first of which began at `start`."""
        found: list[int] = []
        begun = start
        while True:
            place = int(np.searchsorted(self.sent, begun - 1e-10))
            if place >= len(self.time) or self.time[place] > end + 1e-10:
                return found
            found.append(place)
            begun = float(self.time[place])

    def rounds(self, start: float, end: float) -> int:
        """Counts the rounds that ended, the one that `end` ended included."""
        return len(self.round_starts(start, end))

    def bdp(self, time: float) -> float:
        return self.at("obs0", time) * self.at("obs1", time) * 1e-9 / SEGMENT_BITS

    def budget(self, time: float, segs: float) -> float:
        """Returns segs, or the minimum by section 5.6.4.2 and the pacing before `time` if more."""
        bits = float(self.acks["pacing_bps"][max(self.place(time) - 1, 0)]) * 1e-3
        quantum = min(bits, QUANTUM_BITS) / SEGMENT_BITS
        return max(segs, 3 * max(quantum, 2), 4)

    def pacing_gain(self, phase: Phase) -> float:
        """Returns the median in a phase of pacing over bw and the margin."""
        bw = self.within("obs0", phase.start, phase.end)
        pacing = self.within("pacing_bps", phase.start, phase.end)
        return float(np.median(pacing / bw)) / MARGIN if len(bw) else math.nan

    def flat_rounds(self, phase: Phase, baseline: float) -> int:
        """Counts rounds in a row at its end whose rate grew by less than a quarter."""
        count = 0
        for place in self.round_starts(phase.start, phase.end):
            rate = float(self.acks["delivery_bps"][place])
            if self.acks["app_limited"][place] or rate <= 0:
                continue
            count += 1
            if rate >= 1.25 * baseline:
                baseline, count = rate, 0
        return count
