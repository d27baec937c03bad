# SPDX-License-Identifier: BSD-3-Clause
"""Finds studies by their folders: those that come with Weir, and a user's own.

A folder is a study when it has a study.yaml, whose claims are data (written.py), or a study.py that
makes them, as STUDY or STUDIES. The folder's name is the study's, with - for _.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from weir.base.errors import UserError, nearest
from weir.study import written
from weir.study.claim import OURS, Study, module_of

ALL = "all"  # the name of the studies with `with_all`
LINUX = "linux"  # has a command line of its own


def is_study(folder: Path) -> bool:
    """Is true of a folder that has claims."""
    return any((folder / name).is_file() for name in ("study.yaml", "study.py"))


def name_of(folder: Path) -> str:
    return folder.resolve().name.replace("_", "-")


@cache
def load(folder: Path) -> tuple[Study, ...]:
    """Reads the studies of a folder; there may be one for each control. UserError: it is none."""
    if (folder / "study.yaml").is_file():
        return (written.read(folder, name_of(folder)),)
    module = module_of(folder, "study")
    made = (getattr(module, "STUDIES", None), getattr(module, "STUDY", None))
    if not any(made):
        raise UserError(
            f"{folder}: it is no study: it has no study.yaml; weir new study NAME makes one"
        )
    return tuple(made[0] or (made[1],))


@cache
def ours() -> dict[str, tuple[Study, ...]]:
    loaded = {name_of(f): load(f) for f in sorted(OURS.iterdir()) if is_study(f)}
    each = [study for studies in loaded.values() for study in studies]
    found = {study.name: (study,) for study in each}
    return loaded | found | {ALL: tuple(study for study in each if study.with_all)}


def suites() -> list[str]:
    alone = {study.folder for study in ours()[ALL]}
    folders = [f for f in sorted(OURS.iterdir()) if (f / "results.json").exists()]
    return [name_of(folder) for folder in folders if folder not in alone]


def names() -> list[str]:
    return sorted([*ours(), LINUX])


def chosen(name: str) -> tuple[Study, ...]:
    """Finds the studies of a name or of a folder. UserError: it is neither."""
    own = OURS / name.replace("-", "_")
    if "/" not in name and is_study(own):  # no other one is read
        return tuple(study for study in load(own) if study.name == name) or load(own)
    if "/" in name or (name not in ours() and is_study(Path(name))):
        return load(Path(name))
    if name not in ours():
        listed = f"there are {', '.join(names()[:-1])} and {names()[-1]}, and folders of your own"
        raise UserError(f"'{name}' cannot be reproduced; {nearest(name, names(), listed)}")
    return ours()[name]
