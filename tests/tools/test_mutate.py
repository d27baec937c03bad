# SPDX-License-Identifier: BSD-3-Clause
"""The list of tests/mutate goes with the sources: what it changes is there, exactly once."""

import importlib.machinery
import importlib.util
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
