# SPDX-License-Identifier: BSD-3-Clause
"""Test cases of RFC 8867 (study rmcat): one is run, and what all of them ask is complete."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest
from msgspec.structs import replace
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


STEADY = [f"paths.{p}.jitter.{k}=0ms" for p in ("forward", "reverse") for k in ("mean", "spread")]
LATE = "{bbr3: {probe_rtt_interval: 1000s}}"


def follows(name: str) -> rmcat.Measure:
    case = rmcat.BY_NAME[name]
    return rmcat.follows(case, slice(0, case.media), case.rate)


def backward(name: str) -> rmcat.Measure:
    case = rmcat.BY_NAME[name]
    return rmcat.follows(case, slice(1, 2), case.back)


def frames_s(name: str) -> rmcat.Measure:
    of = rmcat.frame_ms(rmcat.BY_NAME[name])
    return lambda run: of(run) / 1000


@pytest.mark.parametrize(("name", "word", "cc", "changes", "measure"), [
    ("variable-100ms", "follows", "copa", STEADY, follows("variable-100ms")),
    ("several", "follows", "copa", STEADY, follows("several")),
    ("feedback", "direction", "copa", STEADY, backward("feedback")),
    ("pause", "is free", "copa", STEADY, rmcat.part(50, 60, rmcat.usable(3.5, 2), 0, 2)),
    ("competing", "in time", LATE, [], frames_s("competing")),
    ("pause", "in time", LATE, [], frames_s("pause")),
    ("competing", "as much", "cubic", [], rmcat.part(80, 119, 1, 2)),
    ("competing", "as much", "cubic", [], rmcat.part(80, 119, 2, 0, 1)),
    ("rtts", "as much", "cubic", [], rmcat.part(200, 299, 1, 0)),
    ("rtts", "as much", "cubic", [], rmcat.part(200, 299, 1, 4)),
    ("long-tcp", "starve", "{copa: {mode: auto}}", [], rmcat.part(40, 119, rmcat.payload(1), 0)),
    ("reference", "follows", "copa", [], follows("feedback")),
])  # fmt: skip
def test_causes_have_the_numbers_of_runs(
    name: str, word: str, cc: str, changes: list[str], measure: rmcat.Measure, tmp_path: Path
) -> None:
    """What a cause says that a run would have without it: two digits of the mean of both seeds."""
    case = {**rmcat.BY_NAME, "reference": rmcat.REFERENCE}[name]
    setup = replace(case, changes=(*case.changes, *changes)).setup(cc)
    cells = [
        dataclasses.replace(cell, out=Path(str(seed)))
        for seed, cell in enumerate(setup.cells(True))
    ]
    runs = [folder.load(one.folder) for one in run_cells(cells, tmp_path)]
    said = rmcat.CAUSES.get(case.why[word], case.why[word])
    assert f"{sum(map(measure, runs)) / len(runs):.2g}" in re.findall(r"\d+\.\d+", said)
