# SPDX-License-Identifier: BSD-3-Clause
"""weir export, import and pack."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from weir import export
from weir.analysis import folder, imported
from weir.base import terminal
from weir.cli import complete
from weir.cli.arguments import Force, RunArgument, RunArguments
from weir.cli.runs import say_notes
from weir.cli.usage import commands
from weir.export import pack
from weir.runner.bar import Count

app = commands()


def formats() -> list[str]:
    return list(export.FORMATS)


def streams(ctx: typer.Context) -> list[str]:
    """Returns the streams that the run recorded."""
    runs = complete.named(ctx, "run_folder")[:1]
    return [path.stem for run in runs for path in Path(run).glob("*.ring")]


@app.add(
    "export",
    "export runs/mine --to parquet",
    "export runs/mine --to csv --stream interval --flow 7 --out tables",
    "export runs/mine --to qlog",
    "export runs/mine --to flent",
)
def export_(
    run_folder: RunArgument,
    to: Annotated[
        str,
        Option("--to", metavar="parquet|csv|qlog|qlog-0.3|pcapng|flent", autocompletion=formats),
    ],
    out: Annotated[
        Path | None, Option(metavar="DIR", help="Where the files go. [RUN/export]")
    ] = None,
    stream: Annotated[
        list[str] | None,
        Option(help="A stream, for tables. [all that were recorded]", autocompletion=streams),
    ] = None,
    flow: Annotated[list[int] | None, Option(min=0, help="Only this flow. [all]")] = None,
    compress: Annotated[bool, Option("--compress", help="CSV with zstd: .csv.zst.")] = False,
) -> None:
    """Writes a run's telemetry for other programs.

    It prints the names of the files.
    """
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
    say_notes([loaded])


@app.add("import", "import rrul-2026-11-28.flent.gz", "import iperf3.json --out runs/iperf3")
def import_(
    file: Annotated[Path, Argument(metavar="FILE", help="Of flent, or of iperf3 -J.")],
    out: Annotated[Path | None, Option(help="The folder. [runs/FILE]")] = None,
    force: Force = False,
) -> None:
    """Makes a run folder of a result of flent or iperf3."""
    print(imported.write(file, out or Path("runs") / file.name.partition(".")[0], force))


@app.add("pack", "pack runs/mine", "pack runs/buffer runs/mine --out artifact.tar.gz --no-rings")
def pack_(
    runs: RunArguments,
    out: Annotated[Path | None, Option(help="The archive. [RUN.tar.gz]")] = None,
    no_rings: Annotated[
        bool, Option("--no-rings", help="Without telemetry, which is large.")
    ] = False,
    force: Force = False,
) -> None:
    """Packs runs and what runs them again into one archive.

    It is an artifact for reviewers: its script runs all again and compares.
    """
    place = out or Path(f"{runs[0].resolve().name}.tar.gz")
    pack.write(runs, place, not no_rings, force)
    print(place)
