# SPDX-License-Identifier: BSD-3-Clause
"""A sweep on a Dask scheduler whose workers share no path with it, and what is killed of it."""

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

import polars as pl
import pytest
from processes import children, command_line, runs, state
from small import CONFIG, HOW
from waiting import wait_for
from weir.base.terminal import console
from weir.many import cluster as clusters
from weir.many import grid
from weir.many import sweep as study

DEADLINE_S = 120
DASK = Path(sys.executable).with_name("dask")
# A weir-sim that ends the worker of a cell with seed 2.
KILLER = """\
#!/bin/sh
case "$*" in *--out*) grep -q '"seed": "2"' "$1" && kill -9 $PPID ;; esac
exec {weir_sim} "$@"
"""
# A weir-sim that stops itself before the first cell of all, and stays so.
HOLDER = """\
#!/bin/sh
case "$*" in *--out*) mkdir {held} 2>/dev/null && kill -STOP $$ ;; esac
exec {weir_sim} "$@"
"""


def program(monkeypatch, folder, text):
    """What stands in for weir-sim."""
    path = folder / "tools/sim/weir-sim"
    path.parent.mkdir(parents=True)
    path.write_text(text)
    path.chmod(0o755)
    monkeypatch.setenv("WEIR_BUILD", str(folder))


def held(pid):
    """The cell that stopped itself, if this process began it."""
    return next((child for child in children(pid) if state(child) == "T"), None)


def running(pid):
    """A cell's weir-sim: until it is executed, a child has the command line of its parent."""
    parents = command_line(pid)
    for child in children(pid):
        if b"--out" in (line := command_line(child)) and line != parents:
            return child
    return None


def sweep(folder, *args):
    """A sweep in a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "weir", "sweep", "s.yaml", *args],
        cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


class Cluster:
    """A Dask scheduler and workers, as a user starts them."""

    def __init__(self, folder, workers=2):
        self.folder = folder
        self.started = []
        self.cells = []
        self.port = 0
        self.start_scheduler()
        self.workers = [self.worker() for _ in range(workers)]
        self.known(workers)

    def start_scheduler(self):
        """Again at the same port, if it was there before."""
        file = self.folder / f"scheduler-{len(self.started)}.json"
        args = ("--port", str(self.port), "--no-dashboard", "--scheduler-file", file)
        self.log = self.folder / f"{len(self.started)}.log"
        self.scheduler = self.start([DASK, "scheduler", "--host", "127.0.0.1", *args])
        self.address = json.loads(wait_for(lambda: file.exists() and file.read_text()))["address"]
        self.port = int(self.address.rpartition(":")[2])

    def known(self, workers):
        """Waits until the scheduler has so many: a short sweep is over before another comes."""
        wait_for(lambda: self.log.read_text().count("Register worker") >= workers, "workers")

    def worker(self, *args):
        """Where we have our folder it has an empty one of its own: nothing is shared."""
        dask = [DASK, "worker", self.address, "--host", "127.0.0.1", "--nthreads", "1"]
        dask += ["--no-dashboard", "--death-timeout", "60", *(args or ["--no-nanny"])]
        if os.geteuid() != 0:
            return self.start(dask)
        script = 'mount -t tmpfs none "$0" && mkdir "$0/w" && cd "$0/w" && exec "$@"'
        return self.start(["unshare", "-m", "sh", "-c", script, self.folder, *dask])

    def start(self, argv):
        environment = os.environ | {"TMPDIR": str(self.folder / "w")}
        (self.folder / "w").mkdir(exist_ok=True)
        with (self.folder / f"{len(self.started)}.log").open("w") as log:
            process = subprocess.Popen(argv, stdout=log, stderr=log, env=environment)
        self.started.append(process)
        return process

    def sweep(self, *args):
        self.started.append(sweep(self.folder, "--cluster", self.address, *args))
        return self.started[-1]

    def running(self, worker):
        """The weir-sim that a worker runs a cell with, once it does."""
        self.cells.append(wait_for(lambda: running(worker.pid)))
        return self.cells[-1]

    def holder(self):
        """The worker with the cell that stopped itself; the others."""
        pids = {worker.pid: worker for worker in self.workers}
        pid = wait_for(lambda: next(filter(held, pids), None), "a cell that is held")
        self.cells.append(held(pid))
        return pids.pop(pid), *pids.values()

    def stop(self):
        for process in reversed(self.started):
            process.kill()
            process.communicate()
        for pid in self.cells:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


@pytest.fixture
def folder(tmp_path):
    """A folder with an experiment in it."""
    (tmp_path / "x.yaml").write_text(CONFIG)
    return tmp_path


@pytest.fixture
def holding(weir_sim, monkeypatch, tmp_path_factory):
    """Of all that is begun from here on, the first cell stops itself and stays so."""
    build = tmp_path_factory.mktemp("build")
    program(monkeypatch, build, HOLDER.format(held=build / "held", weir_sim=weir_sim))


@pytest.fixture
def cluster(weir_sim, folder):
    made = Cluster(folder)
    yield made
    made.stop()


def results(folder):
    """The table of a sweep, without the columns that say how it was made, as bytes."""
    return pl.read_parquet(folder / "table.parquet").drop(HOW).write_csv().encode()


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_worker_killed_during_a_sweep_loses_no_cell(holding, cluster, weir, folder, number):
    """It is killed in the middle of a cell, whose weir-sim has stopped; the other takes over.

    The cells read a file that the workers have not. All is as if run here. A cell takes a fifth of
    a second: shorter ones would go to the victim several at a time, with too few for the survivor.
    """
    (folder / "up.trace").write_text("5\n10\n12\n")
    (folder / "x.yaml").write_text(
        CONFIG.replace("link: {rate: 1Mbit,", "mahimahi_link: {file: up.trace,")
    )
    (folder / "s.yaml").write_text(
        "config: x.yaml\nduration: 4000s\nseeds: 3\ngrid:\n  flows.0.cc: [newreno, nope, cubic]\n"
    )
    out = folder / "runs/s"
    client = cluster.sweep()
    victim, survivor = cluster.holder()
    wait_for(lambda: len(list(out.glob("[!.]*/summary.json"))) >= 3)
    victim.send_signal(number)
    _, err = client.communicate(timeout=DEADLINE_S)
    assert (client.returncode, err.count("cc: 'nope' is not a congestion control")) == (1, 3)
    assert victim.wait(DEADLINE_S) == (-number if number == signal.SIGKILL else 0)
    assert survivor.poll() is None
    made = pl.read_parquet(out / "table.parquet")
    points = [(cc, seed) for cc in ("newreno", "nope", "cubic") for seed in range(1, 4)]
    assert made.select("flows.0.cc", "seed").rows() == points
    assert set(made["status"]) == {"done", "failed"}
    ran = {f"flows.0.cc={cc},seed={n}" for cc in ("cubic", "newreno") for n in (1, 2, 3)}
    assert {path.name for path in out.iterdir()} == {
        ".progress.json",
        ".weir-lock",
        "report.html",
        "sweep.json",
        "table.parquet",
        *ran,
    }
    assert weir("sweep", "s.yaml", "--out", "here").status == 1
    assert results(out) == results(folder / "here")
    # The folder, copied elsewhere, goes on there.
    (folder / "runs").rename(folder / "elsewhere")
    second = weir("sweep", "s.yaml", "--out", "elsewhere/s")
    assert "9 cells: 6 reused, 3 failed" in second.out
    assert results(folder / "elsewhere/s") == results(folder / "here")


def hours(folder):
    """A sweep of which nobody sees the end."""
    (folder / "s.yaml").write_text(
        "config: x.yaml\nduration: 24h\nseeds: 4\ngrid: {paths.forward.link.rate: [10Gbit]}\n"
    )


@pytest.mark.slow
def test_a_cell_that_kills_its_workers_is_given_up(folder, weir_sim, monkeypatch, tmp_path_factory):
    """Nannies start the workers anew."""
    program(monkeypatch, tmp_path_factory.mktemp("build"), KILLER.format(weir_sim=weir_sim))
    (folder / "s.yaml").write_text("config: x.yaml\nseeds: [2, 3, 4, 5, 6]\n")
    made = Cluster(folder, workers=0)
    for _ in range(2):
        made.worker("--nanny")
    try:
        client = made.sweep("--json")
        said, err = client.communicate(timeout=DEADLINE_S)
    finally:
        made.stop()
    assert client.returncode == 1
    assert err.startswith("weir: seed=2: 3 workers died while they ran it: tcp://127.0.0.1:")
    assert [row["status"] for row in json.loads(said)] == ["failed", *["done"] * 4]
    assert not (folder / "runs/s/seed=2").exists()


@pytest.mark.slow
def test_a_scheduler_that_is_started_anew_loses_no_cell(holding, cluster, weir, folder):
    """Its workers end with it; others come. What was done is not done again."""
    (folder / "s.yaml").write_text("config: x.yaml\nduration: 10000s\nseeds: 6\n")
    out = folder / "runs/s"
    client = cluster.sweep("--json")
    cluster.holder()
    wait_for(lambda: len(list(out.glob("[!.]*/summary.json"))) >= 2)
    kept = {path: path.stat().st_mtime_ns for path in out.glob("[!.]*/summary.json")}
    for process in (cluster.scheduler, *cluster.workers):
        process.kill()
        process.wait()
    cluster.start_scheduler()
    cluster.worker()
    said, err = client.communicate(timeout=DEADLINE_S)
    assert (client.returncode, err) == (0, "")
    assert [row["status"] for row in json.loads(said)] == ["done"] * 6
    assert kept == {path: path.stat().st_mtime_ns for path in kept}
    assert weir("sweep", "s.yaml", "--out", "here").status == 0
    assert results(out) == results(folder / "here")


@pytest.mark.slow
def test_a_worker_of_another_version_is_refused_by_name(
    cluster, weir_sim, folder, monkeypatch, tmp_path_factory
):
    """The other one does all; without another one there is no sweep."""
    text = f'#!/bin/sh\n{weir_sim} "$@" | sed "s/^weir-sim 1/weir-sim 0/"\n'
    with monkeypatch.context() as old:
        program(old, tmp_path_factory.mktemp("build"), text)
        cluster.worker("--no-nanny", "--name", "old")
    (folder / "s.yaml").write_text("config: x.yaml\nseeds: 4\n")
    cluster.known(3)
    said, err = cluster.sweep("--json").communicate(timeout=DEADLINE_S)
    assert err.startswith("weir: worker old (tcp://127.0.0.1:")
    assert ") is refused: it has weir-sim 0." in err
    assert [row["status"] for row in json.loads(said)] == ["done"] * 4
    for worker in cluster.workers:
        worker.kill()
        worker.wait()
    client = cluster.sweep("--out", "other")
    _, err = client.communicate(timeout=DEADLINE_S)
    assert client.returncode == 1
    assert "is refused" in err.splitlines()[-1]


@pytest.mark.slow
def test_a_sweep_that_is_stopped_frees_the_workers(cluster, folder):
    """They go on with the next sweep, which removes what was left.

    A worker that is killed then takes its weir-sim along.
    """
    for status, number in [(130, signal.SIGINT), (-signal.SIGKILL, signal.SIGKILL)]:
        hours(folder)
        client = cluster.sweep("--out", str(number.value))
        for worker in cluster.workers:
            cluster.running(worker)
        client.send_signal(number)
        client.communicate(timeout=DEADLINE_S)
        assert client.returncode == status
        wait_for(lambda: not any(map(runs, cluster.cells)))
    (folder / "s.yaml").write_text("config: x.yaml\nseeds: 4\n")
    client = cluster.sweep("--json", "--out", str(signal.SIGKILL.value))
    said, err = client.communicate(timeout=DEADLINE_S)
    assert (client.returncode, err) == (0, "")
    assert [row["status"] for row in json.loads(said)] == ["done"] * 4
    assert not list((folder / str(signal.SIGKILL.value)).glob(".*.cell"))
    hours(folder)
    cluster.sweep("--out", "last")
    victim, survivor = map(cluster.running, cluster.workers)
    cluster.workers[0].kill()
    wait_for(lambda: not runs(victim))
    assert runs(survivor)


SHORT = "config: x.yaml\nduration: 1000s\nseeds: 3\ngrid: {flows.0.cc: [newreno, cubic]}\n"


def test_a_worker_here_is_never_taken_for_dead():
    """Dask asks its scheduler by itself, for no workers, and kept the answer where ours was read.

    On a busy machine a cell was said to have killed "0, 0, 0": all three the same worker, at work.
    """
    with clusters.connected(None, 2, 2) as crew:
        ended = threading.Event()

        async def ask():
            while not ended.is_set():
                await crew.client._update_scheduler_info()

        asked = asyncio.run_coroutine_threadsafe(ask(), crew.client.loop.asyncio_loop)
        try:
            assert [len(crew.there()[1]) for _ in range(50)] == [2] * 50
        finally:
            ended.set()
            asked.result()


def killed_in_the_middle(client, runner, out):
    """Kills a sweep of which a cell has stopped; gives back the cells that are there."""
    cell = wait_for(lambda: held(runner.pid))
    wait_for(lambda: list(out.glob("[!.]*/summary.json")))
    client.kill()
    os.kill(cell, signal.SIGKILL)
    client.communicate()
    return {path: path.stat().st_mtime_ns for path in out.glob("[!.]*/summary.json")}


def execute(folder, out, cluster=None):
    """The sweep in this process: what became of its cells, its table, and what its folder holds."""
    asked = grid.read(folder / "s.yaml")
    made = study.execute(asked, folder / out, console(stderr=True), cluster=cluster)
    names = {path.name for path in (folder / out).iterdir()}
    return made["status"].to_list(), results(folder / out), names


@pytest.fixture(scope="module")
def whole(weir_sim, tmp_path_factory):
    """The sweep that nobody killed."""
    folder = tmp_path_factory.mktemp("whole")
    (folder / "x.yaml").write_text(CONFIG)
    (folder / "s.yaml").write_text(SHORT)
    return execute(folder, "out")[1:]


def goes_on(folder, kept, whole, cluster=None):
    """The sweep, run again, loses nothing, does nothing twice and leaves nothing of the other."""
    status, *there = execute(folder, "killed", cluster)
    assert status.count("reused") == len(kept)
    assert kept == {path: path.stat().st_mtime_ns for path in kept}
    assert tuple(there) == whole


@pytest.mark.slow
def test_a_killed_sweep_goes_on_wherever_its_folder_is(whole, holding, folder):
    """It is killed here, and goes on in a copy of its folder."""
    (folder / "s.yaml").write_text(SHORT)
    client = sweep(folder, "--out", "first")
    made = killed_in_the_middle(client, client, folder / "first")
    shutil.copytree(folder / "first", folder / "killed")
    copied = [folder / "killed" / path.relative_to(folder / "first") for path in made]
    goes_on(folder, {path: path.stat().st_mtime_ns for path in copied}, whole)


@pytest.mark.slow
def test_a_killed_sweep_of_a_cluster_goes_on_there(whole, holding, folder, cluster):
    (folder / "s.yaml").write_text(SHORT)
    client = cluster.sweep("--out", "killed")
    kept = killed_in_the_middle(client, cluster.holder()[0], folder / "killed")
    goes_on(folder, kept, whole, cluster.address)
