# SPDX-License-Identifier: BSD-3-Clause
"""weir evaluate: what it takes for a control, that its runs are configs, and what it writes."""

import os
import subprocess
from pathlib import Path

import polars as pl
import pytest
from typer.testing import CliRunner
from weir.base.errors import UserError
from weir.cli.app import app
from weir.studies.evaluate import criteria as evaluate
from weir.studies.evaluate import scene as evaluate_scene
from weir.study import claim, reproduce

ROOT = Path(__file__).resolve().parents[3]
SIM = Path(os.environ.get("WEIR_BUILD", ROOT / "build")) / "tools/sim/weir-sim"
needs_sim = pytest.mark.skipif(not SIM.exists(), reason=f"{SIM} is not built")


@needs_sim
def test_what_a_control_may_be(tmp_path):
    plugin, python = tmp_path / "mine.so", tmp_path / "mine.py"
    plugin.touch()
    python.touch()
    found = {
        text: evaluate_scene.control_of(text)
        for text in (
            "copa",
            str(plugin),
            f"{python}:Mine",
            "linux:bbr",
            f"{{plugin: {plugin}, beta: 0.8}}",
        )
    }
    assert [one.name for one in found.values()] == [
        "copa",
        "mine",
        "Mine",
        "linux-bbr",
        "mine-beta-0.8",
    ]
    assert [one.keys for one in found.values()] == [
        "cc: copa",
        f'cc: {{plugin: "{plugin}"}}',
        f'cc: {{python: "{python}:Mine"}}',
        "stack: {linux: {cc: bbr}}",
        f'cc: {{"plugin": "{plugin}", "beta": "0.8"}}',
    ]


@needs_sim
@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("nosuch", "'nosuch' is no control: it is one of weir list cc"),
        ("./none.so", "'./none.so' is not there"),
        ("none.py:Mine", "'none.py' is not there"),
    ],
)
def test_what_is_no_control_is_one_sentence(text, says):
    done = CliRunner().invoke(app, ["evaluate", text])
    assert isinstance(done.exception, UserError)
    assert says in str(done.exception)


@needs_sim
def test_a_plugin_that_is_none_is_refused_before_any_run(tmp_path):
    (tmp_path / "mine.so").write_text("no shared object")
    done = CliRunner().invoke(
        app, ["evaluate", str(tmp_path / "mine.so"), "--out", str(tmp_path / "out")]
    )
    assert isinstance(done.exception, UserError)
    assert "mine.so" in str(done.exception)
    assert not (tmp_path / "out").exists()


def test_every_criterion_has_runs_or_says_why():
    """Of sections 5 to 7, each of them."""
    control = evaluate_scene.Control("x", "cc: x")
    for criterion in evaluate.CRITERIA:
        assert criterion.experiment(control).claims
    sections = [one.section for one in evaluate.CRITERIA]
    for part, count in (("5.1", 5), ("5.2", 3), ("5.3", 2), ("6", 4), ("7", 9)):
        own = [one for one in sections if one.rpartition(".")[0] == part]
        assert own == [f"{part}.{n}" for n in range(1, count + 1)]
    assert [one.section for one in evaluate.CRITERIA if not one.rows] == [
        "5.3.1",
        "5.3.2",
        "6.2",
        "7.5",
        "7.8",
    ]


@needs_sim
def test_every_run_is_a_config_that_is_accepted():
    one = evaluate.study(evaluate_scene.control_of("newreno"), "newreno")
    for cell in reproduce.Campaign(one, True).cells:
        checked = subprocess.run(
            [SIM, cell.config, *cell.settings(), "--check"], capture_output=True, text=True
        )
        assert checked.returncode == 0, f"{cell.name}: {checked.stderr}"


@needs_sim
def test_a_report_is_written(tmp_path, monkeypatch):
    """Of two criteria, one that is run and one that is not; vegas keeps its queue short."""
    chosen = [one for one in evaluate.CRITERIA if one.section in ("5.1.2", "7.8")]
    monkeypatch.setattr(evaluate, "CRITERIA", tuple(chosen))
    done = CliRunner().invoke(app, ["evaluate", "vegas", "--out", str(tmp_path), "--workers", "1"])
    assert done.exit_code == 0, done.output
    table = pl.read_parquet(tmp_path / "evaluate-vegas.parquet")
    assert table["verdict"].to_list() == ["shown", "holds"] * 3 + ["not comparable"]
    page = (tmp_path / "evaluate-vegas.html").read_text()
    assert "weir evaluate vegas --quick" in page
    assert "a connection here has one path" in page


def test_a_value_over_one_that_is_zero():
    """No loss beside no loss is as much; any beside none is more than any bound."""
    over = evaluate_scene.over(lambda run: run)
    assert [over(0.0, 0.0), over(2.0, 4.0), over(1.0, 0.0)] == [1.0, 0.5, float("inf")]


def test_an_evaluation_has_no_cells_of_one_name():
    """A discipline and a control beside CUBIC had been one."""
    control = evaluate_scene.Control("x", "cc: x")
    names = [setup.name for setup in claim.setups(evaluate.study(control, "x"))]
    assert len(set(names)) == len(names) > 50
