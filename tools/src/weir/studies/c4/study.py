# SPDX-License-Identifier: BSD-3-Clause
"""The scenarios in which picoquic's C4 was compared with its CUBIC and its BBR.

A scenario is a download, alone or beside another one, or a call of three streams (c4_media.py). A
download's result is the time until the client's connection is over: the mean of 100 runs, and what
nine of ten do not exceed. Their runs differ by the random numbers of the links' jitter and by
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
from pathlib import Path

from weir.studies.c4.media import CALLS
from weir.studies.c4.scenarios import ALONE, BESIDE, CONTROLS, Scenario
from weir.study.claim import Claim, Experiment, Study, Trial, near

HERE = Path(__file__).parent
PART = 0.10  # of a published time
TOLERANCE = "our own: 10 % for another transport and another author's control; the text has none"
CLOSE = 0.01  # two means as near as this have no order
SCENARIOS = (*ALONE, *BESIDE, *CALLS)


def time_claim(one: Scenario, cc: str) -> Claim:
    """A published mean."""
    published = one.published[cc]
    return Claim(
        f"{one.name}: {one.what(cc)}",
        one.section,
        "number",
        (one.trial(cc),),
        one.time_s,
        "s",
        **near(published.mean, PART),
        tolerance=TOLERANCE,
        why=one.why.get(cc, ""),
    )


def order(one: Scenario) -> float | None:
    """BBR's published mean time over CUBIC's; None: the tables have no order."""
    cubic, bbr = one.published["cubic"], one.published["bbr3"]
    means, ends = bbr.mean / cubic.mean, bbr.p90 / cubic.p90
    return means if abs(means - 1) > CLOSE and (means > 1) == (ends > 1) else None


def order_claim(one: Scenario, published: float) -> Claim:
    """Which control's download ends sooner."""
    slower = published > 1
    return Claim(
        f"{one.name}: BBR takes {'longer' if slower else 'less'} than CUBIC: its time over"
        f" CUBIC's (published: {published:.2f})",
        one.section,
        "direction",
        (one.trial("bbr3"), one.trial("cubic")),
        lambda bbr, cubic: one.time_s(bbr) / one.time_s(cubic),
        low=1 if slower else -math.inf,
        high=math.inf if slower else 1,
        why=one.why.get("order", ""),
    )


def cannot(one: Scenario, why: str) -> tuple[Claim, ...]:
    """A scenario without a verdict."""
    return (Claim(one.name, one.section, "not comparable", why=why),)


def claims(one: Scenario) -> tuple[Claim, ...]:
    """Both controls' times where nothing competes, and their order if the tables have one."""
    if one.cannot:
        return cannot(one, one.cannot)
    published = order(one)
    competes = one in BESIDE
    times = () if competes else tuple(time_claim(one, cc) for cc in CONTROLS)
    if published is not None:
        return (*times, order_claim(one, published))
    return times or cannot(one, "means and 90th percentiles of the two controls disagree")


def fifo() -> Claim:
    """What picoquic's DualPI2 is for packets that are not L4S."""
    ecn = next(one for one in ALONE if one.name == "ecn")
    queue = "paths.forward.link.queue={fifo: {limit: 60ms}}"
    return Claim(
        "ecn: CUBIC behind a FIFO of 60 ms, as picoquic's DualPI2 is without L4S packets",
        "dualq_aqm.c of picoquic",
        "derived",
        (Trial("ecn-fifo", HERE / "ecn.yaml", ("flows.0.cc=cubic", queue)),),
        ecn.time_s,
        "s",
        **near(ecn.published["cubic"].mean, PART),
        tolerance=TOLERANCE,
    )


def experiment(number: int, one: Scenario) -> Experiment:
    """A row of the tables."""
    extra = (fifo(),) if one.name == "ecn" else ()
    return Experiment(f"C{number}", one.title, claims(one) + extra)


EXPERIMENTS = tuple(experiment(number, one) for number, one in enumerate(SCENARIOS, start=1))


STUDY = Study(
    "c4",
    "picoquic's scenarios for C4, with CUBIC and BBR",
    "C. Huitema, S. Nandakumar, C. Jennings, Testing of Christian's Congestion Control Code (C4),"
    " draft-huitema-ccwg-c4-test; times of doc/c4-tests.md of github.com/private-octopus/c4 at"
    " 0863b68 (July 2026)",
    EXPERIMENTS,
    HERE,
)
