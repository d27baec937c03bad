# SPDX-License-Identifier: BSD-3-Clause
"""A history of benchmarks, and comparisons with another commit.

Every benchmark appends its medians to a file, a line each: {bench, commit, date, machine, rows}.
Figures of two days say little about two commits, since machines are shared and noisy. So a commit
is compared by building it and measuring both in the same rounds.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

from rich.console import Console

from weir import bootstrap
from weir.base import places, programs, terminal, units
from weir.base.errors import UserError
from weir.base.page import Table
from weir.base.repository import built_commit, git
from weir.bench import sim
from weir.bench.rounds import rounds

COLUMNS = ("date", "commit", "bench", "row", "median", "machine")
AGAINST_COLUMNS = ("row", "this build", "against", "ratio", "from", "to", "differs")
# What must be the same in a build that this one is compared with.
BUILD_OPTIONS = ("optimization", "debug", "b_lto", "b_ndebug", "b_pgo", "b_sanitize")

Measure = Callable[[int], dict[str, Any]]  # a benchmark, with so many rounds
Medians = Callable[[Mapping[str, Any]], dict[str, float]]  # nanoseconds by row, less is better


def history_file() -> Path:
    return places.state() / "bench.jsonl"


def append(bench: str, rows: Mapping[str, float], file: Path | None = None) -> None:
    """Adds a line; says so, and goes on, if the file cannot be written."""
    file = file or history_file()
    entry = {
        "bench": bench,
        "commit": built_commit(),
        "date": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
        "machine": sim.machine(),
        "rows": dict(rows),
    }
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("a") as lines:
            lines.write(json.dumps(entry) + "\n")
    except OSError as error:
        bootstrap.say(f"these figures are not kept: {file}: {error.strerror}")


def read(file: Path | None = None, bench: str | None = None) -> list[dict[str, Any]]:
    """Returns all entries, or those of one benchmark, oldest first."""
    file = file or history_file()
    try:
        lines = file.read_text().splitlines()
    except FileNotFoundError:
        return []
    try:
        entries = [json.loads(line) for line in lines]
    except json.JSONDecodeError:
        raise UserError(f"{file}: not a history of benchmarks: a line is no JSON") from None
    return [entry for entry in entries if bench in (None, entry["bench"])]


def show(entries: Sequence[Mapping[str, Any]], screen: Console) -> None:
    """Prints a line per row of each benchmark."""
    if not entries:
        screen.print(f"no benchmark has been run yet ({history_file()})", soft_wrap=True)
        return
    cells = [
        [
            entry["date"],
            entry["commit"] or units.NONE,
            entry["bench"],
            row,
            units.time(ns),
            entry["machine"],
        ]
        for entry in entries
        for row, ns in entry["rows"].items()
    ]
    terminal.print_table(screen, Table(COLUMNS, cells, left=4))


def against(
    commit: str, bench: str, measure: Measure, medians: Medians, repeat: int, screen: Console
) -> dict[str, Any]:
    """Builds a commit and measures its programs and this build's in turn, in the same way."""
    if repeat < 2:
        raise UserError("--against: one round says nothing of its noise; --repeat 5 does")
    commit = full_commit(commit)
    builds = {"here": programs.build_dir().resolve(), "there": build_commit(commit)}
    found: dict[str, list[dict[str, float]]] = {name: [] for name in builds}
    for number in rounds(repeat, screen):
        names = list(builds) if number % 2 else list(builds)[::-1]
        for name in names:
            screen.print(f"round {number} of {repeat}: {builds[name]}", soft_wrap=True)
            with built_in(builds[name]):
                found[name].append(medians(measure(1)))
    return {
        "bench": bench,
        "against": commit,
        "commit": built_commit(),
        "machine": sim.machine(),
        "rounds": repeat,
        "rows": compare(found["here"], found["there"]),
    }


def compare(
    here: Sequence[Mapping[str, float]], there: Sequence[Mapping[str, float]]
) -> list[dict[str, Any]]:
    """Returns the ratios of each row within rounds; it differs if all are on one side of 1."""
    rows = []
    for name in here[0]:
        pairs = [(a[name], b[name]) for a, b in zip(here, there, strict=True) if name in b]
        ratios = [a / b for a, b in pairs if b > 0]
        if not ratios:
            continue
        rows.append(
            {
                "row": name,
                "ns": median(a for a, _ in pairs),
                "against_ns": median(b for _, b in pairs),
                "ratio": median(ratios),
                "ratio_min": min(ratios),
                "ratio_max": max(ratios),
                "differs": min(ratios) > 1 or max(ratios) < 1,
            }
        )
    return rows


def show_comparison(found: Mapping[str, Any], screen: Console) -> None:
    """Prints the table, and what a difference means."""
    cells = [
        [
            row["row"],
            units.time(row["ns"]),
            units.time(row["against_ns"]),
            *(f"{row[key]:.3f}" for key in ("ratio", "ratio_min", "ratio_max")),
            direction(row),
        ]
        for row in found["rows"]
    ]
    terminal.print_table(screen, Table(AGAINST_COLUMNS, cells, left=1))
    screen.print()
    rows, rounds_run = len(found["rows"]), found["rounds"]
    screen.print(
        f"this build ({found['commit'] or 'commit unknown'}) over {found['against'][:12]}: median"
        f" of {rounds_run} rounds, the least and the most; a row differs if all rounds agree which"
        f" is faster: if nothing differed, {units.number(rows / 2 ** (rounds_run - 1))} of {rows}"
        " rows would seem to",
        soft_wrap=True,
    )
    screen.print(f"machine: {found['machine']}", soft_wrap=True)


def direction(row: Mapping[str, Any]) -> str:
    if not row["differs"]:
        return ""
    return "slower" if row["ratio"] > 1 else "faster"


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
    values = {option["name"]: option["value"] for option in json.loads(file.read_text())}
    texts = {
        name: str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in values.items()
        if name in BUILD_OPTIONS
    }
    return [f"-D{name}={text}" for name, text in texts.items()]


@contextmanager
def built_in(build: Path) -> Iterator[None]:
    """Uses the programs of this build within the block."""
    before = os.environ.get("WEIR_BUILD")
    os.environ["WEIR_BUILD"] = str(build)
    try:
        yield
    finally:
        if before is None:
            del os.environ["WEIR_BUILD"]
        else:
            os.environ["WEIR_BUILD"] = before
