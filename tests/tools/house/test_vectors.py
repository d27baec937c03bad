# SPDX-License-Identifier: BSD-3-Clause
"""Each table that a script of tests/vectors computes says where it is from, and in which units."""

from pathlib import Path

import pytest

SCRIPTS = sorted(Path(__file__).resolve().parents[2].joinpath("vectors").glob("*.py"))


@pytest.mark.parametrize("name", [script.stem for script in SCRIPTS])
def test_a_table_names_its_source_and_units(build, name):
    table = build.joinpath("tests/vectors", f"{name}.csv").read_text().splitlines()
    head = [line for line in table if line.startswith("#")]
    assert any("Source:" in line for line in head)
    assert any("Units:" in line for line in head)
