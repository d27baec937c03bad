# SPDX-License-Identifier: BSD-3-Clause
"""A sweep as its file has it: the grid of parameters and seeds."""

from __future__ import annotations

import hashlib
import itertools
import math
import re
from dataclasses import dataclass
from pathlib import Path

import polars as pl
import yaml

from weir.base.errors import UserError
from weir.runner.options import Options

KEYS = ("config", "duration", "seeds", "grid", "branch_at", "keep")
KEPT = ("runs", "table")
CELLS_MAX = 10_000
SEED_MAX = 2**64 - 1
NAME_LENGTH = 150
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
    branch_at: str | None = None  # when the grid's parameters change; None: from the start
    keep: str = "runs"  # one of KEPT: folders of all runs and their table, or only the table

    def cells(self) -> list[tuple[Options, dict[str, str]]]:
        """Returns a cell for each combination of values and seed, with its parameters by name."""
        found = []
        for values in itertools.product(*self.grid.values()):
            point = dict(zip(self.grid, values, strict=True))
            override = tuple(f"{key}={value}" for key, value in point.items())
            if self.branch_at is not None and point:
                override = (f"schedule.+={{at: {self.branch_at}, {self.changes(point)}}}",)
            for seed in self.seeds:
                cell = Options(
                    config=self.config,
                    out=Path(cell_name(point, seed)),
                    overrides=override,
                    seed=seed,
                    duration=self.duration,
                )
                found.append((cell, point))
        return found

    def changes(self, point: dict[str, str]) -> str:
        """Returns a combination as changes of a schedule."""
        return ", ".join(f"{key.removeprefix('paths.')}: {v}" for key, v in point.items())


def cell_name(point: dict[str, str], seed: int | None) -> str:
    """Names a cell's folder by its parameters, so that the name stays when the grid grows."""
    parts = [f"{key}={value}" for key, value in point.items()]
    if seed is not None or not parts:
        parts.append("run" if seed is None else f"seed={seed}")
    whole = ",".join(parts)
    name = re.sub(r"[^A-Za-z0-9._=,+-]+", "_", whole)[:NAME_LENGTH]
    if name != whole:  # two may have become one
        name += f"-{hashlib.sha256(whole.encode()).hexdigest()[:8]}"
    return name


def refuse(path: Path, node: yaml.Node, sentence: str) -> UserError:
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
    if "branch_at" in top and not all(key.startswith("paths.") for key in grid):
        raise refuse(path, top["branch_at"][0], "branch_at: only parameters of paths change then")
    if "grid" in top and not grid:
        raise refuse(path, top["grid"][1], "grid: it is empty")
    made = Sweep(
        path,
        path.parent / text(path, top["config"][1], "config"),
        text(path, top["duration"][1], "duration") if "duration" in top else None,
        seeds(path, top["seeds"][1]) if "seeds" in top else (None,),
        grid,
        lines,
        text(path, top["branch_at"][1], "branch_at") if "branch_at" in top else None,
        text(path, top["keep"][1], "keep") if "keep" in top else "runs",
    )
    if made.keep not in KEPT:
        raise refuse(path, top["keep"][1], f"keep: '{made.keep}' is not {' or '.join(KEPT)}")
    size = math.prod(map(len, grid.values())) * len(made.seeds)
    if size > CELLS_MAX:
        raise refuse(path, root, f"{size:,} cells are more than {CELLS_MAX:,}")
    return made


def mapping(path: Path, node: yaml.Node, what: str) -> dict[str, tuple[yaml.Node, yaml.Node]]:
    """Returns a mapping's keys, each with the nodes of key and value."""
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
    if not isinstance(node, yaml.ScalarNode) or not node.value:
        raise refuse(path, node, f"{what}: one value is wanted")
    return str(node.value)


def flow(node: yaml.Node) -> str:
    listed = yaml.SequenceNode("tag:yaml.org,2002:seq", [in_flow(node)], flow_style=True)
    return str(yaml.serialize(listed, width=math.inf, allow_unicode=True)).strip()[1:-1]


def in_flow(node: yaml.Node) -> yaml.Node:
    """Returns the node with braces and brackets for indentation, and quotes only where needed."""
    if isinstance(node, yaml.ScalarNode):
        node.style = None
    if isinstance(node, yaml.CollectionNode):
        node.flow_style = True
        for child in node.value:
            for part in child if isinstance(child, tuple) else (child,):
                in_flow(part)
    return node


def distinct(path: Path, node: yaml.Node, what: str) -> list[yaml.Node]:
    """Returns a list's items; an empty list, and two items that are alike, are refused."""
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
    if isinstance(node, yaml.ScalarNode):
        count = whole(path, node, 1, CELLS_MAX)
        return tuple(range(1, count + 1))
    return tuple(whole(path, item, 0, SEED_MAX) for item in distinct(path, node, "seeds"))


def whole(path: Path, node: yaml.Node, low: int, high: int) -> int:
    value = text(path, node, "seeds")
    if not re.fullmatch(r"[0-9]{1,20}", value) or not low <= int(value) <= high:
        raise refuse(path, node, f"seeds: '{value}' is not a whole number from {low} to {high}")
    return int(value)
