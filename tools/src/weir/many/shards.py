# SPDX-License-Identifier: BSD-3-Clause
"""A sweep in parts, each run on its own: which cells a part has, and whether parts belong together.

The folder of a sweep, or of a part, says in sweep.json whose cells it has.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from weir.analysis import folder
from weir.base import programs
from weir.base.errors import UserError
from weir.many import cells, travel
from weir.many.grid import Sweep
from weir.runner.options import Options

FILE = "sweep.json"
SAME = {  # what the parts of one sweep have in common, in words
    "grid": "grids",
    "seeds": "seeds",
    "duration": "durations",
    "config": "configs",
    "version": "versions of weir-sim",
}

Ended = dict[str, tuple[Path, cells.Fate, str]]  # by cell: its folder, status, message


@dataclass(frozen=True)
class Shard:
    """Part `index`, from 1, of `count`: every count-th cell."""

    index: int
    count: int

    def of(self, planned: Sequence[tuple[Options, dict[str, str]]]) -> Any:
        return planned[self.index - 1 :: self.count]

    def __str__(self) -> str:
        return f"{self.index}/{self.count}"


WHOLE = Shard(1, 1)


def read(text: str | None) -> Shard:
    """Reads a part as --shard says it: 2/3."""
    if text is None:
        return WHOLE
    found = re.fullmatch(r"([0-9]{1,5})/([0-9]{1,5})", text)
    if not found or not 1 <= int(found[1]) <= int(found[2]):
        raise UserError(f"--shard: '{text}' is no part such as 2/3")
    return Shard(int(found[1]), int(found[2]))


def identity(sweep: Sweep, resolved: str) -> dict[str, Any]:
    """Returns what the parts of a sweep have in common."""
    config = hashlib.sha256(json.dumps(cells.without_names(resolved)).encode()).hexdigest()
    return {
        "grid": {key: list(values) for key, values in sweep.grid.items()},
        "seeds": list(sweep.seeds),
        "duration": sweep.duration,
        "config": config[:16],
        "version": travel.program_version(programs.find_program("sim")),
    }


def write(out: Path, sweep: Sweep, shard: Shard, known: dict[str, Any]) -> None:
    """Says in a folder whose cells it has."""
    said = {"sweep": sweep.path.name, "file": sweep.config.name, "shard": str(shard), **known}
    content = json.dumps(said, indent=1) + "\n"
    if not (out / FILE).is_file() or (out / FILE).read_text() != content:
        folder.write_whole(out / FILE, content)


def together(places: Sequence[Path]) -> tuple[Sweep, dict[str, Any], Ended]:
    """Returns the sweep of which these are all parts, and what became of each cell."""
    said = {place: _said(place) for place in places}
    first = places[0]
    for place in places[1:]:
        for key, words in SAME.items():
            if said[place].get(key) != said[first].get(key):
                raise UserError(
                    f"{first} and {place} have different {words}: no parts of one sweep"
                )
    _complete([(place, read(str(said[place].get("shard")))) for place in places])
    sweep = _sweep(first, said[first])
    ended: Ended = {}
    for place in places:
        ended |= _ended(place, read(str(said[place]["shard"])).of(sweep.cells()))
    return sweep, {key: said[first][key] for key in SAME}, ended


def _said(place: Path) -> dict[str, Any]:
    if not (place / FILE).is_file():
        raise UserError(f"{place}: not the folder of a sweep or of a part of one: it has no {FILE}")
    return folder.read_json(place / FILE)


def _complete(shards: Sequence[tuple[Path, Shard]]) -> None:
    """Refuses parts of which one is missing, or there twice."""
    have: dict[int, Path] = {}
    count = shards[0][1].count
    for place, shard in shards:
        if shard.count != count:
            raise UserError(f"{place} is part {shard}, another one is of {count}")
        if shard.index in have:
            raise UserError(f"part {shard} is there twice: {have[shard.index]}, {place}")
        have[shard.index] = place
    missing = [f"{index}/{count}" for index in range(1, count + 1) if index not in have]
    if missing:
        raise UserError(f"parts of the sweep are missing: {', '.join(missing)}", 1)


def _sweep(place: Path, said: dict[str, Any]) -> Sweep:
    grid = {key: tuple(values) for key, values in said["grid"].items()}
    return Sweep(
        place / said["sweep"], Path(said["file"]), said["duration"], tuple(said["seeds"]), grid, {}
    )


def _ended(place: Path, planned: Sequence[tuple[Options, dict[str, str]]]) -> Ended:
    """Returns what became of the cells of a part."""
    try:
        made = pl.read_parquet(place / "table.parquet")
    except (OSError, pl.exceptions.PolarsError):
        raise UserError(f"{place}: this part has not ended: it has no table", 1) from None
    if made.height != len(planned):
        raise UserError(
            f"{place}: this part has not ended: {made.height} of {len(planned)} cells have", 1
        )
    found: Ended = {}
    rows = made.select("status", "message").rows()
    for (cell, _), (status, message) in zip(planned, rows, strict=True):
        if status != "failed" and not (place / cell.name / "summary.json").is_file():
            raise UserError(f"{place}: the run {cell.name} is in its table and not there", 1)
        found[cell.name] = (place / cell.name, status, message)
    return found
