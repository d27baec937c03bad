# SPDX-License-Identifier: BSD-3-Clause
"""What all Python tests share: where the programs are, and who may run the smoke tests."""

import os
import resource
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
# A test that runs away must not fill the disk: the largest file any of them may write.
resource.setrlimit(resource.RLIMIT_FSIZE, (4 << 30, 4 << 30))

BUILD = Path(os.environ.get("WEIR_BUILD") or ROOT / "build")


def pytest_collection_modifyitems(items):
    if os.geteuid() == 0:
        return
    skip = pytest.mark.skip(reason="needs root: network namespaces and raw sockets")
    for item in items:
        if (ROOT / "tests/smoke") in item.path.parents:
            item.add_marker(skip)


@pytest.fixture(scope="session")
def root():
    """The repository."""
    return ROOT


@pytest.fixture(scope="session")
def build():
    """The build directory."""
    return BUILD


def program(name):
    path = BUILD / name
    if not path.exists():
        pytest.skip(f"{path} was not built")
    return path


@pytest.fixture(scope="session")
def weir_sim():
    """Path of weir-sim."""
    return program("tools/sim/weir-sim")


@pytest.fixture(scope="session")
def weir_switch():
    """Path of weir-switch; without DPDK there is none."""
    return program("switch/weir-switch")


@pytest.fixture(scope="session")
def weir_sender():
    """Path of weir-sender; without DPDK there is none."""
    return program("sender/weir-sender")
