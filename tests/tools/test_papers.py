# SPDX-License-Identifier: BSD-3-Clause
"""weir reproduce papers: every statement can be run, and what is measured reaches the page."""

import json
import os
import re
import subprocess
from pathlib import Path

import polars as pl
import pytest
from typer.testing import CliRunner
from weir.cli.app import app
from weir.study import papers, papers_page

ROOT = Path(__file__).resolve().parents[2]
SIM = Path(os.environ.get("WEIR_BUILD", ROOT / "build")) / "tools/sim/weir-sim"
PLAN = papers.Plan(Path("unused"))
LOSSLESS = papers.Statement(
    "RFC 5681", "a short run", (papers.ILLINOIS,), papers.utilisation, "%", low=101
)


@pytest.mark.skipif(not SIM.exists(), reason=f"{SIM} is not built")
@pytest.mark.parametrize("trial", PLAN.trials, ids=lambda trial: trial.name)
def test_every_run_is_a_config_that_is_accepted(trial):
    checked = subprocess.run([*trial.cell().argv(SIM), "--check"], capture_output=True, text=True)
    assert checked.returncode == 0, checked.stderr


def test_bounds_enclose_what_is_published():
    for statement in papers.STATEMENTS:
        assert statement.low <= statement.high
        assert statement.published is None or statement.holds(statement.published)


@pytest.mark.parametrize("page", ["README.md", "tools/studies.md"])
def test_documents_count_the_statements_and_no_results(page):
    """They said 51 of 59 where the command printed 50: what a run decides only the run says."""
    text = " ".join((ROOT / page).read_text().split())
    assert f"tests {len(papers.STATEMENTS)} statements of papers and RFCs" in text
    assert not re.search(r"it holds; \d+ do", text)


def test_a_claim_that_does_not_hold_says_so():
    statement = papers.Statement("here", "nothing", (), lambda: 3.0, "s", **papers.near(2.0, 0.1))
    tested = papers_page.test(statement, {})
    assert (tested.value, tested.met) == (3.0, False)
    assert next(papers_page.rows_of([tested]))[2:] == [
        "2.00 s",
        "3.00 s",
        "+50.0 %",
        "1.80 to 2.20",
        "NOT MET",
    ]


def test_a_claim_whose_run_failed_is_neither_met_nor_not():
    tested = papers_page.test(LOSSLESS, {})
    assert tested.met is None
    assert next(papers_page.rows_of([tested]))[-1] == "not run"


@pytest.mark.skipif(not SIM.exists(), reason=f"{SIM} is not built")
def test_claims_are_measured_and_written(tmp_path, monkeypatch):
    short = papers.Trial("short", "illinois-alone", ("duration=30s", "warmup=10s"))
    full = papers.Statement("RFC 5681", "full", (short,), papers.utilisation, "%", low=90)
    never = papers.Statement("RFC 5681", "never", (short,), papers.utilisation, "%", low=101)
    monkeypatch.setattr(papers, "STATEMENTS", (full, never))
    monkeypatch.setattr(papers_page, "plan", lambda quick, out: papers.Plan(out, papers.STATEMENTS))
    done = CliRunner().invoke(
        app, ["reproduce", "papers", "--out", str(tmp_path), "--workers", "1", "--json"]
    )
    assert done.exit_code == 0, done.output
    said = json.loads(done.stdout)
    assert [row["met"] for row in said] == [True, False]
    assert said[0]["here"] == said[1]["here"] > 90
    assert pl.read_parquet(tmp_path / "papers.parquet")["met"].to_list() == [True, False]
    assert "NOT MET" in (tmp_path / "papers.html").read_text()
