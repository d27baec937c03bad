# SPDX-License-Identifier: BSD-3-Clause
"""weir bench pcap: ratios within a round, beginnings of captures, and that it runs to its end."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from weir.base.errors import UserError
from weir.bench import captures
from weir.bench.captures import OWN, Cost, Reader, Readings

PEER = Reader(
    "tcptrace -l -r",
    lambda file, out: [sys.executable, "-c", "import sys; open(sys.argv[1]).close()", str(file)],
    *(500, 3),
)


def readings(reader, flows, packets, cpu_s, start_s, memory_bytes=1e6):
    costs, starts = ([Cost(value, memory_bytes) for value in values] for values in (cpu_s, start_s))
    return Readings(reader, flows, Path("f"), packets, costs, starts)


def test_ratios_are_those_of_a_round_and_a_programs_start_is_taken_off():
    own, *_, scapy = captures.READERS
    measured = [
        readings(own, 10, 1001, (2, 4, 2), (1, 2, 1), 3e6),
        readings(own, 1000, 1001, (3, 8, 3), (1, 2, 1)),
        readings(scapy, 1000, 101, (201, 801, 101), (1, 1, 1)),
    ]
    assert measured[1].ns() == pytest.approx([2e6, 6e6, 2e6])
    found = {
        one.asked: (one.found, one.min, one.max, one.met) for one in captures.targets(measured)
    }
    assert found == {
        "times scapy's speed": pytest.approx((1000, 500, 8e9 / 6e6, True)),
        "memory in MB": (3, 3, 3, True),
        "cost of most flows to fewest": pytest.approx((2, 2, 3, False)),
        "packets per second": pytest.approx((500, 1e9 / 6e6, 500, False)),
    }
    assert "cost of most flows to fewest" not in [t.asked for t in captures.targets(measured[1:])]


def test_peers_read_the_capture_nearest_to_a_thousand_flows():
    assert captures.peers_flows([10, 1000, 100_000]) == 1000
    assert captures.peers_flows([100_000, 10]) == 10


def analysis(file, folder):
    argv = [*captures.analyze(file, folder), "--json"]
    return json.loads(subprocess.run(argv, capture_output=True, check=True).stdout)


@pytest.mark.slow
def test_a_capture_of_many_flows_has_what_was_asked_and_no_losses_and_can_be_cut(tmp_path):
    file = captures.capture(tmp_path, 2000, 10_000)
    found = analysis(file, tmp_path)
    packets, group = found["capture"]["packets"], found["groups"][0]
    assert 10_000 <= packets < 600_000  # the start of 2000 flows is most of it
    assert (group["flows"], group["retransmits"], group["timeouts"]) == (2000, 0, 0)
    cut, count = captures.first(file, tmp_path / "first.pcapng", 700)
    found = analysis(cut, tmp_path)
    assert (found["verdict"], found["capture"]["packets"], count) == ("ok", 700, 700)
    assert captures.counted(cut) == 700
    assert captures.first(file, tmp_path / "all.pcapng", 10**9)[1] == packets


def test_what_is_no_pcapng_is_refused(tmp_path):
    (tmp_path / "a.pcap").write_bytes(bytes.fromhex("d4c3b2a1020004000000000000000000"))
    with pytest.raises(UserError, match="not a pcapng file"):
        captures.first(tmp_path / "a.pcap", tmp_path / "first", 1)


@pytest.mark.slow
def test_all_rounds_end_and_each_target_is_shown_beside_its_figure(rounds, shown):
    twice = rounds(2)
    found = captures.measure([4, 40], 10_000, twice, [captures.READERS[0], PEER])
    assert [(row.flows, row.program) for row in found.rows] == [
        (4, OWN),
        (40, OWN),
        (40, PEER.name),
    ]
    assert found.rows[2].packets == 500
    assert all(len(row.rounds) == 2 for row in found.rows)
    asked = ["times tcptrace's speed", "memory in MB", "cost of most flows to fewest"]
    assert [target.asked for target in found.targets] == [*asked, "packets per second"]
    text = shown(found)
    assert ">= 3" in text
    assert "<= 500" in text
    assert "round 2 of 2, 40 flows: tcptrace -l -r" in twice.screen.file.getvalue()
