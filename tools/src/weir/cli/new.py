# SPDX-License-Identifier: BSD-3-Clause
"""Begins something of your own: a folder that works."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from weir.base.typed import program
from weir.cli.usage import commands
from weir.plugin import new

app = commands(__doc__)
Folder = Annotated[Path | None, Option(help="Where it is written. [a folder of that name here]")]


@app.add("cc", "new cc mine", "new cc mine --folder ~/controls/mine")
def new_cc(
    name: Annotated[str, Argument(help="Of the congestion control: small letters, digits, _.")],
    folder: Folder = None,
) -> None:
    """Writes a congestion control in C: NewReno, to be changed; with Makefile, config and test."""
    where = folder or Path(name)
    for path in new.create("cc", name, where):
        print(path)
    print(f"\nmake -C {where} && {program()} run {where}/{name}.yaml")


@app.add("study", "new study mine", "new study mine --folder ~/ci/mine")
def new_study(
    name: Annotated[str, Argument(help="Of the study: small letters, digits, _.")],
    folder: Folder = None,
) -> None:
    """Writes a study: config, runs, claims and a measure, for a paper or as a control's CI."""
    where = folder or Path(name)
    for path in new.create("study", name, where):
        print(path)
    place = where if where.is_absolute() else f"./{where}"
    print(f"\n{program()} reproduce {place}")
