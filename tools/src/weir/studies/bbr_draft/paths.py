# SPDX-License-Identifier: BSD-3-Clause
"""The paths and runs of the BBR draft's test cases: three round trips, three rates.

10 Mbit/s and 10 ms hold 8 packets, more than any floor of the draft's (4 and 6 segments), 250
Mbit/s and 160 ms 3250: BDPs of three powers of ten. The case that asks for less than a packet has
rates of its own.

The draft changes the path "upon entering" a phase. A config has times: each change comes where the
phase that follows it meets it, which the functions below say. Where ProbeRTT is not the case's
matter it is turned off, as it would end the phase in question.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

from weir.study.claim import Setup

WIRE_PKT_BITS = 1538 * 8
RATES_MBIT, RTTS_MS = (10, 50, 250), (10, 40, 160)
NO_PROBE_RTT = "probe_rtt_interval: 1000s"
LOSSES_S = 2.0  # of Startup without loss
UP_S = 12.0  # by then an application-limited flow is in UP, where it stays


@dataclass(frozen=True)
class Place:
    """A path of a rate and a round trip."""

    mbit: float
    rtt_ms: int

    @property
    def name(self) -> str:
        return f"{self.mbit:g}M-{self.rtt_ms}ms"

    @property
    def rtt_s(self) -> float:
        return self.rtt_ms / 1e3

    @property
    def bdp(self) -> float:
        """The BDP in packets of 1538 bytes on the wire."""
        return self.mbit * 1e6 * self.rtt_s / WIRE_PKT_BITS

    def link(self, factor: float = 1.0, buffer: float = 2.0, least: int = 0) -> str:
        """Returns a link of the rate times `factor`; its buffer is in BDP of the whole rate."""
        packets = max(round(buffer * self.bdp), 4, least)
        rate = f"{self.mbit * factor * 1e6:.0f}bit"
        return f"{{link: {{rate: {rate}, queue: {{fifo: {{limit: {packets}pkt}}}}}}}}"

    def delay(self, more: str = "") -> str:
        return f"{{delay: {{delay: {self.rtt_ms / 2}ms{more}}}}}"


PLACES = tuple(Place(mbit, rtt) for mbit in RATES_MBIT for rtt in RTTS_MS)
# A quarter, a half and nine tenths of a packet in a round trip.
TINY = tuple(
    Place(round(part * WIRE_PKT_BITS / rtt / 1e3, 4), rtt)
    for rtt in RTTS_MS
    for part in (0.25, 0.5, 0.9)
)


def setup(
    case: str,
    at: Place,
    *,
    forward: str = "",
    delay: str = "",
    reverse: str = "",
    source: str = "",
    params: str = "",
    schedule: str = "",
    seconds: float = 12,
) -> Setup:
    """Makes a run of stages around the delay, of what the flow sends, and of what changes when."""
    flow = f"{{count: 1, cc: {{bbr3: {{{params}}}}}{', source: ' + source if source else ''}}}"
    override = (
        f"paths.forward=[{forward or at.link()}, {at.delay(delay)}]",
        f"paths.reverse=[{reverse + ', ' if reverse else ''}{at.delay()}]",
        f"flows=[{flow}]",
        f"duration={seconds:g}s",
        *((f"schedule=[{schedule}]",) if schedule else ()),
    )
    return Setup(f"{case}-{at.name}", Path(__file__).with_name("path.yaml"), override)


def limited(at: Place, part: float) -> str:
    """Makes an application that writes a part of the rate, 100 times a second."""
    return f"{{video: {{ladder: '{at.mbit * 1e3 * part:.0f}kbit', segment: 10ms}}}}"


def bulk(at: Place) -> Setup:
    return setup("bulk", at)


def startup_loss(at: Place) -> Setup:
    """Makes an application write half of the rate, with losses after 2 s.

    They are 6 or 7 in a round, or 3 % if that is more.
    """
    every = max(min(math.floor(0.5 * at.bdp / 4.4), 33), 2)
    after = round(0.5 * at.mbit * 1e6 / WIRE_PKT_BITS * LOSSES_S)
    forward = f"{{loss_periodic: {{every: {every}, after: {after}}}}}, {at.link()}"
    return setup("startup-loss", at, forward=forward, source=limited(at, 0.5), params=NO_PROBE_RTT)


def drain_cut(at: Place) -> Setup:
    """Lets the rate fall to 0.35 in the rounds in which Startup waits for a full pipe.

    So the rate that it has measured is too high by a factor of three, and half of it fills the
    link: 10 %, the draft's, would drain within three rounds.
    """
    rounds = 1 + max(math.log2(at.bdp / 10), 0) + 2.6
    schedule = f"{{at: {rounds * at.rtt_ms:.0f}ms, forward.link.rate: {at.mbit * 350:.0f}kbit}}"
    link = at.link(buffer=6)
    return setup("drain-cut", at, forward=link, schedule=schedule, params=NO_PROBE_RTT, seconds=14)


def unfilled(at: Place) -> Setup:
    """Lets the application write half of the rate from the start: Startup never ends."""
    return setup("unfilled", at, source=limited(at, 0.5), seconds=8)


def probing(
    case: str, at: Place, *changes: str, seconds: float = 17, loss: str = "", delay: str = ""
) -> Setup:
    """Makes a flow that is in UP for good: Startup ends at half of the rate.

    `loss` comes before the link, and the changes come from UP_S on.
    """
    grow = f"{{at: 3s, forward.link.rate: {at.mbit * 1e3:.0f}kbit}}"
    return setup(
        case,
        at,
        forward=f"{loss or '{loss: {rate: 0%}}'}, {at.link(0.5, 4)}",
        delay=delay,
        source=limited(at, 0.7),
        params=NO_PROBE_RTT,
        schedule=", ".join((grow, *changes)),
        seconds=seconds,
    )


def brief(key: str, percent: int) -> list[str]:
    times = ((UP_S, percent), (UP_S + 0.03, 0))
    return [f"{{at: {t * 1e3:.0f}ms, forward.{key}: {p}%}}" for t, p in times]


def up_loss(at: Place) -> Setup:
    """Loses 20 % in UP; at a long round trip, of which 30 ms are a small part, half."""
    return probing("up-loss", at, *brief("loss.rate", 20 if at.rtt_ms < 100 else 50))


def up_late(at: Place) -> Setup:
    """Makes 30 % late in UP, by half of a round trip."""
    return probing("up-late", at, *brief("delay.late", 30), delay=f", late_by: {at.rtt_ms / 2}ms")


def up_spike(at: Place) -> Setup:
    """Lets nothing arrive for a second in UP, and then all of it in order."""
    delays = ((UP_S, at.rtt_ms / 2 + 1000), (UP_S + 0.02, at.rtt_ms / 2))
    changes = (f"{{at: {t * 1e3:.0f}ms, forward.delay.delay: {ms}ms}}" for t, ms in delays)
    return probing("up-spike", at, *changes, delay=", on_decrease: fifo")


def up_some_loss(at: Place) -> Setup:
    after = round(0.7 * at.mbit * 1e6 / WIRE_PKT_BITS * UP_S)
    loss = f"{{loss_periodic: {{every: 56, after: {after}}}}}"
    return probing("up-some-loss", at, seconds=15, loss=loss)


def down_cut(at: Place) -> Setup:
    """Lets the rate fall by 15 % at 4.6 s: 0.9 of the rate before is still more than the link's.

    By 10 %, the draft's, 0.9 x 0.99 of it is a little less, and the queue drains in time.
    """
    schedule = f"{{at: 4.6s, forward.link.rate: {at.mbit * 850:.0f}kbit}}"
    link = at.link(buffer=6)
    return setup("down-cut", at, forward=link, schedule=schedule, params=NO_PROBE_RTT, seconds=14)


def idle(at: Place) -> Setup:
    """Makes pauses of 6 s, also before the first data, with 3 s of data in between."""
    size = f"{at.mbit * 1e6 * 3 / 8 / 1e3:.0f}kB"
    source = f"{{request: {{think: 6s, times: fixed, sizes: {{mean: {size}}}}}}}"
    return setup("idle", at, source=source, seconds=28)


def aggregated(at: Place) -> Setup:
    """Lets ACKs come twice in a round trip of the path, all that wait at once."""
    slots = (
        f"{{mahimahi_link: {{unit: {at.rtt_ms / 2}ms, bytes: 1MB,"
        " file: slots.txt, queue: {fifo: {limit: 100000pkt}}}}"
    )
    return setup("aggregated", at, reverse=slots)


def tiny(at: Place) -> Setup:
    """Makes a path that holds less than a packet in a round trip."""
    seconds = max(20.0, 1500 * WIRE_PKT_BITS / (at.mbit * 1e6))
    return setup("tiny", at, forward=at.link(least=20), seconds=round(seconds))


def tenfold(at: Place) -> Setup:
    """Makes a tenth of the rate, whose buffer overflows, the whole rate from 8 s on."""
    schedule = f"{{at: 8s, forward.link.rate: {at.mbit * 1e3:.0f}kbit}}"
    forward = at.link(0.1, 0.04, 6)
    return setup("tenfold", at, forward=forward, schedule=schedule, params=NO_PROBE_RTT, seconds=24)


def tenth(at: Place) -> Setup:
    """Makes the whole rate a tenth of it from 5 s on."""
    schedule = f"{{at: 5s, forward.link.rate: {at.mbit * 100:.0f}kbit}}"
    forward = at.link(buffer=0.3, least=6)
    return setup("tenth", at, forward=forward, schedule=schedule, params=NO_PROBE_RTT, seconds=20)


def policed(at: Place) -> Setup:
    burst = max(round(at.bdp), 10) * 1.5
    policer = f"{{policer: {{rate: {at.mbit:g}Mbit, burst: {burst:g}kB}}}}"
    return setup("policed", at, forward=f"{policer}, {at.link(4)}", seconds=30)


def lossy_probes(at: Place) -> Setup:
    """Loses 5 % from 3 s to 6.5 s and from 12 s on: in the first and in the third probe."""
    changes = ((3, 5), (6.5, 0), (12, 5))
    schedule = ", ".join(f"{{at: {t}s, forward.loss.rate: {percent}%}}" for t, percent in changes)
    forward = f"{{loss: {{rate: 0%}}}}, {at.link()}"
    return setup(
        "lossy-probes", at, forward=forward, schedule=schedule, params=NO_PROBE_RTT, seconds=17
    )
