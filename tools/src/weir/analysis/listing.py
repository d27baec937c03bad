# SPDX-License-Identifier: BSD-3-Clause
"""Lists the run folders below a folder, from their summaries and manifests alone."""

from __future__ import annotations

import operator
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from weir.analysis import folder, labels, summary
from weir.base import configs, foreign, units
from weir.base.errors import UserError
from weir.base.foreign import Json

TABLE = "table.parquet"  # of a sweep or a study, whose runs are below it
DEPTH_MAX = 8
WRITING = "is being written"  # the verdict of a run that goes on
SORT_KEYS = ("folder", "title", "date", "verdict", "flows", "goodput", "delay")


@dataclass(frozen=True)
class Entry:
    """A run, or a sweep with all its runs; what is not known is None."""

    path: Path
    title: str
    date: str  # when it began, in UTC: 2026-11-28 05:10
    verdict: str | None  # null: nobody has judged it
    groups: str = ""  # 10 copa, 10 cubic
    flows: float | None = None
    goodput_bps: float | None = None
    delay_ns: float | None = None  # mean queueing delay of the busiest link
    tags: tuple[str, ...] = ()
    note: str = ""
    runs: int | None = None  # of a sweep

    def as_json(self) -> Json:
        """Returns its members as JSON has them."""
        return {**self.__dict__, "path": str(self.path), "tags": list(self.tags)}


def find(top: Path) -> Iterator[Path]:
    """Yields run folders in and below a folder, and sweeps; of a folder that is one its runs."""
    folder.check(top)
    yield from map(Path, _below(str(top), True, 0))


def find_all(top: Path) -> Iterator[Path]:
    """Yields what `find` does, and behind each run its branches."""
    for path in find(top):
        yield path
        yield from branches(path)


def branches(path: Path) -> Iterator[Path]:
    """Yields the run folders of a run's branches, by their names; a link is none."""
    if not os.path.lexists(f"{path}/{folder.BRANCHES}"):  # quickly, as most have none
        return
    place = path / folder.BRANCHES
    if place.is_dir() and not place.is_symlink():
        yield from map(Path, _below(str(place), False, 1))


def _below(path: str, inside: bool, depth: int) -> Iterator[str]:
    if any(os.path.lexists(f"{path}/{name}") for name in folder.MANIFESTS):
        yield path
        return
    names, folders = set(), []
    with os.scandir(path) as entries:
        for entry in entries:
            names.add(entry.name)
            if entry.is_dir(follow_symlinks=False) and not entry.name.startswith("."):
                folders.append(entry.path)
    if TABLE in names and not inside:
        yield path
        return
    if depth < DEPTH_MAX:
        for nested in sorted(folders):
            yield from _below(nested, False, depth + 1)


def read(path: Path) -> Entry:
    """Returns a run's line; one that cannot be read says why in its verdict."""
    if not folder.is_run(path):
        return sweep(path)
    try:
        run = folder.load(path)
        given = labels.read(path)
    except UserError as error:
        return Entry(path, path.name, modified(path), f"unreadable: {error}")
    report = run.summary
    busiest = summary.busiest(report)
    started = run.manifest.started_utc
    return Entry(
        path,
        str(report.title or run.manifest.title or path.name),
        minute(started) if started else modified(path),
        report.verdict if report.ended else unended(path),
        ", ".join(f"{group.flows} {group.cc or '?'}" for group in report.groups),
        summary.of_flows(report, lambda group: group.flows),
        summary.of_flows(report, lambda group: group.goodput_bps),
        busiest[1].queue_mean_ns if busiest else None,
        given.tags,
        given.note,
    )


def unended(path: Path) -> str:
    """Returns the verdict of a run that has no summary."""
    return WRITING if folder.is_written(path) else summary.NEVER_ENDED


def sweep(path: Path) -> Entry:
    """Returns the line of a sweep or a study: rows of its table, and how many of them failed."""
    import polars as pl

    failed = 0
    try:
        foreign.open_regular(path / TABLE).close()
        rows = pl.scan_parquet(path / TABLE)
        names = rows.collect_schema().names()
        count = rows.select(pl.len()).collect().item()
        if "status" in names:
            failed = rows.filter(pl.col("status") == "failed").select(pl.len()).collect().item()
    except (UserError, OSError, pl.exceptions.PolarsError):
        verdict = f"unreadable: {path / TABLE}: not a Parquet table"
        return Entry(path, path.name, modified(path), verdict)
    kind = "sweep" if "status" in names else "study"
    verdict = f"{failed} failed" if failed else "ok"
    return Entry(path, f"{kind}, {count:,} rows", modified(path / TABLE), verdict, runs=count)


def modified(path: Path) -> str:
    return minute(datetime.fromtimestamp(path.stat().st_mtime, UTC))


def minute(when: datetime) -> str:
    """Returns a time in UTC as the table shows it."""
    return when.strftime("%Y-%m-%d %H:%M")


def age_s(entry: Entry) -> float:
    then = datetime.strptime(entry.date, "%Y-%m-%d %H:%M").replace(tzinfo=UTC)
    return (datetime.now(UTC) - then).total_seconds()


def ordered(entries: Sequence[Entry], key: str, reverse: bool = False) -> list[Entry]:
    """Sorts by one of SORT_KEYS, those without a value last; UserError: no such key."""
    if key not in SORT_KEYS:
        raise UserError(f"--sort: '{key}' is none of {', '.join(SORT_KEYS)}")
    value = VALUES[key]
    known = [entry for entry in entries if value(entry) is not None]
    rest = [entry for entry in entries if value(entry) is None]
    return sorted(known, key=value, reverse=reverse) + rest


VALUES: dict[str, Callable[[Entry], Any]] = {
    "folder": lambda e: str(e.path),
    "title": lambda e: e.title,
    "date": lambda e: e.date,
    "verdict": lambda e: e.verdict,
    "groups": lambda e: e.groups,
    "flows": lambda e: e.flows,
    "goodput": lambda e: e.goodput_bps,
    "delay": lambda e: e.delay_ns,
    "note": lambda e: e.note,
}
UNITS: Mapping[str, Callable[[object], float | None]] = {
    "goodput": units.config_rate_bps,
    "delay": units.config_time_ns,
    "flows": units.config_ratio,
}
CONDITION = re.compile(r"([\w.]+)\s*(<=|>=|!=|=|<|>|~)\s*(.*)")
ORDERS: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt, ">": operator.gt, "<=": operator.le, ">=": operator.ge,
    "=": operator.eq, "!=": operator.ne,
}  # fmt: skip


@dataclass(frozen=True)
class Condition:
    """A condition of `--filter`: goodput>1Gbit, tag=keep, title~loss, flows.0.cc=copa."""

    name: str
    order: str
    text: str

    def holds(self, entry: Entry) -> bool:
        """Returns whether a run meets the condition; one without the value does not."""
        if self.name == "tag":
            found = any(self._of_text(tag) for tag in entry.tags)
            return found if self.order != "!=" else self.text not in entry.tags
        if self.name in UNITS:
            value, bound = VALUES[self.name](entry), UNITS[self.name](self.text)
            return value is not None and bool(ORDERS[self.order](value, bound))
        known = VALUES.get(self.name)
        value = known(entry) if known else config_value(entry.path, self.name)
        return value is not None and self._of_text(value)

    def _of_text(self, value: str) -> bool:
        if self.order == "~":
            return self.text.lower() in value.lower()
        return ORDERS[self.order](value, self.text)


def condition(text: str) -> Condition:
    """Returns the condition that a text states; UserError says what is wrong with it."""
    match = CONDITION.fullmatch(text.strip())
    if match is None:
        raise UserError(
            f"--filter: '{text}' is no condition such as goodput>1Gbit, tag=keep, title~loss or"
            " flows.0.cc=copa"
        )
    name, order, bound = match.groups()
    if name not in VALUES and name != "tag" and "." not in name:
        raise UserError(
            f"--filter: '{name}' is none of tag, {', '.join(VALUES)}, and no key of a config"
        )
    if name in UNITS and (order == "~" or UNITS[name](bound) is None):
        raise UserError(f"--filter: {name} is compared with a number and its unit, not '{bound}'")
    return Condition(name, order, bound)


def config_value(path: Path, key: str) -> str | None:
    """Returns a value of a run's resolved config by its key for -o."""
    if not folder.is_run(path):
        return None
    return dict(configs.leaves(folder.load(path).config)).get(key)
