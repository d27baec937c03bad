# SPDX-License-Identifier: BSD-3-Clause
"""The program that acts on a host of `weir run --live --hosts`; it needs only Python 3.9.

    agent.pyz WHAT HOST [ARGUMENT]

The archive has this file, request.json (by hosts' names) and the config with what it reads. Each
call does one thing, prints one line, `WEIR {...}`, and ends. Only `start` leaves something behind:
the keeper, which starts the host's program and ends it, and itself, when nobody has attended for
as long as the lease is. So nothing runs on when the one who started it is gone.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import time
import zipfile
from contextlib import suppress
from pathlib import Path

from weir.hosts import check
from weir.hosts.check import Answer, Wanted
from weir.runner import priority

READY_S_MAX = 60.0
STOP_S_MAX = 20.0
BEGIN_S_MAX = 60.0  # a host's clock may be wrong
STARTING_S = 120.0  # nobody attends before the programs of all hosts are ready
POLL_S = 0.1
LINES_MAX = 200
MARK = "WEIR "


class Place:
    """The run's folder on this host."""

    def __init__(self, wanted: Wanted) -> None:
        self.path = Path(wanted["place"])
        self.run = self.path / "run"
        self.said = self.path / "said"
        self.status = self.path / "status"
        self.lease = self.path / "lease"
        self.keeper = self.path / "keeper"

    def ended(self) -> int | None:
        """Returns the program's exit status, if it has ended or its keeper has."""
        try:
            return int(self.status.read_text())
        except (OSError, ValueError):
            return None if alive(self.number(self.keeper)) else 1

    def number(self, path: Path) -> int:
        """Reads a process id from a file; 0 if there is none."""
        try:
            return int(path.read_text())
        except (OSError, ValueError):
            return 0

    def lines(self, since: int) -> tuple[list[str], int]:
        """Returns what the program said since a byte, and how far that is."""
        try:
            with self.said.open("rb") as file:
                file.seek(since)
                whole = file.read(1 << 20)
        except OSError:
            return [], since
        whole = whole[: whole.rfind(b"\n") + 1]
        return whole.decode(errors="replace").splitlines()[-LINES_MAX:], since + len(whole)


def alive(pid: int) -> bool:
    """Returns whether a process runs."""
    try:
        return (
            pid > 0 and Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
        )
    except OSError:
        return False


def prepare(wanted: Wanted) -> Answer:
    """Unpacks the archive, then says what this host is like."""
    place = Place(wanted)
    try:
        place.path.mkdir(mode=0o700)
        shutil.copy(archive(), place.path / "agent.pyz")
        with zipfile.ZipFile(archive()) as packed:
            packed.extractall(place.path, [n for n in packed.namelist() if n.startswith("config/")])
        reserve(place.path, wanted["space_bytes"])
    except OSError as error:
        shutil.rmtree(place.path, ignore_errors=True)
        return {"problems": [f"{place.path}: {error.strerror}"]}
    return check.check(wanted)


def reserve(path: Path, size: int) -> None:
    """Raises OSError unless so many bytes are free."""
    free = shutil.disk_usage(path).free
    if free < size:
        raise OSError(28, f"{free >> 20} MiB are free, {size >> 20} MiB are needed")


def archive() -> Path:
    return Path(sys.argv[0]).resolve()


def start(wanted: Wanted, begin_s: str = "0") -> Answer:
    """Starts the keeper and waits until the program is ready, or has ended.

    begin_s: UTC in whole seconds, at which a sender's flows, or a command that is not ours, begin;
    0: at once.
    """
    place = Place(wanted)
    if wanted["program"] and int(begin_s) > 0:
        wanted["argv"] += ["-o", f"live.sender.begin={begin_s}000000000"]
    place.lease.touch()
    os.utime(place.lease, 2 * (time.time() + STARTING_S,))
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            keep(wanted, place, 0 if wanted["program"] else int(begin_s))
        os._exit(0)
    os.wait()
    deadline = time.monotonic() + READY_S_MAX
    while time.monotonic() < deadline:
        lines, _ = place.lines(0)
        started = place.keeper.exists()
        if started and (wanted["ready"] is None or any(wanted["ready"] in x for x in lines)):
            return state(place) | {"ready": True}
        if started and place.ended() is not None:
            break
        time.sleep(POLL_S)
    return state(place) | {"ready": False}


def keep(wanted: Wanted, place: Place, begin_s: int) -> None:
    """Makes this process the keeper; it never returns."""
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(null, stream)
    status = 1
    try:
        (place.path / ".keeper").write_text(str(os.getpid()))
        (place.path / ".keeper").rename(place.keeper)
        place.run.mkdir(exist_ok=True)
        time.sleep(min(max(begin_s - time.time(), 0), BEGIN_S_MAX))
        with place.said.open("wb") as said:
            child = priority.start(
                wanted["argv"],
                stdin=subprocess.DEVNULL,
                stdout=said if wanted["output"] else subprocess.DEVNULL,
                stderr=said,
                start_new_session=True,
                cwd=place.path,
                env={**os.environ, **wanted["environment"], "WEIR_RUNNER": str(os.getpid())},
            )
            status = watch(child, Lease(place, wanted["lease_s"]))
    except OSError as error:
        place.said.write_text(f"{wanted['argv'][0]}: {error.strerror}\n")
    finally:
        with suppress(OSError):
            place.status.write_text(str(status))
        wait_unattended(place, Lease(place, wanted["lease_s"]))
        os._exit(0)


class Lease:
    """The time until which nobody need attend, by a file's time and this process's own clock.

    A time that is still to come says that nobody attends before.
    """

    def __init__(self, place: Place, seconds: float) -> None:
        self.path, self.seconds = place.lease, seconds
        self.seen, self.since = 0.0, time.monotonic()

    def expired(self) -> bool:
        """Returns whether nobody has touched the file for too long."""
        with suppress(OSError):
            touched = self.path.stat().st_mtime
            if touched != self.seen:
                ahead_s = max(touched - time.time(), 0)
                self.seen, self.since = touched, time.monotonic() + ahead_s
        return time.monotonic() - self.since > self.seconds


def watch(child: subprocess.Popen[bytes], lease: Lease) -> int:
    """Waits until the program ends, is asked to or nobody attends any more; returns its status."""
    signal.signal(signal.SIGTERM, lambda *_: child.send_signal(signal.SIGINT))
    while child.poll() is None:
        if lease.expired():
            end(child)
        time.sleep(POLL_S)
    kill_group(child.pid)
    return child.returncode


def wait_unattended(place: Place, lease: Lease) -> None:
    """Waits until what was written is removed, and removes it if nobody attends any more."""
    while place.path.is_dir():
        if lease.expired():
            shutil.rmtree(place.path, ignore_errors=True)
            return
        time.sleep(POLL_S)


def end(child: subprocess.Popen[bytes]) -> None:
    """Asks it to end, then makes it."""
    child.send_signal(signal.SIGINT)
    with suppress(subprocess.TimeoutExpired):
        child.wait(STOP_S_MAX)
    kill_group(child.pid)
    child.wait()


def kill_group(pid: int) -> None:
    """Kills a program and those that it started."""
    with suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)


def attend(wanted: Wanted, since: str = "0") -> Answer:
    """Notes that the client is there, and returns the program's state."""
    place = Place(wanted)
    if not place.path.is_dir():
        return {"gone": True, "ended": 1, "lines": [], "since": 0}
    place.lease.touch()
    return state(place, int(since))


def state(place: Place, since: int = 0) -> Answer:
    """Returns whether the program has ended, and what it said since a byte."""
    ended = place.ended()  # before its lines: they are then complete
    lines, byte = place.lines(since)
    free = shutil.disk_usage(place.path).free
    return {"ended": ended, "lines": lines, "since": byte, "free_bytes": free}


def stop(wanted: Wanted, since: str = "0") -> Answer:
    """Ends the program and packs what it wrote."""
    place = Place(wanted)
    if place.path.is_dir() and place.ended() is None:
        os.kill(place.number(place.keeper), signal.SIGTERM)
        deadline = time.monotonic() + STOP_S_MAX
        while place.ended() is None and time.monotonic() < deadline:
            place.lease.touch()
            time.sleep(POLL_S)
    answer = attend(wanted, since)
    if answer["ended"] is None:
        kill_keeper(place)
        answer["ended"] = 128 + signal.SIGKILL
    return answer | pack(place)


def pack(place: Place) -> Answer:
    """Packs the run's files into one, which is fetched next."""
    if not place.path.is_dir():
        return {"packed": False}
    try:
        with tarfile.open(place.path / "run.tar.gz", "w:gz", compresslevel=1) as tar:
            for name in ("run", "said", "capture.pcapng"):
                if (place.path / name).exists():
                    tar.add(place.path / name, name)
    except OSError as error:
        (place.path / "run.tar.gz").unlink(missing_ok=True)
        kill_keeper(place)  # which would remove it
        return {"packed": False, "problems": [f"{place.path}: {error.strerror}"]}
    return {"packed": True}


def kill_keeper(place: Place) -> None:
    """Kills the keeper; what it started ends with it."""
    if alive(place.number(place.keeper)):
        os.kill(place.number(place.keeper), signal.SIGKILL)


def clean(wanted: Wanted) -> Answer:
    """Removes all that was made here; what still runs is killed."""
    place = Place(wanted)
    kill_keeper(place)
    shutil.rmtree(place.path, ignore_errors=True)
    return {}


WHAT = {each.__name__: each for each in (prepare, check.probe, start, attend, stop, clean)}


def main() -> None:
    """Answers one request."""
    what, host, *arguments = sys.argv[1:]
    with zipfile.ZipFile(archive()) as packed:
        wanted = check.resolved(json.loads(packed.read("request.json"))[host])
    answer = WHAT[what](wanted, *arguments)
    text = base64.b64encode(json.dumps(answer).encode()).decode()  # whatever a terminal does to it
    print(MARK + text, flush=True)
    if answer.get("problems") or answer.get("ready") is False:
        sys.exit(1)  # no other host goes on


if __name__ == "__main__":
    main()
