# SPDX-License-Identifier: BSD-3-Clause
"""A sweep with `keep: table`: of its cells only the rows of its table are kept.

Cells are lines for a few `weir-sim CONFIG --trials`: no process and no folder for each. Rows of a
table that is there are used again if the config and weir-sim are the same. Their `folder` is only
the name of a cell.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import polars as pl

from weir.base import foreign
from weir.base.errors import UserError
from weir.many import shards, trials
from weir.many.cells import GUESTS, Outcome
from weir.many.grid import Sweep
from weir.many.shards import Part
from weir.runner import config_files
from weir.runner.options import Options

Row = dict[str, object]  # of a table, by column


def rows(place: Path) -> dict[str, Row]:
    """Returns the rows of a folder's table by the names of their cells; failed ones are no rows."""
    try:
        made = pl.read_parquet(place / "table.parquet")
    except (OSError, pl.exceptions.PolarsError):
        return {}
    found = made.filter(pl.col("status") != "failed").to_dicts()
    return {str(row["folder"]): row for row in found}


def before(out: Path, sweep: Sweep, part: Part, any_version: bool) -> dict[str, Row]:
    """Returns the rows of this config by this weir-sim that are there, by the cells' names.

    There are none if the grid names files: what was in them then is not known.
    """
    written = [text for key, values in sweep.grid.items() for text in (key, *values)]
    outside = (*config_files.keys(), *GUESTS)
    if any(key in text for key in outside for text in written):
        return {}
    try:
        there = foreign.read_json(out / shards.FILE, Part)
    except UserError:
        return {}
    same = {key for key in shards.SAME if key not in ("grid", "seeds")}
    same -= {"version"} if any_version else set()
    return rows(out) if all(getattr(there, key) == getattr(part, key) for key in same) else {}


def run(cells: Sequence[Options], workers: int | None) -> Iterator[Outcome]:
    """Runs cells of one config, and yields what became of each, in their order."""
    if not cells:
        return
    lines = (json.dumps({"o": overrides(cell)}) for cell in cells)
    config = str(cells[0].config.resolve())
    with trials.answering(Path.cwd(), workers, config) as ask:
        for cell, found in zip(cells, ask(lines), strict=True):
            why = str(found.get("error", ""))
            yield Outcome(cell, cell.out, "failed" if why else "done", why, found)


def overrides(cell: Options) -> list[str]:
    """Returns what a cell changes in its config."""
    own = {"seed": cell.seed, "duration": cell.duration}
    return [*cell.overrides, *(f"{key}={v}" for key, v in own.items() if v is not None)]
