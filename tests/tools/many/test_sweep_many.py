# SPDX-License-Identifier: BSD-3-Clause
"""What a sweep of many cells costs beside its simulations: counted, not timed."""

from pathlib import Path

import pytest
from small import CONFIG
from weir.many import sweep
from weir.many.cells import Outcome, run_cells
from weir.runner import config_files
from weir.runner.options import Options

COUNTED = '#!/bin/sh\necho "$*" >> {log}\nexec {weir_sim} "$@"\n'


@pytest.fixture
def started(weir_sim, tmp_path, monkeypatch):
    """The command lines of weir-sim, as they are started."""
    log, program = tmp_path / "log", tmp_path / "build/tools/sim/weir-sim"
    program.parent.mkdir(parents=True)
    program.write_text(COUNTED.format(log=log, weir_sim=weir_sim))
    program.chmod(0o755)
    config_files.keys()  # once in a process, whichever test is the first
    monkeypatch.setenv("WEIR_BUILD", str(tmp_path / "build"))
    return lambda: log.read_text().splitlines()


def cell(name, config, **kw):
    return Options(config=config, out=Path(name), **kw)


def test_a_cell_is_one_program(started, tmp_path):
    """And none where a run of it is there. One more tells the version."""
    config = tmp_path / "x.yaml"
    config.write_text(CONFIG)
    several = [cell(f"seed={n}", config, seed=n, duration="20ms") for n in range(1, 13)]
    run_cells(several, tmp_path / "out")
    assert len(started()) == 1 + len(several)
    outcomes = run_cells(several, tmp_path / "out")
    assert {outcome.status for outcome in outcomes} == {"reused"}
    assert len(started()) == 1 + len(several) + 1


def test_a_config_that_is_written_otherwise_is_resolved_to_be_compared(started, tmp_path):
    config, out = tmp_path / "x.yaml", tmp_path / "out"
    config.write_text(CONFIG)
    run_cells([cell("one", config)], out)
    config.write_text(CONFIG + "# A remark.\n")
    (outcome,) = run_cells([cell("one", config)], out)
    assert outcome.status == "reused"
    assert sum("--print-config" in line for line in started()) == 1
    config.write_text(CONFIG.replace("20pkt", "21pkt"))
    (outcome,) = run_cells([cell("one", config)], out)
    assert outcome.status == "done"


def test_a_table_that_grows_is_written_for_a_tenth_of_the_time(tmp_path, monkeypatch):
    """Ten thousand cells of 10 ms by a clock of the test; a row takes 20 us to write."""
    now_s, writes = [0.0], []

    def write(path, table):
        writes.append(table.height)
        now_s[0] += 20e-6 * table.height

    monkeypatch.setattr(sweep.time, "monotonic", lambda: now_s[0])
    monkeypatch.setattr(sweep.folder, "write_table", write)
    monkeypatch.setattr(sweep, "framed", lambda points, rows: Height(len(rows)))
    planned = [(f"seed={n}", {}) for n in range(10_000)]
    growing = sweep.Growing(tmp_path / "table.parquet", planned)
    for name, _ in planned:
        now_s[0] += 0.01
        growing.add(Outcome(cell(name, tmp_path), tmp_path, "failed", "why"))
    assert 10 < len(writes) <= 20
    assert sum(writes) * 20e-6 < 0.1 * now_s[0]


class Height:
    """A table of which only the number of rows matters."""

    def __init__(self, height):
        self.height = height


def test_a_table_keeps_each_name_of_a_column_once():
    """They were most of what ten thousand rows take in memory."""
    rows = [sweep.figures({"groups": [{"rtt": {"mean_ns": n}}]}) for n in (1, 2)]
    first, second = (list(row)[-1] for row in rows)
    assert first is second
