# SPDX-License-Identifier: BSD-3-Clause
"""Replays a run's recorded arrivals in virtual time and compares decision by decision.

A run with `telemetry: {level: 3, arrivals: yes}` records in `arrivals.ring` what entered each path,
and in `packets.ring` what each stage did with it. weir-sim puts the arrivals through the same paths
again. Each stage then must have written the same records in the same order, bit for bit.

Departures are compared by packet: the recorded ones tell how late a packet left, which a replay
cannot know, and leave out what the port did not take.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from weir.analysis.folder import check, read_json
from weir.analysis.ring import Records, Ring, open_ring
from weir.analysis.run_summary import RunSummary, decode
from weir.base import programs
from weir.base.errors import UserError
from weir.base.foreign import open_regular
from weir.runner import session

EXIT = 255  # the stage of departures, UINT8_MAX in switch/live/departures.c
CHUNK = 1 << 20  # records compared in one go

Rows = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Difference:
    """The first place at which a stage's histories differ; None: that one has ended."""

    path: int
    stage: int
    recorded: np.void | None
    replayed: np.void | None

    @property
    def ts_ns(self) -> int:
        """Theoretical time of the earlier of the two."""
        return min(int(row["ts_ns"]) for row in (self.recorded, self.replayed) if row is not None)


@dataclass(frozen=True)
class Found:
    """Outcome of the comparison of a recording with its replay."""

    kinds: dict[int, str]  # names of events, by their number
    events: dict[str, int]  # recorded, by kind
    untaken: int  # packets that left a path and that the port did not take
    difference: Difference | None  # the first in theoretical time


def stages(records: Records) -> dict[int, Rows]:
    """Returns the rows of each stage in their order, by 256 * path + stage."""
    keys = records["path"].astype(np.uint16) * np.uint16(256) + records["stage"]
    present = np.flatnonzero(np.bincount(keys, minlength=1 << 16))
    return {int(key): np.flatnonzero(keys == key) for key in present}


def row(records: Records, rows: Rows, i: int) -> np.void | None:
    """Returns the i-th of a stage's records, if it has so many."""
    return records[rows[i]] if i < len(rows) else None


def first_unequal(recorded: Records, mine: Rows, replayed: Records, other: Rows) -> int | None:
    """Returns the first place at which two histories differ in any bit; None: nowhere."""
    both = min(len(mine), len(other))
    words = np.dtype((np.uint64, (recorded.dtype.itemsize // 8,)))
    for start in range(0, both, CHUNK):
        part = slice(start, min(start + CHUNK, both))
        ours = np.ascontiguousarray(recorded[mine[part]]).view(words)
        theirs = np.ascontiguousarray(replayed[other[part]]).view(words)
        unequal = np.flatnonzero((ours != theirs).any(axis=1))
        if len(unequal):
            return start + int(unequal[0])
    return both if len(mine) != len(other) else None


def unwrapped(ids: npt.NDArray[np.uint32]) -> npt.NDArray[np.int64]:
    """Returns packet numbers that count on beyond 2^32, from neighbours closer than half of it."""
    steps = np.diff(ids).view(np.int32).astype(np.int64)
    return np.concatenate((ids[:1].astype(np.int64), ids[0] + np.cumsum(steps)))


def compare_departures(recorded: Records, replayed: Records) -> tuple[int, np.void | None] | None:
    """Returns the first recorded departure that the replay lacks, and its record of that packet.

    Every recorded one must be there, with the same time, flow, size and ECN, in the same order.
    """
    if len(recorded) == 0:
        return None
    if len(replayed) == 0:
        return 0, None
    ids, theirs = unwrapped(recorded["pkt_id"]), unwrapped(replayed["pkt_id"])
    order = np.argsort(theirs, kind="stable")
    place = np.searchsorted(theirs, ids, sorter=order)
    at = order[np.minimum(place, len(theirs) - 1)]
    found = theirs[at] == ids
    same = found & (np.diff(at, prepend=-1) > 0)
    for name in ("ts_ns", "flow_id", "size_bytes", "ecn"):
        same &= recorded[name] == replayed[name][at]
    wrong = np.flatnonzero(~same)
    if len(wrong) == 0:
        return None
    first = int(wrong[0])
    return first, replayed[at[first]] if found[first] else None


def as_recorded(replayed: Records, dtype: np.dtype[np.void]) -> Records:
    """Returns the replayed records with the fields of those recorded by a build that may be older.

    A number that has no room there becomes the largest one, as the older build wrote it.
    """
    if replayed.dtype == dtype:
        return replayed
    made = np.zeros(len(replayed), dtype)
    for name in dtype.names or ():
        made[name] = np.minimum(replayed[name], np.iinfo(dtype[name]).max)
    return made


def compare(recorded: Records, replayed: Records, values: Mapping[str, int]) -> Found:
    """Compares two `packets` streams without gaps, of a run and of its replay.

    values: numbers of events by their names.
    """
    replayed = as_recorded(replayed, recorded.dtype)
    ours, theirs = stages(recorded), stages(replayed)
    none: Rows = np.empty(0, np.int64)
    differences = []
    untaken = 0
    for key in sorted(ours.keys() | theirs.keys()):
        path, stage = divmod(key, 256)
        mine, other = ours.get(key, none), theirs.get(key, none)
        if stage == EXIT:
            untaken += len(other) - len(mine)
            left = compare_departures(recorded[mine], replayed[other])
            if left is not None:
                here = row(recorded, mine, left[0])
                differences.append(Difference(path, stage, here, left[1]))
            continue
        i = first_unequal(recorded, mine, replayed, other)
        if i is not None:
            pair = row(recorded, mine, i), row(replayed, other, i)
            differences.append(Difference(path, stage, *pair))
    counts = np.bincount(recorded["event"], minlength=256)
    return Found(
        {number: name for name, number in values.items()},
        {name: int(counts[number]) for name, number in values.items()},
        untaken,
        min(differences, key=lambda d: d.ts_ns, default=None),
    )


def decision(
    at: np.void | None, other: np.void | None, kinds: Mapping[int, str], reasons: list[str]
) -> str:
    """Returns a record in words: what happened to which packet, and what differs from `other`."""
    if at is None:
        return "nothing more"
    event = int(at["event"])
    words = kind = kinds.get(event, f"event {event}")
    if kind == "drop":
        reason = int(at["reason"])
        words += f" ({reasons[reason] if reason < len(reasons) else reason})"
    words += f" of packet {at['pkt_id']} at {int(at['ts_ns']) / 1e9:.9f} s"
    if other is None or event != other["event"]:
        return words
    expected = {"ts_ns", "pkt_id", "event", "reason"} | (
        {"sojourn_ns"} if kind == "depart" else set()
    )
    unequal = [n for n in at.dtype.names or () if n not in expected and at[n] != other[n]]
    return words + "".join(f", {name} {at[name]}" for name in unequal)


def sentence(found: Found, summary: RunSummary) -> str:
    """Returns the outcome in words, for the user. `summary`: the replay's."""
    counts = ", ".join(f"{n:,} {name}" for name, n in found.events.items() if n)
    if found.difference is None:
        untaken = f" ({found.untaken:,} more were not taken by a port)" if found.untaken else ""
        return (
            f"identical: {summary.arrivals:,} arrivals and {summary.changes:,} parameter "
            f"changes replayed, the same decisions: {counts or 'none'}{untaken}"
        )
    d = found.difference
    names = summary.stages
    where = f"path {d.path}"
    if d.path < len(names):
        where, of_path = f"the exit of {names[d.path].path}", names[d.path].stages
        where = of_path[d.stage] if d.stage < len(of_path) else where
    reasons = summary.drop_reasons
    return (
        f"first difference in {where}: "
        f"recorded {decision(d.recorded, d.replayed, found.kinds, reasons)}; "
        f"replayed {decision(d.replayed, d.recorded, found.kinds, reasons)}"
    )


def holes(rings: list[Ring]) -> Iterator[str]:
    """Yields what a recording lacks, in words."""
    for ring in rings:
        if ring.lost:
            yield f"{ring.lost:,} of {ring.produced:,} records of {ring.path.name} were lost"
        elif not ring.header.closed:
            yield f"{ring.path.name} has no end: its writer was killed"


def open_recording(folder: Path) -> list[Ring]:
    """Opens arrivals and decisions of a run. UserError: there are none, or holes in them."""
    check(folder)
    open_regular(folder / "config.yaml").close()  # weir-sim would wait for a FIFO
    rings = []
    for name, wish in (("arrivals", "telemetry.arrivals=yes"), ("packets", "telemetry.level=3")):
        path = folder / f"{name}.ring"
        if not path.exists():
            raise UserError(f"{folder}: has no {path.name}: run it with -o {wish}")
        rings.append(open_ring(path))
    missing = "; ".join(holes(rings))
    if missing:
        raise UserError(
            f"{folder}: the recording has holes: {missing}; "
            "live.switch.ring_size makes room for more",
            1,
        )
    if not (rings[0].column("event") == rings[0].values("event").get("packet", -1)).any():
        raise UserError(f"{folder}: no packet arrived: there is nothing to replay", 1)
    for ring in rings:
        ring.check()
    first, second = (ring.header for ring in rings)
    if (first.run_id, first.config_hash) != (second.run_id, second.config_hash):
        raise UserError(f"{folder}: arrivals.ring and packets.ring are not of one run", 1)
    return rings


def replay(
    folder: Path, out: Path, on_progress: Callable[[session.Progress], None] | None = None
) -> tuple[Found, RunSummary]:
    """Replays a run into `out`; returns the comparison and the replay's summary.

    on_progress gets weir-sim's progress objects.
    UserError: there is no recording, or weir-sim did not take it.
    """
    recorded = open_recording(folder)[1]
    argv = [str(programs.find_program("sim")), str(folder / "config.yaml"), "--force"]
    argv += ["--replay", str(folder / "arrivals.ring"), "--out", str(out)]
    said = []
    with subprocess.Popen(
        [*argv, "--progress"], stderr=subprocess.PIPE, text=True, errors="replace"
    ) as program:
        assert program.stderr is not None
        for line in program.stderr:
            now = session.progress_object(line)
            if now is None:
                said.append(line)
            elif on_progress is not None:
                on_progress(now)
    if program.returncode != 0:
        sentence = "".join(said).strip().removeprefix("weir-sim: ")
        raise UserError(sentence or f"weir-sim ended with {program.returncode}", 1)
    file = out / "summary.json"
    summary = decode(read_json(file), str(file))
    replayed = open_ring(out / "packets.ring")
    return compare(recorded.records, replayed.records, recorded.values("event")), summary
