# SPDX-License-Identifier: BSD-3-Clause
"""A row of the league: what a control's runs of `weir evaluate` gave, and how the file keeps it.

results.json beside this file has the rows of Weir's own controls, of one seed. Everything that a
page shows is computed from them: nobody runs those again who adds a row of his own.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from weir.analysis import folder
from weir.base import units
from weir.base.errors import UserError
from weir.studies.evaluate import criteria
from weir.studies.evaluate.scene import CONFIG, WEB, Question, Scene
from weir.study.measures import jfi, queue_ms, utilisation
from weir.study.scenario import Measure, lost_percent, of_group, transfers_ms

if TYPE_CHECKING:
    from weir.analysis.folder import Run

BASE = "cubic"
KEPT = Path(__file__).with_name("results.json")
DIGITS = 5  # of values: results.json stays small

Values = list[float | None]  # None: not known, or without a bound


class Worst(Struct, omit_defaults=True):
    """The least use of a link that a search of some trials found."""

    harm: float  # part of the capacity that is unused
    benign: float  # without the network's changes
    network: dict[str, str]  # the changes, in words of the config
    file: str = ""  # the config that was found; not kept


Attacked = list[str]  # a known attack: its name and goal, the harm, and without it, for people


class Entry(Struct, omit_defaults=True):
    """The row of a control. scores: by scene and seed, in the order of `measures(scene)`."""

    name: str
    written: str  # as a command takes it
    summary: str
    scores: dict[str, list[Values]]
    digest: str = ""  # of the telemetry of all its runs
    reference: str = ""
    key: str = ""  # what it was measured from, to see that nothing has changed
    digests: dict[str, str] = {}  # of each run; not kept
    worst: Worst | None = None
    attacks: list[Attacked] = []
    instructions: float | None = None  # per ACK
    failed: dict[str, str] = {}  # why a run ended, by its name


class File(Struct):
    """The file of results: how its rows were made."""

    command: str
    commit: str
    date: str
    scenes: str  # digest of what was run and measured
    rows: list[Entry]


@cache
def questions() -> dict[Scene, list[Question]]:
    """Returns the scenes of `weir evaluate`, and of each what is judged there."""
    found: dict[Scene, list[Question]] = {}
    for criterion in criteria.CRITERIA:
        for row in criterion.rows:
            found.setdefault(row.scene, []).extend([row] if row.tolerance else [])
    return found


def alone(scene: Scene) -> bool:
    """Is true of a scene whose flows are all of the control and long."""
    return all("NEW" in flow and WEB not in flow for flow in scene.flows)


def alike(scene: Scene) -> bool:
    """Is true of several flows of the control that should share alike."""
    several = len(scene.flows) > 1 or "count:" in scene.flows[0]
    return alone(scene) and several and not any("base_rtt" in flow for flow in scene.flows)


def short(scene: Scene) -> bool:
    """Is true of a scene whose first group are short transfers."""
    return WEB in scene.flows[0] and scene.name != "cubic-long"


def partner(scene: Scene) -> int | None:
    """Returns the group of a standards-track control beside the new one; None: there is none."""
    beside = [n for n, flow in enumerate(scene.flows) if "NEW" not in flow and "cc: " in flow]
    return beside[0] if beside and not short(scene) else None


def measures(scene: Scene) -> list[Measure | None]:
    """Returns what a run of a scene is asked: six numbers, then those that have bounds.

    The six: use of the link (%), mean time in the queue (ms), packets dropped (%), Jain's index,
    median completion of short transfers (ms), and goodput of another control's flows (Mbit/s).
    """
    other = partner(scene)
    own: list[Measure | None] = (
        [utilisation, queue_ms, lost_percent] if alone(scene) else [None] * 3
    )
    return [
        *own,
        jfi if alike(scene) else None,
        transfers_ms("completion_p50_ns", 0) if short(scene) else None,
        None if other is None else of_group("goodput_bps", other, 1e-6),
        *(one.measure for one in questions()[scene]),
    ]


def measured(run: Run, scene: Scene) -> Values:
    """Returns the values of a run, rounded; None for one that has none or is not finite."""
    values = [None if one is None else units.known(one(run)) for one in measures(scene)]
    return [
        None if one is None or not math.isfinite(one) else float(f"{one:.{DIGITS}g}")
        for one in values
    ]


@cache
def scenes_digest() -> str:
    """Returns a digest of what is run and measured: with another one, kept rows are outdated."""
    text = [CONFIG.read_text(encoding="utf-8")]
    for scene, judged in questions().items():
        text += [repr(scene.setup("NEW", "").override), str(len(measures(scene)))]
        text += [f"{one.says} {one.beside} {one.low} {one.high}" for one in judged]
    return hashlib.sha256("\n".join(text).encode()).hexdigest()[:16]


def scored(
    folders: Mapping[str, Path], names: Mapping[Scene, list[str]]
) -> dict[str, list[Values]]:
    """Returns the values of all scenes; names: a scene's runs, one for each seed."""
    return {
        scene.name: [
            measured(folder.load(folders[name]), scene)
            if name in folders
            else [None] * len(measures(scene))
            for name in runs
        ]
        for scene, runs in names.items()
    }


def read(path: Path) -> Entry | None:
    """Returns a row that was written before; None: there is none, or of another form."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Entry)
    except (OSError, msgspec.DecodeError):
        return None


def kept(place: Path | None = None, scenes: str | None = None) -> File | None:
    """Returns the rows of Weir's own controls; None: they are of other scenes."""
    place = place or KEPT
    if not place.is_file():
        return None
    file = msgspec.json.decode(place.read_bytes(), type=File)
    return file if file.scenes == (scenes or scenes_digest()) else None


def without_folders(written: str) -> str:
    """Returns a control as a command takes it, with the names of its files alone."""
    return re.sub(r"(^|: *)[^{,:]*/", r"\1", written)


def write(file: File, place: Path | None = None) -> None:
    """Keeps rows, a line for each; without the digests of single runs."""
    rows = []
    for row in file.rows:
        row = msgspec.structs.replace(row, digests={}, key="", written=without_folders(row.written))
        row.worst = row.worst and msgspec.structs.replace(row.worst, file="")
        rows.append(row)
    head, _, _ = (
        msgspec.json.encode(msgspec.structs.replace(file, rows=[])).decode().rpartition("[]")
    )
    lines = ",\n".join(msgspec.json.encode(row).decode() for row in rows)
    folder.write_whole(place or KEPT, f"{head}[\n{lines}\n]}}\n")


def base_of(entries: Iterable[Entry]) -> Entry:
    """Returns the row that the others are compared with. UserError: it is missing."""
    for entry in entries:
        if entry.name == BASE:
            return entry
    raise UserError(f"league: the row of {BASE}, beside which the others stand, is missing", 1)


def judged(
    entry: Entry, base: Entry
) -> Iterator[tuple[Scene, Question, float | None, bool | None]]:
    """Yields each demand with its value, as a mean over seeds, and whether it holds; None: unknown.

    A value beside CUBIC's is divided by it, seed by seed.
    """
    for scene, asked in questions().items():
        first = len(measures(scene)) - len(asked)
        pairs = list(zip(entry.scores.get(scene.name, []), base.scores[scene.name], strict=False))
        for place, question in enumerate(asked, first):
            values = [over(a[place], b[place]) if question.beside else a[place] for a, b in pairs]
            known = [one for one in values if one is not None]
            mean = math.fsum(known) / len(known) if known and len(known) == len(values) else None
            held = None if mean is None else question.low <= mean <= question.high
            yield scene, question, mean, held


def over(own: float | None, other: float | None) -> float | None:
    """Returns a value over another; two that are both 0 are equal."""
    if own is None or other is None:
        return None
    if not other:
        return 1.0 if not own else math.inf
    return own / other
