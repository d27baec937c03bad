# SPDX-License-Identifier: BSD-3-Clause
"""The test cases for congestion control of interactive media, with controls of TCP.

RFC 8867 has eight cases and says what to look at, but gives no number to reach. So each bound here
is our own, and stands in its claim: a control holds where media gets most of what the link has and
what the encoder can use, frames arrive in time for a conversation, and no flow starves. Each case
runs with Copa, CUBIC and version 3 of BBR, of which none is made for media; weir study rmcat --cc
scream.so judges another one, such as the examples of tools/sdk.

Media is our source `media` over TCP, which sends a lost frame again; RTP would not. So a frame's
time is the one until its last byte is acknowledged. Each video flow has an audio flow beside it, of
20 kbit/s (section 4.3), which is UDP without a control. A queue of 300 ms is one of as many bytes
as 300 ms of the link's first rate are.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import msgspec
from msgspec.structs import replace

from weir.analysis.folder import Run
from weir.study import written
from weir.study.claim import Claim, Experiment, Setup, Study
from weir.study.measures import flow_goodputs, jain, of_kind, of_run, percentile

HERE = Path(__file__).parent
CONTROLS = {"copa": "Copa", "cubic": "CUBIC", "bbr3": "BBR version 3"}
SEEDS = (2, 10)
MAX_MBPS = 1.5  # of an encoder
AUDIO = "udp: {rate: 20kbit, size: 50B}"
AUDIO_MBPS = 0.0312  # with the headers of IP and UDP
PAYLOAD = 1448 / 1500  # of an IP packet
OWN = "the text gives no number"
SPEECH_MS = 400  # one way: ITU-T G.114
Number = int | float  # as the file writes it
Steps = tuple[tuple[Number, Number], ...]  # from which second on so many Mbit/s


class Asked(msgspec.Struct, frozen=True):
    """A measure with its bound and where that is from; beside: it compares with REFERENCE."""

    says: str
    measure: str
    unit: str = ""
    low: Number = -math.inf
    high: Number = math.inf
    whence: str = OWN
    beside: bool = False


class MediaCase(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A case of the RFC, whose keys the head of cases.yaml explains."""

    name: str
    section: str  # 5.1, or 5.1-100ms: another of its variants
    title: str
    rate: Steps
    end_s: int
    media: int = 1
    calls: tuple[str, ...] = ("",)
    pauses: int | None = None
    back: Steps = ()
    tcp: tuple[str, ...] = ()
    changes: tuple[str, ...] = ()
    asks: tuple[Asked, ...] = ()
    why: dict[str, str] = {}

    def setup(self, cc: str) -> Setup:
        """Makes a run with a control of the media flows."""
        override = (
            f"duration={self.end_s + 1}s",
            f"paths.forward.link.rate={self.rate[0][1]}Mbit",
            f"flows=[{', '.join('{' + flow + '}' for flow in self.flows(cc))}]",
            *self.changes,
            f"schedule=[{', '.join('{' + item + '}' for item in self.schedule())}]",
        )
        return Setup(f"{self.name}-{cc}", HERE / "call.yaml", override, SEEDS)

    def flows(self, cc: str) -> Iterator[str]:
        """Yields media first: claims count flows in this order."""
        for number, keys in enumerate(self.calls):
            pause = ", pause: 40s, resume: 60s" if number == self.pauses else ""
            media = f"media: {{initial: 150kbit, reaction: 100ms{pause}}}"
            yield f"name: media, cc: {cc}, stop: {self.end_s}s, {keys} source: {{{media}}}"
        yield from self.tcp
        for keys in self.calls:
            yield f"name: audio, stop: {self.end_s}s, {keys} source: {{{AUDIO}}}"

    def schedule(self) -> Iterator[str]:
        for link, steps in (("forward", self.rate), ("reverse", self.back)):
            for at_s, mbps in steps[1:]:
                yield f"at: {at_s}s, {link}.link.rate: {mbps}Mbit"

    def spans(self, steps: Steps) -> list[tuple[float, float, float]]:
        ends = [*(at for at, _ in steps), self.end_s]
        return [
            ((start + end) / 2, end, mbps)
            for (start, end), (_, mbps) in zip(pairwise(ends), steps, strict=True)
        ]


CASES = written.rows(HERE / "cases.yaml", tuple[MediaCase, ...])
BY_NAME = {case.name: case for case in CASES}
# What the logs of 5.3 are compared with: nothing impairs the way back.
REFERENCE = replace(BY_NAME["feedback"], name="reference", back=(), changes=())


Measure = Callable[[Run], float]


def usable(mbps: float, flows: int) -> float:
    """Returns what flows of media can have of a link beside their audio, in Mbit/s of payload."""
    return min((mbps - flows * AUDIO_MBPS) * PAYLOAD, flows * MAX_MBPS)


@of_run
def follows(run: Run, case: MediaCase, flows: slice, steps: Steps) -> float:
    """Returns the least part that media gets of a rate, in its second half."""
    count = len(range(*flows.indices(case.media + len(case.back[:1]))))
    return min(
        float(flow_goodputs(run, start, end)[flows].sum()) / usable(mbps, count)
        for start, end, mbps in case.spans(steps)
    )


@of_run
def frame_ms(run: Run, case: MediaCase, percent: float = 95) -> float:
    """Returns a percentile of the time of the media's frames, after 10 s."""
    closed = of_kind(run, "transfers", "close", whole=True)
    ours = closed[(closed["group"] < len(case.calls)) & (closed["start_ns"] >= 10e9)]
    return percentile((ours["ts_ns"] - ours["start_ns"]) / 1e6, percent)


def fair(flows: int, from_s: float, to_s: float) -> Measure:
    return lambda run: jain(flow_goodputs(run, from_s, to_s)[:flows])


def payload(mbps: float) -> float:
    return PAYLOAD * mbps


def part(from_s: float, to_s: float, mbps: float, *flows: int) -> Measure:
    """Makes the measure of the goodput of some flows within a time, over a rate."""
    return lambda run: float(flow_goodputs(run, from_s, to_s)[list(flows)].sum()) / mbps


def of_reference(run: Run, free: Run) -> float:
    """Returns the first flow's goodput, over that where nothing impairs the way back."""
    rate = part(10, 99, 1, 0)
    return rate(run) / rate(free)


FOLLOWS = Asked(
    "media follows what the link has: least part of it that it gets, of the second halves of all"
    " its rates",
    "forward",
    low=0.7,
)
IN_TIME = Asked(
    "frames are there in time: 95th percentile",
    "in_time",
    "ms",
    high=SPEECH_MS,
    whence=f"ITU-T G.114 has {SPEECH_MS} ms one way",
)
BACK = (
    Asked("and in the other direction", "reverse", low=0.7),
    Asked(
        "forward, of what it has where nothing impairs the way back",
        "of_reference",
        low=0.7,
        beside=True,
    ),
)
WAITS = (
    "when the link's rate falls, frames of the old bitrate wait at the sender, and TCP skips none;"
    " CUBIC's wait in the queue besides"
)
PROBE_RTT = (
    "CUBIC fills the queue of 300 ms; BBR's frames wait at the sender in ProbeRTT, in which the"
    " window is half a BDP: without it they take 0.38 s in 5.4 and 0.64 s in 5.8, where a flow"
    " comes back besides"
)
CAUSES = {"WAITS": WAITS, "PROBE_RTT": PROBE_RTT}  # of several cases


def asked_of(case: MediaCase) -> tuple[Asked, ...]:
    """Returns what a case asks for, and what every case without other traffic does."""
    common = () if case.tcp else (FOLLOWS, IN_TIME, *(BACK if case.back else ()))
    return (*common, *case.asks)


def claim(case: MediaCase, cc: str, asked: Asked, name: str = "") -> Claim:
    """Claims what a control is to do in a case. name: of one that is not of CONTROLS."""
    known = {one.__name__: one for one in (fair, part, payload, usable, of_reference)} | {
        "forward": follows(case, slice(0, case.media), case.rate),
        "reverse": follows(case, slice(1, 2), case.back),
        "in_time": frame_ms(case),
    }
    setups = [one.setup(cc) for one in (case, REFERENCE)[: 1 + asked.beside]]
    if name:
        setups = [dataclasses.replace(s, name=s.name.replace(cc, name)) for s in setups]
    why = next((why for word, why in case.why.items() if word in asked.says and not name), "")
    return Claim(
        f"{case.name}, {name or CONTROLS[cc]}: {asked.says}",
        f"section {case.section.partition('-')[0]}; {asked.whence}",
        "direction",
        tuple(setups),
        written.measure_of(asked.measure, known),
        asked.unit,
        low=asked.low,
        high=asked.high,
        why=CAUSES.get(why, why),
    )


EXPERIMENTS = tuple(
    Experiment(
        f"R{case.section}",
        case.title,
        tuple(claim(case, cc, asked) for asked in asked_of(case) for cc in CONTROLS),
    )
    for case in CASES
)


def experiments_of(name: str, control: str) -> tuple[Experiment, ...]:
    """Makes the experiments of a control of another name, by what `cc` is in a config."""
    return tuple(
        dataclasses.replace(
            own, claims=tuple(claim(case, control, asked, name) for asked in asked_of(case))
        )
        for own, case in zip(EXPERIMENTS, CASES, strict=True)
    )


STUDY = Study(
    "rmcat",
    "test cases for interactive media, with TCP's controls",
    "Z. Sarker, V. Singh, X. Zhu, M. Ramalho, Test Cases for Evaluating Congestion Control for"
    " Interactive Real-Time Media, RFC 8867, 2021, and RFC 8868, section 4.5",
    EXPERIMENTS,
    HERE,
    experiments_of=experiments_of,
)
