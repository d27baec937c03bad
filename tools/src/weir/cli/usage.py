# SPDX-License-Identifier: BSD-3-Clause
"""What stands at the end of every --help: examples; and the exit statuses of all commands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weir.base.errors import nearest
from weir.base.typed import program

EXIT_STATUSES = (
    (0, "done"),
    (1, "failed: a run or part of it, a comparison, a file that is not writable"),
    (2, "refused: the command line, a config, a folder without a run or in use"),
    (129, "ended early by SIGHUP (a lost session); a run's folder is complete"),
    (130, "ended early by Ctrl-C (SIGINT), likewise"),
    (137, "a program was killed (SIGKILL, as when memory runs out)"),
    (143, "ended early by SIGTERM, likewise"),
)
SUMMARY = 62  # characters of a command in the list of --help, for 80 columns
# The commands as --help has them: in each group the most used first.
GROUPS = {
    "Run": ("run", "init", "list", "probe", "replay"),
    "See what came out": (
        *("summary", "report", "open", "compare", "plot", "ls", "rm", "tag", "note"),
        *("export", "import", "qlog", "pack"),
    ),
    "Many runs": ("sweep", "table", "diff", "reproduce", "attack", "study"),
    "Captures and recorded links": ("pcap", "trace"),
    "A control of your own": ("new", "check", "evaluate", "schema"),
    "Live": ("shell", "top", "ctl"),
    "This machine": ("doctor", "setup", "guests", "bench", "completion", "docs"),
}
CLUSTER = (
    "Where it runs: tcp://host:port, a Dask scheduler (was --scheduler); ssh:host,host; slurm; pbs."
    " [this machine]"
)


def examples(*commands: str) -> str:
    r"""An epilog with commands to copy. (\b: the library does not fill these lines.)"""
    return "\b\nExamples:\n" + "\n".join(f"  {program()} {command}" for command in commands)


def exit_statuses() -> str:
    """The table for `weir --help`."""
    rows = [f"  {status:<4} {meaning}" for status, meaning in EXIT_STATUSES]
    return "\b\nExit status of every command:\n" + "\n".join(rows)


def unknown(word: str, commands: Sequence[str]) -> str:
    """The sentence for a word that is no command."""
    if word.endswith((".yaml", ".yml")):
        return f"{word} is a file, not a command: {program()} run {word}"
    meant = nearest(word, commands, f"{program()} --help lists them")
    return f"'{word}' is not a command; {meant}"


# What is wrong with a value, by the name that pydantic has for it.
WRONG = {
    "int_parsing": "'{input}' is not a whole number",
    "float_parsing": "'{input}' is not a number",
    "greater_than_equal": "{input} is not at least {ge}",
    "less_than_equal": "{input} is not at most {le}",
    "value_error": "{error}",
}


def sentence(error: Any) -> str:
    """The sentence for a usage error of typer's parser."""
    said: str = error.format_message()
    if not hasattr(error.__cause__, "errors"):
        return said
    found = error.__cause__.errors()[0]
    if found["type"] not in WRONG:
        return said
    name = max(error.param.opts, key=len)
    wrong = WRONG[found["type"]].format(input=found["input"], **found.get("ctx", {}))
    return f"{name if name.startswith('-') else name.upper()}: {wrong.rstrip('.')}"
