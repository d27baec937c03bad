# SPDX-License-Identifier: BSD-3-Clause
"""RFC 7928, characterization guidelines for AQM: its scenarios, once for each queue discipline.

The RFC names scenarios and metrics and no thresholds. So most rows are shown. Judged are the order
that an AQM is for (section 1.1: less delay than a drop-tail queue of the same size), and the target
that the discipline has in its own document, at the flow counts of section 8.2.1 and at those with
which this drop-tail queue loses what the section names. Rates and round trips are ours.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from weir.study.claim import Claim, Experiment, Found, Study, Trial
from weir.study.scenario import (
    Case,
    between_ms,
    delay_ms,
    lost_percent,
    marked_percent,
    median_ms,
    of_group,
    own_jfi,
    p99_ms,
    ratio,
    settled_s,
    share_percent,
    shown,
    transfers_ms,
    used_percent,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CONFIG = "studies/rfc7928/dumbbell"
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
        """As the link's override."""
        keys = self.marks if marks and self.marks is not None else self.keys
        return f"paths.forward.link.queue={{{self.name}: {{{keys}}}}}"

    def flows(self, case: Case) -> tuple[str, ...]:
        """A case's, with ECN where the discipline acts on nothing else."""
        marked = ", ecn: ect0" if self.ecn and case.name != "4.5" else ""
        return tuple(
            option.replace("cc: newreno", f"cc: newreno{marked}") for option in case.options()
        )


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
    """Long NewReno flows that start within five seconds."""
    return f"name: NewReno, count: {count}, cc: newreno, jitter: 5s{more}"


def pages(count: int, kilobytes: int) -> str:
    """Users who load a page, wait, and load the next."""
    sizes = f"{{law: fixed, mean: {kilobytes}kB}}"
    return (
        f"name: web, count: {count}, cc: newreno, source: {{closed: {{think: 1s, sizes: {sizes}}}}}"
    )


VOICE = "name: CBR, source: {udp: {rate: 1Mbit, size: 200B}}"
VIDEO = "name: video, cc: newreno, source: {video: {}}"
LINK = "{link: {rate: 20Mbit, queue: {fifo: {limit: 250kB}}}}"
CASES = (
    Case(
        "5.1.1",
        "TCP-friendly senders, same initial window",
        (many(10),),
        more=(("fairness of the flows: Jain's index", own_jfi(0), ""),),
    ),
    Case(
        "5.1.2",
        "TCP-friendly senders, initial windows of 3 and of 10",
        (
            many(5),
            pages(5, 60)
            .replace("web", "IW 3")
            .replace("cc: newreno", "cc: {newreno: {initial: 3}}"),
            pages(5, 60).replace("web", "IW 10"),
        ),
        more=(
            (
                "60 kB from a window of 3: median completion",
                transfers_ms("completion_p50_ns", 1),
                "ms",
            ),
            (
                "60 kB from a window of 10: median completion",
                transfers_ms("completion_p50_ns", 2),
                "ms",
            ),
        ),
    ),
    Case(
        "5.2",
        "an aggressive sender: CUBIC beside NewReno",
        (many(5), "name: CUBIC, count: 5, cc: cubic, jitter: 5s"),
        more=(("a CUBIC flow's goodput over a NewReno flow's", ratio(1, 0), "times"),),
    ),
    Case(
        "5.3",
        "an unresponsive sender: UDP at the link's rate",
        (many(5), "name: UDP, source: {udp: {rate: 19Mbit}}"),
        more=(("what is left to TCP of all goodput", share_percent(0), "%"),),
    ),
    Case(
        "5.4",
        "a less-than-best-effort sender: LEDBAT beside NewReno",
        (many(5), "name: LEDBAT, count: 5, cc: ledbat, jitter: 5s"),
        more=(("a LEDBAT flow's goodput over a NewReno flow's", ratio(1, 0), "times"),),
    ),
    *(
        Case(
            f"6-{ms}",
            f"round trips of 100 ms beside {ms} ms (the ends, 5 and 560 ms, from memory)",
            (many(5), f"name: other, count: 5, cc: newreno, jitter: 5s, base_rtt: {ms}ms"),
            (
                f"paths.forward=[{LINK}]",
                "paths.reverse=[{delay: {delay: 1ms}}]",
            ),
            more=((f"a flow of {ms} ms over one of 100 ms: goodput", ratio(1, 0), "times"),),
        )
        for ms in (5, 30, 560)
    ),
    Case(
        "7",
        "bursts: pages of 100 kB from windows of 10, video and a constant rate beside bulk",
        (many(3), pages(10, 100), VIDEO, VOICE),
        more=(
            ("pages: median completion", transfers_ms("completion_p50_ns", 1), "ms"),
            ("pages: 95th percentile of completion", transfers_ms("completion_p95_ns", 1), "ms"),
            ("constant rate: goodput of 1 Mbit/s", of_group("goodput_bps", 3, 1e-6), "Mbit/s"),
        ),
    ),
    *(
        Case(place, f"{word} congestion: {count} flows, {whence}", (many(count),))
        for place, word, count, whence in LEVELS
    ),
    Case(
        "8.2.5",
        "a varying level: mild, from 20 s medium, from 40 s heavy",
        (
            many(MILD),
            f"name: second, count: {MEDIUM - MILD}, cc: newreno, start: 20s",
            f"name: third, count: {HEAVY - MEDIUM}, cc: newreno, start: 40s",
        ),
        ("warmup=10s",),
        more=tuple(
            (f"mean delay from {at} to {at + 10} s", between_ms(at, at + 10), "ms")
            for at in (10, 30, 50)
        ),
    ),
    Case(
        "8.2.6",
        "a varying capacity: 20 Mbit/s, from 30 to 45 s 5 Mbit/s",
        (many(MILD),),
        ("schedule=[{at: 30s, forward.link.rate: 5Mbit}, {at: 45s, forward.link.rate: 20Mbit}]",),
        more=(
            ("mean delay while it is slow", between_ms(30, 45), "ms"),
            ("the delay is above 50 ms for so long", settled_s(30, 45, 50), "s"),
        ),
    ),
    Case(
        "9.1",
        "a traffic mix: bulk, pages, video, a constant rate",
        (many(2), "name: CUBIC, count: 2, cc: cubic, jitter: 5s", pages(20, 50), VIDEO, VOICE),
        more=(
            ("pages: 95th percentile of completion", transfers_ms("completion_p95_ns", 2), "ms"),
        ),
    ),
    Case(
        "9.2",
        "traffic in both directions",
        (
            many(10),
            many(10, ", path: {forward: reverse, reverse: forward}").replace("NewReno", "back"),
        ),
        (f"paths.reverse=[{LINK}, {{delay: {{delay: 50ms}}}}]",),
    ),
    Case(
        "4.4",
        "small segments (536 bytes) beside large ones",
        (many(5), "name: small, count: 5, cc: newreno, mss: 536B, jitter: 5s"),
        more=(("a flow of small segments over one of large ones: goodput", ratio(1, 0), "times"),),
    ),
    *(
        Case(
            f"12-{rate}",
            f"no parameter is changed at {rate} Mbit/s",
            (many(10),),
            (f"paths.forward.link.rate={rate}Mbit",),
        )
        for rate in (2, 200)
    ),
)
ECN = Case("4.5", "ECN: the senders' packets may be marked", (many(10, ", ecn: ect0"),))


def override(case: Case, discipline: Discipline, marks: bool = False) -> tuple[str, ...]:
    """A case's options: the queue goes last, as some cases have other paths."""
    queue = discipline.queue(marks)
    if any(change.startswith("paths.forward=[") for change in case.changes):
        queue = queue.replace(LIMIT, "limit: 250kB")
    return (*discipline.flows(case), queue)


def trial(case: Case, discipline: Discipline, marks: bool = False) -> Trial:
    """A case behind a discipline."""
    return Trial(f"{case.name}-{discipline.name}", CONFIG, override(case, discipline, marks))


def usual(case: Case, own: Trial) -> Iterator[Claim]:
    """What section 2 asks of each case."""
    row = partial(shown, source=f"section {case.name.partition('-')[0]}", trials=(own,))
    yield row("goodput and its headers: the link is used", measure=used_percent, unit="%")
    yield row("packets dropped", measure=lost_percent, unit="%")
    yield row("latency: mean time in the queue", measure=delay_ms, unit="ms")
    yield row("latency and jitter: 99th percentile", measure=p99_ms, unit="ms")
    for says, measure, unit in case.more:
        yield row(says, measure=measure, unit=unit)


def less_delay(case: Case, own: Trial) -> Claim:
    """What an AQM is for."""
    return Claim(
        "mean delay, over that of a drop-tail queue of the same size",
        f"sections {case.name.partition('-')[0]} and 1.1",
        "direction",
        (own, trial(case, DISCIPLINES[0])),
        lambda run, fifo: delay_ms(run) / delay_ms(fifo),
        "times",
        high=1,
        tolerance=ORDER,
    )


def near_target(case: Case, discipline: Discipline, own: Trial) -> Claim:
    """Whether the discipline keeps its own promise."""
    return Claim(
        f"median delay, beside a target of {discipline.target_ms:g} ms",
        f"section {case.name.partition('-')[0]}; {discipline.source}",
        "direction",
        (own,),
        median_ms,
        "ms",
        high=2 * (discipline.target_ms or 0),
        tolerance=BAND,
        why=WHY.get(discipline.name, ""),
    )


def experiment(case: Case, discipline: Discipline) -> Experiment:
    """A case on a discipline's page."""
    own = trial(case, discipline)
    claims = list(usual(case, own))
    if discipline.target_ms is not None:
        claims.append(less_delay(case, own))
        if case.name.startswith(("8.2.2", "8.2.3", "8.2.4")):
            claims.append(near_target(case, discipline, own))
    return Experiment(case.name, case.title, tuple(claims))


def marking(discipline: Discipline) -> Experiment:
    """Section 4.5: of a discipline that marks, or why there is nothing to run."""
    if discipline.marks is None:
        why = Claim("ECN", "section 4.5", "not comparable", why="this discipline does not mark")
        return Experiment(ECN.name, ECN.title, (why,))
    own, plain = trial(ECN, discipline, True), trial(CASES[0], discipline)
    claims = [*usual(ECN, own), shown("packets marked", "section 4.5", (own,), marked_percent, "%")]
    if not discipline.ecn:
        fewer = Claim(
            "packets dropped, less those that are dropped of senders without ECN",
            "section 4.5",
            "direction",
            (own, plain),
            lambda run, without: lost_percent(run) - lost_percent(without),
            "%",
            high=0,
            tolerance=ORDER,
        )
        claims.append(fewer)
    return Experiment(ECN.name, ECN.title, tuple(claims))


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
            "several AQMs on one path (section 10)",
            "section 10",
            "not comparable",
            why="the scenario's parameters were not at hand; paths of several links are configs.",
        ),
    ),
)


def study(discipline: Discipline) -> Study:
    """The matrix of one discipline."""
    experiments = [experiment(case, discipline) for case in CASES]

    def figures(found: Found) -> Iterator[tuple[Figure, str]]:
        from weir.study import rfc7928_figures

        yield from rfc7928_figures.draw(found, discipline)

    return Study(
        f"rfc7928-{discipline.name}",
        f"{discipline.name} under RFC 7928",
        "N. Kuhn, P. Natarajan, N. Khademi, D. Ros, Characterization Guidelines for Active Queue"
        " Management (AQM), RFC 7928, 2016",
        (*experiments, marking(discipline), NOT_RUN),
        figures,
    )


STUDIES = tuple(study(discipline) for discipline in DISCIPLINES)
