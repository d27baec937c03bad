# SPDX-License-Identifier: BSD-3-Clause
"""Runs weir-pcap over captures, and reads the flows that it found."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
from rich.console import Console

from weir.analysis import folder
from weir.analysis.captures import flows
from weir.base import programs, units
from weir.runner.bar import Bar
from weir.runner.session import Progress, run_one

if TYPE_CHECKING:
    from weir.analysis.folder import Run
    from weir.analysis.run_summary import RunSummary


def times(now: Progress) -> str:
    """Returns a progress object as text, with an estimate of what is left if the size is known."""
    read, whole, wall = now.read_bytes or 0, now.all_bytes or 0, now.wall_s
    parts = [f"{units.count(now.packets)} packets", f"{units.count(now.connections)} connections"]
    if wall > 0:
        parts.append(f"{units.number(now.packets / wall / 1e6, 2)} million/s")
    if 0 < read < whole:
        parts.append(f"{units.number(wall * (whole - read) / read, 2)} s left")
    return ", ".join(parts)


def run_pcap(
    command: str,
    files: Sequence[str],
    out: Path,
    settings: Mapping[str, str],
    force: bool,
    console: Console,
) -> int:
    """Runs weir-pcap, which writes a run folder, and returns its exit status."""
    argv = [str(programs.find_program("pcap")), command, "--out", str(out), "--progress"]
    argv += [word for name, value in settings.items() for word in (f"--{name}", value)]
    argv += ["--force"] if force else []
    with Bar(console, "analysing", "read_bytes", "all_bytes", times) as bar:
        return run_one(bar, "pcap", [*argv, *files])


def flows_of(
    files: Sequence[str], console: Console, interface: str = ""
) -> tuple[pl.DataFrame, RunSummary]:
    """Returns the flows of captures and their summary; the run folder is temporary."""
    with analysed(files, console, {"interval": "1h", "interface": interface}) as loaded:
        return flows(loaded), loaded.summary


@contextmanager
def analysed(files: Sequence[str], console: Console, settings: Mapping[str, str]) -> Iterator[Run]:
    """Yields the analysis of captures in a temporary run folder. SystemExit: weir-pcap failed."""
    with tempfile.TemporaryDirectory(prefix="weir-pcap-") as temporary:
        out = Path(temporary) / "run"
        status = run_pcap("analyze", files, out, settings, False, console)
        if status != 0:
            raise SystemExit(status)  # the program said why
        yield folder.load(out)
