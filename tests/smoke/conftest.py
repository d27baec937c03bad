# SPDX-License-Identifier: BSD-3-Clause
import os
import signal
from contextlib import suppress

import pytest
from lab import OPEN, Lab, processes
from waiting import wait_for

END_S = 20  # for what is about to end, or was killed with its group, to get the CPU


@pytest.fixture(autouse=True)
def nothing_runs_on():
    """A test ends every process that it started, but for those of a lab that goes on."""
    before = processes()
    yield
    for lab in OPEN:
        lab.end_children()

    def left():
        return {pid: line for pid, line in processes().items() if pid not in before}

    try:
        wait_for(lambda: not left(), lambda: f"the end of {left()}", END_S)
    except TimeoutError:
        for pid in left():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        raise


@pytest.fixture
def lab(tmp_path, build, weir_switch, weir_sender):
    """Two hosts and a switch between them."""
    with Lab(tmp_path, build) as lab:
        yield lab
