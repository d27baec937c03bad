# SPDX-License-Identifier: BSD-3-Clause
"""weir diff, and weir plot of a sweep: wiring only."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from weir.cli import complete
from weir.cli.usage import examples

Sweep = Annotated[
    Path,
    typer.Argument(
        metavar="SWEEP", help="A sweep's folder or table.", autocompletion=complete.runs
    ),
]


def register(app: typer.Typer) -> None:
    """Adds the commands."""
    app.command(
        "diff",
        epilog=examples(
            "diff runs/before runs/after",
            "diff runs/before runs/after --y goodput --y jfi --where cc=copa --all",
        ),
    )(diff_)


def diff_(
    a: Sweep,
    b: Sweep,
    y: Annotated[
        list[str] | None,
        typer.Option(metavar="NUMBER", help="What to compare; repeated. [goodput, delay]"),
    ] = None,
    where: Annotated[
        list[str] | None, typer.Option(metavar="KEY=VALUE", help="Only these cells: cc=copa.")
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Show what did not change, too.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Everything as JSON.")] = False,
) -> None:
    """Says which cells of two sweeps differ beyond their spread over seeds; then it exits with 1.

    Cells with the same digests are identical. The others are compared by Welch's t test over seeds,
    with p raised for their number by Holm's method (5 %).
    """
    from weir import summary
    from weir.study import sweep_diff, sweep_table

    first, second = (sweep_table.load(path).where(where or ()) for path in (a, b))
    found = sweep_diff.compare(first, second, y or sweep_diff.DEFAULT)
    if as_json:
        print(json.dumps(sweep_diff.as_json(found), indent=1))
    else:
        sweep_diff.show(found, first.axes, summary.console(), every)
    raise typer.Exit(1 if any(row.kind == "changed" for row in found.rows) else 0)
