# SPDX-License-Identifier: BSD-3-Clause
"""Runs configs of which only the summaries are wanted: the trials of `weir attack`, and the cells
of a sweep of which only the table is kept (tabled.py).

On this machine a few weir-sim processes (`weir-sim --trials`) read configs line by line as JSON and
answer each with its summary: no process and no folder for each. On a cluster a config travels to a
worker as a sweep's cell does. Summaries are in the order of the configs, whoever ran them.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from queue import SimpleQueue

import msgspec

from weir.analysis import run_summary
from weir.analysis.run_summary import RunSummary
from weir.base import configs
from weir.base.configs import Config
from weir.base.errors import UserError
from weir.base.foreign import Json
from weir.base.programs import find_program
from weir.many import cluster as clusters
from weir.many import travel
from weir.many.dispatch import Dispatch

Trials = Callable[[Sequence[Config]], list[RunSummary]]  # UserError: weir-sim refuses a config

REFUSED = re.compile(r"trial:\d+:\d+: (.*)", re.DOTALL)  # a config: no run began
JOBS = 4  # of a cluster with queues, without --workers


@contextmanager
def opened(
    folder: Path, workers: int | None = None, cluster: str | None = None
) -> Iterator[Trials]:
    """Runs trials, `workers` at a time [one per CPU], here or on a cluster.

    folder is where files that configs name are found.
    """
    if cluster is None:
        with answering(folder, workers) as ask:
            yield lambda several: _summaries(several, ask)
        return
    clusters.check(cluster, workers)
    with clusters.connected(cluster, workers, workers or JOBS) as crew:
        yield _travelling(crew)


@contextmanager
def answering(
    folder: Path, workers: int | None = None, *config: str
) -> Iterator[Callable[[Iterable[str]], Iterator[Json]]]:
    """Answers lines as `weir-sim [config] --trials` does, several at a time, in their order.

    An answer is a summary or {"error": "the sentence"}, also where weir-sim ended in a line: then
    another one goes on.
    """
    argv = ["setpriv", "--pdeathsig", "KILL", str(find_program("sim")), *config, "--trials"]
    count, over = workers or os.cpu_count() or 1, False
    free: SimpleQueue[subprocess.Popen[bytes]] = SimpleQueue()
    started: list[subprocess.Popen[bytes]] = []

    def start() -> None:
        # Ctrl-C is for us: the search then ends between two trials.
        process = subprocess.Popen(
            argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=folder, start_new_session=True
        )
        started.append(process)
        free.put(process)

    def ask(line: str) -> Json:
        process = free.get()
        if answer := _answer(process, line):
            free.put(process)
            return msgspec.json.decode(answer, type=Json)
        if not over:
            start()
        return {"error": f"weir-sim ended in a trial (status {process.wait()})"}

    for _ in range(count):
        start()
    with ThreadPoolExecutor(count) as pool:
        number = signal.SIGKILL
        try:
            yield lambda lines: pool.map(ask, lines)
            number = signal.SIGTERM
        finally:
            over = True
            pool.shutdown(wait=False, cancel_futures=True)
            for process in started:
                process.send_signal(number)
                process.communicate()


def _answer(process: subprocess.Popen[bytes], line: str) -> bytes:
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(f"{line}\n".encode())
        process.stdin.flush()
        return process.stdout.readline()
    except BrokenPipeError:
        return b""


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
            found.append(_checked(json.loads(result.summary), config))
        return found

    return run


def _summaries(
    several: Sequence[Config], ask: Callable[[Iterable[str]], Iterator[Json]]
) -> list[RunSummary]:
    answers = ask(json.dumps(configs.plain(config)) for config in several)
    return [_checked(answer, config) for answer, config in zip(answers, several, strict=True)]


def _checked(summary: Json, config: Config) -> RunSummary:
    if "error" not in summary:
        return run_summary.decode(summary, "trial")
    if refused := REFUSED.match(str(summary["error"])):
        raise UserError(refused[1])
    raise UserError(f"{summary['error']} in the config {json.dumps(configs.plain(config))}", 1)
