# SPDX-License-Identifier: BSD-3-Clause
"""Measures the cost of Python: a call of a control, and steps per second of weir.gym.

`python -m weir.bench.agents [SECONDS]` prints the table of python-controls.md. Each row is the
median of five rounds; all rows are measured in each.
"""

from __future__ import annotations

import multiprocessing
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import numpy as np
from gymnasium.vector import AsyncVectorEnv

from weir.base import foreign, programs
from weir.bench import sim
from weir.bootstrap import ROOT
from weir.gym import CongestionEnv

ROUNDS = 5
LINK = """
duration: {seconds}s
paths:
  forward:
    - link: {{rate: 20Mbit, queue: {{fifo: {{limit: 1BDP}}}}}}
    - delay: {{delay: 10ms}}
  reverse:
    - delay: {{delay: 10ms}}
flows:
  - {{cc: {cc}}}
telemetry: {{level: 0}}
"""
CONTROLS = {
    "NewReno in C": "newreno",
    "NewReno in Python": f'{{python: "{ROOT}/configs/controls/newreno.py:NewReno"}}',
}
INTERVALS = {"10 ms": "10ms", "RTT": "rtt"}


def steps_apart_per_s(config: Path) -> float:
    """Returns the steps of two processes that have an environment each and know no other."""
    with multiprocessing.get_context("fork").Pool(2) as pool:
        return sum(pool.starmap(steps_per_s, [(config, 1)] * 2, chunksize=1))


def steps_per_s(config: Path, number: int) -> float:
    """Returns the steps of so many environments, in an AsyncVectorEnv if they are several."""
    several = [lambda: CongestionEnv(config)] * number
    made = AsyncVectorEnv(several) if number > 1 else CongestionEnv(config)
    action = np.zeros((number, 1) if number > 1 else 1, np.float32)
    made.reset(seed=1)
    steps, began = 0, time.perf_counter()
    over = False
    while not over:
        _, _, _, ended, _ = made.step(action)
        steps, over = steps + number, bool(np.any(ended))
    took = time.perf_counter() - began
    made.close()
    return steps / took


def ns_per_segment(config: Path) -> float:
    """Returns the wall-clock time of a run's measured part per data segment."""
    folder = config.with_suffix("")
    sim.child([programs.find_program("sim"), config, "--out", folder, "--force"])
    run = foreign.read_json(folder / "summary.json", sim.Summary).measured
    assert run is not None  # its verdict is ok
    return run.wall_s * 1e9 / run.data_segs


def rows(folder: Path, seconds: int) -> dict[str, Callable[[], float]]:
    """Returns functions that measure, by their names in the table."""
    made: dict[str, Callable[[], float]] = {}

    def config(cc: str) -> Path:
        place = folder / f"{len(made)}.yaml"
        place.write_text(LINK.format(cc=cc, seconds=seconds))
        return place

    for name, cc in CONTROLS.items():
        made[f"{name}, ns per data segment"] = partial(ns_per_segment, config(cc))
    for every, interval in INTERVALS.items():
        agent, what = config(f"{{python: agent, every: {interval}}}"), f"every {every}, steps/s"
        made[f"1 environment, {what}"] = partial(steps_per_s, agent, 1)
        made[f"2 in an AsyncVectorEnv, {what}"] = partial(steps_per_s, agent, 2)
        made[f"2 processes with one each, {what}"] = partial(steps_apart_per_s, agent)
    return made


def main() -> None:
    """Measures all rows and prints their table."""
    programs.identify()
    seconds = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    with TemporaryDirectory() as folder:
        all_rows = rows(Path(folder), seconds)
        rounds = [[measure() for measure in all_rows.values()] for _ in range(ROUNDS)]
    print("| | median |\n|---|---|")
    for name, values in zip(all_rows, zip(*rounds, strict=True), strict=True):
        print(f"| {name} | {median(values):,.0f} |")


if __name__ == "__main__":
    main()
