# SPDX-License-Identifier: BSD-3-Clause
"""The results of studies in README.md and tools/studies.md: written from a run, and by it alone."""

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
SHORT, LONG = ROOT / "README.md", ROOT / "tools/studies.md"


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


def short(results: Sequence[Result], scale: str, commit: str) -> str:
    """How many claims of each study hold."""
    lines = [line(["study", "experiments", "claims that hold"]), "|---|---|---|"]
    for study, checked in results:
        counts = "; ".join(study_page.counts(checked))
        lines.append(line([f"`{study.name}`", str(len(study.experiments)), counts]))
    return f"\n{when(scale, commit)}\n\n" + "\n".join(lines) + "\n\n"


def long(results: Sequence[Result], scale: str, commit: str) -> str:
    """Every claim of every study, with what differs."""
    parts = [f"\n{when(scale, commit)}\n"]
    for study, checked in results:
        lines = [
            f"\n### {study.name}: {study.title}\n",
            f"{study.source}. {'; '.join(study_page.counts(checked))}.\n",
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


def put(path: Path, text: str) -> None:
    """Replaces what stands between the markers of a page."""
    page = path.read_text(encoding="utf-8")
    if page.count(BEGIN) != 1 or page.count(END) != 1:
        raise UserError(f"{path}: the lines '{BEGIN.strip()}' and '{END.strip()}' are not there")
    before, _, rest = page.partition(BEGIN)
    folder.write_whole(path, before + BEGIN + text + END + rest.partition(END)[2])


def write(results: Sequence[Result], scale: str, commit: str) -> list[Path]:
    """Writes both pages."""
    put(SHORT, short(results, scale, commit))
    put(LONG, long(results, scale, commit))
    return [SHORT, LONG]
