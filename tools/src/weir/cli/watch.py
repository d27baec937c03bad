# SPDX-License-Identifier: BSD-3-Clause
"""weir top and ctl, for the shell's completion and the documents.

The programs leave a tenth of their CPUs to these two, so weir.__main__ starts them with argparse
alone. This declares what their parsers have.
"""

from __future__ import annotations

import argparse
import inspect
from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Annotated

import typer
from typer import Argument, Option

from weir.base.errors import UserError
from weir.cli.usage import commands
from weir.live import client, ctl, top

app = commands()


def orders() -> Iterable[str]:
    """Returns the orders of `weir ctl`, and the parameters of the switch that runs."""
    try:
        with client.the_one(None, ctl.SWITCH) as program:
            return [*ctl.WORDS, *(f"{key}=" for key in ctl.parameters(program))]
    except (UserError, OSError, client.Ended):
        return ctl.WORDS  # none runs, or several do


def parameter(action: argparse.Action) -> inspect.Parameter:
    """Returns an option or argument of a parser as typer declares one."""
    flag = action.nargs == 0
    metavar = None if flag else str(action.metavar or action.dest.upper())
    if action.option_strings:
        declared = Option(*action.option_strings, help=action.help, metavar=metavar)
    else:
        declared = Argument(autocompletion=orders, help=action.help, metavar=metavar)
    kind: object = bool if flag else list[str] | None
    return inspect.Parameter(
        action.dest,
        inspect.Parameter.KEYWORD_ONLY,
        default=False if flag else None,
        annotation=Annotated[kind, declared],
    )


def declared(module: ModuleType) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Gives a function the parameters of a module's parser."""

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        actions = [one for one in module.parser()._actions if one.dest != "help"]
        found = {one.name: one for one in map(parameter, actions)}
        function.__signature__ = inspect.Signature(list(found.values()))  # type: ignore[attr-defined]
        function.__annotations__ = {name: one.annotation for name, one in found.items()}
        return function

    return decorate


@app.add("top", *top.EXAMPLES)
@declared(top)
def top_(**_: object) -> None:
    """Watches live programs: ports, paths, groups of flows, lcores."""
    raise typer.Exit(top.main())


@app.add("ctl", *ctl.EXAMPLES)
@declared(ctl)
def ctl_(**_: object) -> None:
    """Changes a running switch: ctl forward.link.rate=5Gbit.

    Alone, it shows what may be changed.
    """
    raise typer.Exit(ctl.main())
