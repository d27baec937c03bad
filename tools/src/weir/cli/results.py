# SPDX-License-Identifier: BSD-3-Clause
"""weir report, summary, export, import: what became of a run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
import typer.core

from weir.base.errors import UserError
from weir.cli import complete
from weir.cli import sweeps as sweep_commands
from weir.cli.arguments import RunArgument
from weir.cli.runs import say_delay, say_notes
from weir.cli.usage import examples

app = typer.Typer()


@app.command("report", epilog=examples("report runs/mine", "report runs/mine --out pages"))
def report_(
    run_folder: RunArgument,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Where report.html goes. [the folder itself]")
    ] = None,
) -> None:
    """Writes report.html for a run or a sweep; prints its path."""
    from weir.analysis import folder
    from weir.base import terminal
    from weir.report import page
    from weir.runner.bar import Count

    if sweep_commands.is_sweep([run_folder]):
        from weir.many import sweep_page

        print(sweep_page.write(run_folder, out))
        return
    loaded = folder.load(run_folder)
    with Count(terminal.console(stderr=True), "parts") as bar:
        written = page.write(loaded, out, bar.update)
    print(written)
    say_notes(loaded.notes)


@app.command("summary", epilog=examples("summary runs/mine", "summary runs/mine --json"))
def summary_(
    run_folder: RunArgument,
    as_json: Annotated[bool, typer.Option("--json", help="summary.json as it is.")] = False,
) -> None:
    """Shows what came out of a run."""
    from weir.analysis import folder, summary
    from weir.base import terminal

    loaded = folder.load(run_folder)
    if not loaded.summary.ended:
        raise UserError(f"{run_folder}: the run did not end by itself: it has no summary.json", 1)
    if as_json:
        print(json.dumps(loaded.summary_json, indent=1))
    else:
        summary.show(loaded.summary, terminal.console())
        say_delay(loaded, terminal.console())


@app.command(
    "export",
    epilog=examples(
        "export runs/mine --to parquet",
        "export runs/mine --to csv --stream interval --flow 7 --out tables",
        "export runs/mine --to qlog",
        "export runs/mine --to flent",
    ),
)
def export_(
    run_folder: RunArgument,
    to: Annotated[
        str,
        typer.Option(
            "--to",
            metavar="parquet|csv|qlog|qlog-0.3|pcapng|flent",
            autocompletion=complete.formats,
        ),
    ],
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Where the files go. [RUN/export]")
    ] = None,
    stream: Annotated[
        list[str] | None,
        typer.Option(
            help="A stream, for tables. [all that were recorded]", autocompletion=complete.streams
        ),
    ] = None,
    flow: Annotated[list[int] | None, typer.Option(min=0, help="Only this flow. [all]")] = None,
    compress: Annotated[bool, typer.Option("--compress", help="CSV with zstd: .csv.zst.")] = False,
) -> None:
    """Writes a run's telemetry for other programs.

    It prints the names of the files.
    """
    from weir import export
    from weir.analysis import folder
    from weir.base import terminal
    from weir.runner.bar import Count

    loaded = folder.load(run_folder)
    with Count(terminal.console(stderr=True)) as bar:
        files = export.write(
            loaded,
            to,
            out,
            streams=stream or (),
            flows=flow or (),
            compress=compress,
            on_progress=bar.update,
        )
    for file in files:
        print(file)
    say_notes(loaded.notes)


@app.command(
    "import",
    epilog=examples(
        "import rrul-2026-11-28.flent.gz",
        "import iperf3.json --out runs/iperf3",
    ),
)
def import_(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Of flent, or of iperf3 -J.")],
    out: Annotated[Path | None, typer.Option(help="The folder. [runs/FILE]")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace what is there.")] = False,
) -> None:
    """Makes a run folder of a result of flent or iperf3."""
    from weir.analysis import imported

    print(imported.write(file, out or Path("runs") / file.name.partition(".")[0], force))
