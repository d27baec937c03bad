# SPDX-License-Identifier: BSD-3-Clause
"""Arguments and options that several commands take."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
import typer.core

from weir.cli import complete

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
