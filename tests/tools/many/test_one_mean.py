# SPDX-License-Identifier: BSD-3-Clause
"""The mean over a sweep's seeds is one number, whoever shows it, also where runs are equal."""

import io
import itertools
import json
import os
import statistics
import subprocess
import sys

import polars as pl
import pytest
import weir
from rich.console import Console
from weir.many import cells, grid, sweep, sweep_diff, sweep_figures, sweep_page, sweep_table

CONFIG = """\
duration: 1s
paths:
  forward:
    - loss: {rate: 0.2%}
    - link: {rate: 4Mbit, queue: {fifo: {limit: 20pkt}}}
    - delay: {delay: 20ms}
  reverse:
    - delay: {delay: 20ms}
flows:
  - {count: 1, cc: newreno}
"""
SWEEP = """\
config: base.yaml
seeds: 5
grid:
  paths.forward.loss.rate: [0%, 0.2%]
  flows.0.cc: [newreno, cubic]
"""
CONTROL = """\
from weir.control import Control


class Mine(Control):
    def on_ack(self, m):
        self.cwnd_segs = 10
"""
KEYS = ["paths.forward.loss.rate", "flows.0.cc"]


@pytest.fixture(scope="module")
def swept(weir_sim, tmp_path_factory):
    """A sweep's folder; and of each combination the delays (ms) of its samples, by hand."""
    place = tmp_path_factory.mktemp("sweep")
    (place / "base.yaml").write_text(CONFIG)
    (place / "grid.yaml").write_text(SWEEP)
    planned = grid.read(place / "grid.yaml").cells()
    found, each = [], {}
    for cell, point in planned:
        folder = place / "out" / cell.name
        argv = [weir_sim, cell.config, *cell.settings(), "--out", str(folder)]
        subprocess.run(argv, check=True, capture_output=True)
        found.append(cells.Outcome(cell, folder, "done", None))
        summary = json.loads((folder / "summary.json").read_text())
        delays = each.setdefault(tuple(point[key] for key in KEYS), [])
        if summary["seed_used"] or not delays:
            delays.append(summary["links"]["forward"]["queue_mean_ns"] / 1e6)
    points = [point for _, point in planned]
    rows = list(map(sweep.row, points, found))
    sweep.framed(points, rows).write_parquet(place / "out/table.parquet")
    return place / "out", each


def test_the_mean_over_seeds_is_one_number(swept):
    """Rare losses make some of the runs equal; each is a sample. Without losses all are one run."""
    folder, each = swept
    right = {point: statistics.mean(delays) for point, delays in each.items()}
    assert {len(delays) for (rate, _), delays in each.items() if rate == "0%"} == {1}
    assert any(1 < len(set(delays)) < len(delays) for delays in each.values())

    table = sweep_table.load(folder)
    loss, cc = (table.axis(name) for name in KEYS)
    choice = sweep_figures.Choice(loss, cc)
    delay = table.metric("delay")
    drawn = {"figure": sweep_figures.lines(table, delay, choice)}
    second = sweep_page.SHOWN.index("delay")
    drawn["page"] = next(itertools.islice(sweep_page.draw(table, choice, None), second, None))
    shown = {name: of_lines(figure, loss, cc) for name, figure in drawn.items()}

    means = weir.table(folder, by=KEYS, metrics=["queue_mean_ns"])
    means = means.filter(pl.col("link") == "forward")
    sizes = {row[:-1]: row[-1] for row in means.select(*KEYS, "queue_mean_ns_n").rows()}
    assert sizes == {point: len(delays) for point, delays in each.items()}
    shown["table"] = {
        row[:-1]: row[-1] / 1e6 for row in means.select(*KEYS, "queue_mean_ns").rows()
    }

    frame = weir.open_many(folder).filter(
        (pl.col("metric") == "queue_mean_ns") & (pl.col("link") == "forward")
    )
    shown["open_many"] = by_hand(frame.with_columns(of="value"), KEYS)
    stored = pl.read_parquet(folder / "table.parquet")
    shown["Parquet"] = by_hand(stored.with_columns(of="links.forward.queue_mean_ns"), KEYS)
    rows = sweep_diff.compare(table, table, ["delay"]).rows
    shown["diff"] = {row.point: row.a.mean() / 1e6 for row in rows}
    for name, found in shown.items():
        assert found == pytest.approx(right), name


def test_the_terminal_has_a_row_for_each_combination(swept):
    folder, each = swept
    out = Console(width=200, record=True, file=io.StringIO())
    sweep.show(
        pl.read_parquet(folder / "table.parquet"), grid.read(folder.parent / "grid.yaml"), out
    )
    text = out.export_text()
    for (rate, cc), delays in each.items():
        [row] = [
            line for line in text.splitlines() if line.startswith(f"{rate} ") and f" {cc} " in line
        ]
        assert f" {len(delays)} " in row
        assert f" {statistics.mean(delays):.1f} " in row
        assert ("±" in row) == (len(set(delays)) > 1)
    assert "queueing delay" in text
    assert "95 % intervals (Student's t, for values that are about normal)" in text
    assert "in 2 of 4 combinations the seed changes nothing" in text


@pytest.mark.parametrize("form", ["text", "csv", "markdown", "latex"])
def test_the_table_is_printed(swept, weir_here, form):
    folder, each = swept
    words = ("--by", "loss.rate", "--by", "flows.0.cc", "--y", "queue_mean_ns", "--to", form)
    done = weir_here("table", str(folder), *words)
    assert (done.status, done.err) == (0, "")
    rate, cc = max(each, key=lambda point: len(set(each[point])))
    mean = statistics.mean(each[rate, cc])
    shown = f"{mean:.1f}" if form != "csv" else repr(mean * 1e6)[:12]
    [row] = [line for line in done.out.splitlines() if cc in line and shown in line and "5" in line]
    ends = {"text": "5", "csv": ",5", "markdown": "| 5 |", "latex": r"& 5 \\"}
    assert row.endswith(ends[form])


def test_a_control_of_ones_own_has_one_name(weir_sim, tmp_path, build_plugin):
    """By its name, not its file, and never null: in figures, tables, and of open_many."""
    file = build_plugin().rename(tmp_path / "other.so")
    (tmp_path / "c.py").write_text(CONTROL)
    (tmp_path / "base.yaml").write_text(CONFIG)
    values = ["newreno", f"{{plugin: {file}}}", f"{{python: {tmp_path}/c.py:Mine, every: rtt}}"]
    (tmp_path / "grid.yaml").write_text(
        f"config: base.yaml\ngrid: {{flows.0.cc: {values}}}\n".replace("'", "")
    )
    planned, found = grid.read(tmp_path / "grid.yaml").cells(), []
    for number, (cell, _) in enumerate(planned):
        folder = tmp_path / f"out/{number}"
        argv = [weir_sim, cell.config, *cell.settings(), "--out", str(folder)]
        env = {**os.environ, "WEIR_PYTHON": sys.executable}
        subprocess.run(argv, check=True, capture_output=True, env=env)
        found.append(cells.Outcome(cell, folder, "done", None))
    points = [point for _, point in planned]
    rows = list(map(sweep.row, points, found))
    sweep.framed(points, rows).write_parquet(tmp_path / "out/table.parquet")
    names = ["newreno", "mine", "Mine"]
    assert (
        weir.open_many(tmp_path / "out")["flows.0.cc"].unique(maintain_order=True).to_list()
        == names
    )
    assert weir.table(tmp_path / "out", by=["flows.0.cc"])["flows.0.cc"].to_list() == names
    table = sweep_table.load(tmp_path / "out")
    assert [name.partition(",")[0] for name in table.axis("cc").names] == names
    [panel] = sweep_figures.lines(
        table, table.metric("goodput"), sweep_figures.Choice(table.axis("cc"))
    ).panels
    assert [name for _, name in panel.x.ticks] == ["newreno", "mine", "Mine, every rtt"]


def of_lines(figure, loss, cc):
    """Means by rate and control: each line of means has one of strokes behind it."""
    [panel] = figure.panels
    lines = panel.marks[::2]
    assert panel.y.label.endswith("(ms)")
    return {
        (rate, control): y
        for control, line in zip(cc.values, lines, strict=True)
        for rate, y in zip(loss.values, line.y, strict=True)
    }


def by_hand(frame, keys):
    samples = frame.filter(pl.col("seed_used") | (pl.col("seed") == 1))
    means = samples.group_by(keys).agg(pl.col("of").mean())
    return {row[:-1]: row[-1] / 1e6 for row in means.rows()}
