# SPDX-License-Identifier: BSD-3-Clause
"""The command line of tests/mutate: chooses mistakes, tries them, adds up."""

from __future__ import annotations

import argparse
import hashlib
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from mutation.copy import ROOT, Copy, MutationError, listed, required
from mutation.mutants import Mutant

DATA_PATH = ("common", "sender", "switch", "tools/sim", "tools/pcap")


def sources(places: Sequence[str]) -> set[str]:
    """C files of the data path; those of the live programs need DPDK and have no unit tests."""
    folders = [place.rstrip("/") for place in places or DATA_PATH]
    return {
        name
        for name in listed(*folders)
        if name.startswith(DATA_PATH) and name.endswith((".c", ".h")) and "/live/" not in name
    }


def changed_since(commit: str) -> set[str]:
    """Files that differ from a commit's; none if it is not known, as in a shallow clone."""
    try:
        required(
            ["git", "-C", str(ROOT), "rev-parse", "--verify", "--quiet", f"{commit}^{{commit}}"]
        )
    except MutationError:
        return set()
    argv = ["git", "-C", str(ROOT), "diff", "--name-only", "--relative", commit]
    return set(required(argv).splitlines())


def drawn(mutants: dict[int, Mutant], count: int) -> list[int]:
    """All of them, or so many from all files: the same ones each time."""

    def lot(number: int) -> bytes:
        return hashlib.sha256(repr(mutants[number]).encode()).digest()

    return sorted(mutants, key=lot)[:count] if count else sorted(mutants)


def tried(copy: Copy, chosen: list[int], seconds: float) -> dict[int, str | None]:
    """What kills each; those that time is left for."""
    end = time.monotonic() + seconds
    killers: dict[int, str | None] = {}

    def one(number: int) -> None:
        if time.monotonic() > end:
            return
        killer = killers[number] = copy.killer(number)
        verdict = f"killed by {killer}" if killer else "SURVIVED"
        print(f"{len(killers):4}/{len(chosen)} {copy.mutants[number]}: {verdict}", flush=True)

    with ThreadPoolExecutor(copy.jobs) as pool:
        list(pool.map(one, chosen))
    return killers


def arguments(doc: str) -> argparse.Namespace:
    """The command line."""
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=doc, formatter_class=raw)
    parser.add_argument("places", nargs="*", metavar="PLACE", help="files or folders")
    parser.add_argument("--since", metavar="COMMIT", help="only files changed since")
    parser.add_argument("--count", type=int, default=0, metavar="N", help="a sample of so many")
    parser.add_argument("--seconds", type=float, default=1e9, metavar="S", help="start none later")
    parser.add_argument("--least", type=float, default=100, metavar="PERCENT", help="to be killed")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="at a time")
    return parser.parse_args()


def attempt(args: argparse.Namespace) -> int:
    """Tries what was asked for; the exit status."""
    files = sources(args.places)
    if args.since:
        files &= changed_since(args.since)
    if not files:
        print("no C file of the data path has changed" if args.since else "no C file is there")
        return 0 if args.since else 2
    copy = Copy(ROOT / "build-mutate", files, max(args.jobs, 1))
    reached = {n: mutant for n, mutant in copy.mutants.items() if n in copy.reached()}
    killers = tried(copy, drawn(reached, args.count), args.seconds)
    return summed_up(copy, len(reached), killers, args.least)


def summed_up(copy: Copy, reached: int, killers: dict[int, str | None], least: float) -> int:
    """Says what survived; the exit status."""
    survived = sorted(number for number, killer in killers.items() if killer is None)
    for number in survived:
        print(f"survived: {copy.mutants[number]}")
    share = 100 * (1 - len(survived) / len(killers)) if killers else 100.0
    print(
        f"{len(copy.mutants)} mistakes, {len(copy.refused)} more do not compile;"
        f" unit tests come past {reached}; {len(killers)} tried,"
        f" {len(killers) - len(survived)} killed: {share:.1f} %"
    )
    return 0 if share >= least else 1


def main(doc: str) -> int:
    """Reads the command line, tries, adds up."""
    args = arguments(doc)
    try:
        return attempt(args)
    except (MutationError, OSError) as error:
        print(f"tests/mutate: {error}", file=sys.stderr)
        return 2
