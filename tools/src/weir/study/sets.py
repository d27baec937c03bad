# SPDX-License-Identifier: BSD-3-Clause
"""A study with other parameters of a control: what a change of a law does to every claim.

Each set of parameters is put into every flow of the control, in the resolved config of each cell
that has one; the other cells are run once for all sets. A set with a plug-in puts that in the
control's place, such as the kernel's own file of it (weir new cc --linux). So does one with the
stack of a guest, a Linux kernel's or QUIC's; cells with what guests cannot do are not run then.
"""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import yaml
from rich.console import Console

from weir.analysis import folder
from weir.base import configs, foreign, tables, terminal
from weir.base.configs import Config
from weir.base.errors import UserError, nearest
from weir.base.page import Table
from weir.many.cells import parted, run_cells
from weir.runner.options import Options
from weir.study import claim, reproduce, study_page
from weir.study.claim import Checked, Found, Study

PLUGIN, STACK = "plugin", "stack"


@dataclass(frozen=True)
class Sets:
    """Sets of parameters of one control, as they were written; the first is that of the study."""

    control: str
    written: tuple[str, ...]

    def parameters(self, index: int) -> dict[str, str]:
        """Reads them by name; UserError: it is no list of parameters."""
        text = self.written[index]
        try:
            found = foreign.decode_yaml(f"{{{text}}}", "--set")
        except UserError:
            found = None
        if not isinstance(found, dict) or not all(isinstance(v, str) and v for v in found.values()):
            raise UserError(
                f"--set '{text}': parameters are wanted, such as 'delta: 0.4, mode: auto'"
            )
        if PLUGIN in found:  # configs are written elsewhere
            found[PLUGIN] = str(Path(found[PLUGIN]).resolve())
        if STACK in found and (len(found) > 1 or configs.stack_of(found[STACK]) is None):
            raise UserError(
                f"--set '{text}': stack: is linux:CC or quic:STACK:CC, and stands alone"
            )
        return {str(name): value for name, value in found.items()}


def of_control(study: Study, control: str) -> Study:
    """Makes the study of a control that it does not name. UserError: its claims are of others."""
    if study.experiments_of is None:
        raise UserError(
            f"study: the claims of {study.name} are about certain controls: give one of them as"
            " --cc, and --set; c4 and rmcat judge any"
        )
    if configs.stack_of(control):
        raise UserError(f"study: {control}: a stack is given as --set 'stack: {control}'")
    name = configs.control_name(control)
    return replace(
        study,
        name=f"{study.name}-{name}",
        title=f"{study.title}: {name}",
        experiments=study.experiments_of(name, configs.text(configs.control_of(control))),
        drawn=None,
        command=shlex.join(["study", study.name, "--cc", control]),
        results=f"{name}.json",
    )


def changed(
    config: Config, control: str, parameters: dict[str, str], default: dict[str, str]
) -> bool:
    """Sets parameters of each flow of a control in a resolved config; returns whether it has any.

    What has its default is left out: a parameter that stands for a set of others (`dialect`) would
    lose against them. A plug-in, or a guest's stack, has none of the control's.
    """
    found = [
        flows
        for flows in config.get("flows", [])
        if isinstance(flows.get("cc"), dict) and control in flows["cc"]
    ]
    for flows in found:
        own = flows.pop("cc")[control]
        if STACK in parameters:
            flows |= hosted(flows, configs.stack_of(parameters[STACK]) or {})
            continue
        written = {key: value for key, value in own.items() if value != default.get(key)}
        flows["cc"] = parameters if PLUGIN in parameters else {control: written | parameters}
    return bool(found)


def hosted(flows: Config, stack: Config) -> Config:
    """Returns the stack of flows that guests send. A QUIC program itself knows a flow's size."""
    size = flows["source"].get("size") if isinstance(flows.get("source"), dict) else None
    if "quic" not in stack or size is None:
        return {"stack": stack}
    (name, own), *_ = stack["quic"].items()
    return {"stack": {"quic": {name: own | {"size": size["bytes"]}}}, "source": "bulk"}


def cells_of(
    cells: Sequence[Options], sets: Sets, place: Path
) -> tuple[list[list[Options]], dict[str, str]]:
    """Makes the study's cells for each set; one without the control is the same cell in all.

    Returned are also cells that guests cannot run, by name, and why. UserError: no cell has the
    control, or weir-sim refuses a set.
    """
    parameters = [sets.parameters(index) for index in range(len(sets.written))]
    known = tables.read()["cc"]
    if sets.control not in known:  # before all cells are resolved to look for it
        near = nearest(sets.control, known, "see weir list cc")
        raise UserError(f"--cc: '{sets.control}' is not a control of Weir's; {near}")
    default = {
        key: str(row["default"]) for key, row in known[sets.control].get("params", {}).items()
    }
    place.mkdir(parents=True, exist_ok=True)
    found: list[list[Options]] = [[] for _ in parameters]
    cannot: dict[str, str] = {}
    tried = False
    for cell in cells:
        text = reproduce.resolved(cell)
        made: list[Options] = []
        for index, chosen in enumerate(parameters):
            config = yaml.load(text, Loader=yaml.BaseLoader)
            if not chosen or not changed(config, sets.control, chosen, default):
                found[index].append(cell)
                continue
            name = f"{cell.name}-set{index}"
            path = place / f"{name}.yaml"
            folder.write_whole(path, yaml.safe_dump(config, sort_keys=False))
            found[index].append(Options(config=path, out=Path(name)))
            if STACK in chosen and (why := refused(found[index][-1])):
                cannot[name] = why
            else:
                made.append(found[index][-1])
        if made and not tried:
            tried = True
            for one in made:  # a sentence now, and not one for each cell later
                reproduce.resolved(one)
    if not tried:
        none = f"no flow of this study has the control '{sets.control}'"
        raise UserError(next(iter(cannot.values()), none))
    return found, cannot


def refused(cell: Options) -> str:
    """Returns why weir-sim refuses a cell, without the place in its config; "": it does not."""
    try:
        reproduce.resolved(cell)
    except UserError as error:
        return re.sub(r"^.*?\.yaml:\d+:\d+: ", "", str(error))
    return ""


def run(
    study: Study,
    sets: Sets,
    quick: bool,
    out: Path,
    screen: Console,
    workers: int | None = None,
    as_json: bool = False,
) -> int:
    """Runs a study with each set and prints its claims, a column for each; exit status.

    as_json: a row for each claim and set on standard output, too.
    """
    study_cells = reproduce.Campaign(study, quick).cells
    by_set, cannot = cells_of(study_cells, sets, out / "configs")
    each = {cell.name: cell for cells in by_set for cell in cells if cell.name not in cannot}
    outcomes = run_cells(
        list(each.values()),
        out / "cells",
        workers=workers,
        console=screen,
    )
    folders, failed = parted(outcomes)
    columns: list[list[Checked]] = []
    for cells in by_set:
        named = zip(study_cells, cells, strict=True)
        own = {cell.name: folders[run.name] for cell, run in named if run.name in folders}
        columns.append(claim.check(study, Found(own, quick)))
    rows = [
        [
            one.experiment.name,
            one.claim.says,
            study_page.asked(one.claim, one.claim.kind),
            study_page.within(one.claim),
            *(f"{study_page.here(c)}{'' if c.verdict == 'holds' else ' !'}" for c in claims),
        ]
        for claims in zip(*columns, strict=True)
        if (one := claims[0]).claim.kind != "not comparable"
    ]
    names = [text or "as it is" for text in sets.written]
    shown = Table(("", "claim", "asked", "holds within", *names), rows, left=2)
    terminal.print_table(screen, shown, ("claim",))
    for name, claims in zip(names, columns, strict=True):
        screen.print(f"{name}: {'; '.join(study_page.counts(claims))}", markup=False)
    for why, count in Counter(cannot.values()).items():
        screen.print(f"not run: {count} cells: {why}", markup=False, soft_wrap=True)
    data = [
        {"set": name} | row
        for name, claims in zip(names, columns, strict=True)
        for row in study_page.table([(study, claims)]).to_dicts()
    ]
    return reproduce.finish(screen, failed, (), data if as_json else None)
