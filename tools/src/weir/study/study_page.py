# SPDX-License-Identifier: BSD-3-Clause
"""What studies show: a page of each, a page over all, a table, and lines on a terminal."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl
from rich.console import Console

from weir.base import terminal, units
from weir.base.page import Status, Table
from weir.report import document
from weir.report.page import address
from weir.study.claim import (
    KINDS,
    MEANS,
    VERDICTS,
    Checked,
    Claim,
    Experiment,
    Found,
    Study,
    trials,
)

Result = tuple[Study, list[Checked]]
COLUMNS = (
    "claim",
    "source",
    "kind",
    "published",
    "derived",
    "here",
    "deviation",
    "holds within",
    "verdict",
)
MARKS = {
    "holds": "holds",
    "differs": "DIFFERS",
    "missing": "MISSING",
    "shown": "shown",
    "not comparable": "–",
}


def quantity(value: float | None, unit: str) -> str:
    """A number with its unit; a dash for what is not known."""
    if value is None or not math.isfinite(value):
        return units.NONE
    return f"{units.number(value)} {unit}".strip()


def within(claim: Claim) -> str:
    """The bounds, for people."""
    low, high = (units.number(bound) for bound in (claim.low, claim.high))
    if math.isinf(claim.low):
        return units.NONE if math.isinf(claim.high) else f"at most {high}"
    if math.isinf(claim.high):
        return f"at least {low}"
    return low if claim.low == claim.high else f"{low} to {high}"


def here(one: Checked) -> str:
    """What was measured; of several seeds the mean, its standard deviation, and how many."""
    text = quantity(one.value, one.claim.unit)
    if one.spread is None:
        return text
    return f"{text} (± {units.number(one.spread, 2)}, {len(one.values)} seeds)"


def asked(claim: Claim, kind: str) -> str:
    """The number of a claim of this kind."""
    return quantity(claim.published if claim.kind == kind else None, claim.unit)


def row(one: Checked) -> list[str]:
    """A claim as it is shown."""
    claim = one.claim
    off = units.NONE if one.deviation is None else f"{100 * one.deviation:+.1f} %"
    return [
        claim.says,
        claim.source,
        claim.kind,
        asked(claim, "number"),
        asked(claim, "derived"),
        here(one),
        off.replace("-", "−"),
        within(claim),
        MARKS[one.verdict],
    ]


def counts(checked: Sequence[Checked]) -> list[str]:
    """How many of each kind hold: "number: 8 of 9 hold"."""
    found = []
    for kind in KINDS:
        own = [one for one in checked if one.claim.kind == kind]
        if kind == "not comparable":
            found += [f"{len(own)} not comparable"] if own else []
        elif own:
            holding = sum(one.verdict == "holds" for one in own)
            missing = sum(one.verdict == "missing" for one in own)
            more = f", {missing} missing" if missing else ""
            if kind == "shown":
                found.append(f"{len(own) - missing} shown{more}")
                continue
            found.append(f"{kind}: {holding} of {len(own)} hold{more}")
    return found


def status(checked: Sequence[Checked]) -> Status:
    """How many hold, by kind; bad: a number or an order differs; warn: something is missing."""
    verdicts = {one.verdict for one in checked}
    kind = "bad" if "differs" in verdicts else "warn" if "missing" in verdicts else "good"
    return Status(kind, f"{'; '.join(counts(checked))}.")


def difference(experiment: Experiment, claim: Claim, here: str) -> tuple[str, str]:
    """What differs, and why as far as that was found."""
    what = f"{experiment.name}: {claim.says}: {here}, holds within {within(claim)}"
    return what, claim.why or "The cause is not known."


def differing(checked: Sequence[Checked]) -> list[tuple[str, str]]:
    """All that does."""
    return [
        difference(one.experiment, one.claim, here(one))
        for one in checked
        if one.verdict == "differs"
    ]


@dataclass(frozen=True)
class Section:
    """An experiment on its study's page."""

    experiment: Experiment
    table: Table
    notes: list[str]
    runs: list[tuple[str, str, str | None]]  # cell, address of its config, of its report


def sections(
    study: Study, checked: Sequence[Checked], found: Found, place: Path
) -> Iterator[Section]:
    """Each experiment with its claims and its runs."""
    for experiment in study.experiments:
        own = of_experiment(experiment, checked)
        cells: dict[str, None] = {}
        for one in own:
            for trial in one.claim.trials:
                cells |= dict.fromkeys(cell.name for cell in trial.cells(found.quick))
        runs = []
        for name in cells:
            path = found.folders.get(name)
            if path is not None:
                report = path / "report.html"
                shown = address(report, place) if report.exists() else None
                runs.append((name, address(path / "config.yaml", place), shown))
        bounds: dict[str, None] = dict.fromkeys(one.claim.tolerance for one in own)
        notes = [f"The bounds: {text}." for text in bounds if text]
        reasons: dict[str, None] = dict.fromkeys(
            one.claim.why for one in own if one.verdict == "not comparable"
        )
        notes += [f"Not comparable: {text}" for text in reasons]
        yield Section(experiment, Table(COLUMNS, [row(one) for one in own], 3), notes, runs)


def html(
    study: Study,
    scale: str,
    checked: Sequence[Checked],
    found: Found,
    failed: Mapping[str, str],
    place: Path,
) -> str:
    """A study's page, to be written into a folder `place`."""
    cells = sum(len(trial.cells(found.quick)) for trial in trials(study))
    return document.render(
        "claims.html.j2",
        title=study.title,
        study=study,
        scale=scale,
        status=status(checked),
        headline=[
            ("experiments", str(len(study.experiments))),
            ("claims", str(len(checked))),
            ("runs", f"{len(found.folders)} of {cells}"),
        ],
        failed=failed,
        differing=differing(checked),
        contents=contents(study, checked),
        sections=list(sections(study, checked, found, place)),
        figures=document.embed(study.figures(found)),
        kinds=MEANS.items(),
    )


CONTENTS = ("", "what", "holds", "differs", "missing", "shown", "not comparable")
CONTENTS_MIN = 12  # of experiments: fewer are seen without a table of them


def contents(study: Study, checked: Sequence[Checked]) -> Table | None:
    """How many claims of each experiment have which verdict; None: a short page needs no such."""
    if len(study.experiments) < CONTENTS_MIN:
        return None
    rows = []
    for experiment in study.experiments:
        verdicts = [one.verdict for one in of_experiment(experiment, checked)]
        counted = (units.count(verdicts.count(v)) for v in VERDICTS)
        rows.append([experiment.name, experiment.title, *counted])
    return Table(CONTENTS, rows, 2)


OVERVIEW = (
    "experiment",
    "what",
    "the first claim",
    "holds",
    "differs",
    "missing",
    "published",
    "holds within",
    "here",
)


def overview_row(experiment: Experiment, own: Sequence[Checked]) -> list[str]:
    """An experiment in a line."""
    verdicts = [one.verdict for one in own]
    first = own[0]
    return [
        experiment.name,
        experiment.title,
        first.claim.says,
        *(units.count(verdicts.count(v)) for v in ("holds", "differs", "missing")),
        asked(first.claim, "number"),
        within(first.claim),
        here(first) if first.value is not None else MARKS[first.verdict],
    ]


def of_experiment(experiment: Experiment, checked: Sequence[Checked]) -> list[Checked]:
    """Its claims."""
    return [one for one in checked if one.experiment is experiment]


def overview(results: Sequence[Result], scale: str, pages: Mapping[str, Path], place: Path) -> str:
    """The page over several studies, a line for each experiment."""
    everything = [one for _, checked in results for one in checked]
    parts = [
        (
            study,
            address(pages[study.name], place),
            "; ".join(counts(checked)),
            Table(
                OVERVIEW,
                [overview_row(e, of_experiment(e, checked)) for e in study.experiments],
                3,
            ),
        )
        for study, checked in results
    ]
    experiments = sum(len(study.experiments) for study, _ in results)
    return document.render(
        "overview.html.j2",
        title="Published experiments, and what comes out here",
        scale=scale,
        status=status(everything),
        headline=[
            ("studies", str(len(results))),
            ("experiments", str(experiments)),
            ("claims", str(len(everything))),
        ],
        differing=differing(everything),
        parts=parts,
        kinds=MEANS.items(),
    )


def table(results: Iterable[Result]) -> pl.DataFrame:
    """A row for each claim; bounds that are open, and what is not known, are null."""
    rows = [
        {
            "study": study.name,
            "experiment": one.experiment.name,
            "claim": one.claim.says,
            "source": one.claim.source,
            "kind": one.claim.kind,
            "unit": one.claim.unit,
            "published": one.claim.published,
            "here": one.value,
            "spread": one.spread,
            "seeds": len(one.values),
            "low": one.claim.low if math.isfinite(one.claim.low) else None,
            "high": one.claim.high if math.isfinite(one.claim.high) else None,
            "tolerance": one.claim.tolerance,
            "verdict": one.verdict,
            "why": one.claim.why,
            "trials": [trial.name for trial in one.claim.trials],
        }
        for study, checked in results
        for one in checked
    ]
    return pl.DataFrame(rows, infer_schema_length=None)


def show(results: Sequence[Result], screen: Console) -> None:
    """The claims on a terminal: those of one study, or what differs of several."""
    everything = [(study, one) for study, checked in results for one in checked]
    if len(results) > 1:
        for study, checked in results:
            screen.print(f"{study.name}: {'; '.join(counts(checked))}", markup=False)
        everything = [(s, one) for s, one in everything if one.verdict in ("differs", "missing")]
    rows = [[one.experiment.name, *row(one)] for _, one in everything]
    if rows:
        terminal.print_table(screen, Table(("", *COLUMNS), rows, left=4), ("claim", "source"))
    if len(results) == 1:
        screen.print("; ".join(counts(results[0][1])), markup=False)
