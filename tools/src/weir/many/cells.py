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
import subprocess
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import yaml

from weir.analysis import folder
from weir.base import programs
from weir.base.errors import UserError, open_lock
from weir.many import cluster as clusters
from weir.many import travel
from weir.many.dispatch import Dispatch
from weir.many.travel import Result, Task, program_version, reason
from weir.runner import config_files

Fate = Literal["done", "reused", "failed"]

LOCK = ".weir-lock"
GUESTS = ("stack", "kernel")  # keys of which the config alone does not say what they stand for


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

    def asked(self) -> str:
        """A digest of the config file and the options; "" without the file: weir-sim says so."""
        try:
            text = travel.content(self.config)
        except OSError:
            return ""
        options = "\0".join(self.argv(Path())[2:])
        return hashlib.sha256(text + b"\0" + options.encode()).hexdigest()[:16]


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
    """What all cells of a batch share; paths are absolute."""

    out: Path
    program: Path
    version: str | None  # weir-sim's; None: runs of any version are reused
    here: bool  # the workers see our files
    one_cpu: bool  # each worker here has a CPU of its own
    threads: tuple[str, ...]  # weir-sim's option

    def prepare(self, cell: Cell) -> Task | Result:
        """A cell as it travels, or what became of it without.

        Its config is resolved only to compare it with a run that is there and may be of another
        one, or for a worker that has not our files: this starts a program.
        """
        place, asked = self.out / cell.name, cell.asked()
        argv = cell.argv(self.program)
        _, config, *options = argv
        files: tuple[tuple[str, bytes], ...] = ()
        before = finished(place, self.version)
        if before is not None and self.version is not None and before.asks(asked):
            return Result("", place)
        if place.exists() or not self.here:
            printed = subprocess.run([*argv, "--print-config"], capture_output=True, text=True)
            if printed.returncode != 0:
                return Result(reason(printed.returncode, printed.stderr), None)
            if before is not None and before.is_of(printed.stdout):
                return Result("", place)
            if place.exists() and not folder.is_run(place):
                return Result(f"{place} is there and is not a run", None)
            if not self.here:
                config, options = cell.config.name, []
                moved, files = travel.pack(yaml.load(printed.stdout, yaml.CBaseLoader))
                files = ((config, moved), *files)
        command = os.environ.get("WEIR_COMMAND", f"weir run {cell.config}")
        said = (("WEIR_COMMAND", command), ("WEIR_ASKED", asked))
        return Task(cell.name, config, (*options, *self.threads), files, said, self.one_cpu)

    def outcome(self, cell: Cell, result: Result) -> Outcome:
        """What became of a cell, its folder in its place."""
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
    cells: Sequence[Cell],
    out: Path,
    *,
    cluster: str | None = None,
    workers: int | None = None,
    any_version: bool = False,
    one_cpu: bool = False,
    on_outcome: Callable[[Outcome, int, int], None] | None = None,
    on_begin: Callable[[], None] = lambda: None,
) -> list[Outcome]:
    """Runs cells into out/NAME; one outcome for each, in the order given.

    cluster is tcp://host:port, ssh:host,host, slurm or pbs; without, `workers` cells at a time are
    run here [as many as there are CPUs]. any_version reuses runs of other commits too. one_cpu
    gives each local worker a CPU of its own: runs with guests, which otherwise use all CPUs, are
    faster side by side.
    on_outcome is told each outcome, how many there are and will be; on_begin that `out` is ours.
    Which workers are refused is said on standard error.
    UserError: names that cannot be, no weir-sim, no cluster, or another batch in `out`.
    """
    check_names(cells)
    clusters.check(cluster, workers)
    program = programs.find_program("sim").resolve()
    out, here = out.resolve(), cluster is None
    version = None if any_version else program_version(program)
    threads = () if here and spare_cpus(workers, len(cells)) else ("--threads", "1")
    batch = Batch(out, program, version, here, one_cpu and here, threads)
    absolute = [replace(cell, config=cell.config.resolve()) for cell in cells]
    outcomes: dict[int, Outcome] = {}
    with ExitStack() as stack:
        stack.enter_context(locked(out))
        on_begin()
        if cells:
            crew = stack.enter_context(clusters.connected(cluster, workers, len(cells)))
            dispatch = Dispatch(
                crew, lambda index: batch.prepare(absolute[index]), out if here else None
            )
            settings = [(cell.config, cell.duration, *cell.override) for cell in cells]
            for index, result in dispatch.results(settings):
                outcome = replace(batch.outcome(absolute[index], result), cell=cells[index])
                outcomes[index] = replace(outcome, folder=out / cells[index].name)
                if outcome.status != "failed":
                    dispatch.cost(index, wall_s(outcome.folder))
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


@contextmanager
def locked(out: Path) -> Iterator[None]:
    """One batch at a time writes into a folder; what a killed one left there is removed."""
    try:
        out.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise UserError(f"{out}: not a folder but a file") from None
    with open_lock(out / LOCK) as lock:
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


@dataclass(frozen=True)
class Before:
    """A run that is there, as it may be used again."""

    asked: str | None  # Cell.asked; None: no batch has run it
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
    """The finished, balanced run in a folder (by this weir-sim), if there is one."""
    try:
        manifest = folder.read_json(place / "manifest.json")
        summary = folder.read_json(place / "summary.json")
        stored = (place / "config.yaml").read_text(encoding="utf-8")
    except (UserError, OSError, UnicodeDecodeError):
        return None
    made_by = "{program} {version} (commit {commit})".format_map(
        {key: manifest.get(key) for key in ("program", "version", "commit")}
    )
    good = manifest.get("exit") == 0 and summary.get("ledger", {}).get("balanced") is True
    return Before(manifest.get("asked"), stored) if good and version in (None, made_by) else None


def balanced(place: Path) -> bool:
    """Did the run of this folder count every packet?"""
    try:
        summary = folder.read_json(place / "summary.json")
    except UserError:
        return False
    return bool(summary.get("ledger", {}).get("balanced"))


def wall_s(place: Path) -> float:
    """How long the run of this folder took."""
    return float(folder.read_json(place / "summary.json").get("wall_s") or 0)


def without_names(config: str) -> Any:
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
