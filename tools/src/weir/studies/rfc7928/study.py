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
from dataclasses import replace
from functools import partial
from pathlib import Path

import msgspec
import numpy as np

from weir.analysis.folder import Run
from weir.base import units
from weir.base.foreign import Json
from weir.study import measures, scenario, written
from weir.study.claim import Claim, Experiment, Setup, Study
from weir.study.measures import of_kind, of_run, percentile, queue_ms, utilisation
from weir.study.scenario import (
    Case,
    Measure,
    cannot,
    lost_percent,
    marked_percent,
    median_ms,
    of_group,
    p99_ms,
    ratio,
    shown,
)

HERE = Path(__file__).parent
CONFIG = HERE / "dumbbell.yaml"
LIMIT = "limit: 1BDP"
ORDER = "section 1.1; the order alone: the text gives no number"
BAND = "our own band: the text gives no number; twice the discipline's own target"
ROUND_ROBIN = (
    "each flow has a queue of its own, and a packet waits while the others send theirs: a round of"
    " 27 queues with a packet each takes 16.6 ms, whatever the target (with FQ-CoDel's at 1 ms the"
    " median of 27 flows is 25.4 ms, with an interval of 20 ms besides 16.4)"
)
PIE_AT_0 = (
    "in each 100 ms at 100 Mbit/s the queue empties, and PIE's probability, which has come to about"
    " 1 %, falls to 0 with all that it has accumulated: PIE drops next to nothing, and the delay is"
    " that of drop-tail"
)
CAUSES = {"ROUND_ROBIN": ROUND_ROBIN, "PIE_AT_0": PIE_AT_0}  # of several queues
OBJECTS, OBJECT_BYTES, CONNECTIONS = 50, 14000, 6  # section 7.2; an object is a window of 10
WEB = f"source: {{closed: {{think: 0s, sizes: {{law: fixed, mean: {OBJECT_BYTES}B}}}}}}"
GROUPS = {  # of flows, by the names that cases.yaml has for them
    "web": f"name: web, count: {CONNECTIONS}, cc: newreno, {WEB}",
    "six_webs": f"name: web, count: {CONNECTIONS * 6}, cc: newreno, {WEB}",
    "cbr": "name: CBR, source: {udp: {rate: 1Mbit, size: 200B}}",
    "voip": "source: {udp: {rate: 64kbit, size: 160B}}",
    "video": "name: video, cc: newreno, source: {video: {}}",
}


class Discipline(msgspec.Struct, eq=False, frozen=True, forbid_unknown_fields=True):
    """A queue, and what its own document says of its delay; cases.yaml explains the keys."""

    name: str
    keys: str = LIMIT
    target_ms: int | None = None
    source: str = ""
    marks: str | None = None
    ecn: bool = False
    why: str = ""
    order: dict[str, str] = {}

    def queue(self, marks: bool) -> str:
        keys = self.marks if marks and self.marks is not None else self.keys
        return f"{{{self.name}: {{{keys}}}}}"


class Number(msgspec.Struct, forbid_unknown_fields=True):
    """A measurement, as the file has it."""

    says: str
    measure: str
    unit: str


class CaseAsked(msgspec.Struct, forbid_unknown_fields=True):
    """A case, as the file has it."""

    name: str
    title: str
    flows: tuple[str, ...]
    changes: tuple[str, ...] = ()
    more: list[Json] = []
    also: dict[str, str] = {}
    categories: tuple[str, str] | None = None

    def case(self) -> Case:
        """Makes the case with all that is measured in it."""
        known = {**vars(measures), **vars(scenario), "page_ms": page_ms}
        rows = (written.convert(row, Number) for of in self.more for row in written.repeated(of))
        more = (
            *(between_categories(*self.categories) if self.categories else ()),
            *((one.says, written.measure_of(one.measure, known), one.unit) for one in rows),
            *(row for link, word in self.also.items() for row in also(link, word)),
        )
        return Case(self.name, self.title, tuple(filter(None, self.flows)), self.changes, more)


class Matrix(msgspec.Struct, forbid_unknown_fields=True):
    """The content of cases.yaml, whose cases are not repeated yet."""

    disciplines: list[Discipline]
    cases: list[Json]
    left_out: list[dict[str, str]]


@of_run
def page_ms(run: Run, group: int, percent: float) -> float:
    """Returns a percentile of the times in which six connections load 50 objects."""
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


@of_run
def lost_of_group(run: Run, group: int) -> float:
    """Returns a group's drops, in percent of the segments that it sent."""
    own = run.summary.groups[group]
    return 100 * units.measured(own.drops) / own.sent_segs if own.sent_segs else math.nan


def also(link: str, word: str) -> tuple[tuple[str, Measure, str], ...]:
    """Makes the usual measurements of another link."""
    return tuple(
        (f"{word}: {says}", partial(measure, link=link), unit) for says, _, measure, unit in USUAL
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
MATRIX = written.rows(HERE / "cases.yaml", Matrix)
DISCIPLINES = tuple(MATRIX.disciplines)
CASES = tuple(
    written.convert(written.filled(one, GROUPS), CaseAsked).case()
    for listed in MATRIX.cases
    for one in written.repeated(listed)
)


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
    why = discipline.order.get(case.name, "")
    return Claim(
        "mean delay, over that of a drop-tail queue of the same size",
        f"sections {section(case)} and 1.1",
        "direction",
        (own, setup(case, DISCIPLINES[0])),
        lambda run, fifo: queue_ms(run) / queue_ms(fifo),
        "times",
        high=1,
        tolerance=ORDER,
        why=CAUSES.get(why, why),
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
        why=CAUSES.get(discipline.why, discipline.why),
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
        why = cannot("ECN", "section 4.5", "this discipline does not mark")
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


def study(discipline: Discipline) -> Study:
    """Makes the matrix of one discipline."""
    experiments = [experiment(case, discipline) for case in CASES]
    marked = [marking(case, discipline) for case in CASES if case.name.startswith("6.2")]
    left_out = (cannot(**one) for one in MATRIX.left_out)
    return Study(
        f"rfc7928-{discipline.name}",
        f"{discipline.name} under RFC 7928",
        "N. Kuhn, P. Natarajan, N. Khademi, D. Ros, Characterization Guidelines for Active Queue"
        " Management (AQM), RFC 7928, 2016",
        (*experiments, *marked, Experiment("Rest", "what is not run", tuple(left_out))),
        HERE,
        (discipline,),
    )


STUDIES = tuple(study(discipline) for discipline in DISCIPLINES)
