# SPDX-License-Identifier: BSD-3-Clause
"""However the tests end, nothing of a laboratory is left."""

import os
import signal
import sys
from pathlib import Path

import pytest
from lab import RUNTIME, Child, namespaces, processes, wait_for

ENDINGS = {"killed": signal.SIGKILL, "terminated": signal.SIGTERM, "ctrl-c": signal.SIGINT}


def what_there_is():
    """Processes, network namespaces in use or named, folders of DPDK."""
    folders = {path for place in (Path("/run/netns"), RUNTIME) for path in place.iterdir()}
    return {*processes(), *namespaces(), *folders}


@pytest.mark.parametrize("ending", [*ENDINGS, "failure"])
def test_nothing_is_left(tmp_path, root, weir_switch, monkeypatch, ending):
    ready = tmp_path / "ready"
    before = what_there_is()
    monkeypatch.setenv("READY", str(ready))
    monkeypatch.setenv("ENDING", ending)
    inner = Path(__file__).with_name("runs_on.py")
    base = ["--basetemp", tmp_path / "inner", "-p", "no:cacheprovider"]
    tests = Child([sys.executable, "-m", "pytest", "-c", root / "tests/pytest.ini", *base, inner])
    wait_for(ready.exists, lambda: f"a laboratory: {tests.out}")
    if ending == "ctrl-c":
        os.killpg(tests.process.pid, signal.SIGINT)
    elif ending in ENDINGS:
        tests.send(ENDINGS[ending])
    assert tests.wait() != 0
    wait_for(lambda: what_there_is() <= before, lambda: f"the end of {what_there_is() - before}")
