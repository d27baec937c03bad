# SPDX-License-Identifier: BSD-3-Clause
"""Scenarios of draft-huitema-ccwg-c4-test (study c4) against the times published for picoquic."""

from __future__ import annotations

from pathlib import Path

import pytest
from weir.many.cells import run_cells
from weir.studies.c4 import study as c4
from weir.studies.c4.study import OF_BYTES, SCENARIOS, Scenario, size
from weir.study.claim import Found

QUICK = ("alone_200", "low_and_up", "blackhole", "wifi_suspension")


def named(name: str) -> Scenario:
    """Of those alone."""
    return next(one for one in SCENARIOS if one.name == name)


def test_a_download_takes_as_many_bytes_on_the_link_as_quic_packets_do() -> None:
    """10 MB are 7118 packets of 1405 B of data and 1440 B: of 1448 B and 1500 B as many bytes."""
    assert size(10) == "flows.0.source.size.bytes=9893808B"
    assert pytest.approx(10e6 / 1405 * 1440) == 10e6 * OF_BYTES / 1448 * 1500


def test_what_needs_c4_is_not_comparable() -> None:
    """Seven scenarios compete with it; one begins with a remembered window, one has no order."""
    claims = [one for experiment in c4.EXPERIMENTS for one in experiment.claims]
    found = [one.says for one in claims if one.kind == "not comparable"]
    assert len([name for name in found if "c4" in name]) == 7
    assert [name for name in found if "c4" not in name] == ["satellite", "wifi_bad_bbr"]


def test_cubic_takes_as_long_as_published(tmp_path: Path) -> None:
    """Within 10 % of the mean; the whole study has the reason of each that is not."""
    setups = {name: named(name).setup("cubic") for name in QUICK}
    cells = [cell for setup in setups.values() for cell in setup.cells(True)]
    outcomes = run_cells(cells, tmp_path, workers=1)
    runs = Found({one.cell.name: one.folder for one in outcomes}, True)
    for name, setup in setups.items():
        (run,) = runs.runs(setup) or ()
        expected = named(name).times("cubic").mean
        assert named(name).time_s(run) == pytest.approx(expected, rel=0.10), name
