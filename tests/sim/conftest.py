# SPDX-License-Identifier: BSD-3-Clause
"""Runs weir-sim on a config and hands its summary and rings to the test."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from weir.analysis.ring import open_ring
from weir.cli import app

ROOT = Path(__file__).resolve().parents[2]
RUN_S_MAX = 280


@dataclass
class Run:
    """A finished run."""

    folder: Path
    summary: dict[str, Any]

    @property
    def link(self) -> dict[str, Any]:
        """The forward link's figures."""
        return self.summary["links"]["forward"]

    @property
    def groups(self) -> list[dict[str, Any]]:
        """The flow groups' figures."""
        return self.summary["groups"]

    def records(self, stream: str) -> np.ndarray:
        """A stream's records, those of the warm-up left out."""
        records = open_ring(self.folder / f"{stream}.ring").records
        return records[records["ts_ns"] >= self.summary["warmup_s"] * 1e9]

    def modes(self) -> list[tuple[float, int, str, str]]:
        """Changes of the controls' modes: time in s, flow, and the names before and after."""
        kinds = next(f for f in open_ring(self.folder / "events.ring").schema.fields if f.values)
        events = self.records("events")
        changes = []
        for e in events[events["event"] == kinds.values["cc_mode"]]:
            names = self.groups[e["group"]]["modes"]
            before, after = names[int(e["before"])], names[int(e["value"])]
            changes.append((e["ts_ns"] / 1e9, int(e["flow_id"]), before, after))
        return changes


Simulate = Callable[..., Run]


SDK = ROOT / "tools/sdk"
SDK_FLAGS = "-O2 -ffp-contract=off -fPIC -shared -fvisibility=hidden -Wall -Wextra -Werror"
SDK_FLAGS += f" -Wno-missing-field-initializers -I{ROOT / 'common'}"


@pytest.fixture(scope="session")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Compiles tools/sdk's C and C++; returns the folder of the objects."""
    folder = tmp_path_factory.mktemp("sdk")
    for source in (*SDK.glob("*.c"), *SDK.glob("*.cpp")):
        program, standard = ("gcc", "gnu11") if source.suffix == ".c" else ("g++", "c++17")
        made = folder / f"{source.stem}.so"
        argv = [program, f"-std={standard}", *SDK_FLAGS.split()]
        subprocess.run([*argv, "-o", str(made), str(source)], check=True)
    return folder


@pytest.fixture
def simulate(weir_sim: Path, tmp_path: Path) -> Simulate:
    """simulate(config, "key=value", ...): a config's name or its text, with overrides.

    by: the command that starts the program; more: its further words.
    """
    runs = 0

    def run(
        config: str,
        *overrides: str,
        program: Path = weir_sim,
        by: tuple[str, ...] = (),
        more: tuple[str, ...] = (),
    ) -> Run:
        nonlocal runs
        runs += 1
        folder = tmp_path / f"run{runs}"
        path = ROOT / "configs" / f"{config}.yaml"
        if "\n" in config:
            path = tmp_path / f"run{runs}.yaml"
            path.write_text(config)
        argv = [*by, str(program), str(path), "--out", str(folder), *more]
        for override in overrides:
            argv += ["-o", override]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=RUN_S_MAX)
        assert done.returncode == 0, done.stderr
        summary = json.loads((folder / "summary.json").read_text())
        assert summary["ledger"]["balanced"]
        assert summary["verdict"] == "ok"
        return Run(folder, summary)

    return run


class Program:
    """weir-sim in the folder of a test, on a config that is written into its x.yaml."""

    def __init__(self, path: Path, folder: Path) -> None:
        self.path, self.folder = path, folder

    def __call__(
        self, config: str, *words: object, **more: Any
    ) -> subprocess.CompletedProcess[str]:
        """Runs it to its end; more: arguments of subprocess.run."""
        (self.folder / "x.yaml").write_text(config)
        argv = [str(self.path), "x.yaml", *map(str, words)]
        more = {"capture_output": True, "text": True, "timeout": RUN_S_MAX, **more}
        return subprocess.run(argv, cwd=self.folder, **more)

    def summary(self, config: str, *words: object) -> dict[str, Any]:
        """Runs it into `run`, and returns what it hands on."""
        done = self(config, "--out", "run", "--force", "--json", *words)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def refuse(self, config: str, said: str, *words: object, **more: Any) -> str:
        """Checks that it ends with 2, one line with the place, and no run folder; the line."""
        done = self(config, "--out", "run", *words, **more)
        assert done.returncode == 2, done.stderr
        assert done.stderr.count("\n") == 1
        assert done.stderr.startswith(("weir-sim: x.yaml:", "weir-sim: -"))
        assert said in done.stderr
        assert done.stdout == ""
        assert not (self.folder / "run").exists()
        return done.stderr


@pytest.fixture
def sim(weir_sim: Path, tmp_path: Path) -> Program:
    return Program(weir_sim, tmp_path)


def tshark(pcap: Path, display_filter: str, *names: str) -> list[list[str]]:
    """The fields of the frames that pass a display filter, as tshark reads them."""
    argv = ["tshark", "-r", str(pcap), "-Y", display_filter, "-T", "fields"]
    argv += [word for of in ("ip", "tcp", "udp") for word in ("-o", f"{of}.check_checksum:TRUE")]
    argv += [word for name in names for word in ("-e", name)]
    done = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=RUN_S_MAX)
    return [line.split("\t") for line in done.stdout.splitlines()]


@dataclass
class Done:
    """How weir replay ended."""

    status: int
    out: str
    err: str


Replay = Callable[[Path], Done]


@pytest.fixture
def replay(
    build: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Replay:
    """Runs weir replay on a folder, within this process."""

    def run(folder: Path) -> Done:
        monkeypatch.setenv("WEIR_BUILD", str(build))
        monkeypatch.setattr(sys, "argv", ["weir", "replay", str(folder)])
        capfd.readouterr()
        status = app.main()
        return Done(status, *capfd.readouterr())

    return run
