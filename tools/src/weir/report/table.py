# SPDX-License-Identifier: BSD-3-Clause
"""The columns of a figure as a table: CSV or Parquet."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from weir.report.figure import Figure, Panel, series

SCHEMA = pl.Schema(
    {
        "panel": pl.Int64,  # from 1
        "x_axis": pl.String,
        "y_axis": pl.String,
        "mark": pl.Int64,  # of the panel, from 1
        "line": pl.String,
        "place": pl.String,  # the name that an axis has there
        "x": pl.Float64,
        "y": pl.Float64,
    }
)


def frame(figure: Figure) -> pl.DataFrame:
    """Returns a row per point.

    A stacked area is its height; an area around a line has two edges, low and high; a stroke or a
    bar that lies has its ends, from and to.
    """
    parts = [part for number, panel in enumerate(figure.panels, 1) for part in rows(panel, number)]
    return pl.concat([pl.DataFrame(schema=SCHEMA), *parts])


def rows(panel: Panel, number: int) -> list[pl.DataFrame]:
    """Returns the points of each series of a panel."""
    parts = []
    y_axis = " ".join(filter(None, (panel.title, panel.y.label)))
    for place, mark in enumerate(panel.marks, start=1):
        for columns in series(mark):
            line = ", ".join(filter(None, (mark.style.label, columns.name)))
            part = pl.DataFrame({"x": columns.x, "y": columns.y}).with_columns(
                panel=number,
                x_axis=pl.lit(panel.x.label),
                y_axis=pl.lit(y_axis),
                mark=place,
                line=pl.lit(line),
                place=named(panel),
            )
            parts.append(
                part.fill_nan(None).select(pl.col(name).cast(kind) for name, kind in SCHEMA.items())
            )
    return parts


def named(panel: Panel) -> pl.Expr:
    """Returns the names of places on the y axis, or else on the x axis."""
    name, axis = ("y", panel.y) if panel.y.ticks else ("x", panel.x)
    if not axis.ticks:
        return pl.lit(None, pl.String)
    return pl.col(name).replace_strict(dict(axis.ticks), default=None, return_dtype=pl.String)


def write(figure: Figure, out: Path) -> None:
    """Writes the table in the format that the file's name asks for."""
    made = frame(figure)
    if out.suffix == ".parquet":
        made.write_parquet(out)
    else:
        made.write_csv(out)
