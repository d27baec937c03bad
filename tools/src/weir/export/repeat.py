#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs the experiments of this archive again, and compares what came out with what is here.

python3 repeat.py [WEIR], where WEIR is the command [weir], as tools/weir of a clone. First, all
files must be as they were packed. The exit status is 0 if everything is equal, else 1.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

running: set[subprocess.Popen[str]] = set()
ended: list[int] = []  # signals
HERE = Path(__file__).resolve().parent
# Of a summary: the digest of the telemetry, and results, which are there without telemetry too.
COMPARED = ("digest", "ledger", "links", "groups", "receivers")


def differing_files() -> list[str]:
    """Returns a sentence for each file that is not as it was packed."""
    found = []
    for line in (HERE / "SHA256SUMS").read_text(encoding="utf-8").splitlines():
        packed, name = line.split("  ", 1)
        if not (HERE / name).is_file():
            found.append(f"{name} is missing")
            continue
        with (HERE / name).open("rb") as file:
            here = hashlib.file_digest(file, "sha256").hexdigest()
        if here != packed:
            found.append(f"{name}: its SHA-256 digest is {here}, that of the packed file {packed}")
    return found


def repeat(weir: str, name: str) -> list[str]:
    """Repeats a run with its branches; returns a sentence for each that differs or went wrong."""
    if ended:
        return []
    with tempfile.TemporaryDirectory() as parent:
        out = Path(parent) / "run"
        argv = [weir, "sim", str(HERE / name / "config.yaml"), "--threads", "1", "--out", str(out)]
        pipe = subprocess.PIPE
        with subprocess.Popen(argv, stdout=pipe, stderr=pipe, text=True) as process:
            running.add(process)
            if ended:
                process.kill()
            said = process.communicate()[1]
        if process.returncode != 0:
            lines = said.strip().splitlines() or [f"exit status {process.returncode}"]
            return [f"{name}: {lines[-1]}"]
        packed = HERE / name
        places = [packed, *sorted(file.parent for file in packed.glob("branches/*/summary.json"))]
        return [
            said for place in places if (said := differs(place, out / place.relative_to(packed)))
        ]


def differs(packed: Path, out: Path) -> str:
    """Returns what differs in a run that was repeated, or "" if all is equal."""
    name = packed.relative_to(HERE)
    there, here = (
        json.loads((place / "summary.json").read_text(encoding="utf-8")) for place in (packed, out)
    )
    wrong = [key for key in COMPARED if here.get(key) != there.get(key)]
    if "digest" in wrong:
        return f"{name}: the digest of its telemetry is {here['digest']}, not {there['digest']}"
    return f"{name}: its summary has other {', '.join(wrong)}" if wrong else ""


def end(number: int, _: object) -> None:
    """Ends what runs. An exception from here could come anywhere: in the start of a thread, too."""
    ended.append(number)
    for process in list(running):
        process.kill()


def main() -> int:
    """Compares the files, then the runs; returns the exit status."""
    weir = sys.argv[1] if len(sys.argv) > 1 else "weir"
    wrong = differing_files()
    if wrong:
        print("\n".join(wrong), "nothing was run", sep="\n")
        return 1
    about = json.loads((HERE / "runs.json").read_text(encoding="utf-8"))
    try:
        done = subprocess.run([weir, "sim", "--version"], capture_output=True, text=True)
    except OSError as error:
        print(f"{weir}: {error.strerror}: python3 repeat.py WEIR names the command")
        return 1
    here = done.stdout.strip()
    others = [version for version in about["versions"] if version != here]
    if others:
        print(f"here is {here or done.stderr.strip()}; packed are runs of {', '.join(others)}")
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, end)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        futures = [pool.submit(repeat, weir, name) for name in about["runs"]]
        while not all(future.done() for future in futures):
            time.sleep(0.1)
    if ended:
        return 128 + ended[0]
    said = [future.result() for future in futures]
    wrong = [sentence for each in said for sentence in each]
    equal = f"{said.count([])} of {len(said)} runs gave the same again"
    print(*wrong, equal, sep="\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
