# SPDX-License-Identifier: BSD-3-Clause
"""weir init: a first config from three answers. weir-sim checks it before it is written."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import typer

from weir import tables
from weir.analysis.folder import write_whole
from weir.errors import UserError
from weir.runner import find_program

SCHEMA = Path(__file__).resolve().parents[4] / "configs/schema.json"  # of a clone
QUANTITY = r"[\w.+-]+( [A-Za-z]+)?"  # weir-sim knows which
CONFIG = """\
# {flows} through a bottleneck of {rate}, for {duration}.
#
#   weir run {file}                  runs it and writes a report
#   weir run {file} -o seed=2        changes one value
#   weir list, weir list run         what else there is, and all keys of this file
{schema}title: {flows} through {rate}
seed: 1
duration: {duration}
warmup: 0s  # the summary leaves out what comes before

# From the senders to the receivers, and back. A path is a list of stages: `weir list stage`.
paths:
  forward:
    # The bottleneck. Before it is a queue as long as one bandwidth-delay product; `weir list aqm`
    # has other disciplines.
    - link: {{rate: {rate}, queue: {{fifo: {{limit: 1BDP}}}}}}
    - delay: {{delay: 10ms}}  # one way: without queues the round trip is 20 ms
  reverse:
    - delay: {{delay: 10ms}}

# Groups of flows: `weir list flows` has their keys, `weir list cc` the congestion controls.
flows:
{groups}
telemetry: {{level: 1, interval: 100ms}}  # level 3: every packet and every ACK
"""


@dataclass(frozen=True)
class Answers:
    """What the config is made of, as it was typed."""

    rate: str = "100Mbit"
    flows: str = "2 copa"
    duration: str = "30s"


QUESTIONS = {
    "rate": "How fast is the bottleneck",
    "flows": "Which flows, such as '2 copa' or '10 cubic, 10 bbr'",
    "duration": "How long does it run",
}


def groups(text: str) -> list[tuple[int, str]]:
    """ "2 copa, bbr" as numbers of flows and their congestion controls."""
    known = list(tables.read()["cc"])
    found = []
    for part in text.split(","):
        match = re.fullmatch(r"(?:(\d{1,7}) +)?(\S+)", part.strip())
        if match is None or match[2] not in known:
            raise UserError(
                f"'{part.strip()}' is not a number and one of {', '.join(known)}: such as 2 copa"
            )
        found.append((int(match[1] or 1), match[2]))
    return found


def config(answers: Answers, file: Path) -> str:
    """The file's text; UserError: weir-sim does not take it."""
    for key in ("rate", "duration"):
        if not re.fullmatch(QUANTITY, getattr(answers, key)):
            raise UserError(f"{key}: '{getattr(answers, key)}' is not a number with a unit")
    chosen = groups(answers.flows)
    text = CONFIG.format(
        rate=answers.rate,
        duration=answers.duration,
        file=shlex.quote(str(file)),
        schema=modeline(file),
        flows=" and ".join(f"{count} {cc}" for count, cc in chosen),
        groups="".join(f"  - {{count: {count}, cc: {cc}}}\n" for count, cc in chosen),
    )
    argv = [str(find_program("sim")), "-", "--check"]
    done = subprocess.run(argv, input=text, capture_output=True, text=True)
    if done.returncode != 0:
        said = done.stderr.strip().removeprefix("weir-sim: ")
        raise UserError(re.sub(r"^standard input:\d+:\d+: ", "", said), done.returncode)
    return text


def modeline(file: Path) -> str:
    """The line that names the config's schema to editors, if this is a clone."""
    if not SCHEMA.is_file():
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
