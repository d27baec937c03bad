# SPDX-License-Identifier: BSD-3-Clause
"""The results of studies: files in a study's folder, and what a page has of them.

They are written from a run, and by it alone: `weir reproduce NAME --write-docs` writes results.json
of its studies, and with --full results-full.json, which may lack cells that are too long, until
another part of them has been run at the same commit. Then it
writes, between two lines of a page of tools/docs/reference, how many claims hold and what differs
in the files of all studies of that page. The site has every claim. A claim's result is that of the
longest run that has measured it.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from weir.analysis import folder
from weir.base import markdown, programs, repository, units
from weir.base.errors import UserError
from weir.base.page import Column, Part, Table, Text
from weir.bootstrap import ROOT
from weir.many.travel import program_version
from weir.study import find, guests, study_page
from weir.study.claim import OURS, Checked, Claim, Experiment, Study
from weir.study.kept import File, Kept, Made, file_of, has, made_up, part, read
from weir.study.study_page import Result

END = "<!-- end of results -->\n"


def commit(studies: Sequence[Study] = ()) -> str:
    """Returns the commit that results are from: weir-sim's.

    UserError: files of the tree differ from it, unless all studies are a user's own. A reader of
    the documents must be able to have it.
    """
    found = program_version(programs.find_program("sim")).partition("commit ")[2].rstrip(")")
    if studies and all(one.folder is not None and one.folder.parent != OURS for one in studies):
        return found
    here = repository.built_commit()
    if here is None or here.endswith("-dirty"):
        raise UserError("--write-docs: commit all changes first: the page names the commit", 1)
    if found != here:
        raise UserError(f"--write-docs: weir-sim is of commit {found}, the sources of {here}", 1)
    return found


def commit_of(version: str) -> str:
    """Returns the commit of weir-sim's version. UserError: it was built of changed sources."""
    found = version.partition("commit ")[2].rstrip(")")
    if not found or found.endswith("-dirty"):
        raise UserError(f"--write-docs: no reader can have the sources of {version}", 1)
    return found


def page_name(results: Sequence[Result], name: str) -> str | None:
    """Returns the name whose page has the results of `weir reproduce NAME`; None: no page has."""
    if name in (find.ALL, *find.suites()):
        return name
    folders = {study.folder for study in find.chosen(find.ALL)}
    return find.ALL if results and all(study.folder in folders for study, _ in results) else None


def page_of(name: str) -> Path:
    """Returns the page between whose lines of a name the results are."""
    return (
        ROOT / "tools/docs/reference" / ("studies.md" if name == find.ALL else f"suites/{name}.md")
    )


def new_page(name: str) -> str:
    return (
        f"# {find.chosen(name)[0].title}: results\n\n{begin(name)}{END}\n"
        f"<!-- made: results {name} -->\n"
    )


def begin(name: str) -> str:
    return f"<!-- results: tools/weir reproduce {name} --write-docs -->\n"


@dataclass(frozen=True)
class Row:
    """A claim that is judged, and what came out as it is shown."""

    experiment: Experiment
    claim: Claim
    here: str
    verdict: str
    scale: str = "quick"

    @property
    def published(self) -> str:
        """The number of the claim, and whether it was derived."""
        asked = study_page.asked(self.claim, self.claim.kind)
        return f"{asked} (derived)" if self.claim.kind == "derived" else asked

    @property
    def kept(self) -> Kept:
        """The part of a row that the file has; the study has the rest, which is the claim's."""
        return self.experiment.name, self.claim.says, self.here, self.verdict


def row(one: Checked) -> Row:
    return Row(one.experiment, one.claim, study_page.here(one), one.verdict)


def is_kept(claim: Claim) -> bool:
    """Is true of a claim with something to compare; the others are on the page of a run."""
    return claim.kind != "shown" or claim.replication is not None or claim.kept


def kept_claims(study: Study) -> Iterator[tuple[Experiment, Claim]]:
    for experiment in study.experiments:
        for claim in experiment.claims:
            if is_kept(claim):
                yield experiment, claim


def rows(study: Study, kept: Sequence[Kept]) -> list[Row]:
    """Joins the rows of a file with the study's claims. UserError: these are others now."""
    claims = list(kept_claims(study))
    if [one[:2] for one in kept] != [(experiment.name, claim.says) for experiment, claim in claims]:
        raise UserError(f"{study.name}: its claims have changed since its results were written", 1)
    return [
        Row(experiment, claim, here, verdict)
        for (experiment, claim), (_, _, here, verdict) in zip(claims, kept, strict=True)
    ]


def results(study: Study) -> list[Row]:
    """Returns the rows of a study's files: each of the full length where that measured it."""
    quick = rows(study, read(study).rows[study.name])
    if not has(study, "full"):
        return quick
    longest = read(study, "full").rows.get(study.name, [])
    full = {(name, says): (here, verdict) for name, says, here, verdict in longest}
    found = []
    for one in quick:
        here, verdict = full.get((one.experiment.name, one.claim.says), ("", "missing"))
        measured = verdict != "missing" and (here != units.NONE or one.here == units.NONE)
        found.append(replace(one, here=here, verdict=verdict, scale="full") if measured else one)
    return found


CLAIMS = (
    Column("", lambda one: one.experiment.name),
    Column("claim", lambda one: one.claim.says),
    Column("published"),
    Column("holds within", lambda one: study_page.within(one.claim)),
    Column("here"),
    Column("", lambda one: study_page.MARKS[one.verdict]),
)


def overview(studies: Sequence[Study]) -> str:
    """Returns how many claims of each study hold."""
    found = []
    for study in studies:
        counted = "; ".join(study_page.counts(results(study)))
        found.append((f"`{study.name}`", len(study.experiments), counted))
    return markdown.render([Table(("study", "experiments", "claims that hold"), found)])


def differing(studies: Sequence[Study]) -> str:
    """Lists what differs in the results that were written, by its cause."""
    causes: dict[str, list[str]] = {}
    for study in studies:
        of = f"{study.name}, " if len(studies) > 1 else ""
        for one in results(study):
            if one.verdict == "differs":
                _, why = study_page.difference(one.experiment, one.claim, one.here)
                why = re.sub(r"^as for .*?: ", "", why)  # the same cause as another claim's
                causes.setdefault(why, []).append(f"{of}{one.experiment.name}")
    found = [(", ".join(dict.fromkeys(places)), len(places), why) for why, places in causes.items()]
    made = Table(("differs", "claims", "why"), found)
    return f"\n{markdown.render([made])}" if made else ""


def beside_linux(studies: Sequence[Study]) -> str:
    """Returns how many measurements are near those of Linux, and lists those that differ."""
    parts: list[Part] = []
    for study in map(guests.study_of, filter(guests.has_guests, studies)):
        if not has(study):
            continue
        file = read(study)
        judged = [one for one in rows(study, file.rows[study.name]) if one.claim.kind != "shown"]
        for end, reference in guests.OVER.items():
            own = [one for one in judged if one.claim.says.endswith(end)]
            if own:
                parts += near_linux(study, file, own, end, reference)
    return f"\n{markdown.render(parts)}" if parts else ""


def near_linux(
    study: Study, file: File, judged: Sequence[Row], end: str, reference: str
) -> Iterator[Part]:
    """Yields how many measurements are near, and a table of those that differ.

    end: what their claims end with. reference: with what they are compared.
    """
    verdicts = Counter(one.verdict for one in judged)
    missing = verdicts.pop("missing", 0)
    left = f" Not measured: {missing}." if missing else ""
    yield Text(
        f"`{study.name}`: {verdicts['holds']} of {verdicts.total()} means over seeds are within"
        f" {100 * guests.FAR:.0f} % of {reference}, {verdicts['within spread']} more by their"
        f" spread (the 95 % interval has 1), from {source(file)}.{left}"
    )
    far = [
        (
            f"{one.experiment.name}: {one.claim.says.removesuffix(end)}",
            one.here.replace(" times", ""),
            one.claim.why or units.NONE,
        )
        for one in judged
        if one.verdict == "differs"
    ]
    if far:
        yield Table((f"differs from {reference}", "ours over it", "why"), far)


def source(file: File) -> str:
    """Returns the command that wrote a file of results, with its commit and day."""
    return f"`{file.command}` at commit {file.commit}, {file.date}"


def origin(study: Study) -> str:
    """Returns the commands that a study's results are from."""
    scales = [row.scale for row in results(study)]
    found = []
    for scale in dict.fromkeys(sorted(scales)):
        file = read(study, scale)
        text = source(file)
        if study.name in file.made:
            text = f"{text} ({spent(file.made[study.name], scale)})"
        if len(set(scales)) > 1:
            text = f"{text}, {scales.count(scale)} claims"
        found.append(text)
    return "; ".join(found) + "."


def spent(made: Made, scale: str) -> str:
    """Returns what the runs of a scale took, and what others of the full length would take."""

    def core(seconds: float) -> str:
        return units.time(seconds * 1e9)

    text = f"{made.runs} runs, {core(made.core_s)} of one core, {units.size(made.bytes)}"
    for name, version in made.guests.items():
        text += f", {name.removesuffix(' current')} {version}"
    if not made.missing:
        return text
    more = f"{made.missing} more" if scale == "full" else f"the {made.missing} of --full"
    return f"{text}; {more} would take {' to '.join(dict.fromkeys(map(core, made.missing_s)))}"


def origins(studies: Sequence[Study]) -> str:
    """Returns the runs that the results are from, with the names of their studies."""
    found: dict[str, list[str]] = {}
    for study in studies:
        found.setdefault(origin(study), []).append(f"`{study.name}`")
    if len(found) == 1:
        return f"From {next(iter(found))}"
    return "\n".join(f"{', '.join(names)}: from {each}" for each, names in found.items())


def block(studies: Sequence[Study]) -> str:
    return (
        f"\n{origins(studies)}\n\n{overview(studies)}{beside_linux(studies)}{differing(studies)}\n"
    )


def table(name: str) -> str:
    """Makes the site's tables of every claim of the studies of a name."""
    parts: list[Part] = []
    for study in find.chosen(name):
        found = results(study)
        columns = study_page.with_others(CLAIMS, found, guests.texts(study))
        if any(one.scale == "full" for one in found):
            columns = (*columns, Column("length", lambda one: one.scale))
        parts += [
            Text(f"### {study.name}: {study.title}"),
            Text(study_page.sources(study)),
            Table(columns, found),
        ]
    return markdown.render(parts)


def written(text: str, name: str) -> tuple[str, str, str]:
    """Cuts a page into what is before the results of a name, these, and what is after.

    UserError: the lines that enclose them are not there.
    """
    before, first, rest = text.partition(begin(name))
    results, last, after = rest.partition(END)
    if not first or not last:
        raise UserError(
            f"{page_of(name)}: the lines '{begin(name).strip()}' and '{END.strip()}' are not there"
        )
    return before + first, results, last + after


def write(
    name: str,
    checked: Sequence[Result],
    scale: str,
    commit: str,
    made: Mapping[str, Made] | None = None,
) -> list[Path]:
    """Writes the results of each folder, and replaces what stands on its page, if it has one.

    A suite has a page once it has results: the first ones make it.
    """
    command, day = f"weir reproduce {name} --{scale}", datetime.now(UTC).date().isoformat()
    files: dict[Path, File] = {}
    for study, found in checked:
        file = files.setdefault(file_of(study, scale), File(command, commit, day, {}, {}))
        measured = [row(one).kept for one in found if is_kept(one.claim)]
        earlier = part(study, commit)[0] if scale == "full" else []
        file.rows[study.name] = made_up(measured, earlier)
        if made and study.name in made:
            file.made[study.name] = made[study.name]
    for path, file in files.items():
        folder.write_whole(path, text_of(file))
    owner = page_name(checked, name)
    if owner is None:
        return [*files]
    page = page_of(owner)
    text = page.read_text(encoding="utf-8") if page.exists() else new_page(owner)
    before, _, after = written(text, owner)
    folder.write_whole(page, before + block(find.chosen(owner)) + after)
    return [*files, page]


def text_of(file: File) -> str:
    """Writes a line for each row, so that a change shows what differs."""

    def value(of: object) -> str:
        return json.dumps(of, ensure_ascii=False)

    lines = [
        f"{value(study)}: [\n" + ",\n".join(map(value, each)) + "\n]"
        for study, each in file.rows.items()
    ]
    head = msgspec.to_builtins(file)
    del head["rows"]
    return value(head)[:-1] + ', "rows": {\n' + ",\n".join(lines) + "\n}}\n"
