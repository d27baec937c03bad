# SPDX-License-Identifier: BSD-3-Clause
"""The page of an attack: its harm beside the benign network's, and the trace of what it does."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from weir.analysis import folder
from weir.attack import figure
from weir.attack.attack import Asked, Result
from weir.base import units
from weir.base.configs import Config
from weir.base.page import Page, Source, Status, Table, section
from weir.report import document
from weir.report.figure import named

if TYPE_CHECKING:
    from weir.analysis.folder import Run


def numbers(asked: Asked, result: Result) -> list[tuple[str, str]]:
    """Returns the few numbers that a reader wants first."""
    harms = {"harm": result.left, "worst found": result.found, "benign network": result.benign}
    return [
        *((name, asked.goal.text(harm)) for name, harm in harms.items()),
        ("distance from benign", units.number(result.distance, 2)),
        ("trials", units.count(result.trials)),
        ("digest", result.digest),
    ]


def status(asked: Asked, result: Result) -> Status:
    """Returns whether the bound held, if there is one."""
    if result.held is None:
        return Status("warn", f"{asked.goal.text(result.left)} {asked.goal.says}.")
    bound = asked.goal.text(asked.bound or 0)
    if result.held:
        return Status("good", f"No network of {result.trials:,} exceeded {bound}.")
    return Status("bad", f"The bound of {bound} does not hold.")


def write(
    path: Path,
    asked: Asked,
    result: Result,
    worst: list[float],
    config: Config,
    runs: tuple[Run, Run],
    text: str,
) -> None:
    """Writes report.html, which needs no other file."""
    about = (
        "What the flows got, and what the network did. Dotted lines are those of the benign"
        " network."
    )
    search = "The search. The line is the worst harm after each trial."
    drawn = [
        named("attack", figure.trace(*runs, config), about),
        named("search", figure.progress(worst, result.benign, asked.goal.unit), search),
    ]
    network = Table(("where", "what the network does"), list(result.network.items()), left=2)
    parts = [
        *section("What the network does", network),
        *section("Figures", document.figures(drawn)),
        Source("Configuration of the attack", text),
    ]
    title = f"Attack on {asked.goal.name}: {asked.path.stem}"
    made = Page(title, parts, status(asked, result), numbers(asked, result))
    folder.write_whole(path, document.render(made))
