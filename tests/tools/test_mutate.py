# SPDX-License-Identifier: BSD-3-Clause
"""The list of tests/mutate goes with the sources: what it changes is there, exactly once."""

import importlib.machinery
import importlib.util
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def load():
    loader = importlib.machinery.SourceFileLoader("mutate", str(ROOT / "tests/mutate"))
    spec = importlib.util.spec_from_loader("mutate", loader)
    module = importlib.util.module_from_spec(spec)
    sys.modules["mutate"] = module
    loader.exec_module(module)
    return module


def test_every_mutation_is_found_once_and_changes_something():
    mutate = load()
    stale = []
    listed = mutate.mutations()
    for mutation in listed:
        text = (ROOT / mutation.file).read_text()
        try:
            assert mutation.applied(text) != text
        except mutate.MutationError as error:
            stale.append(str(error))
    assert stale == []
    assert len(set(listed)) == len(listed) >= 110


def test_a_unit_test_that_hangs_is_ended_alone(tmp_path):
    """Check passes SIGTERM on to its process group: tests/mutate was in it, and ended too."""
    hangs = tmp_path / "hangs"
    hangs.write_text("#!/bin/sh\ntrap 'trap - TERM; kill -TERM 0' TERM\nsleep 60 &\nwait\n")
    hangs.chmod(0o755)
    program = (
        "import pathlib, test_mutate; mutate = test_mutate.load();"
        f"print(mutate.Copy.passes(None, pathlib.Path({str(hangs)!r}), 0.1))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=Path(__file__).parent,
        start_new_session=True,
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout) == (0, "False\n")
