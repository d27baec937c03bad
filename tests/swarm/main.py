# SPDX-License-Identifier: BSD-3-Clause
"""The swarm's command line; `tests/swarm/run --help`."""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import yaml
from weir import bootstrap

from .examine import Finding, Programs, Result, dump, examine, reduce
from .generate import Generator, registry

ROOT = Path(__file__).resolve().parents[2]
CORPUS = ROOT / "tests/swarm/corpus"
REPORT_EVERY = 25  # a report takes longer than the rest together
REDUCED_MAX = 10  # findings: after that there is enough to mend


def programs(build: Path) -> Programs:
    """weir-sim under sanitizers, brought up to date, and of a release build."""
    weir_sim = "tools/sim/weir-sim"
    return Programs(bootstrap.sanitized() / weir_sim, build / weir_sim)


@dataclass(frozen=True)
class Job:
    """One experiment to do."""

    name: str
    text: str
    both: Programs
    report: bool

    def do(self) -> Result:
        return examine(self.text, self.both, self.report)


def generated(seed: int, count: int, both: Programs) -> Iterator[Job]:
    """The experiments of `count` seeds from `seed`."""
    kinds = registry(both.release)
    for s in range(seed, seed + count):
        text = dump(Generator(s, kinds).experiment())
        yield Job(f"seed {s}", text, both, s % REPORT_EVERY == 0)


def new_seed() -> int:
    """Another one each time, short enough to be typed."""
    return time.time_ns() // 1_000_000 % 1_000_000_000


def swarm(jobs: Iterable[Job], workers: int) -> Iterator[tuple[Job, Result]]:
    """Does them on several processors; results in the order of the jobs."""
    jobs = list(jobs)
    # A forked process would have the locks of polars' threads, and not the threads.
    with ProcessPoolExecutor(workers, get_context("spawn")) as pool:
        yield from zip(jobs, pool.map(Job.do, jobs), strict=True)


def keep(job: Job, finding: Finding) -> Path:
    """Reduces what failed and puts it into the corpus."""
    config: Any = yaml.load(job.text, Loader=yaml.BaseLoader)
    config, finding = reduce(config, finding, job.both)
    path = CORPUS / f"{finding.invariant}_{job.name.replace(' ', '_')}.yaml"
    path.write_text(f"# {finding.invariant}: {finding.says}\n{dump(config)}")
    return path


def main() -> int:
    """Runs what is asked for; 0: nothing failed."""
    parser = argparse.ArgumentParser(description="Random experiments under sanitizers.")
    parser.add_argument("files", nargs="*", type=Path, help="experiments; none: generated ones")
    parser.add_argument("--seed", type=int, help="of the first [from the time]")
    parser.add_argument("--count", type=int, default=200, help="how many [200]")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="at once [all CPUs]")
    parser.add_argument("--build", type=Path, default=ROOT / "build", help="release build")
    parser.add_argument(
        "--no-reduce", dest="keep", action="store_true", help="only name what fails"
    )
    args = parser.parse_args()
    both = programs(args.build)
    seed = new_seed() if args.seed is None else args.seed
    jobs = [Job(f.name, f.read_text(), both, True) for f in args.files]
    if not jobs:
        print(f"{args.count} experiments from --seed {seed}", flush=True)
        jobs = list(generated(seed, args.count, both))
    failed, refused = [], 0
    for n, (job, result) in enumerate(swarm(jobs, args.jobs), 1):
        if n % 500 == 0:
            print(f"{n} done", flush=True)
        refused += result.refused != ""
        if result.finding is not None:
            print(f"{job.name}: {result.finding.invariant}: {result.finding.says}", flush=True)
            failed.append((job, result.finding))
    print(f"{len(jobs)} experiments, {refused} refused with a sentence, {len(failed)} failed")
    for job, finding in failed[: 0 if args.keep or args.files else REDUCED_MAX]:
        print(f"{job.name}: reduced to {keep(job, finding)}", flush=True)
    return 1 if failed else 0
