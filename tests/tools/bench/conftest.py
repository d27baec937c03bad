# SPDX-License-Identifier: BSD-3-Clause
"""What the tests of benchmarks share."""

import io

import pytest
from rich.console import Console
from weir.base import terminal
from weir.bench.rounds import Rounds


@pytest.fixture
def shown():
    """Returns what a terminal shows of a result."""

    def show(result):
        out = io.StringIO()
        terminal.show(Console(file=out, width=140), result.parts())
        return out.getvalue()

    return show


@pytest.fixture
def rounds():
    """Returns rounds that print into a text, which is `rounds().screen.file`."""
    return lambda repeat=1: Rounds(repeat, Console(file=io.StringIO(), width=140))
