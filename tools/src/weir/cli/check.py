# SPDX-License-Identifier: BSD-3-Clause
"""Checks something of your own."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from typer import Argument

from weir.attack import registry
from weir.attack.registry import Tried
from weir.base import terminal, units
from weir.base.page import Table
from weir.cli.arguments import Json
from weir.cli.usage import commands
from weir.plugin import check
from weir.plugin.check import Number, Result

app = commands(__doc__)


@app.add(
    "cc",
    "check cc mine/mine.so",
    "check cc cubic --json",
    'check cc "{plugin: mine/mine.so, beta: 0.8}"',
)
def check_cc(
    control: Annotated[
        str,
        Argument(help="A plug-in's file, the name of a control, or {plugin: FILE.so, KEY: VALUE}."),
    ],
    as_json: Json = False,
) -> None:
    """Checks what a congestion control must do anywhere, in eight scenarios, and under attacks."""
    results = check.conformance(control, Path("runs") / f"check-{check.name_of(control)}")
    failed = any(result.passed is False for result in results)
    numbers = [] if failed else check.scenarios(control)
    attacked = [] if failed else check.attacks(control)
    if as_json:
        found = {"checks": [asdict(row) for row in results]}
        found["scenarios"] = [asdict(row) for row in numbers]
        found["attacks"] = [asdict(row) for row in attacked]
        print(json.dumps(found, indent=1))
    else:
        show(results, numbers)
        show_attacks(attacked)
    if failed:
        raise typer.Exit(1)


def show(results: list[Result], numbers: list[Number]) -> None:
    """Prints results and numbers as tables."""
    out = terminal.console()
    words = {True: "ok", False: "FAILED", None: units.NONE}
    rows = [[words[result.passed], result.name, result.found] for result in results]
    terminal.print_table(out, Table(("", "check", "found"), rows, left=3))
    if not numbers:
        return
    columns = ("scenario", "", *numbers[0].values)
    cells = [[number.scenario, number.what, *number.values.values()] for number in numbers]
    out.print()
    terminal.print_table(out, Table(columns, cells, left=2))


def show_attacks(found: list[Tried]) -> None:
    """Prints the harm of each attack, and in brackets that of its network without the attack."""
    if not found:
        return
    out = terminal.console()
    controls = dict.fromkeys(one.control for one in found)
    out.print()
    columns = ("attack (benign)", "harm to", *controls)
    terminal.print_table(out, Table(columns, registry.rows(found), left=2))
