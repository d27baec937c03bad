# SPDX-License-Identifier: BSD-3-Clause
"""The simulators that `weir bench corescale` measures beside weir-sim: ns-3 and htsim.

A driver of each is part of this repository; the simulator itself is what the user has installed.
"""

from __future__ import annotations

import math
from pathlib import Path

from weir import bootstrap
from weir.base import programs
from weir.base.errors import UserError
from weir.bench import sim
from weir.bench.sim import Length, Load, Sample
from weir.bootstrap import Need

NS3_NEEDS = (
    Need("g++", "command c++"),
    Need("libns3-dev", "file usr/include/ns3/core-module.h"),
    Need("libgsl-dev", "pkgconfig gsl"),
    Need("libxml2-dev", "pkgconfig libxml-2.0"),
    Need("libsqlite3-dev", "pkgconfig sqlite3"),
)
NS3 = ("applications", "point-to-point", "traffic-control", "internet", "network", "core")
NS3_PACKETS, NS3_WALL_S = 300_000, 30
HTSIM_LIBRARY = "libhtsim.a"


def ns3_pairs(flows: int) -> int:
    """Returns the number of senders over which ns-3 spreads its flows: at least the paper's ten.

    It searches a node's sockets and a router's interfaces one by one; the root balances the two.
    """
    return max(10, round(math.sqrt(flows / 10)))


def ns3(load: Load) -> Sample:
    """Measures ns-3, at 10 Gbit/s, from a full buffer until one of the two maxima is reached."""
    argv = [driver("ns3"), f"--flows={load.flows}", f"--pairs={ns3_pairs(load.flows)}"]
    return sim.peer([*argv, f"--packets={NS3_PACKETS}", f"--wall-max={NS3_WALL_S}"])


def htsim(load: Load, length: Length) -> Sample:
    """Measures htsim, the packet simulator of csg-htsim."""
    seconds = (length.warmup_s, length.measured_s)
    return sim.peer([driver("htsim"), load.flows, load.gbit, *seconds])


def driver(name: str) -> Path:
    return programs.build_dir() / f"tools/bench/{name}_dumbbell"


def build_ns3() -> None:
    """Installs what the ns-3 driver needs and compiles it; UserError: it cannot."""
    build = programs.build_dir()
    with bootstrap.locked(build):
        missing = [need.package for need in NS3_NEEDS if not need.met()]
        if missing:
            bootstrap.say(f"installing Debian packages: {' '.join(missing)} (for ns-3)")
            try:
                bootstrap.apt_or_sentence(missing, build)
            except bootstrap.SetupError as error:
                raise UserError(f"{error}, or leave ns-3 out: --no-ns3", 1) from None
    program = driver("ns3")
    source = sim.SOURCES / "ns3_dumbbell.cc"
    if not program.exists() or program.stat().st_mtime <= source.stat().st_mtime:
        compile_("ns3", *(f"-lns3-{name}" for name in NS3))


def build_htsim(folder: Path) -> None:
    """Compiles the htsim driver against the library that the user has built."""
    found = [place for place in (folder, folder / "sim") if (place / HTSIM_LIBRARY).is_file()]
    if not found:
        raise UserError(
            f"--htsim: {folder} has no {HTSIM_LIBRARY}, nor has its folder sim; it is built by make"
            " in the folder sim of https://github.com/Broadcom/csg-htsim"
        )
    compile_("htsim", f"-I{found[0]}", str(found[0] / HTSIM_LIBRARY))


def compile_(name: str, *libraries: str) -> None:
    program = driver(name)
    program.parent.mkdir(parents=True, exist_ok=True)
    argv = [bootstrap.tool("c++"), "-std=c++17", "-O3", "-o", str(program)]
    sim.run_logged([*argv, str(sim.SOURCES / f"{program.name}.cc"), *libraries], program.name)


def ns3_build() -> str:
    """Returns what ns-3's library was built with, from the names in it."""
    found = sorted(Path("/usr/lib").glob("*/libns3-internet.so"))
    if not found:
        return "build unknown"
    data = found[0].read_bytes()
    version = found[0].resolve().name.rsplit(".so.", 1)[-1]
    logging = "with" if b"ParameterLogger" in data else "without"
    asserts = "with" if b"NS_ASSERT failed" in data or b"assert failed" in data else "without"
    return f"soname {version}, {logging} logging (switched off) and {asserts} asserts compiled in"
