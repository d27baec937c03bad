# SPDX-License-Identifier: BSD-3-Clause
"""weir league, ci: controls side by side, and a change of one of them."""

from __future__ import annotations

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
from weir.league import ci, entry, measure, page
from weir.league.standing import standing
from weir.study import documents

app = commands()


@app.add("league", "league", "league ./mine.so", "league ./mine.so ./other.so --json")
def league_(
    controls: Annotated[
        list[str] | None,
        Argument(metavar="[CC]...", help="Besides Weir's own: FILE.so, FILE.py:CLASS, linux:NAME."),
    ] = None,
    rerun: Annotated[
        bool, Option("--rerun", help="Run Weir's own controls too, whose rows are kept.")
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
    if write_docs and not quick:
        raise UserError("--write-docs: the kept rows are of one seed; leave --full away")
    commit = documents.commit() if write_docs else ""
    place = out or Path("runs") / ("league" if quick else "league-full")
    screen, file = terminal.console(stderr=True), entry.kept()
    rows = measure.all_rows(
        controls or [],
        quick=quick,
        out=place,
        screen=screen,
        rerun=rerun or write_docs,
        workers=workers,
    )
    if write_docs:
        typed = " ".join(["league", *(Path(one).name for one in controls or ()), "--write-docs"])
        day = f"{datetime.now(UTC):%Y-%m-%d}"
        entry.write(entry.File(typed, commit, day, entry.scenes_digest(), rows))
    found = standing(rows)
    kept = file.commit if file is not None and quick and not (rerun or write_docs) else ""
    index = page.write(found, place, kept)
    if as_json:
        print(msgspec.json.format(msgspec.json.encode(page.data(found)), indent=1).decode())
    else:
        terminal.print_table(terminal.console(), page.table(found))
        terminal.console().print(str(index), soft_wrap=True)
    failed = {one.name: why for one in rows for why in one.failed.values()}
    for name, why in failed.items():
        screen.print(f"{name}: a run failed: {why}", style="red", markup=False, soft_wrap=True)
    raise typer.Exit(1 if failed else 0)


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
