# SPDX-License-Identifier: BSD-3-Clause
"""`weir shell`: a command behind a bottleneck that is made for it, and what passed.

    command [ in ] ---- left [ sw: weir-switch ] right ---- the other side

Each is a network namespace. The other side is the host, which forwards and translates addresses;
or, for users that are not root, slirp4netns, which turns packets into sockets of the user; or a
namespace with a server. All runs inside weir.live.contained, so that nothing of it stays.
"""

from __future__ import annotations

import math
import os
import re
import resource
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from weir.analysis import folder
from weir.base import programs
from weir.base.configs import Config
from weir.base.errors import UserError
from weir.live import contained, shell_report
from weir.live.shell_network import SERVER, Network, Side
from weir.runner import session
from weir.runner.child import Child
from weir.runner.options import Options

PLACE = contained.PRIVATE / "weir"
READY_S_MAX = 60.0
GRACE_S = 2.0  # between a signal that we were sent and the end of what does not follow it
LISTEN_S_MAX = 10.0  # for a server to open its socket; some never do
NO_END = "24h"  # of the switch; the longest
PROMPT = "PS1='[weir $WEIR_SHELL] '$PS1; unset PROMPT_COMMAND"
FRAMES = 4096  # of each ring of a port: what arrives while another process has the CPU
FRAME_BYTES = 2048
BURST = 64  # packets: more of them leave joined
RINGS = 2 * 2  # both ports'


@dataclass(frozen=True)
class Wanted:
    """Options of a call of `weir shell`."""

    config: Config  # resolved: paths and telemetry
    place: Path  # that its files' names are relative to
    command: Sequence[str]
    server: str | None = None
    out: Path | None = None
    force: bool = False
    swap: bool = False  # what leaves the shell takes `reverse`
    offloads: bool = True  # packets leave joined where ports carry super-frames
    title: str = ""


def frames() -> int | None:
    """Returns the frames per ring that may be locked in memory, with half of it left for others.

    None: root's sockets may have as much room as super-frames need, and so take no rings.
    """
    if contained.is_machines_root():
        return None
    _, most = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_MEMLOCK, (most, most))
    if most == resource.RLIM_INFINITY:
        return FRAMES
    fit = max(most // (2 * RINGS * FRAME_BYTES), 64)
    return min(FRAMES, 1 << (fit.bit_length() - 1))


def section(
    cpu: int = 0, swap: bool = False, frames: int | None = FRAMES, offloads: bool = True
) -> dict[str, object]:
    """Returns `live` of the config: what leaves by a port has passed its path.

    `frames`: of each ring of an AF_PACKET port. None: ports carry super-frames, and with `offloads`
    they join packets to such.
    """
    paths = ("forward", "reverse") if swap else ("reverse", "forward")
    kind, rest = ("net_af_packet", f",framecnt={frames}") if frames else ("kernel", "")
    ports = [
        {"name": name, "dev": f"{kind}{n},iface={name}{rest}", "path": path}
        for n, (name, path) in enumerate(zip(("left", "right"), paths, strict=True))
    ]
    switch: dict[str, object] = {"lcores": [cpu], "prefix": "shell", "hugepages": "no"}
    if frames is None:
        switch["burst"] = BURST
        ports = [port | {"offloads": "on" if offloads else "off"} for port in ports]
    return {"switch": switch | {"ports": ports}}


class Program(Child):
    """weir-switch: its lines are for the user, but for its progress."""

    def __init__(self, argv: Sequence[object], stdin: int, cwd: Path, env: dict[str, str]) -> None:
        self.ready = threading.Event()
        super().__init__(argv, stdin=stdin, stdout=subprocess.DEVNULL, cwd=cwd, env=env)

    def said(self, line: str) -> None:
        now = session.progress_object(line)
        if now is None:
            print(re.sub(r"standard input:\d+:\d+: ", "", line), file=sys.stderr)
        elif now.ready:
            self.ready.set()

    def closed(self) -> None:
        self.ready.set()


class Shell:
    """All that runs inside the namespaces. `pipe` brings the signals for the command."""

    def __init__(self, wanted: Wanted, pipe: int, alone: bool) -> None:
        self.wanted, self.pipe = wanted, pipe
        side = Side.SERVER if wanted.server else Side.USER if alone else Side.HOST
        self.network = Network(side, offloads=frames() is None)
        self.folder = (wanted.out or PLACE / "run").absolute()
        self.known: list[subprocess.Popen[str]] = []  # its processes besides the command

    def run(self) -> int:
        """Runs the command, and returns its exit status."""
        PLACE.mkdir()
        os.environ["RUNTIME_DIRECTORY"] = str(PLACE)  # where weir top and ctl look for the switch
        with self.network:
            switch = self.start_switch()
            if not switch.ready.wait(READY_S_MAX):
                raise UserError(f"weir-switch was not ready after {READY_S_MAX:.0f} s", 1)
            if not switch.running:
                return switch.wait()  # it said why
            for note in self.network.open(PLACE):
                print(f"weir: note: {note}", file=sys.stderr)
            self.known += [each.process for each in self.network.children]
            if self.wanted.server:
                self.start_server(self.wanted.server)
            status = self.run_command(switch)
            ended = switch.process.poll()
            switch.stop()
            self.report({} if ended is None else {"switch": f"weir-switch ended early ({ended})"})
        return status

    def start_switch(self) -> Program:
        """Starts weir-switch between its ports; its config comes from this process."""
        import yaml

        cpus = sorted(os.sched_getaffinity(0))
        cpu = cpus[-self.network.number % len(cpus)]  # shells in shells: each on another, if it can
        live = section(cpu, self.wanted.swap, frames(), self.wanted.offloads)
        config = {**self.wanted.config, "live": live}
        text = yaml.safe_dump(config, sort_keys=False, allow_unicode=True, width=math.inf)
        options = Options(
            config=Path("-"), out=self.folder, duration=NO_END, force=self.wanted.force
        )
        read, write = os.pipe()
        argv = self.network.enter("sw", *options.argv("switch"))
        environment = os.environ | {"WEIR_RUNNER": str(os.getpid())}
        switch = Program(argv, stdin=read, cwd=self.wanted.place, env=environment)
        os.close(read)
        with os.fdopen(write, "w") as pipe:
            pipe.write(text)
        self.known.append(switch.process)
        return switch

    def start_server(self, line: str) -> None:
        """Starts the other side's command, until it listens; its output is a file of the run."""
        with (self.folder / "server.log").open("w") as log:
            argv = self.network.enter(SERVER, *shlex.split(line))
            streams = {"stdin": subprocess.DEVNULL, "stdout": log, "stderr": subprocess.STDOUT}
            server = Child(argv, first=False, **streams)
        self.known.append(server.process)
        deadline = time.monotonic() + LISTEN_S_MAX
        while server.running and time.monotonic() < deadline:
            if self.network.listens(SERVER):
                return
            time.sleep(0.05)
        if not server.running:
            said = (self.folder / "server.log").read_text(errors="replace").splitlines()
            raise UserError(f"--server {line}: it ended: {said[-1] if said else 'silent'}", 1)

    def run_command(self, switch: Child) -> int:
        """Starts the command, in the terminal's session, and waits for it."""
        argv = [str(word) for word in self.network.enter("in", *self.wanted.command)]
        command = subprocess.Popen(argv, env=self.environment(), text=True)
        threading.Thread(target=self.pass_on, args=(command,), daemon=True).start()
        while (ended := reap([*self.known, command])) != command.pid:
            if ended == switch.process.pid:
                print("weir: weir-switch ended: so does the shell", file=sys.stderr)
                end(command.pid, signal.SIGHUP)
        code = command.wait()
        if switch.process.poll() is not None:
            return 1
        return code if code >= 0 else 128 - code

    def pass_on(self, command: subprocess.Popen[str]) -> None:
        """Passes the pipe's signals on to the command; exits when the pipe's writer is gone."""
        while number := os.read(self.pipe, 1):
            end(command.pid, number[0])
        os._exit(1)

    def environment(self) -> dict[str, str]:
        """Returns the command's environment: the other side's address, and bash's prompt."""
        kept = {key: text for key, text in os.environ.items() if key != "WEIR_COMMAND"}
        mine = {"WEIR_SERVER": self.network.server, "WEIR_SHELL": self.wanted.title}
        return kept | mine | {"PROMPT_COMMAND": PROMPT}

    def report(self, killed: Mapping[str, str]) -> None:
        """Prints what passed on standard error, and writes the page of a run that is kept."""
        merged = folder.merge_live(self.folder, killed)
        if not merged:
            return
        ends = [fact for fact in merged["verdicts"] if fact["cause"] != "interrupted"]
        merged |= {"verdicts": ends, "verdict": folder.verdict(ends)}  # a shell ends its switch
        folder.write_json(self.folder / folder.SUMMARIES[0], merged)
        shell_report.show(folder.load(self.folder).summary, self.wanted.swap)
        if self.wanted.out is not None:
            from weir.report import page

            print(page.write(folder.load(self.wanted.out)), file=sys.stderr)


def end(pid: int, number: int) -> None:
    """Sends a process a signal, and SIGKILL after GRACE_S."""

    def send(which: int) -> None:
        with suppress(ProcessLookupError):
            os.kill(pid, which)  # not by Popen, which might wait for it here

    send(number)
    timer = threading.Timer(GRACE_S, send, (signal.SIGKILL,))
    timer.daemon = True
    timer.start()


def reap(known: Sequence[subprocess.Popen[str]]) -> int:
    """Waits for the next process to end, orphans included, and returns its number."""
    ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)
    assert ended is not None
    process = next((each for each in known if each.pid == ended.si_pid), None)
    if process is None:
        os.waitpid(ended.si_pid, 0)
    else:
        process.poll()
    return ended.si_pid


def run(wanted: Wanted) -> int:
    """Runs a shell or a command inside; returns its exit status."""
    programs.find_program("switch")
    alone = contained.unshare_processes()
    inside: Callable[[int], int] = lambda pipe: Shell(wanted, pipe, alone).run()  # noqa: E731
    return contained.run(inside)
