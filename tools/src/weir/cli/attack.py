# SPDX-License-Identifier: BSD-3-Clause
"""weir attack: reads the options, shows the search and what it has found."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from weir.attack import attack, documents, run
from weir.attack.search import Found
from weir.base import programs, terminal, units
from weir.base.errors import UserError
from weir.base.page import Table
from weir.study import documents as studies_documents

RUNS = 500


@dataclass(frozen=True)
class Given:
    """The command line."""

    file: Path
    goal: str | None
    control: str | None
    runs: int | None
    time: str | None
    seed: int
    cluster: str | None
    workers: int | None
    keep: str
    out: Path | None
    report: bool
    register: bool
    write_docs: bool


def options(given: Given) -> run.Options:
    """With units read and defaults filled in."""
    ns = units.config_time_ns(given.time) if given.time is not None else None
    keep = units.config_ratio(given.keep)
    if given.time is not None and not ns:
        raise UserError(f"--time: {given.time} is no time, such as 2m")
    if keep is None or not 0 <= keep <= 1:
        raise UserError(f"--keep: {given.keep} is no share, such as 90%")
    name = "-".join(["attack", given.file.stem, *([given.control] if given.control else [])])
    place = given.out or Path("runs") / f"{name}-{given.seed}"
    runs = given.runs or (None if ns else RUNS)
    seconds = ns / 1e9 if ns else None
    return run.Options(
        place,
        runs,
        seconds,
        given.seed,
        given.cluster,
        given.workers,
        keep,
        given.report,
        given.register,
    )


def searched(given: Given) -> tuple[attack.Asked, run.Options, attack.Result]:
    """One search, with its progress."""
    asked, opts = attack.read(given.file, given.goal, given.control), options(given)
    screen, of = terminal.console(stderr=True), f" of {opts.runs}" if opts.runs else ""
    name = f"{given.control}: " if given.control else ""
    with screen.status("") as shown:

        def on_trials(found: Found) -> None:
            worst = asked.goal.text(found.harm)
            shown.update(f"{name}{len(found.worst)}{of} trials: worst {worst}")

        return asked, opts, run.execute(asked, opts, on_trials)


def command(given: Given, as_json: bool) -> int:
    """The exit status: 1 if the bound of the file does not hold."""
    programs.identify()
    several = "," in (given.control or "")
    if given.write_docs and not several:
        raise UserError("--write-docs: the page has a table of several controls: --cc copa,bbr")
    if several:
        return compared(given, as_json)
    asked, opts, result = searched(given)
    if given.register:
        documents.write("known", documents.known())
    if as_json:
        print(json.dumps(asdict(result), indent=1))
    else:
        out = terminal.console()
        rows = run.lines(asked, result)
        terminal.print_table(out, Table(("", ""), rows, left=2))
        out.print(str(opts.out / ("report.html" if opts.report else "attack.yaml")), soft_wrap=True)
    return 1 if result.held is False else 0


def compared(given: Given, as_json: bool) -> int:
    """Several controls under one box: a row each, the one that suffers most first."""
    if given.write_docs:
        studies_documents.commit()
    found = {}
    for control in (given.control or "").split(","):
        place = None if given.out is None else given.out / control
        found[control] = searched(replace(given, control=control, out=place))
    found = dict(sorted(found.items(), key=lambda item: -item[1][2].found))
    rows = [[name, *run.row(asked, result)] for name, (asked, _, result) in found.items()]
    if given.write_docs:
        documents.write("worst", documents.worst(rows))
    if as_json:
        print(
            json.dumps({name: asdict(result) for name, (_, _, result) in found.items()}, indent=1)
        )
    else:
        shown = [row[:-1] for row in rows]
        terminal.print_table(terminal.console(), Table(run.COLUMNS[:-1], shown, left=1))
    return 1 if any(result.held is False for _, _, result in found.values()) else 0
