# SPDX-License-Identifier: BSD-3-Clause
"""Commands that a build of a kernel or of a QUIC stack runs."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from weir import bootstrap
from weir.base.errors import UserError
from weir.base.signals import held
from weir.guests.kernels import cache

# With these, and the same compiler, the binary has the same bytes on every machine.
REPRODUCIBLE = {
    "KBUILD_BUILD_TIMESTAMP": "Thu Jan  1 00:00:00 UTC 1970",
    "KBUILD_BUILD_USER": "weir",
    "KBUILD_BUILD_HOST": "weir",
    "KBUILD_BUILD_VERSION": "1",
    "LC_ALL": "C",
}


def output(argv: list[str]) -> str:
    """Returns what a command prints; UserError: it failed."""
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode != 0:
        said = (done.stderr.strip() or done.stdout.strip() or "no output").splitlines()[-1]
        raise UserError(f"guests: {argv[0]} failed: {said}", 1)
    return done.stdout


def failed(what: str, log: Path) -> UserError:
    """Returns the error of a command by its log, which is kept: its folder is about to go."""
    kept = shutil.copyfile(log, cache() / "failed.log")
    return UserError(f"guests: {what} failed: {bootstrap.last_error(log)}; see {kept}", 1)


def install(needs: Iterable[bootstrap.Need]) -> None:
    """Installs the Debian packages that are missing; UserError: cannot."""
    missing = [need.package for need in needs if not need.met()]
    if not missing:
        return
    bootstrap.say(f"installing Debian packages: {' '.join(missing)}")
    with tempfile.TemporaryDirectory() as log:
        try:
            bootstrap.apt_or_sentence(missing, Path(log))
        except bootstrap.SetupError as error:
            raise UserError(f"guests: {error}", 1) from error


@contextmanager
def piped(*commands: list[str]) -> Iterator[subprocess.Popen[bytes]]:
    """Runs commands in a pipe and yields the last one's output. All end with the block."""
    running: list[subprocess.Popen[bytes]] = []
    try:
        for argv in commands:
            before = running[-1].stdout if running else subprocess.DEVNULL
            running.append(subprocess.Popen(argv, stdin=before, stdout=subprocess.PIPE))
            if running[1:] and running[-2].stdout is not None:
                running[-2].stdout.close()
        yield running[-1]
    finally:
        for process in running:
            process.kill()
            process.wait()
            if process.stdout is not None:
                process.stdout.close()


@contextmanager
def group(argv: list[str], **options: Any) -> Iterator[subprocess.Popen[Any]]:
    """Runs a program in a session of its own; no process of the session outlives the block.

    A signal that comes while the program starts is delivered once it can be killed.
    """
    process = None
    try:
        with held():
            process = subprocess.Popen(argv, start_new_session=True, **options)
        yield process
    finally:
        if process is not None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            for pipe in (process.stdin, process.stdout, process.stderr):
                if pipe is not None:
                    pipe.close()


def make(
    tree: Path,
    objects: Path,
    log: Path,
    *targets: str,
    line: Callable[[bytes], None] = lambda said: None,
) -> None:
    """Runs make, its output in a log. Interrupted, it ends with all that it started."""
    argv = ["nice", "make", "-C", str(tree), "ARCH=um", f"O={objects}", f"-j{jobs()}", *targets]
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    environment = {**os.environ, **REPRODUCIBLE}
    with log.open("ab") as out, group(argv, env=environment, **pipes) as process:
        for said in process.stdout or ():
            out.write(said)
            line(said)
        status = process.wait()
    if status != 0:
        raise failed(f"make {targets[-1]}", log)


def jobs() -> int:
    return len(os.sched_getaffinity(0))
