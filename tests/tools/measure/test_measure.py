# SPDX-License-Identifier: BSD-3-Clause
"""What weir measure does before it has a path: its programs end with it."""

import shutil
import signal

import pytest
from rich.console import Console
from weir.base.signals import passed_to
from weir.measure import far, measure
from weir.runner.child import Child


@pytest.mark.parametrize("program", ["Pings", "Capture"])
def test_a_program_ends_where_a_signal_comes_as_it_starts(program, tmp_path, monkeypatch):
    """Ctrl-C between the start of tcpdump and its `with` left it behind."""
    started = []

    class Interrupted(Child):
        def __init__(self, *_):
            super().__init__(["sleep", "1000"], first=False)
            started.append(self.process)
            if type(self).__name__ == program:
                signal.raise_signal(signal.SIGINT)

        def wait_ready(self):
            """Is ready at once."""

    for name in ("Pings", "Capture"):
        monkeypatch.setattr(far, name, type(name, (Interrupted,), {}))
    monkeypatch.setattr(measure, "IDLE_S", 0)
    monkeypatch.setattr(shutil, "which", lambda name: name)
    wanted = measure.Wanted(
        host="127.0.0.1", ssh=None, port=5201, seconds=1, control=None, download=False,
        tcp_only=True, most_bps=1e9, mtu_bytes=1500,
    )  # fmt: skip
    try:
        # Python's own handler: what other tests import (Dask) sets another one.
        with (
            passed_to(signal.default_int_handler, {signal.SIGINT}),
            pytest.raises(KeyboardInterrupt),
        ):
            measure.measure(wanted, tmp_path, Console(quiet=True))
        assert all(process.poll() is not None for process in started)
    finally:
        for process in started:
            process.kill()
            process.wait()
    assert len(started) == 1 + (program == "Capture")
