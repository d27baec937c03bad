# SPDX-License-Identifier: BSD-3-Clause
"""An attack: its file, the search, and what is left of the worst network.

    config: ../quickstart.yaml     # or the config itself, as a map
    goal: utilisation
    bound: 50%                     # optional: what no network of the box may exceed
    box:
      bursts: {share: 20%, period: [100ms, 5s]}

A config alone has the box of `USUAL`. With `beside: newreno` harm is what the config's control
suffers more than this one in the same network: a network that harms any control finds nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path

import yaml

from weir.attack.box import Box, stack, victims
from weir.attack.element import GUESTS
from weir.attack.goals import Goal, goal_of
from weir.attack.minimise import minimise
from weir.attack.search import Budget, Found, Journal, Point, search
from weir.base import configs, units
from weir.base.configs import Config
from weir.base.errors import UserError
from weir.many.trials import Trials
from weir.runner import config_files

KEYS = ("config", "goal", "bound", "box", "beside", "title")
USUAL: dict[str, dict[str, str]] = {
    "rate": {"pieces": "4", "low": "50%"},
    "buffer": {"low": "0.25", "high": "4"},
    "delay": {"most": "20ms", "pieces": "4"},
    "bursts": {"share": "10%"},
    "losses": {"count": "3", "longest": "50ms"},
}
KEEP = 0.9  # of the harm above a benign network's that what is left still does


@dataclass(frozen=True)
class Asked:
    """An attack as its file and the command line ask for it."""

    path: Path
    config: Config
    goal: Goal
    box: Config
    bound: float | None
    baseline: str | None = None  # the control beside which harm is measured


@dataclass(frozen=True)
class Result:
    """The result of a search."""

    goal: str
    trials: int
    benign: float  # harm of the benign network
    found: float  # of the worst network of the box
    left: float  # of what is left of it
    distance: float  # of that from the benign network, 0 to 1
    held: bool | None  # that nothing exceeded the bound; None: there is none
    digest: str
    network: dict[str, str]  # what is left, in words of the config


def with_control(config: Config, control: object) -> Config:
    """Returns the config with this control, or guest's stack, for all flows that have one."""
    changed = deepcopy(config)
    guest = isinstance(control, Mapping) and not control.keys().isdisjoint(GUESTS)
    for index in victims(changed):
        group = changed["flows"][index]
        for key in ("cc", "stack", "peer") if guest or stack(group) in GUESTS else ():
            group.pop(key, None)
        group["stack" if guest else "cc"] = control
    return changed


def read(
    path: Path, goal: str | None = None, control: str | None = None, beside: str | None = None
) -> Asked:
    """Reads an attack, or a config that is attacked in the usual box."""
    content = configs.mapping(path)
    if "config" not in content:
        content = {"config": content, "box": USUAL}
    if unknown := [key for key in content if key not in KEYS]:
        raise UserError(f"{path}: {unknown[0]} is none of {', '.join(KEYS)}")
    config, folder = content["config"], path.parent
    if isinstance(config, str):
        place = path.parent / config
        config, folder = configs.mapping(place), place.parent
    if not isinstance(config, dict):
        raise UserError(f"{path}: config: is neither a file nor a map")
    near = folder.resolve()
    config = config_files.renamed(
        config, lambda path: near / path if (near / path).exists() else path
    )
    config.pop("live", None)
    if control:
        config = with_control(config, configs.control_of(control))
    wanted = goal or content.get("goal")
    if not wanted:
        raise UserError(f"{path}: goal: is wanted, or --goal")
    box = content.get("box")
    if not isinstance(box, dict):
        raise UserError(f"{path}: box: is wanted, a map of what the network may do")
    aim, baseline = goal_of(wanted), beside or content.get("beside")
    if baseline:
        aim = aim.beside(Path(baseline).name)
    return Asked(path, config, aim, box, _bound(path, content.get("bound")), baseline)


def _bound(path: Path, text: str | None) -> float | None:
    bound = None if text is None else units.config_ratio(text)
    if text is not None and bound is None:
        raise UserError(f"{path}: bound: {text} is no number, such as 50%")
    return bound


class Attack:
    """A search with what measures its points."""

    def __init__(self, asked: Asked, trials: Trials) -> None:
        self.asked, self.trials = asked, trials
        self.box = Box(asked.config, asked.box)
        if asked.baseline:  # it may be of guests, which have not all that a box may change
            Box(with_control(asked.config, configs.control_of(asked.baseline)), asked.box)
        self.benign = self._harm(self.box.nothing())

    def measure(self, points: Sequence[Point]) -> list[float]:
        """Returns the harms of points, in their order."""
        several = [self.box.configured(point) for point in points]
        # Nothing is recorded, which takes half of a short run; the figures are the same.
        several = [config | {"telemetry": {"level": "0"}} for config in several]
        baseline = self.asked.baseline
        others = (
            [with_control(one, configs.control_of(baseline)) for one in several] if baseline else []
        )
        asked = [*several, *others]
        pairs = zip(asked, self.trials(asked), strict=True)
        harms = [self.asked.goal.harm(config, summary) for config, summary in pairs]
        less = harms[len(several) :] or [0.0] * len(several)
        return [round(own - other, 6) for own, other in zip(harms, less, strict=False)]

    def _harm(self, point: Point) -> float:
        return self.measure([point])[0]

    def run(
        self,
        budget: Budget,
        seed: int,
        journal: Journal,
        on_trials: Callable[[Found], None],
        keep: float = KEEP,
    ) -> tuple[Result, Found, Config]:
        """Searches, minimises, and runs what is left once more."""
        benign = self.benign
        found = search(len(self.box.names), self.measure, budget, seed, journal, on_trials)
        at_least = benign + keep * (found.harm - benign)
        point, left = self.box.nothing(), benign
        if found.harm > benign:
            point, left = minimise(self.box, found.point, self._harm, at_least)
        config = self.box.configured(point)
        digest = self.trials([config])[0].digest or ""
        bound = self.asked.bound
        result = Result(
            self.asked.goal.name,
            len(found.worst),
            benign,
            found.harm,
            left,
            round(self.box.distance(point), 4),
            None if bound is None else max(found.harm, benign) <= bound,
            digest,
            differences(self.asked.config, config),
        )
        return result, found, config


def differences(before: Config, after: Config) -> dict[str, str]:
    """Returns the parts of the config that the network changed or added, by their places."""
    found: dict[str, str] = {}
    for path, stages in after["paths"].items():
        own = before["paths"].get(path, [])
        for stage in stages:
            if stage not in own:
                name, params = next(iter(stage.items()))
                found[f"{path}: {name}"] = configs.text(params)
    for index, group in enumerate(after["flows"]):
        own_group = before["flows"][index] if index < len(before["flows"]) else {}
        changed = {key: value for key, value in group.items() if own_group.get(key) != value}
        changed.pop("path", None)
        if changed:
            found[f"flows: {group.get('name', index)}"] = configs.text(changed)
    changes = [item for item in after.get("schedule", []) if item not in before.get("schedule", [])]
    for item in changes:
        found[f"at {item['at']}"] = configs.text({k: v for k, v in item.items() if k != "at"})
    return found


class _Plain(yaml.SafeDumper):
    """Writes texts without quotation marks: the types of a config are weir-sim's to know."""

    yaml_implicit_resolvers = {}  # noqa: RUF012


def yaml_text(config: Config, comment: Sequence[str]) -> str:
    """Returns a config as a file that begins with a comment."""
    lines = "".join(f"# {line}\n" for line in comment)
    text = yaml.dump(config, Dumper=_Plain, sort_keys=False, default_flow_style=None, width=1 << 20)
    return f"{lines}{text}"
