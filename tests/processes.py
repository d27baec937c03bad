# SPDX-License-Identifier: BSD-3-Clause
"""What /proc says of processes, any of which may end while it is read.

Path.glob() is no way to find them: it raises ProcessLookupError for one that ends between its
listing and its look at the file.
"""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

PROC = Path("/proc")


def pids() -> list[int]:
    """Returns the ids of the processes that there are."""
    return [int(place.name) for place in PROC.iterdir() if place.name.isdecimal()]


def command_line(pid: int) -> list[bytes]:
    """Returns the words that a process was started with; none if it has ended."""
    with suppress(OSError):
        return (PROC / str(pid) / "cmdline").read_bytes().split(b"\0")[:-1]
    return []


def links(pid: int, name: str) -> Iterator[str]:
    """Yields where links of a process point: its folder, its namespaces, its open files.

    A name that ends in / stands for all links of a folder.
    """
    folder = PROC / str(pid) / name
    places: list[Path] = [] if name.endswith("/") else [folder]
    with suppress(OSError):
        places = places or list(folder.iterdir())
    for place in places:
        with suppress(OSError):
            yield str(place.readlink())


def state(pid: int) -> str:
    """Returns the letter of what a process does, such as T if it is stopped; "" if it has ended."""
    with suppress(OSError):
        return (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()[0]
    return ""


def children(pid: int) -> list[int]:
    """Returns the processes that a process has started and that run; none if it has ended."""
    found = []
    for child in pids():
        with suppress(OSError):
            state, parent = (PROC / str(child) / "stat").read_text().rpartition(")")[2].split()[:2]
            if int(parent) == pid and state != "Z":
                found.append(child)
    return found


def runs(pid: int) -> bool:
    """Returns whether a process has not ended; one that waits to be reaped has."""
    return state(pid) not in ("", "Z")
