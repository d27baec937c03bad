# SPDX-License-Identifier: BSD-3-Clause
"""The header page of a ring or a telemetry file: counters, clock and the schema of its records.

The contract with the writer is `common/telemetry/telemetry.h`. For the counters, at every moment::

    records + lost == produced        where records = written slots - gap records
"""

from __future__ import annotations

import mmap
import os
import struct
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

import numpy as np

from weir.base.errors import UserError

MAGIC = b"WEIRTEL1"
VERSION = 3  # TEL_VERSION of common/telemetry/telemetry.h
ENDIAN = 0x01020304
HEADER_SIZE = 4096
NO_FLOW = 2**32 - 1  # a flow_id: none; TEL_NO_FLOW
NO_LINK = 255  # a `link` field: none; STAGE_NO_LINK of switch/stage.h

# struct tel_header; the positions of the counters are in words of eight bytes.
_HEADER = struct.Struct("<8sIHHIIQQQQQQ32sIIII")
PUBLISHED = 128 // 8
EPOCHS = 8
EPOCH = 384 // 8
_CLOSED = 392 // 8
_TRIES = 1_000_000
# Exceptions that numpy raises for a dtype that is none.
_DAMAGED = (ValueError, TypeError, OverflowError, SyntaxError, RecursionError)


class RingError(UserError):
    """A file that is no ring; the text is a sentence that starts with the path."""

    def __init__(self, sentence: str) -> None:
        super().__init__(sentence, 1)


@dataclass(frozen=True)
class Counters:
    """A consistent set: `head == written - gaps + lost`."""

    head: int  # records produced, lost ones included
    written: int  # slots: records and gap records
    gaps: int  # gap records
    lost: int  # records lost, whether or not a gap record says so


@dataclass(frozen=True)
class Field:
    """A field of a record."""

    name: str
    dtype: str
    offset: int  # bytes
    unit: str
    meaning: str
    values: Mapping[str, int] = field(default_factory=dict)  # by name, if its numbers have names
    unknown: int | None = None  # the number that says that it is not known; frames have null there


@dataclass(frozen=True)
class Observer:
    """A discipline, stage or congestion control that observes numbers of its own."""

    number: int  # `detail` of its events
    name: str
    observed: tuple[str, ...]  # names of its numbers; they end in their unit


@dataclass(frozen=True)
class Schema:
    """The schema that the header embeds."""

    stream: str
    record_size: int  # bytes
    fields: tuple[Field, ...]
    observers: tuple[Observer, ...] = ()

    @property
    def dtype(self) -> np.dtype[np.void]:
        """The structured dtype of a record."""
        return np.dtype(
            {
                "names": [f.name for f in self.fields],
                "formats": [f.dtype for f in self.fields],
                "offsets": [f.offset for f in self.fields],
                "itemsize": self.record_size,
            }
        )


@dataclass(frozen=True)
class Header:
    """The header page, as it was when it was read."""

    capacity: int  # records; 0: a file
    tsc_hz: int  # 0 in virtual time
    utc_start_ns: int  # UTC at ts_ns == 0; 0 in virtual time
    seed: int
    config_hash: int
    run_id: str
    virtual_time: bool
    writer_pid: int  # 0 in virtual time
    counters: Counters
    closed: bool  # the writer closed it; False after a crash


def fence() -> None:
    """Orders accesses to shared memory: those before it are over before those after it begin.

    A lock's release waits for all that precedes it, all that follows waits for its acquire, and on
    x86-64 and arm64 an acquire does not overtake a release.
    """
    lock = threading.Lock()
    lock.acquire()
    lock.release()
    lock.acquire()


def read_counters(words: memoryview, path: Path) -> tuple[Counters, bool]:
    """Reads the counters and whether the writer has closed, from a header page as words.

    The set of epoch e is at place e % 8; it holds as long as the epoch has moved on by at most six.
    """
    for _ in range(_TRIES):
        closed = words[_CLOSED] != 0  # first: what follows is final then
        fence()
        before = words[EPOCH]
        fence()
        place = PUBLISHED + 4 * (before % EPOCHS)
        head, written, gaps, lost = words[place : place + 4].tolist()
        fence()
        if 0 <= words[EPOCH] - before <= EPOCHS - 2:
            return Counters(head, written, gaps, lost), closed
    raise RingError(f"{path}: its counters never stand still")


def _parse_schema(text: bytes, path: Path) -> Schema:
    import msgspec  # tens of milliseconds, which most commands have no use for

    try:
        schema = msgspec.json.decode(text, type=Schema)
        dtype = schema.dtype
    except (msgspec.MsgspecError, *_DAMAGED) as e:
        raise RingError(f"{path}: its schema cannot be read ({e})") from e
    if (
        not 16 <= dtype.itemsize <= HEADER_SIZE
        or dtype.hasobject
        or any(f.offset < 0 for f in schema.fields)
    ):
        raise RingError(f"{path}: its schema cannot be read (no record of numbers)")
    return schema


def parse_header(page: mmap.mmap, path: Path) -> tuple[Header, Schema]:
    """Reads a header page and the schema in it. RingError: it is none, or a damaged one."""
    head = _HEADER.unpack_from(page)
    magic, endian, version, header_size, record_size, _stream, capacity = head[:7]
    if magic != MAGIC:
        raise RingError(f"{path}: not a ring (it does not start with {MAGIC.decode()})")
    if endian != ENDIAN:
        raise RingError(f"{path}: written on a machine of the other byte order")
    if version != VERSION:
        raise RingError(f"{path}: of format version {version}; this reader wants {VERSION}")
    tsc_hz, _tsc_start, utc_start_ns, seed, config_hash, run_id, virtual_time = head[7:14]
    schema_offset, schema_size, writer_pid = head[14:]
    if header_size != HEADER_SIZE or schema_offset + schema_size > HEADER_SIZE:
        raise RingError(f"{path}: its schema does not fit its header page")
    schema = _parse_schema(page[schema_offset : schema_offset + schema_size], path)
    if schema.record_size != record_size:
        raise RingError(
            f"{path}: its header says {record_size} bytes per record, "
            f"its schema {schema.record_size}"
        )
    with memoryview(page) as raw, raw.cast("Q") as words:
        counters, closed = read_counters(words, path)
    header = Header(
        capacity=capacity,
        tsc_hz=tsc_hz,
        utc_start_ns=utc_start_ns,
        seed=seed,
        config_hash=config_hash,
        run_id=run_id.split(b"\0")[0].decode("ascii", "replace"),
        virtual_time=virtual_time != 0,
        writer_pid=writer_pid,
        counters=counters,
        closed=closed,
    )
    return header, schema


def map_page(f: BinaryIO, path: Path) -> mmap.mmap:
    """Maps the header page of an open file. RingError: the file is shorter."""
    size = os.fstat(f.fileno()).st_size
    if size < HEADER_SIZE:
        raise RingError(f"{path}: not a ring (its {size} bytes are less than a header page)")
    return mmap.mmap(f.fileno(), HEADER_SIZE, access=mmap.ACCESS_READ)
