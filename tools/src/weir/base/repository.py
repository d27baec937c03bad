# SPDX-License-Identifier: BSD-3-Clause
"""The answers of git about this clone."""

from __future__ import annotations

import subprocess

from weir import bootstrap
from weir.base.errors import UserError


def built_commit() -> str | None:
    """Returns the commit of this clone, with -dirty if files were changed; None without one."""
    try:
        return git("describe", "--always", "--dirty", "--abbrev=12", "--exclude=*")
    except UserError:
        return None


def git(*args: str) -> str:
    """Runs git in this clone and returns what it prints; UserError: it failed."""
    argv = ["git", "-C", str(bootstrap.ROOT), *args]
    try:
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise UserError("--against: git is not installed", 1) from None
    if done.returncode != 0:
        why = (done.stderr.strip() or f"exit status {done.returncode}").splitlines()[-1]
        raise UserError(f"--against: git: {why}", 1)
    return done.stdout.strip()
