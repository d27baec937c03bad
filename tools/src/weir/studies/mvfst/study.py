# SPDX-License-Identifier: BSD-3-Clause
"""Copa in mvfst (Facebook Engineering, 2019): retransmissions, policers, and a population of users.

Its percentiles are over the users of a live video service. What can be run is a grid of uplinks:
each of its cells is one user, and a percentile is over the samples of all of them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from weir.analysis import metrics
from weir.study.claim import Claim, Experiment, Study, Trial, near, trial_of
from weir.study.measures import (
    Floats,
    after_warmup,
    goodput,
    of_kind,
    only_queue_ms,
    rtx_per_acked,
)

if TYPE_CHECKING:
    from weir.analysis.folder import Run

COPA = "{copa: {dialect: mvfst, delta: 0.04}}"
CC = "flows.0.cc"
NS_PER_MS = 1e6


HERE = Path(__file__).parent
trial = partial(trial_of, HERE)


def lossy(percent: int) -> Trial:
    """Random loss and no other."""
    return trial(f"f1-{percent}", f"paths.forward.loss.rate={percent}%")


TAIL = "paths.forward=[{link: {rate: 3Mbit, queue: {fifo: {limit: %s}}}}, {delay: {delay: 50ms}}]"
SIGNATURES = {
    "policer": (),
    "tail-200ms": (TAIL % "200ms",),
    "tail-50ms": (TAIL % "50ms",),
}


def signature(where: str, cc: str) -> Trial:
    """One flow behind a policer, or in front of a link of its rate."""
    control = COPA if cc == "copa" else cc
    return trial(f"f2-{where}-{cc}", f"{CC}={control}", *SIGNATURES[where])


F1 = Experiment(
    "F1",
    "what RTX overhead is",
    tuple(
        Claim(
            f"bytes sent again per byte acknowledged at {percent} % of random loss: p/(1 - p)",
            "the definition in the post",
            "derived",
            (lossy(percent),),
            rtx_per_acked,
            "",
            **near(percent / (100 - percent), 0.05),
            tolerance="our own band: losses are drawn",
        )
        for percent in (10, 20, 40)
    ),
)

RATES_KBPS, RTTS_MS = (750, 1500, 3000, 6000), (30, 100, 200)
BUFFERS_MS = (50, 200, 1000)
POLICED = "policed"
POLICED_KBPS = (750, 1500, 3000)  # 3 of 39 users
Place = tuple[int, int, int | str]
USERS: tuple[Place, ...] = (
    *itertools.product(RATES_KBPS, RTTS_MS, BUFFERS_MS),
    *((kbps, 100, POLICED) for kbps in POLICED_KBPS),
)


def user(cc: str, place: Place) -> Trial:
    """One of the population."""
    kbps, rtt_ms, buffer = place
    control = COPA if cc == "copa" else cc
    delay = f"{{delay: {{delay: {rtt_ms / 2}ms}}}}"
    if buffer == POLICED:
        path = f"{{policer: {{rate: {kbps}kbit, burst: 40kB}}}}, {{link: {{rate: 100Mbit}}}}"
    else:
        path = f"{{link: {{rate: {kbps}kbit, queue: {{fifo: {{limit: {buffer}ms}}}}}}}}"
    name = f"user-{cc}-{kbps}-{rtt_ms}-{buffer}"
    return trial(
        name, f"{CC}={control}", f"paths.forward=[{path}, {delay}]", f"paths.reverse=[{delay}]"
    )


def users(cc: str) -> tuple[Trial, ...]:
    """All of them."""
    return tuple(user(cc, place) for place in USERS)


def policed(cc: str) -> Trial:
    """A transfer of CUBIC behind a policer; of Copa live video, as the post's, which bounds it."""
    return user(cc, (3000, 100, POLICED)) if cc == "copa" else signature("policer", cc)


F2 = Experiment(
    "F2",
    "the signature of a policer",
    (
        *(
            Claim(
                f"behind a policer {name} loses and delivers: bytes sent again per acknowledged",
                "the post's figure of retransmissions against queueing delay",
                "direction",
                (policed(cc),),
                rtx_per_acked,
                "",
                low=0.005,
                high=1,
            )
            for cc, name in (("cubic", "CUBIC"), ("copa", "Copa"))
        ),
        *(
            Claim(
                f"and nothing is queued: {name}'s mean time in the queue",
                "the same",
                "direction",
                (policed(cc),),
                only_queue_ms,
                "ms",
                high=1,
            )
            for cc, name in (("cubic", "CUBIC"), ("copa", "Copa"))
        ),
        Claim(
            "a bulk transfer of Copa behind it: bytes sent again per acknowledged",
            "the post has live video only",
            "not comparable",
            (signature("policer", "copa"),),
            rtx_per_acked,
            "",
            why="Copa ignores losses here and a policer makes no delay, so that only the peer's"
            " window bounds a transfer that is never limited by its application.",
        ),
        *(
            Claim(
                f"in front of a link of the same rate losses come with a queue: {name}, 200 ms of"
                " buffer",
                "the same",
                "direction",
                (signature("tail-200ms", cc),),
                only_queue_ms,
                "ms",
                low=50,
            )
            for cc, name in (("cubic", "CUBIC"), ("copa", "Copa"))
        ),
        Claim(
            "a short buffer is nearer to a policer: the queue with 50 ms of buffer over that with"
            " 200 ms",
            "the post says that the two may be taken for each other",
            "direction",
            (signature("tail-50ms", "cubic"), signature("tail-200ms", "cubic")),
            lambda short, long: only_queue_ms(short) / only_queue_ms(long),
            "times",
            high=0.5,
        ),
    ),
)


def segment_ms(run: Run) -> Floats:
    """Times of the video's segments until they are acknowledged: the application's round trip."""
    done = of_kind(run, "transfers", "close")
    return np.asarray((done["ts_ns"] - done["start_ns"]) / NS_PER_MS, dtype=np.float64)


def rtt_ms(run: Run) -> Floats:
    """Mean round trips of the intervals that have samples."""
    records = after_warmup(run, "interval")
    known = records["rtt_samples"] > 0
    return np.asarray(records["rtt_mean_ns"][known] / NS_PER_MS, dtype=np.float64)


def second_mbps(run: Run) -> Floats:
    """Goodput of each second."""
    records = after_warmup(run, "interval")
    second = ((records["ts_ns"] - 1) // 1_000_000_000).astype(np.int64)
    bits = np.bincount(second - second[0], records["delivered_bytes"] * 8.0)
    return np.asarray(bits / 1e6, dtype=np.float64)


def overhead(run: Run) -> Floats:
    """A user's retransmissions: one sample."""
    return np.array([rtx_per_acked(run)])


Samples = Callable[["Run"], Floats]


def over_all(runs: Sequence[Run], samples: Samples, percent: float) -> float:
    """A percentile over the samples of all users; each user weighs the same."""
    found = [one for run in runs if len(one := samples(run))]
    weights = np.concatenate([np.full(len(one), 1 / len(one)) for one in found])
    x, reached = metrics.ecdf(np.concatenate(found), weights)
    value = metrics.quantile_of_cdf(x, reached, percent / 100)
    return math.nan if value is None else value


def ratio(samples: Samples, percent: float) -> Callable[..., float]:
    """A percentile of the first half of the runs over that of the second."""

    def measure(*runs: Run) -> float:
        half = len(runs) // 2
        return over_all(runs[:half], samples, percent) / over_all(runs[half:], samples, percent)

    return measure


def mean_overhead(*runs: Run) -> float:
    """Mean retransmissions of users in the first half of the runs over that of the second."""
    half = len(runs) // 2
    found = [rtx_per_acked(run) for run in runs]
    return float(np.mean(found[:half]) / np.mean(found[half:]))


def population(
    cc: str, says: str, published: str, samples: Samples, percent: float, why: str = ""
) -> Claim:
    """What a control has less of than CUBIC over the population."""
    name = "Copa" if cc == "copa" else "BBR"
    return Claim(
        f"{name}: {says} (published: {published}): over CUBIC's",
        "the post's table",
        "direction",
        (*users(cc), *users("cubic")),
        ratio(samples, percent),
        "times",
        high=1.0,
        why=why,
    )


LATE = (
    "The video's adaptation holds a segment's time near 0.74 s for users of slow uplinks, whatever"
    " the control."
)
RUNGS = (
    "Among users with CUBIC's goodput within 5 % it is 0.75 and 1.03: elsewhere the video takes a"
    " higher bitrate with BBR, and fills more of the queue."
)
AB = Experiment(
    "A/B",
    "Copa and BBR against CUBIC over a population",
    (
        Claim(
            "the percentages themselves: 479 ms for CUBIC's 499, 3.9 s for 5.4 and the others",
            "the post's table",
            "not comparable",
            why="They are of millions of sessions in six countries whose paths are not published."
            " The grid shows the sign of each, with a share of users chosen by us.",
        ),
        *(
            Claim(
                f"{name}: the {percent}th percentile of goodput (published: {published} higher)",
                "the post's table",
                "not comparable",
                (*users(cc), *users("cubic")),
                ratio(second_mbps, percent),
                "times CUBIC's",
                why="The video chooses one of a few bitrates, so that its goodput is one of them:"
                " no user without a policer fills 0.9 of the link.",
            )
            for cc, name, percent, published in (
                ("copa", "Copa", 50, "16.3 %"),
                ("copa", "Copa", 10, "6.2 %"),
                ("bbr", "BBR", 50, "5.5 %"),
            )
        ),
        population(
            "copa", "the 90th percentile of a segment's time is lower", "27 %", segment_ms, 90, LATE
        ),
        population("copa", "its median is lower", "4 %", segment_ms, 50),
        population("copa", "the 75th percentile of the round trip is lower", "35 %", rtt_ms, 75),
        population("copa", "its 95th percentile is lower", "45 %", rtt_ms, 95),
        population(
            "bbr", "the 75th percentile of the round trip is lower", "10 %", rtt_ms, 75, RUNGS
        ),
        population("bbr", "its 95th percentile is lower", "16 %", rtt_ms, 95, RUNGS),
        Claim(
            "Copa: users send less again (published: a quarter for about 75 %): their mean over"
            " CUBIC's",
            "the post's figure",
            "direction",
            (*users("copa"), *users("cubic")),
            mean_overhead,
            "times",
            high=1,
            why="24 of the 39 users lose nothing with either control. In front of 50 ms of buffer"
            " Copa with delta 0.04 wants a longer queue than fits, and does not answer the losses.",
        ),
        Claim(
            "Copa: in the tail they send more again (published: 4 to 5 times CUBIC's): 97th"
            " percentile of users, over CUBIC's",
            "the post's figure",
            "direction",
            (*users("copa"), *users("cubic")),
            ratio(overhead, 97),
            "times",
            low=1,
        ),
        *(
            Claim(
                f"a larger delta gives {words}: 0.5 over 0.04, 3 Mbit/s and 200 ms of buffer",
                "the post ('tunable')",
                "direction",
                (
                    trial(
                        "f2-tail-200ms-half",
                        f"{CC}={{copa: {{dialect: mvfst, delta: 0.5}}}}",
                        *SIGNATURES["tail-200ms"],
                    ),
                    signature("tail-200ms", "copa"),
                ),
                lambda half, small, f=measure: f(half) / f(small),
                "times",
                high=high,
            )
            for words, measure, high in (
                ("less delay, mean time in the queue", only_queue_ms, 0.5),
                ("less throughput", goodput, 0.999),
            )
        ),
    ),
)


STUDY = Study(
    "mvfst",
    "Copa in mvfst, for live video",
    "N. Garg, COPA congestion control for video performance, Facebook Engineering, 2019",
    (F1, F2, AB),
    HERE,
    with_all=True,
)
