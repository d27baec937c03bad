# SPDX-License-Identifier: BSD-3-Clause
import os
import signal

import pytest
from lab import processes


@pytest.fixture(autouse=True)
def nothing_runs_on():
    """A test ends every process that it started."""
    before = processes()
    yield
    left = {pid: line for pid, line in processes().items() if pid not in before}
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    assert not left
