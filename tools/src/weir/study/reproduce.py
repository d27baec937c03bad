# SPDX-License-Identifier: BSD-3-Clause
"""Runs a study's cells, or reuses them, and writes what came out beside what was published."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from weir.analysis import folder
from weir.base.errors import UserError
from weir.base.foreign import Json
from weir.base.page import Column
from weir.guests import stacks
from weir.many import costs, travel
from weir.many.cells import ended, is_run_of, parted, run_cells
from weir.many.progress import counted
from weir.runner.options import Options
from weir.study import claim, documents, kept, study_page
from weir.study.claim import Checked, Found, Study
from weir.study.kept import Made


@dataclass(frozen=True)
class Campaign:
    """A study that is run at one scale; out: its folder [runs/STUDY-SCALE]."""

    study: Study
    quick: bool
    out: Path | None = None

    @property
    def scale(self) -> str:
        return "quick" if self.quick else "full"

    @property
    def folder(self) -> Path:
        return self.out or Path("runs") / f"{self.study.name}-{self.scale}"

    def file(self, kind: str) -> Path:
        return self.folder / f"{self.study.name}.{kind}"

    @property
    def cells(self) -> list[Options]:
        return [cell for setup in claim.setups(self.study) for cell in setup.cells(self.quick)]


def resolved(cell: Options) -> str:
    """Returns a cell's config as weir-sim prints it. UserError: weir-sim refuses it."""
    try:
        return travel.resolved(cell)
    except UserError as error:
        raise UserError(f"{cell.name}: {error}") from None


def refuse(campaign: Campaign) -> None:
    """Raises UserError if the first cell's config is refused."""
    resolved(campaign.cells[0])


def campaigns(chosen: Sequence[Study], quick: bool, out: Path | None) -> list[Campaign]:
    """Makes the campaigns of the studies of a name; each of several has a folder in `out`."""
    inside = out is not None and len(chosen) > 1
    return [Campaign(one, quick, out / one.name if out and inside else out) for one in chosen]


def costs_of(campaign: Campaign, cells: Sequence[Options]) -> list[costs.Cost]:
    """Estimates what cells cost, by the speed of those that have been run at either scale.

    Others are as fast per packet as those of the study's results.
    """
    before = [campaign.folder, *(Campaign(campaign.study, quick).folder for quick in (False, True))]
    return costs.costs(
        cells, [place / "cells" for place in before], kept.ns_per_packet(campaign.study)
    )


Planned = Sequence[tuple[Campaign, Options]]


def planned(campaigns: Sequence[Campaign]) -> Planned:
    """Lists the cells of all campaigns, each once."""
    found: dict[Options, Campaign] = {}
    for campaign in campaigns:
        for cell in campaign.cells:
            found.setdefault(cell, campaign)
    return [(campaign, cell) for cell, campaign in found.items()]


def plan_rows(cells: Planned) -> list[Json]:
    """Lists cells, and what they cost."""
    found = []
    for campaign, cell in cells:
        (cost,) = costs_of(campaign, [cell])
        row = {
            "study": campaign.study.name,
            "cell": cell.name,
            "config": f"{cell.config.parent.name}/{cell.config.name}",
            "override": list(cell.overrides),
            "seed": cell.seed,
            "wall_s": cost.least_s,
            "wall_s_max": cost.most_s,
        }
        found.append(row)
    return found


def show_plan(cells: Planned, workers: int, screen: Console) -> None:
    """Shows cells and what they cost, without running any."""
    columns = [Column(name, words=True) for name in ("study", "cell", "config")]
    per = f"{costs.PER_PACKET}, or as fast as before or as in results.json"
    costs.show_plan(plan_rows(cells), columns, per, workers, screen)


def print_config(campaigns: Sequence[Campaign], name: str) -> None:
    """Prints one cell as a config that `weir run` takes."""
    for campaign in campaigns:
        for cell in campaign.cells:
            if cell.name == name:
                print(resolved(cell), end="")
                return
    raise UserError(f"no cell is named '{name}': --plan lists them")


def simulate(
    campaign: Campaign,
    cells: Sequence[Options],
    screen: Console,
    cluster: str | None = None,
    workers: int | None = None,
) -> tuple[dict[str, Path], dict[str, str]]:
    """Runs those cells that are not there yet; their folders, and why others failed, by name."""
    outcomes = run_cells(
        cells,
        campaign.folder / "cells",
        cluster=cluster,
        workers=workers,
        costs_s=[cost.least_s for cost in costs_of(campaign, cells)],
        console=screen,
    )
    screen.print(counted(outcome.status for outcome in outcomes))
    return parted(outcomes)


def there(campaign: Campaign, cells: Sequence[Options]) -> tuple[dict[str, Path], dict[str, str]]:
    """Returns the folders of cells that were run before, and which others there are, by name."""
    folders = {cell.name: campaign.folder / "cells" / cell.name for cell in cells}
    ran = {cell.name: folders[cell.name] for cell in cells if is_run_of(folders[cell.name], cell)}
    return ran, {name: "no part has run it" for name in folders if name not in ran}


Runs = Callable[[Campaign, Sequence[Options]], tuple[dict[str, Path], dict[str, str]]]


def simulating(screen: Console, cluster: str | None = None, workers: int | None = None) -> Runs:
    return lambda campaign, cells: simulate(campaign, cells, screen, cluster, workers)


def run(
    campaign: Campaign, runs: Runs, ran: dict[Options, Path]
) -> tuple[list[Checked], dict[str, str]]:
    """Runs cells, writes page and table; returns the claims, and why cells failed.

    ran: cells that another study of the suite has run, to which it adds.
    """
    cells = [cell for cell in campaign.cells if cell not in ran]
    folders, failed = runs(campaign, cells)
    ran |= {cell: folders[cell.name] for cell in cells if cell.name in folders}
    found = Found({cell.name: ran[cell] for cell in campaign.cells if cell in ran}, campaign.quick)
    checked = claim.check(campaign.study, found)
    folder.write_table(campaign.file("parquet"), study_page.table([(campaign.study, checked)]))
    page = study_page.html(campaign.study, campaign.scale, checked, found, failed, campaign.folder)
    folder.write_whole(campaign.file("html"), page)
    return checked, failed


def made_of(campaign: Campaign, ran: Mapping[Options, Path], commit: str) -> Made:
    """Returns what a study's runs took, with those kept of its commit, and what others would.

    Times are of one core, in seconds.
    """
    before = None if campaign.quick else kept.part(campaign.study, commit)[1]
    made = before or Made(runs=0, core_s=0.0, bytes=0)
    new = {c.name: ran[c] for c in campaign.cells if c in ran and c.name not in made.cells}
    speeds = [one for one in map(costs.speed, new.values()) if one is not None]
    left = [cell for cell in longest(campaign) if cell not in ran and cell.name not in made.cells]
    costs_s = costs_of(campaign, left)
    return Made(
        runs=made.runs + len(new),
        core_s=made.core_s + sum(one.cpu_s for one in speeds),
        bytes=made.bytes + sum(p.stat().st_size for of in new.values() for p in of.iterdir()),
        ns_per_packet=costs.ns_per_packet(speeds) or made.ns_per_packet,
        missing=len(left),
        missing_s=(sum(one.least_s for one in costs_s), sum(one.most_s for one in costs_s)),
        cells=[*made.cells, *new] if left and not campaign.quick else [],
        guests=made.guests | guests_of(new.values()),
    )


def guests_of(runs: Iterable[Path]) -> dict[str, str]:
    """Returns versions of the guests of runs: Linux's, and QUIC stacks' as built now."""
    built = stacks.built()
    found: dict[str, str] = {}
    for summary in map(ended, runs):
        kernels = summary.get("guests", {}).get("kernels", [])
        found |= {f"Linux {one['name']}": str(one["release"]) for one in kernels}
        names = {group.get("stack") for group in summary.get("groups", [])}
        found |= {name: built[name] for name in sorted(names & built.keys())}
    return dict(sorted(found.items()))


def longest(campaign: Campaign) -> list[Options]:
    """Returns the cells of the full length; after --quick none if that has results."""
    if campaign.quick and kept.has(campaign.study, "full"):
        return []
    return Campaign(campaign.study, quick=False).cells


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
    campaigns: Sequence[Campaign],
    out: Path | None,
    screen: Console,
    runs: Runs,
    *,
    as_json: bool = False,
    commit: str = "",
) -> int:
    """Runs the studies of a name in turn, and makes a page over all of several; exit status.

    It is 0 when every claim holds but for those that say why they do not, and all cells ran.
    commit: keeps the results of this commit beside the study and in the documents, if no cell
    failed; of --full also those of a part of the cells.
    """
    results: list[tuple[Study, list[Checked]]] = []
    failed: dict[str, str] = {}
    ran: dict[Options, Path] = {}
    written: list[Path] = []
    made: dict[str, Made] = {}
    for campaign in campaigns:
        if len(campaigns) > 1:
            name_and_title = f"{campaign.study.name}: {campaign.study.title}"
            screen.print(name_and_title, markup=False, soft_wrap=True)
        checked, missing = run(campaign, runs, ran)
        results.append((campaign.study, checked))
        failed |= missing
        if commit:
            made[campaign.study.name] = made_of(campaign, ran, commit)
        written += map(campaign.file, ("parquet", "html"))
    study_page.show(results, screen)
    if len(campaigns) > 1:
        place = out or Path("runs") / f"{name}-{campaigns[0].scale}"
        place.mkdir(parents=True, exist_ok=True)
        written = [place / f"{name}.parquet", place / f"{name}.html"]
        folder.write_table(written[0], study_page.table(results))
        pages = {each.study.name: each.file("html") for each in campaigns}
        folder.write_whole(
            written[1], study_page.overview(results, campaigns[0].scale, pages, place)
        )
    if commit and (not failed or not campaigns[0].quick):
        written += documents.write(name, results, campaigns[0].scale, commit, made)
    rows = study_page.table(results).to_dicts() if as_json else None
    unexplained = [one for _, checked in results for one in checked if one.unexplained]
    return finish(screen, failed, written, rows) or int(bool(unexplained))
