# SPDX-License-Identifier: BSD-3-Clause
"""CoreScale (Philip et al., IMC 2021) asks whether thousands of flows are as a few are.

The study asked twenty servers for up to three hours per cell. Its hosts were Linux behind fast
cards, which put together segments that arrive close to each other. Such hosts are cells here, and
ideal ones beside them. What nobody has tried (Copa, LoLa, BBRv3, Prague) are rows of our own.

--quick shortens a cell to what its physics needs. Per flow the window swings between W/2 and W
around (BDP + queue) / n segments, one segment per round trip, so that a NewReno flow halves every
W/2 round trips, queue included. With a queue of 7/8 of the buffer that is 43, 14 and 9 s for 1000,
3000 and 5000 flows at 20 ms. A fit wants 12 halvings of each flow or more (were they random, a
prediction would then be within 10 % for half of the flows), after a warm-up of a few for the slow
starts to be forgotten. The counts' noise also lowers a fitted C, by 0.01 between 18 and 10
halvings: cells to be compared have equally many, about 18. BBR's flows first share the link as
their starts left it. At 20 ms Jain's index over 10 s is 0.997 or more from 70 s on with 1000 flows,
from 90 s on with 3000, and 0.995 from 100 s on with 5000; from 40 to 80 s it is 0.55, 0.31 and
0.24. So their warm-ups are longer. Warm-ups and ends are multiples of the configs' interval, 10 s.
--full is the study's method, as the configs have it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from weir.analysis import metrics
from weir.base import units
from weir.study.claim import Claim, Experiment, Study, Trial, near
from weir.study.measures import flow_goodputs, jain, queue_ms, used

if TYPE_CHECKING:
    from weir.analysis.folder import Run

HERE = Path(__file__).parent
PAYLOAD_BYTES = 1448  # of a full segment with timestamps; the study's MSS
FLOWS = (1000, 3000, 5000)
EDGE_FLOWS = (10, 20, 30, 50)
# Linux as the study may have had it: since 5.4 the last segment of a burst has PSH, with which a
# card hands over what it has collected; before, it collects on. `tso: no` sends without that mark.
HOSTS = ("flows.0.host=linux", "flows.0.gro=200us", "flows.0.tso=no")
MODERN = ("flows.0.host=linux", "flows.0.gro=200us")
NAMES = {
    "newreno": "NewReno",
    "cubic": "CUBIC",
    "bbr": "BBR",
    "copa": "Copa",
    "lola": "LoLa",
    "bbr3": "BBRv3",
    "prague": "Prague over DualPI2",
}

# Jitter, warm-up and end in s of --quick.
Length = tuple[int, int, int]
LENGTHS: dict[str, dict[int, Length]] = {
    "newreno": {1000: (20, 170, 700), 3000: (20, 80, 300), 5000: (20, 60, 200)},
    "cubic": {1000: (20, 100, 200), 3000: (20, 60, 140), 5000: (20, 60, 120)},
    "bbr": {1000: (20, 80, 120), 3000: (20, 120, 160), 5000: (20, 120, 160)},
    "bbr3": {1000: (20, 120, 160), 3000: (20, 120, 160), 5000: (20, 120, 160)},
}
BBRS: Length = (20, 120, 160)
OTHER: Length = (20, 40, 70)
EDGE: Length = (120, 300, 1800)


def quick(length: Length, groups: int = 1) -> tuple[str, ...]:
    jitter, warmup, end = length
    starts = (f"flows.{group}.jitter={jitter}s" for group in range(groups))
    return (*starts, f"warmup={warmup}s", f"duration={end}s")


def rtt(ms: int) -> tuple[str, ...]:
    return () if ms == 20 else (f"paths.reverse.0.delay.delay={ms}ms",)


def core(cc: str, flows: int, *, ms: int = 20, hosts: bool = False, modern: bool = False) -> Trial:
    """Makes a run of all flows of one control at the core."""
    kind = "-modern" if modern else "-hosts" if hosts else ""
    name = f"core-{cc}-{flows}" + (f"-rtt{ms}" if ms != 20 else "") + kind
    changes = [f"flows.0.cc={cc}", f"flows.0.count={flows}", *rtt(ms)]
    changes += MODERN if modern else HOSTS if hosts else ()
    if cc == "prague":
        changes.append("paths.forward.link.queue={dualpi2: {limit: 375MB}}")
    length = LENGTHS.get(cc, {}).get(flows, OTHER)
    return Trial(name, HERE / "core.yaml", tuple(changes), quick=quick(length))


def edge(cc: str, flows: int, ms: int = 20) -> Trial:
    """Makes a run of all flows of one control at the edge."""
    name = f"edge-{cc}-{flows}" + (f"-rtt{ms}" if ms != 20 else "")
    changes = (f"flows.0.cc={cc}", f"flows.0.count={flows}", *rtt(ms))
    return Trial(name, HERE / "edge.yaml", changes, quick=quick(EDGE))


def two(first: str, second: str, flows: int, *, ms: int = 20, lone: bool = False) -> Trial:
    """Makes a run of half and half, or of one of the first, whose window nothing holds."""
    name = f"core-{first}-{second}-{flows}" + ("-lone" if lone else "")
    counts = (1, flows - 1) if lone else (flows // 2, flows // 2)
    changes = [f"flows.{i}.cc={cc}" for i, cc in enumerate((first, second))]
    changes += [f"flows.{i}.count={count}" for i, count in enumerate(counts)]
    changes += ["flows.0.rwnd=1GB"] if lone else []
    length = (20, 60, 130) if first == "cubic" else BBRS
    return Trial(
        name + (f"-rtt{ms}" if ms != 20 else ""),
        HERE / "two.yaml",
        (*changes, *rtt(ms)),
        quick=quick(length, 2),
    )


# What is measured in a cell.


@dataclass(frozen=True)
class Measured:
    """A cell that was run."""

    flows: pl.DataFrame  # metrics.flow_table's
    groups: pl.DataFrame  # metrics.per_group's
    by_halving: metrics.MathisFit
    by_loss: metrics.MathisFit
    losses: metrics.LossesPerHalving


COLUMNS = ("ts_ns", *metrics.PER_FLOW, *metrics.INTERVAL_SUMS, "rtt_mean_ns")


KEPT: dict[tuple[Path, str], Measured] = {}


def measured(run: Run) -> Measured:
    """Reads a run folder, once; what happened during the warm-up is left out."""
    key = run.path, str(run.summary.digest)
    if key not in KEPT:
        KEPT[key] = read(run)
    return KEPT[key]


def read(run: Run) -> Measured:
    """Reads what is measured of a run."""
    warmup_s, end_s = units.measured(run.summary.warmup_s), units.measured(run.summary.virtual_s)
    span_ns = (end_s - warmup_s) * metrics.NS_PER_S
    counted = metrics.tally(run.chunk_frames("interval", COLUMNS), warmup_s * 1e9)
    flows = metrics.flow_table(counted, span_ns)
    return Measured(
        flows,
        metrics.per_group(flows),
        metrics.mathis(flows, "cwnd_reductions", PAYLOAD_BYTES),
        metrics.mathis(flows, "drops", PAYLOAD_BYTES),
        metrics.losses_per_halving(flows),
    )


def known(value: float | None) -> float:
    return math.nan if value is None else float(value)


def c_loss(run: Run) -> float:
    """Returns C fitted with p as drops per segment."""
    return known(measured(run).by_loss.c)


def c_halving(run: Run) -> float:
    """Returns C fitted with p as window halvings per segment."""
    return known(measured(run).by_halving.c)


def error_loss(run: Run) -> float:
    """Returns the median flow's error of the fit by drops, in percent."""
    return 100 * known(measured(run).by_loss.error_median)


def error_halving(run: Run) -> float:
    return 100 * known(measured(run).by_halving.error_median)


def losses(run: Run) -> float:
    return known(measured(run).losses.total)


def jfi(run: Run) -> float:
    return known(metrics.jfi(measured(run).flows["goodput_bps"].to_numpy()))


def share(run: Run) -> float:
    return 100 * float(measured(run).groups["share"][0])


Of = Callable[["Run"], float]


def mean_of(measure: Of) -> Callable[..., float]:
    return lambda *runs: sum(map(measure, runs)) / len(runs)


def spread_of(measure: Of) -> Callable[..., float]:
    """Makes the measure of the largest value over the smallest, less 1, in percent."""
    return lambda *runs: 100 * (max(map(measure, runs)) / min(map(measure, runs)) - 1)


def least_step(measure: Of) -> Callable[..., float]:

    def found(*runs: Run) -> float:
        values = [measure(run) for run in runs]
        return min(a - b for a, b in pairwise(values))

    return found


def edge_used_at_core(measure: Of) -> Callable[..., float]:
    """Makes the measure of how far off the edge's C is at the core, in percent.

    The first run is the core's.
    """

    def error(at_core: Run, *at_edge: Run) -> float:
        return 100 * abs(1 - mean_of(measure)(*at_edge) / measure(at_core))

    return error


def first_minute(run: Run) -> float:
    """Returns Jain's index over 20 to 60 s: at 20 s the last flow has started."""
    return jain(flow_goodputs(run, 20, 60))


EDGES = tuple(edge("newreno", flows) for flows in EDGE_FLOWS)
WITH_HOSTS = tuple(core("newreno", flows, hosts=True) for flows in FLOWS)
IDEAL = tuple(core("newreno", flows) for flows in FLOWS)
TABLE_1_LOSS = dict(zip(FLOWS, (3.95, 3.64, 3.24), strict=True))
TABLE_1_HALVING = dict(zip(FLOWS, (1.36, 1.36, 1.34), strict=True))
EDGE_LOSS, EDGE_HALVING = 1.78, 1.47
FIGURE_2_LOSS = dict(zip(FLOWS, (55.0, 51.0, 45.0), strict=True))
OURS = (
    "our own band: the study's cells are of one run each, and for how long its cards collected"
    " segments (here 200 us), of bursts without a mark, is our choice"
)
READING = (
    "ten points, our own; that Figure 2 uses the edge's C at the core is our reading, from which"
    " the published errors follow"
)
FEW = (
    "The study does not say of how many flows its edge is, nor of which hosts. Here flows are alike"
    " and regular: a sawtooth that is regular has sqrt(3/2) = 1.22, and a spread of halvings raises"
    " it."
)

I1 = Experiment(
    "I1",
    "Table 1: the constant C of Mathis' formula",
    (
        *(
            Claim(
                f"C by {what}, core, {flows} flows",
                "table 1",
                "number",
                (core("newreno", flows, hosts=True),),
                measure,
                "",
                **near(published[flows], 0.15),
                tolerance=OURS,
            )
            for what, measure, published in (
                ("losses", c_loss, TABLE_1_LOSS),
                ("halvings", c_halving, TABLE_1_HALVING),
            )
            for flows in FLOWS
        ),
        Claim(
            f"C by losses, edge, mean of {EDGE_FLOWS[0]} to {EDGE_FLOWS[-1]} flows",
            "table 1 (its number of flows is not seen)",
            "number",
            EDGES,
            mean_of(c_loss),
            "",
            **near(EDGE_LOSS, 0.15),
            tolerance=OURS,
            why=FEW,
        ),
        Claim(
            "C by halvings, edge, likewise",
            "table 1",
            "number",
            EDGES,
            mean_of(c_halving),
            "",
            **near(EDGE_HALVING, 0.15),
            tolerance=OURS,
            why=FEW,
        ),
        Claim(
            "C by halvings does not depend on the number of flows: its spread",
            "table 1",
            "direction",
            WITH_HOSTS,
            spread_of(c_halving),
            "%",
            high=5,
            why="The fewer flows, the more of them lose at the same time and the more the queue"
            " swings; a window that is largest while the RTT is longest has a higher C.",
        ),
        Claim(
            "C by losses falls with the number of flows: the least step",
            "table 1",
            "direction",
            WITH_HOSTS,
            least_step(c_loss),
            "",
            low=0,
            why="What falls in the study is by 8 and 11 %; here it is the same for all three within"
            " 2 %. How long the study's cards collected is not known.",
        ),
        *(
            Claim(
                f"hosts that join segments raise C by losses, {flows} flows: over that of ideal"
                " hosts",
                "our explanation of table 1",
                "direction",
                (core("newreno", flows, hosts=True), core("newreno", flows)),
                lambda hosts, ideal: c_loss(hosts) / c_loss(ideal),
                "times",
                low=1.5,
            )
            for flows in FLOWS
        ),
    ),
)

I2 = Experiment(
    "I2",
    "Figure 2: how far off the edge's constant is at the core",
    (
        *(
            Claim(
                f"by losses, {flows} flows",
                "figure 2",
                "number",
                (core("newreno", flows, hosts=True), *EDGES),
                edge_used_at_core(c_loss),
                "%",
                published=FIGURE_2_LOSS[flows],
                low=FIGURE_2_LOSS[flows] - 10,
                high=FIGURE_2_LOSS[flows] + 10,
                tolerance=READING,
            )
            for flows in FLOWS
        ),
        *(
            Claim(
                f"by halvings, {flows} flows",
                "figure 2 (at most 10 %)",
                "number",
                (core("newreno", flows, hosts=True), *EDGES),
                edge_used_at_core(c_halving),
                "%",
                published=8,
                low=0,
                high=10,
                tolerance="the source: at most 10 %; that it uses the edge's C is our reading",
            )
            for flows in FLOWS
        ),
        *(
            Claim(
                f"of our own fit at the core, {flows} flows: the median flow is off by halvings by",
                "beside figure 2",
                "direction",
                (core("newreno", flows, hosts=True),),
                error_halving,
                "%",
                high=10,
            )
            for flows in FLOWS
        ),
    ),
)

I3 = Experiment(
    "I3",
    "Figure 3: what a halving costs",
    (
        *(
            Claim(
                f"6 to 9 losses per halving, core, {flows} flows",
                "figure 3",
                "direction",
                (core("newreno", flows, hosts=True),),
                losses,
                "",
                low=6,
                high=9.5,
                why="How long the study's cards collected is not known: 200 us is our choice.",
            )
            for flows in FLOWS
        ),
        *(
            Claim(
                f"about 1.7, edge, {flows} flows",
                "figure 3",
                "number",
                (edge("newreno", flows),),
                losses,
                "",
                published=1.7,
                low=1.3,
                high=2.2,
                tolerance="our own band",
            )
            for flows in EDGE_FLOWS
        ),
        Claim(
            "a card that is told where a burst ends (Linux since 5.4) collects no more than that:"
            " losses per halving, core, 5000 flows",
            "our explanation of figure 3",
            "direction",
            (core("newreno", 5000, modern=True),),
            losses,
            "",
            high=2.5,
        ),
    ),
)

BBR_WHY = (
    "The study does not say what makes its flows uneven. Here the flows of a cell have the same"
    " base RTT to the nanosecond, no host limits them, and when the queue drains for a PROBE_RTT"
    " all measure the same RTprop."
)


def lowest_of_bbr(says: str, ms: int = 20) -> Claim:
    """Makes the claim of the lowest Jain's index of BBR at the edge."""
    return Claim(
        says,
        "figure 4",
        "number",
        tuple(edge("bbr", flows, ms) for flows in EDGE_FLOWS[1:]),
        lambda *runs: min(map(jfi, runs)),
        "",
        published=0.7,
        low=0.6,
        high=0.8,
        tolerance="our own band: the lowest of the study's cells",
        why=BBR_WHY,
    )


I4 = Experiment(
    "I4",
    "Figure 4: fairness among flows of one control",
    (
        Claim(
            "BBR, core: as low as 0.4: 5000 flows with 200 ms, steady state",
            "figure 4",
            "number",
            (core("bbr", 5000, ms=200),),
            jfi,
            "",
            published=0.4,
            low=0.3,
            high=0.5,
            tolerance="our own band: the lowest of the study's cells",
            why=BBR_WHY,
        ),
        *(
            Claim(
                f"BBR is unfair while its starts are not forgotten: {flows} flows, 20 to 60 s",
                "our reading of figure 4",
                "direction",
                (core("bbr", flows),),
                first_minute,
                "",
                high=0.7,
            )
            for flows in FLOWS
        ),
        lowest_of_bbr("BBR, edge: as low as 0.7 beyond 10 flows: the lowest of 20 to 50"),
        *(
            Claim(
                f"{NAMES[cc]}, core, {flows} flows: above 0.99",
                "quoted by a replication",
                "direction",
                (core(cc, flows, hosts=cc == "newreno"),),
                jfi,
                "",
                low=0.99,
                why="Few cycles are averaged: Jain's index of either half of the window is lower,"
                " and the shares of the two hardly correlate. As independent shares are averaged"
                " 0.99 takes 2 to 4 times the window; --full has it.",
            )
            for cc in ("newreno", "cubic")
            for flows in FLOWS
        ),
    ),
)

AGAINST = Experiment(
    "Shares",
    "one control against another at the core",
    (
        *(
            Claim(
                f"CUBIC takes 70 to 80 % from as many NewReno flows: {flows} flows, {ms} ms",
                "quoted by a replication",
                "number",
                (two("cubic", "newreno", flows, ms=ms),),
                share,
                "%",
                published=75,
                low=65,
                high=85,
                tolerance="the quoted range, and five points of our own on each side",
            )
            for flows, ms in ((1000, 20), (3000, 20), (5000, 20), (5000, 100), (5000, 200))
        ),
        *(
            Claim(
                f"BBR is highly unfair to {NAMES[other]}: the part of half the flows, {flows}"
                f" flows, {ms} ms",
                "quoted by a replication",
                "direction",
                (two("bbr", other, flows, ms=ms),),
                share,
                "%",
                low=60,
                tolerance="our own bound for 'highly'",
                why="The buffer holds 15 times the path: BBR's two BDP are a small part of what the"
                " loss-based flows queue.",
            )
            for other in ("newreno", "cubic")
            for flows, ms in ((1000, 20), (5000, 20), (5000, 200))
        ),
        *(
            Claim(
                f"one BBR flow has more than its share from 4999 of {NAMES[other]}: times the fair"
                " one",
                "the study's second split; its number is not seen",
                "direction",
                (two("bbr", other, 5000, lone=True),),
                lambda run: share(run) / 100 * 5000,
                "times",
                low=2,
            )
            for other in ("newreno", "cubic")
        ),
    ),
)

BEYOND = Experiment(
    "Beyond",
    "what nobody has published",
    tuple(
        Claim(
            f"{NAMES[cc]}, {flows} flows: {says}",
            "our own row",
            "not comparable",
            (core(cc, flows),),
            measure,
            unit,
            why="Nobody has published it.",
        )
        for cc in ("copa", "lola", "bbr3", "prague")
        for flows in FLOWS
        for says, measure, unit in (
            ("the link is used", used, "of it"),
            ("Jain's index", jfi, ""),
            ("mean time in the queue", queue_ms, "ms"),
        )
    ),
)


SOURCE = (
    "A. Philip, R. Ware, R. Athapathu, J. Sherry, V. Sekar, Revisiting TCP Congestion Control"
    " Throughput Models & Fairness Properties At Scale, IMC 2021"
)
CORESCALE = Study(
    "corescale",
    "CoreScale: congestion control at the core of the Internet",
    SOURCE,
    (I1, I2, I3, I4, AGAINST, BEYOND),
    HERE,
    with_all=True,
)


def edge_claims(ms: int) -> Sequence[Claim]:
    """Makes the claims at the edge with a round trip."""
    return [
        *(
            Claim(
                f"NewReno, {flows} flows, {ms} ms: C by halvings",
                "table 1 (of 20 ms)",
                "number",
                (edge("newreno", flows, ms),),
                c_halving,
                "",
                **near(EDGE_HALVING, 0.15),
                tolerance="our own band",
                why=FEW,
            )
            for flows in EDGE_FLOWS
        ),
        lowest_of_bbr(
            f"BBR, {ms} ms: Jain's index as low as 0.7 beyond 10 flows: the lowest of 20 to 50", ms
        ),
        *(
            Claim(
                f"{NAMES[cc]}, {flows} flows, {ms} ms: Jain's index",
                "beside figure 4",
                "not comparable",
                (edge(cc, flows, ms),),
                jfi,
                "",
                why="The excerpt that we have does not say it.",
            )
            for cc in ("newreno", "cubic")
            for flows in EDGE_FLOWS
        ),
    ]


EDGESCALE = Study(
    "edgescale",
    "EdgeScale: the same experiments with tens of flows",
    SOURCE,
    tuple(
        Experiment(f"{ms} ms", f"tens of flows with a round trip of {ms} ms", (*edge_claims(ms),))
        for ms in (20, 100, 200)
    ),
    HERE,
    drawn=None,
)
STUDIES = (CORESCALE, EDGESCALE)
