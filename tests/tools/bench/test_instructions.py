# SPDX-License-Identifier: BSD-3-Clause
"""weir bench instructions: counts per packet, and the gate that compares them with a release's."""

import json
import shutil

import pytest
from weir.base.errors import UserError
from weir.bench import instructions
from weir.bench.instructions import Counts, Kept

CACHEGRIND = """\
==1== I   refs:      1,000,200
==1== I1  misses:        2,783
==1== D   refs:        865,188  (592,246 rd   + 272,942 wr)
==1== D1  misses:        6,100  ( 15,270 rd   +   6,454 wr)
==1== LLd misses:        4,050  (  9,280 rd   +   6,069 wr)
==1== LL misses:         17,661  ( 11,592 rd   +   6,069 wr)
"""
KEPT = Kept("GCC: 12", {"buildtype": "release"}, {"newreno": Counts(1000, 6, 4)})


def test_totals_are_read_from_cachegrind():
    assert instructions.parse(CACHEGRIND) == [1_000_200, 6_100, 4_050]
    with pytest.raises(UserError, match="valgrind counted nothing"):
        instructions.parse("==1== I   refs:      1,000,200\n")


def test_a_packet_costs_what_the_longer_run_has_more(monkeypatch):
    runs = {1.0: ([1000, 50, 20], 10), 1.2: ([4000, 110, 50], 40)}
    monkeypatch.setattr(instructions, "run", lambda control, length: runs[length])
    assert instructions.count("newreno") == Counts(100, 2, 1)


def test_counts_are_compared_with_those_of_the_same_build_only(monkeypatch, rounds):
    monkeypatch.setattr(instructions.foreign, "read_json", lambda file, kind: KEPT)
    monkeypatch.setattr(instructions, "compiler", lambda: "GCC: 12")
    monkeypatch.setattr(instructions, "options", lambda: {"buildtype": "release"})
    for count, ratio, failed in ((1021, 1.021, True), (1019, 1.019, False), (900, 0.9, False)):
        monkeypatch.setattr(instructions, "count", lambda control, n=count: Counts(n, 6, 4))
        found = instructions.measure(["newreno"], False, rounds(1))
        assert found.rows[0].ratio == pytest.approx(ratio)
        assert found.failed is failed
    assert instructions.measure(["cubic"], False, rounds(1)).rows[0].ratio is None
    monkeypatch.setattr(instructions, "compiler", lambda: "clang version 14")
    found = instructions.measure(["newreno"], False, rounds(1))
    assert found.why_not == "its counts are of GCC: 12, not of clang version 14"
    assert not found.failed
    options = {"buildtype": "debug"}
    assert instructions.why_not(KEPT, "GCC: 12", options) == (
        "its counts are of a build with buildtype=release"
    )


@pytest.mark.skipif(shutil.which("valgrind") is None, reason="valgrind counts")
def test_a_packet_costs_no_more_than_in_the_last_release(weir):
    done = weir("bench", "instructions", "--controls", "newreno", "--json")
    assert done.status in (0, 1), done.err
    found = json.loads(done.out)
    assert [row["name"] for row in found["rows"]] == ["newreno"]
    if found["why_not"] is not None:
        pytest.skip(found["why_not"])
    assert {row["name"]: row["ratio"] for row in found["rows"] if row["ratio"] > 1.02} == {}
