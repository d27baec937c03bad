# SPDX-License-Identifier: BSD-3-Clause
"""Each command of the tutorials runs, in their order, and prints what stands below it."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner
from weir.cli.app import app

ROOT = Path(__file__).resolve().parents[3]
TUTORIALS = ROOT / "tools/docs/tutorials"
BLOCK = re.compile(r"^```(\w+) ?(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
ELSEWHERE = {  # a command that takes long or looks at the machine, and its own tests
    "tools/weir check cc mine/mine.so": "plugin/test_plugin_check.py",
    "tools/weir doctor": "cli/test_doctor.py",
}


def blocks(page: Path) -> list[tuple[str, str, str]]:
    """Language, further word and text of each fenced block."""
    return BLOCK.findall(page.read_text())


def weir(line: str) -> str:
    """Runs a command of the page; of a run only what the tests of reports do not try."""
    words = shlex.split(line)[1:]
    quick = ["--no-report"] if words[0] == "run" else []
    done = CliRunner().invoke(app, [*words, *quick], env={"COLUMNS": "140"})
    assert done.exit_code == 0, (line, done.output, done.exception)
    return done.stdout


def shell(line: str) -> str:
    """Runs another command."""
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, (line, done.stderr)
    return done.stdout


def lines(text: str) -> list[str]:
    """Lines that are not empty, whatever their columns are aligned to."""
    return [" ".join(line.split()) for line in text.splitlines() if line.strip()]


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, weir_sim: Path) -> Path:
    """A folder in which the commands are typed, as in a clone."""
    for name in ("tools", "configs", "common"):
        (tmp_path / name).symlink_to(ROOT / name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(page.stem for page in TUTORIALS.glob("*.md")))
def test_a_tutorial(name: str, clone: Path) -> None:
    """What needs the live programs is tried by the live tests of its config."""
    said: list[str] = []
    for language, word, text in blocks(TUTORIALS / f"{name}.md"):
        if language == "sh" and not word:
            said = []
            for line in text.splitlines():
                if line not in ELSEWHERE:
                    run = weir if line.startswith("tools/weir ") else shell
                    said += lines(run(line))
        elif language == "text":
            assert [line for line in lines(text) if line not in said] == [], said
        elif language == "yaml":
            (config,) = clone.glob("*.yaml")
            written = lines(re.sub(r" *#.*", "", config.read_text()))
            assert [line for line in lines(text) if line not in written] == []


def test_live_commands_are_of_a_config_that_runs_live() -> None:
    """tests/smoke/loopback_test.py runs it; the tutorial has the command without --live, too."""
    found = [block for block in blocks(TUTORIALS / "first-live-run.md") if block[1] == "live"]
    run = found[0][2].strip()
    assert (
        run.replace("--live --out runs/live", "--out runs/virtual")
        in (TUTORIALS / "first-live-run.md").read_text()
    )
    config = shlex.split(run)[2]
    assert f'"{config}"' in (ROOT / "tests/smoke/loopback_test.py").read_text()
    for command, tests in ELSEWHERE.items():
        assert shlex.split(command)[1] in (ROOT / "tests/tools" / tests).read_text()
