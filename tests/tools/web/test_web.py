# SPDX-License-Identifier: BSD-3-Clause
"""weir-sim as WebAssembly: the same bytes and sentences as the native one, and its size."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from test_playground import CONFIGS, ROOT, SHORT, SIM

WEB = ROOT / "build-web"
ALL = [*CONFIGS, "cobalt-unresponsive", "fast-queue", "replay", "wifi-jitter"]
SIZE_MAX = 300_000  # bytes of program and script by brotli

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.environ.get("WEIR_WEB") != "1", reason="needs WEIR_WEB=1"),
]


@pytest.fixture(scope="module", autouse=True)
def _built():
    subprocess.run([sys.executable, ROOT / "tools/web/build.py", "-j1"], check=True)


def web(folder, *arguments):
    command = ["node", ROOT / "tests/tools/web/run.mjs", WEB, folder, *arguments]
    traces = ":".join(str(p) for p in Path("configs/traces").iterdir())
    return subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, env={**os.environ, "INPUTS": traces}
    )


def native(folder, *arguments):
    command = [SIM, *arguments, "--threads", "1", "--out", folder]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True)


@pytest.mark.parametrize("name", ALL)
def test_a_run_has_the_bytes_of_the_native_program(name, tmp_path):
    config = f"configs/{name}.yaml"
    for run, folder in ((web, "web"), (native, "native")):
        done = run(tmp_path / folder, config, *SHORT)
        assert done.returncode == 0, done.stderr
    of_web, of_native = (
        json.loads((tmp_path / one / "summary.json").read_text()) for one in ("web", "native")
    )
    assert of_web["digest"] == of_native["digest"]
    assert of_web["measured"]["cpu_s"] is None  # no clock of a browser counts it
    assert of_native["measured"]["cpu_s"] > 0
    for ring in (tmp_path / "native").glob("*.ring"):
        same = (tmp_path / "web" / ring.name).read_bytes()
        assert same[4096:] == ring.read_bytes()[4096:]  # the first page has the time of day


@pytest.mark.parametrize(
    "wrong",
    [
        "paths.forward.link.rate=500",
        "flows.0.cc=none",
        "duration=1s",
        "flows.0.nothing=1",
    ],
)
def test_an_error_has_the_native_programs_sentence(wrong, tmp_path):
    answers = [run(tmp_path, "configs/quickstart.yaml", "-o", wrong) for run in (web, native)]
    assert answers[0].returncode == answers[1].returncode == 2
    assert answers[0].stderr == answers[1].stderr


def test_what_a_browser_lacks_is_refused_with_its_place(tmp_path):
    said = web(tmp_path, "configs/linux-mix.yaml")
    assert said.returncode == 2
    assert said.stderr == (
        "weir-sim: configs/linux-mix.yaml:19:5: flows: Linux kernels do not run in a browser:"
        " weir run\n"
    )


def test_the_program_is_small():
    script = (
        "const {readFileSync: r} = require('fs'), {brotliCompressSync: b} = require('zlib');"
        "console.log(process.argv.slice(1).map((name) => b(r(name)).length))"
    )
    names = [WEB / "weir-sim.wasm", WEB / "weir-sim.js"]
    said = subprocess.run(
        ["node", "-e", script, *names], capture_output=True, text=True, check=True
    )
    assert sum(json.loads(said.stdout)) < SIZE_MAX
