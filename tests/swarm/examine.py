# SPDX-License-Identifier: BSD-3-Clause
"""Runs one experiment under sanitizers and in the release build, and says what does not hold.

Also reduces a failing experiment: parts are left out and numbers made small and round for as long
as the same invariant still fails.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import yaml

from .invariants import INVARIANTS, Folder
from .second_opinion import second_opinion

CPU_S_MAX = 20  # a run takes 0.2 s under sanitizers: what takes a hundred times that hangs
CPU_S_REDUCED = 3  # enough to tell a hang from what ends, some hundred times over
WALL_S_MAX = 400
REDUCTIONS_MAX = 400
NOT_OF_THE_SEED = ("wall_s", "measured", "threads", "two_threads_s")
SANITIZERS = {
    "ASAN_OPTIONS": "abort_on_error=1:detect_stack_use_after_return=1",
    "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1",
}


@dataclass(frozen=True)
class Programs:
    """weir-sim, twice: under sanitizers, and as users have it."""

    sanitized: Path
    release: Path


@dataclass(frozen=True)
class Finding:
    """What does not hold, and how that shows."""

    invariant: str
    says: str


@dataclass(frozen=True)
class Result:
    """Of one experiment: it ran, was refused with a sentence, or did not keep an invariant."""

    refused: str = ""
    finding: Finding | None = None


def weir_sim(
    program: Path, config: Path, out: Path, cpu_s: int, threads: int = 1
) -> subprocess.CompletedProcess[str]:
    """One run, held to a time of the processor and not of a shared machine's clock."""
    argv = ["prlimit", f"--cpu={cpu_s}", str(program), str(config), "--out", str(out)]
    argv += ["--threads", str(threads)]
    try:
        return subprocess.run(
            argv,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=WALL_S_MAX,
            env={**os.environ, **SANITIZERS},
        )
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(argv, -24, "", "")


def ended_badly(done: subprocess.CompletedProcess[str]) -> Finding | None:
    """Exit 0, with nothing but warnings, and exit 2 with one sentence are good ends."""
    lines = done.stderr.strip().splitlines()
    said = "\n".join(line for line in lines if not line.startswith("weir-sim: warning: "))
    if done.returncode in (-24, -9):  # SIGXCPU
        return Finding("hang", "still running after seconds of processor time")
    if "runtime error" in said or "Sanitizer" in said:
        line = next(line for line in said.splitlines() if re.search("error|Sanitizer", line))
        return Finding("sanitizers", line)
    if done.returncode == 0 and said == "":
        return None
    if done.returncode == 2 and said.count("\n") == 0 and said.startswith("weir-sim: "):
        return None
    return Finding("exit", f"exit {done.returncode}: {said[:300] or 'without a word'}")


def summary(folder: Path) -> dict[str, Any]:
    """What of a summary the seed decides."""
    values = json.loads((folder / "summary.json").read_text())
    return {key: value for key, value in values.items() if key not in NOT_OF_THE_SEED}


def differs(one: Path, other: Path) -> Finding | None:
    """Same seed, same bytes, whatever the compiler did and on two threads.

    The digest is over all telemetry.
    """
    before, after = summary(one), summary(other)
    keys = [key for key in {**before, **after} if before.get(key) != after.get(key)]
    says = f"{', '.join(keys)} differ in the release build, on 2 threads from the resolved config"
    return Finding("same_bytes", says) if keys else None


def branched(program: Path, text: str, one: Path, cpu_s: int) -> Finding | None:
    """A branch without changes is the run without branches."""
    values = summary(one)
    if "stop" in values:  # a trunk may end before its branches
        return None
    config, out = one.with_name("branched.yaml"), one.with_name("trunk")
    at_s = values["virtual_s"] / 2
    config.write_text(f"{text}\nbranches: {{at: {at_s:.9f}s, runs: {{same: {{}}}}}}\n")
    if (finding := ended_badly(weir_sim(program, config, out, cpu_s))) is not None:
        return finding
    same = summary(out / "branches/same")
    del same["branch"]
    keys = [key for key in {**values, **same} if values.get(key) != same.get(key)]
    return Finding("branches", f"{', '.join(keys)} differ in a branch") if keys else None


def renders(folder: Path) -> Finding | None:
    """The report of any run can be written."""
    from weir.analysis import folder as runs
    from weir.report import page

    try:
        page.write(runs.load(folder))
    except Exception as error:  # whatever it is, a user would see it
        return Finding("report", f"{type(error).__name__}: {error}")
    return None


def examine(text: str, programs: Programs, report: bool = False, cpu_s: int = CPU_S_MAX) -> Result:
    """Runs an experiment and looks at what it left."""
    with TemporaryDirectory(prefix="weir-swarm-") as temporary:
        folder, second = Path(temporary, "sanitized"), Path(temporary, "release")
        config = Path(temporary, "swarm.yaml")
        config.write_text(text)
        done = weir_sim(programs.sanitized, config, folder, cpu_s)
        if (finding := ended_badly(done)) is not None:
            return Result(finding=finding)
        if done.returncode == 2:
            return Result(refused=done.stderr.strip())
        try:
            run = Folder(folder)
            for invariant in INVARIANTS:
                for says in invariant(run):
                    return Result(finding=Finding(invariant.__name__, says))
            for says in second_opinion(folder):
                return Result(finding=Finding("second_opinion", says))
        except json.JSONDecodeError as error:
            return Result(finding=Finding("summary", str(error)))
        # The resolved config means the same as what the user wrote, on two threads too.
        done = weir_sim(programs.release, folder / "config.yaml", second, cpu_s, 2)
        finding = ended_badly(done) or differs(folder, second)
        finding = finding or branched(programs.release, text, folder, cpu_s)
        return Result(finding=finding or (renders(folder) if report else None))


def simpler(value: str) -> list[str]:
    """A number's rounder and smaller neighbours."""
    match = re.fullmatch(r"([0-9.]+)([A-Za-z%]*)", value)
    if match is None:
        return []
    number, unit = float(match[1]), match[2]
    found = [float(f"{number:.1g}"), number / 2, number / 10, 1.0, float(int(number))]
    if unit in ("ns", "us", "ms") and number < 1e15:
        found.append(number)
    texts = [f"{int(n) if n == int(n) else float(f'{n:.3g}')}{unit}" for n in found if n > 0]
    return [t for t in dict.fromkeys(texts) if t != value and len(t) <= len(value)]


def edits(config: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Where something may be left out (None) or written simpler, larger parts first."""
    pairs = list(config.items()) if isinstance(config, dict) else list(enumerate(config))
    for key, _ in pairs:
        yield (*path, key), None
    for key, inner in pairs:
        if isinstance(inner, dict | list):
            yield from edits(inner, (*path, key))
        elif isinstance(inner, str):
            for text in simpler(inner):
                yield (*path, key), text


def edited(config: Any, path: tuple[Any, ...], value: Any) -> Any | None:
    """A copy with one edit; None: the place is no longer there."""
    copy = deepcopy(config)
    at = copy
    try:
        for key in path[:-1]:
            at = at[key]
        if value is None:
            del at[path[-1]]
        else:
            at[path[-1]] = value
    except (KeyError, IndexError, TypeError):  # a table may have become a string
        return None
    return copy


def dump(config: Any) -> str:
    """As a person would write it."""
    text: str = yaml.safe_dump(config, sort_keys=False, default_flow_style=None, width=100)
    return text.replace("'", "")


def reduce(config: Any, finding: Finding, programs: Programs) -> tuple[Any, Finding]:
    """The smallest experiment found that fails the same invariant, and what it shows."""
    left, smaller = REDUCTIONS_MAX, True
    while smaller and left > 0:
        smaller = False
        for path, value in list(edits(config)):
            candidate = edited(config, path, value)
            if candidate is None or left == 0:
                continue
            left -= 1
            report = finding.invariant == "report"
            found = examine(dump(candidate), programs, report, CPU_S_REDUCED).finding
            if found is not None and found.invariant == finding.invariant:
                config, finding, smaller = candidate, found, True
    return config, finding
