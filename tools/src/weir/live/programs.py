# SPDX-License-Identifier: BSD-3-Clause
"""weir setup live: builds weir-switch and weir-sender, with DPDK of the system.

A wheel has their sources and not themselves, as a program that is linked with DPDK runs with that
version of it only.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from weir import bootstrap
from weir.base import programs
from weir.base.errors import UserError

LIVE = ("switch", "sender")
NEEDS = (*(need for need in bootstrap.BUILD_NEEDS if need.package != "check"), bootstrap.DPDK_NEED)
OPTIONS = ("-Ddpdk=enabled", "--buildtype=release")


def setup(say: Callable[[str], None] = bootstrap.say) -> list[Path]:
    """Installs what is missing and builds both programs; returns their paths."""
    if os.geteuid() == 0:
        os.umask(0o022)  # every user runs them
    build = programs.live_build()
    try:
        with bootstrap.locked(build):
            install(build, say)
            configure(build)
            bootstrap.compile_(build, *(programs.PROGRAMS[name] for name in LIVE))
    except bootstrap.SetupError as error:
        raise UserError(f"setup live: {error}", 1) from None
    return [build / programs.PROGRAMS[name] for name in LIVE]


def install(build: Path, say: Callable[[str], None]) -> None:
    """Installs the compiler, DPDK and the other libraries."""
    missing = [need.package for need in NEEDS if not need.met()]
    if missing:
        say(f"installing Debian packages: {' '.join(missing)}")
        bootstrap.apt_or_sentence(missing, build)


def configure(build: Path) -> None:
    """Configures with DPDK, whether or not this was built without it before."""
    tests = [] if (bootstrap.ROOT / "tests").is_dir() else ["-Dtests=false"]
    if (build / "build.ninja").exists():
        argv = [bootstrap.tool("meson"), "configure", str(build), *OPTIONS[:1]]
        log = build / "weir-setup.log"
        if bootstrap.logged(argv, log) != 0:
            raise bootstrap.SetupError(f"cannot configure {build}: {bootstrap.last_error(log)}")
    bootstrap.configure(build, [*OPTIONS, *tests])
