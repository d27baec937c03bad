# SPDX-License-Identifier: BSD-3-Clause
"""weir summary and qlog: what came out of a run."""

from __future__ import annotations

import json
from dataclasses import asdict

from weir.analysis import folder, qlog, summary
from weir.base import terminal
from weir.base.errors import UserError
from weir.base.page import Table
from weir.cli.arguments import Json, RunArgument
from weir.cli.runs import say_delay
from weir.cli.usage import commands

app = commands()


@app.add("summary", "summary runs/mine", "summary runs/mine --json")
def summary_(
    run_folder: RunArgument,
    as_json: Json = False,
) -> None:
    """Shows what came out of a run."""
    loaded = folder.load(run_folder)
    if not loaded.summary.ended:
        raise UserError(f"{run_folder}: the run did not end by itself: it has no summary.json", 1)
    if as_json:
        print(json.dumps(loaded.summary_json, indent=1))
    else:
        summary.show(loaded.summary, terminal.console())
        say_delay(loaded, terminal.console())


@app.add("qlog", "qlog runs/quic", "qlog runs/quic --json")
def qlog_(
    run: RunArgument,
    as_json: Json = False,
) -> None:
    """Shows what QUIC programs in guests logged, beside the paths.

    They have written it into $WEIR_OUT; the paths have their own counts.
    """
    typed = folder.load(run).summary
    found, completed = qlog.of_run(run, typed), qlog.transfers(run, typed)
    if as_json:
        print(json.dumps([*map(asdict, found), *map(asdict, completed)], indent=1))
        return
    terminal.print_table(terminal.console(), qlog.table(found))
    if completed:
        terminal.print_table(terminal.console(), Table(qlog.TRANSFERS, completed))
