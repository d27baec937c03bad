# SPDX-License-Identifier: BSD-3-Clause
"""The live programs of arm64, by qemu-user, beside each other: sender - memif - switch - memif."""

import subprocess

import arm64
import pytest
from loopback_test import Loop, check

pytestmark = pytest.mark.skipif(not arm64.ALL, reason="needs WEIR_ARM64=1")
SLOW = ("paths.forward.link.rate=5Mbit", "flows.0.count=2", "warmup=1s", "duration=5s")


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    """weir-switch and weir-sender for arm64."""
    arm64.build()
    folder = tmp_path_factory.mktemp("arm64")
    return [arm64.emulated(f"{name}/weir-{name}", folder) for name in ("switch", "sender")]


def test_they_say_what_those_here_say(programs, weir_switch, weir_sender, root):
    config = root / "configs/loopback-10g.yaml"
    for there, here in zip(programs, (weir_switch, weir_sender), strict=True):
        for argv in (["--list"], [config, "--check"], [config, "--print-config"]):
            said = [
                subprocess.run([program, *argv], capture_output=True, check=True).stdout
                for program in (there, here)
            ]
            assert said[0] == said[1]


@pytest.mark.timeout(600)
def test_flows_pass_a_switch(lab, root, programs):
    """Emulation has a hundredth of a processor's speed, so nothing is said of times."""
    loop = Loop(lab, root, *(arg for one in SLOW for arg in ("-o", one)))
    switch, sender = loop.run(*programs)

    check(switch, sender)
    assert sender["groups"][0]["acked_bytes"] > 100_000
    assert switch["clock"]["anchors"] > 10
