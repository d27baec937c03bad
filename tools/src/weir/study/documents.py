# SPDX-License-Identifier: BSD-3-Clause
"""The results of studies in tools/studies.md: written from a run, and by it alone."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from weir.analysis import folder
from weir.errors import UserError
from weir.reference import cell
from weir.study import study_page
from weir.study.claim import Checked, Experiment
from weir.study.study_page import Result

ROOT = Path(__file__).resolve().parents[4]
BEGIN = "<!-- results: tools/weir reproduce all --write-docs -->\n"
END = "<!-- end of results -->\n"
PAGE = ROOT / "tools/studies.md"


def line(cells: Sequence[str]) -> str:
    """A row of a table."""
    return "| " + " | ".join(map(cell, cells)) + " |"


def row(experiment: Experiment, one: Checked) -> str:
    """A claim in tools/studies.md."""
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


def page(results: Sequence[Result], scale: str, commit: str) -> str:
    """How many claims hold; then every claim of every study, with what differs."""
    parts = [f"\n{when(scale, commit)}\n\n", overview(results)]
    for study, checked in results:
        lines = [
            f"\n### {study.name}: {study.title}\n",
            f"{study.source}.\n",
            line(["", "claim", "published", "holds within", "here", ""]),
            "|---|---|---|---|---|---|",
            *(row(one.experiment, one) for one in checked),
        ]
        if off := study_page.differing(checked):
            lines += ["", "What differs:", ""]
            lines += [f"- {what}. {why}" for what, why in off]
        parts.append("\n".join(lines) + "\n")
    return "".join(parts) + "\n"


def when(scale: str, commit: str) -> str:
    """Where the numbers are from."""
    day = datetime.now(UTC).date().isoformat()
    return f"From `weir reproduce all --{scale}` at commit {commit}, {day}."


def write(results: Sequence[Result], scale: str, commit: str) -> Path:
    """Replaces what stands between the markers of the page."""
    old = PAGE.read_text(encoding="utf-8")
    if old.count(BEGIN) != 1 or old.count(END) != 1:
        raise UserError(f"{PAGE}: the lines '{BEGIN.strip()}' and '{END.strip()}' are not there")
    before, rest = old.split(BEGIN)
    folder.write_whole(
        PAGE, before + BEGIN + page(results, scale, commit) + END + rest.split(END)[1]
    )
    return PAGE
