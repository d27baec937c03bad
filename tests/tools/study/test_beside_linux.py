# SPDX-License-Identifier: BSD-3-Clause
"""weir reproduce NAME --guests: Linux beside ours in the same network, and what the pages have."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from test_studies import FULL, SHORT, known, needs_sim, study
from typer.testing import CliRunner
from weir.base import places
from weir.base.errors import UserError
from weir.base.page import Table
from weir.cli.app import app
from weir.guests import build as guest_build
from weir.guests import kernels
from weir.many.cells import run_cells
from weir.plugin import kernel
from weir.study import claim, documents, find, guests, study_page
from weir.study.claim import Checked, Claim, Found, Guests, Study

SLOWER = replace(SHORT, name="slower", override=(*SHORT.override, "paths.forward.link.rate=1Mbit"))
OTHER = replace(FULL, says="another")


def measured_beside(value: float | None, other: float | None) -> Claim:
    """Returns a claim measured as `value` in ours and as `other` in what stands for Linux."""
    values = iter([other, value, other, value])  # of Linux, ours, and over both
    return replace(
        FULL, measure=lambda *runs: next(values), guests=(Guests((SLOWER,), (SHORT,), "A cause."),)
    )


def checked(one: Study) -> list[Checked]:
    """Measures the study beside Linux; its measures do not look at the runs."""

    class Any(Found):
        def runs(self, setup: object) -> list[object]:  # type: ignore[override]
            return [object()]

    return claim.check(guests.study_of(one), Any({}, True))


@pytest.mark.parametrize(
    ("ours", "linux", "verdict"),
    [
        (1.0, 1.0, "holds"),
        (95.1, 100.0, "holds"),
        (104.9, 100.0, "holds"),
        (94.9, 100.0, "differs"),
        (105.1, 100.0, "differs"),
        (1.0, 0.0, "missing"),
        (None, 1.0, "missing"),
        (1.0, None, "missing"),
    ],
)
def test_ours_is_judged_by_linux_s(ours: float | None, linux: float | None, verdict: str) -> None:
    rows = checked(study(measured_beside(ours, linux), OTHER))
    assert [one.claim.says for one in rows] == [
        "the link is full: Linux",
        "the link is full: ours",
        "the link is full: ours over Linux's",
    ]
    assert [one.value for one in rows[:2]] == [linux, ours]
    assert rows[2].verdict == verdict


@pytest.mark.parametrize(
    ("ours", "shown", "verdict"),
    [
        ((1.0, 1.1), "1.00 times (0.710 to 1.29)", "holds"),
        ((1.1, 1.3), "1.14 times (0.484 to 1.80)", "within spread"),
        ((1.4, 1.5, 1.6), "1.43 times (1.19 to 1.67)", "differs"),
        ((1.5,), "1.43 times", "differs"),  # of one run no spread is known
    ],
)
def test_a_difference_is_judged_by_its_seeds(
    ours: tuple[float, ...], shown: str, verdict: str
) -> None:
    """Welch's interval of means of ours and of 1.0 and 1.1, over 1.05, has 1 or has it not."""
    (_, _, over) = guests.beside(measured_beside(1.0, 1.0))
    found = Checked(study(over).experiments[0], over, ours, (1.0, 1.1))
    assert (study_page.here(found), found.verdict) == (shown, verdict)


def test_the_pages_have_linux_s_column_without_guests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is far from it is listed with its cause; the study's own results stay as they are."""
    page = tmp_path / "studies.md"
    page.write_text(f"{documents.begin(find.ALL)}old\n{documents.END}")
    monkeypatch.setattr(documents, "page_of", lambda name: page)
    near = replace(measured_beside(100.0, 101.0), says="near")
    far = replace(measured_beside(80.0, 100.0), says="far")
    left = replace(measured_beside(None, None), says="left")
    one = replace(study(near, far, left, OTHER), folder=tmp_path)
    monkeypatch.setattr(find, "chosen", lambda name: (one,))
    own = [Checked(one.experiments[0], each, (95.0,)) for each in (near, far, left, OTHER)]
    columns = study_page.with_others(study_page.CLAIMS, own, guests.texts(one))
    assert "Linux; ours there" not in [column.header for column in columns]

    documents.write("small", [(one, own)], "quick", "0123")
    assert "Linux" not in page.read_text()
    documents.write("small --guests", [(guests.study_of(one), checked(one))], "quick", "4567")
    assert sorted(path.name for path in tmp_path.glob("*.json")) == ["guests.json", "results.json"]
    text = page.read_text()
    assert "From `weir reproduce small --quick` at commit 0123, " in text
    assert "`small-guests`: 1 of 2 means over seeds are within 5 % of Linux's, 0 more" in text
    assert ". Not measured: 1." in text
    assert "from `weir reproduce small --guests --quick` at commit 4567, " in text
    assert "| X1: far | 0.800 | A cause. |" in text
    columns = study_page.with_others(study_page.CLAIMS, own, guests.texts(one))
    rows = Table(columns, own).rows
    assert [row[5] for row in rows] == ["101 %; 100 %", "100 %; 80.0 %", "–", "–"]
    assert "| 100 %; 80.0 % |" in documents.table("small")


@needs_sim
def test_guests_are_wanted_only_where_they_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The plan and a config need no kernel."""
    known(monkeypatch, study(replace(FULL, guests=(Guests((SLOWER,), (SHORT,)),))))
    monkeypatch.setenv("WEIR_GUESTS", str(tmp_path / "none"))

    def said(*argv: str) -> str:
        done = CliRunner().invoke(app, ["reproduce", *argv])
        return done.output if done.exception is None else str(done.exception)

    plan = json.loads(said("small", "--guests", "--plan", "--json"))
    assert [(row["study"], row["cell"]) for row in plan] == [
        ("small-guests", "slower"),
        ("small-guests", "short"),
    ]
    assert "rate: 1Mbit" in said("small", "--guests", "--print-config", "slower")
    assert "run: tools/weir guests build" in said("small", "--guests")
    assert "its cells are run together" in said("small", "--guests", "--shard", "1/2")
    assert "leave --full away" in said("small", "--guests", "--full")
    assert "linux has them anyway" in said("linux", "--guests")
    known(monkeypatch, study(FULL))
    assert "no claim of small is measured with Linux guests" in said("small", "--guests")


@pytest.mark.slow
@needs_sim
def test_both_sides_are_run_and_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the command line, with another rate in place of a kernel."""
    monkeypatch.setattr(kernels, "needed", lambda by: None)
    why = (Guests((SLOWER,), (SHORT,), "A cause."),)
    rate = replace(FULL, measure=lambda run: run.summary.groups[0].goodput_bps / 1e6, guests=why)
    known(monkeypatch, study(rate))
    done = CliRunner().invoke(app, ["reproduce", "small", "--guests", "--out", str(tmp_path)])
    assert done.exit_code == 0, done.output
    page = (tmp_path / "small-guests.html").read_text()
    assert "A cause." in page
    assert "weir reproduce small --guests --quick" in page


@pytest.mark.slow
@pytest.mark.parametrize("name", ["corescale", "copa"])
def test_a_cell_of_a_study_runs_with_guests(name: str, tmp_path: Path) -> None:
    """A short one: both sides have the same flows and links, and the kernel's are Linux's."""
    if kernels.current() is None:
        guest_build.build(lambda *_: None)
    (made,) = guests.studies_of(find.chosen(name))
    setups = [one.setups[0] for one in made.experiments[0].claims[:2]]
    short = [replace(one, override=(*one.override, "warmup=1s", "duration=3s")) for one in setups]
    cells = [one.cells(True)[0] for one in short]
    outcomes = run_cells(cells, tmp_path, workers=1)
    assert [one.message for one in outcomes] == ["", ""]
    configs = [(one.folder / "config.yaml").read_text() for one in outcomes]
    paths = [re.search(r"^paths:.*?^flows:", text, re.MULTILINE | re.DOTALL) for text in configs]
    assert paths[0] is not None
    assert paths[1] is not None
    assert paths[0][0] == paths[1][0]
    assert ["linux:" in text for text in configs] == [True, False]


@pytest.mark.parametrize("name", ["corescale", "copa"])
def test_both_sides_have_the_same_networks(name: str) -> None:
    """Linux has three seeds of each, and ours ten; or their seed is part of the network."""
    for experiment in find.chosen(name)[0].experiments:
        for one in experiment.claims:
            for linux, ours in ((of.setups, of.ours) for of in one.guests if not of.source):
                assert len(linux) == len(ours) > 0, one.says
                seeds = {
                    (len(a.cells(True)), len(b.cells(True)))
                    for a, b in zip(linux, ours, strict=True)
                }
                assert seeds in ({(3, 10)}, {(1, 1)}), one.says


def test_a_claim_that_is_not_measured_has_no_guests(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("seed: 1\n")
    (tmp_path / "study.yaml").write_text(
        "title: T\nruns: {a: []}\n"
        "experiments: {E: {claims: [{says: x, why: y, guests: {runs: a}}]}}\n"
    )
    with pytest.raises(UserError, match="E: x: `guests` wants a measure"):
        find.load(tmp_path)


SOURCES = """
title: T
runs:
  a-$cc: {for: {cc: [bbr, newreno]}, set: [flows.0.cc=$cc, duration=1s], quick: [warmup=0s]}
sources: {controls: [bbr, cubic], runs: [a-RUNS], seeds: 2}
experiments:
  E:
    title: one
    claims:
      - {for: {cc: [bbr, newreno]}, says: $cc, runs: a-$cc, measure: jfi}
"""


def with_sources(folder: Path, runs: str) -> tuple[Study, ...]:
    (folder / "a.yaml").write_text("seed: 1\n")
    (folder / "study.yaml").write_text(SOURCES.replace("RUNS", runs))
    return find.load(folder)


def test_a_control_runs_from_linux_s_own_file(tmp_path: Path) -> None:
    """Beside ours with as many seeds, in the claims whose runs are named, and in no other."""
    (made,) = guests.studies_of(with_sources(tmp_path, "bbr"))
    plugin = f"flows.0.cc={{plugin: {places.plugins()}/bbr/bbr.so}}"
    over = ("flows.0.cc=bbr", "duration=1s", "warmup=0s")
    cells = [cell for setup in claim.setups(made) for cell in setup.cells(True)]
    assert [(cell.name, cell.overrides) for cell in cells] == [
        *((f"a-bbr-source-s{seed}", (plugin, *over[1:])) for seed in (1, 2)),
        *((f"a-bbr-ours-s{seed}", over) for seed in (1, 2)),
    ]
    assert [one.says for one in made.experiments[0].claims] == [
        "bbr: Linux's source",
        "bbr: our control beside it",
        "bbr: ours over Linux's source",
    ]
    assert made.sources == ("bbr", "cubic")


def test_sources_want_a_run_of_their_controls(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="sources: the run 'a-newreno' sets no flow's cc to bbr or"):
        with_sources(tmp_path, "newreno")


def test_another_study_leaves_the_controls_that_one_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A plug-in is replaced as a whole, and those that are not wanted stay."""

    def compiled(control: str, folder: Path) -> Path:
        plugin = folder / f"{control}.so"
        plugin.write_text(next(texts))
        return plugin

    texts = iter(("first", "second", "third"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(kernel, "compiled", compiled)
    kernel.for_studies(["cubic", "bbr"])
    with (places.plugins() / "bbr/bbr.so").open() as loaded:
        kernel.for_studies(["bbr"])
        kernel.for_studies([])
        assert loaded.read() == "first"
    found = {path.name: path.read_text() for path in places.plugins().rglob("*") if path.is_file()}
    assert found == {"bbr.so": "third", "cubic.so": "second"}
