# SPDX-License-Identifier: BSD-3-Clause
"""Reads telemetry: `.ring` files, growing files and rings in shared memory.

A file is a header page of 4096 bytes, which holds its own schema, followed by records of one
fixed size; `numpy.memmap(path, dtype, offset=4096)` is the whole reader. The contract with the
writer is `common/telemetry/telemetry.h`. numpy is the only dependency; polars is loaded when asked
for.

A slot holds a record or a gap record. A gap record has `ts_ns == GAP` and, in the next eight
bytes, the number of records lost there. For the counters of a header, at every moment::

    records + lost == produced        where records = written slots - gap records

On x86-64 a store is seen by other processes in program order, which is all that `Consumer` asks
of the machine. An interpreter on a processor with a weaker order would need fences.
"""

from __future__ import annotations

import fcntl
import json
import mmap
import os
import struct
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
import numpy.typing as npt

from weir.analysis import format_1

if TYPE_CHECKING:
    import polars as pl

MAGIC = b"WEIRTEL1"
VERSIONS = (1, 2)  # 1: without names of values
ENDIAN = 0x01020304
HEADER_SIZE = 4096
GAP = 2**64 - 1
NO_FLOW = 2**32 - 1

# struct tel_header; the positions of the counters are in words of eight bytes.
_HEADER = struct.Struct("<8sIHHIIQQQQQQ32sIIII")
_PUBLISHED = 128 // 8
_EPOCHS = 8
_EPOCH = 384 // 8
_CLOSED = 392 // 8
_TAIL = 448 // 8
_TRIES = 1_000_000
_SCAN = 1 << 20  # slots looked at in one go
# What JSON of any other kind than ours, and numpy with it, may raise.
_DAMAGED = (
    ValueError, KeyError, TypeError, AttributeError, OverflowError, SyntaxError, RecursionError,
)  # fmt: skip

Records = npt.NDArray[np.void]


class RingError(Exception):
    """One sentence for the user, starting with the path."""


@dataclass(frozen=True)
class Counters:
    """A consistent set: `head == written - gaps + lost`."""

    head: int  # records produced, lost ones included
    written: int  # slots: records and gap records
    gaps: int  # gap records
    lost: int  # records lost, whether or not a gap record says so


@dataclass(frozen=True)
class Field:
    """One field of a record."""

    name: str
    dtype: str
    offset: int  # bytes
    unit: str
    meaning: str
    values: Mapping[str, int] = field(default_factory=dict)  # by name, if its numbers have names


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

    version: int
    record_size: int  # bytes
    stream: str
    capacity: int  # records; 0: a file
    tsc_hz: int  # 0 in virtual time
    tsc_start: int
    utc_start_ns: int  # UTC at ts_ns == 0; 0 in virtual time
    seed: int
    config_hash: int
    run_id: str
    virtual_time: bool
    writer_pid: int  # 0 in virtual time
    counters: Counters
    closed: bool  # the writer closed it; False after a crash


def _read_counters(words: memoryview, path: Path) -> tuple[Counters, bool]:
    """Reads the counters and whether the writer has closed, from a header page as words.

    The set of epoch e is at place e % 8; it holds as long as the epoch has moved on by at most six.
    """
    for _ in range(_TRIES):
        closed = words[_CLOSED] != 0  # first: what follows is final then
        before = words[_EPOCH]
        place = _PUBLISHED + 4 * (before % _EPOCHS)
        head, written, gaps, lost = words[place : place + 4].tolist()
        if 0 <= words[_EPOCH] - before <= _EPOCHS - 2:
            return Counters(head, written, gaps, lost), closed
    raise RingError(f"{path}: its counters never stand still")


def _parse_field(text: dict[str, Any], version: int) -> Field:
    values = text.get("values", {}) if version > 1 else format_1.VALUES.get(text["unit"], {})
    return Field(
        text["name"],
        text["dtype"],
        text["offset"],
        text["unit"],
        text["meaning"],
        {str(name): int(number) for name, number in values.items()},
    )


def _parse_observers(schema: dict[str, Any], version: int) -> tuple[Observer, ...]:
    if version == 1:
        older = format_1.OBSERVERS.get(schema["stream"], {})
        return tuple(Observer(i, *named) for i, named in enumerate(older.items()))
    return tuple(
        Observer(int(o["number"]), str(o["name"]), tuple(map(str, o["observed"])))
        for o in schema.get("observers", [])
    )


def _parse_schema(text: bytes, version: int, path: Path) -> Schema:
    try:
        parsed = json.loads(text)
        fields = tuple(_parse_field(f, version) for f in parsed["fields"])
        observers = _parse_observers(parsed, version)
        schema = Schema(str(parsed["stream"]), int(parsed["record_size"]), fields, observers)
        dtype = schema.dtype
    except _DAMAGED as e:
        raise RingError(f"{path}: its schema cannot be read ({e})") from e
    if dtype.itemsize < 16 or dtype.hasobject or any(f.offset < 0 for f in fields):
        raise RingError(f"{path}: its schema cannot be read (no record of numbers)")
    return schema


def _parse_header(page: mmap.mmap, path: Path) -> tuple[Header, Schema]:
    (magic, endian, version, header_size, record_size, _stream, capacity) = _HEADER.unpack_from(
        page
    )[:7]
    if magic != MAGIC:
        raise RingError(f"{path}: not a ring (it does not start with {MAGIC.decode()})")
    if endian != ENDIAN:
        raise RingError(f"{path}: written on a machine of the other byte order")
    if version not in VERSIONS:
        known = " and ".join(map(str, VERSIONS))
        raise RingError(f"{path}: of format version {version}; this reader knows {known}")
    (tsc_hz, tsc_start, utc_start_ns, seed, config_hash, run_id, virtual_time, *rest) = (
        _HEADER.unpack_from(page)[7:]
    )
    schema_offset, schema_size, writer_pid = rest
    if header_size != HEADER_SIZE or schema_offset + schema_size > HEADER_SIZE:
        raise RingError(f"{path}: its schema does not fit its header page")
    schema = _parse_schema(page[schema_offset : schema_offset + schema_size], version, path)
    if schema.record_size != record_size:
        raise RingError(
            f"{path}: its header says {record_size} bytes per record, "
            f"its schema {schema.record_size}"
        )
    with memoryview(page) as raw, raw.cast("Q") as words:
        counters, closed = _read_counters(words, path)
    header = Header(
        version=version,
        record_size=record_size,
        stream=schema.stream,
        capacity=capacity,
        tsc_hz=tsc_hz,
        tsc_start=tsc_start,
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


def _map_page(f: BinaryIO, path: Path) -> mmap.mmap:
    size = os.fstat(f.fileno()).st_size
    if size < HEADER_SIZE:
        raise RingError(f"{path}: not a ring (its {size} bytes are less than a header page)")
    return mmap.mmap(f.fileno(), HEADER_SIZE, access=mmap.ACCESS_READ)


def _gap_view(records: Records) -> Records:
    """The same memory, shape (n,), as the first two words of each slot."""
    return records.view(
        np.dtype(
            {
                "names": ["ts_ns", "lost"],
                "formats": ["<u8", "<u8"],
                "offsets": [0, 8],
                "itemsize": records.dtype.itemsize,
            }
        )
    )


def find_gaps(records: Records) -> Records:
    """The gap records among `records`, shape (n,): fields `index` (row) and `lost` (records)."""
    view = _gap_view(np.ascontiguousarray(records))
    parts = [
        start + np.flatnonzero(view["ts_ns"][start : start + _SCAN] == GAP)
        for start in range(0, len(view), _SCAN)
    ]
    rows = np.concatenate(parts) if parts else np.empty(0, np.int64)
    gaps = np.empty(len(rows), [("index", "<i8"), ("lost", "<u8")])
    gaps["index"] = rows
    gaps["lost"] = view["lost"][rows]
    return gaps


class Ring:
    """A `.ring` file, as far as it was written when it was opened.

    Nothing is read before it is asked for. The file may still be growing: open it again to see
    more, or use `tail`.
    """

    def __init__(self, path: Path, header: Header, schema: Schema, size: int) -> None:
        self.path = path
        self.header = header
        self.schema = schema
        self.dtype = schema.dtype
        whole = (size - HEADER_SIZE) // header.record_size
        self._slots = min(header.counters.written, whole)

    def __len__(self) -> int:
        return self._slots

    def __repr__(self) -> str:
        return f"<Ring {self.path} {self.schema.stream}: {self._slots} slots, {self.lost} lost>"

    @cached_property
    def records(self) -> Records:
        """All slots, shape (n,), dtype `dtype`, mapped and not copied; gap records included.

        Only whole records that the header counts.
        """
        if self._slots == 0:
            return np.empty(0, self.dtype)
        return np.memmap(
            self.path, dtype=self.dtype, mode="r", offset=HEADER_SIZE, shape=(self._slots,)
        )

    @property
    def produced(self) -> int:
        """Records the writer produced, lost ones included."""
        return self.header.counters.head

    @property
    def lost(self) -> int:
        """Records that did not make it into the file."""
        return self.header.counters.lost

    @cached_property
    def gaps(self) -> Records:
        """The gap records, shape (g,): `index` (row in `records`) and `lost` (records)."""
        return find_gaps(self.records)

    @cached_property
    def _without_gaps(self) -> npt.NDArray[np.bool_] | None:
        """Rows of `records` that are records; None: all are."""
        if self.header.counters.gaps == 0:
            return None
        keep = np.ones(self._slots, np.bool_)
        keep[self.gaps["index"]] = False
        return keep

    def values(self, name: str) -> Mapping[str, int]:
        """The numbers of a field by their names; empty if they have none, or no such field."""
        return next((f.values for f in self.schema.fields if f.name == name), {})

    def column(self, name: str) -> npt.NDArray[Any]:
        """One field of the records, shape (n,), without the gap records.

        Strided and not copied if there are no gaps. RingError: there is no such field.
        """
        if name not in (self.dtype.names or ()):
            has = ", ".join(self.dtype.names or ())
            raise RingError(f"{self.path}: has no field {name!r}, only {has}")
        column: npt.NDArray[Any] = self.records[name]
        return column if self._without_gaps is None else column[self._without_gaps]

    def to_polars(self, columns: Sequence[str] | None = None) -> pl.DataFrame:
        """The records without the gap records as a frame, all columns or those named; copies."""
        import polars as pl

        names = columns if columns is not None else self.dtype.names or ()
        return pl.DataFrame({name: np.ascontiguousarray(self.column(name)) for name in names})

    def check_length(self) -> None:
        """Proves that the file is as long as its header says. RingError: it was truncated."""
        written = self.header.counters.written
        if self._slots < written:
            raise RingError(f"{self.path}: truncated: {self._slots} of {written} records are there")

    def check(self) -> None:
        """Proves that every record is there or counted. RingError says what is wrong.

        Reads the whole file once.
        """
        c = self.header.counters
        self.check_length()
        if len(self.gaps) != c.gaps:
            raise RingError(
                f"{self.path}: has {len(self.gaps)} gap records, its header says {c.gaps}"
            )
        records = self._slots - len(self.gaps)
        if records + c.lost != c.head:
            raise RingError(
                f"{self.path}: {records} records and {c.lost} lost ones are not the "
                f"{c.head} that were produced"
            )
        reported = int(self.gaps["lost"].sum(dtype=np.uint64))
        if reported > c.lost:
            raise RingError(
                f"{self.path}: its gap records report {reported} lost records, "
                f"its header only {c.lost}"
            )


def open_ring(path: str | os.PathLike[str]) -> Ring:
    """Opens a `.ring` file.

    RingError: it is missing, not a ring, of another version or byte order, or a ring in shared
    memory. A file shorter than its header says opens with what is there; `check` complains.
    """
    path = Path(path)
    try:
        with path.open("rb") as f:
            with _map_page(f, path) as page:
                header, schema = _parse_header(page, path)
            size = os.fstat(f.fileno()).st_size  # after the counters: they never count too much
    except OSError as e:
        raise RingError(f"{path}: {e.strerror}") from e
    if header.capacity != 0:
        raise RingError(f"{path}: a ring in shared memory, not a file; attach a Consumer")
    return Ring(path, header, schema, size)


def tail(path: str | os.PathLike[str], poll: float = 0.1) -> Iterator[Records]:
    """Follows a growing file: yields its slots as they appear, shape (n,), gap records included.

    Looks every `poll` seconds and yields an empty array when there is nothing new, so that the
    caller stays in control; ends when the writer has closed the file. A writer that was killed
    never closes: whether it is worth waiting is the caller's decision. Waits for a file that does
    not exist yet, yielding arrays without fields. RingError: not a ring.
    """
    path = Path(path)
    while not path.exists() or path.stat().st_size < HEADER_SIZE:
        yield np.empty(0, np.dtype([]))
        time.sleep(poll)
    dtype = open_ring(path).dtype
    seen = 0
    with (
        path.open("rb") as f,
        _map_page(f, path) as page,
        memoryview(page) as raw,
        raw.cast("Q") as words,
    ):
        while True:
            counters, closed = _read_counters(words, path)
            whole = (os.fstat(f.fileno()).st_size - HEADER_SIZE) // dtype.itemsize
            count = min(counters.written, whole) - seen
            while count > 0:
                f.seek(HEADER_SIZE + seen * dtype.itemsize)
                data = f.read(min(count, _SCAN) * dtype.itemsize)
                got = np.frombuffer(data[: len(data) // dtype.itemsize * dtype.itemsize], dtype)
                if len(got) == 0:
                    break
                seen += len(got)
                count -= len(got)
                yield got
            if closed:
                return
            yield np.empty(0, dtype)
            time.sleep(poll)


class Consumer:
    """The single consumer of a ring in shared memory.

    It may die at any time and be started again: what it had not consumed is still there, and what
    the full ring dropped meanwhile is counted. A caller that must not lose what it has read but not
    yet stored uses `peek`, stores, and then calls `advance`; `tail` says how many slots were
    consumed since the ring was made.

    RingError: no ring there, or another consumer is attached (a lock on the file; it goes away
    with its process).
    """

    def __init__(self, shm_path: str | os.PathLike[str]) -> None:
        self.path = Path(shm_path)
        try:
            with self.path.open("r+b") as f:
                with _map_page(f, self.path) as page:
                    self.header, self.schema = _parse_header(page, self.path)
                size = os.fstat(f.fileno()).st_size
                capacity, self.dtype = self.header.capacity, self.schema.dtype
                if capacity == 0:
                    raise RingError(f"{self.path}: a file, not a ring in shared memory")
                if size < HEADER_SIZE + capacity * self.dtype.itemsize:
                    raise RingError(f"{self.path}: truncated: no room for {capacity} records")
                self._lock = os.dup(f.fileno())
                try:
                    fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except OSError:
                    os.close(self._lock)
                    raise RingError(f"{self.path}: another consumer is attached") from None
                self._map = mmap.mmap(f.fileno(), size)
        except OSError as e:
            raise RingError(f"{self.path}: {e.strerror}") from e
        self._raw = memoryview(self._map)
        self._words = self._raw[:HEADER_SIZE].cast("Q")
        self._ring: Records = np.frombuffer(self._map, self.dtype, capacity, HEADER_SIZE)

    def __enter__(self) -> Consumer:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Detaches; the ring stays as it is."""
        if self._map.closed:
            return
        self._ring = np.empty(0, self.dtype)
        self._words.release()
        self._raw.release()
        self._map.close()
        os.close(self._lock)

    @property
    def counters(self) -> Counters:
        """What the producer has published."""
        return _read_counters(self._words, self.path)[0]

    @property
    def tail(self) -> int:
        """Slots consumed since the ring was made, by this consumer and those before it."""
        return int(self._words[_TAIL])

    @property
    def done(self) -> bool:
        """The producer has closed and everything is consumed."""
        counters, closed = _read_counters(self._words, self.path)
        return closed and self.tail == counters.written

    def peek(self, max_records: int) -> Records:
        """A copy of the next slots, shape (n,), n <= max_records, gap records included."""
        tail = self.tail
        # Any value ever stored here stands for records that are there: no need for the whole set.
        place = _PUBLISHED + 4 * (self._words[_EPOCH] % _EPOCHS)
        waiting = self._words[place + 1] - tail
        count = max(0, min(waiting, max_records))
        first = tail % len(self._ring)
        head = self._ring[first : first + count]
        return np.concatenate([head, self._ring[: count - len(head)]])

    def advance(self, count: int) -> None:
        """Gives the next `count` slots back to the producer; at most what `peek` returned."""
        self._words[_TAIL] = self.tail + count

    def read(self, max_records: int) -> Records:
        """`peek` and `advance`: consumes what it returns."""
        records = self.peek(max_records)
        self.advance(len(records))
        return records
