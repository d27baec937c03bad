# SPDX-License-Identifier: BSD-3-Clause
"""Copa (Arun and Balakrishnan, NSDI 2018): the experiments of its sections 3 to 5."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from weir.study.claim import Claim, Experiment, Study, Trial, near, trial_of
from weir.study.measures import (
    Floats,
    acks_median,
    after_warmup,
    churn_jfi,
    goodput,
    goodputs,
    jain,
    jfi,
    of_second,
    only_queue_ms,
    percentile,
    queue_ms,
    queue_pkts,
    used,
)

if TYPE_CHECKING:
    from weir.analysis.folder import Run

OURS = "our own band"
FORMULA = "our own band: packets are whole, and RTTstanding lags by half a round trip"
RATE, CC = "paths.forward.link.rate", "flows.0.cc"
LINUX = ("flows.0.host=linux", "flows.0.ack_every=cc")


trial = partial(trial_of, "copa")
# C1 to C5: the steady state.


def steady(flows: int) -> Trial:
    """n flows of delta 0.5."""
    return trial(f"c1-{flows}", f"flows.0.count={flows}")


VELOCITY = trial("c1-velocity", "telemetry={level: 3, interval: 100ms}", "duration=40s")


def period_rtts(run: Run) -> float:
    """The strongest period of the queue's swing, in mean round trips."""
    links = after_warmup(run, "links")
    first = links[links["link"] == 0]
    queue = first["queue_mean_pkts"].astype(np.float64)
    steps_ns: Floats = np.diff(first["ts_ns"])
    step_s = float(np.median(steps_ns)) / 1e9
    power = np.abs(np.fft.rfft(queue - queue.mean())) ** 2
    frequency = np.fft.rfftfreq(len(queue), step_s)[1 + int(np.argmax(power[1:]))]
    return float(1e9 / frequency / run.summary["groups"][0]["rtt_mean_ns"])


def velocity_is_1(run: Run) -> float:
    """Share of ACKs, in percent."""
    return 100 * float(np.mean(after_warmup(run, "cc")["obs0"] == 1))


def per_flow(run: Run) -> float:
    """Packets of queue for each flow."""
    return float(queue_pkts(run) / sum(group["flows"] for group in run.summary["groups"]))


C1 = Experiment(
    "C1",
    "the oscillation of the steady state",
    (
        *(
            Claim(
                f"the mean queue of {flows} flow{'s' * (flows > 1)} is 1.25/delta-hat packets",
                "section 3, figure 1",
                "number",
                (steady(flows),),
                queue_pkts,
                "packets",
                **near(2.5 * flows, 0.10),
                tolerance=FORMULA,
            )
            for flows in (1, 2, 5, 10)
        ),
        Claim(
            "its period is 5 round trips: five flows",
            "section 3, figure 1",
            "number",
            (steady(5),),
            period_rtts,
            "RTT",
            **near(5, 0.10),
            tolerance=FORMULA,
        ),
        Claim(
            "the velocity is 1 throughout: share of ACKs",
            "section 3",
            "direction",
            (VELOCITY,),
            velocity_is_1,
            "%",
            low=95,
        ),
    ),
)


def hundred(mode: str, rtt_ms: int) -> Trial:
    """Up to 100 flows."""
    return trial(
        f"c2-{mode}-{rtt_ms}ms",
        f"{CC}={{copa: {{delta: 0.5, mode: {mode}}}}}",
        f"paths.reverse.delay.delay={rtt_ms - 10}ms",
    )


C2 = Experiment(
    "C2",
    "flows are added one by one up to 100",
    (
        *(
            Claim(
                f"the queue is 2.5 packets for each of 100 flows: {mode} mode, {rtt_ms} ms",
                "section 3 (ns-2: the properties 'held throughout')",
                "derived",
                (hundred(mode, rtt_ms),),
                per_flow,
                "packets",
                **near(2.5, 0.20),
                tolerance="our own band; the paper prints no number",
                why=""
                if mode == "default"
                else "100 flows keep 250 packets where the path holds 163: the queue never gets"
                " nearly empty, which is how a flow knows that all others are Copa. Each takes the"
                " others for loss-based ones and becomes competitive.",
            )
            for mode in ("default", "auto")
            for rtt_ms in (20, 40)
        ),
        Claim(
            "and the flows are fair: Jain's index, default mode, 20 ms",
            "section 3",
            "direction",
            (hundred("default", 20),),
            jfi,
            "",
            low=0.99,
        ),
    ),
)


C3 = Experiment(
    "C3",
    "the median standing delay is 1/(lambda delta)",
    tuple(
        Claim(
            f"{mbps} Mbit/s per flow: {ms} ms",
            "section 3",
            "number",
            (trial(f"c3-{name}", f"{RATE}={rate}Mbit"),),
            acks_median("obs2", 1e-6),
            "ms",
            **near(ms, 0.10),
            tolerance="our own band: packets have 1538 bytes on the wire, the paper's 1500",
        )
        for name, rate, mbps, ms in (("12m", 60, "12", 2.0), ("1m2", 6, "1.2", 20.0))
    ),
)

C4 = Experiment(
    "C4",
    "setting the rate directly to the target",
    (
        Claim(
            "it converges only if 0.8 times the sum of 1/delta is below the BDP",
            "section 3",
            "not comparable",
            why="Weir has Copa's rule of steps. Tried once, a window set to the target at each ACK"
            " swings by 22 to 50 % of its mean on both sides of that bound, from 0.3 to 6 times the"
            " BDP.",
        ),
    ),
)


def nash_rates(deltas: Floats, capacity: float = 1.0) -> Floats:
    """Rates at which nobody gains by another rate: U = log(rate) - delta log(delay), M/M/1's delay.

    Each sender in turn takes the rate that is best for it, found by bisection of what a little more
    would gain, until none moves.
    """
    rates = np.full(len(deltas), 0.5 * capacity / len(deltas))
    for _ in range(20_000):
        before = rates.copy()
        for i, delta in enumerate(deltas):
            room = capacity - (rates.sum() - rates[i])
            low, high = 0.0, room
            for _ in range(100):
                rate = (low + high) / 2
                gain = math.log1p(1e-9) - delta * -math.log1p(
                    -1e-9 * rate / max(room - rate, 1e-300)
                )
                low, high = (rate, high) if gain > 0 else (low, rate)
            rates[i] = (low + high) / 2
        if np.abs(rates - before).max() < 1e-12 * capacity:
            break
    return rates


DELTAS = np.array([0.1, 0.2, 0.5, 1.0, 2.0])


def formula_of_nash() -> float:
    """Equation 5 has mu/(delta (1/delta-hat + 1)): the sender furthest from it, as a ratio."""
    formula = 1 / (DELTAS * ((1 / DELTAS).sum() + 1))
    ratios = nash_rates(DELTAS) / formula
    return float(ratios[np.argmax(np.abs(ratios - 1))])


def total_of_nash() -> float:
    """Ten senders of delta 0.5: their rates together; equation 8 has 1/(1 + delta-hat)."""
    return float(nash_rates(np.full(10, 0.5)).sum())


def weighed(run: Run) -> float:
    """The flow whose goodput times delta is furthest from the mean of all, as a ratio to it."""
    found = goodputs(run) * DELTAS
    ratios = found / found.mean()
    return float(ratios[np.argmax(np.abs(ratios - 1))])


C5 = Experiment(
    "C5",
    "the equilibrium of senders that each do what is best for them",
    (
        Claim(
            "no sender gains by another rate than mu/(delta (1/delta-hat + 1)): M/M/1, computed",
            "section 4, equation 5",
            "number",
            (),
            formula_of_nash,
            "times",
            **near(1, 1e-4),
            tolerance="of the computation: a gain is told to 1e-9 of a rate",
        ),
        Claim(
            "together they have mu/(1 + delta-hat): ten senders of delta 0.5, computed",
            "section 4, equation 8",
            "number",
            (),
            total_of_nash,
            "of the link",
            **near(1 / (1 + 0.05), 1e-4),
            tolerance="of the computation",
        ),
        Claim(
            "rates are in proportion to 1/delta: five flows of delta 0.1 to 2, the furthest",
            "section 4",
            "number",
            (trial("c5-run"),),
            weighed,
            "times",
            **near(1, 0.15),
            tolerance="our own band: a window of delta 2 is of a few whole segments",
        ),
        Claim(
            "paced senders fill the link, where Poisson arrivals would not",
            "section 4",
            "direction",
            (trial("c5-run"),),
            used,
            "of it",
            low=0.99,
        ),
    ),
)

# C6 to C12: experiments.

CHURN = {
    "copa": (f"{CC}={{copa: {{mode: auto}}}}",),
    "copa-default": (f"{CC}={{copa: {{mode: default}}}}",),
    "cubic": (f"{CC}=cubic", *LINUX),
    "bbr": (f"{CC}=bbr", *LINUX),
    "pcc": (f"{CC}=pcc",),
}
C6_PUBLISHED = {"copa": 0.86, "cubic": 0.81, "bbr": 0.61, "pcc": 0.35}


def churn(name: str) -> Trial:
    """Flows that come and go."""
    return trial(f"c6-{name}", *CHURN[name], seeds=(5, 10))


C6 = Experiment(
    "C6",
    "flows come and go each second",
    (
        Claim(
            "the median of Jain's index with mode switching is at least CUBIC's: less that one's",
            "section 5.1, figure 4",
            "direction",
            (churn("copa"), churn("cubic")),
            lambda copa, cubic: churn_jfi(copa) - churn_jfi(cubic),
            "",
            low=0,
        ),
        Claim(
            "in default mode it is at least as high: less that of mode switching",
            "section 5.1",
            "direction",
            (churn("copa-default"), churn("copa")),
            lambda default, auto: churn_jfi(default) - churn_jfi(auto),
            "",
            low=-0.01,
        ),
        *(
            Claim(
                f"the median of Jain's index: {name}",
                "section 5.1, figure 4",
                "number",
                (churn(name),),
                churn_jfi,
                "",
                published=number,
                low=number - 0.1,
                high=min(1.0, number + 0.1),
                tolerance="our own band: the paper has an emulated link between hosts and does not"
                " say how often it ran",
                why={
                    "copa": "Nothing delays packets at random here: with noise between hosts a flow"
                    " takes it for other traffic now and then, as the paper says.",
                    "bbr": "Starts by Linux hosts that vary by 10 ms: 0.72 to 0.92. With Linux 6.12"
                    " itself in their place it is 0.79 to 0.85.",
                }.get(name, ""),
            )
            for name, number in C6_PUBLISHED.items()
        ),
    ),
)

C7 = Experiment(
    "C7",
    "Internet paths",
    (
        Claim(
            "2 to 10 times less queueing delay than CUBIC and BBR at nearly the same throughput",
            "section 5.2, figure 5",
            "not comparable",
            why="Pantheon's paths of 2017 cannot be run. Its schedule on a cellular link from a"
            " trace stands below: a different network.",
        ),
        Claim(
            "on such a trace: mean time in the queue, of CUBIC's",
            "the schedule of section 5.2",
            "direction",
            (trial("c7-copa"), trial("c7-cubic", f"{CC}=cubic", "flows.0.ack_every=cc")),
            lambda copa, cubic: only_queue_ms(copa) / only_queue_ms(cubic),
            "times",
            high=0.5,
        ),
    ),
)


CODEL = "paths.forward.link.queue={codel: {limit: 3750kB}}"
SCHEMES = {
    "copa": ("{copa: {}}", ()),
    "auto": ("{copa: {mode: auto}}", ()),
    "cubic": ("cubic", ()),
    "cubic-codel": ("cubic", (CODEL,)),
    "newreno": ("newreno", ()),
    "vegas": ("vegas", ()),
}


def spread_rtts(scheme: str) -> Trial:
    """Twenty flows with round trips of 15 to 300 ms."""
    cc, more = SCHEMES[scheme]
    every = "1" if "copa" in cc else "cc"
    changes = [f"flows.{i}.cc={cc}" for i in range(20)] if scheme != "copa" else []
    changes += [f"flows.{i}.ack_every={every}" for i in range(20)] if every != "1" else []
    return trial(f"c8-{scheme}", *changes, *more)


def fair(run: Run) -> float:
    """Jain's index of all flows."""
    return jain(goodputs(run))


C8_PUBLISHED = {"auto": 0.76, "cubic": 0.12, "cubic-codel": 0.57, "newreno": 0.37}
C8 = Experiment(
    "C8",
    "fairness over round trips of 15 to 300 ms",
    (
        Claim(
            "Jain's index in default mode is about 1",
            "section 5.3, figure 6",
            "number",
            (spread_rtts("copa"),),
            fair,
            "",
            published=1,
            low=0.98,
            high=1,
            tolerance="the source says 'about'",
        ),
        *(
            Claim(
                says,
                "section 5.3, figure 6",
                "direction",
                (spread_rtts("auto"), spread_rtts(other)),
                lambda auto, theirs: fair(auto) - fair(theirs),
                "",
                low=0,
            )
            for other, says in (
                ("cubic", "with mode switching it is fairer than CUBIC: less CUBIC's index"),
                ("cubic-codel", "and than CUBIC over CoDel: less its index"),
                ("newreno", "and than NewReno: less its index"),
            )
        ),
        *(
            Claim(
                f"Jain's index: {name}",
                "section 5.3, figure 6",
                "number",
                (spread_rtts(name),),
                fair,
                "",
                published=number,
                low=max(0.0, number - 0.1),
                high=number + 0.1,
                tolerance=f"{OURS}: one run of ns-2, whose starts are not printed",
            )
            for name, number in C8_PUBLISHED.items()
        ),
    ),
)

LOSSES = (0, 1, 2, 5, 10)
FLAT = ("copa", "bbr", "pcc", "newreno", "cubic", "vegas")


def lossy(cc: str, percent: int) -> Trial:
    """Random loss."""
    changes = () if cc == "copa" else (f"{CC}={cc}", "flows.0.ack_every=cc")
    return trial(f"c9-{cc}-{percent}", f"paths.forward.loss.rate={percent}%", *changes)


def of_lossless(
    cc: str, percent: int, says: str, low: float = -math.inf, high: float = math.inf
) -> Claim:
    """Goodput of that without loss."""
    return Claim(
        f"{cc} {says}: goodput at {percent} % of what it has without loss",
        "section 5.4, figure 7",
        "direction",
        (lossy(cc, percent), lossy(cc, 0)),
        lambda some, none: 100 * goodput(some) / goodput(none),
        "%",
        low=low,
        high=high,
    )


C9 = Experiment(
    "C9",
    "random loss",
    (
        *(
            of_lossless("copa", percent, "stays flat", low=95 * (1 - percent / 100))
            for percent in LOSSES[1:]
        ),
        *(of_lossless("bbr", percent, "stays flat", low=85) for percent in LOSSES[1:]),
        *(of_lossless("pcc", percent, "stays flat to about 5 %", low=90) for percent in (1, 2)),
        of_lossless("pcc", 10, "and collapses", high=50),
        *(
            of_lossless(cc, percent, "falls", high=high)
            for cc in ("newreno", "cubic", "vegas")
            for percent, high in ((1, 50), (2, 50), (5, 25), (10, 25))
        ),
    ),
)

SMALL_BYTES = 64e3
DATACENTER = {
    "copa": (),
    "dctcp": (
        f"{CC}=dctcp",
        "flows.0.ack_every=cc",
        "flows.0.ecn=ect0",
        "paths.forward.link.queue={step: {limit: 600kB, threshold: 100kB}}",
    ),
    "vegas": (f"{CC}=vegas", "flows.0.ack_every=cc"),
    "newreno": (f"{CC}=newreno", "flows.0.ack_every=cc"),
}


def datacenter(cc: str, senders: int) -> Trial:
    """Web search flows; 320 senders are ten times the paper's load."""
    more = [f"flows.0.count={senders}"] if senders != 32 else []
    return trial(f"c10-{cc}-{senders}", *DATACENTER[cc], *more)


def completions(run: Run) -> tuple[Floats, Floats]:
    """Of the transfers that finished: their sizes in bytes and times in microseconds."""
    found = after_warmup(run, "transfers")
    found = found[found["event"] == run.values("transfers", "event")["close"]]
    took_us = (found["ts_ns"] - found["start_ns"]) / 1e3
    return found["size_bytes"].astype(np.float64), took_us.astype(np.float64)


def small_us(percent: float) -> Callable[[Run], float]:
    """A percentile of the completion times below 64 kB."""

    def measure(run: Run) -> float:
        size_bytes, took_us = completions(run)
        return percentile(took_us[size_bytes < SMALL_BYTES], percent)

    return measure


C10 = Experiment(
    "C10",
    "completion times in a data center",
    (
        *(
            Claim(
                f"flows below 64 kB complete {words}: {what} with DCTCP over Copa, {load}",
                "section 5.5, figure 8",
                "direction",
                (datacenter("dctcp", senders), datacenter("copa", senders)),
                lambda dctcp, copa, p=p: small_us(p)(dctcp) / small_us(p)(copa),
                "times",
                low=low,
                why=why,
            )
            for senders, load, words, what, p, low, why in (
                (
                    32,
                    "the load as it is written",
                    "3 to 16 times sooner",
                    "median",
                    50.0,
                    3.0,
                    "32 senders that are off for 200 ms in the mean load the link with 6 %: no"
                    " queue stands, and all controls are alike.",
                ),
                (320, "ten times the senders", "sooner", "99th percentile", 99.0, 3.0, ""),
            )
        ),
    ),
)

SATELLITE = {
    "copa": (),
    "bbr": (f"{CC}=bbr", "flows.0.ack_every=cc"),
    "pcc": (f"{CC}=pcc", "flows.0.ack_every=cc"),
    "cubic": (f"{CC}=cubic", "flows.0.ack_every=cc"),
    "vegas": (f"{CC}=vegas", "flows.0.ack_every=cc"),
}


def satellite(cc: str) -> Trial:
    """From the start."""
    return trial(f"c11-{cc}", *SATELLITE[cc], seeds=(3, 10))


C11 = Experiment(
    "C11",
    "a satellite's link",
    (
        Claim(
            "Copa is about full: the link is used",
            "section 5.6, figure 9",
            "direction",
            (satellite("copa"),),
            used,
            "of it",
            low=0.9,
        ),
        Claim(
            "with 1 ms of queue in the mean",
            "section 5.6, figure 9",
            "number",
            (satellite("copa"),),
            queue_ms,
            "ms",
            published=1,
            low=0,
            high=5,
            tolerance=f"{OURS}: at most 5 ms of a round trip of 800",
        ),
        Claim(
            "PCC's is longer: its mean queue over Copa's",
            "section 5.6, figure 9",
            "direction",
            (satellite("pcc"), satellite("copa")),
            lambda pcc, copa: queue_ms(pcc) / queue_ms(copa),
            "times",
            low=5,
        ),
        Claim(
            "BBR uses half of the link",
            "section 5.6, figure 9",
            "number",
            (satellite("bbr"),),
            used,
            "of it",
            published=0.5,
            low=0.35,
            high=0.65,
            tolerance=OURS,
        ),
        *(
            Claim(
                f"{cc} uses less than 4 %",
                "section 5.6, figure 9",
                "direction",
                (satellite(cc),),
                used,
                "of it",
                high=0.04,
            )
            for cc in ("cubic", "vegas")
        ),
    ),
)

NETWORKS = 20
BESIDE = {"copa": "{copa: {mode: auto}}", "cubic": "cubic", "bbr": "bbr", "pcc": "pcc"}


def network(scheme: str, number: int) -> Trial:
    """A random network; the same for each scheme."""
    draw = random.Random(number)
    rate, rtt = draw.uniform(1, 50), draw.uniform(2, 100)
    ours, theirs = draw.randint(1, 4), draw.randint(1, 4)
    packets = draw.uniform(0.5, 5) * rate * 1e3 * rtt / 8 / 1538
    changes = [] if scheme == "copa" else [f"{CC}={BESIDE[scheme]}", "flows.0.ack_every=cc"]
    return trial(
        f"c12-{scheme}-{number}",
        f"seed={number + 1}",
        f"{RATE}={rate:.1f}Mbit",
        f"paths.forward.link.queue.fifo.limit={max(6, round(packets))}pkt",
        f"paths.forward.delay.delay={rtt / 2:.1f}ms",
        f"paths.reverse.delay.delay={rtt / 2:.1f}ms",
        f"flows.0.count={ours}",
        f"flows.1.count={theirs}",
        *changes,
    )


def of_fair(group: int) -> Callable[..., float]:
    """A group's flows' goodput over the ideal fair share, in the mean of networks."""

    def measure(*runs: Run) -> float:
        found = []
        for run in runs:
            groups = run.summary["groups"]
            total = sum(one["goodput_bps"] for one in groups)
            flows = sum(one["flows"] for one in groups)
            own = groups[group]
            found.append(own["goodput_bps"] / own["flows"] / (total / flows))
        return float(np.mean(found))

    return measure


def networks(scheme: str) -> tuple[Trial, ...]:
    """All of them."""
    return tuple(network(scheme, number) for number in range(NETWORKS))


C12 = Experiment(
    "C12",
    "beside CUBIC over random networks",
    (
        Claim(
            f"Copa gets its share: of the fair one, {NETWORKS} networks",
            "section 5.7, figure 10",
            "direction",
            networks("copa"),
            of_fair(0),
            "times",
            low=0.8,
            why="CUBIC's slow start fills the buffer with hundreds of packets, while 1/delta starts"
            " at 2 and grows by 1 in a round trip: 10 s have 60 of these at 160 ms. Competitive"
            " from the start Copa has 0.67. A window kept after slow start gives 0.74 and CUBIC"
            " 1.28, and costs thousands of drops where many flows start. From 20 to 60 s it has"
            " more than its share.",
        ),
        Claim(
            "and CUBIC is not hurt: of the fair share beside Copa",
            "section 5.7, figure 10",
            "direction",
            networks("copa"),
            of_fair(1),
            "times",
            low=0.8,
            high=1.2,
            why="What Copa leaves in its first seconds, CUBIC takes.",
        ),
        Claim(
            "CUBIC beside CUBIC: of the fair share",
            "section 5.7, figure 10",
            "direction",
            networks("cubic"),
            of_fair(1),
            "times",
            low=0.9,
            high=1.1,
        ),
        Claim(
            "PCC hurts it: of the fair share",
            "section 5.7, figure 10",
            "direction",
            networks("pcc"),
            of_fair(1),
            "times",
            high=0.8,
        ),
        Claim(
            "BBR hurts it: of the fair share",
            "section 5.7, figure 10",
            "direction",
            networks("bbr"),
            of_fair(1),
            "times",
            high=0.95,
        ),
    ),
)

C13 = Experiment(
    "C13",
    "delta is a weight",
    tuple(
        Claim(
            f"a flow of delta 0.5/{ratio} has {ratio} times the rate of one of 0.5",
            "section 2",
            "number",
            (trial(f"c13-{ratio}", f"{CC}={{copa: {{delta: {0.5 / ratio:.5f}}}}}"),),
            of_second,
            "times",
            **near(ratio, 0.10),
            tolerance=OURS,
        )
        for ratio in (2, 4, 6)
    ),
)

PROBE = Trial("c14-probe", "copa-probe")


def estimated(run: Run) -> float:
    """The rate that the probes' group estimates over what the newcomer gets."""
    groups = {group["name"]: group for group in run.summary["groups"]}
    return float(groups["probes"]["probe"]["rate_bps"] / groups["newcomer"]["goodput_bps"])


C14 = Experiment(
    "C14",
    "small packets tell the rate",
    (
        Claim(
            "what 20 probes estimate is what a flow then gets",
            "appendix ('accurate')",
            "number",
            (PROBE,),
            estimated,
            "times",
            **near(1, 0.20),
            tolerance=f"{OURS}: the flow adds its own queue to that of the ten",
        ),
    ),
)

EXPERIMENTS = (C1, C2, C3, C4, C5, C6, C7, C8, C9, C10, C11, C12, C13, C14)


STUDY = Study(
    "copa",
    "Copa: delay-based congestion control for the Internet",
    "V. Arun and H. Balakrishnan, Copa: Practical Delay-Based Congestion Control for the Internet,"
    " NSDI 2018",
    EXPERIMENTS,
    ("copa_figures",),
)
