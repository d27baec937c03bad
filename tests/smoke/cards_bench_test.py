# SPDX-License-Identifier: BSD-3-Clause
"""weir bench cards, over a virtual cable: its figures mean nothing, but it has them all."""

import json
import sys

from lab import CPUS

OPTIONS = ("--seconds", "0.5", "--repeat", "1", "--lcores", CPUS[0])


def test_a_cable_is_measured(lab):
    for words in ("add one type veth peer two", "set one up", "set two up"):
        lab.sh("sw", "ip", "link", *words.split())
    devices = [f"net_af_packet{number},iface={name}" for number, name in enumerate(("one", "two"))]
    argv = [sys.executable, "-m", "weir", "bench", "cards", *devices, *OPTIONS]
    child = lab.host("sw", *argv, "--json")
    assert child.wait(120) == 0, child.err
    rows = json.loads("\n".join(child.out))["rows"]
    assert len(rows) == 3
    for row in rows:
        assert row["goodput_bps"] > 0
        assert row["frames_per_s"] > 0
        assert row["missed"] is not None
    # Only what is paced has an error of pacing.
    assert [row["pacing_error_p99_ns"] is None for row in rows] == [True, True, False]


def test_what_cannot_run_is_one_sentence(lab):
    argv = [sys.executable, "-m", "weir", "bench", "cards", "0000:1f:1f.6", "0000:1f:1f.7"]
    child = lab.host("sw", *argv, *OPTIONS)
    assert child.wait(120) == 1
    assert "DPDK has no port '0000:1f:1f.6'" in child.err[-1]
