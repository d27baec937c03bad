# SPDX-License-Identifier: BSD-3-Clause
"""Arguments and options that several commands take, each declared here once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from weir.cli import complete

RunArgument = Annotated[
    Path, typer.Argument(metavar="RUN", help="A run folder.", autocompletion=complete.runs)
]
RunArguments = Annotated[
    list[Path],
    typer.Argument(
        metavar="RUN...", help="Runs, a sweep, or folders with runs.", autocompletion=complete.runs
    ),
]
ConfigArgument = Annotated[
    Path,
    typer.Argument(
        metavar="CONFIG", help="An experiment in YAML.", autocompletion=complete.configs
    ),
]
Json = Annotated[bool, typer.Option("--json", help="What is shown, as JSON.")]
Overrides = Annotated[
    list[str] | None,
    typer.Option(
        "-o",
        metavar="KEY=VALUE",
        help="Replaces a value: -o flows.0.count=10.",
        autocompletion=complete.keys,
    ),
]
RunFolder = Annotated[Path | None, typer.Option(help="The run folder. [runs/NAME-CHANGES-TIME]")]
ManyFolder = Annotated[
    Path | None, typer.Option(help="The folder of its runs; goes on there. [runs/NAME]")
]
FigureFile = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="A figure: .pdf, .png or .svg; .csv: its data. [NAME.pdf]"),
]
Seed = Annotated[int | None, typer.Option(min=0, help="Replaces the config's.")]
DrawSeed = Annotated[int, typer.Option(min=0, max=2**20, help="Of what is drawn.")]
Duration = Annotated[str | None, typer.Option(help="How long it lasts: 10s. [the config's]")]
Live = Annotated[bool, typer.Option("--live", help="On real ports with DPDK, not in virtual time.")]
Force = Annotated[bool, typer.Option("--force", help="Replace what is there.")]
NoReport = Annotated[bool, typer.Option("--no-report", help="Without a page.")]
ShowAll = Annotated[bool, typer.Option("--all", help="Show all, not only the first or changed.")]
Cluster = Annotated[
    str | None,
    typer.Option(
        metavar="WHERE",
        help="Where it runs: tcp://host:port, a Dask scheduler (was --scheduler); ssh:host,host;"
        " slurm; pbs. [this machine]",
    ),
]
Workers = Annotated[
    int | None, typer.Option(min=1, help="Runs at a time here, [one per CPU]; jobs of slurm, pbs.")
]
Quick = Annotated[
    bool, typer.Option("--quick/--full", help="Few seeds and minutes, or the whole of it.")
]
Plan = Annotated[bool, typer.Option("--plan", help="Only show the cells and what they cost.")]
Cell = Annotated[
    str | None,
    typer.Option("--print-config", metavar="CELL", help="Print a cell as a config, run none."),
]
WriteDocs = Annotated[
    bool, typer.Option("--write-docs", help="Put the results into the documents.")
]
Numbers = Annotated[
    list[str] | None,
    typer.Option("--y", metavar="NUMBER", help="Which numbers; repeated. [goodput and delay]"),
]
Where = Annotated[
    list[str] | None,
    typer.Option(metavar="KEY=VALUE", help="Of a sweep: only these cells, cc=copa; repeated."),
]
