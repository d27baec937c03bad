# SPDX-License-Identifier: BSD-3-Clause
"""weir report and open."""

from __future__ import annotations

import os
import webbrowser
from pathlib import Path
from typing import Annotated

from typer import Option

from weir.analysis import folder, labels
from weir.base import terminal
from weir.base.errors import UserError
from weir.cli import sweeps
from weir.cli.arguments import RunArgument
from weir.cli.runs import say_notes
from weir.cli.usage import commands
from weir.many import sweep_page, sweep_table
from weir.report import page
from weir.runner.bar import Count

app = commands()


Baseline = Annotated[
    str | None,
    Option("--baseline", metavar="KEY=VALUE", help="Of a sweep: what the others stand beside."),
]


@app.add("report", "report runs/mine", "report runs/mine --out pages")
def report_(
    run_folder: RunArgument,
    out: Annotated[
        Path | None, Option(metavar="DIR", help="Where report.html goes. [the folder itself]")
    ] = None,
    baseline: Baseline = None,
) -> None:
    """Writes report.html for a run or a sweep; prints its path."""
    if sweeps.is_sweep([run_folder]):
        print(sweep_page.write(run_folder, out, baseline))
        return
    no_run(baseline)
    loaded = folder.load(run_folder)
    with Count(terminal.console(stderr=True), "parts") as bar:
        written = page.write(loaded, out, bar.update)
    print(written)
    say_notes([loaded])


def no_run(baseline: str | None) -> None:
    if baseline is not None:
        raise UserError("--baseline is for a sweep: of runs, weir compare shows the differences")


@app.add("open", "open runs/mine", "open runs/buffer --baseline cc=cubic")
def open_(run: RunArgument, baseline: Baseline = None) -> None:
    """Opens a run's report in the browser.

    Where there is no display, it prints the path.
    """
    folder.check(run)
    if not sweeps.is_sweep([run]):
        no_run(baseline)
    pages = (run / name for name in ("report.html", "index.html"))
    report = next((path for path in pages if path.exists()), None)
    if sweeps.is_sweep([run]):
        table = sweep_table.file_of(run)
        if (
            report is None
            or baseline is not None
            or table.stat().st_mtime_ns > report.stat().st_mtime_ns
        ):
            report = sweep_page.write(run, baseline=baseline)
    elif report is None or labels.newer(run, report):
        report = page.write(folder.load(run))
    print(report)
    if any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY")):
        webbrowser.open(report.resolve().as_uri())
