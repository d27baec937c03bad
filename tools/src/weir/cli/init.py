# SPDX-License-Identifier: BSD-3-Clause
"""weir init: a first config from a few answers. weir-sim checks it before it is written."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Annotated

import typer
import yaml
from typer import Argument, Option

from weir.analysis.folder import write_whole
from weir.base import tables, typed, units
from weir.base.errors import UserError, nearest
from weir.base.programs import find_program
from weir.bootstrap import ROOT
from weir.cli import complete
from weir.cli.arguments import Duration, Force
from weir.cli.usage import commands

app = commands()
SCHEMA = ROOT / "configs/schema.json"
QUANTITY = r"[\w.+-]+ ?[\w/%]*"  # weir-sim knows which
CONFIG = """\
# {flows} through a bottleneck of {rate}, for {duration}.
#
#   {weir} run {file}                  runs it and writes a report
#   {weir} run {file} -o seed=2        changes one value
#   {weir} list, {weir} list run         what else there is, and all keys of this file
{schema}title: {flows} through {rate}
seed: 1
duration: {duration}
warmup: 0s  # the summary leaves out what comes before

# From the senders to the receivers, and back. A path is a list of stages: `{weir} list stage`.
paths:
  forward:
    # The bottleneck, after a queue; 1BDP is one bandwidth-delay product. `{weir} list aqm`
    # has other disciplines.
    - link: {{rate: {rate}, queue: {{fifo: {{limit: {buffer}}}}}}}
    - delay: {{delay: {delay}}}  # one way: without queues the round trip is {rtt}
  reverse:
    - delay: {{delay: {delay}}}

# Groups of flows: `{weir} list flows` has their keys, `{weir} list cc` the congestion controls.
flows:
{groups}
telemetry: {{level: 1, interval: 100ms}}  # level 3: every packet and every ACK
"""


@dataclass(frozen=True)
class Answers:
    """Answers from which the config is made, as they were typed."""

    rate: str = "100Mbit"
    rtt: str = "20ms"
    buffer: str = "1BDP"
    flows: str = "2 copa"
    duration: str = "30s"


QUESTIONS = {
    "rate": "How fast is the bottleneck",
    "rtt": "How long is the round trip without queues",
    "buffer": "How long is the queue before the bottleneck (BDP, pkt, bytes or a time)",
    "flows": "Which flows, such as '2 copa' or '10 cubic, 10 bbr'",
    "duration": "How long does it run",
}


def groups(text: str) -> list[tuple[int, str]]:
    """Returns "2 copa, BBR and reno" as numbers of flows and their congestion controls."""
    known = tables.read()["cc"]
    called = {name: name for name in known}
    called |= {entry["alias"]: name for name, entry in known.items() if "alias" in entry}
    found = []
    for part in re.split(r",|\band\b|\+", text):
        match = re.fullmatch(r"(?:(\d{1,7}) *x? *)?([A-Za-z]\w*)(?: flows?)?", part.strip())
        name = called.get(match[2].lower()) if match else None
        if match is None or name is None:
            meant = nearest(match[2] if match else "", called, "such as 2 copa")
            raise UserError(
                f"'{part.strip()}' is not a number and one of {', '.join(known)}; {meant}"
            )
        found.append((int(match[1] or 1), name))
    return found


def half(text: str) -> str:
    """Returns half of a time, in its unit: 20ms as 10ms; of a sum in nanoseconds."""
    match = re.fullmatch(rf"({units.NUMBER}) ?(\D*)", text)
    if match is None:
        return f"{(units.config_time_ns(text) or 0) / 2:.0f}ns"
    return f"{Decimal(match[1]) / 2:f}{match[2]}"


def config(answers: Answers, file: Path) -> str:
    """Returns the file's text, in usual spellings; UserError: weir-sim does not take it."""
    for key in ("rate", "rtt", "buffer", "duration"):
        if not re.fullmatch(QUANTITY, getattr(answers, key)):
            raise UserError(f"{key}: '{getattr(answers, key)}' is not a number with a unit")
    if units.config_time_ns(answers.rtt, unit_required=True) is None:
        raise UserError(f"rtt: '{answers.rtt}' is not a time such as 20ms")
    text = written(answers, file, half(answers.rtt))
    argv = [str(find_program("sim")), "-", "--print-config"]
    done = subprocess.run(argv, input=text, capture_output=True, text=True)
    if done.returncode != 0:
        said = done.stderr.strip().removeprefix("weir-sim: ")
        raise UserError(re.sub(r"^standard input:\d+:\d+: ", "", said), done.returncode)
    link, delay = yaml.load(done.stdout, Loader=yaml.BaseLoader)["paths"]["forward"]
    usual = replace(
        answers,
        rate=link["link"]["rate"],
        buffer=link["link"]["queue"]["fifo"]["limit"],
        duration=yaml.load(done.stdout, Loader=yaml.BaseLoader)["duration"],
    )
    return written(usual, file, delay["delay"]["delay"])


def written(answers: Answers, file: Path, delay: str) -> str:
    """Returns the config with these answers in it."""
    chosen = groups(answers.flows)
    return CONFIG.format(
        rate=answers.rate,
        rtt=answers.rtt,
        delay=delay,
        buffer=answers.buffer,
        duration=answers.duration,
        weir=typed.program(),
        file=shlex.quote(str(file)),
        schema=modeline(file),
        flows=" and ".join(f"{count} {cc}" for count, cc in chosen),
        groups="".join(f"  - {{count: {count}, cc: {cc}}}\n" for count, cc in chosen),
    )


def modeline(file: Path) -> str:
    """Returns the line that names the config's schema to editors, if this is a clone."""
    if not (ROOT / "tools/weir").is_file():  # which makes it
        return ""
    place = os.path.relpath(SCHEMA, file.resolve().parent)
    return f"# yaml-language-server: $schema={place}\n"


def ask(answers: Answers, key: str, file: Path) -> Answers:
    """Asks one question until the answer makes a config."""
    while True:
        given = typer.prompt(QUESTIONS[key], default=getattr(answers, key), err=True)
        changed = replace(answers, **{key: given.strip()})
        try:
            config(changed, file)
        except UserError as error:
            print(f"weir: {error}", file=sys.stderr)
        else:
            return changed


def write(
    file: Path, given: dict[str, str | None], force: bool, asks: Callable[[], bool]
) -> Answers:
    """Writes the config; what was not given is asked for, or else is the default."""
    if file.exists() and not force:
        raise UserError(f"{file} exists; --force replaces it")
    answers = Answers(**{key: value for key, value in given.items() if value is not None})
    text = config(answers, file)  # refuses what was given before anything is asked
    missing = [key for key, value in given.items() if value is None]
    if missing and asks():
        for key in missing:
            answers = ask(answers, key, file)
        text = config(answers, file)
    write_whole(file, text)
    return answers


@app.add(
    "init",
    "init",
    "init mine.yaml --rate 1Gbps --rtt 40ms --flows '10 cubic, 10 bbr' --duration 60",
    "init mine.yaml --force",
)
def init_(
    file: Annotated[
        Path, Argument(metavar="FILE", help="The config.", autocompletion=complete.configs)
    ] = Path("experiment.yaml"),
    rate: Annotated[str | None, Option(help="Of the bottleneck: 100Mbit.")] = None,
    rtt: Annotated[str | None, Option(help="Round trip without queues: 20ms.")] = None,
    buffer: Annotated[str | None, Option(help="1BDP, 100pkt, 1MB or 50ms.")] = None,
    flows: Annotated[str | None, Option(help="Such as '2 copa, 10 cubic'.")] = None,
    duration: Duration = None,
    force: Force = False,
) -> None:
    """Writes a first config, with comments.

    It asks for rate, round trip, buffer, flows and duration.
    """
    given = {"rate": rate, "rtt": rtt, "buffer": buffer, "flows": flows, "duration": duration}
    write(file, given, force, lambda: sys.stdin is not None and sys.stdin.isatty())
    name = shlex.quote(str(file))
    print(f"{name} is written; next: {typed.program()} run {name}")
