# SPDX-License-Identifier: BSD-3-Clause
"""An episode: a weir-sim whose agents' flows are controlled from here."""

from __future__ import annotations

import os
import subprocess
import weakref
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from typing import IO

from weir.base.errors import UserError
from weir.base.programs import find_program
from weir.control import Control, Measurements, page, parameter
from weir.control.page import Page
from weir.control.server import described
from weir.environments.episodes import AGENT

WAIT_S_MAX = 60.0


class Agent(Control):
    """A flow of weir.gym."""

    initial = parameter(10.0, "initial window in segments", min=1, max=1000)
    ecn = True
    together = True

    def init(self, m: Measurements) -> None:
        """Does nothing: the simulation answers."""

    def on_ack(self, m: Measurements) -> None:
        """Does nothing: the simulation answers."""


class Simulation:
    """A running episode, which `step` lets run until the flows' measurements are there."""

    def __init__(
        self, config: Path, overrides: Mapping[str, str], seed: int, out: Path | None = None
    ) -> None:
        program = find_program("sim")
        folder = TemporaryDirectory(prefix="weir-gym-")  # its run's, unless it is kept
        place = out if out is not None else Path(folder.name) / "run"
        down, up = os.pipe(), os.pipe()
        memory = os.memfd_create("weir-agent")
        theirs = (down[0], up[1], memory)
        argv = [str(program), str(config), "--seed", str(seed), "--threads", "1"]
        argv += [arg for key, value in overrides.items() for arg in ("-o", f"{key}={value}")]
        argv += ["--out", str(place), "--force"]
        self._said: IO[bytes] = TemporaryFile()  # noqa: SIM115
        self._process = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=self._said,
            pass_fds=theirs,
            start_new_session=True,
            env=os.environ | {"WEIR_AGENT": ",".join(map(str, theirs))},
        )
        os.close(down[0])
        os.close(up[1])
        # An environment that is dropped ends its program, too.
        self.close = weakref.finalize(
            self, end_program, self._process, (up[0], down[1], memory), self._said, folder
        )
        self.page = Page(up[0], down[1], memory)
        try:
            self.running = self._wait()
        except BaseException:
            self.close()
            raise

    @property
    def flows(self) -> int:
        return self.page.called()[3]

    def step(self) -> bool:
        """Goes on with what has been decided; False: the episode has ended."""
        if not self.running:
            raise UserError("the episode has ended; another begins with reset()")
        # On weir-sim's CPU while it is waited for; what the caller does next may be anywhere.
        cpu, allowed = self.page.cpu(), os.sched_getaffinity(0)
        pinned = (cpu,) if cpu is not None and cpu in allowed else allowed
        os.sched_setaffinity(0, pinned)
        try:
            self.page.answer()
            self.running = self._wait()
        except BaseException:  # an answer is under way that nothing will read
            self.running = False
            self.close()
            raise
        finally:
            os.sched_setaffinity(0, allowed)
        return self.running

    def _wait(self) -> bool:
        while self.page.wait():
            call, _, slot, _ = self.page.called()
            if call == page.ACK:
                return True
            if call == page.END:
                break
            self._answer(call, slot)
        self._end()
        return False

    def _answer(self, call: int, slot: int) -> None:
        if call == page.INIT:
            self.page.decide(slot, self.page.params(1)[0], 0.0)
        elif self.page.text == AGENT:
            self.page.text = described(Agent)
        else:
            self.page.fail(f"{self.page.text}: in weir.gym the controls in Python are agents")
            return
        self.page.answer()

    def _end(self) -> None:
        """Closes all but the memory, which the last measurements need."""
        status = self._process.wait(WAIT_S_MAX)
        self._said.seek(0)
        said = self._said.read().decode(errors="replace").strip().splitlines()
        self.close()
        if status != 0:
            why = said[-1] if said else f"it ended with status {status}"
            raise UserError(why.removeprefix("weir-sim: "), 1)


def end_program(
    process: subprocess.Popen[bytes],
    fds: tuple[int, ...],
    said: IO[bytes],
    folder: TemporaryDirectory[str],
) -> None:
    """Ends an episode, however far it is."""
    if process.poll() is None:
        process.kill()
        process.wait()
    for fd in fds:
        os.close(fd)
    said.close()
    folder.cleanup()
