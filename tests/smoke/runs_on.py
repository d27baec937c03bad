# SPDX-License-Identifier: BSD-3-Clause
"""What lab_test.py ends in the middle: not collected by itself."""

import os
from pathlib import Path

import pytest
from lab import Lab, wait_for


def test_runs_on(tmp_path, build):
    with Lab(tmp_path, build) as lab:
        lab.switch("{forward: [{delay: {delay: 1ms}}], reverse: [{delay: {delay: 1ms}}]}")
        assert lab.ping(count=1)
        lab.host("a", "sh", "-c", "sleep 1000 & sleep 2000")
        Path(os.environ["READY"]).touch()
        if os.environ["ENDING"] == "failure":
            pytest.fail("as every test may")
        wait_for(lambda: False, "the end", 1000)
