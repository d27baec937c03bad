# SPDX-License-Identifier: BSD-3-Clause
"""A sweep's cells as the frames that report/many_figures.py draws."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl

from weir.analysis import folder, one_way
from weir.base.errors import UserError
from weir.many.sweep_table import Axis, SweepTable
from weir.report.many_figures import Number


def kinds(table: SweepTable, name: str | None) -> Axis:
    """Returns the one parameter that varies [the congestion control]. UserError: others do."""
    found = table.axes[0] if name is None and len(table.axes) == 1 else table.axis(name or "cc")
    for one in table.axes:
        if one is not found:
            raise UserError(
                f"{one.key} varies too ({', '.join(one.names[:6])}): choose one value with --where"
                f" {one.key}={one.names[0]}"
            )
    return found


def names(table: SweepTable, by: Axis) -> pl.Series:
    """Returns the name of each cell."""
    called = dict(zip(by.values, by.names, strict=True))
    return pl.Series("name", [called[value] for value in table.frame[by.key]], pl.String)


def points(table: SweepTable, by: Axis) -> pl.DataFrame:
    """Returns name, delay_ns and goodput_bps of cells that are samples, from their folders."""
    sample = table.replicas
    delays = [one_way_ns(run_of(table, row)) if sample[row] else None for row in range(len(sample))]
    goodput = pl.Series("goodput_bps", table.metric("goodput").values)
    delay = pl.Series("delay_ns", delays, pl.Float64)
    return pl.DataFrame([names(table, by), delay, goodput]).filter(sample)


def samples(table: SweepTable, by: Axis, metric: str) -> tuple[pl.DataFrame, Number]:
    """Returns name and value of each cell that is a sample, and what number the value is."""
    found = table.metric(metric)
    values = pl.Series("value", np.asarray(found.values, np.float64))
    frame = pl.DataFrame([names(table, by), values]).filter(table.replicas)
    return frame, Number(found.label, found.unit)


def run_of(table: SweepTable, row: int) -> Path:
    """Returns a cell's folder, which may have moved with the table."""
    given = Path(str(table.frame["folder"][row]))
    home = table.path if table.path.is_dir() else table.path.parent
    return next((path for path in (given, home / given.name) if path.exists()), home / given.name)


def one_way_ns(path: Path) -> float | None:
    """Returns the one-way delay of a cell; None if it is not known."""
    if not folder.is_run(path):
        return None
    run = folder.load(path)
    return one_way.p95_ns(run.config, run.summary)
