# SPDX-License-Identifier: BSD-3-Clause
"""Packages import only what stands below them, and no modules import each other in a circle."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


def lint(sources, config):
    """What import-linter says of a package `weir` by the contracts of a file."""
    code = "from importlinter.cli import lint_imports_command as main; main()"
    return subprocess.run(
        [sys.executable, "-P", "-c", code, "--config", config, "--no-cache"],
        env={**os.environ, "PYTHONPATH": str(sources)},
        capture_output=True,
        text=True,
    )


def test_packages_stand_in_one_order():
    done = lint(ROOT / "tools/src", ROOT / "tools/pyproject.toml")
    assert done.returncode == 0, done.stdout


def test_an_import_that_points_up_is_found_inside_a_function_too(tmp_path):
    for name, text in {
        "__init__": "",
        "base/__init__": "",
        "base/units": "def unit():\n    from weir.cli import app\n    return app\n",
        "cli/__init__": "app = 1\n",
    }.items():
        file = tmp_path / f"weir/{name}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    contracts = (ROOT / "tools/pyproject.toml").read_text().partition("[tool.importlinter]")
    layers = '[ "cli", "base" ]'
    kept, _, rest = "".join(contracts[1:]).partition("layers = [")
    (tmp_path / "pyproject.toml").write_text(f"{kept}layers = {layers}{rest.partition(']')[2]}")
    done = lint(tmp_path, tmp_path / "pyproject.toml")
    assert done.returncode != 0
    assert "weir.base.units -> weir.cli" in done.stdout
