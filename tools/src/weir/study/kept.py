# SPDX-License-Identifier: BSD-3-Clause
"""The results of a study as its folder keeps them: results.json, or guests.json beside Linux.

Those of the full length have files of their own, results-full.json.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from weir.base import units
from weir.study.claim import Study

Kept = tuple[str, str, str, str]  # a row of a file: experiment, claim, value, verdict


class Made(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """The runs of a study at one scale, and those of its full length that are missing."""

    runs: int
    core_s: float  # of one core, without warm-ups
    bytes: int
    ns_per_packet: float | None = None  # costs.ns_per_packet
    missing: int = 0
    missing_s: tuple[float, float] = (0.0, 0.0)  # of one core, at least and at most
    cells: list[str] = []  # of those runs, if some are missing, for which a later run makes up
    guests: dict[str, str] = {}  # versions of the kernels and QUIC stacks of those runs, by name


class File(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """A file of results: how its rows were made, and those of each study of the folder."""

    command: str
    commit: str
    date: str
    rows: dict[str, list[Kept]]
    made: dict[str, Made] = {}


def file_of(study: Study, scale: str = "quick") -> Path:
    """Returns the file with a study's results."""
    assert study.folder is not None
    path = study.folder / study.results
    return path if scale == "quick" else path.with_stem(f"{path.stem}-{scale}")


def has(study: Study, scale: str = "quick") -> bool:
    """Is true of a study with results of a scale."""
    return study.folder is not None and file_of(study, scale).is_file()


def ns_per_packet(study: Study) -> float | None:
    """Returns what the runs of a study's results took per packet; None: no file says it."""
    for scale in ("full", "quick"):
        if has(study, scale):
            made = read(study, scale).made.get(study.name)
            if made is not None and made.ns_per_packet is not None:
                return made.ns_per_packet
    return None


def read(study: Study, scale: str = "quick") -> File:
    """Reads what was written last."""
    return msgspec.json.decode(file_of(study, scale).read_bytes(), type=File)


def part(study: Study, commit: str) -> tuple[list[Kept], Made | None]:
    """Returns what is kept of a part of the cells of the full length, if it is of this commit."""
    if has(study, "full"):
        file = read(study, "full")
        made = file.made.get(study.name)
        if file.commit == commit and made is not None and made.cells:
            return file.rows[study.name], made
    return [], None


def made_up(now: list[Kept], before: list[Kept]) -> list[Kept]:
    """Returns the rows of a run, those that it is missing as another one had them."""
    measured = {one[:2]: one for one in before}
    return [measured.get(one[:2], one) if one[2] == units.NONE else one for one in now]
