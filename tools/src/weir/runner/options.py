# SPDX-License-Identifier: BSD-3-Clause
"""Options of a run, and the name of its folder."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from weir.base import foreign
from weir.base.errors import UserError
from weir.base.programs import find_program

NAME_LENGTH = 100  # of a run folder, without its time


@dataclass(frozen=True, kw_only=True)
class Options:
    """Options of a run: its config, overrides of its values, its folder, and those of the programs.

    Of a cell (a run of a grid) `out` is its name: a folder below that of its batch.
    """

    config: Path
    out: Path
    overrides: tuple[str, ...] = ()
    seed: int | None = None
    duration: str | None = None
    pcap: Path | None = None
    force: bool = False
    threads: int | None = None  # of weir-sim
    only: str | None = None  # --check or --print-config: nothing runs

    @property
    def name(self) -> str:
        return str(self.out)

    def command(self, live: bool) -> list[str]:
        """Returns the `weir run` that does the same."""
        command = ["weir", "run", str(self.config), "--out", str(self.out), *self.settings()]
        return [*command, "--live"] if live else command

    def argv(self, program: str, captures: bool = True) -> list[str]:
        """Returns the command line of one program; of several only one writes the capture."""
        settings = self if captures else replace(self, pcap=None)
        places = [str(self.config), "--out", str(self.out)]
        return [str(find_program(program)), *places, "--progress", *settings.settings()]

    def settings(self) -> list[str]:
        """Returns the options after the config and the folder."""
        argv = [word for override in self.overrides for word in ("-o", override)]
        for option in ("seed", "duration", "pcap", "threads"):
            if (value := getattr(self, option)) is not None:
                argv += [f"--{option}", str(value)]
        argv += ["--force"] if self.force else []
        return [*argv, self.only] if self.only is not None else argv


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
    """Raises UserError if the file is a sweep; all else that is wrong the programs report."""
    if not config.is_file():
        return
    try:
        text = foreign.read_bytes(config, foreign.YAML_BYTES_MAX)
    except UserError:
        return
    if {b"config"} < {*re.findall(rb"^(config|grid|seeds) *:", text, re.MULTILINE)}:
        raise UserError(f"{config} is a sweep, not one experiment: weir sweep {config}")
