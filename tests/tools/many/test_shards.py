# SPDX-License-Identifier: BSD-3-Clause
"""Parts of a sweep: together they are the table of the whole, and what does not fit is refused."""

import json
import shutil

import polars as pl
import pytest
from small import CONFIG, HOW

SWEEP = """\
config: x.yaml
seeds: 2
grid: {flows.0.count: [1, 2e0], flows.0.cc: [copa, nope]}
"""


@pytest.fixture(scope="module")
def parts(weir_sim, tmp_path_factory):
    """Three parts of a sweep, and the whole, by one module's only runs."""
    from weir.base.terminal import console
    from weir.many import grid, shards, sweep

    folder = tmp_path_factory.mktemp("parts")
    (folder / "x.yaml").write_text(CONFIG)
    (folder / "s.yaml").write_text(SWEEP)
    asked = grid.read(folder / "s.yaml")
    for name, shard in (("1", "1/3"), ("2", "2/3"), ("3", "3/3"), ("all", None)):
        sweep.execute(asked, folder / name, console(stderr=True), shard=shards.read(shard))
    return folder


@pytest.mark.slow
def test_parts_together_are_the_whole_byte_for_byte(weir, parts, tmp_path):
    out = tmp_path / "merged"
    done = weir("sweep", "--merge", *(parts / n for n in "312"), "--out", out)
    assert (done.status, done.err) == (1, "")
    assert "8 cells: 4 done, 4 failed" in done.out
    tables = [pl.read_parquet(place / "table.parquet") for place in (out, parts / "all")]
    assert len({table.drop(HOW).write_csv() for table in tables}) == 1
    assert tables[0].schema == tables[1].schema
    # It goes on as any sweep does.
    second = weir("sweep", parts / "s.yaml", "--out", out)
    assert "8 cells: 4 reused, 4 failed" in second.out


@pytest.mark.slow
def test_parts_that_do_not_fit_are_refused(weir, parts, tmp_path):
    def refused(*names):
        done = weir(
            "sweep", "--merge", *(parts / name for name in names), "--out", tmp_path / "out"
        )
        assert done.status in (1, 2)
        assert done.err.count("\n") == 1
        return done.err

    assert refused("1", "3").endswith("parts of the sweep are missing: 2/3\n")
    assert "part 1/3 is there twice" in refused("1", "2", "1")
    assert "is part 1/1, another one is of 3" in refused("1", "all")
    assert "it has no sweep.json" in refused("1", ".")
    for key, words in (
        ("grid", "grids"),
        ("version", "versions of weir-sim"),
        ("config", "configs"),
    ):
        shutil.copytree(parts / "2", tmp_path / key)
        said = json.loads((tmp_path / key / "sweep.json").read_text())
        said[key] = {"flows.0.count": ["3"]} if key == "grid" else "other"
        (tmp_path / key / "sweep.json").write_text(json.dumps(said))
        assert f"have different {words}: no parts of one sweep" in refused("1", tmp_path / key)
    shutil.copytree(parts / "2", tmp_path / "cut")
    (tmp_path / "cut/table.parquet").unlink()
    assert "this part has not ended: it has no table" in refused("1", tmp_path / "cut", "3")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        (["s.yaml", "--shard", "4/3"], "--shard: '4/3' is no part such as 2/3"),
        (["s.yaml", "--shard", "9/9"], "--shard 9/9: there are only 8 cells"),
        (["s.yaml", "t.yaml"], "t.yaml: one sweep at a time"),
        (
            ["--merge", "a", "b"],
            "--merge runs nothing: it takes the folders of the parts and --out",
        ),
    ],
)
def test_bad_usage_is_one_sentence(weir, weir_sim, tmp_path, args, sentence):
    (tmp_path / "x.yaml").write_text(CONFIG)
    (tmp_path / "s.yaml").write_text(SWEEP)
    done = weir("sweep", *args)
    assert done.status == 2
    assert sentence in done.err
    assert not (tmp_path / "runs").exists()
