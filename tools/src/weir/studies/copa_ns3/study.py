# SPDX-License-Identifier: BSD-3-Clause
"""An evaluation of Copa on ns-3 (a blog): three and six flows, BBR and CUBIC between them."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from weir.study.claim import Claim, Experiment, Study, Trial, near, trial_of
from weir.study.measures import WIRE_BITS, acks_median, goodputs, jfi, queue_ms

if TYPE_CHECKING:
    from weir.analysis.folder import Run

AUTO = "{copa: {mode: auto}}"
# The port has mvfst's rules and a window of at least 4; its own test gives each connection a buffer
# of 200 segments of 1500 bytes.
PORT = "{copa: {dialect: mvfst, delta: 0.05, min_cwnd: 4}}"
PORT_BUFFER = "300kB"
BASE_RTT = "200ms"
LINK_S_PER_PACKET = WIRE_BITS / 100e6  # of B6's link


HERE = Path(__file__).parent
trial = partial(trial_of, HERE)


def second_in_percent(run: Run) -> float:
    """What the second of three flows takes."""
    found = goodputs(run)
    return float(100 * found[1] / found.sum())


def second_over_others(run: Run) -> float:
    """What the second of three flows has over the larger one of the others."""
    first, second, third = goodputs(run)
    return float(second / max(first, third))


def copas_in_percent(run: Run) -> float:
    """What the other two have together."""
    return 100 - second_in_percent(run)


B1, B5 = trial("b1-copa"), trial("b5-copa")
B1_PORT = trial("b1-port", f"flows.0.cc={PORT}", f"flows.0.rwnd={PORT_BUFFER}")
BESIDE = {"BBR": ("B2", "b2"), "CUBIC": ("B3", "b3")}


def beside(name: str, mode: str) -> Trial:
    """Two Copa flows, in default mode, with mode switching or as the port, and one of another."""
    base = BESIDE[name][1]
    known = PORT.replace("}}", f", rtt_min: {BASE_RTT}}}}}")
    control = {"auto": AUTO, "port": PORT, "port-known": known}.get(mode)
    changes = [f"flows.{i}.cc={control}" for i in (0, 2) if control]
    if mode.startswith("port"):
        changes += [f"flows.{i}.rwnd={PORT_BUFFER}" for i in range(3)]
    return trial(f"{base}-{mode}", *changes)


def largest_overhead(run: Run) -> float:
    """Bytes sent again per byte acknowledged, of the flow that has most."""
    return max(float(group.rtx_overhead or 0) for group in run.summary.groups)


def starved(name: str) -> Experiment:
    """B2 and B3."""
    return Experiment(
        BESIDE[name][0],
        f"two Copa flows beside {name}",
        (
            Claim(
                f"{name} takes most of the link from Copa without mode switching: its part",
                "the figure of rates",
                "direction",
                (beside(name, "default"),),
                second_in_percent,
                "%",
                low=60,
            ),
            Claim(
                "with mode switching, which that port lacks, Copa has more: what the two have over"
                " what they have without",
                "against Copa, NSDI 2018, section 5.7",
                "direction",
                (beside(name, "auto"), beside(name, "default")),
                lambda auto, default: copas_in_percent(auto) / copas_in_percent(default),
                "times",
                low=1.2,
            ),
            Claim(
                f"{name} takes most from the port as it was (mvfst's rules, delta 0.05): its part",
                "the figure of rates",
                "direction",
                (beside(name, "port"),),
                second_in_percent,
                "%",
                low=60,
                why="The port ignores losses, and its RTTmin is of 10 s: where these pass in a full"
                " queue the queue counts as the path, no delay is seen, and its window grows to the"
                " receive buffer. Samples of what was retransmitted do not change it.",
            ),
            Claim(
                f"had the port known the round trip of the empty path, {name} would be ahead: its"
                " part over the larger one of the others",
                "our own check of that cause",
                "not comparable",
                (beside(name, "port-known"),),
                second_over_others,
                "times",
                why="The blog has no such run.",
            ),
            Claim(
                "and the port stays alive: bytes sent again per byte acknowledged, of the flow with"
                " the most",
                "our own check of that cause",
                "not comparable",
                (beside(name, "port"),),
                largest_overhead,
                "",
                why="The blog does not say. It is below 1 as long as the port is alive.",
            ),
        ),
    )


RTTS = ((50, 100), (50, 150), (100, 200))


def unequal(cc: str, short: int, long: int) -> Trial:
    """Two flows of one control, with these round trips in ms."""
    changes = [f"flows.0.base_rtt={short}ms", f"flows.1.base_rtt={long}ms"]
    if cc != "copa":
        changes += [f"flows.{i}.{key}" for i in (0, 1) for key in (f"cc={cc}", "ack_every=cc")]
    return trial(f"b4-{cc}-{short}-{long}", *changes)


def apart(run: Run) -> float:
    """How many times the one flow has of the other, at least 1."""
    short, long = goodputs(run)
    return float(max(short / long, long / short))


EXPERIMENTS = (
    Experiment(
        "B1",
        "three Copa flows",
        (
            Claim(
                "they are fair: Jain's index",
                "the figure of rates",
                "direction",
                (B1,),
                jfi,
                "",
                low=0.95,
            ),
            Claim(
                "with low latency: mean time in a queue that has room for 300 ms",
                "the figure of delays",
                "direction",
                (B1,),
                queue_ms,
                "ms",
                high=60,
            ),
            Claim(
                "the same with the port as it was (mvfst's rules, delta 0.05): Jain's index",
                "the figure of rates",
                "not comparable",
                (B1_PORT,),
                jfi,
                "",
                why="Three such flows swing by 150 packets; the link of B2 and B3, which the blog"
                " may have used here too, holds 75.",
            ),
        ),
    ),
    starved("BBR"),
    starved("CUBIC"),
    Experiment(
        "B4",
        "flows with unequal round trips",
        tuple(
            Claim(
                f"Copa's shares are nearer to each other than BBR's: {short} and {long} ms, BBR's"
                " ratio of the greater to the smaller over Copa's",
                "the figures of goodput",
                "direction",
                (unequal("bbr", short, long), unequal("copa", short, long)),
                lambda bbr, copa: apart(bbr) / apart(copa),
                "times",
                low=1.1,
            )
            for short, long in RTTS
        ),
    ),
    Experiment(
        "B5",
        "six Copa flows",
        (
            Claim(
                "they are fair: Jain's index",
                "the figure of rates",
                "direction",
                (B5,),
                jfi,
                "",
                low=0.95,
            ),
        ),
    ),
    Experiment(
        "B6",
        "the target is a fair share",
        tuple(
            Claim(
                f"{n} of delta 1 see a standing delay of {n} packets",
                "the argument: RTTstanding = n/C + RTTmin",
                "number",
                (trial(f"b6-{n}", f"flows.0.count={n}"),),
                acks_median("obs2", 1e-9 / LINK_S_PER_PACKET),
                "packets",
                **near(n, 0.10),
                tolerance="our own band: packets are whole",
            )
            for n in (1, 2, 3, 5, 10)
        ),
    ),
)


STUDY = Study(
    "copa-ns3",
    "Copa evaluated on ns-3",
    "The blog of a port of Copa to ns-3 (quic-on-ns3); its runs have no numbers in print",
    EXPERIMENTS,
    HERE,
    with_all=True,
)
