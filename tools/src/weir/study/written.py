# SPDX-License-Identifier: BSD-3-Clause
"""Reads study.yaml, in which a study's runs and claims are data.

    title: what it is called          source: who published it, and where
    runs:
      c9-$cc-$loss:                   # a run of c9.yaml, or of `config:`
        for: [{cc: [bbr, pcc]}, {loss: [1, 2]}]
        set: [flows.0.cc=$cc, paths.forward.loss.rate=$loss%]
    experiments:
      C9:
        title: random loss
        claims:
          - says: BBR keeps its goodput
            source: section 5.4
            runs: [c9-bbr-1, c9-bbr-2]
            measure: over(goodput)    # of measures.py, of the folder's or of weir.study
            low: 0.85

`for` repeats a run, an entry of `set`, an experiment or a claim: a mapping has a list of values for
each name, taken side by side; a list of mappings is every combination of theirs. $NAME is replaced
by the value.
`all` in the place of a claim's keys has several claims to repeat. `runs` may be patterns.

`published` is a number that the source prints, `derived` one that follows from what it says, and
`replication` one of somebody who repeated the experiment, whom the file names in its head. `guests`
are runs with Linux guests, of which `weir reproduce NAME --guests` measures the same. So it does in
`sources`, which names controls and runs: these controls run from Linux's own files there. Bounds
are `low` and `high`, or `within`, a part of the number. A claim with bounds alone is an order; one
without bounds is shown, and not judged; one without a measure cannot be compared, and says `why`.
`source` of an experiment is that of its claims that have none, and the `tolerance` of a number is
our own band.
"""

from __future__ import annotations

import ast
import itertools
import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from fnmatch import fnmatch
from pathlib import Path
from string import Template
from typing import TypeVar, cast

import msgspec

from weir.base import foreign, places
from weir.base.errors import UserError, nearest
from weir.base.foreign import Json
from weir.study import measures, scenario
from weir.study.claim import (
    CONFIGS,
    Claim,
    Experiment,
    Guests,
    Kind,
    Near,
    Setup,
    Study,
    module_of,
    near,
)

T = TypeVar("T")
Measure = Callable[..., float | None]


class RunAsked(msgspec.Struct, forbid_unknown_fields=True):
    """A run; `quick` has further changes of --quick, `seeds` how many of --quick and of --full.

    A file CONFIGS/... of a change is one of configs/.
    """

    config: str = ""
    set: list[object] = []
    quick: list[str] = []
    seeds: tuple[int, int] = (0, 0)


class GuestsAsked(msgspec.Struct, forbid_unknown_fields=True):
    """Runs with Linux guests, and those of ours beside them [the claim's]."""

    runs: list[str] | str
    ours: list[str] | str = []
    why: str = ""


class SourcesAsked(msgspec.Struct, forbid_unknown_fields=True):
    """Controls that Linux has in a file, and runs (names or patterns) and seeds to try it with."""

    controls: list[str]
    runs: list[str]
    seeds: int


class ClaimAsked(msgspec.Struct, forbid_unknown_fields=True):
    """A claim, as the file has it."""

    says: str
    source: str = ""
    runs: list[str] | str = []
    measure: str = ""
    unit: str = ""
    published: float | None = None
    derived: float | None = None
    replication: float | None = None
    guests: GuestsAsked | None = None
    within: float | None = None
    low: float = -math.inf
    high: float = math.inf
    tolerance: str = ""
    why: str = ""
    compared: bool = True

    @property
    def kind(self) -> Kind:
        """The kind of the claim, which follows from its keys."""
        if not self.measure or not self.compared:
            return "not comparable"
        if self.published is not None:
            return "number"
        if self.derived is not None:
            return "derived"
        return "direction" if math.isfinite(self.low) or math.isfinite(self.high) else "shown"


class ExperimentAsked(msgspec.Struct, forbid_unknown_fields=True):
    """An experiment, whose claims are not repeated yet."""

    claims: list[Json]
    title: str = ""
    source: str = ""


class StudyAsked(msgspec.Struct, forbid_unknown_fields=True):
    """The whole file, with entries that are not repeated yet."""

    title: str
    experiments: dict[str, Json]
    source: str = ""
    replication: str = ""
    with_all: bool = False
    runs: Json = {}
    sources: SourcesAsked | None = None


def filled(value: object, values: Mapping[str, str]) -> object:
    if isinstance(value, str):
        return Template(value).safe_substitute(values)
    if isinstance(value, dict):
        return {filled(key, values): filled(one, values) for key, one in value.items()}
    return [filled(one, values) for one in value] if isinstance(value, list) else value


def combinations(loops: object) -> Iterator[dict[str, str]]:
    """Yields what each repetition replaces."""
    each = convert(loops if isinstance(loops, list) else [loops], list[dict[str, list[str]]])
    if any(len({len(values) for values in of.values()}) != 1 for of in each):
        raise UserError("`for` has lists of different lengths")
    rows = [
        [dict(zip(of, row, strict=True)) for row in zip(*of.values(), strict=True)] for of in each
    ]
    for chosen in itertools.product(*rows):
        yield {name: value for part in chosen for name, value in part.items()}


def repeated(value: object) -> Iterator[object]:
    """Yields an entry of the file, once for each combination of its `for`."""
    if not isinstance(value, dict) or "for" not in value:
        yield value
        return
    rest = {key: one for key, one in value.items() if key != "for"}
    for values in combinations(value["for"]):
        yield from (filled(one, values) for one in rest.get("all", [rest]))


def entries(mapping: Json) -> Iterator[tuple[str, object]]:
    """Yields names and values of a mapping whose entries may be repeated."""
    for name, value in mapping.items():
        if isinstance(value, dict) and "for" in value:
            rest = {key: of for key, of in value.items() if key != "for"}
            for values in combinations(value["for"]):
                yield str(filled(name, values)), filled(rest, values)
        else:
            yield name, value


def measure_of(text: str, known: Mapping[str, object]) -> Measure:
    """Returns the function that an expression stands for: a name, or a call of one."""

    def value(node: ast.expr) -> object:
        match node:
            case ast.Constant():
                return node.value
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as number)):
                return -number
            case ast.Name() if callable(known.get(node.id)):
                return known[node.id]
            case ast.Name():
                there = [name for name, one in known.items() if callable(one)]
                raise UserError(
                    f"no measure '{node.id}'; {nearest(node.id, there, 'it is in no measures.py')}"
                )
            case ast.Call():
                named = {word.arg: value(word.value) for word in node.keywords if word.arg}
                return call(node.func)(*map(value, node.args), **named)
        raise UserError(
            f"'{text}' is no measure: a name is wanted, or one with numbers: rtt_ms(95)"
        )

    def call(node: ast.expr) -> Callable[..., object]:
        found = value(node)
        if not callable(found):
            raise TypeError(f"{ast.unparse(node)} is not a function")
        return found

    try:
        return cast(Measure, call(ast.parse(text, mode="eval").body))
    except (SyntaxError, TypeError, ValueError) as error:
        raise UserError(f"'{text}' is no measure: {error}") from None


def setup(folder: Path, name: str, asked: object) -> Setup:
    """Makes an entry of `runs`, with a config of the folder or else of configs/."""
    one = convert({"set": asked} if isinstance(asked, list) else asked or {}, RunAsked)
    stem = one.config or name.partition("-")[0]
    places = [folder / f"{stem}.yaml", CONFIGS / f"{stem}.yaml"]
    config = next((path for path in places if path.is_file()), None)
    if config is None:
        raise UserError(f"the run '{name}' has no config: {places[0]} is not there")
    override = [str(item) for entry in one.set for item in repeated(entry)]
    override = [item.replace("=CONFIGS/", f"={CONFIGS}/") for item in override]
    return Setup(name, config, tuple(override), one.seeds, tuple(one.quick))


def convert(value: object, kind: type[T]) -> T:
    """Checks a part of the file; UserError: it is not of its kind."""
    try:
        return msgspec.convert(value, kind, strict=False)
    except msgspec.ValidationError as error:
        raise UserError(str(error)) from None


def rows(path: Path, kind: type[T]) -> T:
    """Reads a file of a study that comes with Weir. UserError: it is not of its kind."""
    return convert(foreign.decode_yaml(path.read_text(encoding="utf-8"), str(path)), kind)


def named(asked: list[str] | str, setups: Mapping[str, Setup]) -> tuple[Setup, ...]:
    """Returns the runs of some names or patterns. UserError: there is none of one."""
    names = [asked] if isinstance(asked, str) else asked
    found = [[setups[one] for one in setups if fnmatch(one, name)] for name in names]
    for name, each in zip(names, found, strict=True):
        if not each:
            listed = f"there are {', '.join(setups)}" if setups else "`runs` has none"
            raise UserError(f"no run is named '{name}'; {nearest(name, setups, listed)}")
    return tuple(itertools.chain.from_iterable(found))


Twins = Mapping[str, tuple[Setup, Setup]]


def twins(asked: SourcesAsked | None, setups: Mapping[str, Setup]) -> Twins:
    """Returns the runs of `sources` with Linux's files, and with ours, by the names of the runs."""
    if asked is None:
        return {}
    control = re.compile(rf"(flows\.\d+\.cc=)({'|'.join(asked.controls)})")

    def source(change: str) -> str:
        found = control.fullmatch(change)
        plugin = f"{{plugin: {places.plugins()}/{found[2]}/{found[2]}.so}}" if found else ""
        return f"{found[1]}{plugin}" if found else change

    made = {}
    for one in named(asked.runs, setups):
        same, seeds = (*one.override, *one.quick), (asked.seeds, asked.seeds)
        ours = replace(one, name=f"{one.name}-ours", override=same, quick=(), seeds=seeds)
        override = tuple(map(source, same))
        if override == same:
            wanted = " or ".join(asked.controls)
            raise UserError(f"sources: the run '{one.name}' sets no flow's cc to {wanted}")
        made[one.name] = replace(ours, name=f"{one.name}-source", override=override), ours
    return made


def guests(asked: ClaimAsked, setups: Mapping[str, Setup], sources: Twins) -> Iterator[Guests]:
    """Yields the runs of a claim beside Linux. UserError: it has no measure."""
    of = asked.guests
    if of is not None:
        if not asked.measure:
            raise UserError(f"{asked.says}: `guests` wants a measure")
        yield Guests(named(of.runs, setups), named(of.ours or asked.runs, setups), of.why)
    pairs = [sources.get(one.name) for one in named(asked.runs, setups)]
    if asked.measure and pairs and all(pairs):
        theirs, ours = zip(*filter(None, pairs), strict=True)
        yield Guests(theirs, ours, source=True)


def claim(
    asked: ClaimAsked, setups: Mapping[str, Setup], known: Mapping[str, object], sources: Twins
) -> Claim:
    """Makes a claim with its setups and its measure."""
    number = asked.published if asked.published is not None else asked.derived
    bounds = Near(published=number, low=asked.low, high=asked.high)
    if asked.within is not None and number is not None:
        bounds = near(number, asked.within)
    try:
        return Claim(
            asked.says,
            asked.source,
            asked.kind,
            named(asked.runs, setups),
            measure_of(asked.measure, known) if asked.measure else None,
            asked.unit,
            **bounds,
            tolerance=asked.tolerance or ("our own band" if number is not None else ""),
            why=asked.why,
            replication=asked.replication,
            guests=tuple(guests(asked, setups, sources)),
        )
    except ValueError as error:
        raise UserError(str(error)) from None


def read(folder: Path, name: str) -> Study:
    """Reads the study of a folder's study.yaml. UserError: what is wrong, and where."""
    path = folder / "study.yaml"
    text = foreign.read_bytes(path).decode(errors="replace")
    known = {**vars(measures), **vars(scenario), **vars(module_of(folder, "measures") or measures)}
    place = str(path)
    try:
        asked = convert(foreign.decode_yaml(text, str(path)), StudyAsked)
        setups = {one: setup(folder, one, of) for one, of in entries(asked.runs)}
        sources = twins(asked.sources, setups)
        experiments = []
        for label, value in entries(asked.experiments):
            place = f"{path}: {label}"
            one = convert(value, ExperimentAsked)
            listed = [convert(row, Json) for of in one.claims for row in repeated(of)]
            rows = [convert({"source": one.source} | row, ClaimAsked) for row in listed]
            made = (claim(row, setups, known, sources) for row in rows)
            experiments.append(Experiment(label, one.title, tuple(made)))
    except UserError as error:
        raise (
            error if str(error).startswith(str(path)) else UserError(f"{place}: {error}")
        ) from None
    return Study(
        name,
        asked.title,
        asked.source,
        tuple(experiments),
        folder,
        with_all=asked.with_all,
        replication=asked.replication,
        sources=tuple(asked.sources.controls) if asked.sources else (),
    )
