# SPDX-License-Identifier: BSD-3-Clause
"""weir list and schema: what there is to write into a config."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterable
from typing import Annotated, Literal

import typer
from typer import Argument, Option

from weir.analysis import model
from weir.base import schema, tables
from weir.base.errors import UserError
from weir.cli.arguments import Json
from weir.cli.usage import commands
from weir.runner import session

app = commands()
PAGER = "less -FRX"  # stays where it was, and leaves what was read on the screen


def names() -> Iterable[str]:
    """Returns the kinds and names that `weir list` takes."""
    try:
        kinds = {kind: entries for kind, entries in tables.read().items() if kind != "unit"}
    except (UserError, OSError, ValueError):
        return []  # nothing was built
    return [*kinds, *(name for part in kinds.values() for name in part)]


@app.add(
    "list", "list", "list cc", "list codel", "list mine.so", "list mine.py:MyControl", "list flows"
)
def list_(
    name: Annotated[
        str | None,
        Argument(
            autocompletion=names,
            metavar="[KIND|NAME]",
            help="aqm, stage, path, cc, source, stack, base_rtt, flows, run, live, stream, number,"
            " or one of what they list; or a control of yours: mine.so, mine.py:MyControl.",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Lists controls, disciplines, stages, keys and telemetry.

    NAME alone has a page.
    """
    done = tables.ask(*([name] if name else []), *(["--json"] if as_json else []))
    if done.returncode != 0:
        print(session.from_weir(done.stderr), end="", file=sys.stderr)
        raise typer.Exit(done.returncode)
    show(done.stdout)


def show(text: str) -> None:
    """Prints a text, through PAGER if it is longer than the terminal it goes to."""
    whole = len(text.splitlines()) < shutil.get_terminal_size().lines
    argv = shlex.split(os.environ.get("PAGER") or PAGER)
    if whole or not sys.stdout.isatty() or not sys.stdin.isatty() or not shutil.which(argv[0]):
        print(text, end="")
        return
    subprocess.run(argv, input=text, text=True, check=False)


@app.add(
    "schema", "schema > schema.json", "schema --plugin mine.so", "schema --plugin mine.py:MyControl"
)
def schema_(
    what: Annotated[
        Literal["config", "summary"], Argument(help="A config, or a run's summary.json.")
    ] = "config",
    plugin: Annotated[
        str | None,
        Option(
            metavar="FILE|FILE:CLASS", help="A congestion control of yours: its parameters too."
        ),
    ] = None,
) -> None:
    """Prints the JSON Schema of a config, or of summary.json.

    It is for editors and other programs.
    """
    of = model.schema() if what == "summary" else schema.of_config(plugin)
    print(schema.text(of), end="")
