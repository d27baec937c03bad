# SPDX-License-Identifier: BSD-3-Clause
"""A history of benchmarks, and comparisons with another commit.

Every benchmark appends its medians to a file, a line each: {bench, commit, date, machine, rows}.
Figures of two days say little about two commits, since machines are shared and noisy. So a commit
is compared by building it and measuring both in the same rounds.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

import msgspec
import numpy as np
from msgspec import Struct

from weir import bootstrap
from weir.base import foreign, places, programs, units
from weir.base.errors import UserError
from weir.base.page import Column, Status, Table
from weir.base.repository import built_commit, git
from weir.bench import sim
from weir.bench.rounds import Result, Rounds, machine
from weir.report import theme
from weir.report.figure import Axis, Figure, Line, Panel, floats, named
from weir.report.theme import Style

COLUMNS = ("date", "commit", "bench", "row", "median", "machine")
COUNTS = ("instructions",)  # benchmarks whose medians are numbers, not nanoseconds
TICKS = 6  # commits that a panel names
AGAINST_COLUMNS = (
    "row",
    Column("this build", "ns", units.time),
    Column("against", "against_ns", units.time),
    Column("ratio", unit="{:.3f}".format),
    Column("from", "ratio_min", "{:.3f}".format),
    Column("to", "ratio_max", "{:.3f}".format),
    Column("differs", lambda row: row.direction()),
)
# What must be the same in a build that this one is compared with.
BUILD_OPTIONS = ("optimization", "debug", "b_lto", "b_ndebug", "b_pgo", "b_sanitize")


class Entry(Struct):
    """Medians of a benchmark by row: nanoseconds, or counts."""

    bench: str
    commit: str | None
    date: str
    machine: str
    rows: dict[str, float]


class Row(Struct):
    """A row of both builds: medians, and ratios within a round."""

    row: str
    ns: float
    against_ns: float
    ratio: float
    ratio_min: float
    ratio_max: float
    differs: bool

    def direction(self) -> str:
        return "" if not self.differs else "slower" if self.ratio > 1 else "faster"


class Comparison(Result):
    """The result of any benchmark with --against."""

    bench: str
    against: str
    commit: str | None
    machine: str
    rounds: int
    rows: list[Row]

    def parts(self) -> Iterator[Table | Status | str]:
        """Yields the table and its notes."""
        yield Table(AGAINST_COLUMNS, self.rows)
        count = len(self.rows)
        yield (
            f"this build ({self.commit or 'commit unknown'}) over {self.against[:12]}: median of"
            f" {self.rounds} rounds, the least and the most; a row differs if all rounds agree"
            f" which is faster: if nothing differed, {units.number(count / 2 ** (self.rounds - 1))}"
            f" of {count} rows would seem to"
        )
        yield f"machine: {self.machine}"


def history_file() -> Path:
    return places.state() / "bench.jsonl"


def append(bench: str, rows: Mapping[str, float]) -> None:
    """Adds a line; says so, and goes on, if the file cannot be written."""
    file, now = history_file(), f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
    entry = Entry(bench, built_commit(), now, machine(), dict(rows))
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("ab") as lines:
            lines.write(msgspec.json.encode(entry) + b"\n")
    except OSError as error:
        bootstrap.say(f"these figures are not kept: {file}: {error.strerror}")


def read(file: Path | None = None, bench: str | None = None) -> list[Entry]:
    """Returns all entries, or those of one benchmark, oldest first."""
    file = file or history_file()
    try:
        entries = msgspec.json.Decoder(Entry).decode_lines(file.read_bytes())
    except FileNotFoundError:
        return []
    except msgspec.MsgspecError as error:
        raise UserError(f"{file}: not a history of benchmarks: {error}") from None
    return [entry for entry in entries if bench in (None, entry.bench)]


def shown(entry: Entry, value: float) -> str:
    return units.number(value) if entry.bench in COUNTS else units.time(value)


def parts(entries: Sequence[Entry]) -> Iterator[Table | str]:
    """Yields a table with a line per row of each benchmark."""
    yield (
        Table(
            COLUMNS,
            [
                (entry.date, entry.commit, entry.bench, row, shown(entry, value), entry.machine)
                for entry in entries
                for row, value in entry.rows.items()
            ],
            left=4,
        )
        if entries
        else f"no benchmark has been run yet ({history_file()})"
    )


def figure(entries: Sequence[Entry]) -> Figure:
    """Returns each benchmark's medians over time, a panel for each machine that it ran on."""
    if not entries:
        raise UserError(f"no benchmark has been run yet ({history_file()})", 1)
    names = dict.fromkeys(row for entry in entries for row in entry.rows)
    styles = dict(zip(names, theme.styles_of([(name, name) for name in names]), strict=True))
    of_panel: dict[tuple[str, str], list[Entry]] = {}
    for entry in entries:
        of_panel.setdefault((entry.bench, entry.machine), []).append(entry)
    panels = [panel(*of, own, styles) for of, own in of_panel.items()]
    caption = "Medians of benchmarks. A point is a measurement; some commits stand below."
    return named("history", Figure(panels), caption)


def panel(bench: str, where: str, entries: Sequence[Entry], styles: Mapping[str, Style]) -> Panel:
    """Returns the measurements of a benchmark on a machine in their order, a line for each row."""
    largest = max(value for entry in entries for value in entry.rows.values())
    divisor, unit = (1.0, "") if bench in COUNTS else units.step(largest, units.TIME_STEPS)
    at = np.arange(len(entries), dtype=float)
    marks = [
        Line(at, floats([e.rows.get(name, np.nan) for e in entries]) / divisor, style, markers=1)
        for name, style in styles.items()
        if any(name in entry.rows for entry in entries)
    ]
    every = -(-len(entries) // TICKS)
    ticks = [(float(i), (e.commit or "-")[:7]) for i, e in enumerate(entries) if i % every == 0]
    x = Axis(f"commit, from {entries[0].date[:10]} to {entries[-1].date[:10]}", ticks=ticks)
    y = Axis(f"median ({unit})" if unit else "median", scale="log")
    return Panel(x, y, marks, f"{bench}, {where}")


def against(
    commit: str, bench: str, measure: Callable[[Rounds], Result], rounds: Rounds
) -> Comparison:
    """Builds a commit and measures its programs and this build's in turn, in the same way."""
    if rounds.repeat < 2:
        raise UserError("--against: one round says nothing of its noise; --repeat 5 does")
    commit = full_commit(commit)
    builds = {"here": programs.build_dir().resolve(), "there": build_commit(commit)}
    found: dict[str, list[dict[str, float]]] = {name: [] for name in builds}
    for number in rounds:
        for name in list(builds) if number % 2 else list(builds)[::-1]:
            rounds.screen.print(
                f"round {number} of {rounds.repeat}: {builds[name]}", soft_wrap=True
            )
            with built_in(builds[name]):
                found[name].append(measure(replace(rounds, repeat=1)).medians())
    rows = list(compare(found["here"], found["there"]))
    return Comparison(bench, commit, built_commit(), machine(), rounds.repeat, rows)


def compare(
    here: Sequence[Mapping[str, float]], there: Sequence[Mapping[str, float]]
) -> Iterator[Row]:
    """Yields the ratios of each row within rounds; it differs if all are on one side of 1."""
    for name in here[0]:
        pairs = [(a[name], b[name]) for a, b in zip(here, there, strict=True) if name in b]
        ratios = [a / b for a, b in pairs if b > 0]
        if ratios:
            least, most = min(ratios), max(ratios)
            ns, against_ns = (median(values) for values in zip(*pairs, strict=True))
            differs = least > 1 or most < 1
            yield Row(name, ns, against_ns, median(ratios), least, most, differs)


def full_commit(name: str) -> str:
    """Returns the hash of a commit; UserError: there is no such commit."""
    try:
        return git("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
    except UserError:
        raise UserError(f"--against: '{name}' is no commit of {bootstrap.ROOT}") from None


def build_commit(commit: str) -> Path:
    """Returns a commit's build in the cache, in a work tree of its own; made on first use."""
    folder = places.cache() / "bench" / commit[:12]
    source, build = folder / "source", folder / "build"
    if not (source / "meson.build").exists():
        git("worktree", "prune")
        git("worktree", "add", "--detach", "--force", str(source), commit)
    setup = [bootstrap.tool("meson"), "setup", str(build), str(source), *build_options()]
    with built_in(build):
        if not (build / "build.ninja").exists():
            bootstrap.say(f"building {commit[:12]} in {folder}, once")
            sim.run_logged(setup, commit[:12])
        sim.run_logged([bootstrap.tool("ninja"), "-C", str(build)], commit[:12])
    return build


def build_options() -> list[str]:
    """Returns options that make a build like this one."""
    file = programs.build_dir() / "meson-info/intro-buildoptions.json"
    options = foreign.read_json(file, list[dict[str, object]])
    values = {option["name"]: str(option["value"]).lower() for option in options}
    return [f"-D{name}={values[name]}" for name in BUILD_OPTIONS if name in values]


@contextmanager
def built_in(build: Path) -> Iterator[None]:
    """Uses the programs of this build within the block."""
    before = os.environ.get("WEIR_BUILD")
    os.environ["WEIR_BUILD"] = str(build)
    try:
        yield
    finally:
        del os.environ["WEIR_BUILD"]
        if before is not None:
            os.environ["WEIR_BUILD"] = before
