# SPDX-License-Identifier: BSD-3-Clause
"""What a change of a control does, as a comment in Markdown for the change's review.

The control is built of its folder as it is, and of the folder as it was in another commit, which is
unpacked elsewhere. OUT/comment.md has the comment, comment.json the same as GitHub's API takes it.
"""

from __future__ import annotations

import io
import json
import shutil
import subprocess
import tarfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from weir.analysis import folder
from weir.base import foreign, markdown, units
from weir.base.errors import UserError
from weir.base.page import Page, Part, Table, Text, section
from weir.league import entry, measure, page, standing
from weir.league.entry import Entry
from weir.league.measure import Asked
from weir.league.standing import Change
from weir.many import cells
from weir.plugin import check
from weir.plugin.check import Result
from weir.plugin.new import HEADERS
from weir.study import find, reproduce, study_page
from weir.study.claim import Checked

STUDY = "study"  # the folder of a control's own study, below the control's
NAMES_SHOWN = 6
CLAIMS_SHOWN = 40  # of a study: a comment may have 65,536 characters


@dataclass(frozen=True)
class Tried:
    """A control as it was built of one state of its folder."""

    row: Entry
    checks: Sequence[Result]
    claims: Sequence[Checked]


@dataclass(frozen=True)
class Comment:
    """The comment, and whether nothing failed."""

    text: str
    good: bool


def said(argv: Sequence[str]) -> bytes:
    """Returns what a program prints. UserError: it failed, with its last line."""
    try:
        done = subprocess.run(argv, capture_output=True)
    except FileNotFoundError:
        raise UserError(f"ci: {argv[0]} is not installed", 1) from None
    if done.returncode != 0:
        lines = done.stderr.decode(errors="replace").strip().splitlines() or ["no reason given"]
        raise UserError(f"ci: {' '.join(argv[:3])}: {lines[-1]}", 1)
    return done.stdout


def built(place: Path) -> Path:
    """Builds the plug-in of a folder. UserError: make fails, or leaves none or several."""
    if not (place / "Makefile").is_file():
        raise UserError(f"ci: {place}: it has no Makefile; weir new cc NAME makes one")
    said(["make", "-C", str(place), f"INCLUDE={HEADERS}"])
    made = sorted(place.glob("*.so"))
    if len(made) != 1:
        raise UserError(f"ci: {place}: make leaves {len(made)} files *.so there; one is wanted")
    return made[0]


def git(place: Path, *words: str) -> bytes:
    return said(["git", "-C", str(place), *words])


def commit_of(place: Path, name: str) -> str:
    """Returns the first 12 digits of a commit. UserError: the folder's repository has none."""
    try:
        return (
            git(place, "rev-parse", "--short=12", "--verify", f"{name}^{{commit}}").decode().strip()
        )
    except UserError:
        raise UserError(
            f"ci: --base {name}: the repository of {place} has no such commit", 1
        ) from None


def unpacked(place: Path, commit: str, into: Path) -> Path | None:
    """Unpacks a commit of the folder's repository; returns the folder there, None without one."""
    top = Path(git(place, "rev-parse", "--show-toplevel").decode().strip())
    inside = place.resolve().relative_to(top.resolve())
    if not git(top, "ls-tree", commit, str(inside)):
        return None
    archive = git(top, "archive", "--format=tar", commit)
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        for member in tar:
            foreign.extract(tar, member, into)
    return into / inside


@contextmanager
def removed(place: Path) -> Iterator[None]:
    """Removes a folder before and after."""
    shutil.rmtree(place, ignore_errors=True)
    try:
        yield
    finally:
        shutil.rmtree(place, ignore_errors=True)


def tried(
    place: Path,
    base: str | None,
    quick: bool,
    out: Path,
    screen: Console,
    workers: int | None = None,
) -> Comment:
    """Tries a control, and the one of the base commit beside it; writes the comment."""

    def measured(control: Path, part: str) -> Tried:
        file = str(built(control))
        measure.check_names([file])
        claims: list[Checked] = []
        for study in find.load(control / STUDY) if find.is_study(control / STUDY) else ():
            campaign = reproduce.Campaign(study, quick, out / part / STUDY)
            runs = reproduce.simulating(screen, workers=workers)
            claims += reproduce.run(campaign, runs, {})[0]
        row = measure.row(Asked(file, quick, out / part, workers), screen)
        return Tried(
            row, check.conformance(file, out / part / "check") if part == "head" else [], claims
        )

    base = base and commit_of(place, base)
    head, before = measured(place, "head"), None
    if base is not None:
        # Always here: what a compiler writes for debuggers has the folder's name in it.
        source = out / "base" / "source"
        with cells.locked(source.parent), removed(source):
            if (old := unpacked(place, base, source)) is not None:
                before = measured(old, "base")
    others = measure.all_rows([], quick=quick, out=out / "league", screen=screen, workers=workers)
    changed = [] if before is None else standing.changes(before.row, head.row, others)
    parts = list(comment(head, before, changed, others, base))
    text = markdown.page(Page(f"{head.row.name}: {verdict(head, changed)}", parts))
    folder.write_whole(out / "comment.md", text)
    folder.write_whole(out / "comment.json", json.dumps({"body": text}) + "\n")
    return Comment(text, good(head))


def good(one: Tried) -> bool:
    checks = all(result.passed is not False for result in one.checks)
    return checks and not one.row.failed and not any(claim.unexplained for claim in one.claims)


def verdict(one: Tried, changed: Sequence[Change]) -> str:
    """Returns what failed, and how many means are surely better or worse."""
    failed = [result.name for result in one.checks if result.passed is False]
    failed += [f"claim '{claim.claim.says}'" for claim in one.claims if claim.unexplained]
    failed += list(one.row.failed)
    counts = [sum(each.judged == word for each in changed) for word in ("better", "worse")]
    means = f"; of {len(changed)} means {counts[0]} better, {counts[1]} worse" if changed else ""
    return (f"fails ({few(failed)})" if failed else "all checks pass") + means


def few(names: Sequence[str]) -> str:
    return ", ".join(names[:NAMES_SHOWN]) + (", ..." if len(names) > NAMES_SHOWN else "")


def comment(
    head: Tried,
    before: Tried | None,
    changed: Sequence[Change],
    others: Sequence[Entry],
    base: str | None,
) -> Iterator[Part]:
    """Yields the parts of the comment."""
    old, cubic = None if before is None else before.row, entry.base_of(others)
    name = base or ""
    if base and before is None:
        yield Text(f"Commit {base} has no such control: nothing to compare it with.")
    if old is not None:
        yield from section(f"Differences from {name}", *differences(old, head.row, changed, cubic))
    failed = [list(pair) for pair in head.row.failed.items()]
    yield Table(["a run that failed", "why"], failed[:NAMES_SHOWN], 2)
    yield from section("The worst found", *worst(old, head.row, name))
    yield from section("Checks", *checks(head.checks))
    yield from section("Its study", *claims(head, before, name))
    found = standing.standing([one for one in others if one.name != head.row.name] + [head.row])
    _, cells, place = found.of(head.row.name)
    yield from section(
        "Its row of the league",
        page.means(cells),
        Text(
            f"Place {place.places} of {len(found.entries)}, by the mean rank over the columns. In"
            " brackets are 95 % intervals, for other scenes of this kind."
        ),
    )


def checks(results: Sequence[Result]) -> Iterator[Part]:
    """Yields those that fail or say nothing, and the names of all others."""
    words = {False: "**FAILED**", None: units.NONE}
    rows = [[words[one.passed], one.name, one.found] for one in results if not one.passed]
    yield Table(("", "check", "found"), rows, 3)
    good = [one.name for one in results if one.passed]
    yield Text(f"{len(good)} of {len(results)} pass: {', '.join(good)}." if good else "")


def differences(old: Entry, new: Entry, changed: Sequence[Change], base: Entry) -> Iterator[Part]:
    """Yields how many runs differ, by how much the means do, and which demands."""
    names = [one for one in new.digests if new.digests[one] != old.digests.get(one)]
    if not names:
        yield Text(f"All {len(new.digests)} runs have the same telemetry (digest `{new.digest}`).")
        return
    yield Text(
        f"{len(names)} of {len(new.digests)} runs have other telemetry ({few(names)}); digest"
        f" `{old.digest}` is now `{new.digest}`."
    )
    rows = []
    for one in changed:
        numbers = [page.short(value) for value in (one.before, one.after)]
        sign = "×" if one.column.ratio else ""
        low, high = (f"{sign}{units.number(end, 3)}" for end in (one.low, one.high))
        change = f"{sign}{units.number(one.change, 3)} ({low} to {high})"
        unit = f" ({one.column.unit})" if one.column.unit else ""
        means = f"**{one.judged}**" if one.judged else units.NONE
        rows.append([f"{one.column.says}{unit}", *numbers, change, means])
    yield Table(("mean over scenes", "before", "now", "change (95 %)", ""), rows)
    yield Text(
        "Scenes are those of `weir evaluate`. Each is compared with itself, and the interval is for"
        " other scenes of this kind. Chance alone would call one of these means better or worse in"
        " at most one change of twenty (a test of permutations, Holm's method)."
    )
    both = list(zip(entry.judged(old, base), entry.judged(new, base), strict=True))
    for says, before in (("no longer hold", True), ("hold now", False)):
        found = [
            f"{scene.name}: {asked.says}"
            for (scene, asked, _, was), (*_, now) in both
            if was is before and now is (not before)
        ]
        yield Text(f"Demands that {says}: {few(found)}." if found else "")


def worst(old: Entry | None, new: Entry, name: str) -> Iterator[Part]:
    """Yields the search and the known attacks, now and before."""
    rows = []
    for what, show in (
        (f"unused in the worst of {measure.TRIALS} networks (%)", page.unused),
        ("instructions per ACK", page.cost),
    ):
        texts = [show(one) for one in (old, new) if one is not None]
        rows += [[what, *texts]] if set(texts) != {units.NONE} else []
    earlier = {} if old is None else {known: harm for known, _, harm, _ in old.attacks}
    for known, goal, harm, benign in new.attacks:
        was = [] if old is None else [earlier.get(known, units.NONE)]
        what = "unused capacity" if goal == "utilisation" else goal
        rows.append([f"{what} under {known}", *was, f"{harm}; {benign} without it"])
    yield Table(["", *([name] if old is not None else []), "now"], rows)
    if new.worst is not None:
        yield Text(
            f"The worst network: {page.network(new.worst)}. A search of more may find a worse one."
        )


def claims(head: Tried, before: Tried | None, name: str) -> Iterator[Part]:
    """Yields the claims of the control's study, now and before: first those that do not hold."""
    earlier = {(one.experiment.name, one.claim.says): study_page.here(one)
               for one in (before.claims if before is not None else ())}  # fmt: skip
    rows = []
    for one in sorted(head.claims, key=lambda one: not one.unexplained)[:CLAIMS_SHOWN]:
        was = earlier.get((one.experiment.name, one.claim.says), units.NONE)
        rows.append([one.claim.says, *([was] if before is not None else []), study_page.here(one),
                     study_page.within(one.claim), study_page.MARKS[one.verdict]])  # fmt: skip
    heads = ["claim", *([name] if before is not None else []), "now", "holds within", "verdict"]
    yield Table(heads, rows)
    more = len(head.claims) - len(rows)
    yield Text(f"{more} more: `weir reproduce` of the study shows them." if more > 0 else "")
