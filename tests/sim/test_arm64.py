# SPDX-License-Identifier: BSD-3-Clause
"""arm64: the same bytes as on x86-64, whatever the size of its pages.

Sixteen experiments of the swarm and a few unit tests. With WEIR_ARM64=1 all unit tests and hundreds
of experiments, also by a processor without FMA.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import arm64
import pytest
from swarm.examine import Programs, examine
from swarm.generate import Generator, registry
from swarm.main import dump, new_seed
from weir import bootstrap

from .conftest import Simulate
from .test_determinism import MIXED, rings
from .test_machines import RUNS, WESTMERE

pytestmark = pytest.mark.slow
EXPERIMENTS = 200 if arm64.ALL else 16
# Arithmetic, layouts, times and files. All of them take three minutes of CPU time.
UNIT = (
    "aqm_red",
    "cc_cubic",
    "hist",
    "pcapng",
    "portable_math",
    "rng",
    "run",
    "telemetry",
    "ticks",
    "units",
)
PAGE_BYTES = (4 << 10, 16 << 10, 64 << 10)  # the sizes that arm64's Linux has


@pytest.fixture(scope="module")
def build() -> Path:
    """The build for arm64, with weir-sim and the unit tests that are run."""
    if arm64.ALL:
        return arm64.build()
    return arm64.build("tools/sim/weir-sim", *(f"tests/unit/test_{name}" for name in UNIT))


@pytest.mark.parametrize("name", RUNS)
def test_the_digests_are_the_same(
    build: Path, simulate: Simulate, tmp_path: Path, name: str
) -> None:
    program = arm64.emulated("tools/sim/weir-sim", tmp_path)
    here, there = simulate(*RUNS[name]), simulate(*RUNS[name], program=program)

    assert there.summary["digest"] == here.summary["digest"]


@pytest.mark.parametrize("page_bytes", PAGE_BYTES)
def test_pages_of_any_size(
    build: Path, simulate: Simulate, tmp_path: Path, weir_sim: Path, page_bytes: int
) -> None:
    """Files of a machine are the same on each, and are read on the others."""
    program = arm64.emulated("tools/sim/weir-sim", tmp_path, page_bytes)
    run = ("duration=2s", "schedule=[]", "telemetry.arrivals=yes")
    here, there = simulate(MIXED, *run), simulate(MIXED, *run, program=program)

    assert rings(there) == rings(here)
    for reads, written in ((weir_sim, there.folder), (program, here.folder)):
        argv = [reads, written / "config.yaml", "--replay", written / "arrivals.ring"]
        done = subprocess.run([*argv, "--out", f"{written}-again"], capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, "")


def same_experiments(here: Path, there: Path) -> None:
    """The swarm's invariants hold, and both machines write the same summaries and digests."""
    both, seed, kinds = Programs(here, there), new_seed(), registry(here)
    results = [
        examine(dump(Generator(seed + i, kinds).experiment()), both) for i in range(EXPERIMENTS)
    ]

    assert [(seed + i, r.finding) for i, r in enumerate(results) if r.finding is not None] == []
    assert sum(r.refused == "" for r in results) > EXPERIMENTS / 4


@pytest.mark.timeout(1800)
def test_random_experiments(build: Path, tmp_path: Path, weir_sim: Path) -> None:
    same_experiments(weir_sim, arm64.emulated("tools/sim/weir-sim", tmp_path))


@pytest.mark.skipif(not arm64.ALL, reason="needs WEIR_ARM64=1")
@pytest.mark.timeout(1800)
def test_random_experiments_without_fma(tmp_path: Path, weir_sim: Path) -> None:
    command = arm64.command(tmp_path / weir_sim.name, *WESTMERE, str(weir_sim))
    same_experiments(weir_sim, command)


@pytest.mark.timeout(1800)
def test_unit_tests(build: Path) -> None:
    argv = [bootstrap.tool("meson"), "test", "-C", str(build), "--no-rebuild", "-t", "4"]
    chosen = ["--suite", "unit"] if arm64.ALL else UNIT

    done = subprocess.run([*argv, *chosen], capture_output=True, text=True)

    assert done.returncode == 0, done.stdout
