# SPDX-License-Identifier: BSD-3-Clause
"""Reads telemetry: `.ring` files, also while they grow.

A file is a header page of 4096 bytes, which holds its own schema, followed by records of one
fixed size; `numpy.memmap(path, dtype, offset=4096)` is the whole reader. The header page is read
by `header.py`. Dependencies are numpy and msgspec; polars is loaded when asked for.

A slot holds a record or a gap record. A gap record has `ts_ns == GAP` and, in the next eight
bytes, the number of records lost there.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from weir.analysis.header import (
    HEADER_SIZE,
    Header,
    RingError,
    Schema,
    map_page,
    parse_header,
    read_counters,
)
from weir.base import foreign
from weir.base.errors import UserError

if TYPE_CHECKING:
    import polars as pl

__all__ = ["GAP", "Records", "Ring", "RingError", "find_gaps", "open_ring", "tail"]

GAP = 2**64 - 1
_SCAN = 1 << 20  # slots looked at in one go

Records = npt.NDArray[np.void]
Values = npt.NDArray[Any]  # numbers of a type that the file says


def find_gaps(records: Records) -> Records:
    """Returns the gap records, shape (n,): fields `index` (row) and `lost` (records)."""
    slot = np.dtype(
        {
            "names": ["ts_ns", "lost"],
            "formats": ["<u8", "<u8"],
            "offsets": [0, 8],
            "itemsize": records.dtype.itemsize,
        }
    )
    view = np.ascontiguousarray(records).view(slot)
    parts = [
        start + np.flatnonzero(view["ts_ns"][start : start + _SCAN] == GAP)
        for start in range(0, len(view), _SCAN)
    ]
    rows = np.concatenate(parts) if parts else np.empty(0, np.int64)
    gaps = np.empty(len(rows), [("index", "<i8"), ("lost", "<u8")])
    gaps["index"] = rows
    gaps["lost"] = view["lost"][rows]
    return gaps


def to_frame(schema: Schema, columns: Mapping[str, Values]) -> pl.DataFrame:
    """Returns columns of a stream as a frame, with null for what is not known; copies."""
    import polars as pl

    frame = pl.DataFrame({name: np.ascontiguousarray(part) for name, part in columns.items()})
    unknown = {f.name: f.unknown for f in schema.fields if f.unknown is not None}
    return frame.with_columns(
        pl.when(pl.col(name) != number).then(pl.col(name)).alias(name)
        for name, number in unknown.items()
        if name in columns
    )


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
        whole = (size - HEADER_SIZE) // schema.record_size
        self._slots = min(header.counters.written, whole)

    def __len__(self) -> int:
        return self._slots

    def __repr__(self) -> str:
        return f"<Ring {self.path} {self.schema.stream}: {self._slots} slots, {self.lost} lost>"

    @cached_property
    def records(self) -> Records:
        """All slots, shape (n,), dtype `dtype`, mapped and not copied; gap records included.

        They are the whole records that the header counts.
        """
        return self.part(0, self._slots)

    def part(self, start: int, count: int) -> Records:
        """Returns slots start to start + count, or to the end, mapped anew while they are used."""
        count = min(count, self._slots - start)
        if count <= 0:
            return np.empty(0, self.dtype)
        offset = HEADER_SIZE + start * self.dtype.itemsize
        return np.memmap(self.path, dtype=self.dtype, mode="r", offset=offset, shape=(count,))

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
        """A mask of `records`: true for records, false for gap records; None: no gaps."""
        if self.header.counters.gaps == 0:
            return None
        keep = np.ones(self._slots, np.bool_)
        keep[self.gaps["index"]] = False
        return keep

    def values(self, name: str) -> Mapping[str, int]:
        """Returns the numbers of a field by their names; empty: it has none, or is not there."""
        return next((f.values for f in self.schema.fields if f.name == name), {})

    def column(self, name: str) -> Values:
        """Returns a field of the records, shape (n,), without the gap records.

        Strided and not copied if there are no gaps. RingError: there is no such field.
        """
        if name not in (self.dtype.names or ()):
            has = ", ".join(self.dtype.names or ())
            raise RingError(f"{self.path}: has no field {name!r}, only {has}")
        column: Values = self.records[name]
        return column if self._without_gaps is None else column[self._without_gaps]

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
        with foreign.open_regular(path) as f:
            with map_page(f, path) as page:
                header, schema = parse_header(page, path)
            size = os.fstat(f.fileno()).st_size  # after the counters: they never count too much
    except OSError as e:
        raise RingError(f"{path}: {e.strerror}") from e
    except RingError:
        raise
    except UserError as e:
        raise RingError(str(e)) from None
    if header.capacity != 0:
        raise RingError(f"{path}: a ring in shared memory, not a file")
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
        map_page(f, path) as page,
        memoryview(page) as raw,
        raw.cast("Q") as words,
    ):
        while True:
            counters, closed = read_counters(words, path)
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
