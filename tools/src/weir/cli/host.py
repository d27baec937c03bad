# SPDX-License-Identifier: BSD-3-Clause
"""The host that `weir doctor` checks, and how it says what it found."""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

OK, WARN, BAD = "ok", "warn", "bad"


@dataclass(frozen=True)
class Check:
    """A row: bad means that Weir cannot work, warn that something will be missing or worse."""

    name: str
    state: str
    found: str
    meaning: str = ""
    fix: str = ""


class Host:
    """The host that checks look at; tests put a folder in place of /."""

    def __init__(self, root: Path = Path("/")) -> None:
        self.root = root

    def read(self, path: str) -> str | None:
        """Returns a small file's text, or None."""
        try:
            return (self.root / path).read_text(encoding="utf-8", errors="replace").strip()
        except OSError:
            return None

    def ethtool(self, option: str, name: str) -> str:
        """Returns what `ethtool` says of an interface; "" if it says nothing."""
        return output(["ethtool", option, name]) or ""

    def glob(self, pattern: str) -> list[Path]:
        """Returns paths below the root."""
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
