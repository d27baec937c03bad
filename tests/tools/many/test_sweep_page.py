# SPDX-License-Identifier: BSD-3-Clause
"""A sweep's page and its figures: numbers in them are those of the table."""

import itertools
import json
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from scipy import stats
from weir.base.errors import UserError
from weir.many import sweep_figures, sweep_page, sweep_table

GRID = {
    "paths.forward.link.queue.fifo.limit": ["0.5BDP", "1BDP", "10BDP", "20BDP"],
    "flows.0.cc": ["{copa: {delta: 0.1}}", "cubic"],
    "flows.0.count": [1, 10],
}


def write(path, seeds=4, grid=GRID):
    """A sweep of which all numbers are known: goodput grows by the place of the cell."""
    path.mkdir()
    rows = []
    for number, values in enumerate(itertools.product(*grid.values())):
        for seed in range(seeds):
            rows.append(
                {
                    **dict(zip(grid, values, strict=True)),
                    "seed": seed,
                    "status": "done",
                    "message": None,
                    "folder": f"elsewhere/cell={number},seed={seed}",
                    "digest": f"{number}-{seed}",
                    "jfi": 0.9,
                    "groups.0.goodput_bps": 1e6 * (number + 1) + 1e3 * seed,
                    "groups.0.rtt_mean_ns": 2e7,
                    "links.forward.utilisation": 0.9,
                    "links.forward.queue_mean_ns": 1e6 * (number + 1),
                    "links.reverse.utilisation": 0.1,
                }
            )
    rows[3] |= {"status": "failed", "message": "no <room>", "groups.0.goodput_bps": None}
    pl.DataFrame(rows, infer_schema_length=None).write_parquet(path / "table.parquet")
    return path


def made(path, metric="goodput", **names):
    table = sweep_table.load(path)
    axes = {key: table.axis(name) for key, name in names.items()}
    choice = sweep_figures.Choice(**axes)
    sweep_figures.check(table, choice)
    return table, table.metric(metric), choice


def test_lines_are_the_means_and_strokes_their_intervals(tmp_path):
    table, metric, choice = made(write(tmp_path / "s"), x="buffer", by="cc", facet="flows")
    figure = sweep_figures.lines(table, metric, choice)
    one, ten = figure.panels
    assert [panel.title for panel in figure.panels] == ["flows 1", "flows 10"]
    copa, strokes, cubic, _ = one.marks
    assert list(copa.x) == [0.5, 1, 10, 20]
    assert list(copa.y) == pytest.approx([1.001, 5.0015, 9.0015, 13.0015])
    assert list(cubic.y) == pytest.approx([3.0015, 7.0015, 11.0015, 15.0015])
    half = 3.182446 * 0.00129099 / 2  # t of 3 degrees of freedom, of 4 seeds 1 kbit/s apart
    assert (strokes.low[1], strokes.high[1]) == pytest.approx((5.0015 - half, 5.0015 + half))
    assert copa.style.label == "Copa, delta 0.1"
    assert (copa.style.colour, copa.style.marker) != (cubic.style.colour, cubic.style.marker)
    assert ten.y == one.y


def test_a_heat_map_has_the_means_as_colours_and_in_words(tmp_path):
    table, metric, choice = made(write(tmp_path / "s"), "delay", x="buffer", by="flows", facet="cc")
    figure = sweep_figures.heat(table, metric, choice)
    [field] = figure.panels[0].marks
    assert field.values.ravel().tolist() == pytest.approx([1, 5, 9, 13, 2, 6, 10, 14])
    assert (field.written, field.label) == (True, "delay (ms)")


def test_points_and_squares_have_the_addresses_of_their_runs(tmp_path):
    path = write(tmp_path / "s")
    (path / "cell=0,seed=1").mkdir()
    (path / "cell=0,seed=2").mkdir()
    (path / "cell=0,seed=2/report.html").touch()
    table, metric, choice = made(path, x="buffer", by="flows", facet="cc")
    found = sweep_page.addresses(table, path)
    assert found[:4] == [None, "cell%3D0%2Cseed%3D1/", "cell%3D0%2Cseed%3D2/report.html", None]
    table = replace(table, frame=table.frame.with_columns(href=pl.Series(found)))
    for draw in (sweep_figures.lines, sweep_figures.heat):
        figure = draw(table, metric, choice)
        first, *others = figure.panels[0].marks[0].hrefs
        assert first == found[1:3]
        assert not any(others)


def test_changes_from_a_baseline_are_those_of_welch(tmp_path):
    path = write(tmp_path / "s")
    frame = pl.read_parquet(path / "table.parquet")
    frame = frame.filter((pl.col("flows.0.count") == 1) | (pl.col("seed") == 0))
    frame.write_parquet(path / "table.parquet")
    table, metric, choice = made(path, x="buffer", by="cc", facet="flows")
    base = sweep_page.base_of(table, "cc=cubic")
    figure = sweep_figures.beside(table, metric, choice, base.axis, base.value)
    _, change, strokes = figure.panels[0].marks
    assert change.style.label == "Copa, delta 0.1"
    assert change.y == pytest.approx([-2.0] * 4, abs=2e-3)
    parts = table.parts(metric, choice.keys)
    copa, cubic = (parts[1, cc, "1BDP"] for cc in ("{copa: {delta: 0.1}}", "cubic"))
    low, high = stats.ttest_ind(copa, cubic, equal_var=False).confidence_interval(0.95)
    assert (strokes.low[1], strokes.high[1]) == pytest.approx((low / 1e6, high / 1e6))
    _, change, strokes = figure.panels[1].marks  # of one run each
    assert change.y == pytest.approx([-2.0] * 4)
    assert np.isnan(strokes.low).all()
    rows = sweep_page.effects(table, choice, base)[2].rows
    said = ["3.00 Mbit/s", "1.00 Mbit/s", "−2.00 Mbit/s ± 2.23 kbit/s", "−66.7 %"]
    assert rows[0][3:] == ["goodput", *said]
    assert {row[6] for row in rows if row[2:4] == ["10", "goodput"]} == {"–"}


def test_a_page_beside_a_baseline(weir_here, tmp_path):
    write(tmp_path / "s")
    assert weir_here("report", "s", "--baseline", "cc=cubic").out == "s/report.html\n"
    text = (tmp_path / "s/report.html").read_text()
    assert "Beside congestion control cubic" in text
    assert "Figure 1. Change of goodput from congestion control cubic, over buffer (BDP)." in text
    assert "cc is never reno" in weir_here("report", "s", "--baseline", "cc=reno").err
    assert "Change of" not in sweep_page.write(tmp_path / "s").read_text()


@pytest.mark.parametrize(
    ("names", "sentence"),
    [
        ({"x": "buffer", "by": "cc"}, "flows.0.count varies too (1, 10): choose it with --by"),
        ({"x": "buffer", "by": "buffer", "facet": "cc"}, "flows.0.count varies too"),
        ({"x": "speed"}, "'speed' is no parameter that varies"),
    ],
)
def test_what_cannot_be_drawn_is_one_sentence(tmp_path, names, sentence):
    with pytest.raises(UserError) as caught:
        made(write(tmp_path / "s"), **names)
    assert sentence in str(caught.value)


@pytest.mark.slow
def test_the_page_has_figures_what_failed_and_what_lies_apart(weir_here, tmp_path):
    path = write(tmp_path / "s")
    frame = pl.read_parquet(path / "table.parquet")
    odd = pl.when(pl.int_range(pl.len()) == 9).then(5e6).otherwise(pl.col("groups.0.goodput_bps"))
    frame.with_columns(odd.alias("groups.0.goodput_bps")).write_parquet(path / "table.parquet")
    (path / "cell=2,seed=1").mkdir()
    (path / "cell=2,seed=1/report.html").write_text("")
    assert weir_here("report", "s").out == "s/report.html\n"
    text = (path / "report.html").read_text()
    assert text.count("<figure") == 6  # goodput, delay, Jain's index, RTT; two heat maps
    assert "Figure 1. Goodput over buffer (BDP), by congestion control, in a panel for each" in text
    assert "63 done, 1 failed." in text
    assert "no &lt;room&gt;" in text
    assert '<a href="cell%3D2%2Cseed%3D1/report.html">cell=2,seed=1</a>: goodput 5.00' in text
    assert "<link" not in text
    assert "src=" not in text.replace("src:url(data:", "")


def test_more_parameters_than_a_figure_has_room_for_are_said(tmp_path, monkeypatch):
    path = write(tmp_path / "s", 1, {**GRID, "flows.0.mss": [500, 1460]})
    monkeypatch.setattr(sweep_page, "SHOWN", ("goodput",))
    monkeypatch.setattr(sweep_page, "HEATED", ())
    text = sweep_page.write(path, tmp_path / "pages").read_text()
    assert "The figures are of flows.0.mss = 500" in text
    assert "Cells that lie apart: none" in text


def test_a_sweep_of_seeds_alone_has_a_page(tmp_path):
    path = write(tmp_path / "s", 5, {"flows.0.count": [1]})
    assert "<figure" not in sweep_page.write(path).read_text()


def test_a_sweep_without_a_grid_has_a_page(tmp_path):
    """No parameter at all: a table without rows was added to one with them."""
    path = write(tmp_path / "s", 5, {})
    assert "Cells that lie apart" in sweep_page.write(path).read_text()


def test_plot_takes_a_sweep(weir_here, tmp_path):
    write(tmp_path / "s")
    listed = weir_here("plot", "s").out
    assert "flows.0.cc                               copa, delta 0.1, cubic" in listed
    assert json.loads(weir_here("plot", "s", "--json").out)["numbers"][0] == "goodput"
    words = ("plot", "s", "--x", "buffer", "--by", "cc", "--facet", "flows", "--logx")
    assert weir_here(*words, "--out", "a.csv").out == "a.csv\n"
    table = pl.read_csv(tmp_path / "a.csv")
    assert set(table["line"]) >= {"CUBIC", "Copa, delta 0.1"}
    for wrong, sentence in (
        (("--x", "buffer", "--heat", "flows", "--by", "cc"), "--heat and --by: a heat map"),
        (("--x", "cc", "--by", "flows", "--facet", "buffer", "--logx"), "--logx: flows.0.cc has"),
        (("--x", "buffer", "--where", "cc=reno"), "--where: flows.0.cc is never reno"),
    ):
        done = weir_here("plot", "s", *wrong)
        assert done.status == 2
        assert sentence in done.err
    assert "there is no run in nowhere" in weir_here("plot", "nowhere", "--x", "buffer").err
    done = weir_here("plot", "s", "--x", "buffer", "--label", "one")
    assert (done.status, done.out) == (2, "")
    assert "--label is for runs and their groups" in done.err
