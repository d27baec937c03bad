# SPDX-License-Identifier: BSD-3-Clause
"""The simulators that `weir bench corescale` measures beside weir-sim: ns-3 and htsim.

A driver of each is part of this repository; the simulator itself is what the user has installed.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
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
NS3_LIBRARIES = (
    "applications",
    "point-to-point",
    "traffic-control",
    "internet",
    "network",
    "core",
)
HTSIM_LIBRARY = "libhtsim.a"


@dataclass(frozen=True)
class Ns3Length:
    """End of a measurement of ns-3, which begins with a full buffer: what is reached first."""

    packets: int = 300_000
    wall_s_max: float = 30


def ns3_pairs(flows: int) -> int:
    """Returns the number of senders over which ns-3 spreads its flows: ten as in the paper, or
    more.

    It searches a node's sockets and a router's interfaces one by one; the root balances the two.
    """
    return max(10, round(math.sqrt(flows / 10)))


def ns3(load: Load, length: Ns3Length) -> Sample:
    """Measures ns-3, at 10 Gbit/s."""
    argv = [str(driver("ns3")), f"--flows={load.flows}", f"--pairs={ns3_pairs(load.flows)}"]
    argv += [f"--packets={length.packets}", f"--wall-max={length.wall_s_max}"]
    out, peak = sim.child(argv)
    return sim.sample(json.loads(out), peak)


def htsim(load: Load, length: Length) -> Sample:
    """Measures htsim, the packet simulator of csg-htsim."""
    words = (load.flows, load.gbit, length.warmup_s, length.measured_s)
    out, peak = sim.child([str(driver("htsim")), *map(str, words)])
    return sim.sample(json.loads(out), peak)


def driver(name: str) -> Path:
    return programs.build_dir() / f"tools/bench/{name}_dumbbell"


def build_ns3() -> None:
    """Installs what the ns-3 driver needs and compiles it; UserError: it cannot."""
    build = programs.build_dir()
    with bootstrap.locked(build):
        missing = [need.package for need in NS3_NEEDS if not need.met()]
        if missing:
            bootstrap.say(f"installing Debian packages: {' '.join(missing)} (for ns-3)")
            why = bootstrap.apt(missing, build)
            if why is not None:
                raise UserError(
                    f"cannot install {', '.join(missing)}: {why}; install them with: apt-get "
                    f"install {' '.join(missing)}, or leave ns-3 out: --no-ns3",
                    1,
                )
    source, program = sim.SOURCES / "ns3_dumbbell.cc", driver("ns3")
    if program.exists() and program.stat().st_mtime > source.stat().st_mtime:
        return
    program.parent.mkdir(parents=True, exist_ok=True)
    argv = [bootstrap.tool("c++"), "-std=c++17", "-O3", "-o", str(program), str(source)]
    sim.run_logged([*argv, *(f"-lns3-{name}" for name in NS3_LIBRARIES)], program.name)


def build_htsim(folder: Path) -> None:
    """Compiles the htsim driver against the library that the user has built."""
    places = [folder, folder / "sim"]
    found = [place for place in places if (place / HTSIM_LIBRARY).is_file()]
    if not found:
        raise UserError(
            f"--htsim: {folder} has no {HTSIM_LIBRARY}, nor has its folder sim; it is built by make"
            " in the folder sim of https://github.com/Broadcom/csg-htsim"
        )
    program = driver("htsim")
    program.parent.mkdir(parents=True, exist_ok=True)
    argv = [bootstrap.tool("c++"), "-std=c++17", "-O3", f"-I{found[0]}", "-o", str(program)]
    source = sim.SOURCES / "htsim_dumbbell.cc"
    sim.run_logged([*argv, str(source), str(found[0] / HTSIM_LIBRARY)], program.name)


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
