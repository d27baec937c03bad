# SPDX-License-Identifier: BSD-3-Clause
"""The end of every --help: examples, and the exit statuses of all commands."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import typer

from weir.base.errors import nearest
from weir.base.typed import program

Function = TypeVar("Function", bound=Callable[..., object])
EXIT_STATUSES = (
    (0, "done"),
    (1, "failed: a run or part of it, a comparison, a file that is not writable"),
    (2, "refused: the command line, a config, a folder without a run or in use"),
    (129, "ended early by SIGHUP (a lost session); a run's folder is complete"),
    (130, "ended early by Ctrl-C (SIGINT), likewise"),
    (137, "a program was killed (SIGKILL, as when memory runs out)"),
    (143, "ended early by SIGTERM, likewise"),
)
# The commands as --help has them, in each group the most used first. A command is in the module
# behind the colon, or else in that of its name.
LISTED = {
    "Run": "run:runs init list:lists probe:runs replay:runs",
    "See what came out": "summary:results report:pages open:pages compare:figures plot:figures"
    " explore ls:folders rm:folders tag:folders note:folders export:exports import:exports"
    " pack:exports qlog:results",
    "Many runs": "sweep:many table:sweeps diff:sweeps reproduce:many attack:many study:many",
    "Captures and real paths": "pcap trace measure fit:measure",
    "A control of your own": "new check evaluate:many league ci:league schema:lists",
    "Live": "shell top:watch ctl:watch",
    "This machine": "doctor setup guests bench completion:complete docs",
}
GROUPS = {
    title: {name: module or name for name, _, module in (w.partition(":") for w in words.split())}
    for title, words in LISTED.items()
}
MODULES = {name: module for names in GROUPS.values() for name, module in names.items()}
COMPLETE = "_WEIR_COMPLETE"  # set by a shell that asks for completions


def examples(*commands: str) -> str:
    r"""Returns an epilog with commands to copy. \b keeps the library from filling its lines."""
    return "\b\nExamples:\n" + "\n".join(f"  {program()} {command}" for command in commands)


def exit_statuses() -> str:
    """Returns the table for `weir --help`."""
    rows = [f"  {status:<4} {meaning}" for status, meaning in EXIT_STATUSES]
    return "\b\nExit status of every command:\n" + "\n".join(rows)


class Commands(typer.Typer):
    """The list of commands that a module offers."""

    def add(self, name: str, *typed: str) -> Callable[[Function], Function]:
        """Registers a function as a command, whose help ends with examples to copy."""
        return self.command(name, epilog=examples(*typed))


def commands(help_: str | None = None) -> Commands:
    """Returns the commands of a module, which has help if it is a group."""
    return Commands(help=help_, no_args_is_help=True, rich_markup_mode=None)


def summary(command: str) -> str:
    """Returns the first sentence of a command's docstring without importing its module.

    A command's function has its name and an underscore. A group's sentence opens its module.
    """
    text = Path(__file__).with_name(f"{MODULES[command]}.py").read_text(encoding="utf-8")
    function = re.search(rf"^def {command}_\(.*", text, re.MULTILINE | re.DOTALL)
    found = re.search(r'"""(.+?\.)(?:\s|""")', function[0] if function else text, re.DOTALL)
    return found[1] if found else ""


def unknown(word: str) -> str:
    """Returns the sentence for a word that is no command."""
    if word.endswith((".yaml", ".yml")):
        return f"{word} is a file, not a command: {program()} run {word}"
    meant = nearest(word, list(MODULES), f"{program()} --help lists them")
    return f"'{word}' is not a command; {meant}"


# What typer's parser says of a value, and what we say.
WRONG = {
    r"is not a valid int\b.*": "is not a whole number",
    r"is not a valid float\b.*": "is not a number",
    r"is not in the range x>=": "is not at least ",
    r"is not in the range x<=": "is not at most ",
    r"is not in the range (\S+)<=x<=": r"is not a number from \1 to ",
}


def sentence(error: Any) -> str:
    """Returns the sentence for a usage error of typer's parser."""
    if type(error) is not typer.BadParameter or error.param is None:
        return str(error.format_message())
    said = error.message.rstrip(".")
    for theirs, ours in WRONG.items():
        said = re.sub(theirs, ours, said)
    name = max(error.param.opts, key=len)
    return f"{name if name.startswith('-') else name.upper()}: {said}"
