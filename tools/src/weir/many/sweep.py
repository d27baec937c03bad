# SPDX-License-Identifier: BSD-3-Clause
"""weir sweep: a grid over any parameters and seeds, as cells, into one table.

A sweep is a file:

    config: ../quickstart.yaml    # relative to this file
    duration: 5s                  # optional
    seeds: [1, 2, 3]              # or how many: 3; optional
    grid:                         # optional: all that -o takes, with a list of values each
      flows.0.count: [10, 100]
      flows.0.cc: [newreno, {copa: {delta: 0.1}}]

Each combination of values is run with each seed, the last parameter changing first.
"""

from __future__ import annotations

import hashlib
import itertools
import math
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
import yaml
from rich.console import Console

from weir.analysis import folder, spread, summary
from weir.base import programs, terminal, units
from weir.base.errors import UserError
from weir.many import cells, progress, shards, travel
from weir.many.cells import Cell, Outcome
from weir.many.sweep_table import SweepTable

KEYS = ("config", "duration", "seeds", "grid")
CELLS_MAX = 10_000
SEED_MAX = 2**64 - 1
ROWS_SHOWN = 24
WRITE_S_MIN = 5.0  # between two writings of a table that grows
NAME_LENGTH = 150
STATUSES = ("done", "reused", "failed")
FIXED = {  # columns of every table, after the parameters
    "seed": pl.UInt64,
    "seed_used": pl.Boolean,
    "status": pl.String,
    "message": pl.String,
    "folder": pl.String,
    "balanced": pl.Boolean,
    "verdict": pl.String,
    "digest": pl.String,
    "wall_s": pl.Float64,
    "virtual_s": pl.Float64,
    "jfi": pl.Float64,
}


@dataclass(frozen=True)
class Sweep:
    """A sweep file that was read. What it lists is as its text has it: weir-sim knows the types."""

    path: Path
    config: Path
    duration: str | None
    seeds: tuple[int | None, ...]  # None: the config's
    grid: dict[str, tuple[str, ...]]
    lines: dict[str, str]  # of each parameter of the grid: FILE:LINE:COLUMN

    def cells(self) -> list[tuple[Cell, dict[str, str]]]:
        """Each combination of values, with its parameters by name."""
        found = []
        for values in itertools.product(*self.grid.values()):
            point = dict(zip(self.grid, values, strict=True))
            override = tuple(f"{key}={value}" for key, value in point.items())
            for seed in self.seeds:
                name = cell_name(point, seed)
                found.append((Cell(name, self.config, override, seed, self.duration), point))
        return found


def cell_name(point: dict[str, str], seed: int | None) -> str:
    """A folder's name that says which cell it is, and stays when the grid grows."""
    parts = [f"{key}={value}" for key, value in point.items()]
    if seed is not None or not parts:
        parts.append("run" if seed is None else f"seed={seed}")
    whole = ",".join(parts)
    name = re.sub(r"[^A-Za-z0-9._=,+-]+", "_", whole)[:NAME_LENGTH]
    if name != whole:  # two may have become one
        name += f"-{hashlib.sha256(whole.encode()).hexdigest()[:8]}"
    return name


def refuse(path: Path, node: yaml.Node, sentence: str) -> UserError:
    """The error of a place in the file."""
    mark = node.start_mark
    return UserError(f"{path}:{mark.line + 1}:{mark.column + 1}: {sentence}")


def read(path: Path) -> Sweep:
    """Reads a sweep file; UserError says what is wrong with it and where."""
    try:
        root = yaml.compose(path.read_text(encoding="utf-8"), Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = f":{mark.line + 1}:{mark.column + 1}" if mark else ""
        raise UserError(f"{path}{where}: bad YAML: {error.problem}") from None
    except yaml.YAMLError:
        raise UserError(f"{path}: bad YAML") from None
    except UnicodeDecodeError:
        raise UserError(f"{path}: not text") from None
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from None
    if root is None:
        raise UserError(f"{path}: empty: a sweep has a config and a grid or seeds")
    top = mapping(path, root, "the sweep")
    if "config" not in top and {"paths", "flows"} & set(top):
        raise UserError(f"{path} is one experiment, not a sweep: weir run {path}")
    for key, (name, _) in top.items():
        if key not in KEYS:
            raise refuse(path, name, f"unknown key '{key}': a sweep has {', '.join(KEYS)}")
    if "config" not in top:
        raise refuse(path, root, "config is required: the experiment, relative to this file")
    if "grid" not in top and "seeds" not in top:
        raise refuse(path, root, "there is nothing to sweep: neither grid nor seeds")
    grid, lines = {}, {}
    for key, (name, node) in mapping(path, top["grid"][1], "grid").items() if "grid" in top else ():
        if key == "seed" or (key == "duration" and "duration" in top):
            raise refuse(path, name, f"grid: {key} has a key of its own beside grid")
        grid[key] = tuple(flow(value) for value in distinct(path, node, key))
        lines[key] = f"{path}:{name.start_mark.line + 1}:{name.start_mark.column + 1}"
    if "grid" in top and not grid:
        raise refuse(path, top["grid"][1], "grid: it is empty")
    made = Sweep(
        path,
        path.parent / text(path, top["config"][1], "config"),
        text(path, top["duration"][1], "duration") if "duration" in top else None,
        seeds(path, top["seeds"][1]) if "seeds" in top else (None,),
        grid,
        lines,
    )
    size = math.prod(map(len, grid.values())) * len(made.seeds)
    if size > CELLS_MAX:
        raise refuse(path, root, f"{size:,} cells are more than {CELLS_MAX:,}")
    return made


def mapping(path: Path, node: yaml.Node, what: str) -> dict[str, tuple[yaml.Node, yaml.Node]]:
    """A mapping's keys, each with the nodes of key and value."""
    if not isinstance(node, yaml.MappingNode):
        raise refuse(path, node, f"{what}: keys and values are wanted")
    found: dict[str, tuple[yaml.Node, yaml.Node]] = {}
    for key, value in node.value:
        name = text(path, key, what)
        if name in found:
            raise refuse(path, key, f"'{name}' is there twice")
        found[name] = (key, value)
    return found


def text(path: Path, node: yaml.Node, what: str) -> str:
    """A scalar, as it is written."""
    if not isinstance(node, yaml.ScalarNode) or not node.value:
        raise refuse(path, node, f"{what}: one value is wanted")
    return str(node.value)


def flow(node: yaml.Node) -> str:
    """A value on one line, as -o takes it."""
    listed = yaml.SequenceNode("tag:yaml.org,2002:seq", [in_flow(node)], flow_style=True)
    return str(yaml.serialize(listed, width=math.inf, allow_unicode=True)).strip()[1:-1]


def in_flow(node: yaml.Node) -> yaml.Node:
    """The node with braces and brackets in place of indentation."""
    if isinstance(node, yaml.CollectionNode):
        node.flow_style = True
        for child in node.value:
            for part in child if isinstance(child, tuple) else (child,):
                in_flow(part)
    return node


def distinct(path: Path, node: yaml.Node, what: str) -> list[yaml.Node]:
    """A list's items, of which there are some and no two alike."""
    if not isinstance(node, yaml.SequenceNode):
        raise refuse(path, node, f"{what}: a list is wanted, such as [1, 2]")
    if not node.value:
        raise refuse(path, node, f"{what}: the list is empty")
    seen = set()
    for item in node.value:
        value = flow(item)
        if value in seen:
            raise refuse(path, item, f"{what}: {value} is there twice")
        seen.add(value)
    return list(node.value)


def seeds(path: Path, node: yaml.Node) -> tuple[int, ...]:
    """A list of seeds, or 1 to a number."""
    if isinstance(node, yaml.ScalarNode):
        count = whole(path, node, 1, CELLS_MAX)
        return tuple(range(1, count + 1))
    return tuple(whole(path, item, 0, SEED_MAX) for item in distinct(path, node, "seeds"))


def whole(path: Path, node: yaml.Node, low: int, high: int) -> int:
    """A whole number in [low, high]."""
    value = text(path, node, "seeds")
    if not re.fullmatch(r"[0-9]{1,20}", value) or not low <= int(value) <= high:
        raise refuse(path, node, f"seeds: '{value}' is not a whole number from {low} to {high}")
    return int(value)


def check(sweep: Sweep) -> str:
    """The first cell's resolved config: what is wrong with it is likely wrong with all."""
    cell, _ = sweep.cells()[0]
    argv = [*cell.argv(programs.find_program("sim")), "--print-config"]
    done = subprocess.run(argv, capture_output=True, text=True)
    if done.returncode == 0:
        return done.stdout
    sentence = travel.reason(done.returncode, done.stderr)
    for override, where in zip(cell.override, sweep.lines.values(), strict=True):
        if sentence.startswith(f"-o {override}: "):
            raise UserError(f"{where}: {sentence}", done.returncode)
    raise UserError(sentence, done.returncode)


def execute(
    sweep: Sweep,
    out: Path,
    console: Console,
    *,
    cluster: str | None = None,
    workers: int | None = None,
    any_version: bool = False,
    shard: shards.Shard = shards.WHOLE,
) -> pl.DataFrame:
    """Runs what is not there yet; writes out/table.parquet as it goes, and returns it."""
    identity = shards.identity(sweep, check(sweep))
    planned = shard.of(sweep.cells())
    if not planned:
        raise UserError(f"--shard {shard}: there are only {len(sweep.cells())} cells")
    growing = Growing(out / "table.parquet", [(cell.name, point) for cell, point in planned])
    kept = progress.Progress(out, len(planned), here=cluster is None)
    with Bar(console, kept) as bar:

        def on_begin() -> None:
            shards.write(out, sweep, shard, identity)
            kept.write()

        def on_outcome(outcome: Outcome, ended: int, total: int) -> None:
            growing.add(outcome)
            kept.add(outcome.status)
            bar.outcome(outcome)

        cells.run_cells(
            [cell for cell, _ in planned],
            out,
            cluster=cluster,
            workers=workers,
            any_version=any_version,
            on_outcome=on_outcome,
            on_begin=on_begin,
        )
    return growing.write()


def merge(places: Sequence[Path], out: Path) -> tuple[pl.DataFrame, Sweep]:
    """Puts the shards of a sweep together in out, which is then as if one had run all."""
    sweep, identity, ended = shards.together(places)
    with cells.locked(out):
        growing = Growing(out / "table.parquet", [(c.name, point) for c, point in sweep.cells()])
        for cell, _ in sweep.cells():
            place, status, message = ended[cell.name]
            if place.exists():
                cells.copy(place, out / cell.name)
            growing.add(Outcome(cell, (out / cell.name).resolve(), status, message))
        shards.write(out, sweep, shards.WHOLE, identity)
        return growing.write(), sweep


class Growing:
    """A table that is written while its cells end, for a tenth of the time at most."""

    def __init__(self, path: Path, planned: Sequence[tuple[str, dict[str, str]]]) -> None:
        self.path = path
        self.points = dict(planned)
        self.rows: dict[str, dict[str, Any]] = {}
        self.next_s = time.monotonic() + WRITE_S_MIN

    def add(self, outcome: Outcome) -> None:
        """A cell ended."""
        name = outcome.cell.name
        self.rows[name] = row(self.points[name], outcome)
        began_s = time.monotonic()
        if began_s >= self.next_s:
            self.write()
            ended_s = time.monotonic()
            self.next_s = ended_s + max(WRITE_S_MIN, 9 * (ended_s - began_s))

    def write(self) -> pl.DataFrame:
        """Of the cells that have ended, in the order of the grid."""
        there = [name for name in self.points if name in self.rows]
        made = framed([self.points[n] for n in there], [self.rows[n] for n in there])
        folder.write_table(self.path, made)
        return made


def table(points: Sequence[dict[str, str]], outcomes: Sequence[Outcome]) -> pl.DataFrame:
    """One row per cell: its parameters, what became of it, and the summary's figures.

    groups.<index>.<name> and links.<path>.<name> are every number of summary.json's groups and
    links, those of objects in them too: groups.0.transfers.completion_p50_ns. A failed cell has
    nulls. A parameter that is a number in every cell is one here.
    """
    return framed(points, [row(*one) for one in zip(points, outcomes, strict=True)])


def row(point: dict[str, str], outcome: Outcome) -> dict[str, Any]:
    """Of one cell."""
    made: dict[str, Any] = {**point, **dict.fromkeys(FIXED)}
    made |= {"seed": outcome.cell.seed, "folder": str(outcome.folder)}
    made |= {"status": outcome.status, "message": outcome.message}
    if outcome.status != "failed":
        made |= figures(folder.read_json(outcome.folder / "summary.json"))
    return made


def framed(points: Sequence[dict[str, str]], rows: Sequence[dict[str, Any]]) -> pl.DataFrame:
    """Rows as a table."""
    made = pl.DataFrame(rows, schema_overrides=FIXED, infer_schema_length=None)
    return made.with_columns(typed(made[name]) for name in points[0])


def figures(ended: dict[str, Any]) -> dict[str, Any]:
    """A summary's figures by column name."""
    found = {name: ended[name] for name in FIXED if name in ended}
    found["balanced"] = ended.get("ledger", {}).get("balanced")
    links = {f"links.{name}": link for name, link in ended.get("links", {}).items()}
    groups = {f"groups.{index}": group for index, group in enumerate(ended.get("groups", []))}
    for prefix, part in (links | groups).items():
        found |= leaves(prefix, part)
    return found


def leaves(prefix: str, part: dict[str, Any]) -> dict[str, Any]:
    """All figures of an object and of those in it, such as groups.0.transfers.completion_p99_ns."""
    found: dict[str, Any] = {}
    for name, value in part.items():
        if isinstance(value, dict):
            found |= leaves(f"{prefix}.{name}", value)
        elif isinstance(value, (str, int, float)):
            found[sys.intern(f"{prefix}.{name}")] = value  # one text for all cells
    return found


def typed(column: pl.Series) -> pl.Series:
    """Text as whole numbers or numbers, if all of it is."""
    for dtype in (pl.Int64, pl.Float64):
        made = column.cast(dtype, strict=False)
        if made.null_count() == 0:
            return made
    return column


def same_runs(made: pl.DataFrame, sweep: Sweep) -> tuple[int, int]:
    """How many combinations were run with several seeds to no effect, and how many there are.

    A run says itself whether anything random was drawn; without, its seed is only a name.
    """
    combinations = made.height // len(sweep.seeds)
    if len(sweep.seeds) < 2:
        return 0, combinations
    each = made["seed_used"].to_list()
    parts = [each[i : i + len(sweep.seeds)] for i in range(0, len(each), len(sweep.seeds))]
    return sum(part.count(False) > 1 for part in parts), combinations


SHOWN: tuple[tuple[str, str, Callable[[float], str]], ...] = (
    ("goodput", "goodput", units.rate),
    ("delay", "queueing delay", units.time),
    ("loss", "loss", units.percent),
    ("jfi", "JFI", summary.ratio),
)


def show(made: pl.DataFrame, sweep: Sweep, out: Console, rows_max: int | None = None) -> None:
    """The first combinations, each with its means over seeds; how many cells there are."""
    table = SweepTable(sweep.path, made)
    found = [(name, say, table.known(key)) for key, name, say in SHOWN]
    means = [(name, say, table.means(metric, table.keys)) for name, say, metric in found if metric]
    axes = {one.key: dict(zip(one.values, one.names, strict=True)) for one in table.axes}
    points = made.select(table.keys).unique(maintain_order=True) if table.keys else pl.DataFrame()
    height = points.height or 1
    shown = height if rows_max is None else min(height, rows_max)
    rows = [
        [
            *(named[points[key][row]] for key, named in axes.items()),
            str(means[0][2]["n"][row]) if means else "0",
            *(spread.stated(say, *part.row(row)[-4:-1]) for _, say, part in means),
        ]
        for row in range(shown)
    ]
    columns = (*short(list(axes)), "runs", *(name for name, _, _ in means))
    terminal.print_table(out, terminal.table(columns, rows, left=len(axes)))
    if any(part["low"].is_finite().any() for _, _, part in means):
        out.print(f"means of so many runs with their {spread.STATED}", soft_wrap=True)
    if shown < height:
        out.print(f"and {height - shown:,} more in the table: --all shows them")
    counts = Counter(made["status"])
    said = ", ".join(f"{counts[status]:,} {status}" for status in STATUSES if counts[status])
    out.print(f"{made.height:,} cells: {said}")
    same, combinations = same_runs(made, sweep)
    if same:
        out.print(
            f"in {same:,} of {combinations:,} combinations {summary.SEED_UNUSED}:"
            " their seeds are one run, not replicas",
            style="yellow",
            soft_wrap=True,
        )


def short(names: Sequence[str]) -> list[str]:
    """As little of each dotted name's end as tells it from the others."""
    split = [name.split(".") for name in names]
    tails = [[".".join(parts[-n:]) for n in range(1, len(parts) + 1)] for parts in split]
    shared = Counter(itertools.chain.from_iterable(tails))
    return [next((t for t in tail if shared[t] == 1), tail[-1]) for tail in tails]


class Bar:
    """Progress on a terminal, with an estimate; why a cell failed, above it."""

    def __init__(self, console: Console, kept: progress.Progress) -> None:
        self.console = console
        self.kept = kept
        self.bar = terminal.progress(console)
        said = f"0 of {kept.cells:,} cells"
        self.task = self.bar.add_task("sweeping", total=kept.cells, times=said)

    def __enter__(self) -> Bar:
        self.bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.bar.stop()

    def outcome(self, outcome: Outcome) -> None:
        """A cell ended."""
        if outcome.status == "failed":
            said = f"weir: {outcome.cell.name}: {outcome.message}"
            self.console.print(said, markup=False, highlight=False, soft_wrap=True)
        kept, failed = self.kept, self.kept.counts["failed"]
        parts = [f"{kept.ended:,} of {kept.cells:,} cells"]
        if failed:
            parts.append(f"{failed:,} failed")
        if kept.left_ns is not None:
            parts.append(f"about {units.time(kept.left_ns)} left")
        self.bar.update(self.task, completed=kept.ended, times=", ".join(parts))
