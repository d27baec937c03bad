# SPDX-License-Identifier: BSD-3-Clause
"""Offset and drift of a host's clock, from frames that pass it and another host.

Both captured them. With o(t) by how much the other's clock is ahead at time t of ours,

    a frame from us to them: their time - our time = o(t) + its delay >= o(t)
    a frame from them to us: their time - our time = o(t) - its delay <= o(t)

o is taken for a line: clocks drift steadily within a run. All lines that lie below the first points
and above the second are possible, and nothing else is known. The offset in the middle of the run
and the drift are those between the most extreme of them, and the error is how far these are: a
bound, not an estimate. For no frame is stamped after it left or before it arrived, and by how much
the clock that stamps may be from the kernel's each program says: so far the points are moved apart.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl

BINS = 1000  # of time; of each one only the frame with the least delay is looked at
FRAMES_MAX = 2_000_000  # of a capture that are read
BLOCK_PACKET, BLOCK_INTERFACE = 6, 1
INBOUND, OUTBOUND = 1, 2
Points = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Clock:
    """Theirs against ours: offset in the middle of the run, drift, and how far each may be off."""

    frames: int
    offset_utc_ns: int | None = None  # the middle, by our clock
    offset_ns: float | None = None
    offset_error_ns: float | None = None
    drift_ppm: float | None = None
    drift_error_ppm: float | None = None


@dataclass(frozen=True)
class Frame:
    """A frame that passed a port, in ns since 1970, and what it is known by."""

    ts_ns: int
    port: str
    direction: int
    key: bytes


def frames(path: Path) -> Iterator[Frame]:
    """Reads a capture of our own programs: pcapng, this machine's byte order, nanoseconds."""
    names: list[str] = []
    with path.open("rb") as file:
        for _ in range(FRAMES_MAX):
            head = file.read(8)
            if len(head) < 8:
                return
            kind, size = struct.unpack("<II", head)
            body = file.read(size - 8)
            if len(body) < size - 8:
                return
            if kind == BLOCK_INTERFACE:
                names.append(option(body, 8, 2).decode(errors="replace"))
            elif kind == BLOCK_PACKET:
                number, high, low, captured = struct.unpack_from("<IIII", body)
                flags = option(body, 20 + (captured + 3) // 4 * 4, 2)
                direction = flags[0] & 3 if flags else 0
                if key := identity(body[20 : 20 + captured]):
                    yield Frame(high << 32 | low, names[number], direction, key)


def option(body: bytes, at: int, code: int) -> bytes:
    """Returns the value of an option of a block, empty if the block lacks it."""
    while at + 4 <= len(body) - 4:
        found, size = struct.unpack_from("<HH", body, at)
        if found == code:
            return body[at + 4 : at + 4 + size]
        if found == 0:
            break
        at += 4 + (size + 3) // 4 * 4
    return b""


def identity(frame: bytes) -> bytes:
    """Returns what no hop changes of a frame: IP without ECN, TTL, checksum, and what follows."""
    if frame[12:14] == b"\x08\x00":
        kept = frame[16:22] + frame[23:24] + frame[26:96]
    elif frame[12:14] == b"\x86\xdd":
        kept = frame[16:21] + frame[22:116]
    else:
        return b""
    return hashlib.blake2b(kept, digest_size=12).digest()


def once(path: Path, port: str, direction: int) -> pl.DataFrame:
    """Returns times of frames that passed a port once; others cannot be told apart."""
    here = (f for f in frames(path) if (f.port, f.direction) == (port, direction))
    rows = [(frame.key, frame.ts_ns) for frame in here]
    schema = {"key": pl.Binary, "ts_ns": pl.Int64}
    return pl.DataFrame(rows, schema, orient="row").unique("key", keep="none", maintain_order=True)


def measure(ours: Path, our_port: str, theirs: Path, their_port: str, stamps_ns: float) -> Clock:
    """Measures their clock against ours, from two captures and the ports between them.

    stamps_ns: how far both programs' stamps together may be from their kernels' clocks.
    """
    above = pairs(once(ours, our_port, OUTBOUND), once(theirs, their_port, INBOUND))
    below = pairs(once(ours, our_port, INBOUND), once(theirs, their_port, OUTBOUND))
    return between(above, below, stamps_ns)


def pairs(ours: pl.DataFrame, theirs: pl.DataFrame) -> Points:
    """Returns our time and how much later theirs was, of each frame that both have."""
    both = ours.join(theirs, on="key", maintain_order="left")
    return both.select("ts_ns", later=pl.col("ts_ns_right") - pl.col("ts_ns")).to_numpy()


def between(above: Points, below: Points, stamps_ns: float = 0) -> Clock:
    """Bounds the lines that lie below all points of the one and above all of the other.

    Each point may be off by stamps_ns.
    """
    count = len(above) + len(below)
    if len(above) < 2 or len(below) < 2:
        return Clock(count)
    first, last = (f(f(above[:, 0]), f(below[:, 0])) for f in (min, max))
    middle, base = (int(first) + int(last)) // 2, int(np.median(above[:, 1]))
    upper = least((above - [middle, base - stamps_ns]).astype(float))
    lower = least((below - [middle, base + stamps_ns]) * [1.0, -1.0])
    half = max(float(last - first) / 2, 1.0)
    ends = extremes(upper / [half, 1], lower / [half, 1])
    if ends is None:
        return Clock(count)
    offset, drift = ends.mean(axis=0)
    error, drift_error = np.ptp(ends, axis=0) / 2
    ppm = 1e6 / half
    return Clock(count, middle, base + offset, error, drift * ppm, drift_error * ppm)


def least(points: Points) -> Points:
    """Returns the least point of each bin of time."""
    times = points[:, 0]
    width = max(float(np.ptp(times)), 1.0) / BINS
    bins = ((times - times.min()) / width).astype(int)
    order = np.lexsort((points[:, 1], bins))
    _, firsts = np.unique(bins[order], return_index=True)
    found: Points = points[order][firsts]
    return found


def extremes(above: Points, below: Points) -> Points | None:
    """Returns the largest and the least (offset, slope) of lines, or None if there is no line.

    They lie below the points `above`, and above the points `below`, whose sign is turned.
    """
    from scipy.optimize import linprog

    sides = np.concatenate(
        [np.insert(above[:, :1], 0, 1, axis=1), -np.insert(below[:, :1], 0, 1, axis=1)]
    )
    limits = np.concatenate([above[:, 1], below[:, 1]])
    ends = []
    for sign in (-1, 1):
        goals = sign * np.eye(2)
        found = [linprog(goal, sides, limits, bounds=(None, None)) for goal in goals]
        if any(not one.success for one in found):
            return None
        ends.append([one.x[place] for place, one in enumerate(found)])
    return np.array(ends)
