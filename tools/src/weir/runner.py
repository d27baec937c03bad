# SPDX-License-Identifier: BSD-3-Clause
"""Runs an experiment: starts the C programs, shows progress, stops them, collects the run."""

from __future__ import annotations

import json
import math
import os
import platform
import queue
import re
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cache
from importlib import metadata
from pathlib import Path
from types import FrameType
from typing import Any, Protocol

from rich.console import Console
from rich.progress import TaskID

from weir import configs, places, units
from weir.analysis import folder
from weir.analysis.folder import Run
from weir.bootstrap import INSTALLED, ROOT
from weir.errors import UserError
from weir.live import receiver
from weir.live.child import Child
from weir.summary import progress
from weir.version import VERSION

PROGRAMS = {
    "sim": "tools/sim/weir-sim",
    "pcap": "tools/pcap/weir-pcap",
    "check-cc": "tools/check/weir-check-cc",
    "switch": "switch/weir-switch",
    "sender": "sender/weir-sender",
}
PACKAGES = ("numpy", "polars", "matplotlib", "dask")
READY_S_MAX = 60.0
STOP_S_MAX = 20.0
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
INTERRUPTED = tuple(128 + number for number in ENDING)
ESTIMATE_S_MIN = 1.0  # of a run, before what is left is estimated
NAME_LENGTH = 100  # of a run folder, without its time
TOGETHER_S = 5.0  # live programs that count the same duration end within this


@dataclass
class Options:
    """What `weir run` was asked for, as the C programs' options."""

    config: Path
    out: Path
    overrides: Sequence[str] = ()
    seed: int | None = None
    duration: str | None = None
    pcap: Path | None = None
    force: bool = False
    threads: int | None = None  # of weir-sim
    only: str | None = None  # --check or --print-config: nothing runs

    def command(self, live: bool) -> list[str]:
        """The `weir run` that does the same."""
        command = ["weir", "run", str(self.config), "--out", str(self.out), *self._options()]
        return [*command, "--live"] if live else command

    def argv(self, program: str, captures: bool = True) -> list[str]:
        """The command line of one program; of several only one writes the capture."""
        places = [str(self.config), "--out", str(self.out)]
        return [str(find_program(program)), *places, "--progress", *self._options(captures)]

    def _options(self, captures: bool = True) -> list[str]:
        argv: list[str] = []
        for override in self.overrides:
            argv += ["-o", override]
        if self.seed is not None:
            argv += ["--seed", str(self.seed)]
        if self.duration is not None:
            argv += ["--duration", self.duration]
        if self.pcap is not None and captures:
            argv += ["--pcap", str(self.pcap)]
        if self.force:
            argv.append("--force")
        if self.threads is not None:
            argv += ["--threads", str(self.threads)]
        if self.only is not None:
            argv.append(self.only)
        return argv


def run(
    config: Path | str | Mapping[str, Any],
    *,
    overrides: Mapping[str, Any] | None = None,
    out: Path | str | None = None,
    seed: int | None = None,
    duration: str | None = None,
    live: bool = False,
    force: bool = False,
) -> Run:
    """Runs an experiment and opens what it recorded: `weir run CONFIG` without the report.

    config is a file, or what would be in one as a dict; files that a dict names have whole paths.
    overrides replaces values of the config by their keys: {"flows.0.count": 10}. out is the run
    folder [runs/CONFIG-CHANGES-TIME]; force replaces the run in it. duration has its unit: "10s".
    Ctrl-C ends the run early, its folder complete, and raises KeyboardInterrupt. UserError: the
    config is wrong, the programs were not built, or the run failed; its folder then has what there
    was to record.
    """
    given = [f"{key}={configs.text(value)}" for key, value in (overrides or {}).items()]
    listener = Silent()
    with configs.as_file(config) as path:
        place = default_out(path, given, seed, live) if out is None else Path(out)
        options = Options(path, place, given, seed, duration, None, force)
        # A dict's file goes; the folder has what it said.
        lasting = place / "config.yaml" if isinstance(config, Mapping) else path
        os.environ["WEIR_COMMAND"] = shlex.join(replace(options, config=lasting).command(live))
        identify()
        status, loaded = execute(options, listener, live)
    if status in INTERRUPTED:
        raise KeyboardInterrupt
    if status != 0 or loaded is None:
        said = listener.lines[-1] if listener.lines else f"the run ended with status {status}"
        raise UserError(said.removeprefix("weir: "), status or 1)
    return loaded


def execute(
    options: Options, listener: Listener, live: bool, hosts: Path | None = None
) -> tuple[int, Run | None]:
    """Runs an experiment: its exit status, and the run; None: it never began.

    The listener was told why, if it failed. hosts: the inventory of a live run over several.
    """
    refuse_sweep(options.config)
    before = folder.written(options.out)
    with folder.locked(options.out):
        pass  # the programs lock it themselves
    if hosts is not None:
        from weir.hosts import session

        status = session.run(options, listener, hosts)
    else:
        status = (run_live if live else run_sim)(options, listener)
    if folder.written(options.out) == before:
        return status or 1, None
    with folder.locked(options.out):
        return status, folder.load(options.out)


class Listener(Protocol):
    """Is told what the programs say while they run."""

    def progress(self, now: dict[str, Any]) -> None:
        """One of --progress's objects."""

    def message(self, line: str) -> None:
        """Any other line: for the user."""


class Silent:
    """The listener that only keeps what was said."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def progress(self, now: dict[str, Any]) -> None:
        """Nobody looks."""

    def message(self, line: str) -> None:
        """Kept."""
        self.lines.append(line)


def identify() -> None:
    """Tells the programs started from here what the user typed and what this runs on.

    They write it into their manifests. tools/weir has said the first already. And which Python has
    the controls that are classes.
    """
    os.environ.setdefault("WEIR_PYTHON", sys.executable)
    os.environ.setdefault("WEIR_COMMAND", shlex.join(["weir", *sys.argv[1:]]))
    os.environ["WEIR_VERSIONS"] = ", ".join(f"{name} {v}" for name, v in versions().items())


def versions() -> dict[str, str]:
    """Python's and those of the packages that results depend on."""
    found = {"python": platform.python_version()}
    return found | {name: metadata.version(name) for name in PACKAGES}


def build_dir() -> Path:
    """Where meson built: WEIR_BUILD, else build/ of the clone or of what is installed."""
    return Path(os.environ.get("WEIR_BUILD") or ROOT / "build")


def live_build() -> Path:
    """Where the live programs are: with the others, else where `weir setup live` builds them."""
    if not INSTALLED or (build_dir() / PROGRAMS["switch"]).exists():
        return build_dir()
    return places.cache() / f"live-{VERSION}"


@cache
def rebuild(name: str) -> None:
    """Brings a program of this clone up to date, if tools/weir runs us; UserError: it cannot be."""
    wrapper = os.environ.get("WEIR_WRAPPER")
    if wrapper is None:
        return
    done = subprocess.run([wrapper, "--build", name], capture_output=True, text=True)
    if done.returncode != 0:
        raise UserError(done.stderr.strip().replace("\nweir: ", "\n").removeprefix("weir: "), 1)


def find_program(name: str) -> Path:
    """A C program of the build, up to date, or one sentence."""
    path = (live_build() if name in ("switch", "sender") else build_dir()) / PROGRAMS[name]
    if not os.access(path, os.X_OK):
        why = "run tools/weir once to build it, or name the folder of a build in WEIR_BUILD"
        if name in ("switch", "sender"):
            why = "live runs need it and DPDK: `weir setup live` (as root) installs both"
        raise UserError(f"{path} was not built; {why}", 1)
    rebuild(name)
    return path


def default_out(
    config: Path, overrides: Sequence[str] = (), seed: int | None = None, live: bool = False
) -> Path:
    """runs/CONFIG-WHAT WAS CHANGED-UTC TIME, with a number behind it if that is taken."""
    stem = "stdin" if str(config) == "-" else config.stem
    said = "-".join([stem, *changed(overrides, seed, live)])
    name = re.sub(r"[^A-Za-z0-9._=,+-]+", "_", said)[:NAME_LENGTH].rstrip("-_,")
    base = Path("runs") / f"{name}-{datetime.now(UTC):%Y%m%dT%H%M%SZ}"
    taken = (base.with_name(f"{base.name}-{n}") for n in range(2, 1000))
    return base if not base.exists() else next(path for path in taken if not path.exists())


def changed(overrides: Sequence[str], seed: int | None, live: bool) -> list[str]:
    """What a run's name says of how it differs from its config: count=10, seed=3, live."""
    parts = [override.partition("=") for override in overrides]
    found = [f"{key.rpartition('.')[2]}={value}" for key, _, value in parts]
    found += [] if seed is None else [f"seed={seed}"]
    return [*found, "live"] if live else found


Inbox = queue.Queue[tuple["Program", str | None]]


class Program(Child):
    """A C program, whose lines go to an inbox. In a session of its own: Ctrl-C reaches it once."""

    def __init__(self, name: str, argv: Sequence[str], inbox: Inbox) -> None:
        self.name = name
        self.ready = False
        self.eof = False
        self.asked = False
        self._inbox = inbox
        environment = os.environ | {"WEIR_RUNNER": str(os.getpid())}  # whose end is its end
        live = name not in ("sim", "pcap")
        super().__init__(argv, first=live, stdout=subprocess.DEVNULL, env=environment)

    def said(self, line: str) -> None:
        """To the inbox, as is that it will say no more."""
        self._inbox.put((self, line))

    def closed(self) -> None:
        """It has ended, or as good as."""
        self._inbox.put((self, None))

    def finish(self) -> None:
        """Asks it to end. Once: a second time would kill it while it writes its run folder."""
        if not self.asked:
            self.asked = True
            self.send(signal.SIGINT)


@dataclass
class Session:
    """The programs of one run, and what was asked of them."""

    listener: Listener
    children: list[Program] = field(default_factory=list)
    inbox: Inbox = field(default_factory=queue.Queue)
    interrupts: int = 0
    signal: int = 0  # the first one that we were sent

    def start(self, name: str, argv: Sequence[str]) -> Program:
        """Starts a program."""
        child = Program(name, argv, self.inbox)
        self.children.append(child)
        return child

    def interrupt(self, number: int, _frame: FrameType | None) -> None:
        """Ctrl-C: the first asks the programs to finish, the third ends them."""
        self.signal = self.signal or number
        self.interrupts += 1
        for child in self.children:
            if self.interrupts < 3:
                child.finish()
            else:
                child.send(signal.SIGKILL)

    def hear(self, timeout_s: float = 0.2) -> None:
        """Passes on what a program said, if one says something in time."""
        try:
            child, line = self.inbox.get(timeout=timeout_s)
        except queue.Empty:
            return
        if line is None:
            child.eof = True
            return
        now = progress_object(line)
        if now is not None and "ready" in now:
            child.ready = bool(now["ready"])
        elif now is not None or line.strip():
            self.pass_on(receiver.said(line) if child.name == receiver.NAME else line, now)

    def pass_on(self, line: str, now: dict[str, Any] | None) -> None:
        """To the listener. A terminal or a pipe that is gone ends no run: it goes on unseen."""
        try:
            if now is not None:
                self.listener.progress(now)
            else:
                self.listener.message(from_weir(line))
        except OSError:
            self.listener = Silent()

    def wait_ready(self, child: Program) -> None:
        """Until it is ready or has ended; one sentence if it is neither in time."""
        deadline = time.monotonic() + READY_S_MAX
        while not child.ready and not child.eof and not self.interrupts:
            self.hear()
            if time.monotonic() > deadline:
                child.send(signal.SIGKILL)
                raise UserError(f"weir-{child.name} was not ready after {READY_S_MAX:.0f} s", 1)

    def wait_any(self) -> Program:
        """The first program to end."""
        while True:
            for child in self.children:
                if child.eof:
                    return child
            self.hear()

    def wait_all(self, seconds: float) -> None:
        """Until all that end by themselves have done so, or for so long."""
        deadline = time.monotonic() + seconds
        ending = [child for child in self.children if child.name != receiver.NAME]
        while not all(child.eof for child in ending) and time.monotonic() < deadline:
            self.hear()

    def stop(self, child: Program) -> None:
        """Asks it to end if it still runs, and is patient: it writes its part of the run folder."""
        if child.eof:
            return
        child.finish()
        deadline = time.monotonic() + STOP_S_MAX
        while not child.eof and time.monotonic() < deadline:
            self.hear()
        if not child.eof:
            self.pass_on(f"weir-{child.name} did not stop; it was killed", None)
            child.send(signal.SIGKILL)

    def end(self) -> None:
        """Whatever happened here: those that still run write their folders."""
        for child in self.children:
            child.finish()
        for child in self.children:
            self.stop(child)

    def status(self, child: Program) -> int:
        """Its exit status, once it has ended; a signal as a shell counts it.

        One that was asked to end and did so has not failed: what that means for the run is
        whether we were asked too.
        """
        code = child.process.wait()
        if child.asked and code == 128 + signal.SIGINT:
            code = 0
        if code == 0 and self.signal:
            return 128 + self.signal
        return code if code >= 0 else 128 - code

    def killed(self) -> dict[str, str]:
        """A sentence for each program that a signal ended."""
        codes = {child.name: child.process.wait() for child in self.children}
        return {
            name: f"weir-{name} was killed ({signal.Signals(-code).name})"
            for name, code in codes.items()
            if code < 0
        }


@contextmanager
def catching(session: Session) -> Iterator[None]:
    """Signals go to the programs; whatever happens here, none of them is left behind.

    Only the main thread can have them: a run that another thread starts is not interrupted.
    """
    main = threading.current_thread() is threading.main_thread()
    numbers: tuple[signal.Signals, ...] = ENDING if main else ()
    if signal.getsignal(signal.SIGHUP) == signal.SIG_IGN:  # nohup
        numbers = tuple(number for number in numbers if number != signal.SIGHUP)
    before = [signal.signal(number, session.interrupt) for number in numbers]
    try:
        yield
    finally:
        session.end()
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)


def from_weir(line: str) -> str:
    """What a program says of a config, as the command that the user called says it."""
    return re.sub(r"^weir-(sim|pcap): ", "weir: ", line)


def progress_object(line: str) -> dict[str, Any] | None:
    """A line of --progress; None for anything else."""
    if not line.startswith("{"):
        return None
    try:
        value = json.loads(line)
    except ValueError:
        return None
    known = ("ready", "virtual_s", "read_bytes")
    return value if isinstance(value, dict) and any(key in value for key in known) else None


def read_only(options: Options, live: bool) -> int:
    """--check and --print-config: what the programs say of the config; the first bad exit status.

    Live, each program checks its part; the first prints the config.
    """
    refuse_sweep(options.config)
    argvs = live_argvs(options) if live else {"sim": options.argv("sim")}
    if options.only != "--check":
        argvs = dict([next(pair for pair in argvs.items() if pair[0] != receiver.NAME)])
    for name, argv in argvs.items():
        done = subprocess.run(argv, stderr=subprocess.PIPE, text=True)
        for line in done.stderr.splitlines():
            print(
                receiver.said(line) if name == receiver.NAME else from_weir(line), file=sys.stderr
            )
        if done.returncode != 0:
            return done.returncode
    return 0


def run_sim(options: Options, listener: Listener) -> int:
    """An experiment in virtual time; weir-sim's exit status."""
    session = Session(listener)
    with catching(session):
        child = session.start("sim", options.argv("sim"))
        session.wait_any()
        for sentence in session.killed().values():
            session.pass_on(sentence, None)
        return session.status(child)


def refuse_sweep(config: Path) -> None:
    """One sentence for a file that is for another command. What else is wrong the programs say."""
    if not config.is_file():
        return
    try:
        read = configs.read(config)
    except UserError:
        return
    if isinstance(read, dict) and "config" in read and ("grid" in read or "seeds" in read):
        raise UserError(f"{config} is a sweep, not one experiment: weir sweep {config}")


def live_sections(options: Options) -> dict[str, Any]:
    """What a config has below `live`, in the order in which its programs start."""
    if str(options.config) == "-":
        raise UserError("--live reads the config twice: give a file, not standard input")
    try:
        config = configs.read(options.config)
    except UserError:
        return {"switch": {}, "sender": {}}  # they say what is wrong, with its place
    live = config.get("live") if isinstance(config, dict) else None
    live = live if isinstance(live, dict) else {}
    found = {name: live[name] for name in ("switch", receiver.NAME, "sender") if name in live}
    if not {*found} - {receiver.NAME}:
        raise UserError(
            f"{options.config}: --live needs live.switch or live.sender; this config has neither"
        )
    return found


def live_argvs(options: Options) -> dict[str, list[str]]:
    """The command lines of the programs that a config asks for, one for each section."""
    sections = live_sections(options)
    found = {}
    for name, section in sections.items():
        if name == receiver.NAME and isinstance(section, dict):
            found[name] = receiver.options(options, section).argv("sender")
        elif name != receiver.NAME:
            found[name] = options.argv(name, name == "switch" or "switch" not in sections)
    return found


def run_live(options: Options, listener: Listener) -> int:
    """An experiment on real ports: switch first, receiver, then sender; summaries merged.

    They come before what else runs on their CPUs. Switch and sender both end after the run's
    duration; one that is still there some seconds later is stopped. The receiver is stopped then.
    """
    session = Session(listener)
    argvs = live_argvs(options)
    with catching(session):
        for name, argv in argvs.items():
            child = session.start(name, argv)
            session.wait_ready(child)
            if child.eof or session.interrupts:
                break
        first = session.wait_any()
        if session.status(first) == 0 and not session.interrupts:
            session.wait_all(TOGETHER_S)
        for child in session.children:
            session.stop(child)
        statuses = [session.status(child) for child in session.children]
    killed = session.killed()
    for sentence in killed.values():
        session.pass_on(sentence, None)
    merge_live(options.out, killed, session)
    # The first to fail is the one to report; what it brought down came after.
    ordered = [session.status(first), *statuses]
    return next((status for status in ordered if status != 0), 0)


def merge_live(out: Path, killed: Mapping[str, str], session: Session) -> None:
    """Writes summary.json from what the live programs wrote."""
    merged = folder.merge_live(out, killed)
    if not merged:
        return
    try:
        folder.write_whole(out / folder.SUMMARIES[0], json.dumps(merged, indent=1) + "\n")
    except UserError as error:  # the programs' own are there
        session.pass_on(f"weir: {error}", None)


class Bar:
    """The listener for a terminal: a progress bar, messages above it.

    `done` and `whole` are keys of its progress objects; `text` makes the words beside the bar,
    `rename` what is shown of a message.
    """

    def __init__(
        self,
        console: Console,
        what: str = "running",
        done: str = "virtual_s",
        whole: str = "duration_s",
        text: Callable[[dict[str, Any]], str] | None = None,
        rename: Callable[[str], str] | None = None,
    ) -> None:
        self.console = console
        self.rename = rename or str
        self.what, self.done, self.whole = what, done, whole
        self.text = text or times
        self.bar = progress(console)
        self.task: TaskID | None = None

    def __enter__(self) -> Bar:
        self.bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(OSError):  # a terminal that is gone
            self.bar.stop()

    def progress(self, now: dict[str, Any]) -> None:
        """One of a program's progress objects."""
        whole = now.get(self.whole) or None  # unknown of a pipe
        if self.task is None:
            self.task = self.bar.add_task(self.what, total=whole, times="")
        self.bar.update(
            self.task, completed=now.get(self.done, 0), total=whole, times=self.text(now)
        )

    def message(self, line: str) -> None:
        """A line of a program."""
        self.console.print(self.rename(line), markup=False, highlight=False, soft_wrap=True)


def left(wall_s: float, done: float, whole: float) -> list[str]:
    """How long the rest takes if it goes on as it did, once that can be said."""
    if wall_s < ESTIMATE_S_MIN or not 0 < done < whole:
        return []
    rest_s = math.ceil(wall_s * (whole - done) / done)
    return [f"about {rest_s} s left" if rest_s < 120 else f"about {round(rest_s / 60)} min left"]


class Count:
    """A bar for each of several things that are counted, with an estimate, on a terminal.

    of: what is counted.
    """

    def __init__(self, console: Console, of: str = "records") -> None:
        self.bar = progress(console)
        self.of = of
        self.tasks: dict[str, tuple[TaskID, float]] = {}

    def __enter__(self) -> Count:
        self.bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.bar.stop()

    def update(self, what: str, done: int, whole: int) -> None:
        """So many are done."""
        if what not in self.tasks:
            self.tasks[what] = self.bar.add_task(what, total=whole, times=""), time.monotonic()
        task, started_s = self.tasks[what]
        rest = left(time.monotonic() - started_s, done, whole)
        counted = f"{units.count(done)} of {units.count(whole)} {self.of}"
        self.bar.update(task, completed=done, total=whole, times=", ".join([counted, *rest]))


def times(now: dict[str, Any]) -> str:
    """A progress object as text."""
    virtual, wall = float(now.get("virtual_s") or 0), float(now.get("wall_s") or 0)
    parts = [f"{virtual:.1f} of {float(now.get('duration_s') or 0):.1f} s"]
    if wall > 0:
        parts.append(f"{units.number(virtual / wall, 2)}× real time")
    parts += left(wall, virtual, float(now.get("duration_s") or 0))
    if now.get("utilisation") is not None:
        parts.append(f"{units.percent(float(now['utilisation']), 1)} used")
    return ", ".join(parts)
