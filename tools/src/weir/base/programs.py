# SPDX-License-Identifier: BSD-3-Clause
"""Paths of the C programs, and environment variables that tell them of their caller."""

from __future__ import annotations

import os
import platform
import shlex
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any, TypeVar

from weir.base import places
from weir.base.errors import UserError
from weir.base.signals import held
from weir.base.version import VERSION
from weir.bootstrap import INSTALLED, ROOT

PROGRAMS = {
    "sim": "tools/sim/weir-sim",
    "pcap": "tools/pcap/weir-pcap",
    "check-cc": "tools/check/weir-check-cc",
    "switch": "switch/weir-switch",
    "sender": "sender/weir-sender",
}
worker = threading.local()  # .started: programs of the `several` that it works for
T = TypeVar("T")
PACKAGES = ("numpy", "polars", "matplotlib", "dask")


def identify() -> None:
    """Sets the variables from which C programs learn what the user typed, and which Python runs.

    They write it into their manifests. tools/weir may have set WEIR_COMMAND already.
    """
    os.environ.setdefault("WEIR_PYTHON", sys.executable)
    os.environ.setdefault("WEIR_COMMAND", shlex.join(["weir", *sys.argv[1:]]))
    os.environ["WEIR_VERSIONS"] = ", ".join(f"{name} {v}" for name, v in versions().items())


def versions() -> dict[str, str]:
    """Returns the versions of Python and of the packages that results depend on."""
    found = {"python": platform.python_version()}
    return found | {name: metadata.version(name) for name in PACKAGES}


def build_dir() -> Path:
    """Returns meson's build folder: WEIR_BUILD, else build/ of the clone or installation."""
    return Path(os.environ.get("WEIR_BUILD") or ROOT / "build")


def live_build() -> Path:
    """Returns the build folder of weir-switch and weir-sender.

    An installation without them has those of `weir setup live`, which root builds for every user; a
    user's own come first.
    """
    if not INSTALLED or (build_dir() / PROGRAMS["switch"]).exists():
        return build_dir()
    own, shared = (top / f"live-{VERSION}" for top in (places.cache(), places.SHARED))
    if (own / PROGRAMS["switch"]).exists():
        return own
    return shared if os.geteuid() == 0 or (shared / PROGRAMS["switch"]).exists() else own


@cache
def rebuild(name: str) -> None:
    """Builds a program of this clone anew if tools/weir runs us. UserError: the build failed."""
    wrapper = os.environ.get("WEIR_WRAPPER")
    if wrapper is None:
        return
    done = subprocess.run([wrapper, "--build", name], capture_output=True, text=True)
    if done.returncode != 0:
        raise UserError(done.stderr.strip().replace("\nweir: ", "\n").removeprefix("weir: "), 1)


def find_program(name: str) -> Path:
    """Returns the path of a C program, up to date; UserError: it was not built."""
    path = (live_build() if name in ("switch", "sender") else build_dir()) / PROGRAMS[name]
    if not os.access(path, os.X_OK):
        why = "run tools/weir once to build it, or name the folder of a build in WEIR_BUILD"
        if name in ("switch", "sender"):
            why = "live runs need it and DPDK: `weir setup live` (as root) installs both"
        raise UserError(f"{path} was not built; {why}", 1)
    rebuild(name)
    return path


class Started:
    """The programs that one `several` runs. From its end on each is killed, those to come too."""

    def __init__(self) -> None:
        self.running: set[subprocess.Popen[Any]] = set()
        self.ended = False

    def add(self, process: subprocess.Popen[Any]) -> None:
        self.running.add(process)
        if self.ended:
            process.kill()

    def end(self) -> None:
        self.ended = True
        for process in list(self.running):
            process.kill()


@contextmanager
def child(argv: Sequence[object], **options: Any) -> Iterator[subprocess.Popen[Any]]:
    """Runs a program that `several` kills when this command is ended."""
    started = getattr(worker, "started", None) or Started()
    with subprocess.Popen(list(map(str, argv)), **options) as process:
        started.add(process)
        try:
            yield process
        finally:
            started.running.remove(process)


def awaited(future: Future[T]) -> T:
    """Returns its result. Waits in turns: Python overlooks a signal that comes as a wait begins."""
    while not future.done():
        wait([future], timeout=0.2)
    return future.result()


def several(calls: Iterable[Callable[[], T]]) -> list[T]:
    """Returns the result of each call, on as many CPUs as there are.

    The programs that these run by `child` are killed when this command is ended.
    """
    started = Started()

    def run(call: Callable[[], T]) -> T:
        if started.ended:
            raise CancelledError
        worker.started = started
        return call()

    with held(started.end), ThreadPoolExecutor(os.cpu_count()) as pool:
        try:
            # The first may run before the last call is there.
            futures = [pool.submit(run, call) for call in calls]
            return [awaited(future) for future in futures]
        except BaseException:
            started.end()
            raise
