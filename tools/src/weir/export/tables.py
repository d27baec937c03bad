# SPDX-License-Identifier: BSD-3-Clause
"""A stream as a table: Parquet, or CSV, which may be compressed with zstd."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from weir.analysis.stream import Batch, Stream, arrow_schema

# Called with a stream's name, how many of its records were read, and how many it has.
Listener = Callable[[str, int, int], None]
LISTENER: ContextVar[Listener | None] = ContextVar("listener", default=None)


def selected(stream: Stream, flows: Sequence[int]) -> Iterator[Batch]:
    """Yields a stream's batches with records of `flows` [all]; one without flows is whole."""
    choose = len(flows) > 0 and "flow_id" in stream.names
    listener, done = LISTENER.get(), 0
    if listener is not None:
        listener(stream.schema.stream, done, len(stream))
    for batch in stream.batches():
        yield batch.rows(np.isin(batch["flow_id"], flows)) if choose else batch
        done += len(batch)
        if listener is not None:
            listener(stream.schema.stream, done, len(stream))


def parquet(stream: Stream, path: Path, flows: Sequence[int]) -> None:
    """Writes a row group per batch with zstd; fields' units and meanings are in the metadata.

    Of whole numbers it writes differences: less to write, and smaller, than a dictionary.
    """
    schema = arrow_schema(stream)
    widths = {one.name: one.type.bit_width for one in schema if pa.types.is_integer(one.type)}
    deltas = {name: "DELTA_BINARY_PACKED" for name, width in widths.items() if width > 8}
    few = [name for name in widths if name not in deltas]
    options = {"compression": "zstd", "use_dictionary": few, "column_encoding": deltas}
    with pyarrow.parquet.ParquetWriter(path, schema, **options) as file:
        for batch in selected(stream, flows):
            file.write_table(batch.to_arrow())


def csv(stream: Stream, path: Path, flows: Sequence[int], packed: bool = False) -> None:
    """Writes a line of names, then numbers: times in ns, floats with all their digits."""
    file = str(path)
    out = pa.CompressedOutputStream(file, "zstd") if packed else pa.OSFile(file, "wb")
    with out, pyarrow.csv.CSVWriter(out, arrow_schema(stream)) as file:
        for batch in selected(stream, flows):
            file.write_table(batch.to_arrow())
