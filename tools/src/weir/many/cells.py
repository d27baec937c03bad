# SPDX-License-Identifier: BSD-3-Clause
"""Runs many experiments in virtual time on Dask, each once, and keeps what is done.

A cell is one run of weir-sim. What a worker made of it is renamed to out/NAME at the end: whatever
is killed on the way, out/NAME is a whole run or not there; the next batch removes what was left.

A cell is not run again when out/NAME holds a run that ended by itself, of the same resolved config
by the same version and commit of weir-sim, whose ledger balances. So a batch goes on wherever its
folder is copied to. The run's manifest has a digest of what was asked for; where it is the same,
and nothing else was read, so is the resolved config, and weir-sim need not print it.

Workers elsewhere need weir and nothing else: travel.py.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import yaml
from rich.console import Console

from weir.analysis import folder
from weir.analysis.model import Manifest
from weir.base import foreign, programs
from weir.base.errors import UserError, open_lock
from weir.base.foreign import Json
from weir.many import cluster as clusters
from weir.many import travel
from weir.many.dispatch import Dispatch
from weir.many.progress import LOCK, Progress
from weir.many.travel import Result, Task, program_version, resolved
from weir.runner import config_files
from weir.runner.options import Options

Fate = Literal["done", "reused", "failed"]

GUESTS = ("stack", "kernel")  # keys of which the config alone does not say what they stand for


def asked(cell: Options) -> str:
    """Returns a digest of the config file and the options; "" if the file is not there."""
    try:
        text = travel.content(cell.config)
    except OSError:
        return ""
    options = "\0".join(cell.settings())
    return hashlib.sha256(text + b"\0" + options.encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Outcome:
    """The end of a cell; message says in a sentence why it failed, else it is empty.

    A cell whose folder was not kept has its summary here.
    """

    cell: Options
    folder: Path
    status: Fate
    message: str
    summary: Json | None = None


def parted(outcomes: Iterable[Outcome]) -> tuple[dict[str, Path], dict[str, str]]:
    """Returns the folders of cells that ran and why the others failed, by the cells' names."""
    ran, failed = {}, {}
    for outcome in outcomes:
        if outcome.status == "failed":
            failed[outcome.cell.name] = outcome.message
        else:
            ran[outcome.cell.name] = outcome.folder
    return ran, failed


@dataclass(frozen=True)
class Batch:
    """Settings that all cells of a batch share; paths are absolute."""

    out: Path
    version: str | None  # weir-sim's; None: runs of any version are reused
    here: bool  # the workers see our files
    one_cpu: bool  # each worker here has a CPU of its own
    threads: int | None  # of weir-sim; None: it chooses

    def prepare(self, cell: Options) -> Task | Result:
        """Returns a cell as it travels, or what became of it without.

        Its config is resolved only to compare it with a run that is there and may be of another
        one, or for a worker that has not our files: this starts a program.
        """
        place, digest = self.out / cell.name, asked(cell)
        config, options = str(cell.config), replace(cell, threads=self.threads).settings()
        files: tuple[tuple[str, bytes], ...] = ()
        before = finished(place, self.version)
        if before is not None and self.version is not None and before.asks(digest):
            return Result("", place)
        if place.exists() or not self.here:
            try:
                printed = resolved(cell)
            except UserError as error:
                return Result(str(error), None)
            if before is not None and before.is_of(printed):
                return Result("", place)
            if place.exists() and not folder.is_run(place):
                return Result(f"{place} is there and is not a run", None)
            if not self.here:
                config, options = cell.config.name, ["--threads", "1"]
                moved, files = travel.pack(yaml.load(printed, yaml.CBaseLoader))
                files = ((config, moved), *files)
        command = os.environ.get("WEIR_COMMAND", f"weir run {cell.config}")
        said = (("WEIR_COMMAND", command), ("WEIR_ASKED", digest))
        return Task(cell.name, config, tuple(options), files, said, self.one_cpu)

    def outcome(self, cell: Options, result: Result) -> Outcome:
        """Puts a cell's folder in its place, and returns what became of it."""
        place = self.out / cell.name
        if result.run == place:
            return Outcome(cell, place, "reused", "")
        if isinstance(result.run, Path):  # PARTIAL/run
            move(result.run, place)
            shutil.rmtree(result.run.parent, ignore_errors=True)
        elif result.run is not None:
            partial = self.out / f".{cell.name}.{uuid.uuid4().hex}.cell"
            travel.unpack(result.run, partial)
            move(partial, place)
        message = result.message
        if not message and not balanced(place):
            message = "its ledger does not balance"
        return Outcome(cell, place, "failed" if message else "done", message)


def run_cells(
    cells: Sequence[Options],
    out: Path,
    *,
    cluster: str | None = None,
    workers: int | None = None,
    any_version: bool = False,
    one_cpu: bool = False,
    costs_s: Sequence[float] | None = None,
    console: Console | None = None,
    on_outcome: Callable[[Outcome, int, int], None] = lambda *_: None,
    on_begin: Callable[[], None] = lambda: None,
) -> list[Outcome]:
    """Runs cells into out/NAME, and returns what became of each, in the order given.

    cluster is tcp://host:port, ssh:host,host, slurm or pbs; without, `workers` cells at a time are
    run here [as many as there are CPUs]. any_version reuses runs of other commits too. one_cpu
    gives each local worker a CPU of its own: runs with guests, which otherwise use all CPUs, are
    faster side by side. costs_s says about what each cell costs: the longest go first.
    How far it is is shown on the console; which workers are refused, on standard error.
    on_outcome gets each outcome, how many there are and will be; on_begin is called when `out` is
    ours.
    UserError: names that cannot be, no weir-sim, no cluster, or another batch in `out`.
    """
    check_names(cells)
    clusters.check(cluster, workers)
    program = programs.find_program("sim").resolve()
    out, here = out.resolve(), cluster is None
    if out.is_dir():
        config_files.keys()  # starts a program: once, before several threads ask for them
    version = None if any_version else program_version(program)
    threads = None if here and spare_cpus(workers, len(cells)) else 1
    batch = Batch(out, version, here, one_cpu and here, threads)
    absolute = [replace(cell, config=cell.config.resolve()) for cell in cells]
    shown = Progress(out, [cell.name for cell in cells], here, console, costs_s)
    outcomes: dict[int, Outcome] = {}
    with ExitStack() as stack:
        stack.enter_context(locked(out))
        on_begin()
        if cells:
            stack.enter_context(shown)
            crew = stack.enter_context(clusters.connected(cluster, workers, len(cells)))
            dispatch = Dispatch(
                crew, lambda index: batch.prepare(absolute[index]), out if here else None
            )
            settings = [(cell.config, cell.duration, *cell.overrides) for cell in cells]
            for index, result in dispatch.results(settings, costs_s):
                outcome = batch.outcome(absolute[index], result)
                outcome = replace(outcome, cell=cells[index])
                outcomes[index] = outcome
                if outcome.status != "failed":
                    dispatch.cost(index, float(ended(outcome.folder).get("wall_s") or 0))
                shown.add(outcome.cell.name, outcome.status, outcome.message)
                on_outcome(outcome, len(outcomes), len(cells))
    return [outcomes[index] for index in range(len(cells))]


def check_names(cells: Sequence[Options]) -> None:
    """Refuses names that are no folder's, or another cell's too."""
    for name, times in Counter(cell.name for cell in cells).items():
        if times > 1:
            raise UserError(f"{times} cells are named '{name}'")
        if not name or name[0] in ".-" or not all(c.isalnum() or c in "._=,+-" for c in name):
            raise UserError(f"'{name}' cannot be the name of a cell: it names a folder")
        if len(name.encode()) > 200:
            raise UserError(f"'{name}' is too long for the name of a cell")


def spare_cpus(workers: int | None, cells: int) -> bool:
    """Returns whether each of the cells that run at a time may have two CPUs."""
    from dask.system import CPU_COUNT

    return 2 * min(workers or CPU_COUNT, cells) <= CPU_COUNT


@contextmanager
def locked(out: Path) -> Iterator[None]:
    """Keeps other batches out of a folder; what a killed one left there is removed."""
    try:
        out.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise UserError(f"{out}: not a folder but a file") from None
    with open_lock(out / LOCK) as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UserError(f"{out}: another command is writing there", 1) from None
        remove_partial(out)
        yield
        remove_partial(out)


def remove_partial(out: Path) -> None:
    """Removes the folders of cells that were never finished."""
    for path in out.glob(".*.cell"):
        shutil.rmtree(path, ignore_errors=True)


@dataclass(frozen=True)
class Before:
    """A run that is there and may be used again."""

    asked: str | None  # the digest of asked(); None: no batch has run it
    config: str  # resolved

    def asks(self, asked: str) -> bool:
        """Is true if just this was asked for, and nothing was read beside it."""
        outside = (*config_files.keys(), *GUESTS)
        return self.asked == asked != "" and not any(f" {key}:" in self.config for key in outside)

    def is_of(self, config: str) -> bool:
        """Is true for a run of this resolved config; a class in Python may be another by now."""
        same = without_names(self.config) == without_names(config)
        return same and " python:" not in config


def finished(place: Path, version: str | None) -> Before | None:
    """Returns the finished, balanced run in a folder (by this weir-sim), if there is one."""
    try:
        manifest = foreign.read_json(place / "manifest.json", Manifest)
        stored = (place / "config.yaml").read_text(encoding="utf-8")
    except (UserError, OSError, UnicodeDecodeError):
        return None
    good = manifest.exit == 0 and version in (None, manifest.made_by) and balanced(place)
    return Before(manifest.asked, stored) if good else None


def is_run_of(place: Path, cell: Options) -> bool:
    """Is true of a finished, balanced run of what a cell asks for, by any version of weir-sim."""
    before = finished(place, None)
    return before is not None and (before.asks(asked(cell)) or before.is_of(resolved(cell)))


def ended(place: Path) -> Json:
    """Returns the summary of a folder's run, empty without one."""
    try:
        return folder.read_json(place / "summary.json")
    except UserError:
        return {}


def balanced(place: Path) -> bool:
    return ended(place).get("ledger", {}).get("balanced") is True


def without_names(config: str) -> object:
    """Reads a resolved config without its files' names: a run folder has copies, and digests."""
    return config_files.renamed(yaml.load(config, yaml.CBaseLoader), lambda _: "")


def move(partial: Path, place: Path) -> None:
    """Puts a run in its place; one that was there before goes."""
    old = partial.with_name(f".{place.name}.{uuid.uuid4().hex}.cell")
    if place.exists():
        place.rename(old)
    partial.rename(place)
    shutil.rmtree(old, ignore_errors=True)


def copy(run: Path, place: Path) -> None:
    """Puts a copy of a run in a place of this batch."""
    partial = place.with_name(f".{place.name}.{uuid.uuid4().hex}.cell")
    shutil.copytree(run, partial)
    move(partial, place)
