# SPDX-License-Identifier: BSD-3-Clause
"""Figures on a terminal: what dots, numbers and letters say, and what a pipe gets."""

import io

import numpy as np
import pytest
from rich.console import Console
from synthetic import make_run
from weir.report import figure as values
from weir.report import screen
from weir.report.figure import Axis, Box, Field, Figure, Line, Panel, Points, ends, floats
from weir.report.theme import Style

A, B = Style("Copa", "#0072B2", "o"), Style("CUBIC", "#009E73", "^")
X = floats(range(10))
MARKS = [
    Line(X, X, A), Line(X, X, A, steps="post"), values.Band(X, X, X + 1, A), Points(X, X, A),
    values.Strokes(X, X, X + 1, A), values.Bars(X, floats(0.5), X, X + 1, A, lying=True),
    Box(4, X, A), values.Rule(4, A), values.Span(3, 4, A, upright=True), values.Polygon(X, X**2, A),
]  # fmt: skip


def shown(figure, **kind):
    out = io.StringIO()
    screen.show(figure, Console(file=out, **kind))
    return out.getvalue()


@pytest.mark.parametrize("scale", ["linear", "log", "symlog"])
def test_dots_are_at_the_figures_values(scale):
    x = np.linspace(1, 9, 160)
    y = 10 + 5 * np.sin(x)
    y[60:80] = np.nan
    panel = Panel(Axis("x", 1, 9), Axis("y", 1, 100, scale), [Line(x, y, A)])
    grid = screen.raster(panel, ends(panel), 80, 14)
    assert grid.shape == (56, 160)
    assert not grid[:, 61:79].any()  # NaN is a gap
    (low, high), bend = ends(panel)[1], {"linear": float, "log": np.log, "symlog": np.log1p}[scale]
    for column in np.flatnonzero(np.isfinite(y)):
        share = (bend(y[column]) - bend(low)) / (bend(high) - bend(low))
        rows = np.flatnonzero(grid[:, column])
        assert np.abs(55 * (1 - share) - rows).min() <= 0.5


@pytest.mark.parametrize("mark", MARKS, ids=lambda mark: type(mark).__name__)
def test_a_mark_of_any_kind_has_dots(mark):
    panel = Panel(Axis(), Axis(), [Line(X, X, B), mark])
    assert screen.raster(panel, ends(panel), 60, 14).max() == 2


def test_names_of_places_and_labels_are_whole():
    names = [(float(at), f"a rather long name {at}") for at in range(3)]
    panel = Panel(
        Axis("", -0.5, 2.5, ticks=names), Axis("y"), [values.Label(2.4, 3, " 1.20 Mbit/s")]
    )
    text = shown(Figure([panel], caption="A title. The rest."), width=60)
    assert all(name in text for _, name in names)
    assert "1.20 Mbit/s" in text
    assert text.startswith("A title\n")
    assert text.endswith("The rest.\n")


def test_a_key_has_letters_in_a_pipe_and_colours_on_a_terminal():
    figure = Figure([Panel(Axis(), Axis(), [Line(X, X, A), Line(X, 9 - X, B)])])
    text = shown(figure, width=60)
    assert "\x1b" not in text
    assert "a Copa\nb CUBIC" in text
    assert text.count("a") > 3
    assert max(map(len, text.splitlines())) <= 60
    assert "\x1b[38;2;0;114;178m" in shown(figure, force_terminal=True, color_system="truecolor")


def test_a_heat_map_is_its_numbers():
    field = Field(np.array([[1.0, 2.0], [np.nan, 4.0]]), "queue (ms)", 1, 4)
    x, y = (Axis(n, 0, 2, ticks=[(0.5, f"{n}1"), (1.5, f"{n}2")]) for n in "xy")
    rows = [line.split() for line in shown(Figure([Panel(x, y, [field])]), width=60).splitlines()]
    assert rows[-3:] == [["x1", "x2"], ["y2", "–", "4.00"], ["y1", "1.00", "2.00"]]


@pytest.mark.slow
def test_weir_plot_shows_a_figure(weir, tmp_path):
    run = make_run(tmp_path / "run")
    done = weir("plot", run, "--figure", "rtt", "--term").worked()
    assert "Round-trip time over time" in done.out
    assert "time (s)" in done.out
    assert "\x1b" not in done.out
    assert not [*tmp_path.glob("*.pdf")]
    assert weir("plot", run, "--figure", "rtt", "--term", "--out", "x.pdf").status == 2
