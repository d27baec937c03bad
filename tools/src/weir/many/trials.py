# SPDX-License-Identifier: BSD-3-Clause
"""Runs configs of which only the summaries are wanted: the trials of `weir attack`.

On this machine a few weir-sim processes (`weir-sim --trials`) read configs line by line as JSON and
answer each with its summary: no process and no folder for each. On a cluster a config travels to a
worker as a sweep's cell does. Summaries are in the order of the configs, whoever ran them.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from queue import SimpleQueue

from weir.analysis import run_summary
from weir.analysis.run_summary import RunSummary
from weir.base import configs
from weir.base.configs import Config
from weir.base.errors import UserError
from weir.base.programs import find_program
from weir.many import cluster as clusters
from weir.many import travel
from weir.many.dispatch import Dispatch

Trials = Callable[[Sequence[Config]], list[RunSummary]]  # UserError: weir-sim refuses a config

JOBS = 4  # of a cluster with queues, without --workers


@contextmanager
def opened(
    folder: Path, workers: int | None = None, cluster: str | None = None
) -> Iterator[Trials]:
    """Runs trials, `workers` at a time [one per CPU], here or on a cluster.

    folder is where files that configs name are found.
    """
    if cluster is None:
        with _processes(folder, workers or os.cpu_count() or 1) as run:
            yield run
        return
    clusters.check(cluster, workers)
    with clusters.connected(cluster, workers, workers or JOBS) as crew:
        yield _travelling(crew)


@contextmanager
def _processes(folder: Path, count: int) -> Iterator[Trials]:
    argv = [str(find_program("sim")), "--trials"]
    started = [
        # Ctrl-C is for us: the search then ends between two trials.
        subprocess.Popen(
            argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=folder, start_new_session=True
        )
        for _ in range(count)
    ]
    free: SimpleQueue[subprocess.Popen[bytes]] = SimpleQueue()
    for process in started:
        free.put(process)

    def run(config: Config) -> RunSummary:
        process = free.get()
        try:
            return _answer(process, json.dumps(configs.plain(config)))
        finally:
            free.put(process)

    with ThreadPoolExecutor(count) as pool:
        number = signal.SIGKILL
        try:
            yield lambda several: list(pool.map(run, several))
            number = signal.SIGTERM
        finally:
            for process in started:
                process.send_signal(number)
                process.communicate()


def _answer(process: subprocess.Popen[bytes], line: str) -> RunSummary:
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(f"{line}\n".encode())
        process.stdin.flush()
        answer = process.stdout.readline()
    except BrokenPipeError:
        answer = b""
    if not answer:
        raise UserError(f"weir-sim ended in a trial (status {process.wait()}): {line}", 1)
    return _checked(answer, line)


def _travelling(crew: clusters.Crew) -> Trials:
    asked: list[Config] = []
    dispatch = Dispatch(
        crew, lambda index: travel.Trial(*travel.pack(configs.plain(asked[index]))), None
    )

    def run(several: Sequence[Config]) -> list[RunSummary]:
        asked[:] = several
        ended = dict(dispatch.results([()] * len(several)))
        found = []
        for index, config in enumerate(several):
            result = ended[index]
            if result.message:
                raise UserError(f"{result.message} in the config {json.dumps(config)}", 1)
            found.append(_checked(result.summary, json.dumps(config)))
        return found

    return run


def _checked(answer: str | bytes, line: str) -> RunSummary:
    summary = json.loads(answer)
    if "error" in summary:
        raise UserError(f"{summary['error']} in the config {line}", 1)
    return run_summary.decode(summary, "trial")
