# SPDX-License-Identifier: BSD-3-Clause
"""Tags and a note that a user gives a run: a file in its folder, which moves with it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from weir.analysis import folder
from weir.base import foreign
from weir.base.errors import UserError

FILE = "labels.json"
KEEP = "keep"  # a run with this tag is not removed
TAG = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,39}")
TAGS_MAX = 20
NOTE_MAX = 2000  # characters


class Labels(Struct, frozen=True):
    """Tags and a note that a user gave a run."""

    tags: tuple[Annotated[str, Meta(pattern=f"^{TAG.pattern}$")], ...] = ()
    note: str = ""


def read(run: Path) -> Labels:
    """Returns the labels of a run folder. UserError: its labels.json has another shape."""
    path = run / FILE
    return foreign.read_json(path, Labels) if path.exists() else Labels()


def tag(run: Path, tags: Iterable[str], remove: bool = False) -> Labels:
    """Adds tags to a run's labels or removes them, and returns the labels. UserError: it cannot."""
    given = tuple(tags)
    for one in given:
        if not TAG.fullmatch(one):
            raise UserError(
                f"'{one}' is no tag: a tag is a word of up to 40 letters, digits, '.', '_' and '-'"
            )
    before = of_run(run)
    kept = tuple(one for one in before.tags if one not in given)
    if remove and len(kept) + len(set(given)) != len(before.tags):
        missing = next(one for one in given if one not in before.tags)
        raise UserError(f"{run} has no tag '{missing}'", 1)
    wanted = kept if remove else tuple(dict.fromkeys((*before.tags, *given)))
    if len(wanted) > TAGS_MAX:
        raise UserError(f"{run} would have {len(wanted)} tags: at most {TAGS_MAX}")
    return write(run, msgspec.structs.replace(before, tags=wanted))


def note(run: Path, text: str) -> Labels:
    """Replaces a run's note, removes it if the text is empty, and returns the labels."""
    if len(text) > NOTE_MAX:
        raise UserError(f"a note has at most {NOTE_MAX} characters, not {len(text)}")
    return write(run, msgspec.structs.replace(of_run(run), note=text.strip()))


def of_run(run: Path) -> Labels:
    """Returns the labels of a run. UserError: it is no run folder."""
    folder.check(run)
    if not folder.is_run(run):
        raise UserError(f"{run}: not a run folder: no manifest.json in it")
    return read(run)


def write(run: Path, labels: Labels) -> Labels:
    folder.write_json(run / FILE, msgspec.to_builtins(labels))
    return labels


def newer(run: Path, report: Path) -> bool:
    """Returns whether a run was given labels after its report was written."""
    file = run / FILE
    return file.exists() and file.stat().st_mtime_ns > report.stat().st_mtime_ns
