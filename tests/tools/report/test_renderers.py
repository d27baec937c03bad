# SPDX-License-Identifier: BSD-3-Clause
"""Each renderer draws a figure's columns: a page's JSON, the table, and what matplotlib draws."""

import base64
import itertools
import json
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
import synthetic
import weir
from matplotlib.figure import Figure as Canvas
from test_browser import every_mark
from test_linux_study import ALONE, MIX, pair
from test_many_figures import NUMBER, POINTS, SAMPLES
from test_segments import ROWS
from test_segments import frame as segments_of
from test_sweep_page import made
from test_sweep_page import write as write_sweep
from weir.analysis import segments
from weir.attack import figure as attack
from weir.many import sweep_figures
from weir.report import artists, browser, comparison, data, many_figures, sections, segment_figures
from weir.report import table as tables
from weir.report.figure import NONE, Bars, Box, Field, Line, Points, Polygon, Strokes, series
from weir.studies.linux import figures as linux
from weir.trace import statistics, steps

pytestmark = pytest.mark.slow  # matplotlib draws some forty figures

GROUPS = (("copa", "copa", 2), ("cubic", "cubic", 2))
KINDS = ("run", "comparison", "sweep", "many runs", "trace", "segments", "attack", "linux", "marks")
TYPES = {"f": np.float32, "d": np.float64}


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    """Figures of each kind that the product has."""
    top = tmp_path_factory.mktemp("renderers")
    run = weir.open(synthetic.make_run(top / "run", groups=GROUPS, level=3, seconds=4))
    swept = made(write_sweep(top / "sweep"), x="buffer", by="cc", facet="flows")
    heat = made(top / "sweep", "delay", x="buffer", by="flows", facet="cc")
    frames = {"pantheon": POINTS}
    trace = steps.make(np.arange(5) * 1e8, 6e8, np.array([1e6, 0, 3e6, 4e6, 2e6]))
    found = (
        sections.draw(data.read(run)),
        comparison.figures_of([run, run]),
        [sweep_figures.lines(*swept), sweep_figures.heat(*heat)],
        [many_figures.figure(n, frames.get(n, SAMPLES), NUMBER) for n in many_figures.NAMES],
        [statistics.figure(trace)],
        [segment_figures.sequence(segments.numbered(segments_of(ROWS)), "flow 0")],
        [attack.trace(run, run, run.config), attack.progress([0.1, 0.5], 0.1, "%")],
        linux.draw([pair(ALONE), pair(MIX)]),
        every_mark(),
    )
    return dict(zip(KINDS, map(list, found), strict=True))


@pytest.mark.parametrize("kind", KINDS)
def test_every_renderer_has_the_columns_of_the_value(drawn, kind):
    assert drawn[kind]
    for one in drawn[kind]:
        frame, page = tables.frame(one), json.loads(browser.embedded(one))
        columns = [np.frombuffer(base64.b64decode(c), TYPES[t]) for t, c in page["columns"]]
        for number, (panel, shown) in enumerate(zip(one.panels, page["panels"], strict=True), 1):
            drawn_by = artists.draw_panel(Canvas().add_subplot(), panel)
            for place, (mark, own) in enumerate(zip(panel.marks, shown["marks"], strict=True), 1):
                rows = frame.filter((pl.col("panel") == number) & (pl.col("mark") == place))
                wanted = [rows[name].fill_null(np.nan).to_numpy() for name in ("x", "y")]
                same(wanted, joined(mark))
                if not isinstance(mark, Box):  # whose quartiles a page has, and not its values
                    refs = {n: columns[own[n]] for n in own["refs"] if n != "links"}
                    shapes = {n: v.reshape(np.shape(getattr(mark, n))) for n, v in refs.items()}
                    same(wanted, joined(replace(mark, **shapes)))
                same_drawn(wanted, mark, drawn_by[id(mark)])


def joined(mark):
    found = [each[1:] for each in series(mark)] or [(NONE, NONE)]
    return [np.concatenate(parts) for parts in zip(*found, strict=True)]


def same(wanted, found):
    for a, b in zip(wanted, found, strict=True):
        span = np.ptp(a[np.isfinite(a)]) if np.isfinite(a).any() else 0.0
        # A page has float32 where that is within 1e-6 of a column's range: browser.EXACT.
        np.testing.assert_allclose(b, a, rtol=2e-6, atol=2e-6 * span)


def same_drawn(wanted, mark, artist):
    """Compares with the artist; bands and boxes are polygons of it with corners of their own."""
    if isinstance(mark, Line | Polygon) or (isinstance(mark, Points) and not mark.at_edge):
        same(wanted, [np.asarray(artist.get_xdata()), np.asarray(artist.get_ydata())])
    elif isinstance(mark, Strokes):
        known = [np.asarray(ends) for ends in artist.get_segments() if len(ends)]
        ends = np.array(known).reshape(-1, 2, 2).transpose(2, 1, 0).reshape(2, -1)
        both = np.isfinite(wanted).all(axis=0)
        same([column[both] for column in wanted], list(ends[:, np.isfinite(ends).all(axis=0)]))
    elif isinstance(mark, Bars):
        boxes = [(*p.get_xy(), p.get_width(), p.get_height()) for p in artist]
        x, y, width, height = np.array(boxes).reshape(-1, 4).T
        if mark.lying:
            same(wanted, [np.concatenate([x, x + width]), np.tile(y + height / 2, 2)])
        else:
            same(wanted, [np.tile(x + width / 2, 2), np.concatenate([y, y + height])])
    elif isinstance(mark, Field):
        same(wanted[1:], [np.ma.filled(artist.get_array(), np.nan).ravel()])
    elif isinstance(mark, Box):
        low, high = np.nanmin(artist.get_ydata()), np.nanmax(artist.get_ydata())
        assert (low, high) == pytest.approx((mark.quartiles().low, mark.quartiles().high))


def test_all_marks_are_among_them(drawn):
    everything = itertools.chain(*drawn.values())
    kinds = {type(mark).__name__ for one in everything for p in one.panels for mark in p.marks}
    assert kinds == {kind.__name__ for kind in browser.Mark.__args__}
