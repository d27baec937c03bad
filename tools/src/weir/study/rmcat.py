# SPDX-License-Identifier: BSD-3-Clause
"""The test cases for congestion control of interactive media, with controls of TCP.

RFC 8867 has eight cases and says what to look at, but gives no number to reach. So each bound here
is our own, and stands in its claim: a control holds where media gets most of what the link has and
what the encoder can use, frames arrive in time for a conversation, and no flow starves. Each case
runs with Copa, CUBIC and version 3 of BBR, of which none is made for media.

Media is our source `media` over TCP, which sends a lost frame again; RTP would not. So a frame's
time is the one until its last byte is acknowledged. A queue of 300 ms is one of as many bytes as
300 ms of the link's first rate are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from weir.analysis.folder import Run
from weir.study.claim import Claim, Experiment, Found, Study, Trial
from weir.study.measures import flow_goodputs, jain, percentile

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CONTROLS = {"copa": "Copa", "cubic": "CUBIC", "bbr3": "BBR version 3"}
SEEDS = (2, 10)
MAX_MBPS = 1.5  # of an encoder
PAYLOAD = 1448 / 1500  # of an IP packet
OWN = "the text gives no number"
SPEECH_MS = 400  # one way: ITU-T G.114
Steps = tuple[tuple[float, float], ...]  # from which second on so many Mbit/s


@dataclass(frozen=True)
class Case:
    """One of the RFC's. media: how many flows; the others are TCP's. back: the same, reverse."""

    name: str
    section: str
    title: str
    rate: Steps
    end_s: float
    media: int = 1
    groups: int = 1  # of media
    back: Steps = ()

    def trial(self, cc: str) -> Trial:
        """A run with a control of the media flows."""
        override = tuple(f"flows.{group}.cc={cc}" for group in range(self.groups))
        return Trial(f"{self.name}-{cc}", f"studies/rmcat/{self.name}", override, SEEDS)

    def spans(self, steps: Steps) -> list[tuple[float, float, float]]:
        """The second half of each time with one rate: from, to, Mbit/s."""
        ends = [*(at for at, _ in steps), self.end_s]
        return [
            ((start + end) / 2, end, mbps)
            for (start, end), (_, mbps) in zip(pairwise(ends), steps, strict=True)
        ]


CASES = (
    Case(
        "variable",
        "5.1",
        "a link whose rate changes",
        ((0, 1), (40, 2.5), (60, 0.6), (80, 1)),
        100,
    ),
    Case(
        "several",
        "5.2",
        "two flows on a link whose rate changes",
        ((0, 4), (25, 2), (50, 3.5), (75, 1), (100, 2)),
        125,
        media=2,
    ),
    Case(
        "feedback",
        "5.3",
        "a flow in each direction",
        ((0, 2), (20, 1), (40, 0.5), (60, 2)),
        100,
        groups=2,
        back=((0, 2), (35, 0.8), (70, 2)),
    ),
    Case("competing", "5.4", "three flows, one after another", ((0, 3.5),), 120, media=3),
    Case("rtts", "5.5", "five flows with unequal round trips", ((0, 4),), 300, media=5, groups=5),
    Case("long-tcp", "5.6", "beside a long TCP flow", ((0, 2),), 120),
    Case("short-tcp", "5.7", "two flows beside short TCP flows", ((0, 2),), 300, media=2),
    Case("pause", "5.8", "three flows, of which one pauses", ((0, 3.5),), 120, media=3, groups=3),
)
BY_NAME = {case.name: case for case in CASES}


def usable(mbps: float, flows: int) -> float:
    """What flows of media can have of a link, in Mbit/s of payload."""
    return min(mbps * PAYLOAD, flows * MAX_MBPS)


def follows(case: Case, flows: slice, steps: Steps) -> Callable[[Run], float]:
    """The least part of what it can have that media gets, of the second halves of all rates."""

    def measure(run: Run) -> float:
        count = len(range(*flows.indices(case.media + len(case.back[:1]))))
        return min(
            float(flow_goodputs(run, start, end)[flows].sum()) / usable(mbps, count)
            for start, end, mbps in case.spans(steps)
        )

    return measure


def frame_ms(case: Case, percent: float = 95) -> Callable[[Run], float]:
    """A percentile of the time of the media's frames, after the first 10 s."""

    def measure(run: Run) -> float:
        transfers = run.stream("transfers")
        records = transfers.records
        ours = records[
            (records["event"] == transfers.number("event", "close"))
            & (records["group"] < case.groups)
            & (records["start_ns"] >= 10e9)
        ]
        return percentile((ours["ts_ns"] - ours["start_ns"]) / 1e6, percent)

    return measure


def fair(flows: int, from_s: float, to_s: float) -> Callable[[Run], float]:
    """Jain's index of the first flows, in a time."""
    return lambda run: jain(flow_goodputs(run, from_s, to_s)[:flows])


def mbps(flow: slice, from_s: float, to_s: float) -> Callable[[Run], float]:
    """Of some flows together."""
    return lambda run: float(flow_goodputs(run, from_s, to_s)[flow].sum())


Asked = tuple[str, Callable[[Run], float], str, float, float, str]  # says, measure, unit, low, high


def at_least(says: str, measure: Callable[[Run], float], low: float, unit: str = "") -> Asked:
    """A lower bound."""
    return (says, measure, unit, low, math.inf, "")


def common(case: Case) -> list[Asked]:
    """What is asked of every case without other traffic."""
    ours = slice(0, case.media)
    found = [
        at_least(
            "media follows what the link has: least part of it that it gets, of the second halves"
            " of all its rates",
            follows(case, ours, case.rate),
            0.7,
        ),
        (
            "frames are there in time: 95th percentile",
            frame_ms(case),
            "ms",
            -math.inf,
            SPEECH_MS,
            f"ITU-T G.114 has {SPEECH_MS} ms one way",
        ),
    ]
    if case.back:
        found.append(
            at_least("and in the other direction", follows(case, slice(1, 2), case.back), 0.7)
        )
    return found


SHARES: dict[str, list[Asked]] = {
    "several": [at_least("both have as much: Jain's index of all", fair(2, 10, 125), 0.9)],
    "competing": [
        at_least("all have as much: Jain's index of the last 40 s", fair(3, 80, 120), 0.9)
    ],
    "rtts": [at_least("all have as much: Jain's index of the last 100 s", fair(5, 200, 300), 0.8)],
    "long-tcp": [
        at_least(
            "media does not starve: of an equal share, 0.97 Mbit/s, from 40 s on",
            lambda run: mbps(slice(0, 1), 40, 120)(run) / (PAYLOAD * 2 / 2),
            0.25,
        ),
        at_least(
            "nor does TCP", lambda run: mbps(slice(1, 2), 40, 120)(run) / (PAYLOAD * 2 / 2), 0.25
        ),
    ],
    "short-tcp": [
        at_least("both media flows have as much: Jain's index", fair(2, 20, 300), 0.9),
        at_least(
            "media has most of the link: of what it can have",
            lambda run: mbps(slice(0, 2), 20, 300)(run) / usable(2, 2),
            0.5,
        ),
    ],
    "pause": [
        at_least(
            "the others take what is free: between 50 and 60 s, of what they can have",
            lambda run: float(flow_goodputs(run, 50, 60)[[0, 2]].sum()) / usable(3.5, 2),
            0.7,
        ),
        at_least("it has its share again: Jain's index of the last 40 s", fair(3, 80, 120), 0.9),
    ],
}
OTHER_TRAFFIC = ("long-tcp", "short-tcp")


WAITS = (
    "when the link's rate falls, frames of the old bitrate wait at the sender, and TCP skips none;"
    " CUBIC's wait in the queue besides"
)
# By case and a word of the claim.
WHY = {
    ("variable", "in time"): WAITS,
    ("several", "in time"): WAITS,
    ("feedback", "in time"): WAITS,
    (
        "feedback",
        "follows",
    ): "Copa takes the queue of its ACKs for one of its data: with nothing but"
    " ACKs in the other direction it has 0.83 and more",
    (
        "feedback",
        "direction",
    ): "Copa as forward; BBR has 0.66 with one seed and 0.78 with the other",
    ("competing", "in time"): "of BBR's frames above 0.5 s two in five are within a second of their"
    " flow's ProbeRTT, in which the window is half a BDP",
    (
        "competing",
        "as much",
    ): "with CUBIC the third flow has 0.58 Mbit/s of 1.13, and the first what"
    " its encoder can use, 1.5",
    ("rtts", "in time"): "with CUBIC of the flow with 300 ms, whose window is too small for its"
    " frames (1.1 s); with BBR of those with 20 and 50 ms (2.8 and 2.3 s), which have a third to a"
    " half of an equal share",
    ("rtts", "as much"): "CUBIC's goodput falls with the RTT, from 1.5 to 0.2 Mbit/s",
    ("long-tcp", "starve"): "Copa's default mode gives way to NewReno, which fills 300 ms of queue;"
    " with mode: auto media has 0.48 of its share",
    ("pause", "in time"): "CUBIC fills the queue of 300 ms; BBR's frames wait at the sender in"
    " ProbeRTT, as in 5.4",
}


def claim(case: Case, cc: str, asked: Asked) -> Claim:
    """What a control is to do in a case."""
    says, measure, unit, low, high, whence = asked
    return Claim(
        f"{case.name}, {CONTROLS[cc]}: {says}",
        f"section {case.section}; {whence or OWN}",
        "direction",
        (case.trial(cc),),
        measure,
        unit,
        low=low,
        high=high,
        why=next(
            (why for (name, word), why in WHY.items() if name == case.name and word in says), ""
        ),
    )


def asked_of(case: Case) -> list[Asked]:
    """Of every control."""
    return ([] if case.name in OTHER_TRAFFIC else common(case)) + SHARES.get(case.name, [])


EXPERIMENTS = tuple(
    Experiment(
        f"R{case.section}",
        case.title,
        tuple(claim(case, cc, asked) for asked in asked_of(case) for cc in CONTROLS),
    )
    for case in CASES
)


def figures(found: Found) -> Iterator[tuple[Figure, str]]:
    """Each case's rates and queue."""
    from weir.study import rmcat_figures

    yield from rmcat_figures.draw(found)


STUDY = Study(
    "rmcat",
    "test cases for interactive media, with TCP's controls",
    "Z. Sarker, V. Singh, X. Zhu, M. Ramalho, Test Cases for Evaluating Congestion Control for"
    " Interactive Real-Time Media, RFC 8867, 2021; times and rates as in cisco/ns3-rmcat",
    EXPERIMENTS,
    figures,
)
