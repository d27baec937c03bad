# SPDX-License-Identifier: BSD-3-Clause
"""A sweep's grid, its errors, its table; and a real Dask scheduler with a worker that is killed."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import polars as pl
import pytest
from weir.errors import UserError
from weir.study import sweep
from weir.study.cells import Cell, Outcome

DEADLINE_S = 120
DASK = Path(sys.executable).with_name("dask")
CONFIG = """\
seed: 4
duration: 500ms
paths:
  forward:
    - link: {rate: 1Mbit, queue: {fifo: {limit: 20pkt}}}
    - delay: {delay: 10ms}
  reverse:
    - delay: {delay: 10ms}
flows:
  - {count: 1, cc: newreno}
"""
# A weir-sim that ends the worker of a cell with seed 2.
KILLER = """\
#!/bin/sh
case "$*" in *"--seed 2"*--out*) kill -9 $PPID ;; esac
exec {weir_sim} "$@"
"""


@pytest.fixture
def folder(tmp_path):
    """A folder with an experiment in it."""
    (tmp_path / "x.yaml").write_text(CONFIG)
    return tmp_path


def read(folder, text):
    path = folder / "s.yaml"
    path.write_text(text)
    return sweep.read(path)


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
    assert [(cell.override, cell.seed) for cell, _ in cells[2:7]] == [
        (("flows.0.count=10", "flows.0.cc={copa: {delta: 0.1}}"), 7),
        (("flows.0.count=10", "flows.0.cc={copa: {delta: 0.1}}"), 3),
        (("flows.0.count=10", "flows.0.cc={cubic: {fast_convergence: yes}}"), 7),
        (("flows.0.count=10", "flows.0.cc={cubic: {fast_convergence: yes}}"), 3),
        (("flows.0.count=1e2", "flows.0.cc=newreno"), 7),
    ]
    assert cells[6][0].name == "flows.0.count=1e2,flows.0.cc=newreno,seed=7"
    assert cells[6][1] == {"flows.0.count": "1e2", "flows.0.cc": "newreno"}


def test_a_number_of_seeds_counts_from_one(folder):
    cells = read(folder, "config: x.yaml\nseeds: 3\n").cells()
    assert [(cell.name, cell.seed) for cell, _ in cells] == [
        ("seed=1", 1), ("seed=2", 2), ("seed=3", 3),
    ]  # fmt: skip


def test_without_seeds_each_cell_has_the_configs(folder):
    cells = read(folder, "config: x.yaml\ngrid: {flows.0.cc: [copa, 'a: b']}\n").cells()
    assert [cell.seed for cell, _ in cells] == [None, None]
    assert cells[1][0].override == ("flows.0.cc='a: b'",)


def test_values_that_look_the_same_in_a_name_have_different_names():
    names = {sweep.cell_name({"k": value}, 1) for value in ("a b", "a_b", "a/b", "a:b", "x" * 300)}
    assert len(names) == 5
    assert all("/" not in name and len(name) < 200 for name in names)
    assert sweep.cell_name({"k": "x" * 300}, 1) != sweep.cell_name({"k": "x" * 300}, 2)


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
        ("config: x\ngrid: {seed: [1]}\n", "s.yaml:2:8: grid: seed has a key of its own"),
        ("config: x\nduration: 1s\ngrid: {duration: [1s]}\n", "grid: duration has a key of its"),
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
            sweep.read(tmp_path / name)


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
        outcomes.append(Outcome(Cell(name, tmp_path), tmp_path / name, status, ""))
    made = sweep.table(points, outcomes)
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
    made = sweep.table([{"n": "1"}], [Outcome(Cell("a", tmp_path), tmp_path / "a", "failed", "x")])
    assert made.columns == ["n", *sweep.FIXED]
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
    assert done.out.splitlines()[-2:] == ["3 cells: 2 done, 1 failed", "runs/s/table.parquet"]
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
    assert done.stdout.endswith("left:\n.weir-lock\nseed=1\n")


@pytest.mark.parametrize(
    ("args", "text", "sentence"),
    [
        ([], "config: nope.yaml\nseeds: 1\n", "nope.yaml: cannot be read"),
        ([], "config: x.yaml\ngrid:\n  flows.0.cnt: [1]\n", "s.yaml:3:3: -o flows.0.cnt=1: flows:"),
        (["--workers", "0"], "", "Invalid value for '--workers'"),
        (["--scheduler", "a", "--workers", "1"], "", "--workers is for this machine"),
    ],
)
def test_bad_usage_runs_nothing(weir, weir_sim, folder, args, text, sentence):
    (folder / "s.yaml").write_text(text)
    done = weir("sweep", "s.yaml", *args)
    assert done.status == 2
    assert sentence in done.err
    assert len(done.err.splitlines()) == 1
    assert not (folder / "runs").exists()


def until(true):
    """Waits for something to be true, and gives it back."""
    deadline = time.monotonic() + DEADLINE_S
    while not (found := true()):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return found


def children(pid):
    """The programs that a process has started and that have not ended."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, parent = path.read_text().rpartition(")")[2].split()[:2]
        except OSError:
            continue  # it has ended
        if int(parent) == pid and state != "Z":
            found.append(int(path.parent.name))
    return found


def command_line(pid):
    try:
        return (Path("/proc") / str(pid) / "cmdline").read_text().split("\0")
    except OSError:
        return []


def running(pid):
    return next((child for child in children(pid) if "--out" in command_line(child)), None)


def gone(pid):
    try:
        return (Path("/proc") / str(pid) / "stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


class Cluster:
    """A Dask scheduler and two workers, as a user starts them."""

    def __init__(self, folder):
        self.folder = folder
        self.file = folder / "scheduler.json"
        self.started = []
        self.cells = []
        self.start("scheduler", "--port", "0")
        self.address = (
            until(lambda: self.file.exists() and self.file.read_text())
            and json.loads(self.file.read_text())["address"]
        )
        self.workers = [
            self.start("worker", "--nthreads", "1", "--no-nanny", "--local-directory", folder)
            for _ in range(2)
        ]

    def start(self, what, *args):
        with (self.folder / f"{what}-{len(self.started)}.log").open("w") as log:
            process = subprocess.Popen(
                [DASK, what, "--host", "127.0.0.1", "--no-dashboard", "--scheduler-file", self.file,
                 *args], stdout=log, stderr=log,
            )  # fmt: skip
        self.started.append(process)
        return process

    def sweep(self, *args):
        process = subprocess.Popen(
            [sys.executable, "-m", "weir", "sweep", "s.yaml", "--scheduler", self.address, *args],
            cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        self.started.append(process)
        return process

    def running(self, worker):
        """The weir-sim that a worker runs a cell with, once it does."""
        self.cells.append(until(lambda: running(worker.pid)))
        return self.cells[-1]

    def stop(self):
        for process in reversed(self.started):
            process.kill()
            process.communicate()
        for pid in self.cells:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


@pytest.fixture
def cluster(weir_sim, folder):
    made = Cluster(folder)
    yield made
    made.stop()


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_worker_killed_during_a_sweep_loses_no_cell(cluster, weir_sim, folder, number):
    """It is killed in the middle of a cell, whose weir-sim we stop before; the other takes over."""
    (folder / "s.yaml").write_text(
        "config: x.yaml\nduration: 60s\nseeds: 6\ngrid:\n"
        "  paths.forward.link.rate: [1Gbit]\n  flows.0.cc: [newreno, cubic]\n"
    )
    out = folder / "runs/s"
    client = cluster.sweep()
    until(lambda: len(list(out.glob("*/summary.json"))) >= 3)
    victim, survivor = cluster.workers
    child = cluster.running(victim)
    os.kill(child, signal.SIGSTOP)
    (_, partial) = command_line(child)[-3:-1]
    victim.send_signal(number)
    _, err = client.communicate(timeout=DEADLINE_S)
    assert (client.returncode, err) == (0, "")
    assert victim.wait(DEADLINE_S) == (-number if number == signal.SIGKILL else 0)
    assert survivor.poll() is None
    made = pl.read_parquet(out / "table.parquet")
    points = [(cc, seed) for cc in ("newreno", "cubic") for seed in range(1, 7)]
    assert made.select("flows.0.cc", "seed").rows() == points
    assert made["folder"].n_unique() == 12
    assert made["balanced"].all()
    # What the victim had ended but not yet told is found again.
    assert set(made["status"]) <= {"done", "reused"}
    assert "done" in set(made["status"])
    # The cell that was cut off is whole, and as if nothing had happened.
    (row,) = (
        row for row in made.iter_rows(named=True) if Path(partial).name.startswith(
            f".{Path(row['folder']).name}.")
    )  # fmt: skip
    alone = subprocess.run(
        [weir_sim, folder / "x.yaml", "--duration", "60s", "--seed", str(row["seed"]), "--json",
         "-o", "paths.forward.link.rate=1Gbit", "-o", f"flows.0.cc={row['flows.0.cc']}",
         "--out", folder / "alone"], capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert json.loads(alone.stdout)["digest"] == row["digest"]
    assert not list(out.glob(".*.cell"))


def hours(folder):
    """A sweep of which nobody sees the end."""
    (folder / "s.yaml").write_text(
        "config: x.yaml\nduration: 24h\nseeds: 4\ngrid: {paths.forward.link.rate: [10Gbit]}\n"
    )


@pytest.mark.slow
def test_a_killed_worker_takes_its_weir_sim_along(cluster, folder):
    hours(folder)
    cluster.sweep()
    victim, survivor = cluster.workers
    children = [cluster.running(worker) for worker in (victim, survivor)]
    victim.kill()
    until(lambda: gone(children[0]))
    assert not gone(children[1])


@pytest.mark.slow
def test_a_cell_that_kills_its_workers_is_given_up(folder, weir_sim, monkeypatch):
    program = folder / "build/tools/sim/weir-sim"
    program.parent.mkdir(parents=True)
    program.write_text(KILLER.format(weir_sim=weir_sim))
    program.chmod(0o755)
    monkeypatch.setenv("WEIR_BUILD", str(folder / "build"))
    monkeypatch.setenv("DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES", "0")
    monkeypatch.setenv("DASK_DISTRIBUTED__SCHEDULER__WORKER_SATURATION", "1.0")
    (folder / "s.yaml").write_text("config: x.yaml\nseeds: [2, 3, 4, 5, 6]\n")
    made = Cluster(folder)
    try:
        client = made.sweep("--json")
        said, err = client.communicate(timeout=DEADLINE_S)
    finally:
        made.stop()
    assert (client.returncode, err) == (1, "weir: seed=2: each worker that ran it died\n")
    assert [row["status"] for row in json.loads(said)] == ["failed", *["done"] * 4]
    assert not (folder / "runs/s/seed=2").exists()


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_sweep_that_is_stopped_frees_the_workers(cluster, folder, number):
    """They go on with the next sweep, which removes what was left."""
    hours(folder)
    client = cluster.sweep()
    for worker in cluster.workers:
        cluster.running(worker)
    client.send_signal(number)
    client.communicate(timeout=DEADLINE_S)
    assert client.returncode == (130 if number == signal.SIGINT else -number)
    until(lambda: all(map(gone, cluster.cells)))
    (folder / "s.yaml").write_text("config: x.yaml\nseeds: 4\n")
    client = cluster.sweep("--json")
    said, err = client.communicate(timeout=DEADLINE_S)
    assert (client.returncode, err) == (0, "")
    assert [row["status"] for row in json.loads(said)] == ["done"] * 4
    assert not list((folder / "runs/s").glob(".*.cell"))
