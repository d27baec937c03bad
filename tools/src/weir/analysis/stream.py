# SPDX-License-Identifier: BSD-3-Clause
"""The streams of a run: its records as numpy arrays, Polars frames and Arrow tables.

A `Stream` is all that a run recorded of one kind, a `Batch` a part of it; both have the same calls.
All of them leave out gap records, which only say that records were lost (`lost` counts those), and
count times from the start of the run, whichever program wrote them.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from weir.analysis.header import Field, Schema
from weir.analysis.ring import GAP, Records, Ring, Values, tail, to_frame
from weir.base.errors import UserError

if TYPE_CHECKING:
    import polars as pl
    import pyarrow as pa

BATCH_RECORDS = 1 << 20
TIMES = ("ts_ns", "start_ns")  # fields that count from their program's own zero


def without_gaps(slots: Records) -> Records:
    """Returns the records among a file's slots; `slots` itself if all are."""
    gaps = slots["ts_ns"] == GAP
    return slots[~gaps] if gaps.any() else slots


@dataclass(frozen=True)
class Shift:
    """Conversion of a program's time to the run's: its start, and its clock's error."""

    start_ns: int = 0
    drift: float = 0.0  # seconds too many in each second of the run

    def __call__(self, times: Values) -> Values:
        """Returns times of the run, in ns; the same array if there is nothing to change."""
        moved: Values = times + np.uint64(self.start_ns) if self.start_ns else times
        if not self.drift:
            return moved
        gained: Values = np.rint(times * (self.drift / (1 + self.drift))).astype(np.int64)
        return moved - gained.view(np.uint64)


class Batch:
    """Records of one stream, shape (n,).

    schema has each field's name, dtype, unit and meaning. The times are shifted.
    """

    def __init__(self, schema: Schema, slots: Records, shift: Shift = Shift()) -> None:
        self.schema = schema
        self._slots = slots
        self._shift = shift

    def __len__(self) -> int:
        return len(self._slots)

    def __repr__(self) -> str:
        kind = type(self).__name__
        return f"<{kind} {self.schema.stream}: {len(self)} records of {', '.join(self.names)}>"

    @property
    def names(self) -> tuple[str, ...]:
        """The fields of a record."""
        return tuple(field.name for field in self.schema.fields)

    def field(self, name: str) -> Field:
        """Returns dtype, unit, meaning and names of a field's numbers. UserError: no such field."""
        for field in self.schema.fields:
            if field.name == name:
                return field
        has = ", ".join(self.names)
        raise UserError(f"{self.schema.stream} has no field '{name}', only {has}")

    def number(self, name: str, value: str) -> int:
        """Returns the number of a named value, as in number("event", "drop"), or UserError."""
        values = self.field(name).values
        if value not in values:
            has = ", ".join(values) or "numbers"
            raise UserError(f"{name} of {self.schema.stream} is never '{value}', only {has}")
        return values[value]

    @property
    def records(self) -> Records:
        """The records as a structured array, shape (n,): fields as in `schema`.

        Not a copy unless times have to be changed.
        """
        if self._shift == Shift():
            return self._slots
        moved = self._slots.copy()
        for name in TIMES:
            if name in self.names:
                moved[name] = self[name]
        return moved

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> Values:
        return np.array(self.records, dtype=dtype, copy=copy)

    def __getitem__(self, name: str) -> Values:
        """Returns a field, shape (n,): a strided view unless times have to be changed."""
        self.field(name)
        column: Values = self._slots[name]
        return self._shift(column) if name in TIMES else column

    def batches(self, records: int = BATCH_RECORDS) -> Iterator[Batch]:
        """Yields the records, at most so many at a time, in the order of the file: views of it."""
        for start in range(0, len(self._slots), records):
            part = self._slots[start : start + records]
            yield Batch(self.schema, part, self._shift)

    def rows(self, chosen: npt.NDArray[np.bool_] | npt.NDArray[np.int64]) -> Batch:
        """Returns the records that a mask of shape (n,) chooses, or indices; copied."""
        return Batch(self.schema, self._slots[chosen], self._shift)

    def to_polars(self, columns: Sequence[str] | None = None) -> pl.DataFrame:
        """Returns all columns, or those named, as a frame; copies, because Polars has columns.

        What is not known is null there, as in `to_arrow`; arrays have the field's `unknown`.
        """
        names = self.names if columns is None else columns
        return to_frame(self.schema, {name: self[name] for name in names})

    def to_arrow(self, columns: Sequence[str] | None = None) -> pa.Table:
        """Returns an Arrow table, whose fields have unit, meaning and values as metadata."""
        import pyarrow as pa

        schema = arrow_schema(self, columns)
        arrays = [self._arrow_array(name) for name in schema.names]
        return pa.Table.from_arrays(arrays, schema=schema)

    def _arrow_array(self, name: str) -> pa.Array:
        import pyarrow as pa

        column, unknown = np.ascontiguousarray(self[name]), self.field(name).unknown
        return pa.array(column, mask=None if unknown is None else column == unknown)


class Stream(Batch):
    """All that a run recorded of one kind, as far as it was written when the run was opened.

    files has a `Ring` for each file: one in virtual time, one for each program live.
    """

    def __init__(self, files: Sequence[Ring], shifts: Sequence[Shift]) -> None:
        self.files = list(files)
        self._shifts = list(shifts)
        self.schema = files[0].schema
        if any(file.schema.fields != self.schema.fields for file in files):
            common = [f for f in self.schema.fields if all(f in r.schema.fields for r in files)]
            self.schema = Schema(self.schema.stream, self.schema.record_size, tuple(common))
        self._shift = shifts[0] if len(files) == 1 else Shift()

    @property
    def lost(self) -> int:
        """Records that were produced and are not there."""
        return sum(file.lost for file in self.files)

    def __len__(self) -> int:
        return sum(
            len(file) - (len(file.gaps) if file.header.counters.gaps else 0) for file in self.files
        )

    @cached_property
    def _slots(self) -> Records:  # type: ignore[override]
        parts = [batch for _, batch in self.parts()]
        if len(parts) == 1:
            return parts[0]._slots
        whole = np.empty(sum(map(len, parts)), self.schema.dtype)
        ends = np.cumsum([len(part) for part in parts])
        for part, end in zip(parts, ends, strict=True):
            for name in self.names:
                whole[name][end - len(part) : end] = part[name]
        return whole

    def parts(self) -> Iterator[tuple[Ring, Batch]]:
        """Yields the records of each file with all its fields: those of programs may differ."""
        for file, shift in zip(self.files, self._shifts, strict=True):
            slots = file.records
            if file.header.counters.gaps > 0:
                slots = without_gaps(slots)
            yield file, Batch(file.schema, slots, shift)

    @property
    def records(self) -> Records:
        """The records as a structured array, shape (n,): fields as in `schema`.

        Of a file without gap records, whose program was the first to start, it is the mapped file
        and no copy: this holds for every run in virtual time. `files[i].records` never is a copy.
        """
        return super().records

    def batches(self, records: int = BATCH_RECORDS) -> Iterator[Batch]:
        """Yields the records, at most so many at a time, file by file: each a mapping of its own.

        What is not kept is unmapped again: the process holds no more than it works on.
        """
        for file, shift in zip(self.files, self._shifts, strict=True):
            schema = Schema(self.schema.stream, file.schema.record_size, self.schema.fields)
            for start in range(0, len(file), records):
                part = file.part(start, records)
                part = without_gaps(part) if file.header.counters.gaps else part
                yield Batch(schema, part, shift)

    def tail(self, poll_s: float = 0.1) -> Iterator[Batch]:
        """Follows a run that goes on: yields new records as they appear, from the first on.

        Every poll_s seconds without any it yields an empty batch, so that the caller may stop. Ends
        when all programs have closed their files; one that was killed never does.
        """
        waiting = [
            (file.schema, shift, tail(file.path, 0.0))
            for file, shift in zip(self.files, self._shifts, strict=True)
        ]
        while waiting:
            quiet, still = True, []
            for schema, shift, source in waiting:
                slots = next(source, None)
                if slots is None:
                    continue
                still.append((schema, shift, source))
                if len(slots) > 0:
                    quiet = False
                    yield Batch(schema, without_gaps(slots), shift)
            waiting = still
            if waiting and quiet:
                yield Batch(self.schema, np.empty(0, self.schema.dtype))
                time.sleep(poll_s)

    def percentile(
        self, name: str, p: float, by: str = "flow_id", where: Mapping[str, str | int] | None = None
    ) -> pl.DataFrame:
        """Returns the p-th percentile (0 to 100) of a field for each value of another [flow_id].

        where chooses records: {"event": "dequeue"}, a number or its name. Columns: `by`, `records`
        and `name`; exact, as metrics.percentile. Both fields are whole numbers; unknown values do
        not count.

        Reads the records twice and holds none of them: first to count each key's values in classes,
        128 per power of two, then to count the values of the class in which the percentile is.
        """
        import polars as pl

        if not 0 <= p <= 100:
            raise UserError(f"percentiles of {name} by {by}: {p} is not a percentage")
        for field in (by, name):
            if "u" not in self.field(field).dtype:
                raise UserError(f"{field} of {self.schema.stream}: percentiles need whole numbers")
        wanted = [
            pl.col(key) == (self.number(key, value) if isinstance(value, str) else value)
            for key, value in (where or {}).items()
        ]
        first_bits = pl.col(name).map_batches(_class_of, return_dtype=pl.UInt32)
        rank = (pl.col("records") * (p / 100) - 1e-9).ceil().clip(1)

        def counted(keys: list[str], chosen: pl.DataFrame | None = None) -> pl.DataFrame:
            """Counts records by columns, those alone that `chosen` has."""
            found = pl.DataFrame()
            nothing = Batch(self.schema, np.empty(0, self.schema.dtype))
            for batch in chain([nothing], self.batches()):
                part = batch.to_polars(list({by, name, *(where or {})})).drop_nulls(name)
                part = part.filter(*wanted).select(by, name, of=first_bits)
                if chosen is not None:
                    part = part.join(chosen, on=[by, "of"], how="semi")
                counts = pl.concat([found, part.group_by(keys).len()], how="diagonal")
                found = counts.group_by(keys).agg(pl.col("len").sum())
            return found.sort(keys)

        def reached(counts: pl.DataFrame, before: pl.Expr) -> pl.DataFrame:
            """Returns the first row of each key with which the counts come to the rank."""
            up_to = counts.with_columns(up_to=before + pl.col("len").cum_sum().over(by))
            return up_to.filter(pl.col("up_to") >= rank).group_by(by, maintain_order=True).first()

        classes = counted([by, "of"]).with_columns(records=pl.col("len").sum().over(by))
        chosen = reached(classes, pl.lit(0)).with_columns(before=pl.col("up_to") - pl.col("len"))
        values = counted([by, name], chosen).join(chosen.select(by, "records", "before"), on=by)
        return reached(values.sort(by, name), pl.col("before")).select(by, "records", name)


def _class_of(values: pl.Series) -> pl.Series:
    """Returns the exponent and the first seven bits of the mantissa of numbers from 0."""
    import polars as pl

    return pl.Series(values.to_numpy().astype(np.float32).view(np.uint32) >> 16)


def arrow_schema(batch: Batch, columns: Sequence[str] | None = None) -> pa.Schema:
    """Returns the Arrow schema of a stream's records."""
    import json

    import pyarrow as pa

    fields = []
    for name in batch.names if columns is None else columns:
        field = batch.field(name)
        metadata = {"unit": field.unit, "meaning": field.meaning}
        if field.values:
            metadata["values"] = json.dumps(dict(field.values))
        fields.append(
            pa.field(
                name,
                pa.from_numpy_dtype(np.dtype(field.dtype)),
                nullable=field.unknown is not None,
                metadata=metadata,
            )
        )
    return pa.schema(fields, metadata={"stream": batch.schema.stream})
