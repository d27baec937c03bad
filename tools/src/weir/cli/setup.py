# SPDX-License-Identifier: BSD-3-Clause
"""Adds what an installed Weir is without."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Annotated

from typer import Argument

from weir.base.errors import UserError
from weir.bootstrap import ROOT
from weir.cli.usage import commands
from weir.live import programs

app = commands(__doc__)


@app.add("live", "setup live")
def live_() -> None:
    """Installs DPDK (as root) and builds the programs of live runs with it, in a minute."""
    for path in programs.setup():
        print(path)


@app.add("configs", "setup configs", "setup configs mine")
def configs_(
    folder: Annotated[Path, Argument(metavar="FOLDER", help="A new folder.")] = Path("configs"),
) -> None:
    """Copies the configs that Weir comes with, to be run and changed."""
    if folder.exists():
        raise UserError(f"setup configs: {folder} exists: name a new folder")
    shutil.copytree(ROOT / "configs", folder, ignore=shutil.ignore_patterns("bulk", "__pycache__"))
    print(f"{folder} is written; {folder}/README.md says how to choose one")
