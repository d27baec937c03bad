# SPDX-License-Identifier: BSD-3-Clause
"""Beyond CoreScale: what is measured there is what the records of a small run say."""

from __future__ import annotations

import math
import subprocess
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner
from weir.analysis import folder
from weir.analysis.folder import Run
from weir.cli.app import app
from weir.studies.corescale_beyond import measures
from weir.study import claim, find
from weir.study.claim import Found

(BEYOND,) = find.chosen("corescale-beyond")
SMALL = (
    *("flows.0.count=12", "flows.0.jitter=1s", "paths.forward.link.rate=20Mbit"),
    *("paths.forward.link.queue.fifo.limit=100kB", "warmup=20s", "duration=100s"),
)


@pytest.fixture(scope="module")
def small(weir_sim: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Twelve NewReno flows with 40 ms of buffer: those with short round trips have more."""
    setup = next(one for one in claim.setups(BEYOND) if one.name == "beyond-newreno")
    out = tmp_path_factory.mktemp("beyond") / "run"
    options = [word for one in (*setup.override, *SMALL) for word in ("-o", one)]
    subprocess.run([weir_sim, setup.config, *options, "--out", out], check=True)
    return folder.load(out)


def test_quarters_are_of_base_rtts(small: Run) -> None:
    """Counted again flow by flow."""
    rtts = measures.base_rtts_ms(small)
    assert rtts.size == 12
    assert (rtts > 10).all()
    assert (rtts < 200).all()
    records = small.stream("interval").records
    late = records[records["ts_ns"] > 20e9]
    each = [late[late["flow_id"] == flow]["delivered_bytes"].sum() for flow in range(12)]
    ordered = [size for _, size in sorted(zip(rtts, each, strict=True))]
    expected = sum(ordered[:3]) / sum(ordered[-3:])
    assert measures.of_quarters(small) == pytest.approx(expected)
    assert expected > 1


def test_the_index_is_of_windows(small: Run) -> None:
    ends, found = measures.index(small)
    assert ends.tolist() == list(range(10, 101, 10))
    records = small.stream("interval").records
    own = records[(records["ts_ns"] > 40e9) & (records["ts_ns"] <= 50e9)]
    each = np.bincount(own["flow_id"], own["delivered_bytes"], minlength=12)
    assert found[4] == pytest.approx(each.sum() ** 2 / (12 * (each**2).sum()))


@pytest.mark.parametrize(
    ("found", "steady_s"),
    [
        ([0.8] * 12, 0.0),
        ([0.1, 0.4, 0.7] + [0.8] * 9, 30.0),
        ([0.8] * 6 + [0.5] + [0.8] * 5, 70.0),
        ([0.8] * 9 + [0.8, 0.5, 0.8], math.nan),
    ],
)
def test_it_is_steady_after_the_last_window_that_is_off(
    found: list[float], steady_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By 5 % of the mean of the last three of twelve windows; one of these that is: not known."""
    ends = np.arange(10.0, 121, 10)
    monkeypatch.setattr(measures, "index", lambda run: (ends, np.array(found)))
    assert measures.steady_s(None) == pytest.approx(steady_s, nan_ok=True)  # type: ignore[arg-type]


def test_figures_have_the_controls_that_ran(small: Run) -> None:
    shares, indices = BEYOND.figures(Found({"beyond-newreno": small.path}, True))
    assert [len(one.panels[0].marks) for one in (shares, indices)] == [1, 1]
    assert list(BEYOND.figures(Found({}, True))) == []


def test_beyond_is_a_study_of_its_own() -> None:
    """`--beyond` of another study says what there is."""
    runner = CliRunner()
    argv = ["reproduce", "corescale", "--beyond", "--print-config", "beyond-prague"]
    done = runner.invoke(app, argv)
    assert "limit: 18750kB" in done.stdout
    assert "dualpi2" in done.stdout
    refused = runner.invoke(app, ["reproduce", "copa", "--beyond"])
    assert "'copa-beyond' cannot be reproduced" in str(refused.exception)
