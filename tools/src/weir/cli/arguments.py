# SPDX-License-Identifier: BSD-3-Clause
"""Arguments and options that several commands take."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
import typer.core

from weir.cli import complete, usage

RunArgument = Annotated[
    Path, typer.Argument(metavar="RUN", help="A run folder.", autocompletion=complete.runs)
]
ConfigArgument = Annotated[
    Path,
    typer.Argument(
        metavar="CONFIG", help="An experiment in YAML.", autocompletion=complete.configs
    ),
]
SummaryJson = Annotated[bool, typer.Option("--json", help="The summary as JSON.")]
Overrides = Annotated[
    list[str] | None,
    typer.Option(
        "-o",
        metavar="KEY=VALUE",
        help="Replaces a value: -o flows.0.count=10.",
        autocompletion=complete.keys,
    ),
]
RunFolder = Annotated[Path | None, typer.Option(help="The run folder. [runs/CONFIG-CHANGES-TIME]")]
Seed = Annotated[int | None, typer.Option(min=0, help="Replaces the config's.")]
Duration = Annotated[str | None, typer.Option(help="Replaces the config's: 10s.")]
Live = Annotated[bool, typer.Option("--live", help="On real ports with DPDK, not in virtual time.")]
Force = Annotated[bool, typer.Option("--force", help="Replace the run in the folder.")]
Cluster = Annotated[str | None, typer.Option(metavar="WHERE", help=usage.CLUSTER)]
