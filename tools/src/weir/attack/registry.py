# SPDX-License-Identifier: BSD-3-Clause
"""Attacks that were found: configs/attacks, a suite that every control can be tried on.

NAME.yaml is the network, boxes/NAME.yaml the search that found it, and index.json has its goal,
seed, harm and digest. `weir attack boxes/NAME.yaml --register` writes both.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from weir.analysis.run_summary import RunSummary
from weir.attack import attack
from weir.attack.attack import Asked, Result
from weir.attack.box import network_of
from weir.attack.goals import goal_of
from weir.base import configs, foreign
from weir.base.configs import Config
from weir.base.errors import UserError
from weir.bootstrap import ROOT
from weir.many import trials

FOLDER = ROOT / "configs/attacks"


class Entry(msgspec.Struct):
    """An entry of index.json."""

    seed: int
    goal: str
    trials: int
    benign: float  # harm without the attack
    left: float  # harm of the attack
    digest: str


@dataclass(frozen=True)
class Known:
    """An attack that was found. `benign` is the config without it."""

    name: str
    entry: Entry
    config: Config
    benign: Config

    def text(self, config: Config, summary: RunSummary) -> str:
        """Returns the harm of a run for people."""
        goal = goal_of(self.entry.goal)
        return goal.text(goal.harm(config, summary))


@dataclass(frozen=True)
class Tried:
    """The harm to a control under an attack, and without it."""

    attack: str
    goal: str
    control: str
    benign: str
    harm: str


def index() -> dict[str, Entry]:
    """Reads index.json; it is empty where Weir is installed without its configs."""
    path = FOLDER / "index.json"
    return foreign.read_json(path, dict[str, Entry]) if path.exists() else {}


def read() -> list[Known]:
    """Reads all attacks, by name."""
    found = []
    for name, entry in sorted(index().items()):
        benign = attack.read(FOLDER / "boxes" / f"{name}.yaml").config
        found.append(Known(name, entry, configs.mapping(FOLDER / f"{name}.yaml"), benign))
    return found


def register(asked: Asked, result: Result, seed: int, found: Path) -> None:
    """Adds what a search has left, or replaces what the same box had before."""
    name = asked.path.stem
    if asked.baseline is not None:
        raise UserError("attack: --register is for searches without --beside")
    if network_of(asked.config).guests:
        raise UserError("attack: --register is for networks that replay anywhere, without guests")
    if asked.path.resolve() != (FOLDER / "boxes" / f"{name}.yaml").resolve():
        raise UserError(f"attack: --register is for the boxes of {FOLDER}/boxes")
    shutil.copy(found, FOLDER / f"{name}.yaml")
    entry = Entry(seed, result.goal, result.trials, result.benign, result.left, result.digest)
    everything = msgspec.json.encode(dict(sorted({**index(), name: entry}.items())))
    (FOLDER / "index.json").write_bytes(msgspec.json.format(everything, indent=1) + b"\n")


def tried(controls: Mapping[str, object]) -> list[Tried]:
    """Tries controls, by what they are called, under each attack and without it."""
    pairs = [(known, name) for known in read() for name in controls]
    several = [
        attack.with_control(config, controls[name])
        for known, name in pairs
        for config in (known.benign, known.config)
    ]
    with trials.opened(FOLDER) as run:
        summaries = run(several)
    found = []
    for place, (known, name) in enumerate(pairs):
        both = slice(2 * place, 2 * place + 2)
        benign, harm = map(known.text, several[both], summaries[both])
        found.append(Tried(known.name, known.entry.goal, name, benign, harm))
    return found


def rows(found: Sequence[Tried]) -> list[list[str]]:
    """Returns a row for each attack: its goal, then the harm to each control (without it)."""
    lines: dict[str, list[str]] = {}
    for one in found:
        line = lines.setdefault(one.attack, [one.attack, one.goal])
        line.append(f"{one.harm} ({one.benign})")
    return list(lines.values())
