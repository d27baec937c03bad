# SPDX-License-Identifier: BSD-3-Clause
"""weir new and weir check: congestion controls of the user's."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from weir.base.typed import program
from weir.cli.usage import examples

if TYPE_CHECKING:
    from weir.attack.registry import Tried
    from weir.plugin.check import Number, Result

new_app = typer.Typer(
    help="Begins something of your own: a folder that works.", no_args_is_help=True
)
check_app = typer.Typer(help="Checks something of your own.", no_args_is_help=True)
Folder = Annotated[
    Path | None, typer.Option(help="Where it is written. [a folder of that name here]")
]


@new_app.command("cc", epilog=examples("new cc mine", "new cc mine --folder ~/controls/mine"))
def new_cc(
    name: Annotated[
        str, typer.Argument(help="Of the congestion control: small letters, digits, _.")
    ],
    folder: Folder = None,
) -> None:
    """A congestion control in C: NewReno, to be changed; with a Makefile, a config and a test."""
    from weir.plugin import new

    where = folder or Path(name)
    for path in new.create("cc", name, where):
        print(path)
    print(f"\nmake -C {where} && {program()} run {where}/{name}.yaml")


@new_app.command("study", epilog=examples("new study mine", "new study mine --folder ~/ci/mine"))
def new_study(
    name: Annotated[str, typer.Argument(help="Of the study: small letters, digits, _.")],
    folder: Folder = None,
) -> None:
    """A study: a config, runs, claims and a measure, for a paper or as the CI of a control."""
    from weir.plugin import new

    where = folder or Path(name)
    for path in new.create("study", name, where):
        print(path)
    place = where if where.is_absolute() else f"./{where}"
    print(f"\n{program()} reproduce {place}")


@check_app.command("cc", epilog=examples("check cc mine/mine.so", "check cc cubic --json"))
def check_cc(
    control: Annotated[str, typer.Argument(help="A plug-in's file, or the name of a control.")],
    as_json: Annotated[bool, typer.Option("--json", help="All results, as JSON.")] = False,
) -> None:
    """What a congestion control must do anywhere, in eight scenarios, and under known attacks."""
    from weir.plugin import check

    results = check.conformance(control)
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
    """Both as tables."""
    from weir.base import terminal, units
    from weir.base.page import Table

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
    """The harm of each attack, and in brackets that of its network without the attack."""
    from weir.attack import registry
    from weir.base import terminal
    from weir.base.page import Table

    if not found:
        return
    out = terminal.console()
    controls = dict.fromkeys(one.control for one in found)
    out.print()
    columns = ("attack (benign)", "harm to", *controls)
    terminal.print_table(out, Table(columns, registry.rows(found), left=2))
