# SPDX-License-Identifier: BSD-3-Clause
"""The installed package, without a compiler and a clone, is enough for the notebook."""

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
NOTEBOOK = ROOT / "configs/notebooks/first-run.ipynb"
AGENT = NOTEBOOK.with_name("train-agent.ipynb")
EXECUTE = """
import sys
import nbclient, nbformat
notebook = nbformat.read(sys.argv[1], 4)
where = {"metadata": {"path": sys.argv[2]}}
nbclient.NotebookClient(notebook, timeout=200, kernel_name="python3", resources=where).execute()
nbformat.write(notebook, sys.argv[3])
"""

pytestmark = pytest.mark.slow


def call(argv, **options):
    done = subprocess.run(list(map(str, argv)), capture_output=True, text=True, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def clean(tmp_path_factory):
    """An environment with Weir as a wheel leaves it, without the programs: its python, and
    variables without a compiler.

    What Weir needs comes from the tests' own environment, so that no network is needed.
    """
    folder = tmp_path_factory.mktemp("clean")
    env = {"HOME": str(folder), "PATH": str(folder / "bin"), "WEIR_BUILD": str(folder / "build")}
    call([sys.executable, "-m", "venv", "--without-pip", folder / "venv"])
    python = folder / "venv/bin/python"
    where = call([python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"])
    site = Path(where.strip())
    (site / "others.pth").write_text(sysconfig.get_path("purelib") + "\n")
    shutil.copytree(ROOT / "tools/src/weir", site / "weir")
    (site / "weir/tree").mkdir()
    shutil.copy(ROOT / "meson.build", site / "weir/tree")
    return python, env


def executed(python, env, tmp_path):
    """Runs a copy of the notebook; what its cells printed."""
    folder = tmp_path / "notebooks"
    shutil.copytree(NOTEBOOK.parent, folder)
    call([python, "-c", EXECUTE, folder / NOTEBOOK.name, folder, tmp_path / "done.ipynb"], env=env)
    cells = json.loads((tmp_path / "done.ipynb").read_text())["cells"]
    outputs = [output for cell in cells for output in cell.get("outputs", [])]
    assert sum("image/png" in output.get("data", {}) for output in outputs) == 1
    pages = ["".join(output.get("data", {}).get("text/html", "")) for output in outputs]
    assert any("<iframe title=" in page for page in pages)  # the report's figure
    return "".join("".join(output.get("text", "")) for output in outputs)


def test_the_notebook_runs_from_a_clean_install(clean, tmp_path):
    python, env = clean
    place = call([python, "-c", "import weir; print(weir.__file__)"], env=env, cwd=tmp_path)
    assert Path(place.strip()).is_relative_to(python.parents[1])
    said = executed(python, env, tmp_path)
    assert "events of flow 0" in said
    assert "weir-sim was not built" in said, "weir.run needs the programs, and says so"


def test_the_notebook_runs_with_the_programs(weir_sim, build, tmp_path):
    said = executed(sys.executable, {**os.environ, "WEIR_BUILD": str(build)}, tmp_path)
    assert "\nok [" in said


def test_commands_of_a_clean_install(clean, tmp_path):
    """They run, with the report's templates and typeface."""
    python, env = clean
    shutil.copytree(NOTEBOOK.parent / "cubic-and-bbr", tmp_path / "run")
    for words in (["summary"], ["report"], ["export", "--to", "pcapng"]):
        call([python, "-m", "weir", words[0], tmp_path / "run", *words[1:]], env=env, cwd=tmp_path)
    assert (tmp_path / "run/report.html").stat().st_size > 10_000
    assert (tmp_path / "run/export/packets.pcapng").stat().st_size > 1000


def test_the_notebook_that_trains_an_agent_runs(weir_sim, build, tmp_path):
    """A short training; the longer one's curve; its policy as a control beside NewReno."""
    folder = tmp_path / "configs"
    for name in ("notebooks", "gym", "controls"):
        shutil.copytree(ROOT / "configs" / name, folder / name)
    where, done = folder / "notebooks", tmp_path / "done.ipynb"
    call(
        [sys.executable, "-c", EXECUTE, where / AGENT.name, where, done],
        env={**os.environ, "WEIR_BUILD": str(build)},
    )
    outputs = [o for cell in json.loads(done.read_text())["cells"] for o in cell.get("outputs", [])]
    said = "".join("".join(output.get("text", "")) for output in outputs)
    assert "generation 1: candidates" in said
    assert sum("image/png" in output.get("data", {}) for output in outputs) == 1
    found = re.findall(r"(\w+) +utilisation ([\d.]+), mean RTT ([\d.]+) ms", said)
    assert [name for name, _, _ in found] == ["Trained", "newreno"]
    (_, used, rtt), (_, _, rtt_of_newreno) = found
    assert float(used) > 0.9
    assert float(rtt) < 0.8 * float(rtt_of_newreno)


@pytest.mark.parametrize("notebook", [NOTEBOOK, AGENT], ids=lambda path: path.stem)
def test_a_notebook_is_kept_without_outputs(notebook):
    cells = json.loads(notebook.read_text())["cells"]
    assert not any(cell.get("outputs") or cell.get("execution_count") for cell in cells)
