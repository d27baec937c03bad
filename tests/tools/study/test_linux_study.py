# SPDX-License-Identifier: BSD-3-Clause
"""The comparison with Linux: its cells, its bounds, its page, and what it counts."""

import dataclasses
import json
import re
import subprocess

import numpy as np
import polars as pl
import pytest
from rich.console import Console
from weir.analysis.ring import open_ring
from weir.guests import build as guest_build
from weir.guests import kernels
from weir.plugin import kernel
from weir.studies.linux import beside
from weir.studies.linux import cases as linux
from weir.studies.linux import page as linux_page
from weir.studies.linux.beside import Reason
from weir.studies.linux.cases import About, Comparison, Link, Matrix, Pair, SideNumbers

LINK = Link("10M-20ms-1BDP", 10, 20, "1BDP", (1, 3), (1, 3))
ALONE = Comparison(LINK, "fifo", ("reno",), True)
MIX = Comparison(LINK, "codel", ("cubic", "bbr"), True, 2)


def run(goodput=10e6, rtt=30.0, losses=100, quota=1.0, start=7, marks=100):
    """What was measured in a run."""
    curve = pl.DataFrame({"time_s": [0.1, 2.9], "cwnd_segs": [10.0, 30.0]})
    return SideNumbers(goodput, rtt, start, losses, marks, quota, curve, True, About(kernel="6.12"))


def pair(case=ALONE, **ours):
    """A case whose two sides differ in what is given."""
    return Pair(case, {"linux": [run()] * case.seeds, "weir": [run(**ours)] * case.seeds})


def test_the_cells_are_those_that_were_asked_for():
    for quick in (True, False):
        made = linux.cases(quick)
        alone = [case for case in made if not case.mixed]
        links = {case.link.name: case.link for case in alone}
        assert len(links) >= 9
        assert (
            min(k.rate_mbit for k in links.values()),
            max(k.rate_mbit for k in links.values()),
        ) == (5, 500)
        assert (min(k.rtt_ms for k in links.values()), max(k.rtt_ms for k in links.values())) == (
            5,
            200,
        )
        assert {"0.3BDP", "4BDP"} <= {k.limit for k in links.values()}
        assert sum("loss" in k.behind for k in links.values()) == 1
        assert sum("late" in k.behind for k in links.values()) == 1
        marked = {case.controls[0] for case in alone if case.marks}
        assert marked == set(linux.CONTROLS) - {"bbr"}  # which answers no mark
        assert len(alone) == len(links) * (2 * len(linux.CONTROLS) + 6) == 240
        mixes = [case for case in made if case.mixed]
        assert {case.controls for case in mixes} == {
            ("cubic", "reno"), ("cubic", "bbr"), ("bbr", "reno"), ("vegas", "cubic"),
            ("copa", "cubic"),
        }  # fmt: skip
        assert {case.seeds for case in mixes} == {10}


@pytest.mark.parametrize("quick", [True, False], ids=["quick", "full"])
def test_every_cell_is_a_config_that_weir_sim_takes(weir_sim, tmp_path, quick):
    matrix = Matrix(quick, tmp_path, linux.cases(quick))
    matrix.write_configs()
    seen = set()
    for case, side, seed in matrix.runs():
        config = matrix.cell(case, side, seed).config
        if side == "source":  # needs the compiled files: below
            continue
        if config in seen or case.link.rate_mbit not in (10, 20):  # the others differ in numbers
            continue
        seen.add(config)
        argv = [weir_sim, config, "--print-config"]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        assert f"rate: {case.link.rate_mbit}Mbit" in done.stdout
        kernels = done.stdout.count("linux:")
        copa = "copa" in case.controls
        assert kernels == (0 if side != "linux" else len(case.controls) - copa)
    assert len(seen) > 50


def test_ours_have_the_ticks_of_the_guests(weir_sim, tmp_path):
    """Debian's 250 on both sides, and no card that collects segments on ours: theirs do not."""
    matrix = Matrix(True, tmp_path, linux.cases(True)[:1])
    matrix.write_configs()
    config = matrix.cell(matrix.cases[0], "weir", 1).config
    argv = [weir_sim, config, "--print-config"]
    shown = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
    ticks = re.search(r"CONFIG_HZ_(\d+)=y", guest_build.plain_options())
    assert ticks is not None
    assert re.search(rf"\bhz: {ticks[1]}\b", shown)
    assert re.search(r"\bgro: 0s?\b", shown)


def test_a_cell_is_compared_with_itself_only():
    """Same link, queue, lengths and jitter on both sides."""
    for case in linux.cases(True):
        linux_side, ours = (case.config(side).partition("flows:")[0] for side in linux.SIDES)
        assert linux_side.replace(", linux\n", ", weir\n") == ours


@pytest.mark.parametrize(
    ("ours", "outside"),
    [
        ({}, []),
        ({"goodput": 9.81e6, "rtt": 30.8, "losses": 114}, []),
        ({"goodput": 9.79e6}, ["goodput_bps"]),
        ({"goodput": 10.21e6}, ["goodput_bps"]),
        ({"rtt": 31.0}, ["rtt_ms"]),
        ({"rtt": 29.0}, ["rtt_ms"]),
        ({"losses": 116}, ["losses"]),
        ({"losses": 84}, ["losses"]),
        ({"marks": 115}, []),
        ({"marks": 116}, ["marks"]),
        ({"marks": 84}, ["marks"]),
        ({"start": 12}, []),  # a few more
        ({"start": 13}, ["losses_start"]),
        ({"start": 2}, []),
        ({"start": 1}, ["losses_start"]),
    ],
)
def test_a_row_is_judged_by_its_bounds(ours, outside):
    assert [name for name, _ in beside.outside(pair(**ours))] == outside


def test_a_few_losses_are_no_rate():
    few = Pair(ALONE, {"linux": [run(losses=2)], "weir": [run(losses=7)]})
    assert beside.outside(few) == []
    more = Pair(ALONE, {"linux": [run(losses=2)], "weir": [run(losses=8)]})
    assert beside.outside(more) == [("losses", "8 for 2")]
    none = Pair(ALONE, {"linux": [run(losses=0)], "weir": [run(losses=0)]})
    assert beside.outside(none) == []


def test_losses_at_the_start_are_judged_by_a_factor_in_either_direction():
    def started(theirs, ours):
        return Pair(ALONE, {"linux": [run(start=theirs)], "weir": [run(start=ours)]})

    assert beside.outside(started(200, 300)) == []
    assert beside.outside(started(300, 200)) == []
    assert beside.outside(started(200, 301)) == [("losses_start", "301 for 200")]
    assert beside.outside(started(301, 200)) == [("losses_start", "200 for 301")]
    assert beside.verdict(started(0, 6)) == "losses at start: NOT EXPLAINED"
    assert beside.outside(started(0, 5)) == []


def test_a_mix_is_judged_by_the_mean_over_its_seeds():
    def mixed(*quotas):
        ours = [run(quota=quota, rtt=99.0) for quota in quotas]
        return Pair(MIX, {"linux": [run(quota=0.6), run(quota=0.4)], "weir": ours})

    assert beside.outside(mixed(0.70, 0.39)) == []
    assert beside.outside(mixed(0.72, 0.39)) == [("quota", "+0.055")]


def test_a_reason_holds_where_it_was_found_and_a_row_without_one_says_so(monkeypatch):
    off = pair(rtt=40.0)
    assert beside.by_source([off]) == ""
    assert beside.verdict(off) == "RTT: NOT EXPLAINED"
    assert "0 of 1 rows are within all bounds, 0 are" in beside.headline([off])
    for changed in ({"controls": (("bbr",),)}, {"queues": ("codel",)}, {"links": ("other",)},
                    {"quantities": ("losses",)}):  # fmt: skip
        reason = Reason("because", (("reno",),), ("rtt_ms",))
        monkeypatch.setattr(beside, "REASONS", (dataclasses.replace(reason, **changed),))
        assert beside.verdict(off) == "RTT: NOT EXPLAINED"
    monkeypatch.setattr(beside, "REASONS", (reason,))
    assert beside.verdict(off) == "RTT: explained"
    assert linux_page.explanations([off]) == ["because: 10M-20ms-1BDP fifo Reno (+33.3 %)."]
    assert beside.verdict(pair()) == "within"


def test_a_row_says_what_the_kernel_s_own_control_does_in_our_tcp():
    off = pair(dataclasses.replace(ALONE, controls=("vegas",)), goodput=9e6, rtt=40.0)
    off.runs["source"] = [run(goodput=9.95e6, rtt=33.0)]
    (row,) = beside.alone_rows([off])
    shown = dict(zip(beside.COLUMNS, row, strict=True))
    assert (row[5], row[6], row[9], row[10]) == ("-10.0 %", "-0.5 %", "+33.3 %", "+10.0 %")
    assert shown["bounds"] == "goodput, RTT: NOT EXPLAINED"
    (said,) = linux_page.explanations([off])
    assert "(-10.0 %; with Linux's own control within)" in said
    assert "(+33.3 %; with Linux's own control +10.0 %)" in said
    assert "0 of 1 rows are within all bounds, and 1 of 1 flows alone" in beside.by_source([off])


def test_reasons_name_rows_that_there_are():
    for reason in beside.REASONS:
        rows = [case for case in linux.cases(False) if case.controls in reason.controls]
        assert rows
        assert set(reason.links) <= {case.link.name for case in rows}
        assert reason.sentence[0].isupper()
        assert not reason.sentence.endswith(".")


@pytest.mark.slow
def test_a_kernel_and_ours_on_one_page(tmp_path, capsys):
    """The table is what the telemetry says, counted again with numpy; nothing is run twice."""
    if kernels.current() is None:
        guest_build.build(lambda *_: None)
    matrix = Matrix(True, tmp_path, [ALONE, dataclasses.replace(MIX, seeds=1)])
    for name in MIX.controls:
        kernel.compiled(name, matrix.controls)
    screen = Console(quiet=True)
    assert linux_page.run(matrix, screen, workers=1, as_json=True) == 0
    said = json.loads(capsys.readouterr().out)
    table = pl.read_parquet(tmp_path / "linux.parquet")
    assert sorted(table["side"]) == ["linux", "linux", "source", "weir", "weir"]
    for row in table.rows(named=True):
        folder = tmp_path / "cells" / f"{row['case']}-{row['side']}"
        records = open_ring(folder / "interval.ring").records
        late = records["ts_ns"] > 1e9
        assert row["losses"] == records["drops"][late].sum()
        assert row["losses_start"] == records["drops"][~late].sum()
        assert row["goodput_bps"] == pytest.approx(
            records["delivered_bytes"][late].sum() * 4, rel=1e-9
        )
        links = open_ring(folder / "links.ring").records
        links = links[links["ts_ns"] > 1e9]
        queue_ms = np.average(links["sojourn_mean_ns"], weights=links["out_pkts"]) / 1e6
        assert row["rtt_ms"] == pytest.approx(20 + queue_ms, rel=1e-3)
        assert row["balanced"]
    assert table["kernel"].to_list()[0].startswith("6.")
    assert len(said["alone"]["rows"]) == len(said["mixes"]["rows"]) == 1
    text = (tmp_path / "linux.html").read_text()
    assert text.count("<figure ") == 2  # windows behind a FIFO; the mix
    assert not re.search(r'(?:src|href)="(?!#|data:)', text)
    before = [path.stat().st_mtime_ns for path in sorted(tmp_path.glob("cells/*/manifest.json"))]
    assert linux_page.run(matrix, screen, workers=1) == 0
    after = [path.stat().st_mtime_ns for path in sorted(tmp_path.glob("cells/*/manifest.json"))]
    assert after == before
    assert len(before) == 5


def test_without_a_kernel_it_says_what_to_type(weir, tmp_path):
    done = weir("reproduce", "linux", "--out", "out", env={"WEIR_GUESTS": str(tmp_path / "none")})
    assert "run: tools/weir guests build" in done.err
    assert not (tmp_path / "out").exists()
