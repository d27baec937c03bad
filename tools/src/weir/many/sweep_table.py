# SPDX-License-Identifier: BSD-3-Clause
"""A sweep's table read again: its axes, its numbers by short names, means over seeds."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import polars as pl

from weir.analysis import folder, one_way, spread
from weir.analysis.spread import Floats, Value
from weir.base import configs, foreign, units
from weir.base.errors import UserError

TABLE = "table.parquet"
COLUMNS = ("seed", "status", "folder")  # of every sweep's table, behind its parameters
# What users call a parameter, and how its key ends.
PARAMETERS = {"buffer": "limit", "flows": "count", "rtt": "base_rtt", "discipline": "queue"}
SHOWN = {"limit": "buffer", "count": "flows", "cc": "congestion control", "base_rtt": "base RTT"}
BUSIEST = {  # numbers of the busiest link
    "utilisation": "utilisation",
    "delay": "queue_mean_ns",
    "delay_p99": "sojourn_p99_ns",
    "queue": "queue_mean_pkts",
    "drops": "drops",
    "marks": "marks",
}
SUMS = {"goodput": "goodput_bps", "retransmits": "retransmits", "reductions": "cwnd_reductions"}
METRICS = ("goodput", *BUSIEST, "loss", "jfi", "rtt", "retransmits", "reductions")


@dataclass(frozen=True)
class Axis:
    """A parameter that varies: its values in the sweep's order, as numbers where all are."""

    key: str
    label: str
    values: tuple[Value, ...]
    names: tuple[str, ...]  # of the values, for people
    numbers: tuple[float, ...] | None


@dataclass(frozen=True)
class Metric:
    """A number of each cell, NaN where there is none."""

    label: str
    unit: str
    values: Floats


@dataclass(frozen=True)
class SweepTable:
    """The table of a sweep: a row per cell."""

    path: Path
    frame: pl.DataFrame

    @property
    def keys(self) -> list[str]:
        """The parameters of the grid."""
        return self.frame.columns[: self.frame.columns.index("seed")]

    @cached_property
    def axes(self) -> list[Axis]:
        """The parameters that vary."""
        found = {key: self.frame[key].unique(maintain_order=True).to_list() for key in self.keys}
        return [
            axis(key, values, self._controls(key))
            for key, values in found.items()
            if len(values) > 1
        ]

    def _controls(self, key: str) -> dict[Value, str]:
        """Returns what runs call the controls of a key such as flows.0.cc, by their values."""
        of = key.replace("flows.", "groups.", 1)
        if not re.fullmatch(r"flows\.\d+\.cc", key) or of not in self.frame.columns:
            return {}
        return dict(self.frame.select(key, of).drop_nulls().rows())

    def axis(self, name: str) -> Axis:
        """Finds a parameter by its key, its end, or its usual name. UserError: none, or two."""
        wanted = PARAMETERS.get(name, name)
        fit = [one for one in self.axes if name in (one.key, one.label)]
        fit = fit or [one for one in self.axes if f".{one.key}".endswith(f".{wanted}")]
        fit = fit or [one for one in self.axes if wanted in one.key.split(".")]
        if len(fit) == 1:
            return fit[0]
        there = ", ".join(one.key for one in fit or self.axes) or "none"
        if fit:
            raise UserError(f"'{name}' may be {there}: say which")
        raise UserError(f"'{name}' is no parameter that varies in {self.path}; there is {there}")

    def metric(self, name: str) -> Metric:
        """Finds a number by its column, its end, or one of METRICS. UserError: none, or two."""
        if name in SUMS:
            columns = self._ending(rf"groups\.\d+\.{SUMS[name]}")
            return self._made(name, SUMS[name], pl.sum_horizontal, columns)
        if name in BUSIEST:
            columns = [f"{self.busiest}.{BUSIEST[name]}"]
            return self._made(name, BUSIEST[name], pl.sum_horizontal, columns)
        if name == "rtt":
            columns = self._ending(r"groups\.\d+\.rtt_mean_ns")
            return self._made("mean RTT", "_ns", pl.mean_horizontal, columns)
        if name == "loss":  # of the packets with payload
            parts = [self._ending(rf"groups\.\d+\.{of}") for of in ("drops", "sent_segs")]
            drops, sent = (self._made(name, "", pl.sum_horizontal, part).values for part in parts)
            return Metric(name, "", drops / np.where(sent > 0, sent, np.nan))
        numbers = [c for c in self.frame.columns[len(self.keys) + 1 :] if self._is_number(c)]
        fit = [c for c in numbers if c == name] or [c for c in numbers if c.endswith(f".{name}")]
        if len(fit) == 1:
            label = "Jain's index" if name == "jfi" else name
            return self._made(label, name, pl.sum_horizontal, fit)
        if fit:
            raise UserError(f"'{name}' may be {', '.join(fit)}: say which")
        raise UserError(
            f"'{name}' is no number of {self.path}; there is {', '.join(METRICS)} and each of its"
            " columns, such as groups.0.rtt_mean_ns"
        )

    def known(self, name: str) -> Metric | None:
        """Finds a number, if any cell has it."""
        try:
            found = self.metric(name)
        except UserError:
            return None
        return found if np.isfinite(found.values).any() else None

    def _is_number(self, column: str) -> bool:
        return self.frame[column].dtype.is_numeric()

    def _ending(self, pattern: str) -> list[str]:
        return [c for c in self.frame.columns if re.fullmatch(pattern, c)]

    def _made(
        self, label: str, name: str, of: Callable[..., pl.Expr], columns: Sequence[str]
    ) -> Metric:
        missing = [c for c in columns if c not in self.frame.columns]
        if missing or not columns:
            raise UserError(f"{self.path} has no {label}: no run of it ended", 1)
        known = pl.all_horizontal(pl.col(columns).is_null()).not_()
        values = self.frame.select(pl.when(known).then(of(*columns).cast(pl.Float64)))
        numbers = values.to_series().fill_null(np.nan).to_numpy()
        return Metric(units.label_of(label), units.unit_of(name), numbers)

    def only(self, name: str | None) -> Axis:
        """Returns the one parameter that varies [the congestion control]. UserError: others do."""
        found = self.axes[0] if name is None and len(self.axes) == 1 else self.axis(name or "cc")
        for one in self.axes:
            if one is not found:
                raise UserError(
                    f"{one.key} varies too ({', '.join(one.names[:6])}): choose one value with"
                    f" --where {one.key}={one.names[0]}"
                )
        return found

    def samples(self, by: Axis, **numbers: Sequence[float | None] | Floats) -> pl.DataFrame:
        """Returns numbers of the cells that are samples, and the name of each's value of `by`."""
        called = dict(zip(by.values, by.names, strict=True))
        names = pl.Series("name", [called[value] for value in self.frame[by.key]], pl.String)
        columns = [pl.Series(name, values, pl.Float64) for name, values in numbers.items()]
        return pl.DataFrame([names, *columns]).filter(self.replicas)

    def points(self, by: Axis) -> pl.DataFrame:
        """Returns name, delay_ns (one way) and goodput_bps of samples, from their folders."""
        delays = [
            one_way.p95_ns(run.config, run.summary) if run is not None else None
            for run in map(self._sample, range(self.frame.height))
        ]
        return self.samples(by, delay_ns=delays, goodput_bps=self.metric("goodput").values)

    def _sample(self, row: int) -> folder.Run | None:
        place = self.run(row)
        return folder.load(place) if self.replicas[row] and folder.is_run(place) else None

    def run(self, row: int) -> Path:
        """Returns a cell's folder, which may have moved with the table."""
        given = Path(str(self.frame["folder"][row]))
        home = self.path if self.path.is_dir() else self.path.parent
        return next(
            (path for path in (given, home / given.name) if path.exists()), home / given.name
        )

    @cached_property
    def busiest(self) -> str:
        """The link that is used most over all cells: links.forward."""
        used = self._ending(r"links\..*\.utilisation")
        means = [float(self.frame[column].fill_null(0).mean() or 0) for column in used]  # type: ignore[arg-type]
        if not means:
            return "links.forward"
        return used[int(np.argmax(means))].removesuffix(".utilisation")

    def where(self, conditions: Sequence[str]) -> SweepTable:
        """Keeps the cells with these values of parameters: count=10. UserError: there are none."""
        kept = self
        for text in conditions:
            one, wanted = kept.chosen("--where", text)
            kept = replace(kept, frame=kept.frame.filter(pl.col(one.key).is_in(wanted)))
        return kept

    def chosen(self, option: str, text: str) -> tuple[Axis, list[Value]]:
        """Returns the parameter and the values of it that a text such as count=10 names."""
        name, equals, value = text.partition("=")
        if not equals:
            raise UserError(f"{option}: '{text}' is not KEY=VALUE such as count=10")
        one = self.axis(name)
        wanted = [v for v, shown in zip(one.values, one.names, strict=True)
                  if value in (str(v), shown)]  # fmt: skip
        if not wanted:
            raise UserError(f"{option}: {one.key} is never {value}, only {', '.join(one.names)}")
        return one, wanted

    def prints(self, columns: Sequence[str]) -> list[int]:
        """Returns a number for each cell, the same for runs with the same digest and figures.

        The digest alone does not do: without telemetry all runs have the same.
        """
        known = [pl.col(name).cast(pl.Float64 if self._is_number(name) else pl.String)
                 for name in sorted(columns)]  # fmt: skip
        return self.frame.select(known).hash_rows().to_list() if known else []

    @cached_property
    def figures(self) -> list[str]:
        """The columns that say what a run did."""
        found = self._ending(r"(links|groups)\..*")
        return [*found, *(c for c in ("digest", "jfi", "virtual_s") if c in self.frame.columns)]

    @cached_property
    def replicas(self) -> pl.Series:
        """Says for each cell whether it is a sample: seeds that were not used are one run."""
        return spread.replicas(self.frame, self.keys)

    def _valued(self, metric: Metric) -> pl.DataFrame:
        return self.frame.with_columns(value=pl.Series(metric.values))

    def parts(self, metric: Metric, keys: Sequence[str]) -> dict[tuple[Value, ...], Floats]:
        """Returns the values over seeds of each combination of parameters."""
        return spread.samples(self._valued(metric), keys, self.keys)

    def means(self, metric: Metric, keys: Sequence[str]) -> pl.DataFrame:
        """Returns mean, low, high (95 %, of several seeds) and n by combination of parameters."""
        return spread.means(self._valued(metric), keys, self.keys)

    def beside(self, metric: Metric, keys: Sequence[str], key: str, value: Value) -> pl.DataFrame:
        """Returns differences from the means at a value of a parameter, and both means."""
        parts, at = self.parts(metric, keys), keys.index(key)
        bases = {point[:at] + point[at + 1 :]: part
                 for point, part in parts.items() if point[at] == value}  # fmt: skip
        points = [point for point in parts if point[at] != value]
        pairs = [(bases.get(p[:at] + p[at + 1 :], np.empty(0)), parts[p]) for p in points]
        mean, low, high = spread.differences(pairs)
        made = {name: pl.Series([point[n] for point in points], dtype=self.frame.schema[name])
                for n, name in enumerate(keys)}  # fmt: skip
        ends = {name: [pair[n].mean() if pair[n].size else math.nan for pair in pairs]
                for n, name in enumerate(("base", "own"))}  # fmt: skip
        return pl.DataFrame({**made, "mean": mean, "low": low, "high": high, **ends})


def load(path: Path) -> SweepTable:
    """Reads a sweep's folder or its table. UserError: it is none."""
    file = file_of(path)
    if not file.exists():
        raise UserError(f"{path}: not a sweep: no {TABLE} in it")
    try:
        foreign.open_regular(file).close()
        frame = pl.read_parquet(file)
    except (UserError, OSError, pl.exceptions.PolarsError):
        raise UserError(f"{file}: not a Parquet table", 1) from None
    missing = [name for name in COLUMNS if name not in frame.columns]
    if missing:
        raise UserError(f"{file}: not the table of a sweep: it has no {', '.join(missing)}")
    return SweepTable(path, frame)


def file_of(path: Path) -> Path:
    """Returns the table of a sweep's folder, or the table itself."""
    return path / TABLE if path.is_dir() else path


def is_sweep(path: Path) -> bool:
    """Returns whether a path is a sweep's folder or a table."""
    return path.suffix == ".parquet" or (path / TABLE).exists()


def axis(key: str, values: Sequence[Value], controls: Mapping[Value, str] | None = None) -> Axis:
    """Makes a parameter with its values; controls is what runs call those that are controls."""
    end = key.rpartition(".")[2]
    numbers, unit = measured([str(value) for value in values])
    label = SHOWN.get(end, end.replace("_", " "))
    if numbers is not None:
        ordered = sorted(zip(numbers, values, strict=True), key=lambda pair: pair[0])
        numbers, values = tuple(n for n, _ in ordered), [value for _, value in ordered]
    named = tuple(called(key, value, (controls or {}).get(value)) for value in values)
    return Axis(key, f"{label} ({unit})" if unit else label, tuple(values), named, numbers)


def measured(texts: Sequence[str]) -> tuple[tuple[float, ...] | None, str]:
    """Reads texts as numbers of the unit that reads best: 0.1BDP, 100Mbit. None: no numbers."""
    parts = [
        re.fullmatch(r"([0-9]*\.?[0-9]+(?:[eE][-+]?[0-9]+)?)([^0-9.]*)", text) for text in texts
    ]
    pairs = [(part[1], part[2].strip()) for part in parts if part is not None]
    if len(pairs) < len(texts):
        return None, ""
    ends = {end for _, end in pairs}
    if ends != {""}:
        for read, steps in KINDS:
            found = [read(text) for text in texts]
            known = [value for value in found if value is not None]
            if len(known) == len(texts):
                divisor, unit = units.step(max(known), steps)
                return tuple(value / divisor for value in known), unit
    if len(ends) > 1:
        return None, ""
    end = ends.pop()
    return tuple(float(number) for number, _ in pairs), WORDS.get(end, end)


WORDS = {"p": "packets", "pkt": "packets"}
KINDS: tuple[tuple[Callable[[object], float | None], units.Steps], ...] = (
    (units.config_time_ns, units.TIME_STEPS),
    (units.config_rate_bps, units.RATE_STEPS),
    (units.config_bytes, units.BYTE_STEPS),
)


def called(key: str, value: Value, control: str | None = None) -> str:
    """Names a value: {copa: {delta: 0.1}} is copa, delta 0.1; control is what its run says."""
    text = str(value)
    if not text.startswith("{"):
        return text
    try:
        read = foreign.decode_yaml(text, key)
    except UserError:
        return text
    if not isinstance(read, Mapping) or not (key.endswith("cc") or len(read) == 1):
        return text
    outside = any(name in read for name in configs.OUTSIDE)
    inner = read if outside else next(iter(read.values()))
    name = control if outside and control else configs.control(read)
    parameters = inner.items() if isinstance(inner, Mapping) else ()
    shown = [f"{k} {configs.text(v)}" for k, v in parameters if k not in configs.OUTSIDE]
    return ", ".join([name, *shown])
