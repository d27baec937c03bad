# SPDX-License-Identifier: BSD-3-Clause
"""Removes run folders, and no other folder."""

from __future__ import annotations

import shutil
from contextlib import ExitStack
from pathlib import Path

from weir.analysis import folder, labels, listing
from weir.base import units
from weir.base.errors import UserError


def age_s(text: str) -> float:
    """Returns the seconds of a time with a unit, as configs write it: 30d, 2w, 12h.

    UserError: it is none.
    """
    found = units.config_time_ns(text, unit_required=True)
    if found is None:
        raise UserError(f"--older: '{text}' is not a time such as 30d, 2w or 12h")
    return found / 1e9


def why_not(path: Path) -> str | None:
    """Returns a sentence on why a folder is not removed, or None if it may go."""
    if path.is_symlink():
        return f"{path} is a link: remove it by its own name"
    if not path.is_dir():
        return f"{path}: no such run folder"
    if not folder.is_run(path):
        return f"{path} is not a run folder: no manifest.json in it"
    if Path.cwd().is_relative_to(path.resolve()):
        return f"{path} is the working directory, or above it"
    if (path / ".git").exists():
        return f"{path} is a git repository as well as a run folder"
    nested = next((run for child in children(path) for run in listing.find(child)), None)
    if nested is not None:
        return f"{path} has another run in it: {nested}"
    for run in (path, *listing.branches(path)):
        if labels.KEEP in labels.read(run).tags:
            return f"{run} has the tag '{labels.KEEP}'"
    return None


def children(path: Path) -> list[Path]:
    """Returns the folders in a run folder that are not part of the run."""
    own = (folder.RECEIVER, folder.BRANCHES, "replay")
    return [p for p in path.iterdir() if p.is_dir() and not p.is_symlink() and p.name not in own]


def size_bytes(path: Path) -> int:
    return sum(file.lstat().st_size for file in path.rglob("*") if not file.is_dir())


def remove(path: Path) -> None:
    """Removes a run folder. UserError: a program writes there, or why_not says why not."""
    refusal = why_not(path)
    if refusal is not None:
        raise UserError(f"{refusal}: it stays", 1)
    with ExitStack() as locks:
        for run in (path, *listing.branches(path)):
            locks.enter_context(folder.locked(run))
        shutil.rmtree(path)
