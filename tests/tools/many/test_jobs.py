# SPDX-License-Identifier: BSD-3-Clause
"""Jobs of a queue whose programs are scripts of the test; tests/slurm has a real one."""

import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import cluster_bed
import dask
import pytest
from small import CONFIG
from weir.base.errors import UserError
from weir.many import jobs
from weir.many.cells import run_cells
from weir.runner.options import Options

PBS = {"queue": "short", "cores": 4, "memory": "6GB", "walltime": "01:30:00", "interface": "lo"}


@pytest.fixture
def queue(tmp_path, monkeypatch):
    """Programs of a queue, by their shell scripts."""
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=":")
    monkeypatch.setattr(jobs, "REFRESH_S", 0.2)
    monkeypatch.setattr(dask.config, "PATH", str(tmp_path / "dask"))  # dask_jobqueue writes there
    import_module("dask_jobqueue")  # and reads its settings
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bin").mkdir()

    def program(name, script):
        (tmp_path / "bin" / name).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / "bin" / name).chmod(0o755)

    return program


def sweep(folder, kind, workers):
    (folder / "x.yaml").write_text(CONFIG)
    cell = Options(config=folder / "x.yaml", out=Path("a"))
    return run_cells([cell], folder / "out", cluster=kind, workers=workers)


def without_names(script):
    return re.sub(r"tcp://\S+|(?<=--name )\S+", "", script)


def test_a_job_of_pbs_is_written_as_dask_jobqueue_does(queue, weir_sim, tmp_path, capfd):
    """And asked for three times, as none of them has a worker."""
    queue("qsub", 'cp "$1" script-$$ && echo $$.server')
    queue("qselect", "echo 1.server")
    queue("qdel", "")
    with (
        dask.config.set({f"jobqueue.pbs.{key}": value for key, value in PBS.items()}),
        pytest.raises(UserError) as error,
    ):
        sweep(tmp_path, "pbs", workers=1)
    said = (
        "3 jobs ended before their worker was there: what they wrote says why"
        " (log-directory in Dask's jobqueue.yaml)"
    )
    assert str(error.value) == f"--cluster pbs: {said}"
    assert error.value.status == 1
    assert capfd.readouterr().err == f"weir: pbs is asked for no more jobs: {said}\n"
    scripts = [path.read_text() for path in tmp_path.glob("script-*")]
    from dask_jobqueue import PBSCluster

    with PBSCluster(**PBS, processes=1, scheduler_options={"dashboard": False}) as theirs:
        wanted = without_names(theirs.job_script())
    assert [without_names(script) for script in scripts] == [wanted] * 3
    for line in (
        "#PBS -q short",
        "#PBS -l select=1:ncpus=4:mem=5723MB",
        "#PBS -l walltime=01:30:00",
    ):
        assert line in wanted


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ('echo "sbatch: error: invalid partition specified: nope" >&2; exit 1',
         "sbatch: error: invalid partition specified: nope"),
        (None, "sbatch: No such file or directory"),
    ],
)  # fmt: skip
def test_a_queue_that_takes_no_job_is_one_sentence(
    queue, weir_sim, tmp_path, monkeypatch, script, said
):
    if script:
        queue("squeue", "")
        queue("sbatch", script)
    else:
        monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    with pytest.raises(UserError, match=f"^--cluster slurm: {said}$"):
        sweep(tmp_path, "slurm", workers=2)


class Made:
    """A cluster of which all jobs are numbered."""

    def __init__(self, count):
        self.asked = 0
        self.workers = self.worker_spec = {}
        self.scale(count)

    def scale(self, jobs):
        while len(self.workers) < jobs:
            self.asked += 1
            self.workers[f"w{self.asked}"] = SimpleNamespace(job_id=str(self.asked))

    def scale_down(self, names):
        for name in names:
            del self.workers[name]

    def sync(self, call, *args):
        return call(*args)


@pytest.fixture
def kept(monkeypatch):
    """Two jobs, and the numbers of those that the queue has."""
    there = {"1", "2"}
    monkeypatch.setattr(jobs, "REFRESH_S", 0)
    monkeypatch.setattr(jobs, "listed", lambda queue: there)
    made = Made(2)
    return jobs.Jobs("slurm", made, 2, []), made, there


def test_a_job_that_has_ended_is_replaced(kept, capsys):
    """However often, if its worker had begun."""
    several, made, there = kept
    for number in range(1, 20):
        several.keep(made.workers)
        there.remove(str(number))
        there.add(str(number + 2))  # what is asked for next
        several.keep([])
    assert made.asked == 21
    assert list(made.workers) == ["w20", "w21"]
    assert capsys.readouterr().err == ""


def test_jobs_that_never_begin_are_not_asked_for_for_ever(kept, capsys):
    """What works goes on, and with its end there is a sentence."""
    several, made, there = kept
    for _ in range(10):
        several.keep(["w1"])
    assert made.asked == 2
    there.remove("2")
    for _ in range(10):
        several.keep(["w1"])
    assert made.asked == 4
    assert list(made.workers) == ["w1"]
    assert capsys.readouterr().err.count("3 jobs ended before their worker was there") == 1
    there.remove("1")
    with pytest.raises(UserError, match="--cluster slurm: 3 jobs ended before"):
        several.keep([])


def test_a_queue_that_does_not_answer_changes_nothing(kept, monkeypatch):
    several, made, _ = kept
    monkeypatch.setattr(jobs, "listed", lambda queue: None)
    several.keep([])
    assert made.asked == 2
    assert jobs.listed(jobs.Queue("", ("false",))) is None


def test_a_script_that_has_run_has_one_row_in_the_page():
    page = cluster_bed.PAGE.read_text()
    assert page.count(cluster_bed.BEGIN) == page.count(cluster_bed.END) == 1
    for day in (1, 2):
        page = cluster_bed.with_row(page, f"| `tests/slurm` | two | of day {day} |")
    assert page.count("| `tests/slurm` |") == 1
    assert "| `tests/slurm` | two | of day 2 |" in page


def test_ctrl_c_stays_python_s():
    """The package of batch queues sets a handler of its own: a sweep exited with status 0."""
    script = (
        "import signal; from weir.many import jobs; jobs.needed('dask_jobqueue')\n"
        "assert signal.getsignal(signal.SIGINT) is signal.default_int_handler"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
