# SPDX-License-Identifier: BSD-3-Clause
"""weir compare and weir plot: runs side by side, and single figures for papers."""

import json
import re
import struct
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from synthetic import make_run
from weir.analysis import folder, run_summary
from weir.base import units
from weir.base.errors import UserError
from weir.report import comparison, data, pairing, paper, sections, theme
from weir.report.figure import ends


def runs(tmp_path, *rates, **options):
    return [
        make_run(tmp_path / f"r{n}", rate_bps=rate, seed=n, seconds=5, **options)
        for n, rate in enumerate(rates)
    ]


def change(run, edit):
    path = run / "summary.json"
    summary = json.loads(path.read_text())
    edit(summary)
    path.write_text(json.dumps(summary))


def test_a_share_differs_by_points_and_much_is_a_number():
    assert comparison.difference(0.75, 0.5, units.percent) == "+25.00 points (+50 %)"
    assert comparison.difference(1e6, 10.0, units.number) == "+999,990 (+9,999,900 %)"


@pytest.mark.parametrize(
    ("value", "base", "said"),
    [
        (12e6, 10e6, "+2.00 Mbit/s (+20 %)"),
        (10e6, 12e6, "−2.00 Mbit/s (−16.7 %)"),
        (5.0, 5.0, "0"),
        (1e8 + 1.49e-08, 1e8, "0"),  # sums in another order
        (5.0, 0.0, "+5.00 bit/s"),
        (None, 1.0, "–"),
        (1.0, None, "–"),
    ],
)
def test_a_difference_has_its_sign_and_size(value, base, said):
    assert comparison.difference(value, base, units.rate) == said


def test_numbers_stand_side_by_side(tmp_path):
    first, second = runs(tmp_path, 100e6, 200e6)
    change(first, lambda s: s["links"]["forward"].update(drops=10))
    change(second, lambda s: s["links"]["forward"].update(drops=4))
    compared = comparison.read([folder.load(first), folder.load(second)])
    table = comparison.differences(compared)
    assert table.columns == ["", "A: r0", "B: r1", "B − A"]
    rows = {row[0]: row[1:] for row in table.rows}
    measured_s = compared[0].data.scene.duration_s - compared[0].data.scene.warmup_s
    per_s = [units.number(n / measured_s) for n in (10, 4)]
    assert rows["drops at the busiest link per second"][:2] == per_s
    assert rows["drops at the busiest link per second"][2].endswith("(−60 %)")
    assert rows["flows"] == ["4", "4", "0"]
    config = comparison.configs(compared)
    assert ["seed", "0", "1"] in config.rows
    assert all(len(set(row[1:])) > 1 for row in config.rows)


def test_a_group_that_one_run_lacks_and_a_run_that_was_killed(tmp_path):
    one = make_run(tmp_path / "one", groups=(("a", "copa", 2), ("b", "bbr", 2)), seconds=5)
    other = make_run(tmp_path / "other", groups=(("a", "copa", 2),), seconds=5)
    killed = make_run(tmp_path / "killed", seconds=5, with_summary=False)
    compared = comparison.read([folder.load(path) for path in (one, other, killed)])
    rows = {row[0]: row[1:] for row in comparison.differences(compared).rows}
    assert rows["goodput, b"][1:3] == ["–", "–"]
    assert comparison.endings(compared).rows[2][1] == "did not end by itself"
    assert len(list(comparison.draw(compared))) >= 7


@pytest.mark.slow
@pytest.mark.parametrize("count", [2, 6])
def test_the_page_of_several_runs(weir, tmp_path, count):
    paths = runs(tmp_path, *[1e8 + 1e7 * n for n in range(count)])
    done = weir("compare", *paths, "--out", tmp_path / "pages" / "c.html").worked()
    assert done.out.splitlines()[-1] == str(tmp_path / "pages" / "c.html")
    text = (tmp_path / "pages" / "c.html").read_text()
    assert text.count("<figure") >= 8
    for n, path in enumerate(paths):
        assert f'href="../{path.name}"' in text
        assert f"{chr(65 + n)}: {path.name}" in done.out
    assert len(text) < 10_000_000
    said = json.loads(weir("compare", *paths, "--json").out)
    goodput = next(number for number in said["numbers"] if number["name"] == "goodput")
    assert goodput["differences"][0] == 0
    assert all(d > 0 for d in goodput["differences"][1:])


def test_one_run_is_not_compared(weir, tmp_path):
    assert weir("compare", *runs(tmp_path, 1e8)).refused() == "weir: give 2 to 8 run folders, not 1"


@pytest.mark.slow
def test_a_figure_for_a_paper_has_its_size_and_its_fonts(weir, tmp_path):
    (run,) = runs(tmp_path, 1e8)
    for name, width_in in (("column", 3.33), ("page", 7.0)):
        weir("plot", run, "--figure", "queue", "--out", "q.pdf", "--width", name).worked()
        pdf = (tmp_path / "q.pdf").read_bytes()
        box = re.search(rb"/MediaBox \[ ?0 0 ([\d.]+) ([\d.]+)", pdf)
        assert float(box[1]) == pytest.approx(width_in * 72, abs=0.5)
        assert b"/FontFile2" in pdf  # TrueType, as Type 42
        assert b"/Type3" not in pdf
    assert weir("plot", run, "--figure", "rtt", "--out", "q.png").status == 0
    png = (tmp_path / "q.png").read_bytes()
    assert struct.unpack(">II", png[16:24])[0] == pytest.approx(3.33 * 600, abs=2)
    assert weir("plot", run, "--figure", "rtt", "--out", "q.svg").status == 0
    svg = (tmp_path / "q.svg").read_text()
    assert svg.startswith("<svg")
    assert "src:url(data:font/woff;base64," in svg


@pytest.mark.slow
def test_a_figure_of_records_that_cannot_be_read_says_why(weir, tmp_path):
    """There was "no figure 'rtt'; there is none", and no reason."""
    run = make_run(tmp_path / "run")
    for ring in run.glob("*.ring"):
        ring.write_bytes(b"cut")
    done = weir("plot", run, "--figure", "rtt", "--out", "rtt.pdf")
    assert done.status == 2
    *notes, last = done.err.splitlines()
    assert last == "weir: there is no figure 'rtt'; there is none"
    assert any("interval.ring" in note for note in notes)
    assert weir("plot", run).err.splitlines() == notes


@pytest.mark.slow
def test_every_figure_of_the_report_can_be_named(weir, tmp_path):
    (run,) = runs(tmp_path, 1e8, level=3)
    names = [drawn.name for drawn in sections.draw(data.read(folder.load(run)))]
    listed = weir("plot", run).out.splitlines()
    assert [line.split()[0] for line in listed] == names
    said = weir("plot", run, "--figure", "nothing").refused()
    assert said == f"weir: there is no figure 'nothing'; there is {', '.join(names)}"
    assert weir("plot", run, "--figure", "rtt", "--out", "x.gif").status == 2


@pytest.mark.slow
def test_a_figure_of_several_runs(weir, tmp_path):
    paths = runs(tmp_path, 1e8, 2e8)
    assert weir("plot", *paths, "--figure", "tradeoff").out == "tradeoff.pdf\n"
    assert (tmp_path / "tradeoff.pdf").stat().st_size > 5000


def groups_of(*named):
    return {"groups": [{"name": n, "cc": c, "goodput_bps": b} for n, c, b in named]}


@pytest.mark.parametrize(
    ("reports", "beside"),
    [
        # By name, wherever they stand.
        (
            [[("", "cubic"), ("", "bbr")], [("", "bbr"), ("", "cubic")]],
            {"cubic": [0, 1], "bbr": [1, 0]},
        ),
        ([[("x", "cubic")], [("y", "cubic"), ("x", "bbr")]], {"x": [0, 1], "y": [None, 0]}),
        # Those that are like none: by their order.
        ([[("", "cubic")], [("", "bbr")], [("", "bbr")]], {"cubic / bbr": [0, 0, 0]}),
        (
            [[("", "cubic"), ("", "bbr")], [("", "vegas"), ("", "bbr")]],
            {"cubic / vegas": [0, 0], "bbr": [1, 1]},
        ),
        # Of several with one name the first with the first.
        (
            [[("", "bbr"), ("", "copa"), ("", "copa")], [("", "copa"), ("", "copa")]],
            {"bbr": [0, None], "copa (1)": [1, 0], "copa (2)": [2, 1]},
        ),
        (
            [[("", "cubic"), ("b", "bbr")], [], [("b", "bbr")]],
            {"cubic": [0, None, None], "b": [1, None, 0]},
        ),
    ],
)
def test_groups_stand_beside_those_of_their_name_or_control(reports, beside):
    summaries = [
        run_summary.decode(groups_of(*((*group, 1.0) for group in each)), "x") for each in reports
    ]
    assert {pair.label: pair.groups for pair in pairing.pairs(summaries)} == beside


def test_runs_with_other_controls_or_another_order_are_compared(tmp_path):
    """A run of CUBIC and one of BBR had dashes for each other's numbers."""
    one = make_run(tmp_path / "one", groups=(("", "cubic", 2),), seconds=5)
    other = make_run(tmp_path / "other", groups=(("", "bbr", 2),), seconds=5)
    change(other, lambda s: s["groups"][0].update(rtt_mean_ns=31.3e6))
    compared = comparison.read([folder.load(one), folder.load(other)])
    rows = {row[0]: row[1:] for row in comparison.differences(compared).rows}
    assert rows["mean RTT, cubic / bbr"] == ["21.3 ms", "31.3 ms", "+10.0 ms (+46.9 %)"]
    shown = rows[f"{comparison.OBJECTIVE}, cubic / bbr"]
    assert shown[2] == "−0.192"  # half of log(31.3 / 21.3), and no share: it is a logarithm


def test_configs_of_another_order_differ_in_what_differs(tmp_path):
    found = []
    for name, flows in (
        ("a", "[{cc: cubic}, {cc: bbr}]"),
        ("b", "[{cc: bbr}, {cc: cubic, mss: 9kB}]"),
    ):
        ccs = re.findall(r"cc: (\w+)", flows)
        run = make_run(tmp_path / name, groups=[("", cc, 1) for cc in ccs], seconds=5)
        (run / "config.yaml").write_text(f"flows: {flows}\n")
        found.append(folder.load(run))
    config = comparison.configs(comparison.read(found))
    assert config.rows == [["flows.cubic.mss", "–", "9kB"]]


@pytest.mark.slow
def test_a_figure_for_a_paper_is_set_as_asked(weir, tmp_path):
    paths = runs(tmp_path, 1e8, 2e8)
    wanted = ("--figure", "goodput", "--out", "g.svg")
    labels = ("--label", "FIFO, 100", "--label", "FIFO, 200")
    weir(
        "plot", *paths, *wanted, *labels, "--xlim", "1,3", "--ylim", "5,", "--height", 2.5
    ).worked()
    svg = (tmp_path / "g.svg").read_text()
    assert "FIFO, 100" in svg
    assert "A: r0" not in svg
    assert float(re.search(r'height="([\d.]+)pt"', svg)[1]) == pytest.approx(2.5 * 72)
    ticks = [float(t) for t in re.findall(r">(\d\.\d+)</text>", svg)]
    assert (min(ticks), max(ticks)) == (1.0, 3.0)
    said = weir("plot", *paths, *wanted, "--xlim", "3,1").refused()
    assert said == "weir: '3,1': an axis goes from the smaller number to the larger"


def test_what_a_figure_cannot_be_is_said(tmp_path):
    read = [data.read(folder.load(path)) for path in runs(tmp_path, 1e8)]
    (figure,) = (one for one in sections.draw(read[0]) if one.name == "queue")
    twice = paper.Shape(xlim=[(0, 1), (0, 2)], ylim=[(None, 5)])
    ends_of = [ends(panel) for panel in paper.set_limits(figure, twice).panels]
    assert ends_of == [((0, 1), (0, 5)), ((0, 2), (0, 5))]
    for attempt, said in (
        (lambda: paper.limits("5"), "two numbers such as 0,10, or one: 5,"),
        (lambda: paper.limits("a,5"), "two numbers such as 0,10, or one: 5,"),
        (lambda: paper.set_limits(figure, paper.Shape(xlim=[(0, 1)] * 3)), "given 3 times"),
        (lambda: data.relabelled(read[0], ["x", "y"]), "the run has 1 groups of flows"),
        (lambda: comparison.relabelled([], ["x"]), "given 1 times for 0 runs"),
    ):
        with pytest.raises(UserError, match=said):
            attempt()
    assert data.relabelled(read[0], ["mine"]).scene.groups[0].label == "mine"


@pytest.mark.slow
def test_a_figures_data_as_csv(weir, tmp_path):
    (run,) = runs(tmp_path, 1e8)
    assert weir("plot", run, "--figure", "goodput", "--out", "g.csv").status == 0
    found = pl.read_csv(tmp_path / "g.csv")
    assert found.columns == ["panel", "x_axis", "y_axis", "mark", "line", "place", "x", "y"]
    flows = found.filter(pl.col("line") == "flow 0")
    recorded = data.read(folder.load(run)).flows.rated.filter(pl.col("flow_id") == 0)
    assert set(found["y_axis"]) == {"goodput, stacked (Mbit/s)"}
    np.testing.assert_allclose(flows["x"], recorded["time_s"])
    np.testing.assert_allclose(flows["y"] * 1e6, recorded["goodput_bps"], atol=10)
    assert weir("plot", run, "--figure", "shares", "--out", "s.csv").status == 0
    bars = pl.read_csv(tmp_path / "s.csv")
    each = data.read(folder.load(run)).flows.each.sort("flow_id")["goodput_bps"]
    reached = dict(bars.filter(pl.col("line") == "to").select("place", "x").iter_rows())
    np.testing.assert_allclose([reached[f"flow {n}"] for n in range(4)], each / each.mean())


def test_the_figure_of_goodput_has_that_name(weir, tmp_path):
    (run,) = runs(tmp_path, 1e8)
    drawn = {one.name: one.caption for one in sections.draw(data.read(folder.load(run)))}
    assert drawn["goodput"].startswith("Goodput over time.")
    assert "throughput" not in drawn


def test_a_control_looks_the_same_in_all_figures_of_a_comparison(tmp_path):
    made = [make_run(tmp_path / cc, groups=((cc, cc, 1),), seconds=2) for cc in ("mine", "bbr")]
    compared = comparison.read([folder.load(run) for run in made])
    mine, bbr = (one.style for one in compared)
    assert replace(bbr, label="BBR") == theme.style("bbr")
    assert (mine.marker, mine.dash) != (bbr.marker, bbr.dash)
    assert mine.colour != bbr.colour
    figures = {one.name: one for one in comparison.draw(compared)}
    for name in ("goodput", "rtt", "queue", "delay"):
        marks = figures[name].panels[0].marks
        lines = {mark.style.label: mark.style.colour for mark in marks}
        assert (name, lines["B: bbr"]) == (name, bbr.colour)
