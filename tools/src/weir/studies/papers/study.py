# SPDX-License-Identifier: BSD-3-Clause
"""What papers and RFCs say of other congestion controls than Copa and LoLa, which have studies.

tests/sim/ asserts most of these, with the reasoning.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

from weir.study.claim import CONFIGS, Claim, Experiment, Kind, Study, Trial, near
from weir.study.measures import (
    SEGMENT_BITS,
    WIRE_BITS,
    acks_mean,
    cycle_s,
    first_in_percent,
    goodput,
    kept,
    l4s_p99_ms,
    of_second,
    queue_pkts,
    utilisation,
)

BBR_PROBE_RTT = 3  # a mode, MODE_PROBE_RTT of sender/cc/bbr.c
OWN = "our own band: the formula is of a smooth sawtooth, and segments are whole"


def claim(
    source: str,
    says: str,
    trials: tuple[Trial, ...],
    measure: Callable[..., float],
    unit: str,
    *,
    published: float | None = None,
    low: float = -math.inf,
    high: float = math.inf,
    kind: Kind | None = None,
    tolerance: str = "",
    why: str = "",
) -> Claim:
    """A number if one is published, else an order."""
    kind = kind or ("direction" if published is None else "number")
    return Claim(says, source, kind, trials, measure, unit, published, low, high, tolerance, why)


def delays(rtt: str) -> tuple[str, ...]:
    """Both directions of a path."""
    return (f"paths.forward.delay.delay={rtt}", f"paths.reverse.delay.delay={rtt}")


def lossy(cc: str, rate: str) -> Trial:
    """One flow over 100 Mbit/s and 30 ms with random loss."""
    name = "".join(letter if letter.isalnum() else "-" for letter in f"{cc}-{rate}")
    return Trial(
        f"loss-{name}",
        CONFIGS / "vivace-loss.yaml",
        (
            f"flows=[{{cc: {cc}}}]",
            f"paths.forward.loss.rate={rate}",
            "telemetry.level=1",
            "duration=40s",
            "warmup=15s",
        ),
    )


def survives(source: str, cc: str, rate: str, low: float = -math.inf, high: float = 100) -> Claim:
    """Random loss."""
    says = "ignores" if low > 0 else "gives way at"
    name = cc.strip("{").partition(":")[0]
    return claim(
        source,
        f"{name} {says} {rate} of random loss: goodput of what it has without",
        (lossy(cc, rate), lossy(cc, "0%")),
        kept,
        "%",
        low=low,
        high=high,
    )


def vegas(flows: int) -> Claim:
    """Segments in the queue."""
    return claim(
        "section 3.2",
        f"2 to 4 segments of each are queued: {flows} flow{'s' * (flows > 1)}"
        " (Linux's rounding: up to 5)",
        (
            Trial(
                f"vegas-{flows}",
                CONFIGS / "vegas-queue.yaml",
                (f"flows.0.count={flows}", "warmup=50s"),
            ),
        ),
        lambda run: queue_pkts(run) / flows,
        "packets",
        low=2,
        high=5 + 2 / flows,
    )


DCTCP_80MS = Trial(
    "dctcp-80ms", CONFIGS / "dctcp-step.yaml", (*delays("40ms"), "duration=45s", "warmup=32s")
)
DCTCP_10MS = Trial("dctcp-10ms", CONFIGS / "dctcp-step.yaml")
NEWRENO = Trial(
    "newreno-1bdp",
    CONFIGS / "cubic-curve.yaml",
    ("flows=[{cc: newreno, ack_every: 1}]", *delays("10ms"), "telemetry.level=1"),
)
CUBIC = Trial("cubic-1bdp", CONFIGS / "cubic-curve.yaml", ("telemetry.level=1",))
BBR = Trial("bbr-alone", CONFIGS / "bbr-lone.yaml", ("telemetry.level=1",))
L4S = Trial("dualpi2-l4s", CONFIGS / "dualpi2-l4s.yaml", ("telemetry.level=3",))
LEDBAT = Trial("ledbat-alone", CONFIGS / "ledbat-background.yaml", ("flows=[{cc: ledbat}]",))
LEDBAT_RENO = Trial(
    "ledbat-newreno", CONFIGS / "ledbat-background.yaml", ("telemetry.level=1", "warmup=130s")
)
WESTWOOD = Trial("westwood", CONFIGS / "westwood-loss.yaml", ("telemetry.level=1",))
WESTWOOD_RENO = Trial(
    "westwood-newreno", CONFIGS / "westwood-loss.yaml", ("flows.0.cc=newreno", "telemetry.level=1")
)
ILLINOIS = Trial("illinois", CONFIGS / "illinois-alone.yaml", ("telemetry.level=1",))

BDP_20MS = 100e6 * 0.020 / WIRE_BITS
BDP_100MS = 100e6 * 0.100 / WIRE_BITS
ILLINOIS_S = 2.84 * 0.040 * (10e6 * 0.040 / WIRE_BITS)

EXPERIMENTS = (
    Experiment(
        "NewReno",
        "RFC 5681, and its throughput under random loss (Mathis et al., CCR 1997)",
        (
            claim(
                "RFC 5681",
                "alone on a buffer of 1 BDP, 5/9 of it is full on average",
                (NEWRENO,),
                queue_pkts,
                "packets",
                **near(5 / 9 * BDP_20MS, 0.05),
                kind="derived",
                tolerance=OWN,
            ),
            claim(
                "Mathis, section 2",
                "it gets sqrt(3/(2p))/RTT under 1 % of random loss",
                (WESTWOOD_RENO,),
                goodput,
                "Mbit/s",
                **near(math.sqrt(1.5 / 0.01) / 0.1 * SEGMENT_BITS / 1e6, 0.15),
                kind="derived",
                tolerance="our own band: the formula is of periodic losses",
            ),
            survives("PCC, NSDI 2015, section 4.1.3", "newreno", "1%", high=15),
        ),
    ),
    Experiment(
        "CUBIC",
        "RFC 9438",
        (
            claim(
                "section 4.2",
                "alone on a buffer of 1 BDP: W (1 - 0.3/4) - BDP, with W = 2 BDP",
                (CUBIC,),
                queue_pkts,
                "packets",
                **near((2 * (1 - 0.3 / 4) - 1) * BDP_100MS, 0.05),
                kind="derived",
                tolerance=OWN,
            ),
            claim(
                "section 4.2",
                "its period is K = cbrt(0.3 W / 0.4)",
                (CUBIC,),
                cycle_s("reduction"),
                "s",
                **near(math.cbrt(0.3 * 2 * BDP_100MS / 0.4), 0.10),
                kind="derived",
                tolerance=OWN,
            ),
            survives("BBR, ACM Queue 2016, figure 8", "cubic", "1%", high=25),
        ),
    ),
    Experiment(
        "BBR",
        "Cardwell et al., ACM Queue 2016, and its draft",
        (
            claim(
                "draft-cardwell-iccrg-bbr-congestion-control-00",
                "PROBE_RTT every 10 s, and the 0.2 s it takes",
                (BBR,),
                cycle_s("cc_mode", BBR_PROBE_RTT),
                "s",
                **near(10.25, 0.01),
                kind="derived",
                tolerance="our own band: a round trip to notice",
            ),
            claim("ACM Queue", "the link is full", (BBR,), utilisation, "%", low=97),
            survives("ACM Queue, figure 8", "bbr", "5%", low=85),
        ),
    ),
    Experiment(
        "PCC",
        "PCC (NSDI 2015) and Vivace (NSDI 2018) under random loss",
        (
            survives("PCC, section 4.1.3", "pcc", "1%", low=90),
            survives("PCC, section 4.1.3", "pcc", "8%", high=15),
            survives("Vivace, section 5", "{vivace: {utility: loss}}", "1%", low=90),
        ),
    ),
    Experiment("Vegas", "Brakmo et al., SIGCOMM 1994", tuple(vegas(n) for n in (1, 4, 8))),
    Experiment(
        "DCTCP",
        "ns-3's tcp-validation",
        (
            claim(
                "tcp-validation",
                "at 50 Mbit/s and 10 ms",
                (DCTCP_10MS,),
                goodput,
                "Mbit/s",
                low=48,
                high=49,
            ),
            claim(
                "tcp-validation",
                "its mean alpha there",
                (DCTCP_10MS,),
                acks_mean("obs1"),
                "",
                low=0.055,
                high=0.09,
            ),
            claim(
                "tcp-validation",
                "at 50 Mbit/s and 80 ms",
                (DCTCP_80MS,),
                goodput,
                "Mbit/s",
                low=47.5,
                high=48.5,
            ),
        ),
    ),
    Experiment(
        "L4S",
        "Prague over DualPI2 (RFC 9332)",
        (
            claim(
                "section 1",
                "an L4S packet waits less than 1 ms at p99",
                (L4S,),
                l4s_p99_ms,
                "ms",
                high=1,
            ),
            claim(
                "section 2.1",
                "Prague gets about what CUBIC gets",
                (L4S,),
                of_second,
                "times",
                low=0.7,
                high=1.3,
            ),
        ),
    ),
    Experiment(
        "LEDBAT",
        "RFC 6817",
        (
            claim(
                "section 2.3",
                "alone it keeps its target of 100 ms of queueing delay",
                (LEDBAT,),
                acks_mean("obs0", 1e-6),
                "ms",
                **near(100, 0.05),
                tolerance="our own band",
            ),
            claim(
                "section 2.2",
                "and leaves the link to NewReno: 2 of 130 segments",
                (LEDBAT_RENO,),
                first_in_percent,
                "%",
                high=100 * 2 / 130,
            ),
        ),
    ),
    Experiment(
        "Westwood+",
        "Mascolo, Grieco, CCR 2004",
        (
            claim(
                "section 5",
                "under 1 % of random loss it gets at least twice what NewReno gets",
                (WESTWOOD, WESTWOOD_RENO),
                lambda ours, reno: goodput(ours) / goodput(reno),
                "times",
                low=2,
            ),
        ),
    ),
    Experiment(
        "Illinois",
        "Liu et al., Performance Evaluation 2008",
        (
            claim(
                "section 4",
                "a cycle alone on a buffer of 1 BDP",
                (ILLINOIS,),
                cycle_s("reduction"),
                "s",
                **near(ILLINOIS_S, 0.15),
                kind="derived",
                tolerance=OWN,
            ),
        ),
    ),
)


STUDY = Study(
    "papers",
    "What papers and RFCs say of their congestion controls",
    "One source for each control; Copa's and LoLa's have studies of their own",
    EXPERIMENTS,
    Path(__file__).parent,
)
