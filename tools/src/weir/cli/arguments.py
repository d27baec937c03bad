# SPDX-License-Identifier: BSD-3-Clause
"""Arguments and options that several commands take, each declared here once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from weir.cli import complete

RunArgument = Annotated[
    Path, Argument(metavar="RUN", help="A run folder.", autocompletion=complete.runs)
]
RunArguments = Annotated[
    list[Path],
    Argument(
        metavar="RUN...", help="Runs, a sweep, or folders with runs.", autocompletion=complete.runs
    ),
]
ConfigArgument = Annotated[
    Path, Argument(metavar="CONFIG", help="An experiment in YAML.", autocompletion=complete.configs)
]
Json = Annotated[bool, Option("--json", help="What is shown, as JSON.")]
Overrides = Annotated[
    list[str] | None,
    Option(
        "-o",
        metavar="KEY=VALUE",
        help="Replaces a value: -o flows.0.count=10.",
        autocompletion=complete.keys,
    ),
]
RunFolder = Annotated[Path | None, Option(help="The run folder. [runs/NAME-CHANGES-TIME]")]
ManyFolder = Annotated[
    Path | None, Option(help="The folder of its runs; goes on there. [runs/NAME]")
]
FigureFile = Annotated[
    Path | None,
    Option(metavar="FILE", help="A figure: .pdf, .png or .svg; .csv: its data. [NAME.pdf]"),
]
Seed = Annotated[int | None, Option(min=0, help="Replaces the config's.")]
DrawSeed = Annotated[int, Option(min=0, max=2**20, help="Of what is drawn.")]
Duration = Annotated[str | None, Option(help="How long it lasts: 10s. [the config's]")]
Live = Annotated[bool, Option("--live", help="On real ports with DPDK, not in virtual time.")]
Force = Annotated[bool, Option("--force", help="Replace what is there.")]
NoReport = Annotated[bool, Option("--no-report", help="Without a page.")]
ShowAll = Annotated[bool, Option("--all", help="Show all, not only the first or changed.")]
Cluster = Annotated[
    str | None,
    Option(
        metavar="WHERE",
        help="Where it runs: tcp://host:port, a Dask scheduler (was --scheduler); ssh:host,host;"
        " slurm; pbs. [this machine]",
    ),
]
Workers = Annotated[
    int | None, Option(min=1, help="Runs at a time here, [one per CPU]; jobs of slurm, pbs.")
]
Quick = Annotated[bool, Option("--quick/--full", help="Few seeds and minutes, or the whole of it.")]
Plan = Annotated[bool, Option("--plan", help="Only show the cells and what they cost.")]
Guests = Annotated[
    bool, Option("--guests", help="Only what is measured with Linux guests too, and ours there.")
]
Beyond = Annotated[
    bool, Option("--beyond", help="Instead what nobody has published: the study STUDY-beyond.")
]
Part = Annotated[
    str | None, Option("--shard", metavar="I/N", help="Only part I of N, into runs/NAME-IofN.")
]
Merge = Annotated[bool, Option("--merge", help="Put all parts together in --out.")]
Cell = Annotated[
    str | None, Option("--print-config", metavar="CELL", help="Print a cell as a config, run none.")
]
WriteDocs = Annotated[bool, Option("--write-docs", help="Put the results into the documents.")]
Numbers = Annotated[
    list[str] | None,
    Option("--y", metavar="NUMBER", help="Which numbers; repeated. [goodput and delay]"),
]
Where = Annotated[
    list[str] | None,
    Option(metavar="KEY=VALUE", help="Of a sweep: only these cells, cc=copa; repeated."),
]
