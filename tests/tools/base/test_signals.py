# SPDX-License-Identifier: BSD-3-Clause
"""Signals that end a command: when they take effect, and that no program is left behind."""

import signal
import time

import pytest
from weir.base import programs, signals


@pytest.fixture
def leaves():
    """SIGTERM ends this process in order while the test runs."""
    before = signal.getsignal(signal.SIGTERM)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signals.end_in_order()
    yield
    signal.signal(signal.SIGTERM, before)


def test_a_signal_is_held_until_the_block_has_ended(leaves):
    seen = []

    def work():
        with signals.held(lambda: seen.append("at once")):
            signal.raise_signal(signal.SIGTERM)
            seen.append("the rest")

    with pytest.raises(SystemExit) as ended:
        work()
    assert ended.value.code == 128 + signal.SIGTERM
    assert seen == ["at once", "the rest"]


def test_a_signal_that_is_ignored_stays_so(leaves):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    with signals.held(lambda: pytest.fail("it was ignored")):
        signal.raise_signal(signal.SIGTERM)
    signal.raise_signal(signal.SIGTERM)


def test_a_signal_while_calls_are_handed_out_ends_their_programs(leaves):
    """The exception came out of `submit`: the call ran on, and nobody knew of it."""
    started = []

    def call():
        with programs.child(["sleep", "60"]) as process:
            started.append(process)
            if process.wait() != 0:
                raise ChildProcessError

    def calls():
        yield call
        while not started:
            time.sleep(0.01)
        signal.raise_signal(signal.SIGTERM)
        yield call

    with pytest.raises(SystemExit) as ended:
        programs.several(calls())
    assert ended.value.code == 128 + signal.SIGTERM
    assert [process.returncode for process in started] == [-signal.SIGKILL]
