# SPDX-License-Identifier: BSD-3-Clause
"""Every machine gives the same digests: a processor without FMA, emulated, and this one.

The C library picks other code for log, pow, exp, cos and erfc by the processor's instructions.
"""

from __future__ import annotations

import os
import platform
import subprocess
from pathlib import Path

import pytest

from .conftest import Simulate
from .test_determinism import GOLDEN_RUNS

WESTMERE = ("qemu-x86_64", "-cpu", "Westmere")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(platform.machine() != "x86_64", reason="the programs are not x86-64's"),
]

# RED whose queue is often empty: with libm's pow() these 600 s had another digest on Westmere.
RED = """
seed: 1
duration: 600s
warmup: 1s
paths:
  forward:
    - link: {rate: 20Mbit, queue: {red: {}}}
    - delay: {delay: 10ms}
  reverse:
    - delay: {delay: 10ms}
flows:
  - cc: newreno
    count: 20
    source: {closed: {think: 200ms, sizes: {law: pareto, mean: 30kB, shape: 1.5}}}
telemetry: {level: 1, interval: 10ms}
"""
# All that calls a function of common/base/portable_math.h.
EVERY_FUNCTION = """
seed: 3
duration: 20s
warmup: 1s
paths:
  forward:
    - jitter: {mean: 5ms, spread: 1ms, distribution: pareto, half_life: 20ms}
    - markov_link:
        {good: 40Mbit, bad: 5Mbit, distribution: geometric, queue: {red: {adaptive: yes}}}
    - delay: {delay: 5ms}
  reverse:
    - jitter: {mean: 2ms, spread: 500us}
    - wifi_jitter: {jitter: 2ms}
flows:
  - {cc: cubic, count: 2, base_rtt: {normal: {mean: 40ms, sd: 10ms, min: 20ms}}}
  - {cc: vivace, base_rtt: {log_uniform: {min: 20ms, max: 200ms}}}
  - {cc: pcc, base_rtt: {pareto: {min: 20ms, max: 200ms}}}
  - {cc: compound, base_rtt: {exponential: {mean: 50ms, min: 20ms, max: 1s}}}
  - {cc: lola}
  - {cc: newreno, source: {media: {}}}
  - {cc: newreno, source: {poisson: {load: 2Mbit, sizes: {law: exponential, mean: 50kB}}}}
telemetry: {level: 3, interval: 100ms}
"""
RUNS = {"red": (RED,), "every function": (EVERY_FUNCTION,), **GOLDEN_RUNS}


@pytest.mark.parametrize("name", RUNS)
def test_a_processor_without_fma_gives_the_same_digest(simulate: Simulate, name: str) -> None:
    """The whole run, its telemetry included."""
    here, there = simulate(*RUNS[name]), simulate(*RUNS[name], by=WESTMERE)
    assert there.summary["digest"] == here.summary["digest"]


@pytest.mark.parametrize("by", [(), WESTMERE], ids=["here", "without FMA"])
def test_functions_are_right_at_a_million_points(build: Path, by: tuple[str, ...]) -> None:
    """Their errors and their bits: tests/unit/portable_math_test.c."""
    points = {"WEIR_POINTS": "20000" if by else "1000000", "CK_DEFAULT_TIMEOUT": "120"}
    argv = [*by, str(build / "tests/unit/test_portable_math")]
    done = subprocess.run(argv, env={**os.environ, **points}, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
