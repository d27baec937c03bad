# SPDX-License-Identifier: BSD-3-Clause
"""weir ls, rm, tag and note."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from weir.analysis import folder, labels, listing, removal
from weir.analysis.listing import Entry
from weir.base import terminal, units
from weir.base.errors import UserError
from weir.base.page import Column, Table
from weir.cli import complete
from weir.cli.arguments import Json, RunArgument
from weir.cli.usage import commands

app = commands()
RUNS = Path("runs")
TITLE_CHARS = 44


@app.add(
    "ls",
    "ls",
    "ls runs --sort goodput --reverse --filter 'goodput>90Mbit'",
    "ls --filter tag=fig3 --filter flows.0.cc=copa --json",
)
def ls_(
    top: Annotated[Path, Argument(metavar="DIR", help="Where the run folders are.")] = RUNS,
    sort: Annotated[
        str, Option(help="folder, title, date, verdict, flows, goodput or delay.")
    ] = "date",
    reverse: Annotated[bool, Option("--reverse", help="The other way round.")] = False,
    where: Annotated[
        list[str] | None,
        Option(
            "--filter",
            metavar="CONDITION",
            help="Only runs with goodput>1Gbit, delay<5ms, tag=keep, title~loss, verdict=ok or"
            " a key of the config, flows.0.cc=copa; repeated: all of them.",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Lists runs and their branches, and what came out of each."""
    conditions = [listing.condition(text) for text in where or []]
    entries = [listing.read(path) for path in listing.find_all(top)]
    kept = [entry for entry in entries if all(one.holds(entry) for one in conditions)]
    shown = listing.ordered(kept, sort, reverse)
    if as_json:
        print(json.dumps([entry.as_json() for entry in shown], indent=1))
        return
    screen = terminal.console()
    if shown:
        terminal.print_table(screen, table(shown))
    whole = f" of {len(entries):,}" if conditions else ""
    screen.print(f"{len(shown):,}{whole} in {top}", soft_wrap=True, markup=False)


def table(entries: list[Entry]) -> Table:
    """Returns the list as a table, without the columns that are empty in all rows."""
    made = Table(
        (
            Column("folder", lambda one: str(one.path), words=True),
            Column("began (UTC)", "date"),
            Column("goodput", "goodput_bps"),
            Column("delay", "delay_ns"),
            Column("verdict", lambda one: clipped(one.verdict or units.NONE), words=True),
            Column("groups", lambda one: clipped(one.groups), words=True),
            Column("title", lambda one: clipped(one.title), words=True),
            Column("tags", lambda one: " ".join(one.tags), words=True),
            Column("note", lambda one: clipped(one.note), words=True),
        ),
        entries,
    )
    cells = zip(*made.rows, strict=True)
    return made.chosen([place for place, column in enumerate(cells) if any(column)])


def clipped(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= TITLE_CHARS else f"{line[: TITLE_CHARS - 1]}…"


@app.add("rm", "rm runs/mine runs/other", "rm --older 30d", "rm --older 2w runs/buffer --yes")
def rm_(
    folders: Annotated[
        list[Path] | None,
        Argument(
            metavar="[FOLDER]...",
            help="Run folders; with --older, where to look for them. [runs]",
            autocompletion=complete.runs,
        ),
    ] = None,
    older: Annotated[
        str | None, Option(metavar="AGE", help="All that began so long ago: 30d, 2w, 12h.")
    ] = None,
    yes: Annotated[bool, Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Removes runs, asking first. One with the tag 'keep' stays, and what is no run folder."""
    if not folders and older is None:
        raise UserError("name run folders, or say --older 30d")
    chosen = list(folders or [])
    if older is not None:
        bound_s = removal.age_s(older)
        found = [path for top in chosen or [RUNS] for path in listing.find(top)]
        old = [path for path in found if listing.age_s(listing.read(path)) >= bound_s]
        for path in old:
            if not folder.is_run(path):
                say(f"{path} has many runs: weir rm --older {older} {path} removes them")
        chosen = [path for path in old if folder.is_run(path)]
    refusals = {path: removal.why_not(path) for path in chosen}
    for refusal in filter(None, refusals.values()):
        say(f"{refusal}: it stays")
    going = [path for path, refusal in refusals.items() if refusal is None]
    if older is None and len(going) < len(chosen):
        raise typer.Exit(2)  # what was named is wrong: nothing is removed
    if going and (yes or agreed(going, sum(map(removal.size_bytes, going)))):
        freed = remove(going)
        print(f"removed {runs_of(going)}, {units.size(freed)}")
    elif not going:
        print("nothing to remove")


def runs_of(going: list[Path]) -> str:
    return f"{len(going):,} run{'s' if len(going) > 1 else ''}"


def agreed(going: list[Path], size: int) -> bool:
    """Asks the user whether these runs may go."""
    if not sys.stdin.isatty():
        raise UserError("rm asks before it removes, and this is no terminal: say --yes")
    for path in going:
        print(path)
    return typer.confirm(f"Remove {runs_of(going)}, {units.size(size)}?")


def remove(going: list[Path]) -> int:
    """Removes folders and returns the number of bytes that this freed."""
    freed = 0
    for path in going:
        size = removal.size_bytes(path)
        removal.remove(path)
        freed += size
    return freed


def say(sentence: str) -> None:
    print(f"weir: {sentence}", file=sys.stderr)


@app.add("tag", "tag runs/mine keep fig3", "tag runs/mine fig3 --remove")
def tag_(
    run: RunArgument,
    tags: Annotated[list[str], Argument(metavar="TAG...", help="'keep' is kept by rm.")],
    remove: Annotated[bool, Option("--remove", help="Take them away.")] = False,
) -> None:
    """Gives a run tags, which `ls` shows and filters by.

    It prints those that the run has.
    """
    print(" ".join(labels.tag(run, tags, remove).tags))


@app.add("note", "note runs/mine 'the run of figure 3'")
def note_(
    run: RunArgument,
    text: Annotated[str, Argument(metavar="TEXT", help="'' takes it away.")],
) -> None:
    """Gives a run a note, which `ls` and its report show."""
    print(labels.note(run, text).note)
