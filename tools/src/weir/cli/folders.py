# SPDX-License-Identifier: BSD-3-Clause
"""weir ls, open, rm, tag and note: wiring only."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from weir.base.errors import UserError
from weir.cli import complete, sweeps
from weir.cli.usage import examples

if TYPE_CHECKING:
    from weir.analysis.listing import Entry
    from weir.base.page import Table

RUNS = Path("runs")
TITLE_CHARS = 44
Run = Annotated[
    Path, typer.Argument(metavar="RUN", help="A run folder.", autocompletion=complete.runs)
]


def register(app: typer.Typer) -> None:
    """Adds the commands."""
    app.command("ls", epilog=examples(
        "ls",
        "ls runs --sort goodput --reverse --filter 'goodput>90Mbit'",
        "ls --filter tag=fig3 --filter flows.0.cc=copa --json",
    ))(ls_)  # fmt: skip
    app.command("open", epilog=examples("open runs/mine"))(open_)
    app.command("rm", epilog=examples(
        "rm runs/mine runs/other",
        "rm --older 30d",
        "rm --older 2w runs/buffer --yes",
    ))(rm_)  # fmt: skip
    app.command("tag", epilog=examples(
        "tag runs/mine keep fig3", "tag runs/mine fig3 --remove"
    ))(tag_)  # fmt: skip
    app.command("note", epilog=examples("note runs/mine 'the run of figure 3'"))(note_)
    app.command("pack", epilog=examples(
        "pack runs/mine", "pack runs/buffer runs/mine --out artifact.tar.gz --no-rings"
    ))(pack_)  # fmt: skip


def ls_(
    top: Annotated[Path, typer.Argument(metavar="DIR", help="Where the run folders are.")] = RUNS,
    sort: Annotated[
        str, typer.Option(help="folder, title, date, verdict, flows, goodput or delay.")
    ] = "date",
    reverse: Annotated[bool, typer.Option("--reverse", help="The other way round.")] = False,
    where: Annotated[
        list[str] | None,
        typer.Option(
            "--filter",
            metavar="CONDITION",
            help="Only runs with goodput>1Gbit, delay<5ms, tag=keep, title~loss, verdict=ok or"
            " a key of the config, flows.0.cc=copa; repeated: all of them.",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="The list as JSON.")] = False,
) -> None:
    """Lists the runs in a folder, and what came out of each."""
    from weir.analysis import listing
    from weir.base import terminal

    conditions = [listing.condition(text) for text in where or []]
    entries = [listing.read(path) for path in listing.find(top)]
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
    from weir.base import units
    from weir.base.page import Column, Table

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
    """As much of a text as a column has room for; --json has all."""
    line = " ".join(text.split())
    return line if len(line) <= TITLE_CHARS else f"{line[: TITLE_CHARS - 1]}…"


def open_(run: Run) -> None:
    """Opens a run's report in the browser.

    Where there is no display, it prints the path.
    """
    import webbrowser

    from weir.analysis import folder, labels
    from weir.report import page

    folder.check(run)
    pages = (run / name for name in ("report.html", "index.html"))
    report = next((path for path in pages if path.exists()), None)
    if sweeps.is_sweep([run]):
        from weir.many import sweep_page, sweep_table

        table = sweep_table.file_of(run)
        if report is None or table.stat().st_mtime_ns > report.stat().st_mtime_ns:
            report = sweep_page.write(run)
    elif report is None or labels.newer(run, report):
        report = page.write(folder.load(run))
    print(report)
    if any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY")):
        webbrowser.open(report.resolve().as_uri())


def rm_(
    folders: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[FOLDER]...",
            help="Run folders; with --older, where to look for them. [runs]",
            autocompletion=complete.runs,
        ),
    ] = None,
    older: Annotated[
        str | None, typer.Option(metavar="AGE", help="All that began so long ago: 30d, 2w, 12h.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Removes runs, asking first. One with the tag 'keep' stays, and what is no run folder."""
    from weir.analysis import folder, listing, removal
    from weir.base import units

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
    """How many they are."""
    return f"{len(going):,} run{'s' if len(going) > 1 else ''}"


def agreed(going: list[Path], size: int) -> bool:
    """Asks the user."""
    from weir.base import units

    if not sys.stdin.isatty():
        raise UserError("rm asks before it removes, and this is no terminal: say --yes")
    for path in going:
        print(path)
    return typer.confirm(f"Remove {runs_of(going)}, {units.size(size)}?")


def remove(going: list[Path]) -> int:
    """Removes folders; how many bytes that freed."""
    from weir.analysis import removal

    freed = 0
    for path in going:
        size = removal.size_bytes(path)
        removal.remove(path)
        freed += size
    return freed


def say(sentence: str) -> None:
    """A sentence for the user."""
    print(f"weir: {sentence}", file=sys.stderr)


def tag_(
    run: Run,
    tags: Annotated[list[str], typer.Argument(metavar="TAG...", help="'keep' is kept by rm.")],
    remove: Annotated[bool, typer.Option("--remove", help="Take them away.")] = False,
) -> None:
    """Gives a run tags, which `ls` shows and filters by.

    It prints those that the run has.
    """
    from weir.analysis import labels

    print(" ".join(labels.tag(run, tags, remove).tags))


def note_(
    run: Run,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="'' takes it away.")],
) -> None:
    """Gives a run a note, which `ls` and its report show."""
    from weir.analysis import labels

    print(labels.note(run, text).note)


def pack_(
    runs: Annotated[
        list[Path],
        typer.Argument(
            metavar="RUN...",
            help="Runs in virtual time, a sweep, or folders with runs.",
            autocompletion=complete.runs,
        ),
    ],
    out: Annotated[Path | None, typer.Option(help="The archive. [RUN.tar.gz]")] = None,
    no_rings: Annotated[
        bool, typer.Option("--no-rings", help="Without telemetry, which is large.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace what is there.")] = False,
) -> None:
    """Packs runs and what runs them again into one archive.

    It is an artifact for reviewers: its script runs all again and compares.
    """
    from weir.export import pack

    place = out or Path(f"{runs[0].resolve().name}.tar.gz")
    pack.write(runs, place, not no_rings, force)
    print(place)
