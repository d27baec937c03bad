# SPDX-License-Identifier: BSD-3-Clause
"""Frames in memory that is not their buffers' own: a driver gets all of it back."""

import sys

import pytest
from lab import CPUS, LCORE, outcome, wait_for

PATHS = "{forward: [{delay: {delay: 5ms}}], reverse: [{delay: {delay: 5ms}}]}"
LCORES = {
    "one": (),
    # Both on one CPU, the lab's.
    "two": (
        *("-o", f"live.switch.lcores=[{CPUS[0]}, {LCORE}]"),
        *("--", "--lcores", f"0@{LCORE},1@{LCORE}"),
    ),
}


@pytest.mark.parametrize("lcores", LCORES)
def test_what_was_lent_is_returned(lab, build, monkeypatch, lcores):
    with monkeypatch.context() as patch:
        patch.setenv("LD_PRELOAD", str(build / "tests/smoke/foreign.so"))
        switch = lab.switch(PATHS, *LCORES[lcores])
    assert lab.telemetry("/test/foreign") == {"lent": 0, "returned": 0}
    # Small ones, which are copied, and others, which wait where they are.
    for size in (24, 1000):
        assert len(lab.ping(count=20, size=size)) >= 10
    count = wait_for(lambda: all_back(lab.telemetry("/test/foreign")), "all of it back")
    assert count["lent"] >= 40
    # The buffers that lent memory are as good as any.
    assert len(lab.ping(count=20, size=24)) >= 10
    assert switch.stop() == 0
    summary = switch.summary()
    assert summary["ledger"]["balanced"]
    assert outcome(summary) == "interrupted"


# Not IP: of a packet that ends in another buffer, the header says that it is cut off.
FRAMES = """
import socket
port = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
port.bind(("eth0", 0))
for i in range(20):
    port.send(bytes([2, 0, 0, 0, 0, 9]) + port.getsockname()[4] + b"\\x88\\xb5" + bytes(1000))
"""


def test_frames_in_several_buffers_are_counted_and_not_sent(lab, build, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setenv("LD_PRELOAD", str(build / "tests/smoke/foreign.so"))
        switch = lab.switch(PATHS)
    assert lab.telemetry("/test/segments") == {"split": 0}
    lab.sh("a", sys.executable, "-c", FRAMES)
    wait_for(lambda: lab.telemetry("/test/segments")["split"] >= 20, "the frames")
    assert switch.stop() == 0
    ledger = switch.summary()["ledger"]
    assert ledger["balanced"]
    assert ledger["drops"]["too_long"] >= 20
    assert ledger["transmitted"] == 0


def all_back(count):
    """The count, if nothing is out."""
    return count if count["lent"] == count["returned"] else None
