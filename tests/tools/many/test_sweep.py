# SPDX-License-Identifier: BSD-3-Clause
"""A sweep's grid, its errors, its table."""

import json
import os
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
from rich.console import Console
from small import CONFIG
from weir.base.errors import UserError
from weir.many import grid, sweep, tabled, trials
from weir.many.cells import Outcome
from weir.runner.options import Options

DEADLINE_S = 120


@pytest.fixture
def folder(tmp_path):
    """A folder with an experiment in it."""
    (tmp_path / "x.yaml").write_text(CONFIG)
    return tmp_path


def read(folder, text):
    path = folder / "s.yaml"
    path.write_text(text)
    return grid.read(path)


def test_the_grid_is_every_combination_with_every_seed(folder):
    made = read(
        folder,
        """\
config: ../y/x.yaml
duration: 5s
seeds: [7, 3]
grid:
  flows.0.count: [10, 1e2]
  flows.0.cc:
    - newreno
    - {copa: {delta: 0.1}}
    - cubic:
        fast_convergence: yes
""",
    )
    cells = made.cells()
    assert len(cells) == len({cell.name for cell, _ in cells}) == 2 * 3 * 2
    assert {cell.config for cell, _ in cells} == {folder / "../y/x.yaml"}
    assert {cell.duration for cell, _ in cells} == {"5s"}
    assert [(cell.overrides, cell.seed) for cell, _ in cells[2:7]] == [
        (("flows.0.count=10", "flows.0.cc={copa: {delta: 0.1}}"), 7),
        (("flows.0.count=10", "flows.0.cc={copa: {delta: 0.1}}"), 3),
        (("flows.0.count=10", "flows.0.cc={cubic: {fast_convergence: yes}}"), 7),
        (("flows.0.count=10", "flows.0.cc={cubic: {fast_convergence: yes}}"), 3),
        (("flows.0.count=1e2", "flows.0.cc=newreno"), 7),
    ]
    assert cells[6][0].name == "flows.0.count=1e2,flows.0.cc=newreno,seed=7"
    assert cells[6][1] == {"flows.0.count": "1e2", "flows.0.cc": "newreno"}


def test_a_grid_that_changes_at_a_time(folder):
    rates = "grid: {paths.forward.link.rate: [1Mbit, 2Mbit], paths.reverse.delay.delay: [5ms]}"
    cells = read(folder, f"config: x.yaml\nbranch_at: 200ms\n{rates}\n").cells()
    assert [cell.overrides for cell, _ in cells] == [
        (f"schedule.+={{at: 200ms, forward.link.rate: {rate}, reverse.delay.delay: 5ms}}",)
        for rate in ("1Mbit", "2Mbit")
    ]
    assert cells[0][1] == {"paths.forward.link.rate": "1Mbit", "paths.reverse.delay.delay": "5ms"}


def test_a_number_of_seeds_counts_from_one(folder):
    cells = read(folder, "config: x.yaml\nseeds: 3\n").cells()
    assert [(cell.name, cell.seed) for cell, _ in cells] == [
        ("seed=1", 1), ("seed=2", 2), ("seed=3", 3),
    ]  # fmt: skip


def test_without_seeds_each_cell_has_the_configs(folder):
    cells = read(folder, "config: x.yaml\ngrid: {flows.0.cc: [copa, 'a: b']}\n").cells()
    assert [cell.seed for cell, _ in cells] == [None, None]
    assert cells[1][0].overrides == ("flows.0.cc='a: b'",)


def test_values_that_look_the_same_in_a_name_have_different_names():
    names = {grid.cell_name({"k": value}, 1) for value in ("a b", "a_b", "a/b", "a:b", "x" * 300)}
    assert len(names) == 5
    assert all("/" not in name and len(name) < 200 for name in names)
    assert grid.cell_name({"k": "x" * 300}, 1) != grid.cell_name({"k": "x" * 300}, 2)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "s.yaml: empty"),
        ("config: [\n", "s.yaml:2:1: bad YAML: "),
        ("- 1\n", "s.yaml:1:1: the sweep: keys and values are wanted"),
        ("seeds: 1\n", "s.yaml:1:1: config is required"),
        ("config: x.yaml\n", "s.yaml:1:1: there is nothing to sweep"),
        ("config: [x]\nseeds: 1\n", "s.yaml:1:9: config: one value is wanted"),
        ("config: x\nseed: 1\n", "s.yaml:2:1: unknown key 'seed': a sweep has config, duration,"),
        ("config: x\nseeds: 1\nseeds: 2\n", "s.yaml:3:1: 'seeds' is there twice"),
        ("config: x\nseeds: []\n", "s.yaml:2:8: seeds: the list is empty"),
        ("config: x\nseeds: 0\n", "s.yaml:2:8: seeds: '0' is not a whole number from 1 to 10000"),
        ("config: x\nseeds: [1, -1]\n", "s.yaml:2:12: seeds: '-1' is not a whole number from 0"),
        ("config: x\nseeds: [1, 2, 1]\n", "s.yaml:2:15: seeds: 1 is there twice"),
        ("config: x\nseeds: [18446744073709551616]\n", "is not a whole number"),
        ("config: x\nseeds: 10001\n", "is not a whole number"),
        ("config: x\ngrid: []\n", "s.yaml:2:7: grid: keys and values are wanted"),
        ("config: x\ngrid: {}\n", "s.yaml:2:7: grid: it is empty"),
        ("config: x\ngrid: {a: 1}\n", "s.yaml:2:11: a: a list is wanted, such as [1, 2]"),
        ("config: x\ngrid:\n  a: []\n", "s.yaml:3:6: a: the list is empty"),
        ("config: x\ngrid:\n  a: [1]\n  a: [2]\n", "s.yaml:4:3: 'a' is there twice"),
        ("config: x\ngrid: {a: [{b: 1}, 2, {b: 1}]}\n", "s.yaml:2:23: a: {b: 1} is there twice"),
        ("config: x\ngrid: {a: [0%, '0%']}\n", "s.yaml:2:16: a: 0% is there twice"),
        ("config: x\ngrid: {seed: [1]}\n", "s.yaml:2:8: grid: seed has a key of its own"),
        ("config: x\nduration: 1s\ngrid: {duration: [1s]}\n", "grid: duration has a key of its"),
        ("config: x\nbranch_at: 1s\ngrid: {a: [1]}\n", "s.yaml:2:1: branch_at: only parameters of"),
        ("config: x\nseeds: 1\nkeep: x\n", "s.yaml:3:7: keep: 'x' is not runs or table"),
        ("config: x\nseeds: 10000\ngrid: {a: [1, 2]}\n", "20,000 cells are more than 10,000"),
    ],
)
def test_what_is_wrong_with_a_sweep_is_one_sentence_with_its_place(folder, text, sentence):
    with pytest.raises(UserError) as caught:
        read(folder, text)
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)
    assert caught.value.status == 2


def test_files_that_cannot_be_read(tmp_path):
    (tmp_path / "latin").write_bytes(b"config: \xe9\n")
    for name, sentence in (("nowhere", "No such file"), ("latin", "not text"), (".", "directory")):
        with pytest.raises(UserError, match=sentence):
            grid.read(tmp_path / name)


def test_the_table_has_every_parameter_and_figure_and_nulls_for_what_failed(tmp_path):
    ended = {
        "seed": 4, "wall_s": 1, "virtual_s": 30, "digest": "ab", "verdict": "ok", "jfi": 1,
        "ledger": {"balanced": True},
        "links": {"forward": {"utilisation": 0.5, "sojourn_cdf": [[0, 1]]}},
        "groups": [{"name": "a", "goodput_bps": 5}, {"name": "b", "goodput_bps": 2.5}],
    }  # fmt: skip
    points = [{"n": "1", "r": "1.5", "cc": "copa"}, {"n": "2", "r": "2", "cc": "3"}]
    outcomes = []
    for name, status in (("a", "failed"), ("b", "reused")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "summary.json").write_text(json.dumps(ended))
        cell = Options(config=tmp_path, out=Path(name))
        outcomes.append(Outcome(cell, tmp_path / name, status, ""))
    made = sweep.framed(points, list(map(sweep.row, points, outcomes)))
    assert made.schema["n"] == pl.Int64
    assert made.schema["r"] == pl.Float64
    assert made.schema["cc"] == pl.String
    failed, reused = made.to_dicts()
    assert (failed["n"], failed["cc"], failed["status"]) == (1, "copa", "failed")
    measured = [name for name in made.columns if name.startswith(("links.", "groups."))]
    assert [failed[name] for name in (*measured, "balanced", "jfi")] == [None] * 7
    assert {name: reused[name] for name in measured} == {
        "links.forward.utilisation": 0.5,
        "groups.0.name": "a",
        "groups.0.goodput_bps": 5,
        "groups.1.name": "b",
        "groups.1.goodput_bps": 2.5,
    }
    assert (reused["seed"], reused["balanced"], reused["folder"]) == (4, True, f"{tmp_path}/b")


def test_a_table_of_failures_alone_has_the_same_first_columns(tmp_path):
    cell = Options(config=tmp_path, out=Path("a"))
    failed = Outcome(cell, tmp_path / "a", "failed", "x")
    made = sweep.framed([{"n": "1"}], [sweep.row({"n": "1"}, failed)])
    assert made.columns == ["n", *grid.FIXED]
    made.write_parquet(tmp_path / "t.parquet")
    assert pl.read_parquet(tmp_path / "t.parquet").equals(made)


def test_headings_are_as_short_as_they_can_be():
    assert sweep.short(["a.b.cc", "a.b.n", "a.c.n", "n"]) == ["cc", "b.n", "c.n", "n"]
    assert sweep.short(["links.forward.utilisation"]) == ["utilisation"]


@pytest.mark.slow
def test_a_sweep_runs_tells_what_failed_and_does_not_run_again(weir, weir_sim, folder):
    (folder / "s.yaml").write_text(
        "config: x.yaml\nduration: 250ms\ngrid:\n  flows.0.cc: [newreno, nope, copa]\n"
    )
    done = weir("sweep", "s.yaml")
    assert done.status == 1
    assert done.err.startswith(
        "weir: flows.0.cc=nope: -o flows.0.cc=nope: cc: 'nope' is not a congestion control;"
        " did you mean 'copa'?\n"
    )
    assert done.err.count("\n") == 1
    assert done.out.splitlines()[-3:] == [
        "3 cells: 2 done, 1 failed",
        "runs/s/table.parquet",
        "runs/s/report.html",
    ]
    assert "nope" in (folder / "runs/s/report.html").read_text()
    kept = json.loads((folder / "runs/s/.progress.json").read_text())
    assert kept == {"cells": 3, "done": 2, "reused": 0, "failed": 1, "left_ns": None, "here": True}
    made = pl.read_parquet(folder / "runs/s/table.parquet")
    assert made["flows.0.cc"].to_list() == ["newreno", "nope", "copa"]
    assert made["seed"].to_list() == [4, None, 4]
    assert made["virtual_s"].to_list() == [0.25, None, 0.25]
    (folder / "s.yaml").write_text("config: x.yaml\nduration: 250ms\ngrid: {flows.0.cc: [copa]}\n")
    second = weir("sweep", "s.yaml", "--json")
    assert (second.status, second.err) == (0, "")
    (row,) = json.loads(second.out)
    assert row["status"] == "reused"
    assert row["digest"] == made["digest"][2]


@pytest.mark.slow
def test_cells_that_share_their_beginning_are_what_each_is_alone(weir, weir_sim, folder):
    loss = "    - loss: {rate: 10%}\n    - link"
    (folder / "x.yaml").write_text(CONFIG.replace("    - link", loss))
    (folder / "s.yaml").write_text(
        "config: x.yaml\nseeds: 2\nbranch_at: 200ms\n"
        "grid: {paths.forward.link.rate: [500kbit, 2Mbit, 1Gbitt]}\n"
    )
    refused = weir("sweep", "s.yaml", "--out", "no")
    assert refused.status != 0
    (folder / "s.yaml").write_text((folder / "s.yaml").read_text().replace(", 1Gbitt", ", 3Mbit"))
    done = weir("sweep", "s.yaml", "--json")
    assert (done.status, done.err) == (0, "")
    rows = json.loads(done.out)
    assert len({row["digest"] for row in rows}) == len(rows) == 6
    for row in rows:
        manifest = json.loads(Path(row["folder"], "manifest.json").read_text())
        assert manifest["branch"]["at_s"] == 0.2
        change = f"{{at: 200ms, forward.link.rate: {row['paths.forward.link.rate']}}}"
        argv = [weir_sim, "x.yaml", "-o", f"schedule.+={change}", "--seed", str(row["seed"])]
        alone = subprocess.run([*argv, "--out", f"a{row['digest']}", "--json"],
            cwd=folder, capture_output=True, text=True, check=True)  # fmt: skip
        assert json.loads(alone.stdout)["digest"] == row["digest"]
    assert sorted(path.name for path in (folder / "runs/s").glob(".*")) == [
        ".progress.json",
        ".weir-lock",
    ]


TABLED = "config: x.yaml\nduration: 250ms\nkeep: table\nseeds: 2\n"


def test_without_run_folders_a_sweep_has_the_same_rows(weir, weir_sim, folder):
    grids = "grid: {flows.0.cc: [newreno, nope, copa], paths.forward.link.rate: [1Mbit, 2Mbit]}\n"
    for name, text in (("s", TABLED), ("runs", TABLED.replace("keep: table\n", ""))):
        (folder / f"{name}.yaml").write_text(text + grids)
        done = weir("sweep", f"{name}.yaml", "--all")
        assert done.status == 1
        assert "12 cells: 8 done, 4 failed" in done.out
        assert "'nope' is not a congestion control" in done.err
    assert sorted(path.name for path in (folder / "runs/s").iterdir()) == [
        *(".progress.json", ".weir-lock", "report.html", "sweep.json", "table.parquet"),
    ]
    tables = [pl.read_parquet(folder / f"runs/{name}/table.parquet") for name in ("s", "runs")]
    own = [made.drop("folder", "wall_s", "message") for made in tables]
    assert own[0].equals(own[1].select(own[0].columns))
    assert own[0].width == own[1].width


def test_rows_are_kept_while_config_and_program_are_the_same(weir, weir_sim, folder):
    def sweep_(rates):
        (folder / "s.yaml").write_text(f"{TABLED}grid: {{paths.forward.link.rate: [{rates}]}}\n")
        done = weir("sweep", "s.yaml")
        assert done.status == 0
        return next(line for line in done.out.splitlines() if " cells: " in line)

    assert sweep_("1Mbit, 2Mbit") == "4 cells: 4 done"
    first = pl.read_parquet(folder / "runs/s/table.parquet")
    assert sweep_("1Mbit, 2Mbit, 3.0Mbit") == "6 cells: 2 done, 4 reused"
    second = pl.read_parquet(folder / "runs/s/table.parquet")
    assert second.head(4).drop("status").equals(first.drop("status"))
    (folder / "x.yaml").write_text(CONFIG.replace("10ms", "11ms"))
    assert sweep_("1Mbit, 2Mbit") == "4 cells: 4 done"
    part = folder / "runs/s/sweep.json"
    part.write_text(part.read_text().replace("commit ", "commit before "))
    assert sweep_("1Mbit, 2Mbit") == "4 cells: 4 done"


def test_what_was_in_a_file_is_not_known_later(weir, weir_sim, folder):
    (folder / "a.trace").write_text("1\n2\n")
    link = "[{mahimahi_link: {file: a.trace, queue: {fifo: {limit: 30p}}}}]"
    (folder / "s.yaml").write_text(f"{TABLED}grid: {{paths.forward: [{link}]}}\n")
    for _ in range(2):
        assert "2 cells: 2 done" in weir("sweep", "s.yaml").out


def test_an_interrupted_table_has_the_rows_that_ended(folder, tmp_path, monkeypatch):
    made = read(folder, TABLED)
    summary = {"ledger": {"balanced": True}, "virtual_s": 1.0}

    def run(asked, _):
        yield Outcome(asked[0], asked[0].out, "done", "", summary)
        raise KeyboardInterrupt

    monkeypatch.setattr(tabled, "run", run)
    with pytest.raises(KeyboardInterrupt):
        sweep.execute(made, tmp_path / "out", Console(quiet=True))
    assert pl.read_parquet(tmp_path / "out/table.parquet")["status"].to_list() == ["done"]


def test_parts_without_run_folders_are_one_table(weir, weir_sim, folder):
    (folder / "s.yaml").write_text(f"{TABLED}grid: {{flows.0.cc: [newreno, nope, copa]}}\n")
    for part in ("1/2", "2/2"):
        weir("sweep", "s.yaml", "--shard", part)
    weir("sweep", "s.yaml")
    done = weir("sweep", "--merge", "runs/s-1of2", "runs/s-2of2", "--out", "runs/merged")
    assert "6 cells: 4 done, 2 failed" in done.out
    both = [pl.read_parquet(folder / f"runs/{name}/table.parquet") for name in ("s", "merged")]
    whole, merged = (made.drop("folder", "wall_s", "message") for made in both)
    assert merged.select(whole.columns).equals(whole)


def test_a_cell_that_kills_weir_sim_fails_alone(folder, tmp_path, monkeypatch):
    """A stand-in for weir-sim that ends when it is asked for seed 2."""
    program = tmp_path / "weir-sim"
    program.write_text(
        "#!/bin/sh\nwhile read line; do\n"
        '  case "$line" in *seed=2*) kill -9 $$ ;; esac\n  echo "{}"\ndone\n'
    )
    program.chmod(0o755)
    monkeypatch.setattr(trials, "find_program", lambda _: program)
    made = read(folder, "config: x.yaml\nkeep: table\nseeds: 4\n")
    ended = list(tabled.run([cell for cell, _ in made.cells()], 1))
    assert [one.status for one in ended] == ["done", "failed", "done", "done"]
    assert ended[1].message == "weir-sim ended in a trial (status -9)"


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: mounts a small file system")
def test_a_full_disk_is_one_sentence_and_leaves_no_part_of_a_table(weir_sim, folder):
    """It was a traceback of Polars, and a .table.*.parquet beside the cells."""
    (folder / "s.yaml").write_text("config: x.yaml\nseeds: 1\n")
    (folder / "small").mkdir()
    sweep_ = f"{sys.executable} -m weir sweep s.yaml --out small/s"
    script = (
        f"mount -t tmpfs -o size=1m none small || exit 99; {sweep_} || exit 98;"
        f" rm small/s/table.parquet; cat /dev/zero > small/filler 2>/dev/null;"
        f" {sweep_}; status=$?; echo left:; ls -A small/s; exit $status"
    )
    argv = ["unshare", "-m", "sh", "-c", script]
    done = subprocess.run(argv, cwd=folder, capture_output=True, text=True, timeout=DEADLINE_S)
    if done.returncode == 99:
        pytest.skip("no private mount namespaces here")
    assert done.returncode == 1
    said = "weir: small/s/table.parquet: cannot be written: No space left on device\n"
    assert done.stderr == said
    left = done.stdout.partition("left:\n")[2].split()
    assert left == [".progress.json", ".weir-lock", "report.html", "seed=1", "sweep.json"]


@pytest.mark.parametrize(
    ("args", "text", "sentence"),
    [
        ([], "config: nope.yaml\nseeds: 1\n", "nope.yaml: cannot be read"),
        ([], "config: x.yaml\ngrid:\n  flows.0.cnt: [1]\n", "s.yaml:3:3: -o flows.0.cnt=1: flows:"),
        (["--workers", "0"], "", "--workers: 0 is not at least 1"),
        (
            ["--cluster", "tcp://a:1", "--workers", "1"],
            "config: x.yaml\nseeds: 1\n",
            "--workers: the workers of a running scheduler are as they are",
        ),
        (
            ["--cluster", "tcp://a:1"],
            "config: x.yaml\nseeds: 1\nkeep: table\n",
            "--cluster: cells of `keep: table` run on this machine",
        ),
        (
            ["--cluster", "pigeon"],
            "config: x.yaml\nseeds: 1\n",
            "--cluster: 'pigeon' is none of tcp://host:port",
        ),
    ],
)
def test_bad_usage_runs_nothing(weir, weir_sim, folder, args, text, sentence):
    (folder / "s.yaml").write_text(text)
    done = weir("sweep", "s.yaml", *args)
    assert done.status == 2
    assert sentence in done.err
    assert len(done.err.splitlines()) == 1
    assert not (folder / "runs").exists()
