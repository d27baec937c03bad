# SPDX-License-Identifier: BSD-3-Clause
"""Claims of a source about runs, and what came out.

A study has experiments, an experiment claims, and a claim the setups that it is measured in. A
setup is a config with changes, run once or with several seeds; a claim is measured with each seed,
and judged by the mean, or by the mean over that of other setups.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from importlib import import_module
from pathlib import Path
from statistics import fmean, stdev
from types import ModuleType
from typing import TYPE_CHECKING, Literal, TypedDict

import numpy as np

from weir.analysis import folder as run_folder
from weir.analysis.spread import differences
from weir.base.errors import UserError
from weir.bootstrap import ROOT
from weir.runner.options import Options

if TYPE_CHECKING:
    from weir.analysis.folder import Run
    from weir.report.figure import Figure

CONFIGS = ROOT / "configs"
OURS = Path(__file__).parents[1] / "studies"

Kind = Literal["number", "direction", "derived", "shown", "not comparable"]
Verdict = Literal["holds", "within spread", "differs", "missing", "shown", "not comparable"]
VERDICTS: tuple[Verdict, ...] = ("holds", "differs", "missing", "shown", "not comparable")
KINDS: tuple[Kind, ...] = ("number", "direction", "derived", "shown", "not comparable")
MEANS: dict[Kind, str] = {
    "number": "printed by the source; the tolerance says where it comes from",
    "direction": "an order or a sign that the source states",
    "derived": "our arithmetic from what the source says, not printed by it",
    "shown": "measured as the source asks, which gives neither a number nor an order for it",
    "not comparable": "what cannot be run here, and why",
}


@dataclass(frozen=True)
class Setup:
    """A config and what is changed in it; its runs are one for each seed.

    seeds: how many of --quick and of --full, from 1 on; 0: one run with the config's own.
    quick: further changes of --quick, a shorter time mostly.
    """

    name: str
    config: Path
    override: tuple[str, ...] = ()
    seeds: tuple[int, int] = (0, 0)
    quick: tuple[str, ...] = ()

    def cells(self, quick: bool) -> list[Options]:
        """Makes what weir-sim is given, once for each seed."""
        override = self.override + (self.quick if quick else ())
        count = self.seeds[not quick]
        if count == 0:
            return [Options(config=self.config, out=Path(self.name), overrides=override)]
        return [
            Options(
                config=self.config,
                out=Path(f"{self.name}-s{seed}"),
                overrides=override,
                seed=seed,
            )
            for seed in range(1, count + 1)
        ]


def module_of(folder: Path, name: str) -> ModuleType | None:
    """Imports NAME.py of a study's folder, whose parts it imports as `from .NAME`; None: no file.

    UserError: the file cannot be imported.
    """
    path = folder / f"{name}.py"
    if not path.exists():
        return None
    package = f"weir.studies.{folder.name}"
    if folder.parent != OURS:
        package = f"study of {folder.resolve()}".replace(".", "_")
        if package not in sys.modules:
            sys.modules[package] = ModuleType(package)
            sys.modules[package].__path__ = [str(folder)]
    try:
        return import_module(f"{package}.{name}")
    except Exception as error:
        raise UserError(f"{path}: {type(error).__name__}: {error}") from error


@dataclass(frozen=True)
class Guests:
    """The setups in which a claim is measured with Linux guests, and with our hosts beside them.

    source: Linux is then its control's own source, in our TCP, and no guest runs.
    """

    setups: tuple[Setup, ...]
    ours: tuple[Setup, ...]
    why: str = ""  # the cause of a difference
    source: bool = False

    @property
    def labels(self) -> tuple[str, str, str]:
        """Tells apart what Linux has, what ours have, and ours over Linux's, behind the claim."""
        if self.source:
            return ": Linux's source", ": our control beside it", ": ours over Linux's source"
        return ": Linux", ": ours", ": ours over Linux's"


@dataclass(frozen=True)
class Claim:
    """A claim of a source, measured by measure(*runs) of the setups, in their order.

    Without setups measure() computes it alone.
    """

    says: str
    source: str  # page, section or figure
    kind: Kind
    setups: tuple[Setup, ...] = ()
    measure: Callable[..., float | None] | None = None
    unit: str = ""
    published: float | None = None  # of kind `derived`: what follows
    low: float = -math.inf  # what holds, in `unit`
    high: float = math.inf
    tolerance: str = ""  # where the bounds come from
    why: str = ""  # the cause of a difference, found from traces; or why it is not comparable
    replication: float | None = None  # what another measured who repeated the experiment
    guests: tuple[Guests, ...] = ()
    kept: bool = False  # in the results, though it is only shown
    against: tuple[Setup, ...] = ()  # the mean is divided by that of these

    def __post_init__(self) -> None:
        bounded = math.isfinite(self.low) and math.isfinite(self.high)
        one_bound = math.isfinite(self.low) or math.isfinite(self.high)
        if self.kind == "not comparable":
            wrong = "" if self.why else "says why"
        elif self.measure is None:
            wrong = "is measured"
        elif self.kind == "shown":
            judged = one_bound or self.published is not None
            wrong = "has neither a bound nor a number" if judged else ""
        elif self.kind == "direction":
            wrong = "" if one_bound and self.published is None else "has a bound and no number"
        else:
            number = self.published is not None and bounded and self.tolerance
            wrong = "" if number else "has a number, bounds on both sides, and says whence"
        if self.published is not None and not self.low <= self.published <= self.high:
            wrong = "has its number within its bounds"
        if wrong:
            raise ValueError(f"{self.says}: a claim of kind '{self.kind}' {wrong}")


class Near(TypedDict):
    """A published number and its bounds, as arguments of Claim."""

    published: float | None
    low: float
    high: float


def near(published: float, part: float) -> Near:
    """Returns a published number and bounds that are so far from it, as a part of it."""
    ends = (published * (1 - part), published * (1 + part))
    return {"published": published, "low": min(ends), "high": max(ends)}


@dataclass(frozen=True)
class Experiment:
    """An experiment of a source, under the name that our documents give it."""

    name: str  # C8
    title: str
    claims: tuple[Claim, ...]


@dataclass(frozen=True)
class Checked:
    """A claim and what was measured, by seed; none: a run that it needs is missing."""

    experiment: Experiment
    claim: Claim
    values: tuple[float, ...]
    against: tuple[float, ...] = ()

    @property
    def value(self) -> float | None:
        """The mean over seeds, or how many times it is that of the claim's other setups."""
        if not self.values or not self.against:
            return fmean(self.values) if self.values else None
        other = fmean(self.against)
        return fmean(self.values) / other if other else math.nan

    @property
    def interval(self) -> tuple[float, float] | None:
        """Welch's 95 % interval of `value`, with the other setups' mean as exact; None: one run."""
        if not self.against or not fmean(self.against):
            return None
        pair = np.array(self.against), np.array(self.values)
        _, low, high = (float(end[0]) / fmean(self.against) for end in differences([pair]))
        return None if math.isnan(low) else (1 + low, 1 + high)

    @property
    def spread(self) -> float | None:
        """The standard deviation between seeds; None: of one run nobody knows it."""
        return stdev(self.values) if len(self.values) > 1 and not self.against else None

    @property
    def verdict(self) -> Verdict:
        """The judgement of the mean; "missing" if a run that it needs is."""
        if self.claim.kind == "not comparable":
            return "not comparable"
        if self.value is None or math.isnan(self.value):
            return "missing"
        if self.claim.kind == "shown":
            return "shown"
        if self.claim.low <= self.value <= self.claim.high:
            return "holds"
        low, high = self.interval or (1.0, 1.0)
        return "within spread" if low < 1 < high else "differs"

    @property
    def unexplained(self) -> bool:
        """Is true of a claim that does not hold, or was not measured, and does not say why."""
        return self.verdict in ("differs", "missing") and not self.claim.why

    @property
    def deviation(self) -> float | None:
        if self.claim.kind != "number" or self.value is None or not self.claim.published:
            return None
        return self.value / self.claim.published - 1


class Found:
    """The runs of a study by setup and seed, read when they are asked for."""

    def __init__(self, folders: Mapping[str, Path], quick: bool) -> None:
        self.folders, self.quick = folders, quick
        self.loaded: dict[str, Run] = {}

    def runs(self, setup: Setup | str) -> list[Run] | None:
        """Returns the runs of a setup or of a pattern, one for each seed; None: one is missing."""
        if isinstance(setup, Setup):
            names = [cell.name for cell in setup.cells(self.quick)]
        else:
            seeds = re.compile(re.escape(setup) + r"-s\d+")
            names = [n for n in self.folders if fnmatch(n, setup) or seeds.fullmatch(n)]
        if not names or any(name not in self.folders for name in names):
            return None
        for name in names:
            if name not in self.loaded:
                self.loaded[name] = run_folder.load(self.folders[name])
        return [self.loaded[name] for name in names]

    def check(self, experiment: Experiment, claim: Claim) -> Checked:
        """Measures a claim with each seed; a setup without seeds stands beside each of another."""
        against = self.values(claim, claim.against) if claim.against else ()
        values = self.values(claim, claim.setups) if against or not claim.against else ()
        return Checked(experiment, claim, values, against)

    def values(self, claim: Claim, setups: Sequence[Setup]) -> tuple[float, ...]:
        """Measures a claim in setups with each seed; nothing if one cannot be measured."""
        found = [self.runs(setup) for setup in setups]
        known = [runs for runs in found if runs is not None]
        if claim.measure is None or len(known) < len(found):
            return ()
        count = max(map(len, known), default=1)
        values = [claim.measure(*(runs[i % len(runs)] for runs in known)) for i in range(count)]
        return () if None in values else tuple(float(v) for v in values if v is not None)


@dataclass(frozen=True)
class Study:
    """A source and its experiments: what a command runs and shows.

    drawn: what `draw(found, ...)` of the folder's figures.py is given besides the runs; None: it
    draws other studies. with_all: `weir reproduce all` runs it. command: the one that runs it
    [reproduce NAME]. replication: who repeated its experiments, and how. results: the file of the
    folder that keeps them. sources: controls that run from Linux's own files too. experiments_of:
    makes those of another control, from its name and from what `cc` is in a config; None: the
    claims are about certain controls.
    """

    name: str
    title: str
    source: str  # authors, where it was published, when
    experiments: tuple[Experiment, ...]
    folder: Path | None = None
    drawn: tuple[object, ...] | None = ()
    with_all: bool = False
    command: str = ""
    replication: str = ""
    results: str = "results.json"
    sources: tuple[str, ...] = ()
    experiments_of: Callable[[str, str], tuple[Experiment, ...]] | None = None

    def figures(self, found: Found) -> Iterator[Figure]:
        """Yields figures in the source's axes, of the runs that are there."""
        if self.folder is not None and self.drawn is not None:
            figures = module_of(self.folder, "figures")
            if figures is not None:
                yield from figures.draw(found, *self.drawn)

    @property
    def rerun(self) -> str:
        return self.command or f"reproduce {self.name}"


def setups(study: Study) -> list[Setup]:
    """Lists all setups of a study, each once; those of one name are one."""
    found: dict[str, Setup] = {}
    for experiment in study.experiments:
        for claim in experiment.claims:
            for setup in claim.setups:
                if found.setdefault(setup.name, setup) != setup:
                    raise ValueError(f"{study.name}: two setups are named '{setup.name}'")
    return list(found.values())


def check(study: Study, found: Found) -> list[Checked]:
    return [found.check(one, claim) for one in study.experiments for claim in one.claims]
