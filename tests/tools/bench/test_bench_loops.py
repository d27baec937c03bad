# SPDX-License-Identifier: BSD-3-Clause
"""weir bench cc and aqm: the loop's cost taken off in each round, limits, and that they run."""

import json
import re
import subprocess

import pytest
from weir.base import programs
from weir.base.errors import UserError
from weir.bench import controls, disciplines, sim

STATE_BYTES = {"newreno": 32, "heavy": 264, "slow": 8, "fixed": 0}
NS = ((8.0, 7.0, 140.0, 6.0), (12.0, 9.0, 110.0, 9.0), (9.0, 9.0, 130.0, 5.0))
COUNTED = {"newreno": 95.0, "heavy": 60.0, "fixed": 50.0}
FIFO_NS = (20.0, 30.0, 22.0)
ABOVE_NS = {"drr": (15.0, 10.0, 12.0), "fq_pie": (39.0, 55.0, 41.0)}


def test_the_loop_is_taken_off_in_each_round(shown):
    measured = [
        {
            name: controls.Line(name, size, ns)
            for (name, size), ns in zip(STATE_BYTES.items(), every_ns, strict=True)
        }
        for every_ns in NS
    ]
    found = controls.report(measured, COUNTED)
    newreno, heavy, slow = found.rows
    assert newreno.ns == 3.0  # of 2, 3 and 4
    assert newreno.instructions == 45.0
    assert slow.instructions is None
    assert [row.within for row in (newreno, heavy, slow)] == [True, False, False]
    text = shown(found)
    for figure in ("264 B", "45", "3.0", "valgrind"):
        assert figure in text
    assert "beyond 256 bytes of state and 100 ns per ACK: heavy, slow" in text


def test_what_valgrind_says_is_read():
    assert controls.parse_instructions("==1== Collected : 123456\n==1==\n") == 123456
    with pytest.raises(UserError, match="counted nothing"):
        controls.parse_instructions("==1== valgrind: no\n")


def test_the_fifo_is_taken_off_in_each_round(shown):
    lines = [
        {
            "ns": fifo_ns + ABOVE_NS.get(case, (0.0, 0.0, 0.0))[number],
            "marked": 500 if "marking" in case else 0,
            "dropped": 0,
        }
        for number, fifo_ns in enumerate(FIFO_NS)
        for case in disciplines.CASES
    ]
    measured = disciplines.parse("\n".join(map(json.dumps, lines)))
    found = disciplines.Disciplines(3, "one", list(disciplines.rows(5000, 1000, measured)))
    rows = {row.name: row for row in found.rows}
    assert "fifo" not in rows
    drr = rows["drr"]
    assert (drr.above_ns, drr.above_ns_min, drr.above_ns_max, drr.fifo_ns) == (12, 10, 15, 22)
    assert rows["cake, marking"].marked == 0.5
    text = shown(found)
    assert "beyond 40 ns above fifo: fq_pie (5,000)\n" in text
    assert "12.0" in text


@pytest.mark.slow
def test_every_control_is_measured_and_within_its_state(weir):
    """Times are not asserted; bytes of state are."""
    done = weir("bench", "cc", "--repeat", "1", "--acks", "20000", "--json")
    assert done.status == 0, done.err
    rows = json.loads(done.out)["rows"]
    assert {"copa", "cubic", "bbr", "newreno", "dctcp", "vegas", "lola", "vivace", "pcc"} <= {
        row["name"] for row in rows
    }
    assert all(0 < row["state_bytes"] <= controls.STATE_BYTES_MAX for row in rows)


@pytest.mark.slow
def test_a_plugin_is_measured_as_a_control_within(build_plugin, tmp_path):
    program = sim.build_targets(controls.PROGRAM) / controls.PROGRAM
    values = (f"{{plugin: {build_plugin()}}}", "{newreno: {initial: 20}}")
    lines = [json.loads(sim.child([program, value, 20000])[0]) for value in values]
    assert [line["name"] for line in lines] == ["mine", "newreno"]
    assert lines[0]["state_bytes"] == lines[1]["state_bytes"]
    (tmp_path / "none.so").write_text("no shared object")
    value = f"{{plugin: {tmp_path / 'none.so'}}}"
    bad = subprocess.run([program, value], capture_output=True, text=True)
    assert bad.returncode == 2
    assert re.search("weir-cc: .*plug-in .*none.so: ", bad.stderr), bad.stderr


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
