# SPDX-License-Identifier: BSD-3-Clause
"""Trials: configs in, summaries out, without a process or a folder for each.

A few weir-sim processes (`weir-sim --trials`) read configs line by line as JSON and answer each
with its summary. Answers are in the order of the configs, whatever the number of processes.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from types import TracebackType
from typing import Any

from weir.base import configs
from weir.base.errors import UserError
from weir.base.programs import find_program

Summary = dict[str, Any]


class Trials:
    """Processes that run trials; a context. `folder` is where files that configs name are found."""

    def __init__(self, folder: Path, workers: int | None = None) -> None:
        count = workers or os.cpu_count() or 1
        self._pool = ThreadPoolExecutor(count)
        self._free: SimpleQueue[subprocess.Popen[bytes]] = SimpleQueue()
        self._processes = [self._begin(folder) for _ in range(count)]
        for process in self._processes:
            self._free.put(process)

    @staticmethod
    def _begin(folder: Path) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [str(find_program("sim")), "--trials"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=folder,
            start_new_session=True,  # Ctrl-C is for us: the search then ends between two trials
        )

    def __enter__(self) -> Trials:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        for process in self._processes:
            process.send_signal(signal.SIGKILL if kind else signal.SIGTERM)
            process.communicate()
        self._pool.shutdown()

    def run(self, several: Sequence[dict[str, Any]]) -> list[Summary]:
        """The summary of each config; a config that weir-sim refuses is a UserError."""
        return list(self._pool.map(self._one, several))

    def _one(self, config: dict[str, Any]) -> Summary:
        process = self._free.get()
        try:
            return self._ask(process, json.dumps(configs.plain(config)))
        finally:
            self._free.put(process)

    @staticmethod
    def _ask(process: subprocess.Popen[bytes], line: str) -> Summary:
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
        return checked(answer, line)


def checked(answer: str | bytes, line: str) -> Summary:
    """The summary that weir-sim answers a config with; UserError: it refuses the config."""
    summary: Summary = json.loads(answer)
    if "error" in summary:
        raise UserError(f"{summary['error']} in the config {line}", 1)
    return summary
