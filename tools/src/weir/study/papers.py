# SPDX-License-Identifier: BSD-3-Clause
"""What papers and RFCs say of their congestion controls: each statement with the run that tests it.

A statement is a number, or a bound, that its source prints or that follows from its formulas. Its
run is a config of configs/ with overrides, in virtual time, and it is measured on the records of
that run. tests/sim/ asserts most of these, with the reasoning.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt

from weir.analysis import metrics
from weir.analysis.folder import Run
from weir.study.cells import Cell
from weir.study.corescale import CONFIGS

SEGMENT_BITS = 8 * 1448  # of payload
WIRE_BITS = 8 * 1538
REDUCED, MODE = 1, 5  # events
LOLA_HOLD, BBR_PROBE_RTT = 3, 3  # modes
DEQUEUED = 2  # an event of packets
CLOSED = 2  # an event of transfers


@dataclass(frozen=True)
class Trial:
    """One run: a config of configs/ and what is changed in it."""

    name: str
    config: str
    override: tuple[str, ...] = ()

    def cell(self) -> Cell:
        """As the batch runs it."""
        return Cell(self.name, CONFIGS / f"{self.config}.yaml", self.override)


@dataclass(frozen=True)
class Statement:
    """A statement of a source, and how it is measured in the runs of its trials."""

    source: str
    says: str
    trials: tuple[Trial, ...]
    measure: Callable[..., float]  # of the trials' runs
    unit: str
    published: float | None = None
    low: float = -math.inf  # what holds, in `unit`
    high: float = math.inf

    def holds(self, value: float) -> bool:
        """Is it met?"""
        return self.low <= value <= self.high


def counted(flows: int) -> str:
    """1 flow, 2 flows."""
    return f"{flows} flow{'s' * (flows > 1)}"


def near(published: float, part: float) -> dict[str, float]:
    """A number and the bounds around it."""
    return {
        "published": published,
        "low": published * (1 - part),
        "high": published * (1 + part),
    }


# What is measured.


def percentile(values: npt.ArrayLike, percent: float) -> float:
    """The smallest value that so many do not exceed; not a number without any."""
    found = metrics.percentile(values, percent)
    return math.nan if found is None else found


def queue_pkts(run: Run) -> float:
    """Mean queue in packets."""
    return float(run.summary["links"]["forward"]["queue_mean_pkts"])


def utilisation(run: Run) -> float:
    """Of the link, in percent."""
    return 100 * float(run.summary["links"]["forward"]["utilisation"])


def drops(run: Run) -> float:
    """At the link."""
    return float(run.summary["links"]["forward"]["drops"])


def goodput(run: Run, group: int = 0) -> float:
    """Of a group, in Mbit/s."""
    return float(run.summary["groups"][group]["goodput_bps"]) / 1e6


def of_second(run: Run) -> float:
    """The first group's goodput over the second's."""
    return goodput(run, 0) / goodput(run, 1)


def first_in_percent(run: Run) -> float:
    """The first group's part of both groups' goodput."""
    return 100 * goodput(run, 0) / (goodput(run, 0) + goodput(run, 1))


def kept(run: Run, without: Run) -> float:
    """Goodput in percent of that without loss."""
    return 100 * goodput(run) / goodput(without)


def after_warmup(run: Run, stream: str) -> npt.NDArray[np.void]:
    """A stream's records that count."""
    records = run.stream(stream).records
    warmup_ns = round(float(run.summary["warmup_s"]) * 1e9)
    if stream == "transfers":
        return np.asarray(records[records["start_ns"] >= warmup_ns])
    # An interval that ends with the warm-up is of it.
    side: Literal["left", "right"] = "right" if stream in ("interval", "links") else "left"
    return np.asarray(records[np.searchsorted(records["ts_ns"], warmup_ns, side) :])


def times_s(run: Run, event: int, value: int | None = None) -> npt.NDArray[np.float64]:
    """When events happened: reductions, or mode changes to `value`."""
    events = after_warmup(run, "events")
    events = events[events["event"] == event]
    if value is not None:
        events = events[events["value"] == value]
    return np.asarray(events["ts_ns"] * 1e-9, dtype=np.float64)


def cycle_s(event: int, value: int | None = None) -> Callable[[Run], float]:
    """Median time between such events of one flow."""
    return lambda run: float(np.median(np.diff(times_s(run, event, value))))


def acks_median(name: str, scale: float = 1.0) -> Callable[[Run], float]:
    """Median over ACKs of a field of the cc records; obs0 to obs3 are what a control observes."""
    return lambda run: scale * float(np.median(after_warmup(run, "cc")[name]))


def acks_mean(name: str, scale: float = 1.0) -> Callable[[Run], float]:
    """The mean, likewise."""
    return lambda run: scale * float(np.mean(after_warmup(run, "cc")[name]))


def rtt_peak_ms(run: Run) -> float:
    """The longest round trip."""
    return float(np.max(after_warmup(run, "interval")["rtt_max_ns"])) / 1e6


def rtt_trough_ms(run: Run) -> float:
    """The smallest of the intervals' longest round trips."""
    longest = after_warmup(run, "interval")["rtt_max_ns"]
    return float(np.min(longest[longest > 0])) / 1e6


def l4s_p99_ms(run: Run) -> float:
    """The 99th percentile of the first group's time in the queue."""
    packets = after_warmup(run, "packets")
    first = packets["flow_id"] < run.summary["groups"][0]["flows"]
    sent = packets["event"] == DEQUEUED
    return percentile(packets["sojourn_ns"][first & sent], 99) / 1e6


def jfi(run: Run) -> float:
    """Jain's index of all flows."""
    return float(run.summary["jfi"])


def churn_jfi(run: Run) -> float:
    """Median over the seconds of Jain's index of the flows that are there (configs/churn.yaml)."""
    records, found = run.stream("interval").records, []
    for second in range(19):
        here = np.arange(max(0, second - 9), min(second, 9) + 1)
        within = (records["ts_ns"] > second * 1e9) & (records["ts_ns"] <= (second + 1) * 1e9)
        delivered = np.bincount(
            records["flow_id"][within], records["delivered_bytes"][within], minlength=10
        )[here]
        found.append(delivered.sum() ** 2 / (len(here) * np.square(delivered).sum()))
    return float(np.median(found))


def segment_s(percent: float) -> Callable[[Run], float]:
    """A percentile of the time of a video segment: the application's round trip."""

    def measure(run: Run) -> float:
        transfers = after_warmup(run, "transfers")
        done = transfers[transfers["event"] == CLOSED]
        return percentile((done["ts_ns"] - done["start_ns"]) / 1e9, percent)

    return measure


def goodput_mbps(percent: float) -> Callable[[Run], float]:
    """A percentile of the goodput of each second."""

    def measure(run: Run) -> float:
        records = after_warmup(run, "interval")
        second = ((records["ts_ns"] - 1) // 1_000_000_000).astype(np.int64)
        bits = np.bincount(second - second[0], records["delivered_bytes"] * 8.0)
        return percentile(bits / 1e6, percent)

    return measure


def rtt_ms(percent: float) -> Callable[[Run], float]:
    """A percentile of round trips: of intervals' means, each weighed by its samples."""

    def measure(run: Run) -> float:
        records = after_warmup(run, "interval")
        found = metrics.ecdf(records["rtt_mean_ns"] / 1e6, records["rtt_samples"])
        reached = metrics.quantile_of_cdf(*found, percent / 100)
        return math.nan if reached is None else reached

    return measure


def rtx_overhead(run: Run) -> float:
    """Segments sent again over those sent."""
    return float(run.summary["groups"][0]["rtx_overhead"])


def over(measure: Callable[[Run], float]) -> Callable[[Run, Run], float]:
    """What is measured in the first run over the same of the second."""
    return lambda ours, theirs: measure(ours) / measure(theirs)


# The trials.


def delays(rtt: str) -> tuple[str, ...]:
    """Both directions of a path."""
    return (f"paths.forward.delay.delay={rtt}", f"paths.reverse.delay.delay={rtt}")


def copa_steady(flows: int) -> Statement:
    """The queue in equilibrium."""
    return Statement(
        "Copa, NSDI 2018, section 3",
        f"the mean queue of {counted(flows)} is 1.25/delta packets for each",
        (Trial(f"copa-steady-{flows}", "copa-steady", (f"flows.0.count={flows}",)),),
        queue_pkts,
        "packets",
        **near(2.5 * flows, 0.10),
    )


def copa_median(rate_mbps: int) -> Statement:
    """The paper's median of the standing delay."""
    pkts_per_s = rate_mbps * 1e6 / WIRE_BITS / 5
    return Statement(
        "Copa, NSDI 2018, section 3",
        f"the median standing delay of 5 flows at {rate_mbps} Mbit/s is 1/(lambda delta)",
        (
            Trial(
                f"copa-median-{rate_mbps}",
                "copa-median-delay",
                (f"paths.forward.link.rate={rate_mbps}Mbit",),
            ),
        ),
        acks_median("obs2", 1e-6),
        "ms",
        **near(1e3 / (pkts_per_s * 0.5), 0.10),
    )


def copa_deltas(ratio: int) -> Statement:
    """Two values of delta."""
    groups = (
        f"[{{cc: {{copa: {{delta: {0.5 / ratio}}}}}, ack_every: 1}},"
        " {cc: {copa: {delta: 0.5}}, ack_every: 1, start: 1s}]"
    )
    return Statement(
        "Copa, NSDI 2018, section 4",
        f"with delta 1/{ratio} of the other's a flow has {ratio} times its rate",
        (
            Trial(
                f"copa-deltas-{ratio}",
                "copa-steady",
                (f"flows={groups}", "duration=120s", "warmup=40s", "telemetry.level=1"),
            ),
        ),
        of_second,
        "times",
        **near(ratio, 0.10),
    )


def against_cubic(mode: str, says: str, low: float, high: float) -> Statement:
    """One Copa flow beside one CUBIC flow."""
    groups = f"[{{cc: {{copa: {{mode: {mode}}}}}, ack_every: 1}}, {{cc: cubic, start: 1s}}]"
    return Statement(
        "Copa, NSDI 2018, sections 2.2 and 5",
        says,
        (
            Trial(
                f"copa-{mode}-cubic",
                "copa-steady",
                (
                    f"flows={groups}",
                    "paths.forward.link.queue.fifo.limit=1BDP",
                    "duration=120s",
                    "warmup=40s",
                    "telemetry.level=1",
                ),
            ),
        ),
        first_in_percent,
        "%",
        low=low,
        high=high,
    )


def lossy(cc: str, rate: str) -> Trial:
    """One flow over 100 Mbit/s and 30 ms with random loss."""
    name = "".join(letter if letter.isalnum() else "-" for letter in f"{cc}-{rate}")
    return Trial(
        f"loss-{name}",
        "vivace-loss",
        (
            f"flows=[{{cc: {cc}}}]",
            f"paths.forward.loss.rate={rate}",
            "telemetry.level=1",
            "duration=40s",
            "warmup=15s",
        ),
    )


def survives(
    source: str, cc: str, rate: str, low: float = -math.inf, high: float = 100
) -> Statement:
    """Random loss."""
    says = "ignores" if low > 0 else "gives way at"
    name = cc.strip("{").partition(":")[0]
    return Statement(
        source,
        f"{name} {says} {rate} of random loss: goodput of what it has without",
        (lossy(cc, rate), lossy(cc, "0%")),
        kept,
        "%",
        low=low,
        high=high,
    )


def vegas(flows: int) -> Statement:
    """Segments in the queue."""
    return Statement(
        "Vegas, SIGCOMM 1994, section 3.2",
        f"2 to 4 segments of each are queued: {counted(flows)} (Linux's rounding: up to 5)",
        (Trial(f"vegas-{flows}", "vegas-queue", (f"flows.0.count={flows}", "warmup=50s")),),
        lambda run: queue_pkts(run) / flows,
        "packets",
        low=2,
        high=5 + 2 / flows,
    )


LINUX_HOST = "flows.0.host=linux"


def churn(cc: str, published: float, low: float, *overrides: str) -> Statement:
    """Flows that come and go each second."""
    name = cc.strip("{").partition(":")[0]
    return Statement(
        "Copa, NSDI 2018, section 5.1",
        f"flows come and go each second: the median of Jain's index with {name}",
        (Trial(f"churn-{name}", "churn", (f"flows.0.cc={cc}", *overrides)),),
        churn_jfi,
        "",
        published=published,
        low=low,
        high=1 if low >= 0.8 else published + 0.1,
    )


FACEBOOK = "Facebook, Copa for video, 2019"
POLICED = (
    "paths.forward=[{policer: {rate: 1500kbit, burst: 40kB}}, {link: {rate: 100Mbit}},"
    " {delay: {delay: 50ms}}]",
    "schedule=[]",
)


def video(cc: str, where: str, changes: tuple[str, ...] = ()) -> Trial:
    """Live video with a control: on an uplink with 2 s of buffer, or with other paths."""
    control = "{copa: {dialect: mvfst, delta: 0.04}}" if cc == "copa" else cc
    return Trial(f"video-{where}-{cc}", "video-uplink", (f"flows.0.cc={control}", *changes))


def beside_cubic(
    cc: str,
    says: str,
    measure: Callable[[Run], float],
    published: float,
    where: str = "deep",
    changes: tuple[str, ...] = (),
) -> Statement:
    """Facebook's comparison with CUBIC. It is of millions of users: one link shows a direction."""
    return Statement(
        FACEBOOK,
        f"{says}, relative to CUBIC's",
        (video(cc, where, changes), video("cubic", where, changes)),
        over(measure),
        "times",
        published=published,
        low=1.01 if published > 1 else 0,
        high=math.inf if published > 1 else 0.99,
    )


VIDEO = (
    beside_cubic("copa", "Copa: the median time of a segment", segment_s(50), 479 / 499),
    beside_cubic("copa", "Copa: its 90th percentile", segment_s(90), 3.9 / 5.4),
    beside_cubic("copa", "Copa: the 10th percentile of goodput", goodput_mbps(10), 1.062),
    beside_cubic("copa", "Copa: the median goodput", goodput_mbps(50), 1.163),
    beside_cubic("copa", "Copa: the 75th percentile of the RTT", rtt_ms(75), 0.65),
    beside_cubic("copa", "Copa: its 95th percentile", rtt_ms(95), 0.55),
    beside_cubic("bbr", "BBR: the median time of a segment", segment_s(50), 462 / 499),
    beside_cubic("bbr", "BBR: the median goodput", goodput_mbps(50), 1.055),
    beside_cubic("bbr", "BBR: the 75th percentile of the RTT", rtt_ms(75), 0.9),
    beside_cubic("bbr", "BBR: its 95th percentile", rtt_ms(95), 0.84),
    beside_cubic(
        "copa",
        "Copa, 200 ms of buffer: retransmissions",
        rtx_overhead,
        0.25,
        "short",
        ("paths.forward.link.queue.fifo.limit=200ms",),
    ),
    beside_cubic(
        "copa", "Copa behind a policer: retransmissions", rtx_overhead, 4.5, "policer", POLICED
    ),
    Statement(
        FACEBOOK,
        "Copa behind a policer: no queue, the 95th percentile of the RTT over the path's 100 ms",
        (video("copa", "policer", POLICED),),
        lambda run: rtt_ms(95)(run) - 100,
        "ms",
        low=0,
        high=5,
    ),
)

LOLA = "LoLa, LCN 2017"
LOLA_ALONE = Trial("lola-1", "lola-two", ("flows.0.count=1", "duration=32s", "warmup=11s"))
LOLA_TWO = Trial("lola-2", "lola-two", ("duration=150s", "warmup=75s"))
LOLA_100M = Trial(
    "lola-100m",
    "lola-two",
    ("paths.forward.link.rate=100Mbit", "flows.0.stagger=5s", "warmup=20s"),
)
LOLA_18 = Trial(
    "lola-18",
    "lola-two",
    (
        "paths.forward.link.rate=1Gbit",
        "flows.0.count=18",
        "flows.0.stagger=4s",
        "duration=110s",
        "warmup=80s",
    ),
)


def holds_of_one(run: Run) -> float:
    """Median time between a flow's HOLD phases."""
    events = after_warmup(run, "events")
    events = events[(events["event"] == MODE) & (events["value"] == LOLA_HOLD)]
    first = events[events["flow_id"] == events["flow_id"][0]]
    return float(np.median(np.diff(first["ts_ns"]))) / 1e9


DCTCP_80MS = Trial("dctcp-80ms", "dctcp-step", (*delays("40ms"), "duration=45s", "warmup=32s"))
DCTCP_10MS = Trial("dctcp-10ms", "dctcp-step")
NEWRENO = Trial(
    "newreno-1bdp",
    "cubic-curve",
    ("flows=[{cc: newreno, ack_every: 1}]", *delays("10ms"), "telemetry.level=1"),
)
CUBIC = Trial("cubic-1bdp", "cubic-curve", ("telemetry.level=1",))
BBR = Trial("bbr-alone", "bbr-lone", ("telemetry.level=1",))
L4S = Trial("dualpi2-l4s", "dualpi2-l4s", ("telemetry.level=3",))
LEDBAT = Trial("ledbat-alone", "ledbat-background", ("flows=[{cc: ledbat}]",))
LEDBAT_RENO = Trial("ledbat-newreno", "ledbat-background", ("telemetry.level=1", "warmup=130s"))
WESTWOOD = Trial("westwood", "westwood-loss", ("telemetry.level=1",))
WESTWOOD_RENO = Trial(
    "westwood-newreno", "westwood-loss", ("flows.0.cc=newreno", "telemetry.level=1")
)
ILLINOIS = Trial("illinois", "illinois-alone", ("telemetry.level=1",))

BDP_20MS = 100e6 * 0.020 / WIRE_BITS
BDP_100MS = 100e6 * 0.100 / WIRE_BITS
ILLINOIS_S = 2.84 * 0.040 * (10e6 * 0.040 / WIRE_BITS)

STATEMENTS = (
    *(copa_steady(flows) for flows in (1, 2, 5, 10)),
    *(copa_median(rate) for rate in (6, 60)),
    *(copa_deltas(ratio) for ratio in (2, 4)),
    churn("{copa: {mode: auto}}", 0.86, 0.8),
    # The kernel's controls with the kernel's bursts. Ideal hosts send segment by segment, which
    # meet a full queue always at the same phase: some flows of BBR then get nothing (0.36).
    churn("cubic", 0.81, 0.71, LINUX_HOST),
    churn("bbr", 0.61, 0.51, LINUX_HOST),
    churn("pcc", 0.35, 0.25),
    *VIDEO,
    against_cubic("auto", "with mode switching, it gets a part like CUBIC's", 30, 70),
    against_cubic("default", "in default mode, it gives way to a full buffer", 0, 30),
    survives("Copa, NSDI 2018, section 5.4", "{copa: {}}", "5%", low=90),
    survives("BBR, ACM Queue 2016, figure 8", "bbr", "5%", low=85),
    survives("BBR, ACM Queue 2016, figure 8", "cubic", "1%", high=25),
    survives("PCC, NSDI 2015, section 4.1.3", "newreno", "1%", high=15),
    survives("PCC, NSDI 2015, section 4.1.3", "pcc", "1%", low=90),
    survives("PCC, NSDI 2015, section 4.1.3", "pcc", "8%", high=15),
    survives("Vivace, NSDI 2018, section 5", "{vivace: {utility: loss}}", "1%", low=90),
    Statement(
        "RFC 5681",
        "NewReno alone on a buffer of 1 BDP: 5/9 of it is full on average",
        (NEWRENO,),
        queue_pkts,
        "packets",
        **near(5 / 9 * BDP_20MS, 0.05),
    ),
    Statement(
        "RFC 9438",
        "CUBIC alone on a buffer of 1 BDP: W (1 - 0.3/4) - BDP, with W = 2 BDP",
        (CUBIC,),
        queue_pkts,
        "packets",
        **near((2 * (1 - 0.3 / 4) - 1) * BDP_100MS, 0.05),
    ),
    Statement(
        "RFC 9438",
        "its period is K = cbrt(0.3 W / 0.4)",
        (CUBIC,),
        cycle_s(REDUCED),
        "s",
        **near(math.cbrt(0.3 * 2 * BDP_100MS / 0.4), 0.10),
    ),
    Statement(
        "BBR, draft-cardwell-iccrg-bbr-congestion-control-00",
        "PROBE_RTT every 10 s, and the 0.2 s it takes",
        (BBR,),
        cycle_s(MODE, BBR_PROBE_RTT),
        "s",
        **near(10.25, 0.01),
    ),
    Statement("BBR, ACM Queue 2016", "the link is full", (BBR,), utilisation, "%", low=97),
    *(vegas(flows) for flows in (1, 4, 8)),
    Statement(
        LOLA,
        "L1: one flow, 10 Gbit/s, 21 ms: a cycle",
        (LOLA_ALONE,),
        holds_of_one,
        "s",
        **near(9.7, 0.15),
    ),
    Statement(
        LOLA,
        "the RTT peaks at base + 5 ms",
        (LOLA_ALONE,),
        rtt_peak_ms,
        "ms",
        published=26,
        low=26,
        high=28,
    ),
    Statement(
        LOLA,
        "and falls to the base",
        (LOLA_ALONE,),
        rtt_trough_ms,
        "ms",
        published=21,
        low=21,
        high=21.5,
    ),
    Statement(LOLA, "L2: two flows: a cycle", (LOLA_TWO,), holds_of_one, "s", **near(7.7, 0.15)),
    Statement(LOLA, "and they are fair: Jain's index", (LOLA_TWO,), jfi, "", low=0.98),
    Statement(
        LOLA,
        "L4: two flows at 100 Mbit/s: a cycle",
        (LOLA_100M,),
        holds_of_one,
        "s",
        **near(1.9, 0.15),
    ),
    Statement(LOLA, "L5: 18 flows lose nothing", (LOLA_18,), drops, "packets", **near(0, 0)),
    Statement(
        "ns-3, tcp-validation",
        "DCTCP at 50 Mbit/s and 10 ms",
        (DCTCP_10MS,),
        goodput,
        "Mbit/s",
        low=48,
        high=49,
    ),
    Statement(
        "ns-3, tcp-validation",
        "its mean alpha there",
        (DCTCP_10MS,),
        acks_mean("obs1"),
        "",
        low=0.055,
        high=0.09,
    ),
    Statement(
        "ns-3, tcp-validation",
        "DCTCP at 50 Mbit/s and 80 ms",
        (DCTCP_80MS,),
        goodput,
        "Mbit/s",
        low=47.5,
        high=48.5,
    ),
    Statement(
        "RFC 9332", "an L4S packet waits less than 1 ms at p99", (L4S,), l4s_p99_ms, "ms", high=1
    ),
    Statement(
        "RFC 9332, section 2.1",
        "Prague gets about what CUBIC gets",
        (L4S,),
        of_second,
        "times",
        **near(1, 0.3),
    ),
    Statement(
        "RFC 6817",
        "LEDBAT alone keeps 100 ms of queueing delay",
        (LEDBAT,),
        acks_mean("obs0", 1e-6),
        "ms",
        **near(100, 0.05),
    ),
    Statement(
        "RFC 6817",
        "and leaves the link to NewReno: 2 of 130 segments",
        (LEDBAT_RENO,),
        first_in_percent,
        "%",
        high=100 * 2 / 130,
    ),
    Statement(
        "Westwood+, CCR 2004",
        "under 1 % of random loss it gets at least twice what NewReno gets",
        (WESTWOOD, WESTWOOD_RENO),
        lambda ours, reno: goodput(ours) / goodput(reno),
        "times",
        low=2,
    ),
    Statement(
        "Mathis et al., CCR 1997",
        "NewReno gets sqrt(3/(2p))/RTT under 1 % of random loss",
        (WESTWOOD_RENO,),
        goodput,
        "Mbit/s",
        **near(math.sqrt(1.5 / 0.01) / 0.1 * SEGMENT_BITS / 1e6, 0.15),
    ),
    Statement(
        "Illinois, Perf. Eval. 2008",
        "a cycle alone on a buffer of 1 BDP",
        (ILLINOIS,),
        cycle_s(REDUCED),
        "s",
        **near(ILLINOIS_S, 0.15),
    ),
)


@dataclass(frozen=True)
class Plan:
    """What will be run."""

    out: Path
    statements: tuple[Statement, ...] = STATEMENTS

    @property
    def trials(self) -> list[Trial]:
        """Each once."""
        return list(
            {
                trial.name: trial for statement in self.statements for trial in statement.trials
            }.values()
        )
