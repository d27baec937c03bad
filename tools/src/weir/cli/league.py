# SPDX-License-Identifier: BSD-3-Clause
"""weir league, ci: controls side by side, and a change of one of them."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from typer import Argument, Option

from weir.base import programs, terminal
from weir.base.errors import UserError
from weir.cli.arguments import Json, ManyFolder, Quick, Workers, WriteDocs
from weir.cli.usage import commands
from weir.league import agents, ci, entry, measure, page
from weir.league.entry import Entry
from weir.league.standing import standing
from weir.study import documents

app = commands()


@app.add(
    "league",
    "league",
    "league ./mine.so",
    'league "{plugin: ./mine.so, beta: 0.8}" "{copa: {delta: 0.4}}"',
    "league --gym ./mine.py:Mine --json",
)
def league_(
    controls: Annotated[
        list[str] | None,
        Argument(
            metavar="[CC]...",
            help="Besides Weir's own: FILE.so, FILE.py:CLASS, linux:CC"
            " or {plugin: FILE.so, KEY: VALUE}.",
        ),
    ] = None,
    rerun: Annotated[
        bool, Option("--rerun", help="Run Weir's own controls too, whose rows are kept.")
    ] = False,
    gym: Annotated[
        bool, Option("--gym", help="In the benchmark of weir.gym, beside a trained agent.")
    ] = False,
    quick: Quick = True,
    out: ManyFolder = None,
    workers: Workers = None,
    write_docs: WriteDocs = False,
    as_json: Json = False,
) -> None:
    """Ranks congestion controls over the scenes of `weir evaluate`.

    It writes a page over all and one of each. Rows that are there are used again.
    """
    programs.identify()
    if not quick and (write_docs or gym):
        option, seeds = ("--gym", "ten seeds") if gym else ("--write-docs", "one seed")
        raise UserError(f"{option}: the kept rows are of {seeds}; leave --full away")
    commit = documents.commit() if write_docs else ""
    place = out or Path("runs") / ("league-gym" if gym else "league" if quick else "league-full")
    screen, file = terminal.console(stderr=True), entry.kept()
    rerun = rerun or write_docs
    rows = (
        agents.all_rows(controls or [], place, screen, rerun, workers)
        if gym
        else measure.all_rows(
            controls or [], quick=quick, out=place, screen=screen, rerun=rerun, workers=workers
        )
    )
    if write_docs:
        names = map(entry.without_folders, controls or ())
        typed = shlex.join(["league", *(["--gym"] if gym else []), *names, "--write-docs"])
        day = f"{datetime.now(UTC):%Y-%m-%d}"
        digest, kept_in = (agents.digest(), agents.KEPT) if gym else (entry.scenes_digest(), None)
        entry.write(entry.File(typed, commit, day, digest, rows), kept_in)
    if gym:
        show_agents(rows, as_json)
    else:
        kept = file.commit if file is not None and quick and not rerun else ""
        show(rows, place, kept, as_json)
    failed = {one.name: why for one in rows for why in one.failed.values()}
    for name, why in failed.items():
        screen.print(f"{name}: a run failed: {why}", style="red", markup=False, soft_wrap=True)
    raise typer.Exit(1 if failed else 0)


def show_agents(rows: Sequence[Entry], as_json: bool) -> None:
    """Prints the scores in the benchmark of weir.gym."""
    if as_json:
        print(json.dumps(agents.data(rows), indent=1))
    else:
        terminal.print_table(terminal.console(), agents.table(rows))


def show(rows: Sequence[Entry], place: Path, kept: str, as_json: bool) -> None:
    """Writes the pages and prints the table; kept: the commit of rows that were not run."""
    found = standing(rows)
    index = page.write(found, place, kept)
    if as_json:
        print(msgspec.json.format(msgspec.json.encode(page.data(found)), indent=1).decode())
    else:
        terminal.print_table(terminal.console(), page.table(found))
        terminal.console().print(str(index), soft_wrap=True)


@app.add("ci", "ci mine", "ci mine --base main", "ci mine --base HEAD~1 --out weir-ci")
def ci_(
    folder: Annotated[
        Path, Argument(metavar="FOLDER", help="Of a control, with a Makefile; its study in study/.")
    ],
    base: Annotated[
        str | None, Option(metavar="COMMIT", help="Of its repository: what it is compared with.")
    ] = None,
    quick: Quick = True,
    out: ManyFolder = None,
    workers: Workers = None,
) -> None:
    """Tries a control as it is and as it was in a commit.

    It builds it, checks it, runs its study and its row of the league, and prints a comment in
    Markdown. It ends with 1 if a check or a claim fails.
    """
    programs.identify()
    place = out or Path("runs") / f"ci-{folder.resolve().name}"
    made = ci.tried(folder, base, quick, place, terminal.console(stderr=True), workers)
    print(made.text, end="")
    raise typer.Exit(0 if made.good else 1)
