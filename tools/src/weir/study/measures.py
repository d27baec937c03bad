# SPDX-License-Identifier: BSD-3-Clause
"""Measures of claims: on a run's summary, or on its records without those of the warm-up."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import wraps
from typing import Concatenate, Literal, ParamSpec, TypeVar

import numpy as np
import numpy.typing as npt

from weir.analysis import metrics
from weir.analysis.folder import Run
from weir.base import units

PAYLOAD_BYTES = 1448  # of a full segment with timestamps
SEGMENT_BITS = 8 * PAYLOAD_BYTES
WIRE_BITS = 8 * 1538  # of such a segment
Floats = npt.NDArray[np.float64]
P = ParamSpec("P")
R = TypeVar("R")


def of_run(measure: Callable[Concatenate[Run, P], R]) -> Callable[P, Callable[[Run], R]]:
    """Makes the maker of measures from one with further arguments: f(run, 1) as f(1)(run)."""

    @wraps(measure)
    def made(*args: P.args, **kwargs: P.kwargs) -> Callable[[Run], R]:
        return lambda run: measure(run, *args, **kwargs)

    return made


def percentile(values: npt.ArrayLike, percent: float) -> float:
    """Returns the smallest value that so many percent do not exceed; not a number without any."""
    found = metrics.percentile(values, percent)
    return math.nan if found is None else found


def queue_pkts(run: Run) -> float:
    return float(run.summary.links["forward"].queue_mean_pkts)


def queue_pkts_per_flow(run: Run) -> float:
    """Returns the mean queue over the number of flows, in packets."""
    return queue_pkts(run) / sum(group.flows for group in run.summary.groups)


def utilisation(run: Run, link: str = "forward") -> float:
    """Returns the use of a link in percent, by its rate at each time."""
    return 100 * units.measured(run.summary.links[link].utilisation)


def drops(run: Run) -> float:
    return float(run.summary.links["forward"].drops)


def goodput(run: Run, group: int = 0) -> float:
    return float(run.summary.groups[group].goodput_bps) / 1e6


def of_second(run: Run) -> float:
    """Returns the first group's goodput over the second's."""
    return goodput(run, 0) / goodput(run, 1)


def kept(run: Run, without: Run) -> float:
    """Returns goodput in percent of that of the run without loss."""
    return 100 * goodput(run) / goodput(without)


def over(measure: Callable[[Run], float]) -> Callable[[Run, Run], float]:
    """Makes the measure of one run's value over another's."""
    return lambda run, other: measure(run) / measure(other)


def less(measure: Callable[[Run], float]) -> Callable[[Run, Run], float]:
    """Makes the measure of one run's value less another's."""
    return lambda run, other: measure(run) - measure(other)


def after_warmup(run: Run, stream: str) -> npt.NDArray[np.void]:
    """Returns a stream's records without those of the warm-up."""
    records = run.stream(stream).records
    warmup_ns = round(units.measured(run.summary.warmup_s) * 1e9)
    if stream == "transfers":
        return np.asarray(records[records["start_ns"] >= warmup_ns])
    # An interval that ends with the warm-up is of it.
    side: Literal["left", "right"] = "right" if stream in ("interval", "links") else "left"
    return np.asarray(records[np.searchsorted(records["ts_ns"], warmup_ns, side) :])


def within(run: Run, stream: str, from_s: float, to_s: float) -> npt.NDArray[np.void]:
    """Returns a stream's records within a time."""
    records = run.stream(stream).records
    times = records["ts_ns"]
    return np.asarray(records[(times > from_s * 1e9) & (times <= to_s * 1e9)])


def of_kind(run: Run, stream: str, event: str, whole: bool = False) -> npt.NDArray[np.void]:
    """Returns a stream's records of one kind of event, after the warm-up or of the whole run."""
    records = run.stream(stream).records if whole else after_warmup(run, stream)
    return np.asarray(records[records["event"] == run.stream(stream).number("event", event)])


def times_s(run: Run, event: str, mode: str = "") -> npt.NDArray[np.float64]:
    """Returns the times of events after the warm-up, in s; `mode`: of changes to this one."""
    events = of_kind(run, "events", event)
    if mode:
        events = events[events["value"] == run.summary.groups[0].modes.index(mode)]
    return np.asarray(events["ts_ns"] * 1e-9, dtype=np.float64)


def cycle_s(event: str, mode: str = "") -> Callable[[Run], float]:
    """Makes the measure of the median time between such events, in s."""
    return lambda run: float(np.median(np.diff(times_s(run, event, mode))))


def acks_median(name: str, scale: float = 1.0) -> Callable[[Run], float]:
    """Makes the measure of the median over ACKs of a field of the cc records.

    obs0 to obs3 are what a control observes.
    """
    return lambda run: scale * float(np.median(after_warmup(run, "cc")[name]))


def acks_mean(name: str, scale: float = 1.0) -> Callable[[Run], float]:
    return lambda run: scale * float(np.mean(after_warmup(run, "cc")[name]))


def rtt_peak_ms(run: Run) -> float:
    return float(np.max(after_warmup(run, "interval")["rtt_max_ns"])) / 1e6


def rtt_trough_ms(run: Run) -> float:
    """Returns the smallest of the intervals' longest round trips."""
    longest = after_warmup(run, "interval")["rtt_max_ns"]
    return float(np.min(longest[longest > 0])) / 1e6


def l4s_p99_ms(run: Run) -> float:
    """Returns the 99th percentile of the first group's time in the queue."""
    sent = of_kind(run, "packets", "dequeue")
    first = sent["flow_id"] < run.summary.groups[0].flows
    return percentile(sent["sojourn_ns"][first], 99) / 1e6


def jfi(run: Run) -> float:
    return units.measured(run.summary.jfi)


def churn_jfis(run: Run) -> Floats:
    """Returns Jain's index of the flows that are there, of each second of c6.yaml of copa."""
    found = []
    for second in range(19):
        here = np.arange(max(0, second - 9), min(second, 9) + 1)
        records = within(run, "interval", second, second + 1)
        delivered = np.bincount(records["flow_id"], records["delivered_bytes"], minlength=10)
        found.append(jain(delivered[here]))
    return np.asarray(found, dtype=np.float64)


def churn_jfi(run: Run) -> float:
    return float(np.median(churn_jfis(run)))


@of_run
def rtt_ms(run: Run, percent: float) -> float:
    """Returns a percentile of round trips, of means weighed by their samples."""
    records = after_warmup(run, "interval")
    found = metrics.ecdf(records["rtt_mean_ns"] / 1e6, records["rtt_samples"])
    reached = metrics.quantile_of_cdf(*found, percent / 100)
    return math.nan if reached is None else reached


def jain(shares: npt.ArrayLike) -> float:
    """Returns Jain's index; not a number if there is nothing."""
    found = metrics.jfi(np.asarray(shares, dtype=np.float64))
    return math.nan if found is None else found


def fair(run: Run) -> float:
    """Returns Jain's index of one flow of each group."""
    return jain(goodputs(run))


def goodputs(run: Run) -> Floats:
    """Returns the goodput of one flow of each group, in Mbit/s."""
    return np.array([group.goodput_bps / group.flows / 1e6 for group in run.summary.groups])


def sojourn_ms(run: Run, key: str, link: str = "forward") -> float:
    """Returns a figure of a link's time in the queue; not a number when nothing has left it."""
    found = units.known(getattr(run.summary.links[link], key))
    return math.nan if found is None else found / 1e6


def queue_ms(run: Run, link: str = "forward") -> float:
    return sojourn_ms(run, "queue_mean_ns", link)


def only_queue_ms(run: Run) -> float:
    """Returns the mean time in the queue of the only link of a run."""
    (link,) = run.summary.links
    return queue_ms(run, link)


def used(run: Run) -> float:
    return utilisation(run) / 100


def flow_goodputs(run: Run, from_s: float, to_s: float) -> Floats:
    """Returns Mbit/s of each flow, by its number, from the intervals that end within a time."""
    records = within(run, "interval", from_s, to_s)
    flows = sum(group.flows for group in run.summary.groups)
    delivered = np.bincount(records["flow_id"], records["delivered_bytes"], minlength=flows)
    return np.asarray(delivered * 8 / (to_s - from_s) / 1e6, dtype=np.float64)


def rtx_per_acked(run: Run, group: int = 0) -> float:
    """Returns bytes sent again over bytes acknowledged, as mvfst has it; segments are full."""
    found = run.summary.groups[group]
    if found.acked_bytes == 0:
        return math.nan
    return units.measured(found.retransmits) * PAYLOAD_BYTES / float(found.acked_bytes)
