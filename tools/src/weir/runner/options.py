# SPDX-License-Identifier: BSD-3-Clause
"""Options of a run, and the name of its folder."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from weir.base import configs
from weir.base.errors import UserError
from weir.base.programs import find_program

NAME_LENGTH = 100  # of a run folder, without its time


@dataclass
class Options:
    """Options of `weir run`, which become those of the C programs."""

    config: Path
    out: Path
    overrides: Sequence[str] = ()
    seed: int | None = None
    duration: str | None = None
    pcap: Path | None = None
    force: bool = False
    threads: int | None = None  # of weir-sim
    only: str | None = None  # --check or --print-config: nothing runs

    def command(self, live: bool) -> list[str]:
        """Returns the `weir run` that does the same."""
        command = ["weir", "run", str(self.config), "--out", str(self.out), *self._options()]
        return [*command, "--live"] if live else command

    def argv(self, program: str, captures: bool = True) -> list[str]:
        """Returns the command line of one program; of several only one writes the capture."""
        places = [str(self.config), "--out", str(self.out)]
        return [str(find_program(program)), *places, "--progress", *self._options(captures)]

    def _options(self, captures: bool = True) -> list[str]:
        argv: list[str] = []
        for override in self.overrides:
            argv += ["-o", override]
        if self.seed is not None:
            argv += ["--seed", str(self.seed)]
        if self.duration is not None:
            argv += ["--duration", self.duration]
        if self.pcap is not None and captures:
            argv += ["--pcap", str(self.pcap)]
        if self.force:
            argv.append("--force")
        if self.threads is not None:
            argv += ["--threads", str(self.threads)]
        if self.only is not None:
            argv.append(self.only)
        return argv


def default_out(
    config: Path, overrides: Sequence[str] = (), seed: int | None = None, live: bool = False
) -> Path:
    """Returns runs/CONFIG-CHANGES-UTC TIME, with a number behind it if that is taken."""
    stem = "stdin" if str(config) == "-" else config.stem
    said = "-".join([stem, *changed(overrides, seed, live)])
    name = re.sub(r"[^A-Za-z0-9._=,+-]+", "_", said)[:NAME_LENGTH].rstrip("-_,")
    base = Path("runs") / f"{name}-{datetime.now(UTC):%Y%m%dT%H%M%SZ}"
    taken = (base.with_name(f"{base.name}-{n}") for n in range(2, 1000))
    return base if not base.exists() else next(path for path in taken if not path.exists())


def changed(overrides: Sequence[str], seed: int | None, live: bool) -> list[str]:
    """Returns what a run's name says of its changes to the config: count=10, seed=3, live."""
    parts = [override.partition("=") for override in overrides]
    found = [f"{key.rpartition('.')[2]}={value}" for key, _, value in parts]
    found += [] if seed is None else [f"seed={seed}"]
    return [*found, "live"] if live else found


def refuse_sweep(config: Path) -> None:
    """Refuses a file that is for another command. What else is wrong the programs say."""
    if not config.is_file():
        return
    try:
        read = configs.read(config)
    except UserError:
        return
    if isinstance(read, dict) and "config" in read and ("grid" in read or "seeds" in read):
        raise UserError(f"{config} is a sweep, not one experiment: weir sweep {config}")
