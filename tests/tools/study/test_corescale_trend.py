# SPDX-License-Identifier: BSD-3-Clause
"""The trend of Jain's index over the length of a run: from its records, and what it says."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest
from weir.analysis import folder
from weir.studies.corescale import trend
from weir.study import claim, find, measures
from weir.study.claim import Found

SHORT = (
    "duration=60s",
    "warmup=10s",
    "flows.0.jitter=1s",
    "flows.0.count=10",
    "flows.0.cc=newreno",
)


def test_a_trend_is_that_of_the_records(weir_sim: Path, tmp_path: Path) -> None:
    """The last point is the run's index; a / T is found where it is, and says what it costs."""
    (study,) = find.chosen("corescale")
    config = next(iter(claim.setups(study))).config.with_name("edge.yaml")
    options = [word for one in SHORT for word in ("-o", one)]
    subprocess.run([weir_sim, config, *options, "--out", tmp_path / "run"], check=True)
    run = folder.load(tmp_path / "run")
    time_s, left = trend.missing(run)
    assert [time_s[0], time_s[-1]] == pytest.approx([10, 50])
    assert 1 - left[-1] == pytest.approx(measures.jfi(run))
    exact = np.arange(10.0, 2000, 10)
    assert trend.fit(exact, 13.7 / exact) == pytest.approx(13.7)
    measured = run.summary.measured
    assert measured is not None
    measured.cpu_s, measured.virtual_s = 5, 50
    assert trend.said("x", 13.7, run) == ("x: 13.7 s / T, 0.99 at 1,370 s (137 s of one core)")
    figure = trend.figure(Found({"fair-newreno-1000-20": tmp_path / "run"}, True))
    assert figure is not None
    assert len(figure.panels[0].marks) == 3  # 1 - J, its trend and what is asked for
    assert trend.figure(Found({}, True)) is None
