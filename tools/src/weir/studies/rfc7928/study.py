# SPDX-License-Identifier: BSD-3-Clause
"""RFC 7928, characterization guidelines for AQM: its scenarios, once for each queue discipline.

The RFC names scenarios and metrics and no thresholds. So most rows are shown. Judged are the order
that an AQM is for (section 1.1: less delay than a drop-tail queue of the same size), and the target
that the discipline has in its own document, at the flow counts of section 8.2.1 and at those with
which this drop-tail queue loses what the section names. Rates and round trips are ours.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from weir.base import units
from weir.study.claim import Claim, Experiment, Setup, Study
from weir.study.measures import of_kind, percentile, queue_ms, utilisation
from weir.study.scenario import (
    Case,
    Measure,
    at_rate_ms,
    between_ms,
    goodput_between,
    lost_percent,
    marked_percent,
    median_ms,
    of_group,
    p99_ms,
    ratio,
    settled_s,
    share_percent,
    shown,
    transfers_ms,
)

if TYPE_CHECKING:
    from weir.analysis.folder import Run

HERE = Path(__file__).parent
CONFIG = HERE / "dumbbell.yaml"
LIMIT = "limit: 1BDP"
ORDER = "section 1.1; the order alone: the text gives no number"
BAND = "our own band: the text gives no number; twice the discipline's own target"
PACKETS = round(2 * 20e6 * 0.1 / 8 / 1500)  # S of section 8.2.1: the BDP and the buffer
# Flows for each level: as the text has them (8.2.2 to 8.2.4), and, found by trial, those that lose
# 0.1, 0.5 and 1 % in this drop-tail queue, where the text's lose 0.4, 1.7 and 2.7 %.
MILD, MEDIUM, HEAVY = (round(part * PACKETS) for part in (0.036, 0.081, 0.114))
LEVELS = (
    ("8.2.2", "mild", MILD, "ROUND(0.036 S)"),
    ("8.2.3", "medium", MEDIUM, "ROUND(0.081 S)"),
    ("8.2.4", "heavy", HEAVY, "ROUND(0.114 S)"),
    ("8.2.2-6", "mild", 6, "which lose 0.1 % in the drop-tail queue"),
    ("8.2.3-13", "medium", 13, "which lose 0.5 % in the drop-tail queue"),
    ("8.2.4-20", "heavy", 20, "which lose 1 % in the drop-tail queue"),
)
ROUND_ROBIN = (
    "each flow has a queue of its own, and a packet waits while the others send theirs: a round of"
    " 27 queues with a packet each takes 16.6 ms, whatever the target (with FQ-CoDel's at 1 ms the"
    " median of 27 flows is 25.4 ms, with an interval of 20 ms besides 16.4)"
)
# Why the median exceeds its bound, by discipline.
WHY = {
    "codel": "CoDel comes to more drops only by its count, which grows with the square of the time"
    " above the target and begins again below it: 27 flows need 41 drops a second, and their median"
    " of 16.4 ms is 12.5 with a target of 1 ms, but 8.3 with an interval of 50 ms",
    "fq_codel": ROUND_ROBIN,
    "fq_pie": ROUND_ROBIN,
    "cake": ROUND_ROBIN,
}
PIE_AT_0 = (
    "in each 100 ms at 100 Mbit/s the queue empties, and PIE's probability, which has come to about"
    " 1 %, falls to 0 with all that it has accumulated: PIE drops next to nothing, and the delay is"
    " that of drop-tail"
)
# Why there is more delay than with drop-tail, by discipline and case.
ORDER_WHY = {
    ("docsis_pie", "8.2.6-2"): PIE_AT_0,
    ("fq_pie", "8.2.6-2"): PIE_AT_0,
    (
        "cake",
        "7.2-I",
    ): "nothing queues here but the bursts of the page. CAKE's fairness to hosts lets"
    " its six connections end, and so begin, together, in bursts of 60 packets; with isolation:"
    " flows it has 0.78",
}


@dataclass(frozen=True)
class Discipline:
    """A queue, and what its own document says of its delay."""

    name: str
    keys: str = LIMIT
    target_ms: float | None = None
    source: str = ""
    marks: str | None = None  # its keys where it marks; None: it cannot
    ecn: bool = False  # it acts on packets with ECN alone

    def queue(self, marks: bool) -> str:
        keys = self.marks if marks and self.marks is not None else self.keys
        return f"{{{self.name}: {{{keys}}}}}"


MARKING = f"{LIMIT}, ecn: yes"
DISCIPLINES = (
    Discipline("fifo"),
    Discipline("codel", target_ms=5, source="RFC 8289, section 4.4", marks=MARKING),
    Discipline("cobalt", target_ms=5, source="COBALT, LANMAN 2019", marks=MARKING),
    Discipline("pie", target_ms=15, source="RFC 8033, section 4.2", marks=MARKING),
    Discipline("docsis_pie", target_ms=10, source="RFC 8034"),
    Discipline(
        "red", f"{LIMIT}, adaptive: yes", 5, "Adaptive RED, 2001", f"{MARKING}, adaptive: yes"
    ),
    Discipline("step", marks=LIMIT, ecn=True),
    Discipline("drr"),
    Discipline("fq_codel", target_ms=5, source="RFC 8290, section 5.2.1", marks=MARKING),
    Discipline("fq_pie", target_ms=15, source="RFC 8033, section 4.2", marks=MARKING),
    Discipline("dualpi2", target_ms=15, source="RFC 9332, appendix A", marks=LIMIT),
    Discipline("cake", target_ms=5, source="Piece of CAKE, LANMAN 2018", marks=MARKING),
)


def many(count: int, more: str = "") -> str:
    return f"name: NewReno, count: {count}, cc: newreno, jitter: 5s{more}"


def one(name: str, cc: str, more: str = "") -> str:
    return f"name: {name}, cc: {cc}{more}"


def web(pages: int) -> str:
    source = f"{{closed: {{think: 0s, sizes: {{law: fixed, mean: {OBJECT_BYTES}B}}}}}}"
    return f"name: web, count: {CONNECTIONS * pages}, cc: newreno, source: {source}"


def page_ms(group: int, percent: float) -> Measure:
    """Makes the measure of a percentile of the times in which six connections load 50 objects."""

    def measure(run: Run) -> float:
        records = of_kind(run, "transfers", "close")
        own = np.sort(records[records["group"] == group], order="start_ns")
        users = (own["flow_id"] - own["flow_id"].min()) // CONNECTIONS
        times: list[float] = []
        for user in np.unique(users):
            objects = own[users == user]
            whole = len(objects) // OBJECTS * OBJECTS
            begun, ended = (
                objects[key][:whole].reshape(-1, OBJECTS).astype(np.float64)
                for key in ("start_ns", "ts_ns")
            )
            times.extend((ended.max(axis=1) - begun.min(axis=1)) / 1e6)
        return percentile(times, percent)

    return measure


def lost_of_group(group: int) -> Measure:
    """Makes the measure of a group's drops, in percent of the segments that it sent."""

    def measure(run: Run) -> float:
        own = run.summary.groups[group]
        return 100 * units.measured(own.drops) / own.sent_segs if own.sent_segs else math.nan

    return measure


def also(link: str, word: str) -> tuple[tuple[str, Measure, str], ...]:
    """Makes the usual measurements of another link."""
    return tuple(
        (f"{word}: {says}", partial(measure, link=link), unit) for says, _, measure, unit in USUAL
    )


def phases(*words: str) -> tuple[tuple[str, Measure, str], ...]:
    """Makes the measures of delay and goodput of each 20 s after the first."""
    rows: list[tuple[str, Measure, str]] = []
    for at, word in zip(range(20, 100, 20), words, strict=True):
        where = f"from {at} to {at + 20} s, {word}"
        rows += [
            (f"{where}: mean delay", between_ms(at, at + 20), "ms"),
            (f"{where}: goodput", goodput_between(at, at + 20), "Mbit/s"),
        ]
    return tuple(rows)


def pages_of(group: int) -> tuple[tuple[str, Measure, str], ...]:
    return (
        ("a page of 50 objects: median completion (2.1)", page_ms(group, 50), "ms"),
        ("a page of 50 objects: 95th percentile (2.1)", page_ms(group, 95), "ms"),
    )


def between_categories(first: str, second: str) -> tuple[tuple[str, Measure, str], ...]:
    """Makes the measures that section 6.3 asks for, of the first and the second group."""
    goodput = partial(of_group, "goodput_bps", scale=1e-6)
    return (
        (f"category I, {first}: goodput", goodput(0), "Mbit/s"),
        (f"category II, {second}: goodput", goodput(1), "Mbit/s"),
        ("category II over category I: goodput", ratio(1, 0), "times"),
        ("category I: packets dropped", lost_of_group(0), "%"),
        ("category II: packets dropped", lost_of_group(1), "%"),
    )


# What is measured in each case, the section that defines it, and how.
USUAL: tuple[tuple[str, str, Measure, str], ...] = (
    ("goodput and its headers: the link is used", "2.5", utilisation, "%"),
    ("packets dropped", "2.3", lost_percent, "%"),
    ("latency: mean time in the queue", "2.6", queue_ms, "ms"),
    ("latency and jitter: 99th percentile", "2.6", p99_ms, "ms"),
)
OBJECTS, OBJECT_BYTES, CONNECTIONS = 50, 14000, 6  # section 7.2; an object is a window of 10
CBR = "name: CBR, source: {udp: {rate: 1Mbit, size: 200B}}"
VOIP = "source: {udp: {rate: 64kbit, size: 160B}}"
VIDEO = "name: video, cc: newreno, source: {video: {}}"
BULK = one("bulk", "newreno")
BACK = ", path: {forward: reverse, reverse: forward}"
REVERSE = (
    "paths.reverse=[{link: {rate: RATE, queue: {fifo: {limit: 1BDP}}}}, {delay: {delay: 50ms}}]"
)
BURSTS = (
    ("I", (web(1), CBR)),
    ("II", (web(1), CBR, BULK)),
    ("III", (web(1), CBR, VIDEO)),
    ("IV", (web(1), CBR, VIDEO, BULK)),
)
CASES = (
    Case(
        "5.1.1",
        "a TCP-friendly sender: a NewReno flow with an initial window of 3",
        (one("NewReno", "{newreno: {initial: 3}}"),),
    ),
    *(
        Case(
            f"5.1.2-{window}",
            f"TCP-friendly senders: a long flow, from 20 s on 60 kB from a window of {window}",
            (
                one("NewReno", "newreno"),
                one(
                    "short",
                    f"{{newreno: {{initial: {window}}}}}",
                    ", start: 20s, source: {closed: {sizes: {law: fixed, mean: 60kB}}}",
                ),
            ),
            more=(("60 kB: median completion", transfers_ms("completion_p50_ns", 1), "ms"),),
        )
        for window in (3, 10)
    ),
    Case("5.2", "an aggressive sender: a CUBIC flow", (one("CUBIC", "cubic"),)),
    Case(
        "5.3-1",
        "an unresponsive sender: UDP at 25 Mbit/s, more than the link has",
        ("name: UDP, source: {udp: {rate: 25Mbit}}",),
    ),
    Case(
        "5.3-2",
        "an unresponsive sender: UDP at 15 Mbit/s beside a NewReno flow",
        (one("NewReno", "newreno"), "name: UDP, source: {udp: {rate: 15Mbit}}"),
        more=(("what is left to TCP of all goodput", share_percent(0), "%"),),
    ),
    Case(
        "5.4",
        "a less-than-best-effort sender: LEDBAT (target 5 ms, gain 10) beside NewReno",
        (one("NewReno", "newreno"), one("LEDBAT", "{ledbat: {target: 5ms, gain: 10}}")),
        more=(("LEDBAT's goodput over NewReno's", ratio(1, 0), "times"),),
    ),
    *(
        Case(
            f"6.2-{ms}",
            f"round trips of 100 ms and of {ms} ms: a NewReno flow each",
            (
                one("100ms", "newreno", ", base_rtt: 100ms"),
                one("other", "newreno", f", base_rtt: {ms}ms"),
            ),
            (
                "paths.forward=[{link: {rate: 20Mbit, queue: {fifo: {limit: 250kB}}}}]",
                "paths.reverse=[{delay: {delay: 1ms}}]",
            ),
            more=between_categories("100 ms", f"{ms} ms"),
        )
        for ms in (5, 30, 560)
    ),
    *(
        Case(
            f"7.2-{number}",
            f"bursts, case {number}: " + ", ".join(flow[6:].partition(",")[0] for flow in flows),
            flows,
            more=(
                *pages_of(0),
                ("constant rate: goodput of 1 Mbit/s", of_group("goodput_bps", 1, 1e-6), "Mbit/s"),
            ),
        )
        for number, flows in BURSTS
    ),
    *(
        Case(place, f"{word} congestion: {count} flows, {whence}", (many(count),))
        for place, word, count, whence in LEVELS
    ),
    Case(
        "8.2.5",
        "a varying level, from 20 s on: 20 s each of mild, medium, heavy and mild",
        (
            many(MILD),
            f"name: second, count: {MEDIUM - MILD}, cc: newreno, start: 40s, stop: 80s",
            f"name: third, count: {HEAVY - MEDIUM}, cc: newreno, start: 60s, stop: 80s",
        ),
        ("duration=100s",),
        more=phases("mild", "medium", "heavy", "mild"),
    ),
    Case(
        "8.2.6-1",
        f"a varying capacity, from 20 s on: 100 and 10 Mbit/s, 20 s each, for {MILD} flows",
        (many(MILD),),
        (
            "duration=100s",
            "paths.forward.link.rate=100Mbit",
            "schedule=[{at: 40s, forward.link.rate: 10Mbit}, {at: 60s, forward.link.rate: 100Mbit},"
            " {at: 80s, forward.link.rate: 10Mbit}]",
        ),
        more=(
            *phases("100 Mbit/s", "10 Mbit/s", "100 Mbit/s", "10 Mbit/s"),
            ("after the first fall the delay is above 50 ms for", settled_s(40, 60, 50), "s"),
        ),
    ),
    Case(
        "8.2.6-2",
        f"a varying capacity: 100 and 10 Mbit/s, 100 ms each, for {MILD} flows",
        (many(MILD),),
        (
            "paths.forward=[{replay: {file: phases.csv, queue: {fifo: {limit: 1BDP}}}},"
            " {delay: {delay: 50ms}}]",
        ),
        more=tuple((f"mean delay at {mbps} Mbit/s", at_rate_ms(mbps), "ms") for mbps in (100, 10)),
    ),
    Case(
        "9.1",
        "a traffic mix: VoIP in both directions, six web pages, a constant rate, video, five bulk",
        (
            f"name: VoIP, {VOIP}",
            f"name: VoIP back, {VOIP}{BACK}",
            web(6),
            CBR,
            VIDEO,
            many(5),
        ),
        more=pages_of(2),
    ),
    *(
        Case(
            f"9.2-{mbps}",
            f"both directions, mild: {MILD} flows on 20 Mbit/s, {back} back on {mbps} Mbit/s",
            (many(MILD), many(back, BACK).replace("NewReno", "back")),
            (REVERSE.replace("RATE", f"{mbps}Mbit"),),
            more=also("reverse", "the other direction, drop-tail"),
        )
        for mbps, back in ((20, MILD), (2, round(MILD / 10)))
    ),
    Case(
        "10.2",
        "the discipline twice: six flows pass a link of 8 Mbit/s, then with six others the link",
        (
            many(MILD // 2, ", path: {forward: [first, forward], reverse: reverse}"),
            many(MILD // 2).replace("NewReno", "others"),
        ),
        ("paths.first=[{link: {rate: 8Mbit, queue: {fifo: {limit: 1BDP}}}}]",),
        more=also("first", "the first link"),
    ),
    Case(
        "4.4",
        "packet sizes: as 8.2.2, with packets of 500 bytes from half of the flows",
        (
            many(MILD // 2, ", mss: 460B").replace("NewReno", "small"),
            many(MILD // 2).replace("NewReno", "large"),
        ),
        more=between_categories("500 bytes", "1500 bytes"),
    ),
    *(
        Case(
            f"12.1-{rate}",
            f"no parameter is changed at {rate} Mbit/s",
            (many(10),),
            (f"paths.forward.link.rate={rate}Mbit",),
        )
        for rate in (2, 200)
    ),
)
ROUND_TRIPS = tuple(case for case in CASES if case.name.startswith("6.2"))


def with_ecn(case: Case) -> Case:
    """Makes a case of section 6.2 as section 4.5 has it: senders' packets may be marked."""
    return replace(case, name=case.name.replace("6.2", "4.5"), title=f"ECN: {case.title}")


def override(case: Case, discipline: Discipline) -> tuple[str, ...]:
    """Makes a case's options, and the queue of each link that has the discipline."""
    marks, changes = section(case) == "4.5", " ".join(case.changes)
    options = case.options()
    if marks or discipline.ecn:
        options = tuple(option.replace("cc: ", "ecn: ect0, cc: ") for option in options)
    queue = discipline.queue(marks)
    if "limit: 250kB" in changes:  # such a path does not know its round trip
        queue = queue.replace(LIMIT, "limit: 250kB")
    links = ["forward.replay" if "replay" in changes else "forward.link"]
    if "paths.first" in changes:
        links.append("first.link")
    return (*options, *(f"paths.{link}.queue={queue}" for link in links))


def setup(case: Case, discipline: Discipline) -> Setup:
    return Setup(f"{case.name}-{discipline.name}", CONFIG, override(case, discipline))


def section(case: Case) -> str:
    return case.name.partition("-")[0]


def usual(case: Case, own: Setup) -> Iterator[Claim]:
    for says, where, measure, unit in USUAL:
        yield shown(says, f"sections {section(case)} and {where}", (own,), measure, unit)
    for says, measure, unit in case.more:
        yield shown(says, f"section {section(case)}", (own,), measure, unit)


def less_delay(case: Case, discipline: Discipline, own: Setup) -> Claim:
    """Claims what an AQM is for."""
    return Claim(
        "mean delay, over that of a drop-tail queue of the same size",
        f"sections {section(case)} and 1.1",
        "direction",
        (own, setup(case, DISCIPLINES[0])),
        lambda run, fifo: queue_ms(run) / queue_ms(fifo),
        "times",
        high=1,
        tolerance=ORDER,
        why=ORDER_WHY.get((discipline.name, case.name), ""),
    )


def near_target(case: Case, discipline: Discipline, own: Setup) -> Claim:
    """Claims that the discipline keeps its own promise."""
    return Claim(
        f"median delay, beside a target of {discipline.target_ms:g} ms",
        f"section {section(case)}; {discipline.source}",
        "direction",
        (own,),
        median_ms,
        "ms",
        high=2 * (discipline.target_ms or 0),
        tolerance=BAND,
        why=WHY.get(discipline.name, ""),
    )


def experiment(case: Case, discipline: Discipline) -> Experiment:
    """Makes a case on a discipline's page."""
    own = setup(case, discipline)
    claims = list(usual(case, own))
    if discipline.target_ms is not None:
        claims.append(less_delay(case, discipline, own))
        if case.name.startswith(("8.2.2", "8.2.3", "8.2.4")):
            claims.append(near_target(case, discipline, own))
    return Experiment(case.name, case.title, tuple(claims))


def marking(plain: Case, discipline: Discipline) -> Experiment:
    """Makes section 4.5 of a case, or says why there is nothing to run."""
    case = with_ecn(plain)
    if discipline.marks is None:
        why = Claim("ECN", "section 4.5", "not comparable", why="this discipline does not mark")
        return Experiment(case.name, case.title, (why,))
    own = setup(case, discipline)
    claims = [
        *usual(case, own),
        shown("packets marked", "section 4.5", (own,), marked_percent, "%"),
    ]
    if not discipline.ecn:
        fewer = Claim(
            "packets dropped, less those that are dropped of senders without ECN",
            "section 4.5",
            "direction",
            (own, setup(plain, discipline)),
            lambda run, without: lost_percent(run) - lost_percent(without),
            "%",
            high=0,
            tolerance=ORDER,
        )
        claims.append(fewer)
    return Experiment(case.name, case.title, tuple(claims))


NOT_RUN = Experiment(
    "Rest",
    "what is not run",
    (
        Claim(
            "a scheduler beside the AQM (section 4.6)",
            "section 4.6",
            "not comparable",
            why="drr, fq_codel, fq_pie, dualpi2 and cake schedule themselves: their pages are it.",
        ),
        Claim(
            "implementation cost (section 11)",
            "section 11",
            "not comparable",
            why="`weir bench aqm` measures ns per packet and memory of each discipline.",
        ),
        Claim(
            "parameters and stability (section 8.3)",
            "section 8.3",
            "not comparable",
            why="the section asks for an analysis of the control law, which no run is.",
        ),
    ),
)


def study(discipline: Discipline) -> Study:
    """Makes the matrix of one discipline."""
    experiments = [experiment(case, discipline) for case in CASES]
    marked = [marking(case, discipline) for case in ROUND_TRIPS]

    return Study(
        f"rfc7928-{discipline.name}",
        f"{discipline.name} under RFC 7928",
        "N. Kuhn, P. Natarajan, N. Khademi, D. Ros, Characterization Guidelines for Active Queue"
        " Management (AQM), RFC 7928, 2016",
        (*experiments, *marked, NOT_RUN),
        HERE,
        (discipline,),
    )


STUDIES = tuple(study(discipline) for discipline in DISCIPLINES)
