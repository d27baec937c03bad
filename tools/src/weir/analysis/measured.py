# SPDX-License-Identifier: BSD-3-Clause
"""Reads what `weir measure` found out about a path: measured.json of a run folder.

Times are in s since the measurement began; a rate is of IP packets unless it is called goodput.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from weir.analysis import metrics
from weir.analysis.latency import UnderLoad, trimmed_mean
from weir.base import foreign, units
from weir.base.page import Column, Table

if TYPE_CHECKING:
    from weir.analysis.ring import Values

FILE = "measured.json"
SCHEMA = 1
STARTED_S = 1.0  # of the load, which is left out: a connection that opens and grows
LOSS_WANTED = 0.15  # at least, of a trial that fills the path
HEADERS = 52  # bytes of a data segment: IP, TCP and its timestamps
FILLING = 0.4  # of a trial, at its begin
STEADY = 0.1  # a full queue's spread; that of a host that stands still at times is more
LONG_S = 2.0  # trials of a search are shorter, and their rates less exact
WINDOW_S = 0.5  # in which arrivals are counted
TEXT = (
    "The path as measured: round trips of pings before and beside one TCP flow, and how many a"
    " minute has with it, of pings and of the flow itself"
)
PING_BYTES = 84  # of IP, as ping sends by default


class Sample(msgspec.Struct):
    """The kernel's tcp_info of the load at the end of an interval; of a remote sender nothing."""

    end_s: float
    rtt_ns: float | None
    cwnd_bytes: int | None
    retransmits: int | None


class Count(msgspec.Struct):
    """Datagrams, or bits/s of payload of TCP, at the receiver in an interval of a trial or load."""

    begin_s: float
    end_s: float
    goodput_bps: float
    received: int | None = None
    lost: int | None = None


class Trial(msgspec.Struct):
    """UDP at a constant rate: what was asked for, when it ran, and what the receiver counted."""

    rate_bps: float
    begin_s: float
    end_s: float
    counted: list[Count]

    @property
    def length_s(self) -> float:
        return max((one.end_s for one in self.counted), default=0.0)

    @property
    def late(self) -> list[Count]:
        """The intervals in which a queue that fills is full; all of them if they are few."""
        begin_s = FILLING * self.length_s
        return [one for one in self.counted if one.begin_s >= begin_s] or self.counted

    @property
    def is_full(self) -> bool:
        """Is true if so much was lost in most intervals that the queue was full all the time."""
        sums = [(one.lost or 0, one.received or 0) for one in self.late]
        shares = [lost / (lost + received) for lost, received in sums if lost + received]
        return bool(shares) and float(np.median(shares)) > LOSS_WANTED

    @property
    def arrived(self) -> float:
        """Datagrams per s: of windows the 75th percentile, as any host may stand still at times."""
        return percentile(rates(self.late, [one.received or 0 for one in self.late]), 75)


def rates(counted: list[Count], amounts: list[float]) -> list[float]:
    """Returns amounts per s in windows of WINDOW_S, one from the begin of each interval."""
    begins = np.array([one.begin_s for one in counted])
    ends = np.array([one.end_s for one in counted])
    sums = np.cumsum([0.0, *amounts])
    least_s = WINDOW_S - 0.02  # iperf3 prints hundredths
    after = np.searchsorted(begins, begins + least_s)
    lengths_s = ends[after - 1] - begins
    found = (sums[after] - sums[:-1]) / lengths_s
    return [float(rate) for rate in found[lengths_s >= least_s]]


def percentile(values: list[float], part: float) -> float:
    return float(np.percentile(values or [0.0], part))


def spread(waits: Values) -> float:
    """Returns between which quarters of the pings a full queue's delay lies, to its median."""
    low, middle, high = (metrics.percentile(waits, p) for p in (25, 50, 75))
    return (high - low) / middle if low is not None and high and middle else math.inf


class Measured(msgspec.Struct, kw_only=True):
    """A measurement; what could not be measured is None, and `notes` say why."""

    schema: int = SCHEMA
    host: str
    address: str
    download: bool
    control: str | None  # of the sender, by its own account
    mtu_bytes: int
    load_s: tuple[float, float]  # when the TCP flow that is the load ran
    pings: list[tuple[float, float]]  # when one was sent, in s, and its round trip in ns
    samples: list[Sample]
    counted: list[Count]  # of the load, at its receiver
    trials: list[Trial]
    goodput_bps: float | None
    retransmits: int | None
    sent_segs: int | None = None
    lost_segs: int | None = None  # between the captures of both ends, or as the sender's shows
    lost_by: str | None = None  # "both captures", or "the sender's capture"
    queue_mean_ns: float | None = None  # between both captures, above the least delay
    identified: str | None = None
    confidence: float | None = None
    notes: list[str] = []

    def rtts(self, begin_s: float, end_s: float) -> Values:
        """Returns the round trips of pings that were sent between two times, in ns."""
        return np.array([rtt for at, rtt in self.pings if begin_s <= at < end_s], np.float64)

    @property
    def least_rtt_ns(self) -> float | None:
        """The smallest round trip of all pings; without any, of the load by its sender."""
        found = [rtt for _, rtt in self.pings] or [s.rtt_ns for s in self.samples if s.rtt_ns]
        return min(found, default=None)

    @property
    def load_rates_bps(self) -> list[float]:
        """Goodput of the load in windows after its start, as its receiver counted."""
        later = [one for one in self.counted if one.begin_s >= STARTED_S]
        return rates(later, [one.goodput_bps * (one.end_s - one.begin_s) for one in later])

    @property
    def rate_bps(self) -> float:
        """The largest rate of IP that arrived, of any trial or of the load; 0: nothing is known.

        A trial far above the rate may overload what forwards, so that less arrives.
        """
        segments = self.mtu_bytes / (self.mtu_bytes - HEADERS)
        long = [trial for trial in self.trials if trial.length_s > LONG_S] or self.trials
        arrived = (trial.arrived * self.mtu_bytes * 8 for trial in long)
        return max(percentile(self.load_rates_bps, 50) * segments, *arrived, 0.0)

    def waits(self, trial: Trial) -> Values:
        """Returns what pings waited in the queue while a trial kept it full, in ns."""
        begin_s, end_s = (trial.begin_s + part * trial.length_s for part in (1.5 * FILLING, 1.0))
        return self.rtts(begin_s, end_s) - (self.least_rtt_ns or 0.0)

    @property
    def under_load(self) -> UnderLoad:
        """Delay of pings before and during the load, and responsiveness."""
        begin_s, end_s = self.load_s
        idle = self.rtts(0.0, begin_s)
        loaded = self.rtts(begin_s + STARTED_S, end_s)
        own = np.array([s.rtt_ns for s in self.samples if s.rtt_ns and s.end_s > STARTED_S])
        return UnderLoad(
            metrics.percentile(idle, 50),
            metrics.percentile(loaded, 50),
            metrics.percentile(loaded, 95),
            metrics.percentile(loaded, 99),
            trimmed_mean(loaded),
            trimmed_mean(own),
        )

    @property
    def queueing_ns(self) -> float | None:
        """The mean queueing delay: between captures, or what pings take more than the least."""
        loaded = self.rtts(self.load_s[0] + STARTED_S, self.load_s[1])
        if self.queue_mean_ns is not None or not loaded.size or self.least_rtt_ns is None:
            return self.queue_mean_ns
        return float(loaded.mean()) - self.least_rtt_ns

    @property
    def table(self) -> Table:
        return Table(COLUMNS, [self])


COLUMNS = (
    Column("goodput", "goodput_bps"),
    Column("idle RTT", lambda of: of.under_load.idle_ns, "ns"),
    Column("under load", lambda of: of.under_load.median_ns, "ns"),
    Column("p95", lambda of: of.under_load.p95_ns, "ns"),
    Column("round trips per minute", lambda of: of.under_load.rpm, units.count),
    Column("queueing delay", "queueing_ns"),
    Column("lost", "lost_segs", "count"),
    Column("control", "control", ""),
    Column("identified as", "identified", ""),
)


def read(folder: Path) -> Measured | None:
    """Returns the measurement in a run folder; None: it has none. UserError: it is damaged."""
    path = folder / FILE
    return foreign.read_json(path, Measured) if path.exists() else None
