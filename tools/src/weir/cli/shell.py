# SPDX-License-Identifier: BSD-3-Clause
"""`weir shell`: its options, and the config that they or a file stand for."""

from __future__ import annotations

import math
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer
import yaml
from typer import Argument, Option

from weir.base import programs
from weir.base.configs import Config
from weir.base.errors import UserError
from weir.cli import complete
from weir.cli.arguments import Force, Overrides, RunFolder, Seed
from weir.cli.usage import commands
from weir.live import shell
from weir.runner.options import Options

app = commands()

KEPT = ("title", "seed", "paths", "schedule", "telemetry")  # of a config; the rest is of its flows


@dataclass(frozen=True)
class Link:
    """A bottleneck without a file: as typed, each None if it was not."""

    rate: str | None = None
    delay: str | None = None
    up: str | None = None
    down: str | None = None
    queue: str | None = None
    limit: str | None = None
    loss: str | None = None

    def given(self) -> dict[str, str]:
        return {name: text for name, text in vars(self).items() if text is not None}

    def stages(self, rate: str | None) -> list[Config]:
        """Returns a path: loss, a link of a rate or a file, the delay."""
        discipline = {self.queue or "fifo": {"limit": self.limit} if self.limit else {}}
        found: list[Config] = [{"loss": {"rate": self.loss}}] if self.loss else []
        if rate is not None and (Path(rate).is_file() or "/" in rate):
            found.append({"mahimahi_link": {"file": rate, "queue": discipline}})
        elif rate is not None:
            found.append({"link": {"rate": rate, "queue": discipline}})
        elif self.queue or self.limit:
            raise UserError("--queue and --limit are of a link: give --rate, --up or --down")
        return [*found, {"delay": {"delay": self.delay or "0ms"}}]

    def config(self) -> Config:
        """Returns what would be in a file: `forward` leads out of the shell."""
        ways = {"forward": self.up or self.rate, "reverse": self.down or self.rate}
        if None in ways.values() and any(ways.values()) and (self.queue or self.limit):
            raise UserError("--queue and --limit are for both directions: give --up and --down")
        paths = {name: self.stages(rate) for name, rate in ways.items()}
        title = " ".join(f"{name}={text}" for name, text in self.given().items())
        return {"title": title, "paths": paths}


def resolved(file: Path | None, link: Link, overrides: Sequence[str], seed: int | None) -> Config:
    """Returns the config with all defaults; UserError: weir-switch does not take it."""
    live = yaml.safe_dump(shell.section(), default_flow_style=True, width=math.inf)
    given = [f"live={live.strip()}", "duration=24h", "warmup=0s"]
    options = Options(
        config=file or Path("-"),
        out=Path(),
        overrides=(*overrides, *given),
        seed=seed,
        only="--print-config",
    )
    text = yaml.safe_dump(link.config()) if file is None else None
    done = subprocess.run(options.argv("switch"), input=text, capture_output=True, text=True)
    if done.returncode != 0:
        said = done.stderr.strip().removeprefix("weir-switch: ")
        said = re.sub(r"^standard input:\d+:\d+: ", "", said)
        raise UserError(re.sub(r"^-o live=.*: path: ", f"{file}: ", said), done.returncode)
    whole = yaml.load(done.stdout, Loader=yaml.BaseLoader)
    return {key: whole[key] for key in KEPT if key in whole} | {"warmup": "0s"}


def split(words: Sequence[str]) -> tuple[Path | None, list[str]]:
    """Returns the config, if one was given, and the command, which is what stands behind --."""
    after = sys.argv[sys.argv.index("--") + 1 :] if "--" in sys.argv else []
    before = list(words)[: len(words) - len(after)]
    if len(before) > 1:
        raise UserError(f"write -- before the command: -- {' '.join(before[1:])}")
    command = after or [os.environ.get("SHELL") or "/bin/sh"]
    if shutil.which(command[0]) is None:
        raise UserError(f"{command[0]}: there is no such command")
    return (Path(before[0]) if before else None), command


@app.add(
    "shell",
    "shell --rate 50Mbit --delay 20ms -- curl -O https://www.debian.org/",
    "shell --delay 20ms --up up.trace --down down.trace",
    "shell configs/quickstart.yaml --server 'iperf3 -s' -- sh -c 'iperf3 -c $WEIR_SERVER'",
)
def shell_(
    words: Annotated[
        list[str] | None,
        Argument(
            metavar="[CONFIG] [-- COMMAND...]",
            help="An experiment in YAML, of which the paths are taken; the command. [$SHELL]",
            autocompletion=complete.configs,
        ),
    ] = None,
    rate: Annotated[str | None, Option(help="Of both directions: 50Mbit.")] = None,
    delay: Annotated[str | None, Option(help="Of each direction: 20ms.")] = None,
    up: Annotated[
        str | None, Option(metavar="TRACE|RATE", help="Out of the shell: mahimahi's file.")
    ] = None,
    down: Annotated[
        str | None, Option(metavar="TRACE|RATE", help="Into the shell, likewise.")
    ] = None,
    queue: Annotated[str | None, Option(help="The discipline: codel. [fifo]")] = None,
    limit: Annotated[str | None, Option(help="Of the queue: 1BDP, 100pkt, 1MB.")] = None,
    loss: Annotated[str | None, Option(help="Of each direction: 1%.")] = None,
    server: Annotated[
        str | None,
        Option(metavar="COMMAND", help="The other side instead of the host: 'iperf3 -s'."),
    ] = None,
    swap: Annotated[
        bool, Option("--swap", help="The config's `forward` leads into the shell.")
    ] = False,
    no_offloads: Annotated[
        bool, Option("--no-offloads", help="Packets arrive one by one, as from a card without GRO.")
    ] = False,
    override: Overrides = None,
    seed: Seed = None,
    out: RunFolder = None,
    force: Force = False,
) -> None:
    """Runs a command, live, behind a bottleneck of its own.

    It ends with the exit status of the command. The command, or a shell, is in a network of its
    own, whose way out leads through the bottleneck to this machine and beyond, or to --server's
    command. $WEIR_SERVER is the address of the other side. All is gone when the command has ended,
    or this one, whatever ends it.
    """
    file, command = split(words or [])
    link = Link(rate, delay, up, down, queue, limit, loss)
    if bool(file) == bool(link.given()):
        raise UserError("give a CONFIG, or the bottleneck as options: --rate 50Mbit --delay 20ms")
    overrides = [*(override or ()), *([] if out else ["telemetry={level: 0}"])]
    config = resolved(file, link, overrides, seed)
    place = file.absolute().parent if file else Path.cwd()
    programs.identify()
    title = config.get("title") or (file.stem if file else "")
    wanted = shell.Wanted(config, place, command, server, out, force, swap, not no_offloads, title)
    raise typer.Exit(shell.run(wanted))
