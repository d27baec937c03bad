# SPDX-License-Identifier: BSD-3-Clause
"""Measures a control for the league: its scenes, the worst network of a search, an ACK's cost.

OUT/NAME/cells has the runs, OUT/NAME/worst the search, OUT/NAME/row.json the row. A row is used
again as long as its key is the same: the scenes, the version of weir-sim, the plug-in's bytes. Else
only those runs are repeated whose config or plug-in differs.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec
from rich.console import Console

from weir.analysis import folder
from weir.attack import attack, registry
from weir.attack import run as searches
from weir.base import configs, foreign, programs, tables
from weir.base.errors import UserError
from weir.bench import controls, sim
from weir.bootstrap import ROOT, SetupError
from weir.league import entry
from weir.league.entry import Attacked, Entry, Worst
from weir.many.cells import ended, parted, run_cells
from weir.many.travel import program_version
from weir.runner import config_files
from weir.runner.options import Options
from weir.studies.evaluate.scene import Control, Scene, control_of
from weir.study import reproduce

BOX = ROOT / "configs/attacks/boxes/worst-case.yaml"
TRIALS, SEED = 100, 1  # of the search
LOOP = controls.LOOP  # ignores everything: it is no control to be ranked


@dataclass(frozen=True)
class Asked:
    """A control as the command line has it, and how it is measured."""

    written: str
    quick: bool
    out: Path
    workers: int | None = None

    @property
    def control(self) -> Control:
        return control_of(self.written)

    @property
    def folder(self) -> Path:
        return self.out / self.control.name

    @property
    def cc(self) -> object:
        """The value of `cc:` in a config; None: it has another key."""
        keys = foreign.decode_yaml(f"{{{self.control.keys}}}", self.written)
        return keys.get("cc") if isinstance(keys, dict) else None

    @property
    def value(self) -> object:
        """The same, but None of a class in Python too."""
        return None if isinstance(self.cc, dict) and "python" in self.cc else self.cc

    def cells(self) -> dict[Scene, list[Options]]:
        keys = self.control.keys
        return {one: one.setup(keys, "").cells(self.quick) for one in entry.questions()}


def names() -> list[str]:
    """Returns the controls of Weir that the league has."""
    return [name for name in tables.read()["cc"] if name != LOOP]


def key_of(asked: Asked) -> str:
    """Returns a digest of all that a row follows from; "": a class or kernel may have changed."""
    if asked.value is None:
        return ""
    parts = [program_version(programs.find_program("sim")), entry.scenes_digest(), str(asked.quick)]
    parts += [BOX.read_text(encoding="utf-8") if BOX.is_file() else ""]
    value = config_files.renamed(asked.value, config_files.content)
    parts += [json.dumps(value, sort_keys=True)]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def described(asked: Asked) -> tables.Entry:
    """Returns what a control says of itself; of a guest's it is its name."""
    kind, _, name = asked.written.partition(":")
    if configs.stack_of(asked.written):
        return {"summary": f"{'Linux' if kind == 'linux' else 'QUIC'}'s own {name}, in a guest"}
    cc = asked.cc
    outside = [cc[key] for key in configs.OUTSIDE if key in cc] if isinstance(cc, dict) else []
    return tables.of_outside(outside[0]) if outside else tables.read()["cc"][configs.control(cc)]


def row(asked: Asked, screen: Console) -> Entry:
    """Returns a control's row, measured where it is not there yet. UserError: it is no control."""
    cells = asked.cells()
    reproduce.resolved(next(iter(cells.values()))[0])  # refuses a control before any run
    key, place = key_of(asked), asked.folder / "row.json"
    before = entry.read(place)
    if before is not None and key and before.key == key:
        return msgspec.structs.replace(before, written=asked.written)
    says = described(asked)
    screen.print(f"{asked.control.name}:", markup=False)
    outcomes = run_cells(
        [cell for scene, runs in cells.items() if asked.control.runs(scene) for cell in runs],
        asked.folder / "cells",
        workers=asked.workers,
        console=screen,
    )
    ran, failed = parted(outcomes)
    digests = {name: str(ended(path).get("digest", "")) for name, path in ran.items()}
    made = Entry(
        name=asked.control.name,
        written=asked.written,
        summary=says["summary"],
        reference=says.get("reference", ""),
        scores=entry.scored(ran, {one: [c.name for c in runs] for one, runs in cells.items()}),
        digest=hashlib.sha256(json.dumps(digests, sort_keys=True).encode()).hexdigest()[:16],
        digests=digests,
        worst=worst(asked, key, screen),
        attacks=attacked(asked),
        instructions=instructions(asked),
        failed=failed,
        key="" if failed else key,
    )
    folder.write_whole(place, msgspec.json.format(msgspec.json.encode(made), indent=0).decode())
    return made


def worst(asked: Asked, key: str, screen: Console) -> Worst | None:
    """Searches the network in which one flow uses least; None: it cannot be searched here."""
    if asked.value is None or not BOX.is_file():
        return None
    box = attack.read(BOX)
    place = asked.folder / f"worst-{key or 'python'}"
    for old in asked.folder.glob("worst-*"):
        if old != place:
            shutil.rmtree(old)
    options = searches.Options(
        file=BOX, out=place, runs=TRIALS, seed=SEED, workers=asked.workers, report=False
    )
    aimed = replace(box, config=attack.with_control(box.config, asked.value))
    with screen.status(f"{asked.control.name}: the worst of {TRIALS} networks"):
        result = searches.execute(aimed, options, lambda _: None)
    return Worst(result.left, result.benign, result.network, str(place / "attack.yaml"))


def attacked(asked: Asked) -> list[Attacked]:
    """Tries the known attacks; nothing where Weir is installed without them."""
    if asked.value is None or not registry.index():
        return []
    found = registry.tried({asked.control.name: asked.value})
    return [[one.attack, one.goal, one.harm, one.benign] for one in found]


def instructions(asked: Asked) -> float | None:
    """Counts the instructions of an ACK, without the loop's; None: it cannot be counted here."""
    if shutil.which("valgrind") is None or not isinstance(asked.value, str | dict):
        return None
    try:
        program = sim.build_targets(controls.PROGRAM) / controls.PROGRAM
        counts = [controls.instructions(program, json.dumps(one)) for one in (asked.value, LOOP)]
    except (UserError, SetupError, OSError):
        return None
    return round(counts[0] - counts[1], 1)


def check_names(given: list[str]) -> None:
    """Refuses a control whose row or page would take another one's place."""
    taken = [*names(), "index"]  # index.html is the league's own
    for written in given:
        name = control_of(written).name
        if name in taken:
            raise UserError(f"league: {written}: there is a {name} already: name it otherwise")
        taken.append(name)


def all_rows(
    given: list[str],
    *,
    quick: bool,
    out: Path,
    screen: Console,
    rerun: bool = False,
    workers: int | None = None,
) -> list[Entry]:
    """Returns the rows of Weir's own controls, kept ones unless `rerun`, then of those given."""
    file = entry.kept() if quick and not rerun else None
    rows = {one.name: one for one in file.rows} if file is not None else {}
    check_names(given)
    for written in [*names(), *given]:
        asked = Asked(written, quick, out, workers)
        if written in given or written not in rows:
            rows[asked.control.name] = row(asked, screen)
    return list(rows.values())
