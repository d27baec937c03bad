# SPDX-License-Identifier: BSD-3-Clause
"""A reproduction in parts: `weir reproduce NAME --shard 2/3` runs every third cell, from the second
on, of all its studies. `--merge` puts the runs of all parts in one folder and judges them there, as
if they had been run there. weir-sim may be of a later commit by then: what counts is that a run is
of what its cell asks for, and results name the commit of the parts.

A part that was killed is run again: what it has is kept.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import msgspec
from rich.console import Console

from weir.base import foreign, programs
from weir.base.errors import UserError
from weir.many import cells, shards, travel
from weir.many.shards import Shard
from weir.runner.options import Options
from weir.study import documents, find, reproduce
from weir.study.reproduce import Campaign

FILE = "reproduce.json"
SAME = {  # in words
    "name": "studies",
    "scale": "scales",
    "cells": "cells",
    "version": "versions of weir-sim",
}


class Part(msgspec.Struct):
    """The content of reproduce.json. The fields named in SAME are those of all parts."""

    name: str  # of a study, a suite or a folder, or all
    scale: str
    shard: str
    cells: str  # a digest of all
    version: str  # of weir-sim


def part_of(name: str, campaigns: Sequence[Campaign], shard: Shard) -> Part:
    """Returns what reproduce.json says of a part."""
    asked = [
        f"{campaign.study.name} {cell.name} {cells.asked(cell)}"
        for campaign, cell in reproduce.planned(campaigns)
    ]
    return Part(
        name,
        campaigns[0].scale,
        str(shard),
        hashlib.sha256("\n".join(asked).encode()).hexdigest()[:16],
        travel.program_version(programs.find_program("sim")),
    )


def run(
    name: str,
    campaigns: Sequence[Campaign],
    shard: Shard,
    place: Path,
    screen: Console,
    *,
    cluster: str | None = None,
    workers: int | None = None,
) -> int:
    """Runs a part into its folder; returns the exit status."""
    every = reproduce.planned(campaigns)
    own = shard.of(every)
    if not own:
        raise UserError(f"--shard {shard}: there are only {len(every)} cells")
    part = part_of(name, campaigns, shard)
    place.mkdir(parents=True, exist_ok=True)
    shards.write(place / FILE, part)
    failed: dict[str, str] = {}
    for campaign in campaigns:
        chosen = [cell for of, cell in own if of is campaign]
        if chosen:
            screen.print(campaign.study.name, markup=False)
            failed |= reproduce.simulate(campaign, chosen, screen, cluster, workers)[1]
    return reproduce.finish(screen, failed, [place], None)


def merge(
    places: Sequence[Path], out: Path, screen: Console, *, as_json: bool, write_docs: bool
) -> int:
    """Puts all parts together in `out`, judges what they ran and writes pages; exit status."""
    parts = [(place, _read(place)) for place in places]
    shards.belong(parts, SAME, "reproduction")
    whole = parts[0][1]
    campaigns, *of_parts = (
        reproduce.campaigns(find.chosen(whole.name), whole.scale == "quick", place)
        for place in (out, *places)
    )
    for part in of_parts:
        for to, campaign in zip(campaigns, part, strict=True):
            _copy(campaign.folder / "cells", to.folder / "cells", to.cells)
    return reproduce.run_all(
        *(whole.name, campaigns, out, screen, reproduce.there),
        as_json=as_json,
        commit=documents.commit_of(whole.version) if write_docs else "",
    )


def _read(place: Path) -> Part:
    if not (place / FILE).is_file():
        raise UserError(f"{place}: not the folder of a part of a reproduction: it has no {FILE}")
    return foreign.read_json(place / FILE, Part)


def _copy(place: Path, to: Path, wanted: Sequence[Options]) -> None:
    """Copies the runs of a part that are not there yet."""
    with cells.locked(to):
        for cell in wanted:
            own, there = place / cell.name, to / cell.name
            if cells.is_run_of(own, cell) and not cells.is_run_of(there, cell):
                cells.copy(own, there)
