# SPDX-License-Identifier: BSD-3-Clause
"""The page of a study: claims, tables and figures, ours beside the published ones.

What the page says is put together here; templates/study.html.j2 says how it is shown.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from weir import summary, units
from weir.analysis import metrics
from weir.report import document
from weir.report.document import Status, Table
from weir.study import corescale, figures, validation
from weir.study.corescale import Measured, Plan
from weir.study.validation import Validation

TITLES = {
    "corescale": "CoreScale: congestion control at the core of the Internet",
    "edgescale": "EdgeScale: the same experiments with tens of flows",
}
MET = {True: "met", False: "NOT MET", None: "–"}
VALIDATION_COLUMNS = ("claim", "published", "here", "deviation", "must be", "")


def html(made: Plan, measured: dict[str, Measured], failed: dict[str, str]) -> str:
    """The whole document."""
    said = validation.of(measured, made.study)
    return document.render(
        "study.html.j2",
        title=TITLES[made.study],
        study=made.study,
        quick=made.quick,
        status=status(said),
        headline=headline(made, measured, said),
        failed=failed,
        notes=list(notes(measured)),
        validations=Table(VALIDATION_COLUMNS, validation_rows(said), left=2),
        differences=differences(said),
        table_1=table_1(measured),
        figures=document.embed(figures.draw(made.study, measured)),
        cells=cell_table(made, measured),
    )


def status(said: Sequence[Validation]) -> Status:
    """How many bounds are met, and whether all are."""
    missed = any(checked.met is False for checked in said)
    unknown = any(checked.gate and checked.met is None for checked in said)
    return Status("bad" if missed else "warn" if unknown else "good", f"{verdict(said)}.")


def headline(
    made: Plan, measured: dict[str, Measured], said: Sequence[Validation]
) -> list[tuple[str, str]]:
    """The few numbers that a reader wants first."""
    runs = [cell.run for cell in measured.values()]
    return [
        ("cells", f"{len(runs)} of {len(made.cases)}"),
        ("virtual time", units.time(sum(run["virtual_s"] for run in runs) * metrics.NS_PER_S)),
        ("of one core", units.time(sum(run["wall_s"] or 0 for run in runs) * metrics.NS_PER_S)),
        ("bounds met", verdict(said).removesuffix(" bounds met")),
        ("ledgers", "balanced" if all(run["balanced"] for run in runs) else "NOT"),
    ]


def notes(measured: dict[str, Measured]) -> Iterator[str]:
    """What a reader should know about the data."""
    for name, cell in measured.items():
        if cell.run["verdict"] != "ok":
            yield f"{name}: {cell.run['verdict']}."
        if cell.flows.height < cell.case.flows:
            yield f"{name}: only {cell.flows.height} of {cell.case.flows} flows were seen."
    yield from (f"{note.capitalize()}." for note in same_runs(measured))


def same_runs(measured: dict[str, Measured]) -> Iterator[str]:
    """A sentence if there are cells in which the seed decides nothing."""
    same = sum(cell.run["seed_used"] is False for cell in measured.values())
    if same:
        yield (
            f"in {same:,} of {len(measured):,} cells {summary.SEED_UNUSED}:"
            " any other gives the same run"
        )


def validation_rows(said: Sequence[Validation]) -> list[list[str]]:
    """Claims as they are shown."""
    return [
        [
            checked.what,
            checked.published,
            checked.ours,
            units.NONE if checked.deviation is None else f"{100 * checked.deviation:+.1f} %",
            checked.gate or "no bound",
            MET[checked.met],
        ]
        for checked in said
    ]


def verdict(said: Sequence[Validation]) -> str:
    """How many bounds are met."""
    gates = [checked for checked in said if checked.gate]
    met = sum(checked.met is True for checked in gates)
    missing = sum(checked.met is None for checked in gates)
    text = f"{met} of {len(gates)} bounds met"
    return text + (f", {missing} without the cells they need" if missing else "")


def differences(said: Sequence[Validation]) -> list[str]:
    """Why numbers are more than 15 % away, and bounds not met."""
    why = {checked.why for checked in said if checked.surprising}
    return [text for key, text in validation.WHY.items() if key in why]


def table_1(measured: dict[str, Measured]) -> Table:
    """The study's Table 1 beside ours; no rows without NewReno."""
    columns = (
        "flows",
        "by losses",
        "published",
        "by halvings",
        "published",
        "error, losses",
        "error, halvings",
        "losses per halving",
        "of the fits",
        "left out",
    )
    rows = []
    for cell in measured.values():
        case = cell.case
        if case.ccs != ("newreno",):
            continue
        base = case.rtt_ms == corescale.BASE_RTT_MS
        core = case.scale == "core"
        loss = validation.TABLE_1_LOSS.get(case.flows) if core else validation.TABLE_1_EDGE["loss"]
        halving = (
            validation.TABLE_1_HALVING.get(case.flows)
            if core
            else validation.TABLE_1_EDGE["halving"]
        )
        rows.append(
            [
                f"{case.scale}, {figures.cell_label(case)}",
                units.number(cell.by_loss.c),
                units.number(loss if base else None),
                units.number(cell.by_halving.c),
                units.number(halving if base else None),
                units.percent(cell.by_loss.error_median, 1),
                units.percent(cell.by_halving.error_median, 1),
                units.number(cell.losses.total),
                units.number(cell.losses_of_fits),
                left_out(cell.by_halving),
            ]
        )
    return Table(columns, rows)


def left_out(fit: metrics.MathisFit) -> str:
    """How many flows a fit had to do without, and why."""
    return "; ".join(f"{n} {why}" for why, n in fit.left_out.items() if n) or "none"


def cell_table(made: Plan, measured: dict[str, Measured]) -> Table:
    """Every cell with what makes it repeatable."""
    columns = (
        "cell",
        "seed",
        "warm-up",
        "length",
        "utilisation",
        "queue",
        "RTT, p50",
        "p99",
        "JFI",
        "RTX",
        "ledger",
        "digest",
    )
    rows = []
    for case in made.cases:
        cell = measured.get(case.name)
        if cell is None:
            rows.append([case.name, *[units.NONE] * (len(columns) - 1)])
            continue
        retransmits, sent = (
            float(cell.groups[name].sum()) for name in ("retransmits", "sent_segs")
        )
        rows.append(
            [
                case.name,
                str(cell.run["seed"]),
                f"{cell.run['warmup_s']:,.0f} s",
                f"{cell.run['virtual_s']:,.0f} s",
                units.percent(cell.run["utilisation"]),
                units.time(cell.run["queue_mean_ns"]),
                units.time(cell.rtt.get("rtt_p50_ns")),
                units.time(cell.rtt.get("rtt_p99_ns")),
                summary.ratio(cell.jfi),
                units.percent(metrics.rtx_overhead(retransmits, sent), 2),
                "balanced" if cell.run["balanced"] else "NOT BALANCED",
                str(cell.run["digest"]),
            ]
        )
    return Table(columns, rows)
