# SPDX-License-Identifier: BSD-3-Clause
"""weir bench cc: the loop's cost taken off in each round, limits, and that the program runs."""

from __future__ import annotations

import io
import json

import pytest
from rich.console import Console
from weir.base.errors import UserError
from weir.bench import controls

ROUNDS = (
    {"newreno": (32, 8.0), "heavy": (264, 7.0), "slow": (8, 140.0), "fixed": (0, 6.0)},
    {"newreno": (32, 12.0), "heavy": (264, 9.0), "slow": (8, 110.0), "fixed": (0, 9.0)},
    {"newreno": (32, 9.0), "heavy": (264, 9.0), "slow": (8, 130.0), "fixed": (0, 5.0)},
)
COUNTED = {"newreno": 95.0, "heavy": 60.0, "fixed": 50.0}


def test_the_loop_is_taken_off_in_each_round():
    rows = {row["name"]: row for row in controls.report(ROUNDS, COUNTED)["rows"]}
    assert set(rows) == {"newreno", "heavy", "slow"}
    assert rows["newreno"]["ns"] == 3.0  # of 2, 3 and 4
    assert rows["newreno"]["instructions"] == 45.0
    assert rows["slow"]["instructions"] is None
    assert [rows[name]["within"] for name in ("newreno", "heavy", "slow")] == [True, False, False]


def test_the_table_names_what_is_beyond_the_limits():
    out = io.StringIO()
    controls.show(controls.report(ROUNDS, COUNTED), Console(file=out, width=120))
    text = out.getvalue()
    for figure in (
        "264 B",
        "45",
        "3.0",
        "beyond 256 bytes of state and 100 ns per ACK: heavy, slow",
    ):
        assert figure in text
    assert "valgrind" in text


def test_what_valgrind_says_is_read():
    assert controls.parse_instructions("==1== Collected : 123456\n==1==\n") == 123456
    with pytest.raises(UserError, match="counted nothing"):
        controls.parse_instructions("==1== valgrind: no\n")


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
