# SPDX-License-Identifier: BSD-3-Clause
"""A copy of the sources with mistakes in it, its build, and its unit tests."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from mutation.mutants import Mutant, Schemata, location

ROOT = Path(__file__).resolve().parents[2]
# As quick to build as it is to run; what is built may well have an unused variable.
OPTIONS = ["--buildtype=plain", "-Doptimization=1", "-Dwerror=false", "-Ddpdk=disabled"]
OPTIONS += ["-Dc_args=-w -fdiagnostics-column-unit=byte"]
HANG_S = 5  # each of a test's parts, which takes milliseconds
BASELINE_S = 120  # without a mistake, where a hang says that the machine is busy
BUILDS_MAX = 10
ERROR = re.compile(r"^[./]*tree/(\S+?):(\d+):(\d+): error: ", re.MULTILINE)


class MutationError(Exception):
    """What cannot be tried, in a sentence."""


@dataclass(frozen=True)
class UnitTest:
    """An executable, how long it takes, and the mistakes that it comes past, by number."""

    path: Path
    took_s: float
    reached: frozenset[int]


def run(argv: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """A command and its output."""
    return subprocess.run(argv, capture_output=True, text=True)


def required(argv: Sequence[str]) -> str:
    """The output of a command that must not fail."""
    done = run(argv)
    if done.returncode != 0:
        raise MutationError(f"{argv[0]} failed:\n{(done.stdout + done.stderr)[-2000:]}")
    return done.stdout


def listed(*patterns: str) -> set[str]:
    """Files of the repository, ignored ones left out."""
    argv = ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = required([*argv, "--", *patterns]).split("\0")
    return {name for name in names if name and (ROOT / name).is_file()}


def passes(test: Path, hang_s: float, **environment: str) -> bool:
    """Runs one test; a part that takes longer is a failure."""
    env = {"CK_DEFAULT_TIMEOUT": str(hang_s), "CK_VERBOSITY": "silent", **environment}
    # In a process group of its own: Check passes SIGTERM on to the whole group.
    with subprocess.Popen(
        [test],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, **env},
        process_group=0,
    ) as process:
        try:
            return process.wait(3 * hang_s) == 0
        except subprocess.TimeoutExpired:
            process.terminate()  # Check ends the part that runs, which is a process
            return False


class Copy:
    """All mistakes in the files, compiled; `mutants` has each by its number."""

    def __init__(self, folder: Path, files: Iterable[str], jobs: int) -> None:
        self.tree = folder / "tree"
        self.build = folder / "build"
        self.jobs = jobs
        self.files = sorted(files)
        self.refused: set[Mutant] = set()
        self.compile()
        paths = self.unit_tests()
        with ThreadPoolExecutor(jobs) as pool:
            self.tests = sorted(pool.map(self.traced, paths), key=lambda test: test.took_s)

    def compile(self) -> None:
        """Builds the unit tests; mistakes that the compiler does not take are left out."""
        for _ in range(BUILDS_MAX):
            self.sync(self.texts())
            if not (self.build / "build.ninja").exists():
                required(["meson", "setup", *OPTIONS, str(self.build), str(self.tree)])
            required(["ninja", "-C", str(self.build), "build.ninja"])
            targets = [str(path.relative_to(self.build)) for path in self.unit_tests()]
            argv = ["ninja", f"-j{self.jobs}", "-k0", "-C", str(self.build), *targets]
            done = run(argv)
            if done.returncode == 0:
                return
            found = {self.blamed(*error) for error in ERROR.findall(done.stdout)}
            if not found:
                raise MutationError(f"ninja failed:\n{done.stdout[-2000:]}")
            self.refused |= found
        raise MutationError(f"mistakes in {', '.join(self.files)} do not compile")

    def texts(self) -> dict[str, str]:
        """The files with their mistakes, which are numbered."""
        self.mutants: dict[int, Mutant] = {}
        made = {}
        for name in self.files:
            schemata = Schemata(
                name, (ROOT / name).read_text(), len(self.mutants) + 1, self.refused
            )
            self.mutants.update(enumerate(schemata.mutants, schemata.first))
            made[name] = schemata.text
        return made

    def blamed(self, file: str, line: str, column: str) -> Mutant:
        """The mistake at an error of the compiler."""
        text = (self.tree / file).read_text()
        number = location(text, int(line), int(column))
        if number is None:
            raise MutationError(f"{file}:{line}: does not compile without any mistake")
        return self.mutants[number]

    def sync(self, made: dict[str, str]) -> None:
        """Makes the tree that of the repository; what is the same keeps its time."""
        names = listed()
        for old in [path for path in self.tree.rglob("*") if path.is_file()]:
            if str(old.relative_to(self.tree)) not in names:
                old.unlink()
        for name in names:
            to = self.tree / name
            content = made[name].encode() if name in made else (ROOT / name).read_bytes()
            if not to.exists() or to.read_bytes() != content:
                to.parent.mkdir(parents=True, exist_ok=True)
                to.write_bytes(content)
                shutil.copymode(ROOT / name, to)

    def unit_tests(self) -> list[Path]:
        """The executables of the C tests."""
        output = required(["meson", "introspect", "--tests", str(self.build)])
        return [Path(t["cmd"][0]) for t in json.loads(output) if "weir:unit" in t["suite"]]

    def traced(self, path: Path) -> UnitTest:
        """Runs a test without a mistake, and notes past which it comes."""
        with tempfile.NamedTemporaryFile() as file:
            file.write(bytes(len(self.mutants) + 1))
            file.flush()
            began = time.monotonic()
            if not passes(path, BASELINE_S, MUTANTS_REACHED=file.name):
                raise MutationError(f"{path.name} fails without any mistake")
            took_s = time.monotonic() - began
            reached = Path(file.name).read_bytes()
        return UnitTest(path, took_s, frozenset(n for n, byte in enumerate(reached) if byte))

    def killer(self, number: int) -> str | None:
        """The test that notices a mistake, those of the file's name first; None: none does."""
        stem = Path(self.mutants[number].file).stem
        near = sorted(self.tests, key=lambda test: stem not in test.path.name)
        for test in near:
            # On a busy machine a test may take this long without a mistake too.
            hang_s = max(HANG_S, 4 * test.took_s)
            if number in test.reached and not passes(test.path, hang_s, MUTANT=str(number)):
                return test.path.name
        return None

    def reached(self) -> set[int]:
        """The mistakes that any test comes past."""
        return set().union(*(test.reached for test in self.tests))
