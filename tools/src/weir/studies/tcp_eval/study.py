# SPDX-License-Identifier: BSD-3-Clause
"""draft-irtf-iccrg-tcpeval-01, the common TCP evaluation suite: its scenarios, for each control.

The suite measures and judges nothing, so most rows are shown. Its traffic is Tmix traces of a
campus, which are not to be had. In their place transfers arrive as a Poisson process, with sizes of
a Pareto law (exponent 1.2, as Crovella and Bestavros found of the Web, SIGMETRICS 1996, from
memory; the mean of 30 kB is ours), one way, spread evenly over the nine round trips; one in ten has
packets of 536 bytes (section 2.4). The transfers are the same for every control.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from weir.analysis.folder import Run
from weir.analysis.metrics import Floats
from weir.base import units
from weir.study.claim import Claim, Experiment, Setup, Study, near
from weir.study.measures import after_warmup, of_run, queue_ms, utilisation
from weir.study.scenario import Case, Measure, cannot, lost_percent, ratio, shown

HERE = Path(__file__).parent
CONFIG = HERE / "dumbbell.yaml"
CONTROLS = ("copa", "bbr3", "cubic", "newreno")
STANDARD = "newreno"  # section 6.1: SACK without ECN
SIZES = "{law: pareto, shape: 1.2, mean: 30kB}"
BIG, SMALL = 1460, 496  # bytes: packets of 1500 and 536
HEADERS = 90  # bytes of a frame beside the payload: TCP with timestamps, IP, Ethernet, gap
OPTIONS = 12  # bytes, within the segment size
DELAYS_MS = ((0, 12, 25), (2, 37, 75))  # of the links at both sides, one way (section 4.1)
CENTRAL_MS = 2  # of the access link, and of the links in section 5.2


def rtts_ms(central_ms: float, left: tuple[float, ...], right: tuple[float, ...]) -> list[float]:
    return [2 * (a + b + central_ms) for a in left for b in right]


@dataclass(frozen=True)
class Bottleneck:
    """A bottleneck of section 4.4. seconds: of --quick and of --full, a third of it warm-up."""

    place: str
    title: str
    mbit: float
    buffer: str
    rtts_ms: tuple[float, ...]
    seconds: tuple[int, int]
    back: str = "{delay: {delay: 5us}}"


def wide(central_ms: float) -> tuple[float, ...]:
    """Returns the usual nine round trips, behind a link of this delay."""
    return tuple(rtts_ms(central_ms, *DELAYS_MS))


LINKS = (
    Bottleneck(
        "4.4.1", "data center", 1000, "10ms",
        tuple(rtts_ms(0, (0.01, 0.01, 0.1), (0.01, 0.1, 0.1))), (12, 660),
    ),
    Bottleneck("4.4.2", "access link", 100, "100ms", wide(CENTRAL_MS), (60, 1500)),
    Bottleneck("4.4.3", "trans-oceanic link", 1000, "100ms", wide(65), (15, 400)),
    Bottleneck(
        "4.4.4", "geostationary satellite, 40 and 4 Mbit/s", 40, "100ms", wide(300), (120, 2700),
        "{link: {rate: 4Mbit, queue: {fifo: {limit: 1000ms}}}}, {delay: {delay: 5us}}",
    ),
    Bottleneck(
        "4.4.5", "wireless LAN, as a link of 6 Mbit/s", 6, "100ms",
        wide(CENTRAL_MS), (300, 4000),
    ),
    Bottleneck("4.4.6", "dial-up link of 64 kbit/s", 0.064, "1250ms", wide(5), (6000, 86400)),
)  # fmt: skip
ACCESS = LINKS[1]
LOADS = (60, 85, 110)  # % of the link
BUFFERS = (10, 20, 50, 100, 200)  # % of the BDP at 100 ms (section 5.1)


def wire(sizes: Floats, mss: int) -> float:
    """Returns the bytes of the frames that carry payloads."""
    return float((sizes + np.ceil(sizes / (mss - OPTIONS)) * HEADERS).sum())


def sources(mbit: float, percent: float, rtts: tuple[float, ...], control: str) -> list[str]:
    """Makes transfers that load a link by so much: a group for each round trip and size."""
    flows = []
    for rtt in rtts:
        for mss, part in ((BIG, 0.9), (SMALL, 0.1)):
            payload = (mss - OPTIONS) / (mss - OPTIONS + HEADERS)
            bps = mbit * 1e6 * percent / 100 * part / len(rtts) * payload
            flows.append(
                f"name: {rtt:g} ms of {mss} B, count: 300, cc: {control}, mss: {mss}B,"
                f" base_rtt: {rtt:g}ms, source: {{poisson: {{load: {bps:.0f}bit, sizes: {SIZES}}}}}"
            )
    return flows


def network(mbit: float, queue: str, back: str = "{delay: {delay: 5us}}") -> tuple[str, str]:
    link = f"{{link: {{rate: {mbit * 1000:.0f}kbit, queue: {{fifo: {{limit: {queue}}}}}}}}}"
    return f"paths.forward=[{link}]", f"paths.reverse=[{back}]"


def times(seconds: int, warmup: float | None = None) -> tuple[str, str]:
    return f"duration={seconds}s", f"warmup={seconds / 3 if warmup is None else warmup:g}s"


def setup(case: Case, control: str, full: tuple[str, ...] = ()) -> Setup:
    options = case.options(control)
    if not full:
        return Setup(f"{case.name}-{control}", CONFIG, options)
    quick = options[-len(full) :]
    return Setup(f"{case.name}-{control}", CONFIG, (*options[: -len(full)], *full), quick=quick)


def offered(run: Run) -> float:
    """Returns what the link carried over what the transfers that begin meanwhile need of it."""
    found = after_warmup(run, "transfers")
    begun = found[found["start_ns"] >= units.measured(run.summary.warmup_s) * 1e9]
    small = begun["group"] % 2 == 1
    size = begun["size_bytes"].astype(np.float64)
    need = wire(size[~small], BIG) + wire(size[small], SMALL)
    link = run.summary.links["forward"]
    return float(link.out_bytes / need) if need else float("nan")


def experiment(case: Case, *claims: Claim) -> Experiment:
    return Experiment(case.name, case.title, claims)


CENTRAL = (("packets dropped", lost_percent, "%"), ("mean time in the queue", queue_ms, "ms"))


def basic(link: Bottleneck, load: int, control: str) -> Experiment:
    """Makes a case of section 4: all traffic uses the control."""
    case = Case(
        f"{link.place}-{load}",
        f"{link.title}, {load} % offered",
        tuple(sources(link.mbit, load, link.rtts_ms, "CC")),
        (*network(link.mbit, link.buffer, link.back), *times(link.seconds[0])),
    )
    own = (setup(case, control, times(link.seconds[1])),)
    central = (
        shown(says, f"sections {link.place} and 4.5", own, measure, unit)
        for says, measure, unit in (("the link is used", utilisation, "%"), *CENTRAL)
    )
    says = "carried, over the frames of the transfers that began meanwhile"
    return experiment(case, *central, shown(says, "section 4.2", own, offered, "times"))


def buffered(percent: int) -> Case:
    """Makes a case of section 5.1: the access link at 85 % with another buffer."""
    queue = f"{percent}ms"  # of the BDP at 100 ms
    return Case(
        f"5.1-{percent}",
        f"buffer of {percent} % of the BDP",
        tuple(sources(ACCESS.mbit, 85, ACCESS.rtts_ms, "CC")),
        (*network(ACCESS.mbit, queue), *times(ACCESS.seconds[0])),
    )


def tradeoff(percent: int, control: str) -> Experiment:
    """Claims throughput, drops and delay, with the control and with standard TCP."""
    case = buffered(percent)
    claims = (
        shown(f"{says}: {name}", "section 5.1.3", (setup(case, name),), measure, unit)
        for name in dict.fromkeys((control, STANDARD))
        for says, measure, unit in (("throughput, of the link", utilisation, "%"), *CENTRAL)
    )
    return experiment(case, *claims)


SETTLED_S = 60  # the flow that is there has finished slow start


@of_run
def received_s(run: Run, power: int) -> float | None:
    """Returns when the second flow has 1500 * 10^power bytes, from its start."""
    records = run.stream("interval").records
    own = records[records["group"] == 1]
    enough = np.cumsum(own["acked_bytes"].astype(np.float64)) >= 1500 * 10**power
    return float(own["ts_ns"][np.argmax(enough)] / 1e9 - SETTLED_S) if enough.any() else None


def ramp_up(mbit: int, rtts: tuple[int, int], control: str) -> Experiment:
    """Makes a case of section 5.2: how soon a flow makes room for another (5.2.2.1)."""
    first, second = rtts
    case = Case(
        f"5.2-{mbit}-{first}-{second}",
        f"{mbit} Mbit/s, a flow of {first} ms, from {SETTLED_S} s on one of {second} ms",
        (
            f"name: there, cc: CC, base_rtt: {first}ms",
            f"name: new, cc: CC, base_rtt: {second}ms, start: {SETTLED_S}s",
            *sources(mbit, 50, wide(CENTRAL_MS), "CC"),
        ),
        (*network(mbit, "80ms"), *times(SETTLED_S + (150 if mbit < 100 else 20), SETTLED_S)),
    )
    powers = (2, 3, 4) if mbit < 100 else (3, 4, 5)
    claims = (
        shown(
            f"the new flow has 1500 * 10^{power} bytes: {name}",
            *("section 5.2.3", (setup(case, name),), received_s(power), "s"),
        )
        for name in dict.fromkeys((control, STANDARD))
        for power in powers
    )
    return experiment(case, *claims)


BDP = 100e6 * 0.1 / 8 / 1538  # packets of section 5.3
FLOW = "name: flow, cc: CC, base_rtt: 100ms"


def transient(name: str, title: str, traffic: tuple[str, ...]) -> Case:
    """Makes a case of section 5.3: one flow at 100 Mbit/s, and UDP that comes or goes at 60 s."""
    changes = (*network(100, "1024pkt"), *times(SETTLED_S + 100, SETTLED_S))
    return Case(name, title, (FLOW, *traffic), changes)


UDP = "name: UDP, source: {udp: {rate: 75Mbit}}"
DECREASE = transient("5.3-1", "75 Mbit/s of UDP end", (f"{UDP}, stop: {SETTLED_S}s",))
INCREASE = transient("5.3-2", "75 Mbit/s of UDP begin", (f"{UDP}, start: {SETTLED_S}s",))
STEPS = transient(
    "5.3-3",
    "30 steps of 2.5 Mbit/s of UDP, one a second",
    tuple(
        f"name: step {n}, source: {{udp: {{rate: 2500kbit}}}}, start: {SETTLED_S + n}s"
        for n in range(30)
    ),
)


def window(run: Run) -> tuple[Floats, Floats]:
    """Returns times in s from the change on, and the flow's window then, in packets."""
    records = run.stream("interval").records
    own = records[(records["group"] == 0) & (records["ts_ns"] > SETTLED_S * 1e9)]
    return own["ts_ns"] / 1e9 - SETTLED_S, own["cwnd_segs"].astype(np.float64)


@of_run
def grown_s(run: Run, percent: int) -> float | None:
    """Returns when the window has so much of the BDP."""
    at, segs = window(run)
    enough = segs >= percent / 100 * BDP
    return float(at[np.argmax(enough)]) if enough.any() else None


def largest_step(run: Run) -> float:
    """Returns the window's largest growth in a round trip, which is an interval of telemetry."""
    _, segs = window(run)
    below = segs[: max(2, int(np.argmax(segs >= 0.9 * BDP)))]
    return float(np.diff(below).max())


def dropped(run: Run) -> float:
    return float(sum(units.measured(group.drops) for group in run.summary.groups[1:]))


def linear(run: Run) -> float | None:
    first, last = grown_s(60)(run), grown_s(90)(run)
    return None if first is None or last is None else last - first


def transients(control: str) -> Iterator[Experiment]:
    """Makes the experiments of section 5.3."""
    claims = []
    for name in dict.fromkeys((control, STANDARD)):
        row = partial(shown, source="section 5.3.3", setups=(setup(DECREASE, name),))
        for percent in (60, 80, 90):
            says = f"its window has {percent} % of the BDP: {name}"
            claims.append(row(says, measure=grown_s(percent), unit="s"))
        says = f"most growth in a round trip until then: {name}"
        claims.append(row(says, measure=largest_step, unit="packets"))
    if control == STANDARD:
        seconds = 0.3 * BDP * 0.1
        claims.append(
            Claim(
                "NewReno's window from 60 to 90 % of the BDP: a packet per round trip of 100 ms",
                "section 5.3.3 and RFC 5681",
                "derived",
                (setup(DECREASE, control),),
                linear,
                "s",
                **near(seconds, 0.05),
                tolerance="an interval of telemetry at both ends, and the ACKs' rounding",
            )
        )
    yield experiment(DECREASE, *claims)
    says = "packets of UDP dropped in the 100 s after it began"
    for case in (INCREASE, STEPS):
        setups = {name: (setup(case, name),) for name in dict.fromkeys((control, STANDARD))}
        yield experiment(
            case,
            *(
                shown(f"{says}: {name}", "section 5.3.3", own, dropped, "packets")
                for name, own in setups.items()
            ),
        )


def camp(index: int) -> Measure:
    """Makes the measure of a camp's goodput over what it has where both are standard TCP."""

    def sum_of(run: Run) -> float:
        groups = run.summary.groups
        half = len(groups) // 2
        return float(sum(g.goodput_bps for g in groups[index * half : (index + 1) * half]))

    return lambda mix, baseline: sum_of(mix) / sum_of(baseline)


def impact(mbit: int, load: int, control: str) -> Experiment:
    """Makes a case of section 6.1: what standard TCP loses to the control, and what that gains."""

    def mixed(name: str) -> Case:
        rtts = wide(CENTRAL_MS)
        camps = (*sources(mbit, load / 2, rtts, STANDARD), *sources(mbit, load / 2, rtts, name))
        changes = (*network(mbit, "80ms"), *times(90 if mbit < 100 else 15))
        return Case(f"6.1-{mbit}-{load}-{name}", "", camps, changes)

    mix, baseline = setup(mixed(control), "mix"), setup(mixed(STANDARD), "mix")
    row = partial(shown, source="section 6.1.3", setups=(mix, baseline), unit="times")
    return Experiment(
        f"6.1-{mbit}-{load}",
        f"{load} % offered at {mbit} Mbit/s by two camps of the same traffic",
        (
            row("G: the control's camp over the same camp with standard TCP", measure=camp(1)),
            row("L: the camp of standard TCP over itself beside its like", measure=camp(0)),
        ),
    )


RTTS_MS = (10, 20, 40, 80, 160)


def fairness(rtts: tuple[int, int], percent: int, control: str) -> Experiment:
    """Makes a case of section 6.2: two flows, and half a link of other traffic."""
    first, second = rtts
    case = Case(
        f"6.2-{first}-{second}-{percent}",
        f"flows of {first} and {second} ms, a buffer of {percent} % of the BDP",
        (
            f"name: first, cc: CC, base_rtt: {first}ms, jitter: 6s",
            f"name: second, cc: CC, base_rtt: {second}ms, start: 1s, jitter: 6s",
            *sources(10, 50, wide(CENTRAL_MS), "CC"),
        ),
        (*network(10, f"{percent}ms"), *times(60, 10)),
    )
    row = partial(shown, source="section 6.2.3", setups=(setup(case, control),))
    says = f"throughput of {first} ms over that of {second} ms"
    return experiment(
        case,
        row(says, measure=ratio(0, 1), unit=""),
        row("packets dropped", measure=lost_percent, unit="%"),
    )


def parking_lot(percent: int, control: str) -> Experiment:
    """Makes section 6.3: three links, traffic over all of them and over each."""
    hops = ("forward", "second", "third")
    ways = (hops, *((hop,) for hop in hops))
    link = "{link: {rate: 100Mbit, queue: {fifo: {limit: 60ms}}}}"
    flows = [
        flow + f", path: {{forward: [{', '.join(way)}], reverse: reverse}}"
        for way in ways
        for flow in sources(100, percent / 2, (60,), "CC")
    ]
    paths = tuple(f"paths.{hop}=[{link}]" for hop in hops)
    case = Case(
        f"6.3-{percent}",
        f"{percent} % offered to each of three links, half of it over all",
        tuple(flows),
        (*paths, *times(30)),
    )

    def single_over_long(run: Run) -> float:
        rates = [group.goodput_bps for group in run.summary.groups]
        return float(sum(rates[2:]) / 3 / sum(rates[:2]))

    row = partial(shown, source="section 6.3.2", setups=(setup(case, control),))
    return experiment(
        case,
        row("throughput over one link over that of all three", measure=single_over_long, unit=""),
        row("packets dropped at the first link", measure=lost_percent, unit="%"),
    )


NOT_RUN = Experiment(
    "Rest",
    "what is not run",
    (
        cannot(
            "contention and retransmissions of 802.11g",
            "section 4.4.5",
            "no stage is a medium that stations share: here it is a link of the nominal rate.",
        ),
        cannot(
            "a new flow without slow start",
            "section 5.2.2",
            "no control has that parameter; it is run with slow start (section 5.2.2.1).",
        ),
    ),
)


def experiments(control: str) -> Iterator[Experiment]:
    """Makes every scenario."""
    yield from (basic(link, load, control) for link in LINKS for load in LOADS)
    yield from (tradeoff(percent, control) for percent in BUFFERS)
    for mbit in (10, 1000):
        yield from (ramp_up(mbit, rtts, control) for rtts in ((80, 80), (120, 30), (30, 120)))
    yield from transients(control)
    yield from (impact(mbit, load, control) for mbit in (10, 1000) for load in (50, 100))
    pairs = [*((ms, ms) for ms in RTTS_MS), *((160, ms) for ms in RTTS_MS[:-1])]
    yield from (
        fairness(pair, percent, control) for pair in pairs for percent in (25, 50, 100, 200)
    )
    yield from (parking_lot(percent, control) for percent in (60, 80, 100))
    yield NOT_RUN


def study(control: str) -> Study:
    """Makes the suite for a control."""
    return Study(
        f"tcp-eval-{control}",
        f"{control} in the common TCP evaluation suite",
        "D. Hayes, D. Ros, L. Andrew, S. Floyd, Common TCP Evaluation Suite,"
        " draft-irtf-iccrg-tcpeval-01, 2014",
        tuple(experiments(control)),
        HERE,
        (control,),
    )


STUDIES = tuple(study(control) for control in CONTROLS)
