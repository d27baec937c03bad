# SPDX-License-Identifier: BSD-3-Clause
"""The results of studies in tools/docs/reference: studies.md, and of each suite a page of suites/.

They are written from a run, and by it alone: `weir reproduce NAME --write-docs` replaces what
stands between two lines of a page.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from weir import runner
from weir.analysis import folder
from weir.bench import history
from weir.bootstrap import ROOT
from weir.errors import UserError
from weir.reference import cell
from weir.study import study_page
from weir.study.claim import Checked, Experiment, Study
from weir.study.study_page import Result
from weir.study.travel import program_version

END = "<!-- end of results -->\n"
ALL = "all"  # the name of the five documents together


def commit() -> str:
    """The commit that results for the documents are from.

    UserError: files differ from it, or weir-sim is of another. A reader must be able to have it.
    """
    found = program_version(runner.find_program("sim")).partition("commit ")[2].rstrip(")")
    here = history.built_commit()
    if here is None or here.endswith("-dirty"):
        raise UserError("--write-docs: commit all changes first: the page names the commit", 1)
    if found != here:
        raise UserError(f"--write-docs: weir-sim is of commit {found}, the sources of {here}", 1)
    return found


def page_of(name: str) -> Path:
    """Where the results of `weir reproduce NAME` stand."""
    return ROOT / "tools/docs/reference" / ("studies.md" if name == ALL else f"suites/{name}.md")


def begin(name: str) -> str:
    """The line before the results of `weir reproduce NAME`."""
    return f"<!-- results: tools/weir reproduce {name} --write-docs -->\n"


def line(cells: Sequence[str]) -> str:
    """A row of a table."""
    return "| " + " | ".join(map(cell, cells)) + " |"


def row(experiment: Experiment, one: Checked) -> str:
    """A claim in studies.md."""
    claim = one.claim
    asked = study_page.asked(claim, claim.kind)
    marked = f"{asked} (derived)" if claim.kind == "derived" else asked
    verdict = study_page.MARKS[one.verdict]
    here = study_page.here(one)
    return line([experiment.name, claim.says, marked, study_page.within(claim), here, verdict])


def overview(results: Sequence[Result]) -> str:
    """How many claims of each study hold."""
    lines = [line(["study", "experiments", "claims that hold"]), "|---|---|---|"]
    for study, checked in results:
        counts = "; ".join(study_page.counts(checked))
        lines.append(line([f"`{study.name}`", str(len(study.experiments)), counts]))
    return "\n".join(lines) + "\n"


def section(study: Study, checked: Sequence[Checked]) -> str:
    """Every claim of a study that is judged, with what differs; what is shown is on its page."""
    lines = [
        f"\n### {study.name}: {study.title}\n",
        f"{study.source}.\n",
        line(["", "claim", "published", "holds within", "here", ""]),
        "|---|---|---|---|---|---|",
        *(row(one.experiment, one) for one in checked if one.claim.kind != "shown"),
    ]
    if off := study_page.differing(checked):
        lines += ["", "What differs:", ""]
        lines += [f"- {what}. {why}" for what, why in off]
    return "\n".join(lines) + "\n"


def page(name: str, results: Sequence[Result], scale: str, commit: str) -> str:
    """How many claims hold; then every claim of every study."""
    day = datetime.now(UTC).date().isoformat()
    when = f"From `weir reproduce {name} --{scale}` at commit {commit}, {day}."
    parts = [f"\n{when}\n\n", overview(results)]
    return "".join([*parts, *(section(*one) for one in results), "\n"])


def written(text: str, name: str) -> tuple[str, str, str]:
    """A page before the results of a name, these, and the page after them.

    UserError: the lines that enclose them are not there.
    """
    before, first, rest = text.partition(begin(name))
    results, last, after = rest.partition(END)
    if not first or not last:
        raise UserError(
            f"{page_of(name)}: the lines '{begin(name).strip()}' and '{END.strip()}' are not there"
        )
    return before + first, results, last + after


def write(name: str, results: Sequence[Result], scale: str, commit: str) -> Path:
    """Replaces what stands between the lines of a name on its page."""
    place = page_of(name)
    before, _, after = written(place.read_text(encoding="utf-8"), name)
    folder.write_whole(place, before + page(name, results, scale, commit) + after)
    return place
