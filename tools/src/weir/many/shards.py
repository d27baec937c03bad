# SPDX-License-Identifier: BSD-3-Clause
"""Cells in parts, each run on its own: which cells a part has, and whether parts belong together.

A sweep and a reproduction (study/parts.py) have parts. The folder of a sweep, or of a part of one,
says in sweep.json whose cells it has.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar

import msgspec
import polars as pl

from weir.analysis import folder
from weir.base import foreign, programs
from weir.base.errors import UserError
from weir.many import cells, travel
from weir.many.grid import Sweep
from weir.runner.options import Options

FILE = "sweep.json"
SAME = {  # in words
    "grid": "grids",
    "seeds": "seeds",
    "duration": "durations",
    "config": "configs",
    "version": "versions of weir-sim",
    "keep": "kept results",
}

T = TypeVar("T")
Planned = Sequence[tuple[Options, dict[str, str]]]  # cells, each with its parameters
Ended = dict[str, tuple[Path, cells.Fate, str]]  # by cell: its folder, status, message


class Part(msgspec.Struct):
    """The content of sweep.json. The fields named in SAME are those of all parts of a sweep."""

    sweep: str  # name of its file
    file: str  # name of its config
    shard: str
    grid: dict[str, list[str]]
    seeds: list[int | None]
    duration: str | None
    config: str  # a digest of it
    version: str  # of weir-sim
    keep: str = "runs"


@dataclass(frozen=True)
class Shard:
    """Part `index`, from 1, of `count`: every count-th cell."""

    index: int
    count: int

    def of(self, planned: Sequence[T]) -> Sequence[T]:
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


class HasShard(Protocol):
    """A file that says of which shard a folder is, as --shard has it."""

    shard: str


def belong(parts: Sequence[tuple[Path, HasShard]], same: Mapping[str, str], whole: str) -> None:
    """Refuses what are not all parts of one whole; same: what they share, in words."""
    (first, model), *others = parts
    for place, part in others:
        for key, words in same.items():
            if getattr(part, key) != getattr(model, key):
                raise UserError(
                    f"{first} and {place} have different {words}: no parts of one {whole}"
                )
    _complete([(place, read(part.shard)) for place, part in parts], whole)


def part_of(sweep: Sweep, resolved: str, shard: Shard) -> Part:
    """Returns what sweep.json says of a part. resolved is the first cell's config."""
    config = hashlib.sha256(json.dumps(cells.without_names(resolved)).encode()).hexdigest()
    return Part(
        sweep.path.name,
        sweep.config.name,
        str(shard),
        {key: list(values) for key, values in sweep.grid.items()},
        list(sweep.seeds),
        sweep.duration,
        config[:16],
        travel.program_version(programs.find_program("sim")),
        sweep.keep,
    )


def write(path: Path, part: msgspec.Struct) -> None:
    """Says in a folder whose cells it has."""
    content = msgspec.json.format(msgspec.json.encode(part), indent=1).decode() + "\n"
    if not path.is_file() or path.read_text() != content:
        folder.write_whole(path, content)


def together(places: Sequence[Path]) -> tuple[Sweep, Part, Ended]:
    """Returns the sweep of which these are all parts, what it is as one, and its cells' ends."""
    parts = [(place, _read(place)) for place in places]
    belong(parts, SAME, "sweep")
    first, part = parts[0]
    whole = msgspec.structs.replace(part, shard=str(WHOLE))
    sweep = Sweep(
        first / whole.sweep,
        Path(whole.file),
        whole.duration,
        tuple(whole.seeds),
        {key: tuple(values) for key, values in whole.grid.items()},
        lines={},
        keep=whole.keep,
    )
    ended: Ended = {}
    for place, part in parts:
        ended |= _ended(place, read(part.shard).of(sweep.cells()), part.keep)
    return sweep, whole, ended


def _read(place: Path) -> Part:
    if not (place / FILE).is_file():
        raise UserError(f"{place}: not the folder of a sweep or of a part of one: it has no {FILE}")
    return foreign.read_json(place / FILE, Part)


def _complete(shards: Sequence[tuple[Path, Shard]], whole: str) -> None:
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
        raise UserError(f"parts of the {whole} are missing: {', '.join(missing)}", 1)


def _ended(place: Path, planned: Planned, keep: str) -> Ended:
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
        runs = keep == "runs" and status != "failed"
        if runs and not (place / cell.name / "summary.json").is_file():
            raise UserError(f"{place}: the run {cell.name} is in its table and not there", 1)
        found[cell.name] = (place / cell.name, status, message)
    return found
