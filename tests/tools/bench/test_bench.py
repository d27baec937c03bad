# SPDX-License-Identifier: BSD-3-Clause
"""weir bench: medians and ratios within a round, what is read, and that the programs run."""

import io
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console
from weir import bootstrap
from weir.base import units
from weir.base.errors import UserError
from weir.bench import corescale, sim, simulators
from weir.bench.rounds import rounds

SUMMARY = {
    "verdict": "ok",
    "ledger": {"balanced": True},
    "links": {"forward": {"queue_mean_bytes": 187.5e6, "drops": 3}},
    "measured": {"wall_s": 4.0, "cpu_s": 2.0, "virtual_s": 20.0, "data_segs": 16_000_000},
}
TINY = corescale.Lengths(sim.Length(warmup_s=0.2, measured_s=0.1), floor_packets=50_000)
BUFFER_BYTES = 375e6


def sample(ns, peak=1 << 20, dropped=0):
    return sim.Sample(
        wall_s=ns / 500,
        cpu_s=ns / 1e3,
        virtual_s=1.0,
        data_segs=1e6,
        queue_fill=0.9,
        dropped=dropped,
        peak_bytes=peak,
    )


def row(flows, **ns):
    load = sim.Load(flows)
    return corescale.Row(load, {name: [sample(v) for v in values] for name, values in ns.items()})


def test_cost_and_speed_of_a_sample():
    got = sim.parse_weir(SUMMARY, BUFFER_BYTES, 7)
    assert got == sim.Sample(4.0, 2.0, 20.0, 16_000_000, 0.5, 3, 7)
    assert got.ns == pytest.approx(125)
    assert got.speed == pytest.approx(5)
    assert got.lost == pytest.approx(3 / 16_000_003)


def test_a_ratio_is_the_median_of_the_turns_not_of_the_medians():
    # The second round was disturbed for both, the third for the floor alone.
    got = row(10, weir=[100, 400, 90], floor=[50, 200, 90])
    assert got.ratio("weir", "floor") == pytest.approx(2)
    assert got.ns("weir") / got.ns("floor") == pytest.approx(100 / 90)
    assert got.ratio("ns3", "weir") is None


def test_figures_hold_median_spread_and_highest_peak():
    got = corescale.Row(
        sim.Load(5), {"weir": [sample(30, 5), sample(10, None), sample(20, 9)]}
    ).figures("weir")
    names = ("ns_per_packet", "ns_per_packet_min", "ns_per_packet_max")
    assert [got[name] for name in names] == pytest.approx([20, 10, 30])
    assert got["peak_bytes"] == 9
    assert [sample["ns_per_packet"] for sample in got["rounds"]] == pytest.approx([30, 10, 20])


def test_growth_is_from_fewest_to_most_flows_whatever_the_order():
    rows = [row(50, weir=[150, 300]), row(10, weir=[100, 100]), row(20, weir=[900, 900])]
    rows += [corescale.Row(sim.Load(90, 100), {"weir": [sample(7), sample(7)]})]  # another rate
    rows[0].samples["weir"] = [sample(150, dropped=1_000_000), sample(300, dropped=1_000_000)]
    grown = corescale.growth(rows, "weir")
    assert grown == {"flows": [10, 50], "lost": [0, 0.5], "ratio": pytest.approx(2.25)}
    assert corescale.growth(rows[:1], "weir") is None
    assert corescale.growth(rows, "ns3") is None


@pytest.mark.parametrize(
    "broken",
    [{"verdict": "interrupted"}, {"ledger": {"balanced": False}}, {"measured": None}],
)
def test_a_run_that_went_wrong_is_no_sample(broken):
    with pytest.raises(UserError, match="the run failed"):
        sim.parse_weir({**SUMMARY, **broken}, BUFFER_BYTES)


def test_flows_are_read_and_refused_in_a_sentence(weir):
    assert sim.parse_flows("100, 5000") == [100, 5000]
    for text in ("", "0", "10,x", "1e3", "100001", "-5"):
        with pytest.raises(UserError, match="is not a number of flows"):
            sim.parse_flows(text)
    done = weir("bench", "corescale", "--flows", "5,5")
    assert done.status == 2
    assert done.err == "weir: --flows: '5,5' names a number twice\n"


def test_a_load_may_name_a_rate():
    assert sim.parse_loads("5, 7@100") == [sim.Load(5, 10), sim.Load(7, 100)]
    assert [load.name for load in sim.parse_loads("5000,50000@100")] == [
        "5,000",
        "50,000 at 100 Gbit/s",
    ]
    assert sim.Load(7, 100).buffer_bytes == 3.75e9
    for text in ("5@", "5@x", "5@0", "5@401"):
        with pytest.raises(UserError, match="is no rate in Gbit/s"):
            sim.parse_loads(text)
    with pytest.raises(UserError, match="here a load has no rate"):
        sim.parse_flows("5@100")


def test_the_table_has_every_figure_and_says_what_is_missing():
    rows = [row(100, weir=[80, 80, 81], floor=[40, 41, 40]), row(5000, weir=[160], floor=[44])]
    rows[0].samples["ns3"] = [sample(40_000)]
    out = io.StringIO()
    corescale.show(corescale.report(rows), Console(file=out, width=120))
    text = out.getvalue()
    for figure in ("80.0 ns", "1 %", "40.0 µs", "500", "0.500", "5,000", "weir-sim: 2.00"):
        assert figure in text
    assert len([line for line in text.splitlines() if " ns-3 " in line]) == 1  # not at 5000 flows
    assert "…" not in text  # nothing is cut off
    assert "before its first loss" in text
    assert "got only 50 % of a core" in text


def test_ns3_has_the_papers_ten_senders_and_more_only_for_more_flows():
    assert [simulators.ns3_pairs(flows) for flows in (1, 100, 1000, 4000)] == [10, 10, 10, 20]


def test_peak_memory_of_a_child_is_its_own():
    argv = [sys.executable, "-c", "x = bytearray(60_000_000); import time; time.sleep(0.5)"]
    out, peak = sim.child(argv)
    assert out == ""
    assert 60e6 < peak < 120e6


def test_a_child_that_fails_says_why():
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
def test_floor_and_weir_sim_run(weir_sim, build, tmp_path, monkeypatch):
    monkeypatch.setenv("WEIR_BUILD", str(build))
    out = tmp_path / "out"
    loads = [sim.Load(3), sim.Load(20), sim.Load(20, 20)]
    found = corescale.measure(loads, 2, Console(file=io.StringIO()), out=out, lengths=TINY)
    assert json.loads((out / "bench.json").read_text()) == found
    assert found["ns3"] is None
    assert list(corescale.medians(found)) == ["3", "20", "20 at 20 Gbit/s"]
    for one in found["rows"]:
        rate_bps = one["gbit"] * 1e9
        for sample in one["floor"]["rounds"]:
            assert sample["queue_fill"] == pytest.approx(1, abs=0.01)
            # At 10 Gbit/s, in whole windows of 250 us.
            assert sample["data_segs"] >= TINY.floor_packets
            assert sample["data_segs"] * 1538 * 8 / sample["virtual_s"] == pytest.approx(
                rate_bps, rel=2e-3
            )
        for sample in one["weir"]["rounds"]:
            assert sample["virtual_s"] == pytest.approx(0.1)
            assert 0 < sample["data_segs"] * 1538 * 8 / sample["virtual_s"] < 1.001 * rate_bps
            assert sample["cpu_s"] > 0
        assert one["floor"]["over_weir"] > 0
    floor = Path(build) / "tools/bench/weir-floor"
    bad = subprocess.run([floor, "0", "1"], capture_output=True, text=True)
    assert (bad.returncode, bad.stdout) == (2, "")
    assert bad.stderr.startswith("usage: weir-floor FLOWS PACKETS [GBIT]")


def test_the_rest_of_the_rounds_is_estimated_from_those_before():
    out = io.StringIO()
    clock_s = iter([100, 130, 170])  # 30 s of one round: 60 s of two; 70 s of two: 35 s of one
    assert list(rounds(3, Console(file=out), lambda: next(clock_s))) == [1, 2, 3]
    assert out.getvalue() == f"about {units.time(60e9)} left\nabout {units.time(35e9)} left\n"
