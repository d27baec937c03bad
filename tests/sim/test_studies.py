# SPDX-License-Identifier: BSD-3-Clause
"""A small part of each study of `weir reproduce all`, and that tools/studies.md has its results."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from weir.study import claim, documents, reproduce, studies, study_page
from weir.study.cells import run_cells
from weir.study.claim import Found, Study

CHEAP_S = 3.0  # of one core: what a cell may cost here
CHEAP_CELLS = 60  # of a study
RENEW = "renew it: tools/weir reproduce all --write-docs"


def results() -> str:
    """What stands between the markers of tools/studies.md."""
    return documents.PAGE.read_text().partition(documents.BEGIN)[2].partition(documents.END)[0]


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("study", studies.ALL, ids=lambda study: study.name)
def test_the_documents_have_what_comes_out(study: Study, tmp_path: Path) -> None:
    """Each claim whose cells are cheap is measured: tools/studies.md has its row as it is here."""
    cells = [cell for trial in claim.trials(study) for cell in trial.cells(True)]
    costs = dict(zip((cell.name for cell in cells), reproduce.costs_s(cells), strict=True))
    needed: dict[str, None] = {}
    for experiment in study.experiments:
        for one in experiment.claims:
            own = [cell.name for trial in one.trials for cell in trial.cells(True)]
            new = {name: None for name in own if name not in needed}
            cheap = all(costs[name] <= CHEAP_S for name in own)
            if cheap and len(needed) + len(new) <= CHEAP_CELLS:
                needed |= new
    chosen = [cell for cell in cells if cell.name in needed]
    outcomes = run_cells(chosen, tmp_path, workers=1)
    assert [o.message for o in outcomes if o.status == "failed"] == []
    found = Found({o.cell.name: o.folder for o in outcomes}, True)
    page, checked = results(), claim.check(study, found)
    measured = [one for one in checked if one.values]

    assert len(measured) > 2
    for one in measured:
        assert documents.row(one.experiment, one) in page, RENEW


def test_the_documents_have_every_claim() -> None:
    """In the order of the studies, with what is asked; their counts are of these rows."""
    page = results()
    rows = [line for line in page.splitlines() if re.match(r"^\| [A-Z]", line)]
    claims = [(e, c) for study in studies.ALL for e in study.experiments for c in e.claims]
    assert len(rows) == len(claims), RENEW
    for line, (experiment, one) in zip(rows, claims, strict=True):
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        assert cells[:2] == [experiment.name, documents.cell(one.says)], RENEW
        assert cells[3] == study_page.within(one), RENEW
    verdicts = [line.split("|")[-2].strip() for line in rows]
    overview = page.partition("\n### ")[0]
    holding = sum(int(n) for n in re.findall(r": (\d+) of \d+ hold", overview))
    assert holding == verdicts.count("holds"), RENEW
