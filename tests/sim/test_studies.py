# SPDX-License-Identifier: BSD-3-Clause
"""A small part of each study that has results."""

from __future__ import annotations

import math
import re
from pathlib import Path

import pytest
from weir.many import costs
from weir.many.cells import run_cells
from weir.runner.options import Options
from weir.study import claim, documents, find
from weir.study.claim import Found, Study

CHEAP_S = 3.0  # of one core: what a cell may cost here
CHEAP_CELLS = 60  # of a study
SUITE_CELL_S = 0.5  # likewise of a suite
SUITE_CELLS = 4
RENEW = "renew them: tools/weir reproduce NAME --write-docs, NAME as all or the suite"


def some_cells(study: Study, each_s: float, count: int, all_s: float) -> list[Options]:
    """Cells of claims, in their order: each claim whose cells are cheap and still fit."""
    cells = [cell for trial in claim.trials(study) for cell in trial.cells(True)]
    cost_s = dict(zip((cell.name for cell in cells), costs.costs_s(cells), strict=True))
    needed: set[str] = set()
    for one in (one for experiment in study.experiments for one in experiment.claims):
        own = {cell.name for trial in one.trials for cell in trial.cells(True)}
        cheap = all(cost_s[name] <= each_s for name in own)
        more = needed | own
        if cheap and len(more) <= count and sum(cost_s[name] for name in more) <= all_s:
            needed = more
    return [cell for cell in cells if cell.name in needed]


def check_rows(study: Study, chosen: list[Options], place: Path) -> int:
    """Runs cells: the file has each claim as it is here; how many were measured."""
    outcomes = run_cells(chosen, place, workers=1)
    assert [o.message for o in outcomes if o.status == "failed"] == []
    found = Found({o.cell.name: o.folder for o in outcomes}, True)
    kept = documents.read(study).rows[study.name]
    measured = [one for one in claim.check(study, found) if one.values]
    for one in measured:
        if one.claim.kind != "shown":
            assert documents.row(one).kept in kept, RENEW
    return len(measured)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("study", find.chosen("all"), ids=lambda study: study.name)
def test_the_documents_have_what_comes_out(study: Study, tmp_path: Path) -> None:
    """Each claim whose cells are cheap is measured: studies.md has its row as it is here."""
    chosen = some_cells(study, CHEAP_S, CHEAP_CELLS, math.inf)
    assert check_rows(study, chosen, tmp_path) > 2


@pytest.mark.slow
@pytest.mark.parametrize("name", find.suites())
def test_the_pages_of_suites_have_what_comes_out(name: str, tmp_path: Path) -> None:
    """Likewise of a suite's last study, of fewer cells."""
    study = find.chosen(name)[-1]
    chosen = some_cells(study, SUITE_CELL_S, SUITE_CELLS, SUITE_CELLS * SUITE_CELL_S)
    assert check_rows(study, chosen, tmp_path) > 0


@pytest.mark.parametrize("name", ["all", *find.suites()])
def test_the_documents_have_every_claim(name: str) -> None:
    """Each that is judged, in the order of the studies; a page's counts are of these rows."""
    studies = find.chosen(name)
    page = documents.written(documents.page_of(name).read_text(), name)[1]
    file = documents.read(studies[0])
    rows = [documents.rows(one, documents.read(one).rows[one.name]) for one in studies]
    verdicts = [row.verdict for of_study in rows for row in of_study]
    holding = sum(int(n) for n in re.findall(r": (\d+) of \d+ hold", page))
    assert holding == verdicts.count("holds"), RENEW
    assert f"`{file.command}` at commit {file.commit}, {file.date}." in page
    assert page.endswith(documents.differing(studies) + "\n"), RENEW
