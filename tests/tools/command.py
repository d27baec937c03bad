# SPDX-License-Identifier: BSD-3-Clause
"""The weir command in a process that is forked where its modules have been imported.

A quarter of a second per call is saved: as much as most commands take. All but what the modules do
when they are imported is as in `python -m weir`, which other tests start.
"""

import multiprocessing
import os
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import weir.__main__

# Modules that commands import. Polars is not among them: its threads do not outlive a fork.
PRELOADED = ["weir.cli.app", "weir.api", "weir.analysis.stream", "matplotlib.figure"]
TIMEOUT_S = 120

SERVER = multiprocessing.get_context("forkserver")
SERVER.set_forkserver_preload(PRELOADED)


def one_line(text):
    """The only line of what a command said."""
    lines = text.strip().splitlines()
    assert len(lines) == 1, text
    return lines[0]


@dataclass
class Done:
    status: int
    out: str
    err: str

    def worked(self):
        """Asserts that the command did what it was asked for."""
        assert self.status == 0, self.err
        return self

    def refused(self, status=2):
        """Asserts that the command failed with this status, and returns its only sentence."""
        assert self.status == status, self.err
        return one_line(self.err)


def run(argv, env, cwd):
    """Runs `weir ARGV...` with this environment in this folder."""
    with tempfile.NamedTemporaryFile() as out, tempfile.NamedTemporaryFile() as err:
        child = SERVER.Process(target=enter, args=(argv, env, str(cwd), out.name, err.name))
        child.start()
        child.join(TIMEOUT_S)
        if child.exitcode is None:
            child.kill()
            raise TimeoutError(f"weir {argv} took more than {TIMEOUT_S} s")
        said = [Path(file.name).read_text() for file in (out, err)]
        return Done(child.exitcode, *said)


def enter(argv, env, cwd, out, err):
    """The forked process becomes the command."""
    for fd, name in enumerate((out, err), start=1):
        os.dup2(os.open(name, os.O_WRONLY | os.O_APPEND), fd)
    os.environ.clear()
    os.environ.update(env)
    os.chdir(cwd)
    sys.argv = [weir.__main__.__file__, *argv]
    sys.exit(weir.__main__.main())
