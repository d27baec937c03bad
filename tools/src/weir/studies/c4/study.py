# SPDX-License-Identifier: BSD-3-Clause
"""The scenarios in which picoquic's C4 was compared with its CUBIC and its BBR.

A scenario (scenarios.yaml) is a download, alone or beside another one, or a call of three streams.
A download's result is the time until the client's connection is over: the mean of 100 runs, and
what nine of ten do not exceed. Their runs differ by the random numbers of the links' jitter and by
QUIC's own (connection ids, skipped packet numbers); ours by the seed of the jitter, and of two
downloads by their starts, drawn from 10 ms. Where nothing is random one run is all.

What a time of ours needs to be compared with one of picoquic's:

    size   picoquic's link counts QUIC packets of 1440 B, of which 1405 B are data: a header of 13
           (flags 1, connection id 8, packet number 4), 6 of a stream frame and a tag of 16. Ours
           counts IP packets of 1500 B with 1448 B of data. So that as many bytes cross the link a
           download has (1440 / 1405) / (1500 / 1448) = 0.98938 of the bytes.
    time   picoquic's ends when the client has the answer to its CONNECTION_CLOSE, which it sends
           when it has the data: the server sends from 1.5 round trips on, and after the last byte
           there is one more. Ours goes from the SYN to the ACK of the last byte: data leaves after
           one, and its ACK comes half a one after it. So ours is shorter by a round trip.

BBR is our bbr3: picoquic's bbr.c implements draft-cardwell-iccrg-bbr-congestion-control-02 with
version 3's changes. What the text leaves out is in sim_specs/ of github.com/private-octopus/c4 and
in picoquic_ns.c and sim_link.c of github.com/private-octopus/picoquic.
"""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec

from weir.analysis import qlog
from weir.analysis.folder import Run
from weir.guests import stacks
from weir.study import written
from weir.study.claim import Claim, Experiment, Setup, Study, near
from weir.study.measures import of_kind
from weir.study.scenario import cannot, shown

HERE = Path(__file__).parent
CONTROLS = {"cubic": "CUBIC", "bbr3": "BBR"}  # ours, and what the source calls it
SEEDS = (5, 30)
OF_BYTES = (1440 / 1405) / (1500 / 1448)
MEDIA_FROM_S = {"media_short_long": 5.0}  # frames from then on count
PART = 0.10  # of a published time
TOLERANCE = "our own: 10 % for another transport and another author's control; the text has none"
BESIDE_C4 = "flows.1.cc=c4"
NO_C4 = (
    "the other download's control is C4, an example of tools/sdk: weir study c4 --cc c4.so runs it"
)
CLOSE = 0.01  # two means as near as this have no order


class Times(NamedTuple):
    """A published mean and 90th percentile, in seconds, of 100 runs."""

    mean: float
    p90: float


class Scenario(msgspec.Struct, forbid_unknown_fields=True):
    """A row of the source's tables.

    rtt_ms is the path's when the download ends. random: seeds change it. own: further changes of a
    control's runs. why: the cause where a control's time differs, by control, or the order of both.
    cannot: why it cannot be run. c4: the mean of picoquic's C4, 0: not known.
    """

    name: str
    title: str
    kind: Literal["alone", "beside", "call"]
    section: str
    published: dict[str, tuple[int, int]]
    config: str = ""
    set: list[str] = []
    rtt_ms: float = 0.0
    random: bool = False
    own: dict[str, list[str]] = {}
    c4: int = 0
    why: dict[str, str] = {}
    cannot: str = ""

    @property
    def needs_c4(self) -> bool:
        """Is true where the other download's control is C4."""
        return BESIDE_C4 in self.set

    def times(self, cc: str) -> Times:
        """Returns a control's published times."""
        mean, p90 = self.published[cc]
        return Times(mean / 1e6, p90 / 1e6)

    def setup(self, cc: str) -> Setup:
        """Makes the run with a control of ours; in a call all three streams have it."""
        override = [f"flows.0.cc={cc}", *self.set, *self.own.get(cc, [])]
        if self.kind == "call":
            override += [f"flows.{flow}.cc={cc}" for flow in (1, 2)]
        seeds = SEEDS if self.random else (0, 0)
        return Setup(f"{self.name}-{cc}", HERE / f"{self.config}.yaml", tuple(override), seeds)

    def time_s(self, run: Run) -> float:
        """Returns when the download would be over in picoquic, or a call's mean time of a frame.

        It is in seconds, and not a number if the download is not over.
        """
        if self.kind == "call":
            return frame_s(run, MEDIA_FROM_S.get(self.name, 0.2))
        return closed_s(run) + self.rtt_ms / 1e3

    def what(self, cc: str) -> str:
        """Returns the words for what is published of a control."""
        p90 = self.times(cc).p90
        if self.kind == "call":
            below = f"nine of ten calls: below {p90 * 1e3:.0f} ms"
            return f"{CONTROLS[cc]}'s mean time of a frame ({below})"
        return f"{CONTROLS[cc]}'s mean time (nine of ten: {p90:.3f} s)"


def closed_s(run: Run) -> float:
    """Returns when all of the first flow was acknowledged; not a number: not yet.

    A QUIC stack in its place says itself how long its transfer took.
    """
    if run.summary.groups[0].stack in stacks.STACKS:
        done = qlog.transfers(run.path, run.summary)
        return done[0].mean_ns / 1e9 if done else math.nan
    closed = of_kind(run, "flows", "close", whole=True)
    closed = closed[closed["flow_id"] == 0]
    return float(closed["ts_ns"][0]) / 1e9 if len(closed) else math.nan


def frame_s(run: Run, from_s: float) -> float:
    """Returns the larger of the mean times of an audio and of a video frame.

    A time is from when a frame is written until its last byte is acknowledged. picoquic's begins
    when the client's request would have asked for it, half a round trip before it is written, and
    ends with its arrival. The larger video does not count, as in the source, where its late groups
    are cancelled.
    """
    closed = of_kind(run, "transfers", "close", whole=True)
    counted = closed[closed["start_ns"] >= from_s * 1e9]
    times_s = (counted["ts_ns"] - counted["start_ns"]) / 1e9
    return max(float(times_s[counted["group"] == group].mean()) for group in (0, 1))


def size(megabytes: float, flow: int = 0) -> str:
    """Sets as many bytes on the link as picoquic's megabytes take."""
    return f"flows.{flow}.source.size.bytes={round(megabytes * 1e6 * OF_BYTES)}B"


SCENARIOS = written.rows(HERE / "scenarios.yaml", list[Scenario])


def time_claim(one: Scenario, cc: str) -> Claim:
    """Makes the claim of a published mean."""
    published = one.times(cc)
    return Claim(
        f"{one.name}: {one.what(cc)}",
        one.section,
        "number",
        (one.setup(cc),),
        one.time_s,
        "s",
        **near(published.mean, PART),
        tolerance=TOLERANCE,
        why=one.why.get(cc, ""),
    )


def order(one: Scenario) -> float | None:
    """Returns BBR's published mean time over CUBIC's; None: the tables show no order."""
    cubic, bbr = one.times("cubic"), one.times("bbr3")
    means, ends = bbr.mean / cubic.mean, bbr.p90 / cubic.p90
    return means if abs(means - 1) > CLOSE and (means > 1) == (ends > 1) else None


def order_claim(one: Scenario, published: float) -> Claim:
    """Claims which control's download ends sooner."""
    slower = published > 1
    return Claim(
        f"{one.name}: BBR takes {'longer' if slower else 'less'} than CUBIC: its time over"
        f" CUBIC's (published: {published:.2f})",
        one.section,
        "direction",
        (one.setup("bbr3"), one.setup("cubic")),
        lambda bbr, cubic: one.time_s(bbr) / one.time_s(cubic),
        low=1 if slower else -math.inf,
        high=math.inf if slower else 1,
        why=one.why.get("order", ""),
    )


def claims(one: Scenario) -> tuple[Claim, ...]:
    """Claims both controls' times where nothing competes, and their order if there is one."""
    if why := one.cannot or (NO_C4 if one.needs_c4 else ""):
        return (cannot(one.name, one.section, why),)
    published = order(one)
    times = () if one.kind == "beside" else tuple(time_claim(one, cc) for cc in CONTROLS)
    if published is not None:
        return (*times, order_claim(one, published))
    why = "means and 90th percentiles of the two controls disagree"
    return times or (cannot(one.name, one.section, why),)


def fifo() -> Claim:
    """Claims what picoquic's DualPI2 is for packets that are not L4S."""
    ecn = next(one for one in SCENARIOS if one.name == "ecn")
    queue = "paths.forward.link.queue={fifo: {limit: 60ms}}"
    return Claim(
        "ecn: CUBIC behind a FIFO of 60 ms, as picoquic's DualPI2 is without L4S packets",
        "dualq_aqm.c of picoquic",
        "derived",
        (Setup("ecn-fifo", HERE / "ecn.yaml", ("flows.0.cc=cubic", queue)),),
        ecn.time_s,
        "s",
        **near(ecn.times("cubic").mean, PART),
        tolerance=TOLERANCE,
    )


def experiment(number: int, one: Scenario) -> Experiment:
    extra = (fifo(),) if one.name == "ecn" else ()
    return Experiment(f"C{number}", one.title, claims(one) + extra)


EXPERIMENTS = tuple(experiment(number, one) for number, one in enumerate(SCENARIOS, start=1))


def other(one: Scenario, name: str, control: str) -> Claim:
    """Shows the time of a control that the tables do not have; that of C4 they do."""
    is_c4 = name == "c4"
    if why := one.cannot or (NO_C4 if one.needs_c4 and not is_c4 else ""):
        return cannot(one.name, one.section, why)
    beside = [text.replace(BESIDE_C4, f"flows.1.cc={control}") for text in one.set]
    setup = msgspec.structs.replace(one, set=beside).setup(control)
    setups = (replace(setup, name=f"{one.name}-{name}"),)
    says = f"{one.name}: mean time{' of a frame' if one.kind == 'call' else ''}"
    if not is_c4 or not one.c4:
        return shown(says, one.section, setups, one.time_s, "s")
    return Claim(
        f"{says}, of picoquic's C4",
        one.section,
        "number",
        setups,
        one.time_s,
        "s",
        **near(one.c4 / 1e6, PART),
        tolerance=TOLERANCE,
        why=one.why.get("c4", ""),
    )


def experiments_of(name: str, control: str) -> tuple[Experiment, ...]:
    """Makes the experiments of a control of another name, by what `cc` is in a config."""
    return tuple(
        Experiment(f"C{number}", one.title, (other(one, name, control),))
        for number, one in enumerate(SCENARIOS, start=1)
    )


STUDY = Study(
    "c4",
    "picoquic's scenarios for C4, with CUBIC and BBR",
    "C. Huitema, S. Nandakumar, C. Jennings, Testing of Christian's Congestion Control Code (C4),"
    " draft-huitema-ccwg-c4-test; times of doc/c4-tests.md of github.com/private-octopus/c4 at"
    " 0863b68 (July 2026)",
    EXPERIMENTS,
    HERE,
    experiments_of=experiments_of,
)
