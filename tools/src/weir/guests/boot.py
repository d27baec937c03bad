# SPDX-License-Identifier: BSD-3-Clause
"""Boots a built kernel once, in real time, to see that it does, and what it offers.

Its root is a folder of the host, in which the guests' program (tools/sim/guest/init_ask.c) loads
the modules and prints which congestion controls there are.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from weir.base.errors import UserError
from weir.base.programs import find_program
from weir.guests import commands
from weir.guests.kernels import Kernel

BOOT_S = 60  # a boot takes a fraction of a second
ARGUMENTS = (
    *("mem=128M", "umid=weir", "root=/dev/root", "rootfstype=hostfs", "ro", "init=/init"),
    *("con=null", "con0=null,fd:1", "console=tty0", "quiet", "norandmaps", "panic=-1"),
)


def controls(folder: Path, kernel: Kernel) -> str:
    """Returns the controls of a folder's kernel, with its modules; UserError: it does not boot."""
    guest = find_program("sim").parent / "guest"
    with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="weir-boot-") as name:
        root = Path(name)
        for empty in ("proc", "dev", "modules"):
            (root / empty).mkdir()
        shutil.copy2(guest / "guest-init", root / "init")
        for file in folder.glob("*.ko"):
            shutil.copy2(file, root / "modules" / file.name)
        asked = ["--", "ask", *kernel.modules.split()]
        said = run([str(folder / "linux"), *ARGUMENTS, f"rootflags={root}", *asked], guest, root)
    found = re.search(r"^weir: controls (.*\S)\s*$", said, re.MULTILINE)
    if found is None:
        lines = [line for line in said.splitlines() if line.strip()] or ["it has printed nothing"]
        why = [line for line in lines if line.startswith("weir: ") or "panic" in line] or lines
        raise UserError(f"guests: the kernel that was built does not boot: {why[-1].strip()}", 1)
    return found[1]


def run(argv: list[str], guest: Path, root: Path) -> str:
    """Runs a kernel; returns what it prints until it ends, or is ended."""
    environment = {"LD_PRELOAD": str(guest / "libguest-shim.so"), "HOME": str(root)}
    with commands.group(
        argv,
        env=environment | {"TMPDIR": str(root)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    ) as process:
        try:
            said: str | bytes = process.communicate(timeout=BOOT_S)[0]
        except subprocess.TimeoutExpired as late:
            said = late.stdout or b""
    return said.decode(errors="replace") if isinstance(said, bytes) else said
