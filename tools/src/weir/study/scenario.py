# SPDX-License-Identifier: BSD-3-Clause
"""Cases of test suites: one bottleneck with other flows in each, and what is measured there."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from weir.analysis.folder import Run
from weir.base import units
from weir.study.claim import Claim, Setup
from weir.study.measures import (
    after_warmup,
    flow_goodputs,
    goodputs,
    jain,
    of_run,
    sojourn_ms,
    within,
)

Measure = Callable[..., float | None]


@dataclass(frozen=True)
class Case:
    """A case of a suite: its place in the source, its flows, and other changes.

    flows: items of the config's list, `CC` in them the control that is tried. changes: overrides.
    more: what is measured besides the usual, with its unit.
    """

    name: str  # 5.1.1, as the source counts
    title: str
    flows: tuple[str, ...] = ()
    changes: tuple[str, ...] = ()
    more: tuple[tuple[str, Measure, str], ...] = ()

    def options(self, control: str = "CC") -> tuple[str, ...]:
        flows = ", ".join("{" + flow.replace("CC", control) + "}" for flow in self.flows)
        return (f"flows=[{flows}]", *self.changes) if flows else self.changes


def shown(says: str, source: str, setups: tuple[Setup, ...], measure: Measure, unit: str) -> Claim:
    """Makes the claim of a measurement that the source asks for and does not judge."""
    return Claim(says, source, "shown", setups, measure, unit)


def cannot(says: str, source: str, why: str) -> Claim:
    """Makes the claim of what cannot be run here."""
    return Claim(says, source, "not comparable", why=why)


def lost_percent(run: Run, link: str = "forward") -> float:
    """Returns the packets that a link dropped, in percent of those that came."""
    own = run.summary.links[link]
    arrived = own.drops + own.out_pkts
    return 100 * float(own.drops) / arrived if arrived else math.nan


def marked_percent(run: Run) -> float:
    """Returns the packets that the link marked, in percent of those that left it."""
    link = run.summary.links["forward"]
    return 100 * float(link.marks) / link.out_pkts if link.out_pkts else math.nan


def p99_ms(run: Run, link: str = "forward") -> float:
    """Returns the time in the queue that one packet of a hundred exceeds."""
    return sojourn_ms(run, "sojourn_p99_ns", link)


def median_ms(run: Run) -> float:
    return sojourn_ms(run, "sojourn_p50_ns")


def of_group(key: str, group: int, scale: float = 1.0) -> Measure:
    return lambda run: scale * units.measured(getattr(run.summary.groups[group], key))


def of_link(key: str, scale: float = 1.0, link: str = "forward") -> Measure:
    return lambda run: scale * units.measured(getattr(run.summary.links[link], key))


def per_flow(group: int) -> Measure:
    """Makes the measure of the goodput of one flow of a group, in Mbit/s."""
    return lambda run: goodputs(run)[group]


@of_run
def transfers_ms(run: Run, key: str, group: int) -> float | None:
    found = units.known(getattr(run.summary.groups[group].transfers, key))
    return None if found is None else found / 1e6


@of_run
def ratio(run: Run, first: int, second: int) -> float:
    """Returns the goodput of one flow of a group over that of one of another."""
    each = [group.goodput_bps / group.flows for group in run.summary.groups]
    return float(each[first] / each[second]) if each[second] else math.inf


@of_run
def share_percent(run: Run, group: int) -> float:
    rates = [one.goodput_bps for one in run.summary.groups]
    return 100 * float(rates[group]) / sum(rates) if sum(rates) else math.nan


@of_run
def late_jfi(run: Run, last_s: float) -> float:
    """Returns Jain's index of all flows in the last seconds."""
    end_s = units.measured(run.summary.virtual_s)
    return jain(flow_goodputs(run, end_s - last_s, end_s))


@of_run
def settled_s(run: Run, at_s: float, until_s: float, bound_ms: float) -> float:
    """Returns how long after a change an interval's mean delay exceeds a bound.

    The whole time, where it does so to the end.
    """
    own = first_link(run, at_s, until_s)
    above = own["ts_ns"][own["sojourn_mean_ns"] > bound_ms * 1e6] / 1e9
    return float(np.max(above)) - at_s if len(above) else 0.0


def first_link(run: Run, from_s: float = -math.inf, to_s: float = math.inf) -> np.ndarray:
    """Returns the records of the first link within a time."""
    records = within(run, "links", from_s, to_s)
    return np.asarray(records[records["link"] == 0])


def between_ms(from_s: float, to_s: float) -> Measure:
    """Makes the measure of the mean time in the queue of packets that left within a time."""
    return lambda run: queued_ms(first_link(run, from_s, to_s))


@of_run
def at_rate_ms(run: Run, mbps: float) -> float:
    records = after_warmup(run, "links")
    return queued_ms(records[(records["link"] == 0) & (records["rate_bps"] == mbps * 1e6)])


def queued_ms(records: np.ndarray) -> float:
    """Returns the mean time in the queue of the packets of a link's records."""
    weights = records["out_pkts"].astype(np.float64)
    if not weights.sum():
        return math.nan
    return float(np.average(records["sojourn_mean_ns"], weights=weights)) / 1e6


@of_run
def goodput_between(run: Run, from_s: float, to_s: float, group: int | None = None) -> float:
    """Returns Mbit/s of a group, or of all flows, within a time."""
    records = within(run, "interval", from_s, to_s)
    if group is not None:
        records = records[records["group"] == group]
    return float(records["delivered_bytes"].sum()) * 8 / (to_s - from_s) / 1e6
