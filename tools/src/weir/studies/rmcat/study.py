# SPDX-License-Identifier: BSD-3-Clause
"""The test cases for congestion control of interactive media, with controls of TCP.

RFC 8867 has eight cases and says what to look at, but gives no number to reach. So each bound here
is our own, and stands in its claim: a control holds where media gets most of what the link has and
what the encoder can use, frames arrive in time for a conversation, and no flow starves. Each case
runs with Copa, CUBIC and version 3 of BBR, of which none is made for media.

Media is our source `media` over TCP, which sends a lost frame again; RTP would not. So a frame's
time is the one until its last byte is acknowledged. Each video flow has an audio flow beside it, of
20 kbit/s (section 4.3), which is UDP without a control. A queue of 300 ms is one of as many bytes
as 300 ms of the link's first rate are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

from weir.analysis.folder import Run
from weir.study.claim import Claim, Experiment, Setup, Study
from weir.study.measures import flow_goodputs, jain, percentile

HERE = Path(__file__).parent
CONTROLS = {"copa": "Copa", "cubic": "CUBIC", "bbr3": "BBR version 3"}
SEEDS = (2, 10)
MAX_MBPS = 1.5  # of an encoder
AUDIO = "udp: {rate: 20kbit, size: 50B}"
AUDIO_MBPS = 0.0312  # with the headers of IP and UDP
PAYLOAD = 1448 / 1500  # of an IP packet
OWN = "the text gives no number"
SPEECH_MS = 400  # one way: ITU-T G.114
Steps = tuple[tuple[float, float], ...]  # from which second on so many Mbit/s


JITTER = "{jitter: {mean: 15ms, spread: 5ms, max: 30ms, reordering: forbidden}}"
BACK = "path: {forward: reverse, reverse: forward}"


@dataclass(frozen=True)
class MediaCase:
    """A case of the RFC. media: how many flows of it go forward; back: the same, reverse.

    calls: keys of each group of media, which are also those of its audio. tcp: the other groups.
    """

    name: str
    section: str  # 5.1, or 5.1-100ms: another of its variants
    title: str
    rate: Steps
    end_s: float  # of the media; the run lasts a second more
    media: int = 1
    calls: tuple[str, ...] = ("",)
    pauses: int | None = None  # the group of media that does
    back: Steps = ()
    tcp: tuple[str, ...] = ()
    changes: tuple[str, ...] = ()

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


VARIABLE = MediaCase(
    "variable",
    "5.1",
    "a link whose rate changes, 50 ms one way",
    ((0, 1), (40, 2.5), (60, 0.6), (80, 1)),
    99,
)
FEEDBACK = MediaCase(
    "feedback",
    "5.3",
    "a flow in each direction",
    ((0, 2), (20, 1), (40, 0.5), (60, 2)),
    99,
    calls=("", f"{BACK},"),
    back=((0, 2), (35, 0.8), (70, 2)),
    changes=(
        "paths.reverse=[{link: {rate: 2Mbit, framing: ip, queue: {fifo: {limit: 300ms}}}},"
        f" {{delay: {{delay: 50ms}}}}, {JITTER}]",
    ),
)
# What the logs of 5.3 are compared with: nothing impairs the way back.
REFERENCE = replace(FEEDBACK, name="reference", back=(), changes=())
LONG_TCP = MediaCase(
    "long-tcp",
    "5.6",
    "beside a long TCP flow, a queue of 300 ms",
    ((0, 2),),
    119,
    calls=("start: 5s,",),
    tcp=("name: tcp, cc: newreno, stop: 119s",),
)
PAGES = "sizes: {law: file, file: pages.cdf}"
CASES = (
    VARIABLE,
    replace(
        VARIABLE,
        name="variable-100ms",
        section="5.1-100ms",
        title="a link whose rate changes, 100 ms one way",
        changes=("paths.forward.delay.delay=100ms",),
    ),
    MediaCase(
        "several",
        "5.2",
        "two flows on a link whose rate changes",
        ((0, 4), (25, 2), (50, 3.5), (75, 1), (100, 2)),
        124,
        media=2,
        calls=("count: 2,",),
    ),
    FEEDBACK,
    MediaCase(
        "competing",
        "5.4",
        "three flows, one after another",
        ((0, 3.5),),
        119,
        media=3,
        calls=("count: 3, stagger: 20s,",),
    ),
    MediaCase(
        "rtts",
        "5.5",
        "five flows with unequal round trips",
        ((0, 4),),
        299,
        media=5,
        calls=tuple(
            f"base_rtt: {ms}ms, start: {at}s,"
            for at, ms in zip(range(0, 50, 10), (20, 50, 100, 200, 299), strict=True)
        ),
        changes=("paths.forward.delay.delay=1us", "paths.reverse.delay.delay=1us"),
    ),
    LONG_TCP,
    replace(
        LONG_TCP,
        name="long-tcp-1s",
        section="5.6-1s",
        title="beside a long TCP flow, a queue of 1000 ms",
        changes=("paths.forward.link.queue={fifo: {limit: 1s}}",),
    ),
    MediaCase(
        "short-tcp",
        "5.7",
        "two flows beside short TCP flows",
        ((0, 2),),
        299,
        media=2,
        calls=("count: 2, start: 5s,",),
        tcp=(
            f"name: tcp, count: 10, cc: newreno, source: {{closed: {{think: 10s, {PAGES}}}}}",
            # Two of the ten begin with a download.
            "name: on, count: 2, cc: newreno, stop: 2ms, source: {closed: {think: 1ms,"
            f" times: fixed, {PAGES}}}}}",
        ),
    ),
    MediaCase(
        "pause",
        "5.8",
        "three flows, of which one pauses",
        ((0, 3.5),),
        119,
        media=3,
        calls=("", "", ""),
        pauses=1,
    ),
)
BY_NAME = {case.name: case for case in CASES}


def usable(mbps: float, flows: int) -> float:
    """Returns what flows of media can have of a link beside their audio, in Mbit/s of payload."""
    return min((mbps - flows * AUDIO_MBPS) * PAYLOAD, flows * MAX_MBPS)


def follows(case: MediaCase, flows: slice, steps: Steps) -> Callable[[Run], float]:
    """Makes the measure of the least part that media gets of a rate, in its second half."""

    def measure(run: Run) -> float:
        count = len(range(*flows.indices(case.media + len(case.back[:1]))))
        return min(
            float(flow_goodputs(run, start, end)[flows].sum()) / usable(mbps, count)
            for start, end, mbps in case.spans(steps)
        )

    return measure


def frame_ms(case: MediaCase, percent: float = 95) -> Callable[[Run], float]:
    """Makes the measure of a percentile of the time of the media's frames, after 10 s."""

    def measure(run: Run) -> float:
        transfers = run.stream("transfers")
        records = transfers.records
        ours = records[
            (records["event"] == transfers.number("event", "close"))
            & (records["group"] < len(case.calls))
            & (records["start_ns"] >= 10e9)
        ]
        return percentile((ours["ts_ns"] - ours["start_ns"]) / 1e6, percent)

    return measure


def fair(flows: int, from_s: float, to_s: float) -> Callable[[Run], float]:
    return lambda run: jain(flow_goodputs(run, from_s, to_s)[:flows])


def mbps(flow: slice, from_s: float, to_s: float) -> Callable[[Run], float]:
    return lambda run: float(flow_goodputs(run, from_s, to_s)[flow].sum())


# says, measure, unit, low, high, where the bound is from, what the run is compared with
Asked = tuple[str, Callable[..., float], str, float, float, str, tuple[MediaCase, ...]]


def at_least(says: str, measure: Callable[..., float], low: float, *beside: MediaCase) -> Asked:
    return (says, measure, "", low, math.inf, "", beside)


def common(case: MediaCase) -> list[Asked]:
    """Lists what is asked of every case without other traffic."""
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
            (),
        ),
    ]
    if case.back:
        found.append(
            at_least("and in the other direction", follows(case, slice(1, 2), case.back), 0.7)
        )
        found.append(
            at_least(
                "forward, of what it has where nothing impairs the way back",
                lambda run, free: mbps(slice(0, 1), 10, 99)(run) / mbps(slice(0, 1), 10, 99)(free),
                0.7,
                REFERENCE,
            )
        )
    return found


SHARES: dict[str, list[Asked]] = {
    "several": [at_least("both have as much: Jain's index of all", fair(2, 10, 124), 0.9)],
    "competing": [
        at_least("all have as much: Jain's index of the last 40 s", fair(3, 80, 119), 0.9)
    ],
    "rtts": [at_least("all have as much: Jain's index of the last 100 s", fair(5, 200, 299), 0.8)],
    "long-tcp": [
        at_least(
            "media does not starve: of an equal share, 0.97 Mbit/s, from 40 s on",
            lambda run: mbps(slice(0, 1), 40, 119)(run) / (PAYLOAD * 2 / 2),
            0.25,
        ),
        at_least(
            "nor does TCP", lambda run: mbps(slice(1, 2), 40, 119)(run) / (PAYLOAD * 2 / 2), 0.25
        ),
    ],
    "short-tcp": [
        at_least("both media flows have as much: Jain's index", fair(2, 20, 299), 0.9),
        at_least(
            "media has most of the link: of what it can have",
            lambda run: mbps(slice(0, 2), 20, 299)(run) / usable(2, 2),
            0.5,
        ),
    ],
    "pause": [
        at_least(
            "the others take what is free: between 50 and 60 s, of what they can have",
            lambda run: float(flow_goodputs(run, 50, 60)[[0, 2]].sum()) / usable(3.5, 2),
            0.7,
        ),
        at_least("it has its share again: Jain's index of the last 40 s", fair(3, 80, 119), 0.9),
    ],
}
SHARES["long-tcp-1s"] = SHARES["long-tcp"]

WAITS = (
    "when the link's rate falls, frames of the old bitrate wait at the sender, and TCP skips none;"
    " CUBIC's wait in the queue besides"
)
PROBE_RTT = (
    "CUBIC fills the queue of 300 ms; BBR's frames wait at the sender in ProbeRTT, in which the"
    " window is half a BDP: of those above 0.5 s three in five are within a second of it"
)
# By case and a word of the claim.
WHY = {
    ("variable", "in time"): WAITS,
    ("several", "in time"): WAITS,
    ("feedback", "in time"): WAITS,
    ("variable", "follows"): "Copa takes jitter for a queue: without it it has 0.89",
    ("variable-100ms", "in time"): WAITS,
    ("variable-100ms", "follows"): "Copa takes jitter for a queue: without it it has 0.81",
    ("several", "follows"): "Copa takes jitter for a queue: without it it has 0.92",
    ("feedback", "follows"): "Copa takes the queue of its ACKs and jitter for a queue of its data:"
    " it has 0.70 where nothing impairs the way back, and 0.87 without jitter besides",
    ("feedback", "direction"): "Copa as forward, and it takes jitter for a queue: without it it has"
    " 0.74",
    ("competing", "in time"): PROBE_RTT,
    ("competing", "as much"): "with CUBIC the third flow has 0.53 Mbit/s, and the others 1.37",
    ("rtts", "in time"): "with CUBIC of the flow with 300 ms, whose window is too small for its"
    " frames (1.1 s); with BBR of those with 20 and 50 ms (2.6 and 2.3 s), which have about half of"
    " an equal share",
    ("rtts", "as much"): "CUBIC's goodput falls with the RTT, from 1.5 to 0.2 Mbit/s",
    ("long-tcp", "starve"): "Copa's default mode gives way to NewReno, which fills the queue;"
    " with mode: auto media has 0.48 of its share",
    ("long-tcp-1s", "starve"): "Copa's default mode gives way to NewReno, which fills the queue",
    ("pause", "in time"): PROBE_RTT,
    ("pause", "is free"): "Copa takes jitter for a queue: without it it has 0.98",
}


def claim(case: MediaCase, cc: str, asked: Asked) -> Claim:
    """Claims what a control is to do in a case."""
    says, measure, unit, low, high, whence, beside = asked
    return Claim(
        f"{case.name}, {CONTROLS[cc]}: {says}",
        f"section {case.section.partition('-')[0]}; {whence or OWN}",
        "direction",
        (case.setup(cc), *(other.setup(cc) for other in beside)),
        measure,
        unit,
        low=low,
        high=high,
        why=next(
            (why for (name, word), why in WHY.items() if name == case.name and word in says), ""
        ),
    )


def asked_of(case: MediaCase) -> list[Asked]:
    return ([] if case.tcp else common(case)) + SHARES.get(case.name, [])


EXPERIMENTS = tuple(
    Experiment(
        f"R{case.section}",
        case.title,
        tuple(claim(case, cc, asked) for asked in asked_of(case) for cc in CONTROLS),
    )
    for case in CASES
)


STUDY = Study(
    "rmcat",
    "test cases for interactive media, with TCP's controls",
    "Z. Sarker, V. Singh, X. Zhu, M. Ramalho, Test Cases for Evaluating Congestion Control for"
    " Interactive Real-Time Media, RFC 8867, 2021, and RFC 8868, section 4.5",
    EXPERIMENTS,
    HERE,
)
