# SPDX-License-Identifier: BSD-3-Clause
"""weir bench corescale and threads: medians and ratios within a round, and that they run."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec import convert
from weir import bootstrap
from weir.base import units
from weir.base.errors import UserError
from weir.bench import corescale, sim, simulators, threads
from weir.bench.rounds import Rounds

SUMMARY = {
    "verdict": "ok",
    "ledger": {"balanced": True},
    "links": {"forward": {"queue_mean_bytes": 187.5e6, "drops": 3}},
    "measured": {"wall_s": 4.0, "cpu_s": 2.0, "virtual_s": 20.0, "data_segs": 16_000_000},
}
BUFFER_BYTES = 375e6


def sample(ns, peak=1 << 20, dropped=0):
    return sim.Sample(ns / 500, ns / 1e3, 1.0, 1e6, 0.9, dropped, peak)


def runs(flows, **ns):
    samples = {name: [sample(value) for value in values] for name, values in ns.items()}
    return corescale.Runs(sim.Load(flows), samples)


def test_cost_and_speed_of_a_sample():
    got = sim.weir_sample(convert(SUMMARY, sim.Summary), BUFFER_BYTES, 7)
    assert got == sim.Sample(4.0, 2.0, 20.0, 16_000_000, 0.5, 3, 7)
    assert got.ns == pytest.approx(125)
    assert got.speed == pytest.approx(5)
    assert got.lost == pytest.approx(3 / 16_000_003)
    for broken in ({"verdict": "no"}, {"ledger": {"balanced": False}}, {"measured": None}):
        with pytest.raises(UserError, match="the run failed"):
            sim.weir_sample(convert(SUMMARY | broken, sim.Summary), BUFFER_BYTES)


def test_a_ratio_is_the_median_of_the_turns_not_of_the_medians():
    # The second round was disturbed for both, the third for the floor alone.
    got = runs(10, weir=[100, 400, 90], floor=[50, 200, 90])
    assert got.ratio("weir", "floor") == pytest.approx(2)
    assert got.ratio("ns3", "weir") is None


def test_figures_hold_median_spread_and_highest_peak():
    samples = [sample(30, 5), sample(10, None), sample(20, 9)]
    got = corescale.Runs(sim.Load(5), {"weir": samples}).figures("weir")
    figures = (got.ns_per_packet, got.ns_per_packet_min, got.ns_per_packet_max)
    assert figures == pytest.approx((20, 10, 30))
    assert got.peak_bytes == 9
    assert [one["ns_per_packet"] for one in got.rounds] == pytest.approx([30, 10, 20])


def test_growth_is_from_fewest_to_most_flows_whatever_the_order():
    rows = [runs(50, weir=[150, 300]), runs(10, weir=[100, 100]), runs(20, weir=[900, 900])]
    rows += [corescale.Runs(sim.Load(90, 100), {"weir": [sample(7), sample(7)]})]  # another rate
    rows[0].samples["weir"] = [sample(150, dropped=1_000_000), sample(300, dropped=1_000_000)]
    grown = corescale.growth(rows, "weir")
    assert grown == corescale.Growth([10, 50], [0, 0.5], pytest.approx(2.25))
    assert corescale.growth(rows[:1], "weir") is None
    assert corescale.growth(rows, "ns3") is None


def test_flows_are_read_and_refused_in_a_sentence(weir):
    assert sim.parse_flows("100, 5000") == [100, 5000]
    for text in ("", "0", "10,x", "1e3", "100001", "-5"):
        with pytest.raises(UserError, match="is not a number of flows"):
            sim.parse_flows(text)
    done = weir("bench", "corescale", "--flows", "5,5")
    assert (done.status, done.err) == (2, "weir: --flows: '5,5' names a number twice\n")


def test_a_load_may_name_a_rate():
    assert sim.parse_loads("5, 7@100") == [sim.Load(5, 10), sim.Load(7, 100)]
    names = [load.name for load in sim.parse_loads("5000,50000@100")]
    assert names == ["5,000", "50,000 at 100 Gbit/s"]
    assert sim.Load(7, 100).buffer_bytes == 3.75e9
    for text in ("5@", "5@x", "5@0", "5@401"):
        with pytest.raises(UserError, match="is no rate in Gbit/s"):
            sim.parse_loads(text)
    with pytest.raises(UserError, match="here a load has no rate"):
        sim.parse_flows("5@100")


def test_the_table_has_every_figure_and_says_what_is_missing(shown):
    rows = [runs(100, weir=[80, 80, 81], floor=[40, 41, 40]), runs(5000, weir=[160], floor=[44])]
    rows[0].samples["ns3"] = [sample(40_000)]
    text = shown(corescale.report(rows))
    for figure in ("80.0 ns", "1 %", "40.0 µs", "500", "0.500", "5,000", "weir-sim: 2.00"):
        assert figure in text
    assert len([line for line in text.splitlines() if " ns-3 " in line]) == 1  # not at 5000 flows
    assert "…" not in text  # nothing is cut off
    assert "before its first loss" in text
    assert "got only 50 % of a core" in text


def test_ns3_has_the_papers_ten_senders_and_more_only_for_more_flows():
    assert [simulators.ns3_pairs(flows) for flows in (1, 100, 1000, 4000)] == [10, 10, 10, 20]


def test_a_childs_peak_memory_is_its_own_and_its_last_words_are_the_reason():
    argv = [sys.executable, "-c", "x = bytearray(60_000_000); import time; time.sleep(0.5)"]
    out, _, peak = sim.child(argv)
    assert out == ""
    assert 60e6 < peak < 120e6
    with pytest.raises(UserError, match="failed: no such thing"):
        sim.child([sys.executable, "-c", "raise SystemExit('no such thing')"])


def test_what_ns3_needs_and_cannot_be_installed(monkeypatch, tmp_path):
    monkeypatch.setenv("WEIR_BUILD", str(tmp_path))
    monkeypatch.setattr(simulators, "NS3_NEEDS", (bootstrap.Need("libns3-dev", "command no-such"),))
    monkeypatch.setattr(bootstrap, "apt", lambda packages, build: "the network cannot be reached")
    with pytest.raises(UserError) as caught:
        simulators.build_ns3()
    assert str(caught.value) == (
        "cannot install libns3-dev: the network cannot be reached; install them with: apt-get "
        "install libns3-dev, or leave ns-3 out: --no-ns3"
    )


def test_htsim_is_compiled_against_what_the_user_built(weir, tmp_path):
    (tmp_path / "clone/sim").mkdir(parents=True)
    done = weir("bench", "corescale", "--htsim", "clone")
    assert done.status == 2
    assert done.err.startswith("weir: --htsim: clone has no libhtsim.a, nor has its folder sim; ")


@pytest.mark.skipif("WEIR_HTSIM" not in os.environ, reason="WEIR_HTSIM names no built csg-htsim")
def test_htsim_runs(monkeypatch, tmp_path):
    monkeypatch.setenv("WEIR_BUILD", str(tmp_path))
    simulators.build_htsim(Path(os.environ["WEIR_HTSIM"]))
    got = simulators.htsim(sim.Load(20), sim.Length(0.5, 0.5))
    assert got.data_segs * 1538 * 8 / got.virtual_s == pytest.approx(1e10, rel=1e-3)
    assert 0.5 < got.queue_fill <= 1


def test_an_output_folder_that_is_taken(weir, tmp_path):
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken/file").touch()
    done = weir("bench", "corescale", "--out", "taken")
    assert (done.status, done.err) == (2, "weir: taken: not an empty folder\n")


@pytest.mark.skipif(shutil.which("ninja") is None, reason="builds weir-floor")
def test_floor_and_weir_sim_run(weir_sim, build, tmp_path, monkeypatch, rounds):
    monkeypatch.setenv("WEIR_BUILD", str(build))
    out, loads = tmp_path / "out", [sim.Load(3), sim.Load(20), sim.Load(20, 20)]
    found = corescale.measure(
        loads, rounds(2), out=out, length=sim.Length(0.2, 0.1), floor_packets=50_000
    )
    assert (out / "bench.json").read_text() == found.json() + "\n"
    assert found.ns3 is None
    assert list(found.medians()) == ["3", "20", "20 at 20 Gbit/s"]
    for row in found.rows:
        for one in row.floor.rounds:
            assert one["queue_fill"] == pytest.approx(1, abs=0.01)
            # At 10 Gbit/s, in whole windows of 250 us.
            assert one["data_segs"] >= 50_000
            bps = one["data_segs"] * 1538 * 8 / one["virtual_s"]
            assert bps == pytest.approx(row.gbit * 1e9, rel=2e-3)
        for one in row.weir.rounds:
            assert one["virtual_s"] == pytest.approx(0.1)
            assert 0 < one["data_segs"] * 1538 * 8 / one["virtual_s"] < 1.001 * row.gbit * 1e9
            assert one["cpu_s"] > 0
        assert row.floor.over_weir > 0
    floor = Path(build) / "tools/bench/weir-floor"
    bad = subprocess.run([floor, "0", "1"], capture_output=True, text=True)
    assert (bad.returncode, bad.stdout) == (2, "")
    assert bad.stderr.startswith("usage: weir-floor FLOWS PACKETS [GBIT]")


def test_the_rest_of_the_rounds_is_estimated_from_those_before(rounds):
    clock_s = iter([100, 130, 170])  # 30 s of one round: 60 s of two; 70 s of two: 35 s of one
    screen = rounds().screen
    assert list(Rounds(3, screen, clock_s=lambda: next(clock_s))) == [1, 2, 3]
    said = screen.file.getvalue()
    assert said == f"about {units.time(60e9)} left\nabout {units.time(35e9)} left\n"


def at(speed, used=1):
    return sim.Sample(20 / speed, 20 / speed, 20, 1e6, 0.9, 0, None, used)


def test_efficiency_is_the_median_of_the_rounds_and_not_known_beyond_the_cpus(shown):
    # Two rounds; in the second the machine was half as fast. Two CPUs.
    rows = [
        threads.Runs(1, [at(8), at(4)]),
        threads.Runs(2, [at(12, 2), at(6, 2)], [15, 7.5]),
        threads.Runs(4, [at(12, 2), at(4, 2)]),
    ]
    found = threads.report(sim.Load(50000, 100), rows, 2)
    one, two, four = found.rows
    assert two.efficiency == pytest.approx(0.8)
    assert two.over_one == pytest.approx(1.5)
    assert two.copies_speed == pytest.approx((15 + 7.5) / 2)
    assert (one.used, two.used, four.used) == (1, 2, 2)
    assert [row.efficiency for row in (one, four)] == [None, None]
    assert [row.beyond_cpus for row in (one, two, four)] == [False, False, True]
    lines = shown(found).splitlines()
    marked = next(line for line in lines if line.split()[:1] == ["4*"])
    assert marked.split().count("–") == 2  # copies, efficiency
    assert any(line.startswith("*: more threads than the 2 CPUs") for line in lines)
    assert any(line.startswith("50,000 at 100 Gbit/s flows; ") for line in lines)
    names = [f"50,000 at 100 Gbit/s, {count} threads" for count in (1, 2, 4)]
    assert list(found.medians()) == names


def test_one_thread_is_always_measured():
    assert threads.parse("8, 2") == [1, 2, 8]
    for text in ("", "0", "x", "2,65"):
        with pytest.raises(UserError, match="is not a number in"):
            threads.parse(text)


def test_threads_and_copies_run(weir_sim, build, monkeypatch, rounds):
    monkeypatch.setenv("WEIR_BUILD", str(build))
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    found = threads.measure(sim.Load(3), [1, 2, 4], rounds(), sim.Length(0.1, 0.1))
    assert [row.efficiency is None for row in found.rows] == [True, False, True]
    assert found.rows[1].used == 2
