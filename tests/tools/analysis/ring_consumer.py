# SPDX-License-Identifier: BSD-3-Clause
"""The consumer of a ring in shared memory, which tests/tools/ring_writer.c fills."""

from __future__ import annotations

import mmap
import os
import sys
import time
from pathlib import Path

import numpy as np
from weir.analysis.header import (
    EPOCH,
    EPOCHS,
    HEADER_SIZE,
    PUBLISHED,
    Counters,
    fence,
    map_page,
    parse_header,
    read_counters,
)
from weir.analysis.ring import Records

TAIL = 448 // 8  # of the header page, in words of eight bytes


class Consumer:
    """The single consumer of a ring in shared memory.

    It may die at any time and be started again: what it had not consumed is still there, and what
    the full ring dropped meanwhile is counted. A caller that must not lose what it has read but not
    yet stored uses `peek`, stores, and then calls `advance`; `tail` says how many slots were
    consumed since the ring was made.
    """

    def __init__(self, shm_path: str | os.PathLike[str]) -> None:
        self.path = Path(shm_path)
        with self.path.open("r+b") as f:
            with map_page(f, self.path) as page:
                header, schema = parse_header(page, self.path)
            self._map = mmap.mmap(f.fileno(), 0)
        self.dtype = schema.dtype
        self._raw = memoryview(self._map)
        self._words = self._raw[:HEADER_SIZE].cast("Q")
        self._ring: Records = np.frombuffer(self._map, self.dtype, header.capacity, HEADER_SIZE)

    def __enter__(self) -> Consumer:
        return self

    def __exit__(self, *_: object) -> None:
        """Detaches; the ring stays as it is."""
        self._ring = np.empty(0, self.dtype)
        self._words.release()
        self._raw.release()
        self._map.close()

    @property
    def counters(self) -> Counters:
        return read_counters(self._words, self.path)[0]

    @property
    def tail(self) -> int:
        """Slots consumed since the ring was made, by this consumer and those before it."""
        return int(self._words[TAIL])

    @property
    def done(self) -> bool:
        """The producer has closed and everything is consumed."""
        counters, closed = read_counters(self._words, self.path)
        return closed and self.tail == counters.written

    def peek(self, max_records: int) -> Records:
        """Returns a copy of the next slots, shape (n,), n <= max_records, gap records included."""
        tail = self.tail
        # Any value ever stored here stands for records that are there: no need for the whole set.
        epoch = self._words[EPOCH]
        fence()
        waiting = self._words[PUBLISHED + 4 * (epoch % EPOCHS) + 1] - tail
        fence()
        count = max(0, min(waiting, max_records))
        first = tail % len(self._ring)
        head = self._ring[first : first + count]
        return np.concatenate([head, self._ring[: count - len(head)]])

    def advance(self, count: int) -> None:
        """Gives the next `count` slots back to the producer; at most what `peek` returned."""
        fence()  # what peek copied is read
        self._words[TAIL] = self.tail + count

    def read(self, max_records: int) -> Records:
        records = self.peek(max_records)
        self.advance(len(records))
        return records


def copy(shm: str, out: Path, nap_s: float) -> None:
    """Stores a ring's slots in a file until its producer has closed, and naps after each few."""
    with Consumer(shm) as c, out.open("ab") as f:
        os.truncate(out, c.tail * c.dtype.itemsize)  # what was stored but not consumed comes again
        while not c.done:
            records = c.peek(512)
            os.write(f.fileno(), records.tobytes())
            c.advance(len(records))
            time.sleep(nap_s)


if __name__ == "__main__":
    copy(sys.argv[1], Path(sys.argv[2]), float(sys.argv[3]))
