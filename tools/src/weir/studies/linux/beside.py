# SPDX-License-Identifier: BSD-3-Clause
"""Bounds between ours and Linux's, the rows of the table, and why some rows are outside.

A row outside a bound without a reason (reasons.yaml) is an open question, and the study says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from weir.base import units
from weir.studies.linux.cases import ALL, SIDES, Comparison, Pair, Side
from weir.study import written

GOODPUT_OFF = 0.02
RTT_OFF = 0.03
LOSSES_OFF = 0.15  # of marks too
LOSSES_FEW = 5  # as few losses more or less are the phase of a sawtooth, not a rate
START_FACTOR = 1.5  # losses at the start, in either direction
QUOTA_OFF = 0.05

COLUMNS = (
    "link",
    "queue",
    "control",
    *("goodput: Linux", "Weir", "diff.", "its source"),
    *("RTT: Linux", "Weir", "diff.", "its source"),
    *("losses at start: Linux", "Weir"),
    *("after: Linux", "Weir"),
    *("marks: Linux", "Weir"),
    "bounds",
)
MIX_COLUMNS = (
    "queue",
    "mix",
    "its first: Linux",
    "Weir",
    *("diff.", "its source"),
    *("RTT: Linux", "Weir"),
    "bounds",
)
START_COLUMNS = ("link", "queue", "Linux HyStart", "Weir HyStart", "Weir HyStart++")
NO_REASON = "NOT EXPLAINED"
WORDS = {
    "goodput_bps": "goodput",
    "rtt_ms": "RTT",
    "losses_start": "losses at start",
    "losses": "losses",
    "marks": "marks",
    "quota": "goodput",
}


@dataclass(frozen=True)
class Reason:
    """A reason why rows differ: of these controls, in these quantities, on these links if given."""

    sentence: str
    controls: tuple[tuple[str, ...], ...]
    quantities: tuple[str, ...]
    queues: tuple[str, ...] = ()  # none: all
    links: tuple[str, ...] = ()  # none: all

    def holds(self, case: Comparison, quantity: str) -> bool:
        """Returns whether the reason explains a case's difference in a quantity."""
        return (
            case.controls in self.controls
            and quantity in self.quantities
            and (not self.queues or case.queue in self.queues)
            and (not self.links or case.link.name in self.links)
        )


REASONS = written.rows(Path(__file__).with_name("reasons.yaml"), tuple[Reason, ...])


@dataclass(frozen=True)
class Difference:
    """A row outside a bound."""

    case: Comparison
    quantity: str
    amount: str
    source: str  # how far with the kernel's own control in our TCP, or "within"; "": not in a file
    reason: str  # empty: nobody knows


def near_losses(theirs: float, ours: float) -> bool:
    """Returns whether losses differ by no more than a part, or a few packets."""
    return abs(ours - theirs) <= max(LOSSES_OFF * theirs, LOSSES_FEW)


def near_start(theirs: float, ours: float) -> bool:
    """Returns whether losses at the start differ by no more than a factor, or a few packets."""
    few = abs(ours - theirs) <= LOSSES_FEW
    return few or max(theirs, ours) <= START_FACTOR * min(theirs, ours)


def outside(pair: Pair, side: Side = "weir") -> list[tuple[str, str]]:
    """Lists the quantities of a side that are outside their bounds, each with how far."""
    if pair.case.mixed:
        off = pair.mean(side, "quota") - pair.mean("linux", "quota")
        return [("quota", f"{off:+.3f}")] if abs(off) > QUOTA_OFF else []
    found = []
    for name, bound in (("goodput_bps", GOODPUT_OFF), ("rtt_ms", RTT_OFF)):
        if abs(off := pair.relative(name, side)) > bound:
            found.append((name, percent(off)))
    for name, near in (
        ("losses_start", near_start),
        ("losses", near_losses),
        ("marks", near_losses),
    ):
        theirs, ours = pair.mean("linux", name), pair.mean(side, name)
        if not near(theirs, ours):
            found.append((name, f"{ours:.0f} for {theirs:.0f}"))
    return found


def differences(pairs: Iterable[Pair]) -> list[Difference]:
    """Lists all rows outside a bound, with their reasons."""
    found = []
    for pair in pairs:
        source = dict(outside(pair, "source")) if "source" in pair.runs else None
        for quantity, amount in outside(pair):
            reasons = [r.sentence for r in REASONS if r.holds(pair.case, quantity)]
            of_source = "" if source is None else source.get(quantity, "within")
            reason = reasons[0] if reasons else ""
            found.append(Difference(pair.case, quantity, amount, of_source, reason))
    return found


def verdict(pair: Pair) -> str:
    """Says whether a row is within all bounds, and whether the reason is known if not."""
    found = differences([pair])
    if not found:
        return "within"
    open_ones = [one.quantity for one in found if not one.reason]
    if open_ones:
        return f"{', '.join(WORDS[one] for one in open_ones)}: {NO_REASON}"
    return f"{', '.join(WORDS[one.quantity] for one in found)}: explained"


def title(case: Comparison) -> str:
    return " beside ".join(ALL[cc].name for cc in case.controls)


def percent(ratio: float) -> str:
    return f"{100 * ratio:+.1f} %"


def alone_rows(pairs: Iterable[Pair]) -> list[list[str]]:
    """Makes the table of flows alone."""
    rows = []
    for pair in pairs:
        if pair.case.mixed:
            continue
        row = [pair.case.link.name, pair.case.queue, title(pair.case)]
        for name, scale in (("goodput_bps", 1e6), ("rtt_ms", 1.0)):
            theirs, ours = (pair.mean(side, name) / scale for side in ("linux", "weir"))
            row += [units.number(theirs), units.number(ours), percent(pair.relative(name))]
            sourced = "source" in pair.runs
            row.append(percent(pair.relative(name, "source")) if sourced else units.NONE)
        for name in ("losses_start", "losses"):
            row += [f"{pair.mean(side, name):.0f}" for side in ("linux", "weir")]
        marks = [f"{pair.mean(side, 'marks'):.0f}" for side in ("linux", "weir")]
        row += marks if pair.case.marks else [units.NONE] * 2
        rows.append([*row, verdict(pair)])
    return rows


def mix_rows(pairs: Iterable[Pair]) -> list[list[str]]:
    """Makes the table of mixes: what the first control's flows get of the goodput."""
    rows = []
    for pair in pairs:
        if not pair.case.mixed:
            continue
        theirs, ours = (pair.mean(side, "quota") for side in ("linux", "weir"))
        rtts = [units.number(pair.mean(side, "rtt_ms")) for side in ("linux", "weir")]
        row = [pair.case.queue, title(pair.case), f"{theirs:.3f}", f"{ours:.3f}"]
        row.append(f"{ours - theirs:+.3f}")
        sourced = "source" in pair.runs
        row.append(f"{pair.mean('source', 'quota') - theirs:+.3f}" if sourced else units.NONE)
        rows.append([*row, *rtts, verdict(pair)])
    return rows


def start_rows(pairs: Iterable[Pair]) -> list[list[str]]:
    """Lists what CUBIC loses before the warm-up's end, by its slow start."""
    return [
        [pair.case.link.name, pair.case.queue]
        + [f"{pair.mean(side, 'losses_start'):.0f}" for side in (*SIDES, "weir-hystartpp")]
        for pair in pairs
        if pair.case.controls == ("cubic",)
    ]


def headline(pairs: Sequence[Pair]) -> str:
    """Counts the rows that are within all bounds, and what of the others."""
    within = sum(not outside(pair) for pair in pairs)
    found = differences(pairs)
    open_ones = len({one.case.name for one in found if not one.reason})
    explained = len(pairs) - within - open_ones
    return (
        f"{within} of {len(pairs)} rows are within all bounds, {explained} are outside one for a"
        f" reason that is known, {open_ones} for none"
    )


def by_source(pairs: Sequence[Pair]) -> str:
    """Counts the rows of the kernel's own control in our TCP; "": there is none."""
    those = [pair for pair in pairs if "source" in pair.runs]
    within = sum(not outside(pair, "source") for pair in those)
    alone = [abs(p.relative("goodput_bps", "source")) for p in those if not p.case.mixed]
    return (
        f"With Linux's own control in our TCP {within} of {len(those)} rows are within all bounds,"
        f" and {sum(off <= 0.01 for off in alone)} of {len(alone)} flows alone within 1 % of its"
        " goodput. What differs then, too, is the transport's, not the control's."
        if those
        else ""
    )
