# SPDX-License-Identifier: BSD-3-Clause
"""Faults that authors make (faulty.c) are found; sane controls have none.

faults.py tries all thirty, with all checks and the searches; here each has the one that finds it.
"""

import json

import faults
import pytest
from weir.attack import registry
from weir.base import tables
from weir.plugin import check

# Of the faults that `weir check cc` finds: a condition whose bounds they do not keep.
FOUND = {
    1: "after losses",
    2: "timeouts",
    3: "steady link",
    4: "small segments",
    5: "4 GB",
    7: "after losses",
    8: "ECN",
    9: "marks in a row",
    11: "bursts",
    12: "small windows",
    18: "steady link",
    20: "two flows",
    21: "bursts",
    22: "steady link",
    23: "steady link",
    24: "lost ACKs",
    26: "slower link",
    28: "short round trips",
    29: "timeouts",
    30: "short round trips",
}
FABRICS = {"swift", "timely"}  # which need other parameters on longer paths
DEAF = {"fixed"}  # it ignores all feedback


@pytest.mark.parametrize(("number", "name"), FOUND.items())
def test_a_fault_is_found(number, name, tmp_path):
    """What was seen is said, with the bound, and a config that shows it."""
    found = check.bounded(name, faults.built(tmp_path, number), tmp_path)
    assert found.passed is False
    assert "wanted" in found.found
    assert f"weir run {tmp_path}/{name.replace(' ', '-')}.yaml" in found.found


@pytest.mark.parametrize("number", [15, 16])
def test_state_of_another_flow_is_found(weir, number, tmp_path):
    """A flow acknowledges other bytes when another one, on paths of its own, has losses."""
    found = check.alone(faults.built(tmp_path, number), tmp_path)
    assert found.passed is False
    acked = [int(word) for word in found.found.split() if word.isdigit()][:2]
    words = found.found.partition("; to run it: weir ")[2].replace(", and with", "").split()
    for options, expected in ((words[2:], acked[0]), ([], acked[1])):
        run = (*words[:2], *options, "--no-report", "--json", "--out", f"run{expected}")
        assert json.loads(weir(*run).out)["groups"][0]["acked_bytes"] == expected


def test_what_is_no_number_is_found(tmp_path):
    """By hand, and on each path."""
    plugin = faults.built(tmp_path, 17)
    assert "nan" in next(row for row in check.by_hand(plugin) if row.passed is False).found
    assert "nan" in check.bounded("steady link", plugin, tmp_path).found


@pytest.mark.parametrize("control", ["RENO", "CUBIC", "PACED"])
def test_without_a_fault_it_passes(control, tmp_path):
    """All of the checks, for the three controls that the faults are in."""
    results = check.conformance(faults.built(tmp_path, 0, control), tmp_path)
    assert [row for row in results if row.passed is False] == []
    assert not list(tmp_path.glob("*.yaml"))


@pytest.mark.slow
@pytest.mark.parametrize("control", sorted(tables.read()["cc"].keys() - FABRICS - DEAF))
def test_no_control_within_fails(control, tmp_path):
    """The bounds are for any control."""
    results = [check.bounded(name, control, tmp_path) for name in check.CONDITIONS]
    assert [row for row in results if row.passed is False] == []
    assert check.alone(control, tmp_path).passed


@pytest.mark.slow
def test_a_search_finds_what_harms_this_control_alone(weir, tmp_path):
    """Growth by ACKs harms where ACKs are lost: beyond NewReno's harm, and that of the sane one.

    The folder has the plug-in, so that the network that was found runs where it is moved.
    """
    plugin = faults.built(tmp_path, 14)
    sane = faults.built(tmp_path, 0, "RENO")
    found = faults.searched(plugin, sane, "utilisation", "newreno", 80, tmp_path)
    assert found.startswith("utilisation beside newreno: ")
    left = next(tmp_path.glob("*-utilisation")).rename(tmp_path / "moved")
    expected = json.loads((left / "attack.json").read_text())
    assert expected["benign"] < 0.05 < 0.1 < expected["left"]
    ran = weir("run", left / "attack.yaml", "--no-report", "--json", "--out", "again")
    assert json.loads(ran.out)["digest"] == expected["digest"]


def test_a_control_has_no_harm_beyond_its_own(weir, tmp_path):
    """Beside itself a control has none in any network, and such a search is no known attack."""
    given = ("attack", faults.BOX, "--cc", "newreno", "--runs", "10", "--no-report", "--json")
    done = weir(*given, "--out", tmp_path / "x")
    result = json.loads(done.out)
    assert (result["benign"], result["found"], result["left"]) == (0, 0, 0)
    refused = weir(*given, "--out", tmp_path / "y", "--register")
    assert "--register is for searches without --beside" in refused.err
    assert "beside" not in {entry for entry in registry.index()}
