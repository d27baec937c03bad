# SPDX-License-Identifier: BSD-3-Clause
"""The results of a study as its folder keeps them: results.json, or guests.json beside Linux."""

from __future__ import annotations

from pathlib import Path

import msgspec

from weir.study.claim import Study


class File(msgspec.Struct, forbid_unknown_fields=True):
    """A results.json: how its rows were made, and those of each study of the folder."""

    command: str
    commit: str
    date: str
    rows: dict[str, list[tuple[str, str, str, str]]]


def file_of(study: Study) -> Path:
    """Returns the file with a study's results."""
    assert study.folder is not None
    return study.folder / study.results


def read(study: Study) -> File:
    """Reads what was written last."""
    return msgspec.json.decode(file_of(study).read_bytes(), type=File)
