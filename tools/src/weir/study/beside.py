# SPDX-License-Identifier: BSD-3-Clause
"""How near ours is to Linux's: bounds, the rows of the table, and why some rows are outside.

A reason is found in the traces of both runs (interval.ring, events.ring and a capture), and stands
here with the rows that it explains. A row outside a bound without a reason is an open question, and
the study says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from weir import units
from weir.study.linux import NAMES, Case, Pair

GOODPUT_OFF = 0.02
RTT_OFF = 0.03
LOSSES_OFF = 0.15
LOSSES_FEW = 5  # as few losses more or less are the phase of a sawtooth, not a rate
QUOTA_OFF = 0.05

COLUMNS = (
    "link",
    "queue",
    "control",
    *("goodput: Linux", "Weir", "diff."),
    *("RTT: Linux", "Weir", "diff."),
    *("losses at start: Linux", "Weir"),
    *("after: Linux", "Weir"),
    "bounds",
)
MIX_COLUMNS = (
    "queue",
    "mix",
    "its first: Linux",
    "Weir",
    "diff.",
    *("RTT: Linux", "Weir"),
    "bounds",
)
START_COLUMNS = ("link", "queue", "Linux HyStart", "Weir HyStart", "Weir HyStart++")
NO_REASON = "NOT EXPLAINED"


@dataclass(frozen=True)
class Reason:
    """Why some rows differ: of these controls, in these quantities, where given on these links."""

    sentence: str
    controls: tuple[tuple[str, ...], ...]
    quantities: tuple[str, ...]
    queues: tuple[str, ...] = ("fifo", "codel")
    links: tuple[str, ...] = ()  # none: all

    def holds(self, case: Case, quantity: str) -> bool:
        """Does it explain this?"""
        return (
            case.controls in self.controls
            and quantity in self.quantities
            and case.queue in self.queues
            and (not self.links or case.link.name in self.links)
        )


REASONS: tuple[Reason, ...] = ()


@dataclass(frozen=True)
class Difference:
    """A row outside a bound."""

    case: Case
    quantity: str
    amount: str
    reason: str  # empty: nobody knows


def near_losses(theirs: float, ours: float) -> bool:
    """Within the bound of a rate, or of a few packets."""
    return abs(ours - theirs) <= max(LOSSES_OFF * theirs, LOSSES_FEW)


def outside(pair: Pair) -> list[tuple[str, str]]:
    """The quantities of a case that are outside their bounds, each with how far."""
    if pair.case.mixed:
        off = pair.mean("weir", "quota") - pair.mean("linux", "quota")
        return [("quota", f"{off:+.3f}")] if abs(off) > QUOTA_OFF else []
    found = []
    for name, bound in (("goodput_bps", GOODPUT_OFF), ("rtt_ms", RTT_OFF)):
        if abs(pair.relative(name)) > bound:
            found.append((name, f"{100 * pair.relative(name):+.1f} %"))
    theirs, ours = pair.mean("linux", "losses"), pair.mean("weir", "losses")
    if not near_losses(theirs, ours):
        found.append(("losses", f"{ours:.0f} for {theirs:.0f}"))
    return found


def differences(pairs: Iterable[Pair]) -> list[Difference]:
    """All rows outside a bound, with their reasons."""
    found = []
    for pair in pairs:
        for quantity, amount in outside(pair):
            reasons = [r.sentence for r in REASONS if r.holds(pair.case, quantity)]
            found.append(Difference(pair.case, quantity, amount, reasons[0] if reasons else ""))
    return found


def verdict(pair: Pair) -> str:
    """Of a row: within all bounds, or which it is outside of, and whether the reason is known."""
    found = differences([pair])
    if not found:
        return "within"
    open_ones = [one.quantity for one in found if not one.reason]
    words = {"goodput_bps": "goodput", "rtt_ms": "RTT", "losses": "losses", "quota": "goodput"}
    if open_ones:
        return f"{', '.join(words[one] for one in open_ones)}: {NO_REASON}"
    return f"{', '.join(words[one.quantity] for one in found)}: explained"


def title(case: Case) -> str:
    """A case's controls."""
    return " beside ".join(NAMES[cc] for cc in case.controls)


def percent(ratio: float) -> str:
    """With its sign."""
    return f"{100 * ratio:+.1f} %"


def alone_rows(pairs: Iterable[Pair]) -> list[list[str]]:
    """The table of flows alone."""
    rows = []
    for pair in pairs:
        if pair.case.mixed:
            continue
        row = [pair.case.link.name, pair.case.queue, title(pair.case)]
        for name, scale in (("goodput_bps", 1e6), ("rtt_ms", 1.0)):
            theirs, ours = (pair.mean(side, name) / scale for side in ("linux", "weir"))
            row += [units.number(theirs), units.number(ours), percent(pair.relative(name))]
        for name in ("losses_start", "losses"):
            row += [f"{pair.mean(side, name):.0f}" for side in ("linux", "weir")]
        rows.append([*row, verdict(pair)])
    return rows


def mix_rows(pairs: Iterable[Pair]) -> list[list[str]]:
    """The table of mixes: what the first control's flows get of the goodput."""
    rows = []
    for pair in pairs:
        if not pair.case.mixed:
            continue
        theirs, ours = (pair.mean(side, "quota") for side in ("linux", "weir"))
        rtts = [units.number(pair.mean(side, "rtt_ms")) for side in ("linux", "weir")]
        row = [pair.case.queue, title(pair.case), f"{theirs:.3f}", f"{ours:.3f}"]
        rows.append([*row, f"{ours - theirs:+.3f}", *rtts, verdict(pair)])
    return rows


def start_rows(pairs: Iterable[Pair]) -> list[list[str]]:
    """What CUBIC loses before the warm-up's end, by its slow start."""
    return [
        [pair.case.link.name, pair.case.queue]
        + [f"{pair.mean(side, 'losses_start'):.0f}" for side in pair.case.sides()]
        for pair in pairs
        if pair.case.controls == ("cubic",)
    ]


def headline(pairs: Sequence[Pair]) -> str:
    """How many rows are within all bounds, and what of the others."""
    within = sum(not outside(pair) for pair in pairs)
    found = differences(pairs)
    open_ones = len({one.case.name for one in found if not one.reason})
    explained = len(pairs) - within - open_ones
    return (
        f"{within} of {len(pairs)} rows are within all bounds, {explained} are outside one for a"
        f" reason that is known, {open_ones} for none"
    )
