# SPDX-License-Identifier: BSD-3-Clause
"""Begins something of your own: a folder that works."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from weir.base.errors import UserError
from weir.base.typed import program
from weir.cli.usage import commands
from weir.plugin import kernel, new

app = commands(__doc__)
Folder = Annotated[Path | None, Option(help="Where it is written. [a folder of that name here]")]


@app.add("cc", "new cc mine", "new cc mine --linux net/ipv4/tcp_cubic.c")
def new_cc(
    name: Annotated[str, Argument(help="Of the congestion control: small letters, digits, _.")],
    folder: Folder = None,
    linux: Annotated[
        str | None,
        Option(help="A control of Linux: a file of yours, or a name, as net/ipv4/tcp_cubic.c."),
    ] = None,
    source: Annotated[
        str | None, Option(help="The Debian package that has it. [the newest linux-source-*]")
    ] = None,
) -> None:
    """Writes a congestion control in C: NewReno, to be changed; with Makefile, config and test.

    With --linux the C file is the kernel's own, unchanged; the plug-in has its license.
    """
    where = folder or Path(name)
    if linux is None and source is not None:
        raise UserError("new: --source is of a control of Linux: name one with --linux")
    given = [] if linux is None else kernel.files(linux, source)
    for path in new.create("linux" if given else "cc", name, where, given):
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


@app.add("ci", "new ci mine", "new ci mine --folder ~/repository")
def new_ci(
    name: Annotated[str, Argument(help="Of the folder with the congestion control.")],
    folder: Annotated[Path, Option(help="The repository. [this folder]")] = Path(),
) -> None:
    """Writes a workflow for GitHub that tries each change of a control with `weir ci`."""
    for path in new.create("ci", name, folder):
        print(path)
    print(f"\n{program()} ci {folder / name} --base HEAD")
