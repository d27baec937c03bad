# SPDX-License-Identifier: BSD-3-Clause
"""weir reproduce in parts: together they are the whole, and what does not fit is refused."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from test_studies import FULL, SHORT, known, needs_sim, study
from typer.testing import CliRunner, Result
from weir.cli.app import app
from weir.study.claim import Experiment, Study

LONGER = replace(SHORT, name="longer", override=("duration=31s", "warmup=10s"))
TWICE = replace(SHORT, name="twice", seeds=(2, 2))


def two() -> tuple[Study, Study]:
    """Two studies of four cells, of which they share one."""
    other = (
        replace(FULL, setups=(LONGER,)),
        replace(FULL, says="of two seeds", setups=(TWICE,)),
        FULL,
    )
    named = replace(study(FULL), name="other", experiments=(Experiment("X2", "two", other),))
    return study(FULL), named


def weir(*argv: str | Path) -> Result:
    return CliRunner().invoke(app, [str(one) for one in argv])


@pytest.mark.slow
@needs_sim
def test_parts_together_are_the_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each cell is run once; what was killed goes on; the merged pages are those of one run."""
    known(monkeypatch, *two())
    parts = [tmp_path / "first", tmp_path / "second"]
    for place, which in zip(parts, ("1/2", "2/2"), strict=True):
        done = weir("reproduce", "all", "--shard", which, "--out", place, "--workers", "1")
        assert done.exit_code == 0, done.output
    cells = [sorted(one.name for one in place.glob("*/cells/*/")) for place in parts]
    assert cells == [["short", "twice-s1"], ["longer", "twice-s2"]]

    shutil.rmtree(parts[1] / "other/cells/longer")  # as if it had been killed in this cell
    resumed = weir("reproduce", "all", "--shard", "2/2", "--out", parts[1], "--workers", "1")
    assert "2 cells: 1 done, 1 reused" in resumed.output

    out = tmp_path / "out"
    merged = weir("reproduce", "--merge", *parts, "--out", out)
    assert merged.exit_code == 0, merged.output
    whole = tmp_path / "whole"
    assert weir("reproduce", "all", "--out", whole, "--workers", "1").exit_code == 0
    tables = [pl.read_parquet(place / "all.parquet") for place in (out, whole)]
    assert tables[0].equals(tables[1])
    assert tables[0]["verdict"].to_list() == ["holds"] * 4
    assert "short/config.yaml" in (out / "small/small.html").read_text()
    goes_on = weir("reproduce", "all", "--out", out, "--workers", "1")
    assert "3 cells: 3 reused" in goes_on.output


@pytest.mark.slow
@needs_sim
def test_parts_that_do_not_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known(monkeypatch, *two())
    parts = [tmp_path / "first", tmp_path / "second"]
    for place, which in zip(parts, ("1/2", "2/2"), strict=True):
        assert weir("reproduce", "other", "--shard", which, "--out", place).exit_code == 0

    def refused(*argv: str | Path) -> str:
        done = weir("reproduce", *argv, "--out", tmp_path / "out")
        assert done.exception is not None
        return str(done.exception)

    assert "parts of the reproduction are missing: 2/2" in refused("--merge", parts[0])
    assert "it has no reproduce.json" in refused("--merge", tmp_path)
    assert "there are only 4 cells" in refused("other", "--shard", "5/5")
    assert "'3/2' is no part such as 2/3" in refused("other", "--shard", "3/2")
    assert "one name at a time" in refused("other", "small")
    assert "--merge runs nothing" in refused("--merge", *parts, "--shard", "1/2")

    # A cell that no part has run is missing, and the rest is judged.
    shutil.rmtree(parts[0] / "cells/longer")
    left = weir("reproduce", "--merge", *parts, "--out", tmp_path / "left")
    assert left.exit_code == 1
    assert "longer failed: no part has run it" in left.output
    assert "holds" in left.output

    # So is one of another config than the study's cell has by now.
    config = parts[1] / "cells/twice-s1/config.yaml"
    config.write_text(config.read_text().replace("seed: 1", "seed: 9"))
    manifest = parts[1] / "cells/twice-s1/manifest.json"
    manifest.write_text(json.dumps(json.loads(manifest.read_text()) | {"asked": "of another"}))
    left = weir("reproduce", "--merge", *parts, "--out", tmp_path / "other")
    assert "twice-s1 failed: no part has run it" in left.output

    part = parts[1] / "reproduce.json"
    part.write_text(json.dumps(json.loads(part.read_text()) | {"scale": "full"}))
    assert "have different scales: no parts of one reproduction" in refused("--merge", *parts)
