#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The thirty faults of faulty.c, and what finds each: weir check cc, or weir attack --beside.

WEIR_BUILD=build .venv/bin/python tests/tools/plugin/faults.py [N ...] [--trials 500]

prints a row for each: the checks that failed or the goal of the search that found it, and the CPU
seconds of both. The search is for harm beyond that of the nearest control within, beyond NewReno's,
then beyond that of the same control without the fault, as of the version before a change. It has
found a fault if in the network that is left this is a tenth or more (of a delay: a base RTT), and
twice that of the same control without the fault.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import tempfile
import time
from pathlib import Path

from weir.attack import attack, run
from weir.base import configs
from weir.many import trials
from weir.plugin import check

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
BOX = ROOT / "configs/attacks/boxes/beside.yaml"
GOALS = ("utilisation", "loss", "delay")
NEAREST = {"RENO": "newreno", "CUBIC": "cubic", "PACED": "bbr"}
LEAST = {"utilisation": 0.1, "loss": 0.1, "delay": 1.0}  # harm beyond the baseline's

# By number: what the author did. The control is RENO up to 18, CUBIC up to 22, then PACED.
FAULTS = {
    1: "no loss but the first reduces the window",
    2: "no growth after a timeout",
    3: "growth by all that is acknowledged in recovery",
    4: "ssthresh is half of the lost segments, not of the window",
    5: "bytes counted in 32 bits: no growth after 4 GB",
    6: "growth while the application limits",
    7: "dead after five losses in 150 ms",
    8: "ECN echoes are ignored",
    9: "a reduction for each mark",
    10: "undo forgets ssthresh",
    11: "idle: restart at ssthresh, which may be unset",
    12: "slow start does not end at windows below 4",
    13: "growth by the square of what an ACK acknowledges",
    14: "growth by ACKs, however much they acknowledge",
    15: "state in a static variable, for all flows",
    16: "ssthresh is remembered for the next flow",
    17: "division by an RTT that is 0: NaN",
    18: "division by what is in flight, lost segments included",
    19: "time of the curve in 32 bits of nanoseconds",
    20: "nanoseconds taken for a thousand times as many",
    21: "the curve goes on while the application pauses",
    22: "the curve begins once: its time is compared with zero",
    23: "pacing in bytes per second",
    24: "rate is an average of samples, limited ones too: it decays",
    25: "the smallest RTT never expires",
    26: "the largest rate never expires",
    27: "the smallest RTT expires at once",
    28: "the smallest RTT is 0 from the start",
    29: "after a timeout one segment per second",
    30: "RTT in whole milliseconds",
}


def control_of(number: int) -> str:
    """Returns the control that has a fault."""
    return "RENO" if number <= 18 else "CUBIC" if number <= 22 else "PACED"


def built(folder: Path, number: int, control: str | None = None) -> str:
    """Returns a plug-in with a fault, or with none of them for number 0."""
    control = control or control_of(number)
    path = folder / f"{control.lower()}{number}.so"
    flags = ["-O2", "-w", "-std=gnu11", "-ffp-contract=off", "-fPIC", "-shared"]
    macros = [f"-DCONTROL={control}", f"-DFAULT={number}", f"-I{ROOT}/common"]
    argv = ["cc", *flags, *macros, "-o", str(path), str(HERE / "faulty.c"), "-lm"]
    subprocess.run(argv, check=True)
    return str(path)


def searched(plugin: str, sane: str, goal: str, baseline: str, count: int, folder: Path) -> str:
    """Returns what a search found, "" if it found no fault."""
    options = run.Options(
        file=BOX,
        goal=goal,
        control=plugin,
        beside=baseline,
        runs=count,
        out=folder / f"{Path(plugin).stem}-{goal}",
        report=False,
        workers=2,
    )
    asked = attack.read(BOX, goal, plugin, baseline)
    result = run.execute(asked, options, lambda found: None)
    left = attack.configs.mapping(options.out / "attack.yaml")
    both = [attack.with_control(left, configs.control_of(one)) for one in (sane, baseline)]
    with trials.opened(folder, 2) as ask:
        pairs = zip(both, ask(both), strict=True)
        usual, least = [asked.goal.harm(config, summary) for config, summary in pairs]
    if result.left < max(LEAST[goal], 2 * (usual - least)):
        return ""
    text = asked.goal.text
    name = asked.goal.name.removesuffix(".so")
    return f"{name}: {text(result.left)}, without the fault {text(usual - least)}"


def cpu_s() -> float:
    """Returns the CPU time of this process and those that it has waited for."""
    kinds = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return sum(one.ru_utime + one.ru_stime for one in map(resource.getrusage, kinds))


def row(number: int, count: int, folder: Path) -> str:
    """Tries check, then the search; returns what found the fault."""
    plugin, begun = built(folder, number), cpu_s()
    failed = [one.name for one in check.conformance(plugin, folder) if one.passed is False]
    found = f"check: {', '.join(failed)}" if failed else ""
    if not found:
        sane = built(folder, 0, control_of(number))
        for baseline in dict.fromkeys((NEAREST[control_of(number)], "newreno", sane)):
            out = folder / Path(baseline).stem
            for goal in GOALS:
                found = found or searched(plugin, sane, goal, baseline, count, out)
    spent = cpu_s() - begun
    what = f"{number:2} {control_of(number):5} {FAULTS[number]}"
    return f"{what:72} {spent:6.1f} s  {found or 'NOT FOUND'}"


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("numbers", nargs="*", type=int, default=list(FAULTS))
    parser.add_argument("--trials", type=int, default=500)
    args = parser.parse_args()
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="weir-faults-") as folder:
        for number in args.numbers:
            (Path(folder) / "newreno").mkdir(exist_ok=True)
            print(row(number, args.trials, Path(folder)), flush=True)
    print(f"{time.monotonic() - begun:.0f} s, {cpu_s():.0f} CPU s")


if __name__ == "__main__":
    main()
