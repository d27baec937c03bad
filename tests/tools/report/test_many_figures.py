# SPDX-License-Identifier: BSD-3-Clause
"""Figures of many runs: what they show are the numbers of the frames, and no number is no mark."""

import re
import subprocess

import numpy as np
import polars as pl
import pytest
import weir
from synthetic import make_run
from test_sweep_page import write as write_sweep
from weir.analysis import many, one_way
from weir.analysis.run_summary import decode
from weir.base.errors import UserError
from weir.bootstrap import ROOT
from weir.many import grid, sweep_table
from weir.report import grey, many_figures, table
from weir.report.figure import Box, Points, Polygon

POINTS = pl.DataFrame(
    {
        "name": ["copa", "copa", "copa", "cubic", "cubic", "pcc"],
        "delay_ns": [20e6, 22e6, None, 60e6, 60e6, float("nan")],
        "goodput_bps": [9e6, 8e6, 1e6, 9.5e6, 9.5e6, 5e6],
    }
)
SAMPLES = pl.DataFrame(
    {"name": ["a"] * 6 + ["b"] * 2 + ["c"], "value": [1.0, 2, 3, 4, 5, 90, None, 7, None]}
)
NUMBER = many_figures.Number("queue", "packets")


def test_pantheons_summary_has_a_dot_per_run_means_and_ellipses():
    panel = many_figures.pantheon(POINTS)
    points = [mark for mark in panel.marks if isinstance(mark, Points)]
    means = {m.style.label: [m.x[0], m.y[0]] for m in points if m.size == many_figures.MEAN_SIZE}
    assert means == {"Copa": [21, 8.5], "CUBIC": [60, 9.5]}  # and no PCC: its delay is not known
    dots = [np.stack([m.x, m.y], 1).tolist() for m in points if m.size < 2]
    assert dots == [[[20, 9], [22, 8]], [[60, 9.5], [60, 9.5]]]
    [ellipse] = [m for m in panel.marks if isinstance(m, Polygon)]  # of equal runs there is none
    x, y = ellipse.x, ellipse.y
    assert [x.min(), x.max(), y.min(), y.max()] == pytest.approx([20, 22, 8, 9], abs=1e-2)
    assert panel.x.high > 60 > 20 > panel.x.low
    assert panel.x.reversed
    assert "less to the right" in panel.x.label


def test_a_box_is_the_quartiles_and_a_kind_without_numbers_keeps_its_place():
    panel = many_figures.box(SAMPLES, NUMBER)
    boxes = [mark for mark in panel.marks if isinstance(mark, Box)]
    shown = boxes[0].quartiles()
    assert [shown.low, shown.high] == [2.25, 4.75]
    assert (shown.whisker_low, shown.whisker_high, shown.outliers.tolist()) == (1, 5, [90])
    assert [name for _, name in panel.x.ticks] == ["a", "b", "c"]
    assert [mark.at for mark in boxes] == [0, 1]  # nothing at c
    assert panel.y.label == "queue (packets)"


def test_a_distribution_rises_at_each_value():
    a, b = many_figures.cdf(SAMPLES, NUMBER).marks
    assert a.x == pytest.approx([1, 1, 2, 3, 4, 5, 90])
    assert a.y == pytest.approx([0, 1 / 6, 2 / 6, 3 / 6, 4 / 6, 5 / 6, 1])
    assert (b.x.tolist(), b.y.tolist()) == ([7, 7], [0, 1])


@pytest.mark.parametrize("name", many_figures.NAMES)
def test_they_are_told_apart_in_grey_and_have_their_data(name):
    names = [f"control {n}" for n in range(18) for _ in range(3)]
    steps = np.arange(54.0)
    frame = pl.DataFrame(
        {"name": names, "value": steps, "delay_ns": 1e6 + steps, "goodput_bps": steps}
    )
    figure = grey.separate(many_figures.figure(name, frame, NUMBER))
    assert list(grey.alike(figure.panels[0])) == []
    rows = table.frame(figure)
    assert rows.height >= 54
    assert set(names) <= set(rows["place" if name == "box" else "line"])


@pytest.mark.parametrize(
    ("name", "frame", "sentence"),
    [
        ("x", SAMPLES, "there is no figure 'x' of many runs; there is pantheon, box, cdf"),
        ("box", SAMPLES.filter(pl.col("name") == "c"), "no run has this number"),
        ("pantheon", POINTS.tail(1), "no run has both a goodput and a one-way delay"),
        ("cdf", SAMPLES.with_columns(name=pl.Series(map(str, range(9)))).sample(
            50, with_replacement=True, seed=1).with_columns(name=pl.int_range(50).cast(pl.String)),
            "there are 50 kinds of run: at most 40 can be told apart"),
    ],
)  # fmt: skip
def test_what_cannot_be_drawn_is_one_sentence(name, frame, sentence):
    with pytest.raises(UserError, match=f"^{re.escape(sentence)}$"):
        many_figures.figure(name, frame, NUMBER)


CONFIG = {
    "paths": {"forward": [{"link": {}}, {"delay": {"delay": "10ms", "late": "0%"}}], "reverse": []},
    "flows": [{"cc": "copa"}],
}
CDF = [[10, 0.9], [20, 0.95], [30, 1.0]]
REPORT = decode({"links": {"forward": {"sojourn_cdf": CDF}}}, "x")


def test_the_one_way_delay_is_propagation_and_queue_or_not_known():
    assert one_way.p95_ns(CONFIG, REPORT) == 10e6 + 20
    assert one_way.p95_ns(CONFIG, decode({"links": {"forward": {}}}, "x")) is None
    assert one_way.p95_ns({**CONFIG, "schedule": [{"at": "1s"}]}, REPORT) is None
    assert one_way.p95_ns({**CONFIG, "flows": [{"base_rtt": "10ms"}]}, REPORT) is None
    for stage in ({"jitter": {}}, {"link": {}}, {"delay": {"delay": "1ms", "late": "1%"}}):
        paths = {"forward": [*CONFIG["paths"]["forward"], stage]}
        assert one_way.p95_ns({**CONFIG, "paths": paths}, REPORT) is None


@pytest.fixture
def runs(tmp_path):
    """Two controls with two seeds each in the configs' text."""
    for cc in ("copa", "cubic"):
        for seed in (1, 2):
            run = make_run(
                tmp_path / f"runs/{cc}-{seed}", groups=((cc, cc, 2),), seconds=1, seed=seed
            )
            text = (
                (run / "config.yaml").read_text().replace("{count: 2}", f"{{count: 2, cc: {cc}}}")
            )
            (run / "config.yaml").write_text(text)
    return tmp_path / "runs"


def test_points_and_samples_of_open_many(runs):
    frame = weir.open_many(runs)
    points = many.points(frame, many.key(frame, None))
    assert points["name"].to_list() == ["copa", "copa", "cubic", "cubic"]
    one = weir.open(points["run"][0]).summary
    assert points["goodput_bps"][0] == one.groups[0].goodput_bps
    assert 11e6 < points["delay_ns"][0] <= 12e6  # 10 ms, and 1 to 2 ms
    assert many.samples(frame, "flows.0.cc", "queue_mean_pkts").height == 4


def test_the_command_draws_folders_with_runs(weir_here, runs):
    done = weir_here("plot", "runs", "--figure", "pantheon", "--out", "p.csv")
    assert done.out == "p.csv\n"
    table = pl.read_csv("p.csv")
    goodput = weir.open(runs / "cubic-1").summary.groups[0].goodput_bps / 1e6
    assert any(table["y"].is_between(goodput * 0.999999, goodput * 1.000001))
    named = ("plot", "runs", "--figure", "box", "--y", "rtt_mean_ns", "--by", "run")
    assert weir_here(*named, "--out", "b.csv").out == "b.csv\n"
    for words, sentence in (
        (
            ("--by", "speed"),
            "--by: no run differs in 'speed': choose one of run, flows.0.cc, group",
        ),
        (("--y", "speed"), "no run has a number 'speed'"),
        (("--x", "cc"), "--x: the figure box has no such option"),
        (("--where", "cc=copa"), "--where is for sweeps: name the runs that are meant"),
    ):
        done = weir_here("plot", "runs", "--figure", "box", *words)
        assert (done.status, done.out) == (2, "")
        assert sentence in done.err


def test_a_sweeps_cells_are_boxes_and_distributions(weir_here, tmp_path):
    table = sweep_table.load(write_sweep(tmp_path / "s")).where(["count=1", "buffer=1BDP"])
    goodput = table.metric("goodput")
    frame = table.samples(table.only(None), value=goodput.values)
    assert frame["name"].to_list() == ["copa, delta 0.1"] * 4 + ["cubic"] * 4
    assert frame["value"].to_list() == goodput.values.tolist()
    assert (goodput.label, goodput.unit) == ("goodput", "bit/s")
    chosen = ("--where", "count=1", "--where", "buffer=1BDP")
    assert weir_here("plot", "s", "--figure", "cdf", *chosen, "--out", "c.csv").out == "c.csv\n"
    done = weir_here("plot", "s", "--figure", "box")
    assert "varies too" in done.err
    done = weir_here("plot", "s", "--figure", "pantheon", *chosen)
    assert (
        done.err == "weir: no run has both a goodput and a one-way delay\n"
    )  # the folders are gone
    assert "pantheon, box, cdf" in weir_here("plot", "s").out


@pytest.mark.slow
def test_the_delay_is_that_of_the_recorded_packets_and_as_the_sweep_says(weir_sim, tmp_path):
    def point(cc):
        out = tmp_path / cc
        words = ["flows.0.count=3", "flows.0.jitter=5s", f"flows.0.cc={cc}", "telemetry.level=3"]
        options = [part for word in words for part in ("-o", word)]
        config = ROOT / "configs/lte-trace.yaml"
        argv = [weir_sim, config, "--duration", "30s", "--out", out, *options]
        subprocess.run(argv, check=True, capture_output=True)
        run = weir.open(out)
        left = (run.packets["event"] == 2) & (run.packets["ts_ns"] > 10e9)
        waited = np.quantile(run.packets["sojourn_ns"][left & (run.packets["path"] == 0)], 0.95)
        delay = one_way.p95_ns(run.config, run.summary)
        assert delay == pytest.approx(20e6 + waited, rel=0.03)
        return delay, run.summary.groups[0].goodput_bps

    (slow, fast), (copa_slow, copa_fast) = point("cubic"), point("copa")
    assert 180e6 < slow < 260e6
    assert fast == pytest.approx(11.7e6, rel=0.01)
    assert copa_slow < 0.36 * slow
    assert 0.9 < copa_fast / fast < 0.95


def test_the_sweep_has_every_control():
    text = (ROOT / "sender/cc/registry.c").read_text()
    known = set(re.findall(r"\bV\((\w+)\)", text))
    read = grid.read(ROOT / "configs/sweeps/pantheon.yaml")
    assert set(read.grid["flows.0.cc"]) == known - {"fixed"}
