# SPDX-License-Identifier: BSD-3-Clause
"""Attacks that were found: configs/attacks, a suite that every control can be tried on.

NAME.yaml is the network, boxes/NAME.yaml the search that found it, and index.json has its goal,
seed, harm and digest. `weir attack boxes/NAME.yaml --register` writes both.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from weir.attack import attack
from weir.attack.attack import Asked, Result
from weir.attack.box import victims
from weir.attack.element import Config
from weir.attack.goals import goal_of
from weir.attack.trials import Trials
from weir.base import configs
from weir.base.errors import UserError
from weir.bootstrap import ROOT

FOLDER = ROOT / "configs/attacks"
KEPT = ("goal", "trials", "benign", "left", "digest")


@dataclass(frozen=True)
class Known:
    """One of them. `benign` is the config without the attack."""

    name: str
    goal: str
    harm: float
    digest: str
    config: Config
    benign: Config


@dataclass(frozen=True)
class Tried:
    """A control under one of them."""

    attack: str
    goal: str
    control: str
    benign: str
    harm: str


def index() -> dict[str, dict[str, Any]]:
    """index.json; nothing where Weir is installed without its configs."""
    path = FOLDER / "index.json"
    found: dict[str, dict[str, Any]] = json.loads(path.read_text()) if path.exists() else {}
    return found


def read() -> list[Known]:
    """All of them, by name."""
    found = []
    for name, entry in sorted(index().items()):
        asked = attack.read(FOLDER / "boxes" / f"{name}.yaml")
        config = configs.mapping(FOLDER / f"{name}.yaml")
        harm, digest = entry["left"], entry["digest"]
        found.append(Known(name, entry["goal"], harm, digest, config, asked.config))
    return found


def register(asked: Asked, result: Result, seed: int, found: Path) -> None:
    """Adds what a search has left, or replaces what the same box had before."""
    name = asked.path.stem
    if asked.path.resolve() != (FOLDER / "boxes" / f"{name}.yaml").resolve():
        raise UserError(f"attack: --register is for the boxes of {FOLDER}/boxes")
    shutil.copy(found, FOLDER / f"{name}.yaml")
    entry = {"seed": seed} | {key: getattr(result, key) for key in KEPT}
    everything = dict(sorted({**index(), name: entry}.items()))
    (FOLDER / "index.json").write_text(json.dumps(everything, indent=1) + "\n")


def with_control(config: Config, control: object) -> Config:
    """The config with this control for all flows that have one."""
    changed = deepcopy(config)
    for group in victims(changed):
        changed["flows"][group]["cc"] = control
    return changed


def tried(controls: Mapping[str, object]) -> list[Tried]:
    """Controls, by what they are called, under each attack and without it."""
    known = read()
    cells = [(one, name) for one in known for name in controls]
    configs = [
        with_control(config, controls[name])
        for one, name in cells
        for config in (one.benign, one.config)
    ]
    with Trials(FOLDER) as trials:
        summaries = trials.run(configs)
    harms = [_harm(cells[i // 2][0], configs[i], one) for i, one in enumerate(summaries)]
    return [
        Tried(one.name, one.goal, name, harms[2 * i], harms[2 * i + 1])
        for i, (one, name) in enumerate(cells)
    ]


def _harm(known: Known, config: Config, summary: Mapping[str, Any]) -> str:
    goal = goal_of(known.goal)
    return goal.text(goal.harm(config, dict(summary)))


def rows(found: Sequence[Tried]) -> list[list[str]]:
    """A row for each attack: its goal, then the harm to each control (without the attack)."""
    lines: dict[str, list[str]] = {}
    for one in found:
        line = lines.setdefault(one.attack, [one.attack, one.goal])
        line.append(f"{one.harm} ({one.benign})")
    return list(lines.values())
