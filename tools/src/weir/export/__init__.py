# SPDX-License-Identifier: BSD-3-Clause
"""Writes a run for other programs: Parquet and CSV tables, qlog, pcapng, flent's data files.

Every format is written a batch of records at a time: memory does not depend on the run's size.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from weir.analysis.folder import Run, whole
from weir.base.errors import UserError

__all__ = ["FORMATS", "write"]

FORMATS = ("parquet", "csv", "qlog", "qlog-0.3", "pcapng", "flent")


def write(
    run: Run,
    to: str,
    out: Path | str | None = None,
    *,
    streams: Sequence[str] = (),
    flows: Sequence[int] = (),
    compress: bool = False,
    on_progress: Callable[[str, int, int], None] | None = None,
) -> list[Path]:
    """Writes a run in one of FORMATS into a folder [RUN/export]; returns the files, in order.

    streams are those to write as tables [all that were recorded]; the other formats need what they
    need. compress packs CSV with zstd. flows chooses flows [all]; links, which have none, are
    written whole. A file that is there is replaced when the new one is whole. on_progress gets a
    stream's name, how many of its records were read and how many there are. UserError: an unknown
    format, or nothing to write.
    """
    from weir.export import flent, pcapng, qlog, tables

    if to not in FORMATS:
        raise UserError(f"there is no format '{to}', only {', '.join(FORMATS)}")
    if compress and to != "csv":
        raise UserError(f"--compress is for CSV: {to} is written as its readers expect it")
    if streams and to not in ("parquet", "csv"):
        raise UserError(f"{to} is not written by stream: it takes what it needs of all")
    tables.LISTENER.set(on_progress)
    folder = run.path / "export" if out is None else Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    if to in ("parquet", "csv"):
        chosen = [run.stream(name) for name in streams or run.streams]
        if not chosen:
            raise UserError(f"{run.path}: no telemetry was recorded")
        suffix, table = ".parquet", tables.parquet
        if to == "csv":
            suffix, table = ".csv.zst" if compress else ".csv", partial(tables.csv, packed=compress)
        files = [folder / f"{stream.schema.stream}{suffix}" for stream in chosen]
        for stream, file in zip(chosen, files, strict=True):
            with whole(file) as path:
                table(stream, path, flows)
        return files
    if to in ("qlog", "qlog-0.3"):
        return qlog.write(run, folder, flows, to)
    file, written = folder / "packets.pcapng", pcapng.write
    if to == "flent":
        file, written = folder / flent.file_name(run), flent.write
    with whole(file) as path:
        written(run, path, flows)
    return [file]
