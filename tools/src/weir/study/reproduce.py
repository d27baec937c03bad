# SPDX-License-Identifier: BSD-3-Clause
"""Runs a study's cells, or reuses them, and writes what came out beside what was published."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from weir.analysis import folder
from weir.base.errors import UserError
from weir.base.foreign import Json
from weir.base.page import Column
from weir.many import costs, travel
from weir.many.cells import parted, run_cells
from weir.many.progress import counted
from weir.runner.options import Options
from weir.study import claim, documents, study_page
from weir.study.claim import Checked, Found, Study


@dataclass(frozen=True)
class Plan:
    """A study that will be run, and its folder."""

    study: Study
    quick: bool
    out: Path

    @property
    def scale(self) -> str:
        return "quick" if self.quick else "full"

    @property
    def cells(self) -> list[Options]:
        return [cell for setup in claim.setups(self.study) for cell in setup.cells(self.quick)]


def plan(study: Study, quick: bool, out: Path | None) -> Plan:
    return Plan(study, quick, out or Path("runs") / f"{study.name}-{'quick' if quick else 'full'}")


def resolved(cell: Options) -> str:
    """Returns a cell's config as weir-sim prints it. UserError: weir-sim refuses it."""
    try:
        return travel.resolved(cell)
    except UserError as error:
        raise UserError(f"{cell.name}: {error}") from None


def refuse(made: Plan) -> None:
    """Raises UserError if the first cell's config is refused."""
    resolved(made.cells[0])


def plan_rows(made: Plan) -> list[Json]:
    """Lists the cells, and what they cost."""
    return [
        {
            "study": made.study.name,
            "cell": cell.name,
            "config": f"{cell.config.parent.name}/{cell.config.name}",
            "override": list(cell.overrides),
            "seed": cell.seed,
            "wall_s": wall_s,
        }
        for cell, wall_s in zip(made.cells, costs.costs_s(made.cells), strict=True)
    ]


def show_plan(plans: Sequence[Plan], workers: int, screen: Console) -> None:
    """Shows the cells and what they cost, without running any."""
    rows = [row for made in plans for row in plan_rows(made)]
    columns = [Column(name, words=True) for name in ("study", "cell", "config")]
    costs.show_plan(rows, columns, costs.PER_PACKET, workers, screen)


def print_config(plans: Sequence[Plan], name: str) -> None:
    """Prints one cell as a config that `weir run` takes."""
    for made in plans:
        for cell in made.cells:
            if cell.name == name:
                print(resolved(cell), end="")
                return
    raise UserError(f"no cell is named '{name}': --plan lists them")


def run(
    made: Plan,
    screen: Console,
    *,
    ran: dict[Options, Path],
    cluster: str | None = None,
    workers: int | None = None,
) -> tuple[list[Checked], dict[str, str]]:
    """Runs what is not there yet, writes page and table; the claims, and why cells failed.

    ran: cells that another study of the suite has run, to which it adds.
    """
    cells = [cell for cell in made.cells if cell not in ran]
    outcomes = run_cells(
        cells,
        made.out / "cells",
        cluster=cluster,
        workers=workers,
        costs_s=costs.costs_s(cells),
        console=screen,
    )
    screen.print(counted(outcome.status for outcome in outcomes))
    folders, failed = parted(outcomes)
    ran |= {cell: folders[cell.name] for cell in cells if cell.name in folders}
    found = Found({cell.name: ran[cell] for cell in made.cells if cell in ran}, made.quick)
    checked = claim.check(made.study, found)
    html, parquet = (made.out / f"{made.study.name}.{kind}" for kind in ("html", "parquet"))
    folder.write_table(parquet, study_page.table([(made.study, checked)]))
    folder.write_whole(
        html, study_page.html(made.study, made.scale, checked, found, failed, made.out)
    )
    return checked, failed


def finish(screen: Console, failed: dict[str, str], written: Sequence[Path], data: object) -> int:
    """Prints what failed, what was written, and data as JSON; returns the exit status."""
    for name, message in failed.items():
        screen.print(f"{name} failed: {message}", style="red", markup=False, soft_wrap=True)
    for path in written:
        screen.print(str(path), soft_wrap=True)
    if data is not None:
        print(json.dumps(data, indent=1, default=str))
    return 1 if failed else 0


def run_all(
    name: str,
    plans: Sequence[Plan],
    out: Path | None,
    screen: Console,
    *,
    cluster: str | None = None,
    workers: int | None = None,
    as_json: bool = False,
    write_docs: bool = False,
) -> int:
    """Runs the studies of a name in turn, and makes a page over all of several; exit status.

    It is 0 when every claim holds but for those that say why they do not, and all cells ran.
    write_docs: keeps the results beside the study and in the documents, if no cell failed.
    """
    results: list[tuple[Study, list[Checked]]] = []
    failed: dict[str, str] = {}
    ran: dict[Options, Path] = {}
    written = []
    commit = documents.commit([made.study for made in plans]) if write_docs else ""
    for made in plans:
        if len(plans) > 1:
            screen.print(f"{made.study.name}: {made.study.title}", markup=False, soft_wrap=True)
        checked, missing = run(made, screen, ran=ran, cluster=cluster, workers=workers)
        results.append((made.study, checked))
        failed |= missing
        written += [made.out / f"{made.study.name}.{kind}" for kind in ("parquet", "html")]
    study_page.show(results, screen)
    if len(plans) > 1:
        place = out or Path("runs") / f"{name}-{plans[0].scale}"
        place.mkdir(parents=True, exist_ok=True)
        written = [place / f"{name}.parquet", place / f"{name}.html"]
        folder.write_table(written[0], study_page.table(results))
        pages = {made.study.name: made.out / f"{made.study.name}.html" for made in plans}
        folder.write_whole(written[1], study_page.overview(results, plans[0].scale, pages, place))
    if write_docs and not failed:
        written += documents.write(name, results, plans[0].scale, commit)
    rows = study_page.table(results).to_dicts() if as_json else None
    unexplained = [one for _, checked in results for one in checked if one.unexplained]
    return finish(screen, failed, written, rows) or int(bool(unexplained))
