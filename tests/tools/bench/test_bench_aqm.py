# SPDX-License-Identifier: BSD-3-Clause
"""weir bench aqm: the fifo taken off in each round, the limit, and that the program runs."""

from __future__ import annotations

import io
import json
import re
import subprocess

import pytest
from rich.console import Console
from weir.base import programs
from weir.bench import disciplines

FIFO_NS = (20.0, 30.0, 22.0)
ABOVE_NS = {"drr": (15.0, 10.0, 12.0), "fq_pie": (39.0, 55.0, 41.0)}


def lines():
    return "\n".join(
        json.dumps(
            {
                "name": case,
                "ns": FIFO_NS[i] + ABOVE_NS.get(case, (0.0, 0.0, 0.0))[i],
                "marked": 500 if "marking" in case else 0,
                "dropped": 0,
            }
        )
        for i in range(3)
        for case in disciplines.CASES
    )


def found():
    return disciplines.rows(5000, 1000, disciplines.parse(lines()))


def test_the_fifo_is_taken_off_in_each_round():
    rows = {row["name"]: row for row in found()}
    assert "fifo" not in rows
    assert rows["drr"]["above_ns"] == 12.0
    assert (rows["drr"]["above_ns_min"], rows["drr"]["above_ns_max"]) == (10.0, 15.0)
    assert rows["drr"]["fifo_ns"] == 22.0
    assert rows["cake, marking"]["marked"] == 0.5
    assert [name for name, row in rows.items() if not row["within"]] == ["fq_pie"]


def test_the_table_names_what_is_beyond_the_limit():
    out = io.StringIO()
    report = {"rounds": 3, "machine": "one", "rows": found()}
    disciplines.show(report, Console(file=out, width=120))
    assert "beyond 40 ns above fifo: fq_pie (5,000)" in out.getvalue()
    assert "12.0" in out.getvalue()


@pytest.mark.slow
def test_every_discipline_is_measured_under_the_same_load(weir):
    """Times are not asserted. Nothing is dropped; those at rest mark nothing, the others do."""
    done = weir("bench", "aqm", "--flows", "50", "--repeat", "1", "--packets", "20000", "--json")
    assert done.status == 0, done.err
    rows = json.loads(done.out)["rows"]
    assert {row["name"] for row in rows} == set(disciplines.CASES) - {"fifo"}
    assert all(row["dropped"] == 0 for row in rows)
    assert all((row["marked"] > 0) == ("marking" in row["name"]) for row in rows)
    program = programs.build_dir() / disciplines.PROGRAM
    for argv, why in (
        (("5", "1000", "1", "unknown", "{}"), "unknown is no discipline"),
        (("5", "1000", "1", "drr", "{limit: no}"), "drr: .*limit"),
        (("0", "1000", "1", "drr", "{}"), "usage"),
    ):
        bad = subprocess.run([program, *argv], capture_output=True, text=True, check=False)
        assert bad.returncode == 2
        assert re.search(why, bad.stderr), bad.stderr
