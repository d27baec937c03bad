# SPDX-License-Identifier: BSD-3-Clause
"""Pages of studies, a page over all, a table, and lines on a terminal."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Protocol

import polars as pl
from rich.console import Console

from weir.base import terminal, units
from weir.base.page import (
    Column,
    Heading,
    Link,
    Mark,
    Page,
    Part,
    Status,
    Table,
    Text,
    Word,
    coded,
    joined,
    section,
)
from weir.report import document
from weir.report.page import address
from weir.study import guests
from weir.study.claim import (
    KINDS,
    MEANS,
    VERDICTS,
    Checked,
    Claim,
    Experiment,
    Found,
    Study,
    setups,
)

Result = tuple[Study, list[Checked]]
MARKS = {
    "holds": "holds",
    "within spread": "within spread",
    "differs": "DIFFERS",
    "missing": "MISSING",
    "shown": "shown",
    "not comparable": "–",
}


class Judged(Protocol):
    """A claim with its verdict."""

    @property
    def experiment(self) -> Experiment: ...

    @property
    def claim(self) -> Claim: ...

    @property
    def verdict(self) -> str: ...


def quantity(value: float | None, unit: str) -> str:
    """Returns a number with its unit; a dash for what is not known."""
    if value is None or not math.isfinite(value):
        return units.NONE
    return f"{units.number(value)} {unit}".strip()


def plain(text: str) -> str:
    """Returns a text without the backticks that Markdown has around code."""
    return text.replace("`", "")


def within(claim: Claim) -> str:
    """Returns the bounds, for people."""
    low, high = (units.number(bound) for bound in (claim.low, claim.high))
    if math.isinf(claim.low):
        return units.NONE if math.isinf(claim.high) else f"at most {high}"
    if math.isinf(claim.high):
        return f"at least {low}"
    return low if claim.low == claim.high else f"{low} to {high}"


def here(one: Checked) -> str:
    """Returns what was measured; of several seeds the mean, its deviation, and how many.

    Of a mean over another it is the interval.
    """
    text = quantity(one.value, one.claim.unit)
    if one.interval is not None:
        return f"{text} ({' to '.join(units.number(end) for end in one.interval)})"
    if one.spread is None:
        return text
    return f"{text} (s.d. {units.number(one.spread, 2)}, {len(one.values)} seeds)"


def asked(claim: Claim, kind: str) -> str:
    """Returns the number of a claim, if it is of this kind."""
    return quantity(claim.published if claim.kind == kind else None, claim.unit)


CLAIMS = (
    Column("claim", lambda one: plain(one.claim.says)),
    Column("source", lambda one: one.claim.source),
    Column("kind", lambda one: one.claim.kind),
    Column("published", lambda one: asked(one.claim, "number")),
    Column("derived", lambda one: asked(one.claim, "derived")),
    Column("here", lambda one: here(one)),
    Column("deviation", unit=lambda off: f"{100 * off:+.1f} %".replace("-", "−")),
    Column("holds within", lambda one: within(one.claim)),
    Column("verdict", lambda one: MARKS[one.verdict]),
)
EXPERIMENT = Column("", lambda one: one.experiment.name)
REPLICATION = Column("replication", lambda one: quantity(one.claim.replication, one.claim.unit))


def with_others(
    columns: Sequence[Column], rows: Sequence[Judged], linux: Mapping[str, guests.Texts]
) -> tuple[Column, ...]:
    """Adds the columns of what others measured, left of ours, if a row has such a number.

    linux: what Linux has, by the column's header.
    """
    here = next(i for i, column in enumerate(columns) if column.header == "here")

    def text(texts: guests.Texts, one: Judged) -> str:
        return texts.get((one.experiment.name, one.claim.says), units.NONE)

    more = [REPLICATION] if any(row.claim.replication is not None for row in rows) else []
    for header, texts in linux.items():
        if any(text(texts, row) != units.NONE for row in rows):
            more.append(Column(header, partial(text, texts)))
    return (*columns[:here], *more, *columns[here:])


def sources(study: Study) -> str:
    """Returns who published a study, and who repeated it."""
    also = f" Replication: {study.replication}." if study.replication else ""
    return f"{study.source}.{also}"


def counts(checked: Sequence[Judged]) -> list[str]:
    """Returns how many of each kind hold, as "number: 8 of 9 hold"."""
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
    """Returns how many hold, by kind; bad: one differs; warn: something is missing."""
    verdicts = {one.verdict for one in checked}
    kind = "bad" if "differs" in verdicts else "warn" if "missing" in verdicts else "good"
    return Status(kind, f"{'; '.join(counts(checked))}.")


def difference(experiment: Experiment, claim: Claim, here: str) -> tuple[str, str]:
    """Returns what differs, and why as far as that was found."""
    what = f"{experiment.name}: {claim.says}: {here}, holds within {within(claim)}"
    return what, claim.why or "The cause is not known."


def differing(checked: Sequence[Checked]) -> list[Part]:
    """Returns the section of all that differs."""
    found = (
        difference(one.experiment, one.claim, here(one))
        for one in checked
        if one.verdict == "differs"
    )
    texts = (
        Text([Mark(plain(what), "small"), "\n", *coded(why)], "differs") for what, why in found
    )
    return section("What differs", *texts)


def sections(study: Study, checked: Sequence[Checked], found: Found, place: Path) -> Iterator[Part]:
    """Yields each experiment with its claims and its runs."""
    linux = guests.texts(study)
    for experiment in study.experiments:
        own = of_experiment(experiment, checked)
        yield Heading(f"{experiment.name}: {experiment.title}", experiment.name)
        yield Table(with_others(CLAIMS, own, linux), own, 3)
        bounds = dict.fromkeys(one.claim.tolerance for one in own)
        reasons = dict.fromkeys(one.claim.why for one in own if one.verdict == "not comparable")
        yield from (Text(f"The bounds: {text}.", "small") for text in bounds if text)
        yield from (Text(["Not comparable: ", *coded(text)], "small") for text in reasons)
        runs = list(linked_runs(own, found, place))
        yield Text(["Runs: ", *joined(runs)] if runs else "", "small")


def linked_runs(checked: Sequence[Checked], found: Found, place: Path) -> Iterator[list[Word]]:
    """Yields the runs of some claims, each with links to its report and its config."""
    claimed = (setup for one in checked for setup in one.claim.setups)
    names = dict.fromkeys(cell.name for setup in claimed for cell in setup.cells(found.quick))
    for name in names:
        path = found.folders.get(name)
        if path is not None:
            report = path / "report.html"
            shown = Link(name, address(report, place)) if report.exists() else name
            config = Link("config", address(path / "config.yaml", place))
            yield [shown, "\n(", config, ")"]


def kinds() -> Text:
    """Returns what the kinds of claims are."""
    each = joined(([Mark(kind, "em"), f": {means}"] for kind, means in MEANS.items()), "; ")
    return Text([
        "A claim is of one kind: ", *each, ".\nWhat happened during a run's warm-up is left out."
        " Of several seeds a row has the mean, and the standard deviation between them.",
    ])  # fmt: skip


def html(
    study: Study,
    scale: str,
    checked: Sequence[Checked],
    found: Found,
    failed: Mapping[str, str],
    place: Path,
) -> str:
    """Returns a study's page, to be written into a folder `place`."""
    cells = sum(len(setup.cells(found.quick)) for setup in setups(study))
    typed = f"weir {study.rerun}"
    parts = [
        Text(sources(study)),
        *failures(failed),
        *differing(checked),
        *section("Contents", contents(study, checked)),
        document.figures(study.figures(found)),
        *sections(study, checked, found, place),
        Heading("Method"),
        kinds(),
        Text([
            "Each run is a config of ", Mark("configs/"), " with changes, in virtual time, in a"
            " folder below ", Mark("cells/"), "; ", Mark("weir report"), " of it shows what"
            " happened. Again: ", Mark(f"{typed} --{scale}"), ". One run as a config of its own: ",
            Mark(f"{typed} --print-config CELL"), ".",
        ]),
    ]  # fmt: skip
    headline = [
        ("experiments", str(len(study.experiments))),
        ("claims", str(len(checked))),
        ("runs", f"{len(found.folders)} of {cells}"),
    ]
    return document.render(Page(study.title, parts, status(checked), headline, wide=True))


def failures(failed: Mapping[str, str]) -> list[Text]:
    """Returns a note for each run that failed."""
    return [Text(f"{name} failed: {message}", "note") for name, message in failed.items()]


CONTENTS = ("", "what", "holds", "differs", "missing", "shown", "not comparable")
CONTENTS_MIN = 12  # of experiments: fewer are seen without a table of them


def contents(study: Study, checked: Sequence[Checked]) -> Table:
    """Returns how many claims of each experiment have which verdict; a short page needs no such."""
    rows = []
    for experiment in study.experiments if len(study.experiments) >= CONTENTS_MIN else ():
        verdicts = [one.verdict for one in of_experiment(experiment, checked)]
        rows.append([experiment.name, experiment.title, *(verdicts.count(v) for v in VERDICTS)])
    return Table(CONTENTS, rows, 2)


OVERVIEW = (
    "experiment", "what", "the first claim", "holds", "differs", "missing", "published",
    "holds within", "here",
)  # fmt: skip


def overview_row(experiment: Experiment, own: Sequence[Checked]) -> list[str | int]:
    """Returns an experiment as a row."""
    verdicts = [one.verdict for one in own]
    first = own[0]
    return [
        experiment.name,
        experiment.title,
        first.claim.says,
        *(verdicts.count(v) for v in ("holds", "differs", "missing")),
        asked(first.claim, "number"),
        within(first.claim),
        here(first) if first.value is not None else MARKS[first.verdict],
    ]


def of_experiment(experiment: Experiment, checked: Sequence[Checked]) -> list[Checked]:
    """Returns the claims of an experiment."""
    return [one for one in checked if one.experiment is experiment]


def overview(results: Sequence[Result], scale: str, pages: Mapping[str, Path], place: Path) -> str:
    """Returns the page over several studies, a line for each experiment."""
    everything = [one for _, checked in results for one in checked]
    parts: list[Part] = []
    for study, checked in results:
        rows = [overview_row(e, of_experiment(e, checked)) for e in study.experiments]
        parts += [
            Heading([Link(study.title, address(pages[study.name], place))]),
            Text(f"{study.source}. {'; '.join(counts(checked))}.", "small"),
            Table(OVERVIEW, rows, 3),
        ]
    parts += [
        *differing(everything),
        Heading("Method"),
        kinds(),
        Text([
            "Again: ", Mark(f"weir reproduce all --{scale}"), ". Each study alone: ",
            Mark("weir reproduce NAME"), ".",
        ]),
    ]  # fmt: skip
    headline = [
        ("studies", str(len(results))),
        ("experiments", str(sum(len(study.experiments) for study, _ in results))),
        ("claims", str(len(everything))),
    ]
    title = "Published experiments, and what comes out here"
    return document.render(Page(title, parts, status(everything), headline, wide=True))


def table(results: Iterable[Result]) -> pl.DataFrame:
    """Returns a row for each claim; open bounds, and what is not known, are null."""
    rows = [
        {
            "study": study.name,
            "experiment": one.experiment.name,
            "claim": one.claim.says,
            "source": one.claim.source,
            "kind": one.claim.kind,
            "unit": one.claim.unit,
            "published": one.claim.published,
            "replication": one.claim.replication,
            "here": one.value,
            "spread": one.spread,
            "seeds": len(one.values),
            "low": one.claim.low if math.isfinite(one.claim.low) else None,
            "high": one.claim.high if math.isfinite(one.claim.high) else None,
            "tolerance": one.claim.tolerance,
            "verdict": one.verdict,
            "why": one.claim.why,
            "setups": [setup.name for setup in one.claim.setups],
        }
        for study, checked in results
        for one in checked
    ]
    return pl.DataFrame(rows, infer_schema_length=None)


def show(results: Sequence[Result], screen: Console) -> None:
    """Prints the claims of a study, or what differs of several."""
    everything = [one for _, checked in results for one in checked]
    if len(results) > 1:
        for study, checked in results:
            screen.print(f"{study.name}: {'; '.join(counts(checked))}", markup=False)
        everything = [one for one in everything if one.verdict in ("differs", "missing")]
    if everything:
        linux = guests.texts(results[0][0]) if len(results) == 1 else {}
        columns = (EXPERIMENT, *with_others(CLAIMS, everything, linux))
        made = Table(columns, everything, left=4)
        terminal.print_table(screen, made, ("claim", "source"))
    if len(results) == 1:
        screen.print("; ".join(counts(results[0][1])), markup=False)
