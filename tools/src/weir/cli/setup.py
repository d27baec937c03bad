# SPDX-License-Identifier: BSD-3-Clause
"""Adds what an installed Weir is without."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from weir.base import terminal
from weir.base.errors import UserError
from weir.base.page import Column, Table
from weir.bootstrap import ROOT
from weir.cli.usage import commands
from weir.live import pci, programs

app = commands(__doc__)
CARDS = (
    Column("card", "address", words=True),
    Column("driver", lambda card: card.driver or "none", words=True),
    Column("interface", lambda card: " ".join(card.interfaces), words=True),
    Column(
        "group",
        lambda card: (card.folder / "iommu_group").resolve().name if card.group else "",
        words=True,
    ),
)


@app.add("live", "setup live")
def live_() -> None:
    """Installs DPDK (as root) and builds the programs of live runs with it, in a minute."""
    for path in programs.setup():
        print(path)


@app.add("configs", "setup configs", "setup configs mine")
def configs_(
    folder: Annotated[Path, Argument(metavar="FOLDER", help="A new folder.")] = Path("configs"),
) -> None:
    """Copies the configs that Weir comes with, to be run and changed."""
    if folder.exists():
        raise UserError(f"setup configs: {folder} exists: name a new folder")
    shutil.copytree(ROOT / "configs", folder, ignore=shutil.ignore_patterns("bulk", "__pycache__"))
    print(f"{folder} is written; {folder}/README.md says how to choose one")


@app.add("cards", "setup cards", "setup cards ens1f0 ens1f1", "setup cards --undo 0000:3b:00.0")
def cards_(
    names: Annotated[
        list[str] | None,
        Argument(metavar="CARD ...", help="PCI addresses or interfaces; none: lists all cards."),
    ] = None,
    undo: Annotated[bool, Option("--undo", help="Gives them back to the kernel.")] = False,
    yes: Annotated[bool, Option("--yes", help="Does not ask.")] = False,
) -> None:
    """Gives network cards to DPDK (vfio-pci, as root) until the next boot, or back."""
    if not names:
        terminal.print_table(terminal.console(), Table(CARDS, pci.cards()))
        return
    chosen = list({card.address: card for card in map(pci.find, names)}.values())
    refusals = [pci.refusal_back(card) if undo else pci.refusal(card, chosen) for card in chosen]
    if why := next(filter(None, refusals), None):
        raise UserError(f"setup cards: {why}")
    back = [f"give {card.address} back to the kernel's own driver" for card in chosen]
    plan = back if undo else list(pci.steps(chosen))
    if os.geteuid() != 0:
        raise UserError("setup cards: only root may change drivers", 1)
    for step in plan:
        print(step)
    if not yes and not sys.stdin.isatty():
        raise UserError("setup cards: there is no terminal to ask on; --yes does so at once")
    if not yes and not typer.confirm("Do so?"):
        raise typer.Exit(1)
    if undo:
        pci.unbind(chosen)
    else:
        pci.bind(chosen)
    for card in chosen:
        print(f"{card.address}: {card.driver}")
