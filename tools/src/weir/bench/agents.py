# SPDX-License-Identifier: BSD-3-Clause
"""Measures the cost of Python: a call of a control, and steps per second of weir.gym.

`python -m weir.bench.agents [SECONDS]` prints the table of python-controls.md. Each row is the
median of five rounds; all rows are measured in each.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from gymnasium.vector import AsyncVectorEnv

from weir.base.programs import find_program
from weir.bootstrap import ROOT
from weir.gym import CongestionEnv

ROUNDS = 5
SHOWN = "controls/newreno.py"
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


def steps_apart_per_s(config: Path, number: int) -> float:
    """Returns the steps of so many processes that have an environment each and know no other."""
    with multiprocessing.get_context("fork").Pool(number) as pool:
        return sum(pool.starmap(steps_per_s, [(config, 1)] * number, chunksize=1))


def steps_per_s(config: Path, number: int) -> float:
    """Returns the steps of so many environments, in an AsyncVectorEnv if they are several."""
    made: Any = CongestionEnv(config)
    if number > 1:
        made.close()
        made = AsyncVectorEnv([lambda: CongestionEnv(config)] * number)
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


def run_s(config: Path, folder: Path) -> tuple[float, int]:
    """Returns the wall-clock seconds of a run's measured part, and the data segments in it."""
    argv = [str(find_program("sim")), str(config), "--out", str(folder), "--force"]
    subprocess.run(argv, check=True, capture_output=True)
    measured = json.loads((folder / "summary.json").read_text())["measured"]
    return float(measured["wall_s"]), int(measured["data_segs"])


def rows(folder: Path, seconds: int) -> dict[str, Callable[[], float]]:
    """Returns functions that measure, by their names in the table."""

    def write(name: str, cc: str) -> Path:
        place = folder / f"{name}.yaml"
        place.write_text(LINK.format(cc=cc, seconds=seconds))
        return place

    def ns(config: Path) -> float:
        wall_s, segs = run_s(config, folder / "run")
        return wall_s * 1e9 / segs

    file = ROOT / "configs" / SHOWN
    built_in = write("c", "newreno")
    python = write("python", f'{{python: "{file}:NewReno"}}')
    each_rtt = write("rtt", "{python: agent, every: rtt}")
    each_10ms = write("10ms", "{python: agent, every: 10ms}")
    return {
        "NewReno in C, ns per data segment": lambda: ns(built_in),
        "NewReno in Python, ns per data segment": lambda: ns(python),
        "1 environment, every 10 ms, steps/s": lambda: steps_per_s(each_10ms, 1),
        "2 in an AsyncVectorEnv, every 10 ms, steps/s": lambda: steps_per_s(each_10ms, 2),
        "2 processes with one each, every 10 ms, steps/s": lambda: steps_apart_per_s(each_10ms, 2),
        "1 environment, every RTT, steps/s": lambda: steps_per_s(each_rtt, 1),
        "2 in an AsyncVectorEnv, every RTT, steps/s": lambda: steps_per_s(each_rtt, 2),
        "2 processes with one each, every RTT, steps/s": lambda: steps_apart_per_s(each_rtt, 2),
    }


def main() -> None:
    """Measures all rows and prints their table."""
    os.environ.setdefault("WEIR_PYTHON", sys.executable)
    seconds = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    with TemporaryDirectory() as folder:
        all_rows = rows(Path(folder), seconds)
        found: dict[str, list[float]] = {name: [] for name in all_rows}
        for _ in range(ROUNDS):
            for name, measure in all_rows.items():
                found[name].append(measure())
    print("| | median |\n|---|---|")
    for name, values in found.items():
        print(f"| {name} | {statistics.median(values):,.0f} |")


if __name__ == "__main__":
    main()
