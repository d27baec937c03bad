# SPDX-License-Identifier: BSD-3-Clause
"""Test cases of RFC 8867 (study rmcat): one is run, and what all of them ask is complete."""

from __future__ import annotations

from pathlib import Path

import pytest
from weir.analysis import folder
from weir.many.cells import run_cells
from weir.studies.rmcat import study as rmcat


def test_second_halves_of_all_rates() -> None:
    """Of 5.1: 1, 2.5, 0.6 and 1 Mbit/s from 0, 40, 60 and 80 s on, and until 99 s."""
    case = rmcat.BY_NAME["variable"]
    assert case.spans(case.rate) == [(20, 40, 1), (50, 60, 2.5), (70, 80, 0.6), (89.5, 99, 1)]


def test_what_media_can_use() -> None:
    """The link's payload beside audio, but no more than the encoders: 1.5 Mbit/s each."""
    assert rmcat.usable(1, 1) == pytest.approx(0.935, abs=0.001)
    assert rmcat.usable(2.5, 1) == 1.5
    assert rmcat.usable(3.5, 3) == pytest.approx(3.288, abs=0.001)


def test_every_case_has_claims_of_every_control() -> None:
    """Eight sections, at least two claims of each control, each with where its bound is from."""
    sections = [case.section.partition("-")[0] for case in rmcat.CASES]
    assert list(dict.fromkeys(sections)) == [f"5.{n}" for n in range(1, 9)]
    for experiment in rmcat.EXPERIMENTS:
        said = [one.says.partition(":")[0] for one in experiment.claims]
        for name in rmcat.CONTROLS.values():
            assert sum(name in one for one in said) >= 2, experiment.name
        assert all("no number" in c.source or "G.114" in c.source for c in experiment.claims)


def test_media_follows_a_links_rate(tmp_path: Path) -> None:
    """5.1 with CUBIC: the measures of a run; audio beside it is sent whole."""
    case = rmcat.BY_NAME["variable"]
    setup = case.setup("cubic")
    outcomes = run_cells(setup.cells(True)[:1], tmp_path, workers=1)
    run = folder.load(outcomes[0].folder)
    assert 0.7 < rmcat.follows(case, slice(0, 1), case.rate)(run) < 1.05
    assert 100 < rmcat.frame_ms(case, 50)(run) < 500
    assert run.summary.groups[1].goodput_bps == pytest.approx(19800, rel=0.03)
