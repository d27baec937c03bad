# SPDX-License-Identifier: BSD-3-Clause
"""Runs the comparison with Linux, or reuses its cells; the page, the tables, the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from rich.console import Console

from weir.analysis import folder, metrics
from weir.base import terminal, units
from weir.base.page import Column, Heading, Mark, Page, Status, Table, Text, section
from weir.many import costs
from weir.many.cells import parted, run_cells
from weir.report import document
from weir.studies.linux import beside
from weir.studies.linux import cases as linux
from weir.studies.linux import figures as linux_figures
from weir.studies.linux.cases import Matrix, Pair
from weir.study import reproduce, study_page

US_PER_FRAME = 40.0  # with guests, on one core
TITLE = "Linux's own TCP beside ours"
ALONE = (
    "Goodput in Mbit/s, RTT in ms. The RTT is the base and the mean time in the bottleneck's queue;"
    " losses are data packets that the path dropped, up to the end of the warm-up (the start) and"
    " after it. Its source: the difference of the kernel's own control in Weir's TCP. Linux runs"
    " with pfifo_fast; DCTCP with ECN, which CoDel and a step mark and a FIFO does not; the others"
    " with ECN where the queue is codel-ecn."
)
MIXES = (
    "What the flows of the first control get of the goodput, as the mean over the seeds. Copa is"
    " ours on both sides: the column of Linux has Linux's CUBIC beside it."
)


def matrix_of(quick: bool, out: Path | None) -> Matrix:
    default = Path("runs") / f"linux-{'quick' if quick else 'full'}"
    return Matrix(quick, out or default, linux.cases(quick))


def plan_rows(matrix: Matrix) -> list[dict[str, str | float]]:
    """Lists the cells, and what they cost."""
    return [
        {
            "cell": case.run_name(side, seed),
            "virtual_s": case.duration_s,
            "frames": case.frames(),
            "wall_s": case.frames() * US_PER_FRAME / 1e6 if side == "linux" else 0.2,
        }
        for case, side, seed in matrix.runs()
    ]


def show_plan(matrix: Matrix, workers: int, screen: Console) -> None:
    """Shows the cells and what they cost, without running any."""
    columns = [
        Column("cell", words=True),
        Column("length", "virtual_s", lambda seconds: f"{seconds} s"),
        Column("frames"),
    ]
    per = f"{US_PER_FRAME:.0f} µs per frame of a guest"
    costs.show_plan(plan_rows(matrix), columns, per, workers, screen)


def run(
    matrix: Matrix,
    screen: Console,
    *,
    cluster: str | None = None,
    workers: int | None = None,
    as_json: bool = False,
) -> int:
    """Runs what is not there yet, writes page and table, shows them; exit status.

    The plug-ins of the kernel's own controls must be there (matrix.controls).
    """
    matrix.write_configs()
    runs = list(matrix.runs())
    outcomes = run_cells(
        [matrix.cell(*one) for one in runs],
        matrix.out / "cells",
        cluster=cluster,
        workers=workers,
        one_cpu=True,
        console=screen,
    )
    _, failed = parted(outcomes)
    found = {
        outcome.cell.name: linux.measure(case, folder.load(outcome.folder))
        for (case, _, _), outcome in zip(runs, outcomes, strict=True)
        if outcome.status != "failed"
    }
    pairs = linux.collect(matrix, found)
    html, parquet = write(matrix, pairs, failed)
    show(pairs, screen)
    return reproduce.finish(screen, failed, (parquet, html), as_data(pairs) if as_json else None)


def as_data(pairs: Sequence[Pair]) -> dict[str, object]:
    """Makes the tables, as JSON has them."""
    tables = (
        ("alone", beside.COLUMNS, beside.alone_rows(pairs)),
        ("mixes", beside.MIX_COLUMNS, beside.mix_rows(pairs)),
        ("start", beside.START_COLUMNS, beside.start_rows(pairs)),
    )
    runs = linux.table(pairs).to_dicts() if pairs else []
    return {
        "headline": beside.headline(pairs),
        "source": beside.by_source(pairs),
        **{name: {"columns": columns, "rows": rows} for name, columns, rows in tables},
        "differences": [
            {**asdict(one), "case": one.case.name} for one in beside.differences(pairs)
        ],
        "runs": runs,
    }


def show(pairs: Sequence[Pair], screen: Console) -> None:
    """Prints the tables on a terminal."""
    terminal.print_table(screen, Table(beside.COLUMNS, beside.alone_rows(pairs), left=3))
    if mixes := beside.mix_rows(pairs):
        terminal.print_table(screen, Table(beside.MIX_COLUMNS, mixes, left=2))
    screen.print("Losses of CUBIC before the end of the warm-up, by its slow start:")
    terminal.print_table(screen, Table(beside.START_COLUMNS, beside.start_rows(pairs), left=2))
    for text in explanations(pairs):
        screen.print(text, soft_wrap=True, markup=False)
    for line in (beside.headline(pairs), beside.by_source(pairs)):
        screen.print(line, soft_wrap=True)


def explanations(pairs: Sequence[Pair]) -> list[str]:
    """Lists the reasons, each with its rows: how far ours is off, and the kernel's own control."""
    by_reason: dict[str, list[str]] = {}
    for one in beside.differences(pairs):
        source = f"; with Linux's own control {one.source}" if one.source else ""
        where = f"{one.case.link.name} {one.case.queue} {beside.title(one.case)}"
        where += f" ({one.amount}{source})"
        by_reason.setdefault(one.reason or beside.NO_REASON, []).append(where)
    return [f"{reason}: {'; '.join(rows)}." for reason, rows in by_reason.items()]


def status(pairs: Sequence[Pair]) -> Status:
    found = beside.differences(pairs)
    unexplained = any(not one.reason for one in found)
    kind = "bad" if unexplained else "warn" if found else "good"
    return Status(kind, f"{beside.headline(pairs)}.")


def write(matrix: Matrix, pairs: Sequence[Pair], failed: dict[str, str]) -> tuple[Path, Path]:
    """Writes linux.html and linux.parquet into matrix.out; their paths."""
    html, parquet = (matrix.out / f"linux.{kind}" for kind in ("html", "parquet"))
    if pairs:
        folder.write_table(parquet, linux.table(pairs))
    runs = [one for pair in pairs for ran in pair.runs.values() for one in ran]
    kernels = sorted({one.about.kernel for one in runs if one.about.kernel})
    virtual_s = sum(one.about.virtual_s or 0 for one in runs)
    wall_s = sum(one.about.wall_s or 0 for one in runs)
    few = beside.LOSSES_FEW
    parts = [
        *study_page.failures(failed),
        Text(
            f"Bounds: goodput {100 * beside.GOODPUT_OFF:.0f} %, mean RTT {100 * beside.RTT_OFF:.0f}"
            f" %, losses at the start a factor of {beside.START_FACTOR} or {few} packets, later"
            f" ones and marks {100 * beside.LOSSES_OFF:.0f} % or {few} packets, and in mixes"
            f" {beside.QUOTA_OFF} of the goodput, of the mean over all seeds."
        ),
        Text(beside.by_source(pairs)),
        *section("Outside a bound, and why", *map(Text, explanations(pairs))),
        Heading("One flow alone"),
        Table(beside.COLUMNS, beside.alone_rows(pairs), left=3),
        Text(ALONE, "small"),
        *section(
            "Two flows of one control beside two of another",
            mixes := Table(beside.MIX_COLUMNS, beside.mix_rows(pairs), left=2),
            Text(MIXES if mixes else "", "small"),
        ),
        *section(
            "Losses of CUBIC at the start, by its slow start",
            Table(beside.START_COLUMNS, beside.start_rows(pairs), left=2),
        ),
        document.figures(linux_figures.draw(pairs)),
        Heading("Method"),
        Text([
            "Each row is three runs in virtual time: with unmodified Linux kernels at both ends,"
            " with Weir's transport and its control of the same name (CUBIC with Linux's HyStart"
            " and constant alpha), and with Weir's transport and the kernel's own file of the"
            " control (Reno has none). Links, queues, starts and random draws are the same. ",
            Mark("configs/"), " holds the config of each run, ", Mark("cells/"), " its folder. The"
            " same seed gives the same digest. Again: ",
            Mark(f"weir reproduce linux --{'quick' if matrix.quick else 'full'}"), ".",
        ]),
    ]  # fmt: skip
    headline = [
        ("kernel", ", ".join(kernels) or units.NONE),
        ("runs", str(len(runs))),
        ("virtual time", units.time(virtual_s * metrics.NS_PER_S)),
        ("of one core", units.time(wall_s * metrics.NS_PER_S)),
        ("ledgers", "balanced" if all(one.balanced for one in runs) else "NOT"),
    ]
    page = document.render(Page(TITLE, parts, status(pairs), headline, wide=True))
    folder.write_whole(html, page)
    return html, parquet
