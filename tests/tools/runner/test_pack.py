# SPDX-License-Identifier: BSD-3-Clause
"""weir pack: what it packs runs again elsewhere with the same digests, and notices a change."""

import gzip
import json
import signal
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
import small
import weir
from typer.testing import CliRunner
from waiting import wait_for
from weir.cli.app import app

ROOT = Path(__file__).resolve().parents[3]
CONTROL = """\
import beside
from weir.control import Control


class Mine(Control):
    def on_ack(self, m):
        self.cwnd_segs = beside.SEGMENTS
"""


def pack(*argv):
    return CliRunner().invoke(app, ["pack", *map(str, argv)])


@pytest.fixture(scope="module")
def runs(tmp_path_factory, weir_sim):
    """Three runs: one's control is a file that imports another, one has no telemetry."""
    folder = tmp_path_factory.mktemp("runs")
    (folder / "beside.py").write_text("SEGMENTS = 5\n")
    (folder / "mine.py").write_text(CONTROL)
    (folder / "small.yaml").write_text(small.CONFIG)
    for name, of in {
        "newreno": {},
        "python": {"flows.0.cc": {"python": "mine.py:Mine"}},
        "silent": {"telemetry.level": 0},
    }.items():
        weir.run(folder / "small.yaml", overrides=of, out=folder / "three" / name)
    return folder / "three"


@pytest.fixture
def unpacked(runs, tmp_path):
    """The archive, unpacked elsewhere."""
    assert pack(runs, "--out", tmp_path / "packed.tar.gz").exit_code == 0
    with tarfile.open(tmp_path / "packed.tar.gz") as packed:
        packed.extractall(tmp_path / "there", filter="data")
    return tmp_path / "there/packed"


def repeated(folder, weir_sim):
    """Runs the script; `weir sim`, which becomes weir-sim, takes its time for the imports."""
    command = folder.parent / "weir"
    command.write_text(f'#!/bin/sh\nshift\nWEIR_PYTHON="{sys.executable}" exec "{weir_sim}" "$@"\n')
    command.chmod(0o755)
    argv = [sys.executable, folder / "repeat.py", command]
    return subprocess.run(argv, capture_output=True, text=True, cwd="/", timeout=120)


def test_one_run_is_one_run(runs, tmp_path):
    pack(runs / "silent", "--out", tmp_path / "one.tar.gz")
    with tarfile.open(tmp_path / "one.tar.gz") as packed:
        text = packed.extractfile("one/README.md").read().decode()
    assert "a congestion-control testbed: 1 run in virtual time" in text


def test_the_runs_of_an_archive_end_with_its_script(unpacked):
    command = unpacked.parent / "weir"
    command.write_text('#!/bin/sh\n[ "$2" = --version ] && exit\necho $$ >>PIDS; exec sleep 60\n')
    pids = unpacked.parent / "pids"
    command.write_text(command.read_text().replace("PIDS", str(pids)))
    command.chmod(0o755)
    script = subprocess.Popen([sys.executable, unpacked / "repeat.py", command])
    wait_for(lambda: pids.exists() and pids.read_text(), "a run")
    script.terminate()
    assert script.wait(120) == 128 + signal.SIGTERM
    assert pids.read_text()
    assert not [pid for pid in pids.read_text().split() if Path("/proc", pid).exists()]


def test_a_packed_run_gives_the_same_elsewhere(unpacked, weir_sim):
    done = repeated(unpacked, weir_sim)
    assert (done.stdout, done.returncode) == ("3 of 3 runs gave the same again\n", 0)
    text = (unpacked / "README.md").read_text()
    for name, times in {"newreno": 1, "python": 1, "silent": 0}.items():
        summary = json.loads((unpacked / f"runs/three/{name}/summary.json").read_text())
        assert text.count(summary["digest"]) == times
    sums = subprocess.run(["sha256sum", "-c", "--quiet", "SHA256SUMS"], cwd=unpacked)
    assert sums.returncode == 0


def test_branches_are_run_again_with_their_trunk(tmp_path, weir_sim):
    (tmp_path / "small.yaml").write_text(small.CONFIG)
    of = {"branches": "{at: 200ms, runs: {a: {}, b: {}}}"}
    run = weir.run(tmp_path / "small.yaml", overrides=of, out=tmp_path / "trunk")
    assert pack(run.path, "--out", tmp_path / "packed.tar.gz").exit_code == 0
    with tarfile.open(tmp_path / "packed.tar.gz") as packed:
        packed.extractall(tmp_path, filter="data")
    folder = tmp_path / "packed"
    done = repeated(folder, weir_sim)
    assert (done.stdout, done.returncode) == ("1 of 1 runs gave the same again\n", 0)
    branch = folder / "runs/trunk/branches/b/summary.json"
    summary = json.loads(branch.read_text())
    branch.write_text(json.dumps(summary | {"digest": "0"}))
    (folder / "SHA256SUMS").write_text("")
    done = repeated(folder, weir_sim)
    assert done.stdout.startswith("runs/trunk/branches/b: the digest of its telemetry is ")
    assert done.returncode == 1
    (run.path / "branches/a/summary.json").unlink()
    assert "branches/a: the run did not end by itself" in str(pack(run.path).exception)


def test_one_byte_of_a_config_is_noticed(unpacked, weir_sim):
    """Also by the runs themselves, if the list of files has the change, too."""
    for name in ("newreno", "silent"):
        config = unpacked / f"runs/three/{name}/config.yaml"
        text = config.read_text()
        config.write_text(text.replace("20pkt", "30pkt"))
        assert text != config.read_text()
    done = repeated(unpacked, weir_sim)
    assert done.stdout.startswith("runs/three/newreno/config.yaml: its SHA-256 digest is ")
    assert done.returncode == 1
    (unpacked / "SHA256SUMS").write_text("")
    done = repeated(unpacked, weir_sim)
    assert "runs/three/newreno: the digest of its telemetry is " in done.stdout
    assert "runs/three/silent: its summary has other ledger, links, groups" in done.stdout
    assert done.returncode == 1


def test_the_same_runs_make_the_same_bytes(runs, tmp_path):
    """With any name and time of the archive; without rings it holds all but them."""
    archives = []
    for place, options in (("a", []), ("b", []), ("c", ["--no-rings"])):
        (tmp_path / place).mkdir()
        (runs / "newreno/manifest.json").touch()
        assert pack(runs, *options, "--out", tmp_path / place / "x.tar.gz").exit_code == 0
        archives.append((tmp_path / place / "x.tar.gz").read_bytes())
    assert archives[0] == archives[1]
    assert b"interval.ring" in gzip.decompress(archives[0])
    assert b"interval.ring" not in gzip.decompress(archives[2])


def test_what_cannot_be_packed_is_one_sentence(runs, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "half").mkdir()
    (tmp_path / "half/manifest.json").write_text("{}")
    (tmp_path / "three").mkdir()
    (tmp_path / "there").touch()
    for argv, sentence in {
        ("nowhere",): "nowhere: no such run folder",
        ("half",): "half: the run did not end by itself",
        (runs, tmp_path / "three"): "two of the folders have the same name",
        (runs, "--out", "there"): "there is there: choose another --out or --force",
        (runs, "--out", "no/folder.tar.gz"): "no/folder.tar.gz: cannot be written: No such",
    }.items():
        assert sentence in str(pack(*argv).exception), argv
    assert {path.name for path in tmp_path.iterdir()} == {"half", "three", "there"}
