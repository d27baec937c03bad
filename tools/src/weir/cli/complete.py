# SPDX-License-Identifier: BSD-3-Clause
"""Completions of arguments at the Tab key."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Literal

import typer
from typer import Argument
from typer.completion import get_completion_script  # type: ignore[attr-defined]

from weir.analysis.folder import is_run
from weir.base import configs as configs_module
from weir.base import programs
from weir.base.errors import UserError
from weir.cli.usage import COMPLETE, commands

app = commands()
Shell = Literal["bash", "zsh", "fish"]
ENTRIES_MAX = 2000  # of a folder; more are not looked through while somebody waits


@app.add("completion", "completion bash", "completion zsh > _weir")
def completion_(shell: Annotated[Shell, Argument(metavar="bash|zsh|fish")]) -> None:
    """Prints what a shell needs to complete commands.

    In bash: source <(weir completion bash).
    """
    print(get_completion_script(prog_name="weir", complete_var=COMPLETE, shell=shell))


def paths(wanted: Callable[[Path], bool]) -> Callable[[str], list[str]]:
    """Returns a completion of paths that are wanted, and of the folders on the way to them."""

    def offer(incomplete: str) -> list[str]:
        head, slash, tail = incomplete.rpartition("/")
        try:
            entries = sorted(Path(head + slash or ".").expanduser().iterdir())[:ENTRIES_MAX]
        except OSError:
            return []
        begun = [path for path in entries if path.name.startswith(tail)]
        shown = [path for path in begun if tail or not path.name.startswith(".")]
        found = [head + slash + path.name + "/" * (not wanted(path)) for path in shown
                 if wanted(path) or path.is_dir()]  # fmt: skip
        alone = len(found) == 1 and found[0].endswith("/")
        return (offer(found[0]) if alone else []) or found

    return offer


configs = paths(lambda path: path.suffix in (".yaml", ".yml"))
captures = paths(lambda path: path.suffix in (".pcap", ".pcapng", ".cap", ".gz", ".zst"))
runs = paths(is_run)


def keys(ctx: typer.Context) -> Iterator[str]:
    """Yields the keys of the config that was named, as -o has them: flows.0.count=."""
    import yaml

    try:
        argv = [str(programs.find_program("sim")), *named(ctx, "config")[:1], "--print-config"]
        done = subprocess.run(argv, capture_output=True, text=True, check=True)
        config = yaml.load(done.stdout, Loader=yaml.CBaseLoader)
    except (UserError, OSError, subprocess.CalledProcessError, yaml.YAMLError):
        return
    yield from (f"{key}=" for key, _ in configs_module.leaves(config))


def named(ctx: typer.Context, argument: str) -> list[str]:
    """Returns an argument's value, which is not parsed yet behind an option without its value."""
    given = ctx.params.get(argument)
    if not given:
        return list(ctx.args)
    return [str(one) for one in given] if isinstance(given, list | tuple) else [str(given)]
