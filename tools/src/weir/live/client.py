# SPDX-License-Identifier: BSD-3-Clause
"""Talks to running live programs through rte_telemetry's sockets.

A program's socket is in DPDK's runtime folder, in a folder named by the program's prefix:

    /var/run/dpdk/PREFIX/dpdk_telemetry.v2             as root
    $XDG_RUNTIME_DIR/dpdk/PREFIX/dpdk_telemetry.v2     else

One message is a question, "/weir/set,forward.link.rate=5Gbit", the next is its answer in JSON. In
its texts bytes beyond ASCII stand as in a URL, and a long one goes on under "name/2", "name/3".
"""

from __future__ import annotations

import itertools
import json
import os
import socket
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from weir.base.errors import UserError
from weir.base.foreign import Json

SOCKET = "dpdk_telemetry.v2"
ANSWER_BYTES = 1 << 16
ANSWER_TIMEOUT_S = 10.0  # the program's own is 5 s


class Ended(Exception):
    """The program has ended, or nobody listens at its socket."""


class NoJson(UserError):
    """An answer at a program's socket that is no JSON."""

    def __init__(self, prefix: str) -> None:
        super().__init__(
            f"the program with the prefix '{prefix}' runs, but its answer is no JSON", 1
        )


def decoded(value: object) -> object:
    """Returns an answer whose texts DPDK's telemetry had encoded, as they were."""
    if isinstance(value, str):
        return unquote(value, errors="surrogateescape")
    if isinstance(value, list):
        return [decoded(each) for each in value]
    if not isinstance(value, dict):
        return value
    found = {key: decoded(each) for key, each in value.items()}
    for key in [
        key for key, text in value.items() if isinstance(text, str) and f"{key}/2" in value
    ]:
        parts = itertools.takewhile(value.__contains__, (f"{key}/{n}" for n in itertools.count(2)))
        found[key] = decoded(value[key] + "".join([value[part] for part in parts]))
    return found


class Program:
    """A connection to a running program. A context manager."""

    def __init__(self, path: Path) -> None:
        """Raises Ended, NoJson, PermissionError or TimeoutError."""
        self.prefix = path.parent.name
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.settimeout(ANSWER_TIMEOUT_S)
        try:
            self.socket.connect(str(path))
            hello = self.receive()
            self.pid = int(hello.get("pid", 0))
            self.info = self.ask("/weir/info")
        except BaseException as error:
            self.socket.close()
            if isinstance(error, (ConnectionError, FileNotFoundError)):
                raise Ended from error
            raise

    def __enter__(self) -> Program:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connection, which a thread of the program serves."""
        self.socket.close()

    @property
    def name(self) -> str:
        return str(self.info.get("program", "")) if isinstance(self.info, dict) else ""

    @property
    def run(self) -> str:
        """The run folder, the same for all programs of a run; the prefix if it names none."""
        folder = self.info.get("run") if isinstance(self.info, dict) else None
        try:
            return str(Path(f"/proc/{self.pid}/cwd").readlink() / folder) if folder else self.prefix
        except OSError:  # another user's
            return str(folder)

    def receive(self) -> Json:
        """Returns a message; Ended if there will be no more."""
        try:
            message = self.socket.recv(ANSWER_BYTES)
        except ConnectionError as error:
            raise Ended from error
        if not message:
            raise Ended
        try:
            found = decoded(json.loads(message))
        except ValueError as error:
            raise NoJson(self.prefix) from error
        if not isinstance(found, dict):
            raise NoJson(self.prefix)
        return found

    def ask(self, command: str) -> Any:
        """Returns the answer to a command; None: the program does not know it."""
        try:
            self.socket.send(command.encode())
        except ConnectionError as error:
            raise Ended from error
        return self.receive().get(command.split(",")[0])

    def want(self, command: str, status: int = 1) -> Any:
        """Returns the answer; a UserError with the program's sentence if it refuses."""
        answer = self.ask(command)
        if answer is None:
            raise UserError(f"{self.name} (prefix {self.prefix}) does not know {command}", 1)
        if isinstance(answer, dict) and "error" in answer:
            raise UserError(str(answer["error"]), status)
        return answer


def runtime_folder() -> Path:
    """Returns the folder in which DPDK keeps one per running program of this user."""
    default = "/var/run" if os.getuid() == 0 else os.environ.get("XDG_RUNTIME_DIR", "/tmp")
    return Path(os.environ.get("RUNTIME_DIRECTORY", default)) / "dpdk"


def sockets() -> list[Path]:
    """Returns the sockets of all programs, those that were killed among them."""
    try:
        return sorted(runtime_folder().glob(f"*/{SOCKET}"))
    except PermissionError:
        return []


def running(but: Iterable[str] = ()) -> list[Program]:
    """Returns Weir's running programs by prefix; those of the prefixes `but` are left alone.

    NoJson: none can be asked, and one that runs does not answer in JSON.
    """
    found: list[Program] = []
    unclear: NoJson | None = None
    for path in sockets():
        if path.parent.name in set(but):
            continue
        try:
            program = Program(path)
        except (Ended, PermissionError, TimeoutError):
            continue
        except NoJson as error:
            unclear = error
            continue
        if program.name:
            found.append(program)
        else:
            program.close()
    if unclear is not None and not found:
        raise unclear
    return found


def named(prefix: str) -> Program:
    """Returns the program with a prefix. UserError: it cannot be asked."""
    path = runtime_folder() / prefix / SOCKET
    try:
        program = Program(path)
    except Ended:
        raise UserError(f"no program with the prefix '{prefix}' runs{others()}", 1) from None
    except PermissionError:
        raise UserError(f"{path}: the program is another user's", 1) from None
    except TimeoutError:
        raise UserError(f"the program with the prefix '{prefix}' does not answer", 1) from None
    if not program.name:
        refused = isinstance(program.info, dict) and program.info.get("error")
        program.close()
        raise UserError(f"'{prefix}': {refused or 'this is no program of Weir'}", 1)
    return program


def others() -> str:
    programs = running()
    for program in programs:
        program.close()
    return f"; these do: {listing(programs)}" if programs else ""


def listing(programs: Sequence[Program], runs: bool = False) -> str:
    return ", ".join(
        f"{program.name} (prefix {program.prefix}{f', run {program.run}' if runs else ''})"
        for program in programs
    )


def select(prefixes: Sequence[str]) -> list[Program]:
    """Returns the programs of these prefixes, or all that run: at least one."""
    if prefixes:
        return [named(prefix) for prefix in prefixes]
    programs = running()
    if not programs:
        raise UserError(f"no program of Weir runs (none answers in {runtime_folder()})", 1)
    return programs


def the_one(prefix: str | None, name: str | None = None) -> Program:
    """Returns the program of a prefix, or the only one that runs, if its name is `name`."""
    programs = select([prefix] if prefix is not None else [])
    fitting = [program for program in programs if name in (None, program.name)]
    for program in programs:
        if len(fitting) != 1 or program is not fitting[0]:
            program.close()
    if not fitting:
        raise UserError(f"no {name} runs, only {listing(programs)}", 1)
    if len(fitting) > 1:
        raise UserError(
            f"several run: {listing(fitting)}; choose one, as with --prefix {fitting[0].prefix}"
        )
    return fitting[0]
