# SPDX-License-Identifier: BSD-3-Clause
"""Weir for arm64: built by Debian's cross compiler, run by qemu-user.

The first build takes a minute of CPU time, and the libraries of arm64 60 MB of downloads.
"""

import os
import shlex
from pathlib import Path

from weir import bootstrap

ALL = os.environ.get("WEIR_ARM64") == "1"
FOLDER = bootstrap.ROOT / "build-arm64"
PACKAGING = bootstrap.ROOT / "tools/packaging"
BUILD = FOLDER / "build"


def build(*targets: str) -> Path:
    """Brings the build, or parts of it, up to date; returns its folder."""
    crossed = [f"--cross-file={FOLDER}/root.ini", f"--cross-file={PACKAGING}/arm64.ini"]
    log = FOLDER / "weir-setup.log"
    with bootstrap.locked(FOLDER):
        if bootstrap.logged([f"{PACKAGING}/sysroot", str(FOLDER)], log) != 0:
            raise bootstrap.SetupError(f"no libraries of arm64: {bootstrap.last_error(log)}")
        bootstrap.configure(BUILD, [*crossed, "-Ddebug=false", "-Doptimization=1"])
        bootstrap.compile_(BUILD, *targets)
    return BUILD


def command(path: Path, *argv: str) -> Path:
    """Writes a command that runs argv with its own arguments, and returns it."""
    path.write_text(f'#!/bin/sh\nexec {shlex.join(argv)} "$@"\n')
    path.chmod(0o755)
    return path


def emulated(program: str, folder: Path, page_bytes: int = 4096) -> Path:
    """Writes a command into a folder that runs a program of the build, and returns it."""
    place = folder / f"pages-{page_bytes}"
    place.mkdir(exist_ok=True)
    qemu = ("qemu-aarch64", "-p", str(page_bytes), "-L", f"{FOLDER}/root")
    return command(place / Path(program).name, *qemu, f"{BUILD}/{program}")
