# SPDX-License-Identifier: BSD-3-Clause
import os
import signal

import pytest
from lab import OPEN, Lab, processes


@pytest.fixture(autouse=True)
def nothing_runs_on():
    """A test ends every process that it started, but for those of a lab that goes on."""
    before = processes()
    yield
    for lab in OPEN:
        lab.end_children()
    left = {pid: line for pid, line in processes().items() if pid not in before}
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    assert not left


@pytest.fixture
def lab(tmp_path, build, weir_switch, weir_sender):
    """Two hosts and a switch between them."""
    with Lab(tmp_path, build) as lab:
        yield lab
