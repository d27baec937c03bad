# SPDX-License-Identifier: BSD-3-Clause
"""NewReno in Python: sender/cc/newreno.c and reno.h, line by line, to the same bytes."""

import math

from weir.control import Control, Measurements, parameter

SLOW_START, AVOIDANCE, RECOVERY, TIMEOUT = range(4)


def rounded(value: float) -> float:
    """As C's round(), halves away from zero; Python's are to the even one."""
    below = float(math.floor(value))
    return below + 1 if value - below >= 0.5 else below


class NewReno(Control):
    """NewReno with SACK and byte counting (RFC 5681, 6582, 6675, 3465)."""

    initial = parameter(10.0, "initial and restart window in segments (RFC 6928)", min=1, max=1000)
    abc_limit = parameter(2.0, "most segments one ACK adds in slow start; 0: no limit", max=1000)
    halve = parameter("cwnd", "what a loss halves", choices=("cwnd", "flight"))
    idle_restart = parameter(True, "fall back to the initial window after an idle RTO")

    observed = ("ssthresh_segs",)
    modes = ("slow_start", "avoidance", "recovery", "timeout")
    ecn = True
    has_ssthresh = True

    def init(self, m: Measurements) -> None:
        self.ssthresh_segs = 1e9
        self.cwnd_segs = self.initial
        self.prior_cwnd = self.prior_ssthresh = 0.0
        self.episode = self.timeout = self.whole = False
        self.slow_start = True
        self.show()

    def show(self) -> None:
        """The mode that the interval records have."""
        growing = SLOW_START if self.slow_start else AVOIDANCE
        self.mode = TIMEOUT if self.timeout else RECOVERY if self.episode else growing

    def on_ack(self, m: Measurements) -> None:
        self.whole = m.tick_ns > 0
        if not m.in_recovery:
            self.episode = False
        if m.in_sequence and m.cwnd_limited and not m.in_recovery:
            self.avoid(self.start_slowly(float(m.acked_segs)))
        self.slow_start = self.cwnd_segs < self.ssthresh_segs
        self.show()

    def start_slowly(self, acked: float) -> float:
        """Slow start; returns what is left for congestion avoidance."""
        if self.cwnd_segs < self.ssthresh_segs:
            limit = 1.0 if self.timeout else self.abc_limit
            step = limit if 0 < limit < acked else acked
            room = self.ssthresh_segs - self.cwnd_segs
            if self.cwnd_segs + step <= self.ssthresh_segs:
                self.cwnd_segs += step
                return 0.0
            self.cwnd_segs = self.ssthresh_segs
            acked = step - room
            if acked <= 0:
                return 0.0
        self.timeout = False
        return acked

    def avoid(self, acked: float) -> None:
        """Congestion avoidance."""
        if not self.whole:
            self.cwnd_segs += acked / self.cwnd_segs
            return
        whole = float(math.floor(self.cwnd_segs))
        grown = rounded((self.cwnd_segs - whole) * whole) + acked
        more = float(math.floor(grown / whole))
        self.cwnd_segs = whole + more + (grown - more * whole) / (whole + more)

    def lower(self, m: Measurements) -> None:
        """What a reduction leaves is the threshold."""
        segs = (m.inflight_segs if self.halve == "flight" else self.cwnd_segs) / 2
        self.prior_cwnd, self.prior_ssthresh = self.cwnd_segs, self.ssthresh_segs
        self.ssthresh_segs = max(float(math.floor(segs)) if self.whole else segs, 2.0)

    def on_loss(self, m: Measurements) -> None:
        self.lower(m)
        self.episode, self.timeout, self.slow_start = True, False, False
        self.cwnd_segs = self.ssthresh_segs
        self.show()

    def on_rto(self, m: Measurements) -> None:
        if not self.episode and not m.repeated:
            self.lower(m)
        self.episode = self.timeout = True
        self.cwnd_segs = 1.0
        self.show()

    def on_spurious(self, m: Measurements) -> None:
        self.cwnd_segs = max(self.cwnd_segs, self.prior_cwnd)
        self.ssthresh_segs = max(self.ssthresh_segs, self.prior_ssthresh)
        self.episode = self.timeout = False
        self.show()

    def on_idle(self, m: Measurements) -> None:
        if self.idle_restart:
            self.cwnd_segs = min(self.cwnd_segs, self.initial)
