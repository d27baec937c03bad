# SPDX-License-Identifier: BSD-3-Clause
"""The host that `weir doctor` checks, and what it says of what it found."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import msgspec

from weir.base import foreign

OK, WARN, BAD = "ok", "warn", "bad"
FILE = Path(__file__).with_name("advice.yaml")


@cache
def advice() -> dict[str, tuple[str, str]]:
    """Returns what a check means that did not go well, and what mends it."""
    read = foreign.decode_yaml(FILE.read_text(encoding="utf-8"), str(FILE))
    return msgspec.convert(read, dict[str, tuple[str, str]])


@dataclass(frozen=True)
class Check:
    """A row: bad means that Weir cannot work, warn that something will be missing or worse."""

    name: str
    state: str
    found: str
    meaning: str = ""
    fix: str = ""


def warn(name: str, found: str, of: str = "", **values: object) -> Check:
    """Returns a check with the advice of its name, or of `of`, into which the values go."""
    meaning, fix = (text.format(**values) for text in advice()[of or name])
    return Check(name, WARN, found, meaning, fix)


class Host:
    """The host that checks look at; tests put a folder in place of /."""

    def __init__(self, root: Path = Path("/")) -> None:
        self.root = root

    def read(self, path: str | Path) -> str | None:
        """Returns a small file's text, or None."""
        try:
            return (self.root / path).read_text(encoding="utf-8", errors="replace").strip()
        except OSError:
            return None

    def texts(self, pattern: str) -> Iterator[str]:
        found = map(self.read, self.glob(pattern))
        return (text for text in found if text is not None)

    def ethtool(self, option: str, name: str) -> str:
        """Returns what `ethtool` says of an interface; "" if it says nothing."""
        return output(["ethtool", option, name]) or ""

    def glob(self, pattern: str) -> list[Path]:
        return sorted(self.root.glob(pattern))


def output(argv: list[str]) -> str | None:
    """Returns what a command prints; None if it fails or is missing."""
    try:
        done = subprocess.run(
            argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=10
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def cpu_list(text: str) -> set[int]:
    """Reads CPUs as the kernel writes them, "1-3,8"; what is no list of CPUs is empty."""
    ranges = (part.partition("-") for part in text.split(",") if re.fullmatch(r"\d+(-\d+)?", part))
    return {cpu for first, _, last in ranges for cpu in range(int(first), int(last or first) + 1)}
