# SPDX-License-Identifier: BSD-3-Clause
"""A cell travels: its resolved config and the files that it reads go to a worker as bytes, the
run folder comes back as a compressed archive. A worker shares no path with anybody.

On this machine the same code runs; config and files are then read where they are, and the run
folder is written beside its place.
"""

from __future__ import annotations

import functools
import io
import json
import os
import shutil
import signal
import subprocess
import tarfile
import tempfile
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from weir.base import foreign, programs
from weir.base.errors import UserError
from weir.runner import config_files, session
from weir.runner.options import Options

POLL_S = 0.2  # how often a running cell looks whether it is still wanted
ARCHIVE_BYTES_MAX = 1 << 30  # of a run folder on its way back
LOCAL = ("", "")  # the identity of this very process
COPY = "file-"  # what a run folder's copies of files begin with
PROBE = {  # a cell whose digest tells whether a worker computes what we do
    "seed": 1,
    "duration": "200ms",
    "paths": {
        "forward": [
            {"link": {"rate": "2Mbit", "queue": {"fifo": {"limit": "9pkt"}}}},
            {"delay": {"delay": "5ms"}},
        ],
        "reverse": [{"delay": {"delay": "5ms"}}],
    },
    "flows": [{"count": 2, "cc": "cubic"}],
}


@dataclass(frozen=True)
class Task:
    """A cell on its way to a worker."""

    name: str
    config: str  # its file, among `files` or with its whole path
    options: tuple[str, ...]  # of weir-sim
    files: tuple[tuple[str, bytes], ...]  # that are put into its folder
    environment: tuple[tuple[str, str], ...]  # for the manifest
    own_cpu: bool = False


@dataclass(frozen=True)
class Trial:
    """A config of which only the summary is wanted, on its way to a worker."""

    config: bytes  # a line of JSON, for weir-sim --trials
    files: tuple[tuple[str, bytes], ...]  # that it names


Work = Task | Trial


@dataclass(frozen=True)
class Result:
    """A worker's answer; message is empty if the cell ran well."""

    message: str
    run: Path | bytes | None  # its folder, here or as an archive; None: there is none
    summary: str = ""  # of a trial


def content(path: Path) -> bytes:
    """Returns a file's bytes, read once while it does not change."""
    return _read(path, path.stat().st_mtime_ns)


@functools.lru_cache(maxsize=32)
def _read(path: Path, _changed_ns: int) -> bytes:
    return path.read_bytes()  # the same object for each cell: it travels once in a message


def pack(config: object) -> tuple[bytes, tuple[tuple[str, bytes], ...]]:
    """Returns a resolved config as JSON, and the files that it names by their names.

    In it they are named as a run folder names its copies.
    """
    names: dict[str, Path] = {}

    def named(path: Path) -> str:
        own, number = path.name.removeprefix(COPY), 1
        name = f"{COPY}{own}"
        while names.setdefault(name, path) != path:
            number += 1
            name = f"{COPY}{number}-{own}"
        return name

    moved = config_files.renamed(config, named)
    files = tuple((name, content(path)) for name, path in names.items())
    return f"{json.dumps(moved)}\n".encode(), files


def run_tasks(tasks: Sequence[Work], out: Path | None) -> list[Result]:
    """Runs cells in a worker, one after the other, in `out` [a folder of its own]."""
    return [run_trial(one) if isinstance(one, Trial) else run_task(one, out) for one in tasks]


def run_trial(trial: Trial) -> Result:
    """Runs a trial in a worker."""
    with tempfile.TemporaryDirectory(prefix="weir-") as folder:
        for name, content in trial.files:
            (Path(folder) / name).write_bytes(content)
        argv = [str(programs.find_program("sim")), "--trials"]
        done = run_child(argv, {}, folder=Path(folder), given=trial.config)
    failed = done.returncode or not done.stdout
    return Result(reason(done.returncode, done.stderr) if failed else "", None, done.stdout)


def run_task(task: Task, out: Path | None) -> Result:
    """Runs a cell in a worker."""
    parent = out or Path(tempfile.gettempdir())
    made = parent / f".{task.name}.{uuid.uuid4().hex}.cell"
    made.mkdir()
    kept = False
    try:
        for name, content in task.files:
            (made / name).write_bytes(content)
        message, run = _simulate(task, made)
        if run is None or out is not None:
            kept = run is not None
            return Result(message, run)
        return _archived(message, run)
    finally:
        if not kept:
            shutil.rmtree(made, ignore_errors=True)


def _simulate(task: Task, made: Path) -> tuple[str, Path | None]:
    """Returns what went wrong, and the run folder, unless there is none."""
    run = made / "run"
    pinned = ["taskset", "-c", str(own_cpu())] if task.own_cpu else []
    argv = [str(programs.find_program("sim")), str(made / task.config), *task.options]
    done = run_child(
        [*pinned, *argv, "--out", str(run)],
        dict(task.environment),
        folder=made if task.files else None,  # a capture is looked for in the working directory
    )
    message = reason(done.returncode, done.stderr) if done.returncode else ""
    for ours, theirs in ((run, task.name), (made / task.config, task.config)):
        message = message.replace(str(ours), theirs)
    return message, run if run.exists() and done.returncode >= 0 else None


def _archived(message: str, run: Path) -> Result:
    """Returns the run folder as bytes, if it is not too large."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz", compresslevel=1) as archive:
        for path in sorted(run.iterdir()):
            archive.add(path, path.name)
            if packed.getbuffer().nbytes > ARCHIVE_BYTES_MAX:
                return Result(
                    "its folder is larger than 1 GiB, compressed: lower telemetry.level", None
                )
    return Result(message, packed.getvalue())


def unpack(archive: bytes, place: Path) -> None:
    """Unpacks a run folder from its archive."""
    with tarfile.open(fileobj=io.BytesIO(archive)) as packed:
        for member in packed:
            foreign.extract(packed, member, place)


def run_child(
    argv: Sequence[str],
    environment: dict[str, str],
    *,
    folder: Path | None = None,
    given: bytes = b"",
) -> subprocess.CompletedProcess[str]:
    """Runs a program in a folder [the working directory], to which standard input is given.

    It ends with this worker, or with the task.
    """
    from distributed import Reschedule

    with tempfile.TemporaryFile() as standard:
        standard.write(given)
        standard.seek(0)
        child = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", *argv],  # the kernel's part, should we be killed
            stdin=standard,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=folder,
            text=True,
            errors="replace",
            process_group=0,  # Ctrl-C is for us
            env=os.environ | environment,
        )
    with child:  # closes its pipes, and waits
        try:
            while True:
                try:
                    said = child.communicate(timeout=POLL_S)
                    return subprocess.CompletedProcess(argv, child.returncode, *said)
                except subprocess.TimeoutExpired:
                    if not wanted():
                        raise Reschedule from None
        finally:
            child.kill()


def own_cpu() -> int:
    """Returns the CPU of this worker, among those of this process, by the worker's number."""
    from distributed import get_worker

    cpus = sorted(os.sched_getaffinity(0))
    return cpus[int(get_worker().name) % len(cpus)]


def wanted() -> bool:
    """Returns whether this worker runs and its scheduler still waits for the task at hand."""
    from distributed import Status, get_worker

    worker = get_worker()
    task = worker.state.tasks.get(worker.get_current_task())
    return worker.status == Status.running and task is not None and task.state == "executing"


def reason(status: int, stderr: str) -> str:
    """Returns why weir-sim failed: what it said last, or what ended it."""
    if status < 0:
        return f"weir-sim was ended by {signal.Signals(-status).name}"
    if status in session.INTERRUPTED:
        return "the run was interrupted"
    lines = [line for line in stderr.splitlines() if line.strip()]
    return lines[-1].removeprefix("weir-sim: ") if lines else f"weir-sim exited with {status}"


def resolved(cell: Options) -> str:
    """Returns a cell's config as weir-sim prints it. UserError: weir-sim refuses it."""
    argv = [str(programs.find_program("sim")), str(cell.config), *cell.settings(), "--print-config"]
    done = subprocess.run(argv, capture_output=True, text=True)
    if done.returncode != 0:
        raise UserError(reason(done.returncode, done.stderr), done.returncode)
    return done.stdout


def program_version(program: Path) -> str:
    """Returns what weir-sim --version says: name, version, commit."""
    return subprocess.run(
        [program, "--version"], capture_output=True, text=True, check=True
    ).stdout.strip()


def identity() -> tuple[str, str]:
    """Returns weir-sim's version here and the digest that it finds, or "" and what is wrong."""
    programs.identify()
    try:
        program = programs.find_program("sim")
        version = program_version(program)
        done = subprocess.run(
            [program, "--trials"], input=json.dumps(PROBE) + "\n", capture_output=True, text=True
        )
        return version, str(json.loads(done.stdout)["digest"])
    except (UserError, OSError, subprocess.SubprocessError, ValueError, KeyError) as error:
        return "", f"cannot run weir-sim: {error}"
