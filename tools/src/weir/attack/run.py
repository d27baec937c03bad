# SPDX-License-Identifier: BSD-3-Clause
"""`weir attack`: a search into a folder, with its progress, its page and its proof.

The folder has trials.jsonl (every trial), attack.yaml (what is left of the worst network, a config
for `weir run`), benign.yaml, attack.json (the numbers), the run folders attack/ and benign/ of
both, and report.html.
"""

from __future__ import annotations

import hashlib
import json
import shlex
import shutil
from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path

import weir
from weir.analysis.folder import write_whole
from weir.attack import page, registry
from weir.attack.attack import KEEP, Asked, Attack, Result, with_control, yaml_text
from weir.attack.box import guests_of
from weir.attack.search import Budget, Found, Journal
from weir.base import configs, programs, units
from weir.base.configs import Config
from weir.base.errors import UserError
from weir.guests import kernels, stacks
from weir.many import cells, trials
from weir.many.travel import program_version
from weir.runner import config_files

RUNS = 500  # without a limit


@dataclass(frozen=True, kw_only=True)
class Options:
    """A search as the command line asks for it."""

    file: Path
    goal: str | None = None
    control: str | None = None
    beside: str | None = None
    out: Path | None = None
    runs: int | None = None
    seconds: float | None = None
    seed: int = 1
    cluster: str | None = None
    workers: int | None = None
    keep: float = KEEP
    report: bool = True
    register: bool = False

    @property
    def budget(self) -> Budget:
        """The end of the search; without a limit it is RUNS trials."""
        return Budget(self.runs or (None if self.seconds else RUNS), self.seconds)

    @property
    def folder(self) -> Path:
        """The folder of the search."""
        control = configs.control_name(self.control) if self.control else None
        parts = ["attack", self.file.stem, control, str(self.seed)]
        return self.out or Path("runs") / "-".join(part for part in parts if part)


def versions(several: Iterable[Config]) -> str:
    """Returns which kernels and QUIC stacks the guests of configs run; "": they have none."""
    groups = (group for config in several for group in config.get("flows", ()))
    names = {name for group in groups for name in guests_of(group)}
    if not names:
        return ""
    found = {name: kernel.key for name, kernel in kernels.named().items()} | stacks.builds()
    return json.dumps({name: found.get(name) for name in sorted(names)})


def identity(asked: Asked, seed: int) -> dict[str, str | int]:
    """Returns the first line of trials.jsonl, which says of which search the others are.

    It follows from all that harms do: the config, what files it names have in them, the versions of
    weir-sim and of guests.
    """

    config = asked.config
    baseline = with_control(config, configs.control_of(asked.baseline)) if asked.baseline else {}
    parts = [config_files.renamed(one, config_files.content) for one in (config, baseline)]
    version = program_version(programs.find_program("sim"))
    whole = json.dumps([*parts, asked.goal.name, asked.box, version], sort_keys=True)
    whole += versions((config, baseline))
    return {"search": hashlib.sha256(whole.encode()).hexdigest()[:16], "seed": seed}


def comment(asked: Asked, result: Result, options: Options) -> list[str]:
    """Returns the lines at the top of attack.yaml."""
    goal = asked.goal
    given = {"--goal": options.goal, "--cc": options.control, "--beside": options.beside}
    words = [word for pair in given.items() if pair[1] for word in pair]
    command = shlex.join(
        ["weir", "attack", str(asked.path), *map(str, words), "--seed", str(options.seed)]
    )
    return [
        f"Found by `{command}`, in {result.trials} trials.",
        f"{goal.text(result.left)} {goal.says}; {goal.text(result.benign)} in the same network"
        " without the attack.",
        f"Digest {result.digest}.",
    ]


def execute(asked: Asked, options: Options, on_trials: Callable[[Found], None]) -> Result:
    """Searches, minimises, replays, and writes the folder."""
    out = options.folder
    with trials.opened(asked.path.parent, options.workers, options.cluster) as run_trials:
        attack = Attack(asked, run_trials)  # a config that cannot run leaves no folder
        with cells.locked(out):
            of = identity(asked, options.seed)
            with closing(Journal(out / "trials.jsonl", of)) as journal:
                result, found, config = attack.run(
                    options.budget, options.seed, journal, on_trials, options.keep
                )
        benign = attack.box.configured(attack.box.nothing())
    config, benign = (with_plugins(one, out) for one in (config, benign))
    text = yaml_text(config, comment(asked, result, options))
    write_whole(out / "attack.yaml", text)
    write_whole(out / "benign.yaml", yaml_text(benign, ["The same without the attack."]))
    write_whole(out / "attack.json", json.dumps(asdict(result), indent=1) + "\n")
    attacked, unharmed = (
        weir.run(out / f"{name}.yaml", out=out / name, force=True) for name in ("attack", "benign")
    )
    digest = attacked.summary.digest
    if digest != result.digest:
        raise UserError(f"attack: the replay has digest {digest}, the trial {result.digest}", 1)
    if options.register:
        registry.register(asked, result, options.seed, out / "attack.yaml")
    if options.report:
        place = out / "report.html"
        page.write(place, asked, result, found.worst, config, (attacked, unharmed), text)
    return result


def with_plugins(config: Config, folder: Path) -> Config:
    """Copies the plug-ins of a config into a folder; returns the config with these copies."""

    def copied(path: Path) -> Path | str:
        if path.suffix != ".so":
            return path
        target = folder / path.name
        if not (target.exists() and target.samefile(path)):
            shutil.copy(path, target)
        return f"./{path.name}"

    made: Config = config_files.renamed(config, copied)
    return made


COLUMNS = ("control", "benign", "worst", "minimised", "distance", "what the network then does")


def row(asked: Asked, result: Result) -> list[str]:
    """Returns the result as a row beside those of other controls."""
    harms = [asked.goal.text(harm) for harm in (result.benign, result.found, result.left)]
    does = "; ".join(f"{where}: {what}" for where, what in result.network.items())
    return [*harms, units.number(result.distance, 2), does]


def lines(asked: Asked, result: Result) -> list[tuple[str, str]]:
    """Returns the result as rows of a table of two columns."""
    (name, harm), *rows = page.numbers(asked, result)
    if asked.bound is not None:
        words = "holds" if result.held else "DOES NOT HOLD"
        rows.append(("bound", f"{asked.goal.text(asked.bound)}: {words}"))
    return [(name, f"{harm} {asked.goal.says}"), *rows, *result.network.items()]
