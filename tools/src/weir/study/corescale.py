# SPDX-License-Identifier: BSD-3-Clause
"""The CoreScale study (Philip et al., IMC 2021): its cells, and what is measured in each.

Does what is known of congestion control from a few flows at the edge of the network hold for
thousands in its core? The study asked twenty servers for up to three hours per cell. It did not try
Copa: that cell is ours, and nothing published stands beside it.

A cell is a config of configs/ with overrides. `quick` shortens it to what its physics needs. Per
flow the window swings between W/2 and W around (BDP + queue) / n segments, one segment per round
trip, so that a NewReno flow halves every W/2 round trips, queue included. With a queue of 7/8 of
the buffer that is 43, 14 and 9 s for 1000, 3000 and 5000 flows at 20 ms. A fit wants 12 halvings of
each flow or more (were they random, a prediction would then be within 10 % for half of the flows),
after a warm-up of a few for the slow starts to be forgotten. The counts' noise also lowers a fitted
C, by 0.01 between 18 and 10 halvings: cells to be compared have equally many, about 18. BBR's flows
first share the link as their starts left it. At 20 ms Jain's index over 10 s is 0.997 or more from
70 s on with 1000 flows, from 90 s on with 3000, and 0.995 from 100 s on with 5000; from 40 to
80 s it is 0.55, 0.31 and 0.24. So their warm-ups are longer. `full` is the study's method, as the
configs have it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import polars as pl

from weir.analysis import metrics
from weir.report import bottleneck
from weir.study.cells import Cell

if TYPE_CHECKING:
    from weir.analysis.folder import Run

CONFIGS = Path(__file__).resolve().parents[4] / "configs"
PAYLOAD_BYTES = 1448  # of a full segment with timestamps; the study's MSS
WIRE_BITS = 1538 * 8  # of such a segment
BASE_RTT_MS = 20
STUDY_S = 10800  # the longest of the study's runs

Scale = Literal["core", "edge"]
RATE_BPS: dict[Scale, float] = {"core": 10e9, "edge": 100e6}
NAMES = {"newreno": "NewReno", "cubic": "CUBIC", "bbr": "BBR", "copa": "Copa"}
STUDIED = ("newreno", "cubic", "bbr")


@dataclass(frozen=True)
class Length:
    """Seconds of virtual time."""

    jitter: int  # flows start within this
    warmup: int
    duration: int

    def overrides(self, groups: int) -> Iterator[str]:
        """As options of weir-sim."""
        yield from (f"flows.{group}.jitter={self.jitter}s" for group in range(groups))
        yield f"warmup={self.warmup}s"
        yield f"duration={self.duration}s"


@dataclass(frozen=True)
class Case:
    """A cell of the study."""

    scale: Scale
    ccs: tuple[str, ...]  # one: all flows; two: half and half, or one flow of the first
    flows: int
    rtt_ms: int
    lone: bool
    quick: Length
    ack_every: int = 2  # segments the receivers acknowledge at once

    @property
    def name(self) -> str:
        """Names its folder."""
        lone = "-lone" if self.lone else ""
        rtt = f"-rtt{self.rtt_ms}" if self.rtt_ms != BASE_RTT_MS else ""
        bursts = f"-ack{self.ack_every}" if self.variant else ""
        return f"{self.scale}scale-{'-'.join(self.ccs)}-{self.flows}{lone}{rtt}{bursts}"

    @property
    def variant(self) -> str:
        """What it does unlike the study as it is written; empty: nothing."""
        return f"{self.ack_every} per ACK" if self.ack_every != 2 else ""

    @property
    def title(self) -> str:
        """For people: CUBIC against NewReno."""
        first, *others = (NAMES[cc] for cc in self.ccs)
        against = "".join(f" against {other}" for other in others)
        return f"one {first}{against}" if self.lone else first + against

    def cell(self, quick: bool) -> Cell:
        """What weir-sim is given."""
        written = self.flows if len(self.ccs) == 1 else 5000  # the mixed configs have this many
        config = CONFIGS / f"{self.scale}scale-{'-'.join(self.ccs)}-{written}.yaml"
        override = list(self.quick.overrides(len(self.ccs))) if quick else []
        if self.lone:
            # The one may take what it can: no receive window holds it back.
            override += ["flows.0.count=1", f"flows.1.count={self.flows - 1}"]
            override.append("flows.0.rwnd=1GB")
        elif self.flows != written:
            override += [f"flows.{group}.count={self.flows // 2}" for group in range(2)]
        if self.rtt_ms != BASE_RTT_MS:
            override.append(f"paths.reverse.0.delay.delay={self.rtt_ms}ms")
        if self.variant:
            override.append(f"flows.0.ack_every={self.ack_every}")
        return Cell(self.name, config, tuple(override))

    def packets(self, quick: bool) -> float:
        """Data packets through a full link, at most: what a run costs."""
        return RATE_BPS[self.scale] / WIRE_BITS * (self.quick.duration if quick else STUDY_S)


# Scale, algorithms, flows, RTTs in ms, and of --quick: jitter, warm-up, end in s.
# Warm-ups and ends are multiples of the configs' interval, 10 s.
_SINGLE: tuple[tuple[Scale, str, int, tuple[int, ...], Length], ...] = (
    ("core", "newreno", 1000, (20,), Length(20, 170, 700)),
    ("core", "newreno", 3000, (20,), Length(20, 80, 300)),
    ("core", "newreno", 5000, (20,), Length(20, 60, 200)),
    ("core", "newreno", 5000, (100,), Length(20, 60, 180)),
    ("core", "newreno", 5000, (200,), Length(20, 70, 220)),
    ("core", "cubic", 1000, (20,), Length(20, 100, 200)),
    ("core", "cubic", 3000, (20,), Length(20, 60, 140)),
    ("core", "cubic", 5000, (20, 100, 200), Length(20, 60, 120)),
    ("core", "bbr", 1000, (20,), Length(20, 80, 120)),
    ("core", "bbr", 3000, (20,), Length(20, 120, 160)),
    ("core", "bbr", 5000, (20, 100, 200), Length(20, 120, 160)),
    ("core", "copa", 5000, (20,), Length(20, 40, 80)),  # ours
    *(
        ("edge", cc, flows, (20, 100, 200), Length(120, 300, 1800))
        for cc in STUDIED
        for flows in (10, 20, 30, 50)
    ),
)
# BBR flows that began alone come down from windows of thousands only slowly: their queue never
# drains beside loss-based flows, so that each PROBE_RTT measures an RTprop that has it in it.
_MIXED: tuple[tuple[tuple[str, ...], int, tuple[int, ...], bool, Length], ...] = (
    *(
        mixed
        for pair in (("bbr", "newreno"), ("bbr", "cubic"))
        for mixed in (
            (pair, 1000, (20,), False, Length(20, 70, 110)),
            (pair, 3000, (20,), False, Length(20, 60, 90)),
            (pair, 5000, (20, 100, 200), False, Length(20, 60, 90)),
            (pair, 5000, (20,), True, Length(20, 60, 90)),
        )
    ),
    (("cubic", "newreno"), 1000, (20,), False, Length(20, 100, 200)),
    (("cubic", "newreno"), 3000, (20,), False, Length(20, 80, 160)),
    (("cubic", "newreno"), 5000, (20, 100, 200), False, Length(20, 60, 130)),
    (("cubic", "newreno"), 5000, (20,), True, Length(20, 60, 120)),
)
# Linux behind a fast card puts segments that arrive close to each other together (GRO: up to 17,
# the fragments of a buffer) and acknowledges them at once; what that ACK releases leaves at once.
BURSTS = 16
_BURSTS = (
    (1000, Length(20, 150, 300)),
    (3000, Length(20, 70, 140)),
    (5000, Length(20, 60, 120)),
)
PAIRS = (("cubic", "newreno"), ("bbr", "newreno"), ("bbr", "cubic"))

_CASES = (
    *(
        Case(scale, (cc,), flows, rtt, False, length)
        for scale, cc, flows, rtts, length in _SINGLE
        for rtt in rtts
    ),
    *(
        Case("core", ("newreno",), flows, BASE_RTT_MS, False, length, BURSTS)
        for flows, length in _BURSTS
    ),
    *(
        Case("core", pair, flows, rtt, lone, length)
        for pair, flows, rtts, lone, length in _MIXED
        for rtt in rtts
    ),
)
CASES = tuple(sorted(_CASES, key=lambda case: case.scale))  # the core first, else as above


def cases(study: str) -> list[Case]:
    """The cells of `corescale` (with the edge to compare with) or `edgescale`."""
    if study == "edgescale":
        return [case for case in CASES if case.scale == "edge"]
    return [case for case in CASES if case.scale == "core" or case.rtt_ms == BASE_RTT_MS]


@dataclass(frozen=True)
class Plan:
    """What will be run."""

    study: str
    quick: bool
    out: Path
    cases: Sequence[Case]

    @property
    def ordered(self) -> list[Case]:
        """The longest first: then no core is left with one at the end."""
        return sorted(self.cases, key=lambda case: -case.packets(self.quick))


# What is measured in a cell.


@dataclass(frozen=True)
class Measured:
    """A cell that was run."""

    case: Case
    run: dict[str, Any]  # its summary and manifest, the few that are shown
    flows: pl.DataFrame  # metrics.flow_table's
    groups: pl.DataFrame  # metrics.per_group's, with cc, RTT percentiles and RTX overhead
    by_halving: metrics.MathisFit
    by_loss: metrics.MathisFit
    losses: metrics.LossesPerHalving
    rtt: dict[str, float]  # of all flows: rtt_p50_ns, rtt_p99_ns

    @property
    def jfi(self) -> float | None:
        """Of all flows."""
        return metrics.jfi(self.flows["goodput_bps"].to_numpy())

    @property
    def losses_of_fits(self) -> float | None:
        """Losses per halving as the two fits imply them."""
        return metrics.losses_per_halving_of_fits(self.by_loss.c, self.by_halving.c)


COLUMNS = (
    "ts_ns",
    "flow_id",
    "group",
    "acked_bytes",
    "delivered_bytes",
    "sent_segs",
    "retransmits",
    "cwnd_reductions",
    "rtt_samples",
    "rtt_mean_ns",
)


def measure(case: Case, run: Run) -> Measured:
    """Reads a run folder; what happened during the warm-up is left out."""
    warmup_s, end_s = float(run.summary["warmup_s"]), float(run.summary["virtual_s"])
    span_ns = (end_s - warmup_s) * metrics.NS_PER_S
    names = [field.name for ring in run.rings("interval") for field in ring.schema.fields]
    columns = (*COLUMNS, metrics.drops_field(names))
    counted = metrics.tally(run.chunk_frames("interval", columns), warmup_s * 1e9)
    flows = metrics.flow_table(counted, span_ns)
    groups = metrics.per_group(flows)
    overhead = [
        metrics.rtx_overhead(row["retransmits"], row["sent_segs"])
        for row in groups.rows(named=True)
    ]
    groups = groups.join(metrics.rtt_percentiles(counted.rtts, "group"), on="group", how="left")
    groups = groups.with_columns(
        cc=pl.Series([case.ccs[group] for group in groups["group"]]),
        rtx_overhead=pl.Series(overhead, dtype=pl.Float64),
    )
    everyone = counted.rtts.with_columns(group=pl.lit(0))
    rtts = metrics.rtt_percentiles(everyone, "group").drop("group")
    link = bottleneck.busiest(run.summary)
    ledger = run.summary.get("ledger", {})
    about = {
        "seed": run.summary.get("seed"),
        "seed_used": run.summary.get("seed_used"),
        "warmup_s": warmup_s,
        "virtual_s": end_s,
        "wall_s": run.summary.get("wall_s"),
        "balanced": bool(ledger.get("balanced")),
        "digest": run.summary.get("digest"),
        "verdict": str(run.summary.get("verdict", "ok")),
        "version": run.manifest.get("version"),
        "commit": run.manifest.get("commit"),
        "timeouts": metrics.total(run.summary.get("groups", []), "timeouts"),
        "utilisation": link[1].get("utilisation") if link else None,
        "queue_mean_ns": link[1].get("queue_mean_ns") if link else None,
        "queue_mean_pkts": link[1].get("queue_mean_pkts") if link else None,
    }
    return Measured(
        case,
        about,
        flows,
        groups,
        metrics.mathis(flows, "cwnd_reductions", PAYLOAD_BYTES),
        metrics.mathis(flows, "drops", PAYLOAD_BYTES),
        metrics.losses_per_halving(flows),
        rtts.row(0, named=True) if rtts.height > 0 else {},
    )


def table(measured: Iterable[Measured]) -> pl.DataFrame:
    """One row per cell and group; the fits are of the whole cell, and only where all do the same.

    Times in the unit their names end with, goodput in bit/s, C and errors without a unit.
    """
    return pl.DataFrame([row for cell in measured for row in table_rows(cell)])


def table_rows(cell: Measured) -> Iterator[dict[str, Any]]:
    """The rows of one cell."""
    case = cell.case
    alone = len(case.ccs) == 1
    fits = {
        "c_halving": cell.by_halving.c,
        "c_loss": cell.by_loss.c,
        "error_halving": cell.by_halving.error_median,
        "error_loss": cell.by_loss.error_median,
        "losses_per_halving": cell.losses.total,
        "losses_per_halving_of_fits": cell.losses_of_fits,
    }
    left_out = {
        f"left_out_{name}": sum(fit.left_out.values())
        for name, fit in (("halving", cell.by_halving), ("loss", cell.by_loss))
    }
    for row in cell.groups.rows(named=True):
        yield {
            "cell": case.name,
            "scale": case.scale,
            "rtt_ms": case.rtt_ms,
            "cell_flows": case.flows,
            "split": "all" if alone else "lone" if case.lone else "half",
            **cell.run,
            "jfi_all": cell.jfi,
            "jfi_between": metrics.jfi_between(cell.groups),
            **row,
            **{name: float(v) if alone and v is not None else None for name, v in fits.items()},
            **{name: v if alone else None for name, v in left_out.items()},
        }
