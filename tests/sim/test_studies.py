# SPDX-License-Identifier: BSD-3-Clause
"""A small part of each study that has results, and all of what papers say of a control."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from weir.guests import stacks
from weir.many import costs
from weir.many.cells import run_cells
from weir.runner.options import Options
from weir.study import claim, documents, find, kept
from weir.study.claim import Checked, Experiment, Found, Study

CHEAP_S, CHEAP_S_OF_A_SUITE = 5.0, 2.0  # of one core, for a study
(PAPERS,) = find.chosen("papers")
RENEW = "renew them: tools/weir reproduce NAME --write-docs, NAME as all or the suite"


def some_cells(study: Study, all_s: float) -> list[Options]:
    """Cells of claims, as many as fit; those are first that are of most claims."""
    cells = [cell for setup in claim.setups(study) for cell in setup.cells(True)]
    cost_s = {cell.name: cost.most_s for cell, cost in zip(cells, costs.costs(cells), strict=True)}
    claims = [one for experiment in study.experiments for one in experiment.claims if one.setups]
    each = Counter(frozenset(c.name for t in one.setups for c in t.cells(True)) for one in claims)
    needed: set[str] = set()
    for own in sorted(each, key=lambda names: -each[names]):
        if sum(cost_s[name] for name in needed | own) <= all_s:
            needed |= own
    return [cell for cell in cells if cell.name in needed]


def measured(study: Study, chosen: list[Options], place: Path) -> list[Checked]:
    """Runs cells; the claims that have all of theirs."""
    outcomes = run_cells(chosen, place, workers=1)
    assert [o.message for o in outcomes if o.status == "failed"] == []
    found = Found({o.cell.name: o.folder for o in outcomes}, True)
    return [one for one in claim.check(study, found) if one.values]


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("experiment", PAPERS.experiments, ids=lambda one: one.name)
def test_what_papers_say_holds(experiment: Experiment, tmp_path: Path) -> None:
    """Each claim of the study holds, or says why it does not."""
    study = replace(PAPERS, experiments=(experiment,))
    cells = [cell for setup in claim.setups(study) for cell in setup.cells(True)]
    checked = measured(study, cells, tmp_path)
    assert len(checked) == len(experiment.claims)
    assert [(one.claim.says, one.value) for one in checked if one.unexplained] == []


def check_rows(study: Study, chosen: list[Options], place: Path) -> int:
    """Runs cells: the file has each claim as it is here; how many were measured."""
    rows = kept.read(study).rows[study.name]
    checked = measured(study, chosen, place)
    for one in checked:
        if documents.is_kept(one.claim):
            assert documents.row(one).kept in rows, RENEW
    return len(checked)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("study", find.chosen("all"), ids=lambda study: study.name)
def test_the_documents_have_what_comes_out(study: Study, tmp_path: Path) -> None:
    """Each claim whose cells are cheap is measured: studies.md has its row as it is here."""
    chosen = some_cells(study, CHEAP_S)
    assert check_rows(study, chosen, tmp_path) > 0


@pytest.mark.slow
@pytest.mark.parametrize("name", find.suites())
def test_the_pages_of_suites_have_what_comes_out(name: str, tmp_path: Path) -> None:
    """Likewise of a suite's last study, of fewer cells."""
    study = find.chosen(name)[-1]
    chosen = some_cells(study, CHEAP_S_OF_A_SUITE)
    needed = {name for name in stacks.STACKS if any(name in one.name for one in chosen)}
    if missing := needed - stacks.built().keys():
        pytest.skip(f"weir guests add {' '.join(sorted(missing))} was not run")
    assert check_rows(study, chosen, tmp_path) > 0


@pytest.mark.parametrize("name", ["all", *find.suites()])
def test_the_documents_have_every_claim(name: str) -> None:
    """Each that is judged, in the order of the studies; a page's counts are of these rows."""
    studies = find.chosen(name)
    page = documents.written(documents.page_of(name).read_text(), name)[1]
    verdicts = [row.verdict for one in studies for row in documents.results(one)]
    holding = sum(int(n) for n in re.findall(r": (\d+) of \d+ hold", page))
    assert holding == verdicts.count("holds"), RENEW
    assert documents.origins(studies) in page, RENEW
    assert page.endswith(documents.differing(studies) + "\n"), RENEW
    assert documents.beside_linux(studies) in page, RENEW
