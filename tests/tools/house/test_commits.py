# SPDX-License-Identifier: BSD-3-Clause
"""Titles of commits fit where git shows them."""

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
SINCE = "c4412e5"  # what was there before stays
TITLE_MAX = 72


def test_titles_of_commits_are_short():
    argv = ["git", "log", "--no-merges", "--format=%s", f"{SINCE}.."]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip("this clone's history does not go back so far")
    assert [title for title in done.stdout.splitlines() if len(title) > TITLE_MAX] == []
