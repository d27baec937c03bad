# SPDX-License-Identifier: BSD-3-Clause
"""What a shell offers at the Tab key for the arguments that are no options."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import StrEnum
from pathlib import Path

from typer import Context

VARIABLE = "_WEIR_COMPLETE"  # set by a shell that asks
ENTRIES_MAX = 2000  # of a folder; more are not looked through while somebody waits


class Shell(StrEnum):
    """Those that the library has scripts for."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


def script(shell: Shell) -> str:
    """What the shell has to read."""
    from typer.completion import get_completion_script  # type: ignore[attr-defined]

    return get_completion_script(prog_name="weir", complete_var=VARIABLE, shell=shell.value)


def configs(incomplete: str) -> list[str]:
    """YAML files, and the folders on the way to them."""
    return walk(incomplete, lambda path: path.suffix in (".yaml", ".yml"))


def captures(incomplete: str) -> list[str]:
    """Captures, and the folders on the way to them."""
    endings = (".pcap", ".pcapng", ".cap", ".gz", ".zst")
    return walk(incomplete, lambda path: path.suffix in endings)


def runs(incomplete: str) -> list[str]:
    """Run folders, and the folders on the way to them."""
    from weir.analysis.folder import is_run

    return walk(incomplete, is_run)


def names(incomplete: str) -> list[str]:
    """What `weir list` has a page or a list of."""
    from weir.base import tables
    from weir.base.errors import UserError

    try:
        listed = tables.read()
    except (UserError, OSError, ValueError):
        return []  # nothing was built
    kinds = {kind: entries for kind, entries in listed.items() if kind != "unit"}
    return begun(incomplete, {*kinds, *(name for part in kinds.values() for name in part)})


def keys(ctx: Context, incomplete: str) -> list[str]:
    """The keys of the config that was named, as -o has them: flows.0.count=."""
    import subprocess

    import yaml

    from weir.base import configs as configs_module
    from weir.base import programs
    from weir.base.errors import UserError

    try:
        argv = [str(programs.find_program("sim")), *named(ctx, "config")[:1], "--print-config"]
        done = subprocess.run(argv, capture_output=True, text=True, check=True)
        config = yaml.load(done.stdout, Loader=yaml.CBaseLoader)
    except (UserError, OSError, subprocess.CalledProcessError, yaml.YAMLError):
        return []
    return begun(incomplete, {f"{key}=" for key, _ in configs_module.leaves(config)})


def named(ctx: Context, argument: str) -> list[str]:
    """What was given for an argument; behind an option without its value it is not parsed yet."""
    given = ctx.params.get(argument)
    if not given:
        return list(ctx.args)
    return [str(one) for one in given] if isinstance(given, list | tuple) else [str(given)]


def streams(ctx: Context, incomplete: str) -> list[str]:
    """Those that the run recorded."""
    return begun(
        incomplete,
        (path.stem for run in named(ctx, "run_folder")[:1] for path in Path(run).glob("*.ring")),
    )


def figures(ctx: Context, incomplete: str) -> list[str]:
    """Those that `weir plot RUN...` can write."""
    from weir.analysis import folder
    from weir.base.errors import UserError
    from weir.report import comparison, data, sections

    try:
        loaded = [folder.load(Path(path)) for path in named(ctx, "runs")]
        if len(loaded) == 1:
            drawn = sections.draw(data.read(loaded[0]))
        else:
            drawn = comparison.draw(comparison.read(loaded))
        return begun(incomplete, [one.name for one in drawn])
    except (UserError, OSError, ValueError):
        return []


def studies(incomplete: str) -> list[str]:
    """What `weir reproduce` knows."""
    from weir.study import find

    return begun(incomplete, find.names())


def formats(incomplete: str) -> list[str]:
    """What `weir export` writes."""
    from weir import export

    return begun(incomplete, export.FORMATS)


def orders(incomplete: str) -> list[str]:
    """What `weir ctl` does, and the parameters of the switch that runs."""
    from weir.base.errors import UserError
    from weir.live import client, ctl

    keys: list[str] = []
    try:
        with client.the_one(None, ctl.SWITCH) as program:
            keys = [f"{key}=" for key in ctl.parameters(program)]
    except (UserError, OSError, client.Ended):
        pass  # none runs, or several do
    return begun(incomplete, [*ctl.WORDS, *keys])


def begun(incomplete: str, words: Iterable[str]) -> list[str]:
    """The words that begin so."""
    return sorted(word for word in words if word.startswith(incomplete))


def walk(incomplete: str, wanted: Callable[[Path], bool]) -> list[str]:
    """Paths that begin so and are wanted, and folders; a single folder is opened."""
    head, _, tail = incomplete.rpartition("/")
    before = f"{head}/" if "/" in incomplete else ""
    try:
        entries = sorted(Path(before or ".").expanduser().iterdir())[:ENTRIES_MAX]
    except OSError:
        return []
    found = []
    for path in entries:
        if not path.name.startswith(tail) or (path.name.startswith(".") and not tail):
            continue
        if wanted(path):
            found.append(before + path.name)
        elif path.is_dir():
            found.append(f"{before}{path.name}/")
    if len(found) == 1 and found[0].endswith("/"):
        return walk(found[0], wanted) or found
    return found
