# SPDX-License-Identifier: BSD-3-Clause
"""Runs many experiments in virtual time on Dask, each once, and keeps what is done.

A cell is one run of weir-sim. It writes into a folder of its own making beside out/NAME, which is
renamed to out/NAME at the end: whatever is killed on the way, out/NAME is a whole run or not there,
and the next batch removes what was left.

A cell is not run again when out/NAME holds a run that ended by itself, of the same resolved config
(weir-sim --print-config) by the same version and commit of weir-sim, whose ledger balances.

The workers of a scheduler on other machines need the same paths: config, weir-sim and out.
"""

from __future__ import annotations

import fcntl
import logging
import os
import re
import shutil
import signal
import subprocess
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from weir import runner
from weir.analysis import folder
from weir.errors import UserError

if TYPE_CHECKING:
    from distributed import Client

Fate = Literal["done", "reused", "failed"]

CONNECT_S_MAX = 30.0  # for a scheduler to answer and to have a worker
POLL_S = 0.2  # how often a running cell looks whether it is still wanted
LOCK = ".weir-lock"
FILE = re.compile(r"^( *(?:- )?(?:file|plugin|python): ).*$", re.MULTILINE)
PYTHON = re.compile(r"^ *(?:- )?python: ", re.MULTILINE)  # of its class a config has no digest


@dataclass(frozen=True)
class Cell:
    """One run: what `weir-sim CONFIG -o ... --seed N --duration T` is given.

    name is unique in its batch and becomes a folder's: letters, digits and `._=,+-`.
    """

    name: str
    config: Path
    override: tuple[str, ...] = ()
    seed: int | None = None
    duration: str | None = None

    def argv(self, program: Path) -> list[str]:
        """The command line of weir-sim, without --out."""
        argv = [str(program), str(self.config)]
        for override in self.override:
            argv += ["-o", override]
        if self.seed is not None:
            argv += ["--seed", str(self.seed)]
        if self.duration is not None:
            argv += ["--duration", self.duration]
        return argv


@dataclass(frozen=True)
class Outcome:
    """What became of a cell; message says in a sentence why it failed, else it is empty."""

    cell: Cell
    folder: Path
    status: Fate
    message: str


def parted(outcomes: Iterable[Outcome]) -> tuple[dict[str, Path], dict[str, str]]:
    """By cell's name: the folders of those that ran, and why the others failed."""
    ran, failed = {}, {}
    for outcome in outcomes:
        if outcome.status == "failed":
            failed[outcome.cell.name] = outcome.message
        else:
            ran[outcome.cell.name] = outcome.folder
    return ran, failed


@dataclass(frozen=True)
class Batch:
    """What all cells of a batch share, as it travels to the workers; paths are absolute."""

    out: Path
    program: Path
    version: str | None  # weir-sim's; None: runs of any version are reused
    one_cpu: bool = False  # each worker here has a CPU of its own
    one_thread: bool = True  # of each cell; False: as many as pay


def run_cells(
    cells: Sequence[Cell],
    out: Path,
    *,
    scheduler: str | None = None,
    workers: int | None = None,
    any_version: bool = False,
    one_cpu: bool = False,
    on_outcome: Callable[[Outcome, int, int], None] | None = None,
) -> list[Outcome]:
    """Runs cells into out/NAME; one outcome for each, in the order given.

    scheduler is the address of a Dask scheduler (tcp://host:port); without one, `workers` cells at
    a time are run here [as many as there are CPUs]. any_version reuses runs of
    other commits too. one_cpu gives each local worker a CPU of its own: runs with guests, which
    otherwise use all CPUs, are faster side by side. on_outcome is told each outcome, how many
    there are and will be.
    UserError: names that cannot be, no weir-sim, no scheduler, or another batch in `out`.
    """
    check_names(cells)
    program = runner.find_program("sim").resolve()
    out = out.resolve()
    version = None if any_version else program_version(program)
    one_thread = scheduler is not None or not spare_cpus(workers, len(cells))
    batch = Batch(out, program, version, one_cpu and scheduler is None, one_thread)
    absolute = [Cell(c.name, c.config.resolve(), c.override, c.seed, c.duration) for c in cells]
    outcomes: dict[int, Outcome] = {}
    with ExitStack() as stack:
        stack.enter_context(locked(out))
        if cells:
            client = stack.enter_context(connected(scheduler, workers, len(cells)))
            for index, (status, message) in completed(client, absolute, batch):
                cell = cells[index]
                outcomes[index] = Outcome(cell, out / cell.name, status, message)
                if on_outcome is not None:
                    on_outcome(outcomes[index], len(outcomes), len(cells))
    return [outcomes[index] for index in range(len(cells))]


def check_names(cells: Sequence[Cell]) -> None:
    """Each cell's name is a folder's and no other cell's."""
    for name, times in Counter(cell.name for cell in cells).items():
        if times > 1:
            raise UserError(f"{times} cells are named '{name}'")
        if not name or name[0] in ".-" or not all(c.isalnum() or c in "._=,+-" for c in name):
            raise UserError(f"'{name}' cannot be the name of a cell: it names a folder")
        if len(name.encode()) > 200:
            raise UserError(f"'{name}' is too long for the name of a cell")


def spare_cpus(workers: int | None, cells: int) -> bool:
    """Whether each of the cells that run at a time may have two CPUs."""
    from dask.system import CPU_COUNT

    return 2 * min(workers or CPU_COUNT, cells) <= CPU_COUNT


def program_version(program: Path) -> str:
    """What weir-sim --version says: name, version, commit."""
    return subprocess.run(
        [program, "--version"], capture_output=True, text=True, check=True
    ).stdout.strip()


@contextmanager
def locked(out: Path) -> Iterator[None]:
    """One batch at a time writes into a folder; what a killed one left there is removed."""
    try:
        out.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise UserError(f"{out}: not a folder but a file") from None
    with (out / LOCK).open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UserError(f"{out}: another sweep is writing there", 1) from None
        remove_partial(out)
        yield
        remove_partial(out)


def remove_partial(out: Path) -> None:
    """Removes the folders of cells that were never finished."""
    for path in out.glob(".*.cell"):
        shutil.rmtree(path, ignore_errors=True)


@contextmanager
def connected(scheduler: str | None, workers: int | None, cells: int) -> Iterator[Client]:
    """A client of a running scheduler, or of a cluster of our own that ends with it."""
    import dask
    from dask.system import CPU_COUNT
    from distributed import Client, LocalCluster

    # Outcomes say what went wrong; a cluster that closes on a busy machine leaves futures behind.
    for name in ("distributed", "distributed.client", "asyncio"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    with ExitStack() as stack:
        address = scheduler
        if address is None:
            # No cell waits in one worker while another is idle.
            config = {"distributed.scheduler.worker-saturation": 1.0}
            stack.enter_context(dask.config.set(config))
            address = stack.enter_context(
                LocalCluster(
                    n_workers=min(workers or CPU_COUNT, cells),
                    threads_per_worker=1,
                    processes=False,  # a cell is a process already: no ports, no start-up
                    dashboard_address="127.0.0.1:0",  # None would be 8787 on every address
                    memory_limit=0,
                    silence_logs=logging.CRITICAL,
                )
            )
        try:
            client = stack.enter_context(Client(address, timeout=CONNECT_S_MAX))
            client.wait_for_workers(1, timeout=CONNECT_S_MAX)
        except (OSError, ValueError, TimeoutError) as error:
            raise UserError(
                f"{scheduler}: no Dask scheduler with a worker answers there: {error}", 1
            ) from None
        yield client


def completed(
    client: Client, cells: Sequence[Cell], batch: Batch
) -> Iterator[tuple[int, tuple[Fate, str]]]:
    """Index, status and message of each cell, as they end. Stopping early ends what still runs."""
    from distributed import KilledWorker, as_completed

    token = uuid.uuid4().hex
    keys = [f"cell-{token}-{index}" for index in range(len(cells))]
    indices = {key: index for index, key in enumerate(keys)}
    # Nobody holds on to a future whose result is here: Dask would run it again were its worker
    # to die later.
    ended = as_completed(client.map(run_cell, cells, [batch] * len(cells), key=keys))
    for future in ended:
        try:
            result = future.result()
        except KilledWorker:
            result = ("failed", "each worker that ran it died")
        except CancelledError:
            result = ("failed", "the connection to the scheduler was lost")
        except Exception as error:  # a worker that cannot import weir
            result = ("failed", f"Dask could not run it: {type(error).__name__}: {error}")
        future.release()
        yield indices[future.key], result


def run_cell(cell: Cell, batch: Batch) -> tuple[Fate, str]:
    """In a worker: runs a cell, unless its folder holds it already."""
    place = batch.out / cell.name
    argv = cell.argv(batch.program)
    printed = subprocess.run([*argv, "--print-config"], capture_output=True, text=True)
    if printed.returncode != 0:
        return "failed", reason(printed.returncode, printed.stderr)
    if not PYTHON.search(printed.stdout) and holds(place, printed.stdout, batch.version):
        return "reused", ""
    if place.exists() and not any((place / name).exists() for name in folder.MANIFESTS):
        return "failed", f"{place} is there and is not a run"
    partial = batch.out / f".{cell.name}.{uuid.uuid4().hex}.cell"
    try:
        pinned = ["taskset", "-c", str(own_cpu())] if batch.one_cpu else []
        threads = ["--threads", "1"] if batch.one_thread else []
        status, stderr = run_child([*pinned, *argv, *threads, "--out", str(partial)])
        message = reason(status, stderr).replace(str(partial), str(place)) if status else ""
        if partial.exists() and status >= 0:
            move(partial, place)
        if message:
            return "failed", message
        if not holds(place, printed.stdout, None):
            return "failed", "its config changed meanwhile"
        return "done", ""
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def run_child(argv: Sequence[str]) -> tuple[int, str]:
    """Exit status and standard error of a program that ends with this worker or its task."""
    from distributed import Reschedule

    child = subprocess.Popen(
        ["setpriv", "--pdeathsig", "KILL", *argv],  # the kernel's part, should we be killed
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        process_group=0,  # Ctrl-C is for us
    )
    try:
        while True:
            try:
                _, stderr = child.communicate(timeout=POLL_S)
                return child.returncode, stderr
            except subprocess.TimeoutExpired:
                if not wanted():
                    raise Reschedule from None
    finally:
        child.kill()
        child.wait()


def own_cpu() -> int:
    """The CPU of this worker, of those that we may use; workers here are numbered."""
    from distributed import get_worker

    cpus = sorted(os.sched_getaffinity(0))
    return cpus[int(get_worker().name) % len(cpus)]


def wanted() -> bool:
    """Does this worker go on, and somebody wait for the task that this is?"""
    from distributed import Status, get_worker

    worker = get_worker()
    task = worker.state.tasks.get(worker.get_current_task())
    return worker.status == Status.running and task is not None and task.state == "executing"


def holds(place: Path, config: str, version: str | None) -> bool:
    """Is place a finished, balanced run of this resolved config (and by this weir-sim)?"""
    try:
        manifest = folder.read_json(place / "manifest.json")
        summary = folder.read_json(place / "summary.json")
        stored = (place / "config.yaml").read_text(encoding="utf-8")
    except (UserError, OSError, UnicodeDecodeError):
        return False
    made_by = "{program} {version} (commit {commit})".format_map(
        {key: manifest.get(key) for key in ("program", "version", "commit")}
    )
    return (
        without_names(stored) == without_names(config)
        and manifest.get("exit") == 0
        and summary.get("ledger", {}).get("balanced") is True
        and version in (None, made_by)
    )


def without_names(config: str) -> str:
    """A resolved config without the names of its files: a run folder has copies, and digests."""
    return FILE.sub(r"\1", config)


def move(partial: Path, place: Path) -> None:
    """Puts a run in its place; one that was there before goes."""
    old = partial.with_name(f".{place.name}.{uuid.uuid4().hex}.cell")
    if place.exists():
        place.rename(old)
    partial.rename(place)
    shutil.rmtree(old, ignore_errors=True)


def reason(status: int, stderr: str) -> str:
    """Why weir-sim failed: what it said last, or what ended it."""
    if status < 0:
        return f"weir-sim was ended by {signal.Signals(-status).name}"
    if status in runner.INTERRUPTED:
        return "the run was interrupted"
    lines = [line for line in stderr.splitlines() if line.strip()]
    return lines[-1].removeprefix("weir-sim: ") if lines else f"weir-sim exited with {status}"
