# SPDX-License-Identifier: BSD-3-Clause
"""Workers as jobs of a cluster's queue, one worker each.

A job that has ended is asked for again: its node died, its time was over, somebody cancelled it.
No more are asked for once the queue has refused one, or as many as there are workers (three at
least) have ended before their worker was there. What still works goes on; when nothing does, one
sentence says why.
"""

from __future__ import annotations

import importlib
import logging
import re
import subprocess
import sys
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING

from weir.base.errors import UserError
from weir.base.signals import held

if TYPE_CHECKING:
    from dask_jobqueue.core import Job, JobQueueCluster

REFRESH_S = 10.0  # between two looks at the queue
ANSWER_S_MAX = 60.0  # for the queue to answer
BARREN_MIN = 3  # jobs without a worker, before no more are asked for
JOBS_MAX = 100  # without --workers
LOST_S = "7 days"  # for Dask to take a job for ended whose worker is gone: the queue knows better


@dataclass(frozen=True)
class Queue:
    """A program that queues jobs."""

    cluster: str  # of dask_jobqueue
    listed: tuple[str, ...]  # prints the numbers of the jobs that are waiting or run


QUEUES = {
    "slurm": Queue("SLURMCluster", ("squeue", "--me", "--noheader", "--format=%A")),
    "pbs": Queue("PBSCluster", ("qselect",)),
}


class Jobs:
    """Jobs of a cluster, as many as were asked for while that is of use."""

    def __init__(self, kind: str, made: JobQueueCluster, count: int, refused: list[str]) -> None:
        self.kind, self.made, self.count = kind, made, count
        self.refused = refused  # what the queue said when it took none
        self.began: set[str] = set()  # whose worker was there
        self.barren = 0  # ended before
        self.given_up = ""  # why no more are asked for
        self.refreshed_s = time.monotonic()

    def keep(self, workers: Collection[str]) -> None:
        """Replaces what has ended. UserError: no job is left and no more are asked for.

        workers: the names of those that are there, which are their jobs'.
        """
        self.began.update(workers)
        if not self._due():
            return
        self.refreshed_s = time.monotonic()
        jobs = {name: job.job_id for name, job in list(self.made.workers.items())}  # None: refused
        submitting = len(self.made.worker_spec) > len(jobs)
        there = listed(QUEUES[self.kind])
        ended = [
            name
            for name, number in jobs.items()
            if number is None or (there is not None and number not in there)
        ]
        if ended:
            self._replace(ended)
        if self.given_up and len(ended) == len(jobs) and not submitting:
            raise UserError(f"--cluster {self.kind}: {self.given_up}", 1)

    def _due(self) -> bool:
        news = bool(self.refused) and not self.given_up
        return news or time.monotonic() - self.refreshed_s >= REFRESH_S

    def _replace(self, ended: Collection[str]) -> None:
        self.barren += len(set(ended) - self.began)
        self.began.difference_update(ended)  # the name may be given again
        if not self.given_up:
            self._judge()
        self.made.sync(self.made.scale_down, list(ended))
        if not self.given_up:
            self.made.scale(jobs=self.count)

    def _judge(self) -> None:
        """Decides whether more jobs are asked for."""
        if self.refused:
            self.given_up = self.refused[-1]
        elif self.barren >= max(BARREN_MIN, self.count):
            self.given_up = (
                f"{self.barren} jobs ended before their worker was there: what they wrote says why"
                " (log-directory in Dask's jobqueue.yaml)"
            )
        else:
            return
        print(f"weir: {self.kind} is asked for no more jobs: {self.given_up}", file=sys.stderr)


def listed(queue: Queue) -> set[str] | None:
    """Returns the numbers of jobs that wait or run; None if the queue does not answer."""
    try:
        done = subprocess.run(
            queue.listed, capture_output=True, text=True, timeout=ANSWER_S_MAX, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return set(re.findall(r"^\s*(\d+)", done.stdout, re.MULTILINE))


@contextmanager
def queued(kind: str, count: int) -> Iterator[Jobs]:
    """Queues jobs; Dask's jobqueue.yaml says partition, cores, memory and wall time."""
    cluster = getattr(needed("dask_jobqueue"), QUEUES[kind].cluster)
    import dask

    refused: list[str] = []
    with dask.config.set({"distributed.deploy.lost-worker-timeout": LOST_S}):
        try:
            made = cluster(job_cls=_reporting(cluster.job_cls, refused), **arguments(kind))
            made.scale(jobs=count)
        except (OSError, RuntimeError, ValueError) as error:
            raise UserError(f"--cluster {kind}: {str(error).splitlines()[0]}", 1) from None
        with made:
            yield Jobs(kind, made, count, refused)


def arguments(kind: str) -> dict[str, object]:
    """Returns arguments of dask_jobqueue's cluster, with defaults for its file."""
    import dask

    said = dask.config.get(f"jobqueue.{kind}", {})
    return {
        "cores": said.get("cores") or 1,
        "processes": 1,  # a worker of several threads, so that a job is one worker
        "memory": said.get("memory") or "2GB",
        "scheduler_options": {"dashboard": False} | (said.get("scheduler-options") or {}),
        "silence_logs": logging.CRITICAL,
    }


def _reporting(job: type[Job], refused: list[str]) -> type[Job]:
    """Makes the class of a job that says why the queue refused it, and then counts as ended."""
    from distributed import Status

    class Reporting(job):  # type: ignore[misc, valid-type]
        async def start(self) -> None:
            try:
                await super().start()
            except (OSError, RuntimeError, ValueError) as error:
                refused.append(_sentence(error))
                self.status = Status.running  # Dask asserts it

        async def close(self) -> None:
            with suppress(OSError):
                await super().close()
            self.status = Status.closed  # this too

    return Reporting


def _sentence(error: Exception) -> str:
    """Returns the last line that a program of the queue said, or why there is no such program."""
    if isinstance(error, OSError):
        return f"{error.filename}: {error.strerror}"
    return [line for line in str(error).splitlines() if line.strip()][-1]


def needed(module: str) -> ModuleType:
    """Imports a package that only clusters need."""
    try:
        with held():  # dask_jobqueue's handler of SIGINT stays out: it exits with status 0
            return importlib.import_module(module)
    except ImportError:
        name = module.replace("_", "-")
        raise UserError(
            f"--cluster needs the Python package {name}: pip install 'weir-testbed[clusters]'", 1
        ) from None
