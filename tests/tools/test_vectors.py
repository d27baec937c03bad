# SPDX-License-Identifier: BSD-3-Clause
"""Each table of tests/vectors is what the script beside it computes."""

import subprocess
import sys
from pathlib import Path

import pytest

VECTORS = Path(__file__).resolve().parents[1] / "vectors"


def test_each_table_has_its_script():
    assert {p.stem for p in VECTORS.glob("*.csv")} == {p.stem for p in VECTORS.glob("*.py")}


@pytest.mark.parametrize("script", sorted(VECTORS.glob("*.py")), ids=lambda path: path.stem)
def test_a_table_is_what_its_script_computes(script):
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
    table = script.with_suffix(".csv").read_text()
    assert done.stdout == table
    head = [line for line in table.splitlines() if line.startswith("#")]
    assert any("Source:" in line for line in head)
    assert any("Units:" in line for line in head)
