# SPDX-License-Identifier: BSD-3-Clause
"""Figures as values: what follows from their marks, and what a renderer draws of them."""

import numpy as np
import pytest
from weir.report import artists
from weir.report import figure as values
from weir.report.figure import Axis, Band, Figure, Line, Panel, Points, ends, floats
from weir.report.theme import Style

STYLE = Style("a", "#0072B2", "o")
X, Y = floats(range(5)), floats([1, 5, 2, np.nan, 3])


def test_a_figure_is_drawn_as_its_marks_say():
    band = Band(X, Y - 1, Y + 1, STYLE)
    figure = Figure([Panel(Axis("time (s)", 0), Axis("y", scale="log"), [band, Line(X, Y, STYLE)])])
    [axes] = artists.draw(figure).axes
    assert (axes.get_xlabel(), axes.get_yscale(), axes.get_xlim()[0]) == ("time (s)", "log", 0)
    np.testing.assert_array_equal(axes.lines[0].get_ydata(), Y)
    assert [mark for mark in values.key(figure)] == [figure.panels[0].marks[1]]


def test_an_axis_ends_beyond_the_data_but_for_marks_at_its_edge():
    marks = [Line(X, Y, STYLE), Points(floats(2), floats(90), STYLE, at_edge=True)]
    x, y = ends(Panel(Axis(), Axis(low=0), marks))
    assert x == pytest.approx((-0.2, 4.2))
    assert y == pytest.approx((0, 5.2))


def test_the_numbers_of_a_stack_are_its_areas_and_their_total():
    stack = [Band(X, X * 0, X, STYLE, stacked=True), Band(X, X, 3 * X, STYLE, stacked=True)]
    rows = values.numbers(Figure([Panel(Axis(), Axis("rate"), stack)]))
    assert [(row[0], row[5]) for row in rows] == [("a", "4.00"), ("a", "8.00"), ("total", "12.0")]


def test_thinning_keeps_ends_gaps_and_extremes():
    y = np.sin(np.arange(100_000) / 7)
    y[[0, 31_234, 60_001]] = 3, 90, -90
    y[5_000:9_000] = np.nan
    kept = values.places(y, 400)
    assert kept.size <= 400
    assert {0, 31_234, 60_001, 99_999} <= set(kept.tolist())
    assert np.isnan(y[kept]).any()
    long, short = Line(np.arange(y.size) * 1.0, y, STYLE), Line(X, Y, STYLE)
    drawn = values.thinned(Figure([Panel(Axis(), Axis(), [long, short])], caption="Title."))
    line, other = drawn.panels[0].marks
    assert other is short
    assert drawn.caption == (
        f"Title. Drawn are {line.y.size + 5:,} of 100,005 points: each stretch keeps its smallest"
        " and largest value."
    )
    assert values.thinned(drawn) == drawn  # which says it once
    strokes = [values.Strokes(long.x, y - 1, y, STYLE), Points(long.x, y, STYLE)]
    ends, heads = values.thinned(Figure([Panel(Axis(), Axis(), strokes)])).panels[0].marks
    np.testing.assert_array_equal(ends.high, heads.y)  # each stroke has its head
    assert (np.nanmin(line.y), np.nanmax(line.y), line.y.size <= 4000) == (-90, 90, True)
