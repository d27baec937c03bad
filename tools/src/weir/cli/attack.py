# SPDX-License-Identifier: BSD-3-Clause
"""weir attack: shows the search and what it has found."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, replace

from weir.attack import attack, documents, run
from weir.attack.search import Found
from weir.base import configs, programs, terminal, units
from weir.base.errors import UserError
from weir.base.page import Table
from weir.study import documents as studies_documents


def seconds_of(time: str | None) -> float | None:
    """Reads --time."""
    ns = None if time is None else units.config_time_ns(time)
    if time is not None and not ns:
        raise UserError(f"--time: {time} is no time, such as 2m")
    return ns / 1e9 if ns else None


def share_of(keep: str) -> float:
    """Reads --keep."""
    share = units.config_ratio(keep)
    if share is None or not 0 <= share <= 1:
        raise UserError(f"--keep: {keep} is no share, such as 90%")
    return share


def searched(options: run.Options) -> tuple[attack.Asked, attack.Result]:
    """Searches once, and shows how far it is."""
    asked = attack.read(options.file, options.goal, options.control, options.beside)
    screen, runs = terminal.console(stderr=True), options.budget.trials
    name = f"{options.control}: " if options.control else ""
    with screen.status("") as shown:

        def on_trials(found: Found) -> None:
            of = f" of {runs}" if runs else ""
            worst = asked.goal.text(found.harm)
            shown.update(f"{name}{len(found.worst)}{of} trials: worst {worst}")

        return asked, run.execute(asked, options, on_trials)


def command(options: run.Options, *, as_json: bool, write_docs: bool) -> int:
    """Searches, and returns the exit status: 1 if the bound of the file does not hold."""
    programs.identify()
    if len(several(options)) > 1:
        return compared(options, as_json, write_docs)
    if write_docs:
        raise UserError("--write-docs: the page has a table of several controls: --cc copa,bbr")
    asked, result = searched(options)
    if options.register:
        documents.write("known", documents.known())
    if as_json:
        print(json.dumps(asdict(result), indent=1))
    else:
        out = terminal.console()
        terminal.print_table(out, Table(("", ""), run.lines(asked, result), left=2))
        file = "report.html" if options.report else "attack.yaml"
        out.print(str(options.folder / file), soft_wrap=True)
    return 1 if result.held is False else 0


def several(options: run.Options) -> list[str]:
    """Returns the controls of --cc; a comma within {} is of a control's parameters."""
    return re.split(r",(?![^{]*\})", options.control or "")


def compared(options: run.Options, as_json: bool, write_docs: bool) -> int:
    """Attacks several controls in one box: a row for each, the one that suffers most first."""
    if write_docs:
        studies_documents.commit()
    found = {}
    for control in several(options):
        out = options.out and options.out / configs.control_name(control)
        found[control] = searched(replace(options, control=control, out=out))
    found = dict(sorted(found.items(), key=lambda item: -item[1][1].found))
    rows = [[name, *run.row(*one)] for name, one in found.items()]
    if write_docs:
        documents.write("worst", documents.worst(rows))
    if as_json:
        print(json.dumps({name: asdict(result) for name, (_, result) in found.items()}, indent=1))
    else:
        shown = [row[:-1] for row in rows]
        terminal.print_table(terminal.console(), Table(run.COLUMNS[:-1], shown, left=1))
    return 1 if any(result.held is False for _, result in found.values()) else 0
