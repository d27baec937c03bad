# SPDX-License-Identifier: BSD-3-Clause
"""Runs a study's cells, or reuses them, and writes what came out beside what was published."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from rich.console import Console

from weir import summary, units
from weir.analysis import folder, metrics
from weir.errors import UserError
from weir.study import corescale, validation
from weir.study.cells import Outcome, run_cells
from weir.study.corescale import Case, Measured
from weir.study.validation import Claim

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

STUDIES = ("corescale", "edgescale")
NS_PER_PACKET = 100.0  # of weir-sim on one core, for estimates
TITLES = {
    "corescale": "CoreScale: congestion control at the core of the Internet",
    "edgescale": "EdgeScale: the same experiments with tens of flows",
}
MET = {True: "met", False: "NOT MET", None: "–"}


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


def plan(study: str, quick: bool, out: Path | None) -> Plan:
    """The cells of a study; UserError: there is no such study."""
    if study not in STUDIES:
        raise UserError(f"'{study}' cannot be reproduced; there are {' and '.join(STUDIES)}")
    default = Path("runs") / f"{study}-{'quick' if quick else 'full'}"
    return Plan(study, quick, out or default, corescale.cases(study))


def show_plan(made: Plan, workers: int, screen: Console) -> None:
    """The cells, their lengths and what they cost, without running any."""
    rows, total_s = [], 0.0
    for case in made.ordered:
        packets = case.packets(made.quick)
        wall_s = packets * NS_PER_PACKET / metrics.NS_PER_S
        total_s += wall_s
        length = case.quick.duration if made.quick else corescale.STUDY_S
        rows.append(
            [
                case.name,
                units.count(case.flows),
                f"{case.rtt_ms} ms",
                f"{case.quick.warmup} s" if made.quick else "as configured",
                f"{length:,} s" if made.quick else f"at most {length:,} s",
                f"{packets / 1e6:,.0f} M",
                f"{wall_s:,.0f} s",
            ]
        )
    columns = ("cell", "flows", "RTT", "warm-up", "length", "packets", "wall")
    screen.print(summary.table(columns, rows, left=1))
    screen.print(
        f"{len(rows)} cells, {total_s:,.0f} s of one core at {NS_PER_PACKET:.0f} ns per packet:"
        f" about {units.time(max(total_s / workers, 1.0) * 1e9)} on {workers} cores"
    )


def run(
    made: Plan, screen: Console, *, scheduler: str | None = None, workers: int | None = None
) -> int:
    """Runs what is not there yet, writes page and table, shows the claims; exit status."""

    def told(outcome: Outcome, number: int, total: int) -> None:
        why = f": {outcome.message}" if outcome.message else ""
        screen.print(f"[{number}/{total}] {outcome.cell.name} {outcome.status}{why}", markup=False)

    cells = [case.cell(made.quick) for case in made.ordered]
    outcomes = run_cells(
        cells, made.out / "cells", scheduler=scheduler, workers=workers, on_outcome=told
    )
    measured, failed = collect(made, outcomes)
    page, parquet = write(made, measured, failed)
    said = validation.of(measured, made.study)
    show_claims(said, screen)
    for note in same_runs(measured):
        screen.print(note, style="yellow", soft_wrap=True)
    for name, message in failed.items():
        screen.print(f"{name} failed: {message}", style="red", markup=False, soft_wrap=True)
    screen.print(str(parquet), soft_wrap=True)
    screen.print(str(page), soft_wrap=True)
    return 1 if failed else 0


def collect(made: Plan, outcomes: Sequence[Outcome]) -> tuple[dict[str, Measured], dict[str, str]]:
    """What was measured in each cell that ran, in the study's order; why the others did not."""
    by_name = {outcome.cell.name: outcome for outcome in outcomes}
    measured, failed = {}, {}
    for case in made.cases:
        outcome = by_name[case.name]
        if outcome.status == "failed":
            failed[case.name] = outcome.message
        else:
            measured[case.name] = corescale.measure(case, folder.load(outcome.folder))
    return measured, failed


def same_runs(measured: dict[str, Measured]) -> Iterator[str]:
    """A sentence if there are cells in which the seed decides nothing."""
    same = sum(cell.run["seed_used"] is False for cell in measured.values())
    if same:
        yield (
            f"in {same:,} of {len(measured):,} cells {summary.SEED_UNUSED}:"
            " any other gives the same run"
        )


def claim_rows(said: Sequence[Claim]) -> list[list[str]]:
    """Claims as they are shown."""
    return [
        [
            claim.what,
            claim.published,
            claim.ours,
            units.NONE if claim.deviation is None else f"{100 * claim.deviation:+.1f} %",
            claim.gate or "reported",
            MET[claim.met],
        ]
        for claim in said
    ]


CLAIM_COLUMNS = ("claim", "published", "here", "deviation", "gate", "")


def show_claims(said: Sequence[Claim], screen: Console) -> None:
    """The claims on a terminal."""
    made = summary.table(CLAIM_COLUMNS, claim_rows(said), left=3)
    for column in made.columns[:3]:
        column.no_wrap, column.overflow = False, "fold"
    screen.print(made)
    screen.print(verdict(said))


def verdict(said: Sequence[Claim]) -> str:
    """How many gates are met."""
    gates = [claim for claim in said if claim.gate]
    met = sum(claim.met is True for claim in gates)
    missing = sum(claim.met is None for claim in gates)
    text = f"{met} of {len(gates)} gates met"
    return text + (f", {missing} without the cells they need" if missing else "")


# The page.


def write(made: Plan, measured: dict[str, Measured], failed: dict[str, str]) -> tuple[Path, Path]:
    """Writes STUDY.html and STUDY.parquet into made.out; their paths."""
    from weir.report import theme

    theme.use()
    made.out.mkdir(parents=True, exist_ok=True)
    page, parquet = (made.out / f"{made.study}.{kind}" for kind in ("html", "parquet"))
    if measured:
        folder.write_table(parquet, corescale.table(measured.values()))
    folder.write_whole(page, html(made, measured, failed))
    return page, parquet


def html(made: Plan, measured: dict[str, Measured], failed: dict[str, str]) -> str:
    """The whole document."""
    from weir.report import page

    said = validation.of(measured, made.study)
    drawn = [
        f"<figure>{page.inline_svg(figure, f'f{n}-')}<figcaption><b>Figure {n}.</b> "
        f"{escape(caption)}</figcaption></figure>"
        for n, (figure, caption) in enumerate(draw(made.study, measured), start=1)
    ]
    body = [
        f"<header><h1>{escape(TITLES[made.study])}</h1>{headline(made, measured, said)}</header>",
        *(
            f'<p class="note">{escape(name)} failed: {escape(message)}</p>'
            for name, message in failed.items()
        ),
        *(f'<p class="note">{escape(note)}</p>' for note in notes(measured)),
        f"<h2>Claims: {escape(verdict(said))}</h2>",
        claim_table(said),
        *explanations(said),
        *table_1(measured),
        *drawn,
        "<h2>Cells</h2>",
        cell_table(made, measured),
        method(made),
    ]
    return page.document(TITLES[made.study], body, CSS)


def headline(made: Plan, measured: dict[str, Measured], said: Sequence[Claim]) -> str:
    """The few numbers a reader wants first."""
    cells = [
        ("cells", f"{len(measured)} of {len(made.cases)}"),
        ("virtual time", units.time(sum(m.run["virtual_s"] for m in measured.values()) * 1e9)),
        ("of one core", units.time(sum(m.run["wall_s"] or 0 for m in measured.values()) * 1e9)),
        ("gates", verdict(said).removesuffix(" gates met")),
        ("ledgers", "balanced" if all(m.run["balanced"] for m in measured.values()) else "NOT"),
    ]
    return f"<dl>{''.join(f'<div><dt>{k}</dt><dd>{escape(v)}</dd></div>' for k, v in cells)}</dl>"


def notes(measured: dict[str, Measured]) -> Iterator[str]:
    """What a reader should know about the data."""
    for name, cell in measured.items():
        if cell.run["verdict"] != "ok":
            yield f"{name}: {cell.run['verdict']}."
        if cell.flows.height < cell.case.flows:
            yield f"{name}: only {cell.flows.height} of {cell.case.flows} flows were seen."
    yield from (f"{note.capitalize()}." for note in same_runs(measured))


def claim_table(said: Sequence[Claim]) -> str:
    """The claims; a gate that is not met stands out."""
    rows = []
    for claim, cells in zip(said, claim_rows(said), strict=True):
        mark = ' class="bad"' if claim.met is False else ""
        inner = "".join(f"<td>{escape(cell)}</td>" for cell in cells[:-1])
        rows.append(f"<tr>{inner}<td{mark}>{escape(cells[-1])}</td></tr>")
    head = "".join(f"<th>{escape(column)}</th>" for column in CLAIM_COLUMNS)
    body = "".join(rows)
    return f'<table class="claims"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'


def explanations(said: Sequence[Claim]) -> Iterator[str]:
    """Why numbers are more than 15 % away, and gates not met."""
    why = {claim.why for claim in said if claim.surprising}
    found = [text for key, text in validation.WHY.items() if key in why]
    if found:
        yield "<h2>Differences</h2>"
        yield from (f"<p>{escape(text)}</p>" for text in found)


def table_1(measured: dict[str, Measured]) -> Iterator[str]:
    """Table 1 beside ours."""
    from weir.report import page

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
                f"{case.scale}, {cell_label(case)}",
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
    if rows:
        yield "<h2>Table 1</h2>"
        yield page.html_table(columns, rows)
        yield (
            '<p class="small">NewReno. C of goodput = C MSS / (RTT √p), least squares over flows;'
            " p is drops at the bottleneck, or window halvings, per data segment sent; RTT is each"
            " flow's mean with the queue; MSS is 1448 B of payload. Errors are of the median flow."
            " Losses per halving are counted, and (C by losses / C by halvings)² of the fits. The"
            " study does not say of how many flows its edge is.</p>"
        )


def left_out(fit: metrics.MathisFit) -> str:
    """How many flows a fit had to do without, and why."""
    return "; ".join(f"{n} {why}" for why, n in fit.left_out.items() if n) or "none"


def cell_table(made: Plan, measured: dict[str, Measured]) -> str:
    """Every cell with what makes it repeatable."""
    from weir.report import page

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
            rows.append([case.name, *([units.NONE] * (len(columns) - 1))])
            continue
        retransmits, acked = (
            float(cell.groups[name].sum()) for name in ("retransmits", "acked_bytes")
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
                units.percent(metrics.rtx_overhead(retransmits, corescale.PAYLOAD_BYTES, acked), 2),
                "balanced" if cell.run["balanced"] else "NOT BALANCED",
                str(cell.run["digest"]),
            ]
        )
    return f'<div class="wide">{page.html_table(columns, rows)}</div>'


def method(made: Plan) -> str:
    """How long, and how to do it again."""
    how = (
        "Cells are as long as their physics asks: about 12 halvings of each NewReno flow after the"
        " warm-up, starts spread over 20 s at the core."
        if made.quick
        else "The study's method: starts spread over 2 minutes, the first 5 ignored, the end when"
        " goodput moved by less than 1 % in 20 minutes, or after 3 hours."
    )
    mode = "--quick" if made.quick else "--full"
    return (
        f"<h2>Method</h2><p>{how} Each cell is a run folder below <code>cells/</code>, made by"
        " <code>weir-sim</code> from the config of its name in <code>configs/</code> in virtual"
        " time; its <code>manifest.json</code> has the command line. The same seed gives the same"
        f" digest. Again: <code>weir reproduce {made.study} {mode}</code>.</p>"
    )


CSS = """
body { max-width: 1080px; }
.claims td, .claims th { text-align: left; vertical-align: top; white-space: normal; }
.claims td { border-bottom: .5px solid #e4e4e4; }
.claims td:last-child, .claims td:nth-child(4) { white-space: nowrap; }
.wide { overflow-x: auto; font-size: .85em; }
"""


# The figures.

WIDTH_IN = 7.2
PUBLISHED = {"color": "#222222", "linewidth": 0.8, "linestyle": (0, (4, 2))}


def draw(study: str, measured: dict[str, Measured]) -> Iterator[tuple[Figure, str]]:
    """Each figure that there are cells for, with its caption."""
    newreno = [m for m in measured.values() if m.case.ccs == ("newreno",)]
    fitted = [m for m in newreno if m.by_halving.error.size and m.by_loss.error.size]
    if base := [m for m in fitted if m.case.rtt_ms == corescale.BASE_RTT_MS]:
        yield (
            errors(base),
            "How far each flow's goodput is from the fit's prediction: share of flows at or below"
            " an error, with p from halvings and from losses. The study's Figure 2: at the core a"
            " median of at most 10 % by halvings and of 45 to 55 % by losses; at the edge both"
            " below 10 % (dotted).",
        )
    if fitted:
        yield (
            losses(fitted),
            "Packets lost per window halving. Bars: 5th to 95th percentile of flows; lines: (C by"
            " losses / C by halvings)² of the two fits. The study's Figure 3 (grey): 6 to 9 at the"
            " core, about 1.7 at the edge.",
        )
    if single := [m for m in measured.values() if len(m.case.ccs) == 1 and not m.case.variant]:
        yield (
            fairness(single),
            "Jain's index among flows of one algorithm. The study's Figure 4 (dashed): BBR's is as"
            " low as 0.4 at the core, and as 0.7 at the edge beyond 10 flows; NewReno's and CUBIC's"
            " are above 0.99 at the core. It did not try Copa.",
        )
    if mixed := [m for m in measured.values() if len(m.case.ccs) == 2]:
        yield (
            shares(mixed),
            "What the first of two algorithms takes of the goodput, beside its share of the flows"
            " (open) and what the study found CUBIC to take of NewReno (grey).",
        )


def cell_label(case: Case) -> str:
    """Short, within a figure of one algorithm."""
    rtt = f", {case.rtt_ms} ms" if case.rtt_ms != corescale.BASE_RTT_MS else ""
    variant = f", {case.variant}" if case.variant else ""
    return f"{case.flows:,}{rtt}{variant}"


def scales(cells: Sequence[Measured]) -> list[str]:
    """Core and edge, those that there are."""
    return [scale for scale in ("core", "edge") if any(m.case.scale == scale for m in cells)]


def errors(cells: Sequence[Measured]) -> Figure:
    """Figure 2: distributions of the prediction error, a row per scale."""
    from matplotlib.figure import Figure

    from weir.report import theme

    tails = [np.percentile(f.error, 98) for m in cells for f in (m.by_halving, m.by_loss)]
    rows = scales(cells)
    figure = Figure(figsize=(WIDTH_IN, 2.3 * len(rows)))
    axes = figure.subplots(len(rows), 2, squeeze=False, sharex=True, sharey=True)
    for row, scale in enumerate(rows):
        shown = [m for m in cells if m.case.scale == scale]
        for column, title in enumerate(("by halvings", "by losses")):
            for index, cell in enumerate(shown):
                fit = cell.by_loss if column else cell.by_halving
                x, share = metrics.ecdf(fit.error)
                axes[row, column].step(
                    100 * x,
                    share,
                    where="post",
                    color=theme.CYCLE[index % len(theme.CYCLE)],
                    linestyle="-" if index < len(theme.CYCLE) else "--",
                    label=cell_label(cell.case),
                )
            axes[row, column].axvline(10, color=theme.FAINT, linewidth=0.7, linestyle=(0, (1, 2)))
            axes[row, column].set_title(f"{scale}, {title}", loc="left")
        axes[row, 0].set_ylabel("share of flows")
        axes[row, 1].legend(loc="upper left", bbox_to_anchor=(1.02, 1), fontsize=7)
    for below in axes[-1]:
        below.set_xlabel("prediction error (%)")
        below.set_xlim(0, max(15.0, 100 * float(max(tails))))
    return figure


def losses(cells: Sequence[Measured]) -> Figure:
    """Figure 3: losses per halving, a column per scale."""
    from matplotlib.figure import Figure

    from weir.report import theme

    columns = scales(cells)
    figure = Figure(figsize=(WIDTH_IN, 2.5))
    axes = figure.subplots(1, len(columns), squeeze=False, sharey=True)[0]
    for axis, scale in zip(axes, columns, strict=True):
        shown = [m for m in cells if m.case.scale == scale]
        low, high = (6.0, 9.0) if scale == "core" else (1.65, 1.75)
        axis.axhspan(low, high, color=theme.GRID, zorder=0)
        style = theme.style("newreno")
        for x, cell in enumerate(shown):
            spread = np.percentile(cell.losses.per_flow, (5, 95))
            axis.vlines(x, *spread, color=style.colour, alpha=0.3, linewidth=5)
            axis.plot(x, cell.losses.total, style.marker, color=style.colour, markersize=5)
            if cell.losses_of_fits is not None:
                axis.hlines(cell.losses_of_fits, x - 0.25, x + 0.25, color=theme.INK, linewidth=1)
        label_cells(axis, [cell_label(cell.case) for cell in shown])
        axis.set_title(scale, loc="left")
    axes[0].set_ylabel("losses per halving")
    axes[0].set_ylim(bottom=0)
    return figure


def label_cells(axis: Axes, labels: Sequence[str]) -> None:
    """Names below the places 0, 1, ..."""
    long = max(map(len, labels)) > 6
    axis.set_xticks(
        range(len(labels)),
        labels,
        rotation=35 if long else 0,
        ha="right" if long else "center",
    )
    axis.set_xlabel("flows")


def fairness(cells: Sequence[Measured]) -> Figure:
    """Figure 4: Jain's index over the number of flows, a column per scale."""
    from matplotlib.figure import Figure

    from weir.report import figures, theme

    columns = scales(cells)
    figure = Figure(figsize=(WIDTH_IN, 2.6))
    axes = figure.subplots(1, len(columns), squeeze=False, sharey=True)[0]
    dashes = {20: "-", 100: "--", 200: ":"}
    for axis, scale in zip(axes, columns, strict=True):
        axis.axhline(0.4 if scale == "core" else 0.7, **PUBLISHED)
        for cc, name in corescale.NAMES.items():
            style = theme.style(cc, name)
            for rtt_ms, dash in dashes.items():
                shown = [
                    m
                    for m in cells
                    if m.case.scale == scale and m.case.ccs == (cc,) and m.case.rtt_ms == rtt_ms
                ]
                axis.plot(
                    [m.case.flows for m in shown],
                    [m.jfi for m in shown],
                    color=style.colour,
                    marker=style.marker,
                    markersize=4,
                    linestyle=dash,
                    label=f"{name}, {rtt_ms} ms" if shown else None,
                )
        axis.set_title(scale, loc="left")
        axis.set_xlabel("flows")
        axis.set_xlim(left=0)
    axes[0].set_ylabel("Jain's index")
    axes[0].set_ylim(0, 1.03)
    figures.legend(figure)
    return figure


def shares(cells: Sequence[Measured]) -> Figure:
    """Shares of the first of two algorithms, a line per cell."""
    from matplotlib.figure import Figure

    from weir.report import theme

    figure = Figure(figsize=(WIDTH_IN, 0.6 + 0.2 * len(cells)))
    axis = figure.subplots()
    for y, cell in enumerate(reversed(cells)):
        case = cell.case
        share, own = (100 * float(v) for v in (cell.groups["share"][0], of_flows(cell)))
        style = theme.style(case.ccs[0])
        if case.ccs == ("cubic", "newreno") and not case.lone:
            axis.barh(y, 10, left=70, color=theme.GRID, height=0.9, zorder=0)
        axis.hlines(y, own, share, color=style.colour, linewidth=1)
        axis.plot(own, y, "o", color=style.colour, markerfacecolor="white", markersize=4)
        axis.plot(share, y, style.marker, color=style.colour, markersize=5)
    labels = [f"{cell.case.title}, {cell_label(cell.case)}" for cell in reversed(cells)]
    axis.set_yticks(range(len(cells)), labels)
    axis.set_xlim(-1, 101)
    axis.grid(axis="x")
    axis.grid(visible=False, axis="y")
    axis.set_xlabel("share of the goodput (%)")
    return figure


def of_flows(cell: Measured) -> float:
    """The first group's share of the flows."""
    return float(cell.groups["flows"][0]) / cell.flows.height
