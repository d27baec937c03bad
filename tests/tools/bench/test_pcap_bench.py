# SPDX-License-Identifier: BSD-3-Clause
"""weir bench pcap: ratios within a round, beginnings of captures, and that it runs to its end."""

import io
import json
import subprocess
import sys

import pytest
from rich.console import Console
from weir.base import programs
from weir.base.errors import UserError
from weir.bench import captures

OWN = captures.OWN
PEER = captures.Reader(
    "tcptrace -l -r",  # the name decides which target it is held against
    lambda file, out: [sys.executable, "-c", "import sys; open(sys.argv[1]).close()", str(file)],
    500,
)


def costs(*cpu_s, memory_bytes=1e6):
    return [{"cpu_s": value, "memory_bytes": memory_bytes} for value in cpu_s]


def test_ratios_are_those_of_a_round_and_a_programs_start_is_taken_off():
    found = captures.Measured(
        {(10, OWN): 1001, (1000, OWN): 1001, (1000, "scapy"): 101},
        {
            (10, OWN): costs(2, 4, 2, memory_bytes=3e6),
            (1000, OWN): costs(3, 8, 3),
            (1000, "scapy"): costs(201, 801, 101),
        },
        {OWN: costs(1, 2, 1), "scapy": costs(1, 1, 1)},
    )
    assert found.ns(1000, OWN) == pytest.approx([2e6, 6e6, 2e6])
    assert found.times("scapy") == pytest.approx([1000, 8e9 / 6e6, 500])
    assert found.times("tcptrace -l -r") == []
    assert found.growth() == pytest.approx([2, 3, 2])
    assert found.per_second() == pytest.approx([500, 1e9 / 6e6, 500])
    rows = [target.row(found) for target in captures.TARGETS]
    met = {row["asked"]: row["met"] for row in rows if row is not None}
    assert met == {
        "times scapy's speed": True,
        "memory in MB": True,
        "cost of most flows to fewest": False,
        "packets per second": False,
    }


def test_peers_read_the_capture_nearest_to_a_thousand_flows():
    assert captures.peers_flows([10, 1000, 100_000]) == 1000
    assert captures.peers_flows([100_000, 10]) == 10


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """Some packets of ten flows."""
    made = tmp_path_factory.mktemp("tiny")
    return captures.capture(made, 10, 10_000)


@pytest.mark.slow
def test_the_first_packets_are_a_capture(tiny, tmp_path):
    file, packets = captures.first(tiny, tmp_path / "first.pcapng", 700)
    argv = [str(programs.find_program("pcap")), "analyze", str(file), "--json"]
    done = subprocess.run([*argv, "--out", str(tmp_path / "run")], capture_output=True, check=True)
    found = json.loads(done.stdout)
    assert packets == found["capture"]["packets"] == 700
    assert found["verdict"] == "ok"
    assert captures.counted(file) == 700
    assert captures.first(tiny, tmp_path / "all.pcapng", 10**9)[1] == captures.counted(tiny)


def test_what_is_no_pcapng_is_refused(tmp_path):
    (tmp_path / "a.pcap").write_bytes(bytes.fromhex("d4c3b2a1020004000000000000000000"))
    with pytest.raises(UserError, match="not a pcapng file"):
        captures.first(tmp_path / "a.pcap", tmp_path / "first", 1)


@pytest.mark.slow
def test_nothing_is_lost_in_a_capture_of_many_flows(tmp_path):
    file = captures.capture(tmp_path, 2000, 10_000)
    argv = [str(programs.find_program("pcap")), "analyze", str(file), "--json"]
    done = subprocess.run([*argv, "--out", str(tmp_path / "run")], capture_output=True, check=True)
    group = json.loads(done.stdout)["groups"][0]
    assert (group["flows"], group["retransmits"], group["timeouts"]) == (2000, 0, 0)


@pytest.mark.slow
def test_all_rounds_end_and_each_target_is_shown_beside_its_figure():
    text = io.StringIO()
    console = Console(file=text, width=200)
    readers = [captures.READERS[0], PEER]
    found = captures.measure_all([4, 40], 10_000, 2, console, readers)
    assert [(row["flows"], row["program"]) for row in found["rows"]] == [
        (4, OWN),
        (40, OWN),
        (40, PEER.name),
    ]
    assert found["rows"][2]["packets"] == 500
    assert all(len(row["rounds"]) == 2 for row in found["rows"])
    asked = [target["asked"] for target in found["targets"]]
    assert asked == [
        "times tcptrace's speed",
        "memory in MB",
        "cost of most flows to fewest",
        "packets per second",
    ]
    captures.show(found, console)
    shown = text.getvalue()
    assert ">= 3" in shown
    assert "<= 500" in shown
    assert "round 2 of 2, 40 flows: tcptrace -l -r" in shown
