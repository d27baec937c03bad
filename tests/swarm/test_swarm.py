# SPDX-License-Identifier: BSD-3-Clause
"""What failed once, again; and experiments nobody has run before."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from .examine import Programs, examine
from .main import CORPUS, generated, new_seed, programs, swarm

NEW = 200


@pytest.fixture(scope="session")
def both(build: Path) -> Programs:
    """The release build and the one with sanitizers."""
    return programs(build)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(path.stem for path in CORPUS.glob("*.yaml")))
def test_what_failed_once(both: Programs, name: str) -> None:
    found = examine((CORPUS / f"{name}.yaml").read_text(), both)

    assert found.finding is None


@pytest.mark.slow
@pytest.mark.timeout(900)  # two minutes of two processors; machines are shared
def test_new_experiments(both: Programs, capsys: pytest.CaptureFixture[str]) -> None:
    """`tests/swarm/run --seed N --count 1` does a failed one again and reduces it."""
    seed = new_seed()
    with capsys.disabled():
        print(f"\n{NEW} experiments from --seed {seed}")
    results = list(swarm(generated(seed, NEW, both), os.cpu_count() or 1))

    assert [(job.name, r.finding) for job, r in results if r.finding is not None] == []
    assert sum(r.refused == "" for _, r in results) > NEW / 2
