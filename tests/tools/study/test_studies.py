# SPDX-License-Identifier: BSD-3-Clause
"""weir reproduce: every cell runs, a claim says what it may, and what is measured is shown."""

import fnmatch
import json
import math
import os
import re
import subprocess
from collections import Counter
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from rich.console import Console
from typer.testing import CliRunner
from weir import bootstrap
from weir.base import places
from weir.base.errors import UserError
from weir.base.page import Table
from weir.cli.app import app
from weir.studies.copa import measures as copa
from weir.study import claim, documents, find, guests, kept, reproduce, study_page
from weir.study import sets as tried
from weir.study.claim import Checked, Claim, Experiment, Found, Setup, Study
from weir.study.measures import utilisation

ROOT = Path(__file__).resolve().parents[3]
SIM = Path(os.environ.get("WEIR_BUILD", ROOT / "build")) / "tools/sim/weir-sim"
needs_sim = pytest.mark.skipif(not SIM.exists(), reason=f"{SIM} is not built")
ILLINOIS = claim.CONFIGS / "illinois-alone.yaml"
SHORT = Setup("short", ILLINOIS, ("duration=30s", "warmup=10s"))
FULL = Claim("the link is full", "section 1", "direction", (SHORT,), utilisation, "%", low=90)


def number(says: str, value: float, published: float, low: float, high: float) -> Checked:
    """A claim with a published number, measured."""
    one = Claim(
        says, "page 1", "number", (SHORT,), lambda run: value, "s", published, low, high, "x"
    )
    return Checked(Experiment("X1", "an experiment", (one,)), one, (value,))


def shown(one: Checked) -> list[str]:
    """Returns a claim as tables have it."""
    return Table(study_page.CLAIMS, [one]).rows[0]


def study(*claims: Claim) -> Study:
    """Of one experiment."""
    return Study("small", "A small study", "Nobody, 2026", (Experiment("X1", "one", claims),))


@cache
def refusal(argv):
    """What weir-sim says of a command line, "" if it takes it: many studies share their cells."""
    checked = subprocess.run([*argv, "--check"], capture_output=True, text=True)
    return checked.stderr or "refused" if checked.returncode else ""


def known(monkeypatch: pytest.MonkeyPatch, *made: Study) -> None:
    """These are the studies there are."""
    names = {one.name: (one,) for one in made} | {"all": made}
    monkeypatch.setattr(find, "ours", lambda: names)


EACH = {one.name: one for studies in find.ours().values() for one in studies}
EACH |= {
    f"{one.name}-guests": guests.study_of(one) for one in EACH.values() if guests.has_guests(one)
}


@pytest.mark.slow
@needs_sim
@pytest.mark.parametrize("name", EACH)
@pytest.mark.parametrize("quick", [True, False], ids=["quick", "full"])
def test_every_cell_is_a_config_that_is_accepted(name, quick):
    """Linux's own controls are not compiled yet: ours stand for them."""
    ours = re.compile(rf"{{plugin: {places.plugins()}/(\w+)/.*}}")
    cells = reproduce.Campaign(EACH[name], quick).cells
    assert len({cell.name for cell in cells}) == len(cells) > 0
    for cell in cells:
        settings = [ours.sub(r"\1", one) for one in cell.settings()]
        assert refusal((SIM, str(cell.config), *settings)) == "", cell.name


def test_the_five_documents_have_31_experiments():
    names = [e.name for one in find.chosen("all") for e in one.experiments if e.name[1:].isdigit()]
    assert sorted(names) == sorted(
        [f"C{n}" for n in range(1, 15)]
        + [f"B{n}" for n in range(1, 7)]
        + [f"L{n}" for n in range(1, 6)]
        + [f"I{n}" for n in range(1, 5)]
        + ["F1", "F2"]
    )


@pytest.mark.parametrize(
    ("kind", "more", "wrong"),
    [
        ("number", {"published": 4.5}, "bounds on both sides"),
        ("number", {"published": 4.5, "low": 1.01, "tolerance": "ours"}, "bounds on both sides"),
        ("number", {"published": 4.5, "low": 4.0, "high": 5.0}, "says whence"),
        ("number", {"published": 4.5, "low": 5.0, "high": 6.0, "tolerance": "x"}, "within"),
        ("derived", {"low": 4.0, "high": 5.0, "tolerance": "x"}, "has a number"),
        ("direction", {"published": 4.5, "low": 4.0}, "no number"),
        ("direction", {}, "has a bound"),
        ("shown", {"low": 4.0}, "neither a bound nor a number"),
        ("not comparable", {}, "says why"),
    ],
)
def test_a_claim_that_says_more_than_it_can_is_refused(kind, more, wrong):
    """499 times where 4.5 was published was met, with a bound of "more than 1.01"."""
    with pytest.raises(ValueError, match=wrong):
        Claim("retransmissions", "figure 1", kind, (SHORT,), lambda run: 499.0, "times", **more)


def test_verdicts():
    assert number("near", 1.05, 1.0, 0.9, 1.1).verdict == "holds"
    assert number("far", 499.0, 4.5, 4.0, 5.0).verdict == "differs"
    assert number("none", math.nan, 1.0, 0.9, 1.1).verdict == "missing"
    assert replace(number("none", 1.0, 1.0, 0.9, 1.1), values=()).verdict == "missing"


def test_a_row_has_its_seeds_and_only_a_number_a_deviation():
    one = number("far", 3.0, 2.0, 1.8, 2.2)
    assert shown(one)[3:] == [
        "2.00 s",
        "–",
        "3.00 s",
        "+50.0 %",
        "1.80 to 2.20",
        "DIFFERS",
    ]
    seeds = replace(one, values=(1.0, 2.0, 3.0))
    assert shown(seeds)[5] == "2.00 s (s.d. 1.0, 3 seeds)"
    order = Checked(one.experiment, FULL, (95.0,))
    assert shown(order)[3:] == ["–", "–", "95.0 %", "–", "at least 90.0", "holds"]
    derived = replace(one.claim, kind="derived")
    assert shown(Checked(one.experiment, derived, (3.0,)))[3:6] == [
        "–",
        "2.00 s",
        "3.00 s",
    ]


def test_counts_are_by_kind():
    found = [number("a", 1.0, 1.0, 0.9, 1.1), number("b", 9.0, 1.0, 0.9, 1.1)]
    found.append(Checked(found[0].experiment, FULL, ()))
    assert study_page.counts(found) == ["number: 1 of 2 hold", "direction: 0 of 1 hold, 1 missing"]
    assert study_page.status(found).kind == "bad"


def test_what_is_shown_is_not_judged():
    one = Claim("a rate", "section 5", "shown", (SHORT,), lambda run: 3.0, "Mbit/s")
    found = [Checked(Experiment("X1", "an experiment", (one,)), one, (3.0,))]
    assert [found[0].verdict, shown(found[0])[-1]] == ["shown", "shown"]
    assert study_page.counts(found) == ["1 shown"]
    assert study_page.status(found).kind == "good"


def test_results_go_between_the_lines_of_their_name(tmp_path, monkeypatch):
    """Another suite's results on the same page stay as they are."""
    page = tmp_path / "suites.md"
    blocks = "".join(f"## {n}\n{documents.begin(n)}old {n}\n{documents.END}" for n in ("a", "b"))
    page.write_text(blocks)
    monkeypatch.setattr(documents, "page_of", lambda name: page)
    never = replace(FULL, says="more than `full`", low=101, why="Nothing is `more` than full.")
    one = replace(study(FULL, never), folder=tmp_path)
    monkeypatch.setattr(find, "chosen", lambda name: (one,))
    monkeypatch.setattr(find, "suites", lambda: ["b", "c"])
    checked = [Checked(one.experiments[0], claim, (95.0,)) for claim in (FULL, never)]
    documents.write("b", [(one, checked)], "quick", "0123")
    text = page.read_text()
    assert documents.written(text, "a")[1] == "old a\n"
    assert "From `weir reproduce b --quick` at commit 0123, " in text
    assert "| X1 | 1 | Nothing is `more` than full. |" in text
    assert "| X1 | the link is full | – | at least 90.0 | 95.0 % | holds |" in documents.table("b")
    with pytest.raises(UserError, match=r"reproduce c --write-docs.* are not there"):
        documents.write("c", [], "quick", "0123")


def test_a_new_suite_gets_its_page(tmp_path, monkeypatch):
    """A folder is a suite once it has results: those that are written with the page."""
    page, name = tmp_path / "new.md", "new"
    one = replace(study(FULL), folder=tmp_path)
    monkeypatch.setattr(documents, "page_of", lambda name: page)
    monkeypatch.setattr(find, "chosen", lambda name: (one,))
    has_results = (tmp_path / "results.json").exists
    monkeypatch.setattr(find, "suites", lambda: [name] if has_results() else [])
    documents.write(name, [(one, [Checked(one.experiments[0], FULL, (95.0,))])], "quick", "0123")
    text = page.read_text()
    assert text.startswith(f"# {one.title}: results\n\n{documents.begin(name)}\nFrom `weir ")
    assert text.endswith(f"{documents.END}\n<!-- made: results new -->\n")


def test_one_study_alone_renews_its_part_of_the_page_of_all(tmp_path, monkeypatch):
    """Its page has the other's rows, from where they were."""
    page = tmp_path / "studies.md"
    page.write_text(f"{documents.begin(find.ALL)}old\n{documents.END}")
    monkeypatch.setattr(documents, "page_of", lambda name: page)
    both = [replace(study(FULL), name=name, folder=tmp_path / name) for name in ("a", "b")]
    monkeypatch.setattr(find, "chosen", lambda name: tuple(both))
    monkeypatch.setattr(find, "suites", lambda: [])
    for one in both:
        one.folder.mkdir()
    results = [(one, [Checked(one.experiments[0], FULL, (95.0,))]) for one in both]
    documents.write(find.ALL, results, "quick", "0123")
    documents.write("b", results[1:], "quick", "4567")
    text = page.read_text()
    assert "`a`: from `weir reproduce all --quick` at commit 0123, " in text
    assert "`b`: from `weir reproduce b --quick` at commit 4567, " in text
    assert text.count("direction: 1 of 1 hold") == 2


def test_a_result_is_of_the_longest_run_that_has_it(tmp_path, monkeypatch):
    """--full may lack cells: their claims have the result of --quick, and the page says so."""
    page = tmp_path / "studies.md"
    page.write_text(f"{documents.begin(find.ALL)}old\n{documents.END}")
    monkeypatch.setattr(documents, "page_of", lambda name: page)
    monkeypatch.setattr(find, "suites", lambda: [])
    other = replace(FULL, says="so is the other", why="It is not.")
    one = replace(study(FULL, other), folder=tmp_path)
    monkeypatch.setattr(find, "chosen", lambda name: (one,))

    def checked(*values):
        (experiment,) = one.experiments
        each = zip(experiment.claims, values, strict=True)
        return [(one, [Checked(experiment, claim, value) for claim, value in each])]

    quick = kept.Made(9, 2.5, 1_000_000, 610.0, missing=2, missing_s=(60.0, 7260.0))
    assert kept.ns_per_packet(one) is None
    documents.write("a", checked((95.0,), (96.0,)), "quick", "0123", {one.name: quick})
    spent = "9 runs, 2.50 s of one core, 1.00 MB; the 2 of --full would take 60.0 s to 7,260 s"
    assert f" ({spent})." in page.read_text()
    assert documents.spent(kept.Made(9, 1.0, 1, missing=2, missing_s=(5.0, 5.0)), "full").endswith(
        "; 2 more would take 5.00 s"
    )
    assert kept.ns_per_packet(one) == 610
    made = kept.Made(runs=1, core_s=81.0, bytes=2_000_000, missing=1, missing_s=(60.0, 7200.0))
    documents.write("a", checked((50.0,), ()), "full", "4567", {one.name: made})
    text = page.read_text()
    assert kept.ns_per_packet(one) == 610  # that of --full does not say it
    assert "`weir reproduce a --full` at commit 4567, " in text
    assert (
        " (1 runs, 81.0 s of one core, 2.00 MB; 1 more would take 60.0 s to 7,200 s), 1 claims; "
        in text
    )
    assert "`weir reproduce a --quick` at commit 0123, " in text
    assert "direction: 1 of 2 hold" in text
    rows = documents.table("a").splitlines()
    assert rows[-2].endswith("| 50.0 % | DIFFERS | full |")
    assert rows[-1].endswith("| 96.0 % | holds | quick |")
    documents.write("a", checked((97.0,), (98.0,)), "full", "89ab")
    assert "`weir reproduce a --full` at commit 89ab, " in page.read_text()
    assert "--quick" not in page.read_text()


@needs_sim
def test_parts_of_the_full_length_add_up(tmp_path, monkeypatch):
    """CoreScale takes a day of one core: each part is kept beside those of the same commit."""
    monkeypatch.setattr(documents, "page_name", lambda results, name: None)
    cells = [Setup(name, ILLINOIS, ("duration=2s", "warmup=1s")) for name in ("first", "second")]
    one = replace(study(*(replace(FULL, says=c.name, setups=(c,)) for c in cells)), folder=tmp_path)
    campaign = reproduce.Campaign(one, quick=False, out=tmp_path / "runs")
    screen = Console(quiet=True)

    def run(commit, *names):
        """Runs those cells only, and keeps what came out as of a commit."""

        def runs(campaign, cells):
            mine = [cell for cell in cells if cell.name in names]
            return reproduce.simulate(campaign, mine, screen, None, 1)

        reproduce.run_all("a", [campaign], None, screen, runs, commit=commit)
        file = kept.read(one, "full")
        return file.made[one.name], [verdict for *_, verdict in file.rows[one.name]]

    first, verdicts = run("4567", "first")
    assert (first.runs, first.missing, first.cells) == (1, 1, ["first"])
    assert verdicts[1:] == ["missing"] != verdicts[:1]
    repeated, _ = run("4567", "first")
    assert (repeated.cells, repeated.core_s) == (first.cells, first.core_s)
    both, verdicts = run("4567", "second")
    assert (both.runs, both.missing, both.cells) == (2, 0, [])
    assert both.core_s > first.core_s
    assert both.bytes > first.bytes
    assert "missing" not in verdicts
    other, verdicts = run("89ab", "first")
    assert (other.runs, other.cells) == (1, ["first"])
    assert verdicts[1:] == ["missing"]


@needs_sim
def test_quick_says_what_the_full_length_would_take(tmp_path):
    """A second of it takes as long as one of the same cell did."""
    setup = replace(SHORT, quick=("duration=20s",))
    one = replace(study(replace(FULL, setups=(setup,))), folder=tmp_path)
    campaign = reproduce.Campaign(one, True, tmp_path)
    (cell,) = campaign.cells
    place = tmp_path / "cells" / cell.name
    place.mkdir(parents=True)
    (place / "summary.json").write_text('{"measured": {"cpu_s": 2, "wall_s": 9, "virtual_s": 10}}')
    (place / "config.yaml").write_text(reproduce.resolved(cell))
    made = reproduce.made_of(campaign, {cell: place}, "")
    assert (made.runs, made.core_s, made.missing) == (1, 2, 1)
    assert made.missing_s == pytest.approx([0.3 + 0.2 * 30] * 2)


@needs_sim
@pytest.mark.parametrize("argv", [["reproduce", "c4"], ["attack", "x.yaml", "--cc", "copa,bbr"]])
def test_documents_are_not_written_from_changed_sources(argv, tmp_path, monkeypatch):
    """Three pages named a commit with -dirty behind it, which no reader can have."""

    def git(*args):
        subprocess.run(["git", "-c", "user.name=x", "-c", "user.email=x", *args], cwd=tmp_path)

    def refusal():
        return str(CliRunner().invoke(app, [*argv, "--write-docs"]).exception)

    git("init", "-q")
    git("commit", "-q", "--allow-empty", "-m", "other sources than those of weir-sim")
    monkeypatch.setattr(bootstrap, "ROOT", tmp_path)
    assert "weir-sim is of commit" in refusal()
    (tmp_path / "file").touch()
    git("add", "file")
    assert "commit all changes first" in refusal()


def test_no_page_is_from_changed_sources():
    pages = (ROOT / "tools/docs").rglob("*.md")
    assert [page for page in pages if "-dirty" in page.read_text()] == []


def test_what_differs_names_a_run_that_shows_why():
    """The cause of a row is switched off and on in a run that its text names."""
    studies = find.chosen(find.ALL)
    runs = [setup.name for study in studies for setup in claim.setups(study)]
    for study in studies:
        for row in documents.results(study):
            if row.verdict == "differs":
                named = re.findall("`([^`]+)`", row.claim.why)
                shown = any(fnmatch.filter(runs, name) for name in named)
                assert shown, f"{study.name}, {row.claim.says}: {row.claim.why}"


def test_setups_of_one_name_are_one():
    other = replace(SHORT, override=())
    twice = replace(FULL, says="again", setups=(other,))
    with pytest.raises(ValueError, match="two setups are named 'short'"):
        claim.setups(study(FULL, twice))


def test_a_setup_has_its_seeds_and_its_quick_changes():
    setup = Setup("x", ILLINOIS, ("warmup=1s",), (2, 3), ("duration=5s",))
    assert [(c.name, c.seed) for c in setup.cells(True)] == [("x-s1", 1), ("x-s2", 2)]
    assert setup.cells(True)[0].overrides == ("warmup=1s", "duration=5s")
    assert [c.overrides for c in setup.cells(False)] == [("warmup=1s",)] * 3


def test_a_claim_without_its_runs_is_missing():
    (one,) = claim.check(study(FULL), Found({}, True))
    assert (one.verdict, one.value, study_page.here(one)) == ("missing", None, "–")


@pytest.mark.slow
@needs_sim
def test_claims_are_measured_and_written(tmp_path, monkeypatch):
    """A study from the command line: the page, the table, the terminal; again nothing runs."""
    never = replace(FULL, says="more than `full`", low=101, why="Nothing is `more` than full.")
    small = study(FULL, never)
    known(monkeypatch, small)
    argv = ["reproduce", "small", "--out", str(tmp_path), "--workers", "1", "--json"]
    done = CliRunner().invoke(app, argv)
    assert done.exit_code == 0, done.output
    said = json.loads(done.stdout)
    assert [row["verdict"] for row in said] == ["holds", "differs"]
    assert said[0]["here"] == said[1]["here"] > 90
    table = pl.read_parquet(tmp_path / "small.parquet")
    assert table["verdict"].to_list() == ["holds", "differs"]
    assert table["low"].to_list() == [90, 101]
    page = (tmp_path / "small.html").read_text()
    assert page.index("Nothing is <code>more</code> than full.") < page.index('<h2 id="X1">')
    assert 'href="cells/short/config.yaml"' in page
    assert ("more than full" in page, "`full`" in page) == (True, False)
    assert "1 cells: 1 reused" in CliRunner().invoke(app, argv).stderr
    config = CliRunner().invoke(app, ["reproduce", "small", "--print-config", "short"]).stdout
    assert "duration: 30s" in config


@needs_sim
def test_a_page_over_several_studies_has_a_line_for_each_experiment(tmp_path, monkeypatch):
    one = study(FULL)
    two = replace(
        one,
        name="other",
        title="Another",
        experiments=(Experiment("X2", "two", (replace(FULL, low=101),)),),
    )
    known(monkeypatch, one, two)
    argv = ["reproduce", "all", "--out", str(tmp_path), "--workers", "1"]
    done = CliRunner().invoke(app, argv)
    assert done.exit_code == 1, "a claim differs and does not say why"
    page = (tmp_path / "all.html").read_text()
    assert 'href="small/small.html"' in page
    assert "small/cells/short" in (tmp_path / "other/other.html").read_text(), "run once for both"
    assert "X1" in page
    assert "X2" in page
    assert pl.read_parquet(tmp_path / "all.parquet").height == 2


@pytest.mark.parametrize(
    ("name", "meant"), [("copas", "did you mean 'copa'?"), ("x", "there are all, bbr-draft, c4, ")]
)
def test_a_study_that_is_not_known_is_refused(name, meant):
    done = CliRunner().invoke(app, ["reproduce", name])
    assert done.exit_code != 0
    assert f"'{name}' cannot be reproduced; {meant}" in str(done.exception)


def test_nobody_gains_at_the_equilibrium_of_the_formula():
    """Equation 5 of Copa's paper, against senders who each look for what is best for them.

    k senders of delta k are as one of delta 1, and with an M/D/1 queue each delta counts half.
    """
    deltas = np.array([0.25, 0.5, 2.0])
    formula = 1 / (deltas * ((1 / deltas).sum() + 1))
    assert copa.nash_rates(deltas) == pytest.approx(formula, rel=1e-5)
    one = copa.nash_rates(np.array([1.0, 1.0]))
    three = copa.nash_rates(np.array([1.0, 3.0, 3.0, 3.0]))
    assert three[1:].sum() == pytest.approx(one[1], rel=1e-5)
    assert copa.nash_rates(np.full(5, 0.5)).sum() == pytest.approx(5 / 5.5, rel=1e-5)


@needs_sim
def test_other_parameters_are_tried_beside_the_defaults(tmp_path, monkeypatch):
    """A window of 2 segments cannot fill the link; the other cells are run once for both."""
    short = ("duration=10s", "warmup=1s")
    fixed = Setup("fixed", ILLINOIS, ("flows.0.cc={fixed: {cwnd: 200}}", *short))
    other = replace(FULL, says="of another control")
    known(monkeypatch, study(replace(FULL, setups=(fixed,)), other))
    argv = ["study", "small", "--cc", "fixed", "--set", "cwnd: 2", "--out", str(tmp_path), "--json"]
    done = CliRunner().invoke(app, argv)
    assert done.exit_code == 0, done.output
    rows = json.loads(done.stdout)
    assert [(r["set"], r["verdict"]) for r in rows] == [
        ("as it is", "holds"),
        ("as it is", "holds"),
        ("cwnd: 2", "differs"),
        ("cwnd: 2", "holds"),
    ]
    assert rows[1]["here"] == rows[3]["here"]
    assert sorted(p.name for p in (tmp_path / "cells").iterdir() if p.is_dir()) == [
        "fixed",
        "fixed-set1",
        "short",
    ]


@needs_sim
def test_a_study_judges_a_control_that_it_does_not_name(tmp_path, monkeypatch):
    """With its parameters; 2 segments do not fill the link, and 200 do."""

    def experiments_of(name, control):
        setup = Setup(name, ILLINOIS, (f"flows.0.cc={control}", "duration=10s", "warmup=1s"))
        return (Experiment("X1", "one", (replace(FULL, setups=(setup,)),)),)

    known(monkeypatch, replace(study(FULL), experiments_of=experiments_of))
    for cwnd, verdict in ((200, "holds"), (2, "differs")):
        out = tmp_path / str(cwnd)
        control = f"{{fixed: {{cwnd: {cwnd}}}}}"
        argv = ["study", "small", "--cc", control, "--out", str(out), "--json"]
        done = CliRunner().invoke(app, argv)
        assert [row["verdict"] for row in json.loads(done.stdout)] == [verdict]
        assert done.exit_code == (verdict != "holds")
        assert (out / f"small-fixed-cwnd-{cwnd}.html").exists()


@needs_sim
@pytest.mark.parametrize("name", ["c4", "rmcat"])
def test_suites_take_a_control_of_the_users(name):
    """Each of their runs is a config with it; where another flow is C4, so is this plug-in."""
    (suite,) = find.chosen(name)
    control = "{copa: {delta: 0.4}}"
    own = tried.of_control(suite, control)
    assert len(own.experiments) == len(suite.experiments)
    cells = reproduce.Campaign(own, True).cells
    assert {one.name for one in cells}.isdisjoint(
        one.name for one in reproduce.Campaign(suite, True).cells
    )
    for cell in cells[::5]:
        assert "delta: 0.4" in reproduce.resolved(cell)
    if name == "c4":
        named = suite.experiments_of("c4", "{plugin: c4.so}")
        kinds = Counter(one.kind for each in named for one in each.claims)
        assert kinds == {"number": 37, "not comparable": 1}
        (claimed,) = next(one for one in named if "vs_c4_lg2" in one.claims[0].says).claims
        (setup,) = claimed.setups
        assert [text for text in setup.override if "cc=" in text] == [
            "flows.0.cc={plugin: c4.so}",
            "flows.1.cc={plugin: c4.so}",
        ]


@needs_sim
@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (["--cc", "copa"], "the claims of small are about certain controls"),
        (["--cc", "copa", "--set", "delta: 1"], "no flow of this study has the control 'copa'"),
        (["--cc", "copaa", "--set", "delta: 1"], "'copaa' is not a control of Weir's; did you"),
        (["--cc", "illinois", "--set", "nonsense: 1"], "unknown key 'nonsense'"),
        (["--cc", "illinois", "--set", "initial: many"], "'many'"),
        (["--cc", "illinois", "--set", "plugin: none.so"], f"{Path.cwd()}/none.so"),
    ],
)
def test_a_set_that_changes_nothing_or_cannot_be_is_one_sentence(tmp_path, monkeypatch, argv, says):
    """It had been run as the defaults beside themselves, or refused once for each cell."""
    known(monkeypatch, study(FULL))
    done = CliRunner().invoke(app, ["study", "small", "--out", str(tmp_path), *argv])
    assert done.exit_code != 0
    assert says in str(done.exception)
    assert not (tmp_path / "cells").exists()


def test_a_set_may_name_a_set_of_parameters():
    """A dialect had lost against every parameter that the resolved config has."""
    own = {"delta": "0.04", "velocity_rtts": "6", "dialect": "none"}
    config = {"flows": [{"cc": {"copa": own}}, {"cc": {"cubic": {"beta": "0.7"}}}]}
    default = {"delta": "0.5", "velocity_rtts": "6", "dialect": "none"}
    assert tried.changed(config, "copa", {"dialect": "genericcc"}, default)
    assert config["flows"][0]["cc"]["copa"] == {"delta": "0.04", "dialect": "genericcc"}
    assert config["flows"][1]["cc"]["cubic"] == {"beta": "0.7"}


def test_a_plug_in_takes_the_place_of_a_control():
    """With parameters of its own alone, and named as from where the command was typed."""
    config = {"flows": [{"cc": {"copa": {"delta": "0.04"}}}, {"cc": {"cubic": {}}}]}
    parameters = tried.Sets("copa", ("", "plugin: mine.so, beta: 0.5")).parameters(1)
    assert tried.changed(config, "copa", parameters, {"delta": "0.5"})
    mine = str(Path.cwd() / "mine.so")
    assert [flow["cc"] for flow in config["flows"]] == [
        {"plugin": mine, "beta": "0.5"},
        {"cubic": {}},
    ]


def test_a_guests_stack_takes_the_place_of_a_control():
    """A QUIC program itself makes a transfer of a size; a kernel sends what the config says."""
    for stack, expected in (
        ("linux:bbr", {"stack": {"linux": {"cc": "bbr"}}, "source": {"size": {"bytes": "9B"}}}),
        (
            "quic:ngtcp2:bbr",
            {"stack": {"quic": {"ngtcp2": {"cc": "bbr", "qlog": "no", "size": "9B"}}},
             "source": "bulk"},
        ),
    ):  # fmt: skip
        config = {"flows": [{"cc": {"copa": {}}, "source": {"size": {"bytes": "9B"}}}, {"cc": "x"}]}
        parameters = tried.Sets("copa", ("", f"stack: {stack}")).parameters(1)
        assert tried.changed(config, "copa", parameters, {})
        assert config["flows"] == [expected, {"cc": "x"}]


@needs_sim
def test_cells_that_guests_cannot_run_are_not_run(tmp_path):
    """The others are; if guests can run none, weir-sim's sentence is the answer."""
    made = [
        reproduce.Options(config=ILLINOIS, out=Path(name), overrides=(f"flows.0.source={source}",))
        for name, source in (("a", "bulk"), ("b", "{poisson: {load: 1Mbit, sizes: {mean: 9kB}}}"))
    ]
    sets = tried.Sets("illinois", ("", "stack: linux:illinois"))
    (usual, guests_), cannot = tried.cells_of(made, sets, tmp_path)
    assert [cell.name for cell in (*usual, *guests_)] == ["a", "b", "a-set1", "b-set1"]
    said = "source: poisson is for Weir's own stack at both ends"
    assert list(cannot) == ["b-set1"]
    assert cannot["b-set1"].startswith(said)
    with pytest.raises(UserError, match=said):
        tried.cells_of(made[1:], sets, tmp_path)


@pytest.mark.parametrize("text", ["stack: bbr", "stack: linux:bbr, beta: 0.5"])
def test_what_is_no_stack_is_refused(text):
    with pytest.raises(UserError, match="stack: is linux:CC or quic:STACK:CC, and stands alone"):
        tried.Sets("copa", ("", text)).parameters(1)


@pytest.mark.parametrize("text", ["", "velocity_rtts", "delta: [1, 2]", "}{"])
def test_what_is_no_list_of_parameters_is_refused(text):
    sets = tried.Sets("copa", ("", text or "x"))
    with pytest.raises(UserError, match="parameters are wanted"):
        sets.parameters(1)
