# SPDX-License-Identifier: BSD-3-Clause
"""Each renderer draws a figure's columns: a page's JSON, the table, and what matplotlib draws.

All functions of the package that make a figure are among those that are tried.
"""

import ast
import base64
import itertools
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import synthetic
import weir
from matplotlib.figure import Figure as Canvas
from test_browser import every_mark
from test_linux_study import ALONE, MIX, pair
from test_many_figures import NUMBER, POINTS, SAMPLES
from test_sweep_page import made
from test_sweep_page import write as write_sweep
from weir.attack import figure as attack
from weir.bench import history
from weir.league import entry, standing
from weir.league import page as league
from weir.many import sweep_figures
from weir.report import artists, browser, comparison, data, many_figures, sections
from weir.report import figure as values
from weir.report import table as tables
from weir.report.figure import NONE, Bars, Box, Field, Line, Points, Polygon, Strokes, series
from weir.studies.evaluate import criteria, scene
from weir.studies.linux import figures as linux
from weir.study import claim, find
from weir.trace import statistics, steps

pytestmark = pytest.mark.slow  # matplotlib draws some forty figures

PACKAGE = Path(weir.__file__).parent
GROUPS = (("copa", "copa", 2), ("cubic", "cubic", 2))
STUDIES = sorted(path.parent for path in claim.OURS.glob("*/figures.py"))
KINDS = (
    *("run", "whole run", "comparison", "sweep", "many runs", "trace"),
    *("attack", "history", "league", "marks", *(folder.name for folder in STUDIES)),
)
# A run in which each study finds what it draws: modes, transfers, a video, 20 groups, losses.
WHOLE = {
    "duration": "8s",
    "warmup": "1s",
    "paths": {
        "forward": [
            {"link": {"rate": "20Mbit", "queue": {"fifo": {"limit": "10ms"}}}},
            {"delay": {"delay": "5ms"}},
        ],
        "reverse": [{"delay": {"delay": "5ms"}}],
    },
    "flows": [
        *[{"cc": cc, "source": {"media": {"max": "200kbit"}}} for cc in ("lola", "copa")],
        *[
            {"cc": "newreno", "base_rtt": {"uniform": {"min": "10ms", "max": "100ms"}}}
            | {"source": {"closed": {"think": "100ms", "sizes": {"law": "fixed", "mean": "50kB"}}}}
            for _ in range(18)
        ],
    ],
    "telemetry": {"level": 3, "segments": "yes"},
}
MEASURED = [
    history.Entry("cc", None, f"2026-01-0{day}", "here", {"copa": 10.0 + day}) for day in (1, 2)
]
USERS = 39  # of mvfst's population, which are the only runs that are found by a pattern
TYPES = {"f": np.float32, "d": np.float64}


class Same(claim.Found):
    """The runs of a study, all of them the same one."""

    def __init__(self, run):
        super().__init__({}, quick=True)
        self.run = run

    def runs(self, setup):
        return [self.run] * (USERS if "*" in str(setup) else 1)


def of_study(folder, run):
    if folder.name == "linux":  # which has pairs of runs
        return linux.draw([pair(ALONE), pair(MIX)])
    if folder.name == "evaluate":
        return criteria.study(scene.control_of("copa"), "copa").figures(Same(run))
    return find.load(folder)[-1].figures(Same(run))


def of_league():
    entries = entry.kept().rows
    placed = standing.standing(entries)
    one, cells, _ = placed.of("copa")
    return [
        league.places(placed),
        league.ratios(cells),
        league.trade_off(one, entry.base_of(entries)),
    ]


@pytest.fixture(scope="module")
def makers():
    """Functions that made a figure since the module's first test."""
    found, init = set(), values.Figure.__init__

    def recorded(self, *args, **named):
        code = sys._getframe(1).f_code
        found.add((Path(code.co_filename), code.co_name))
        init(self, *args, **named)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(values.Figure, "__init__", recorded)
        yield found


@pytest.fixture(scope="module")
def drawn(tmp_path_factory, weir_sim, makers):
    """Figures of each kind that the product has."""
    top = tmp_path_factory.mktemp("renderers")
    run = weir.open(synthetic.make_run(top / "run", groups=GROUPS, level=3, seconds=4))
    (top / "whole.yaml").write_text(json.dumps(WHOLE))
    subprocess.run([weir_sim, top / "whole.yaml", "--out", top / "whole"], check=True)
    whole = weir.open(top / "whole")
    swept = made(write_sweep(top / "sweep"), x="buffer", by="cc", facet="flows")
    heat = made(top / "sweep", "delay", x="buffer", by="flows", facet="cc")
    frames = {"pantheon": POINTS}
    trace = steps.make(np.arange(5) * 1e8, 6e8, np.array([1e6, 0, 3e6, 4e6, 2e6]))
    found = {
        "run": sections.draw(data.read(run)),
        "whole run": sections.draw(data.read(whole)),
        "comparison": comparison.figures_of([run, run]),
        "sweep": [sweep_figures.lines(*swept), sweep_figures.heat(*heat)],
        "many runs": [
            many_figures.figure(n, frames.get(n, SAMPLES), NUMBER) for n in many_figures.NAMES
        ],
        "trace": [statistics.figure(trace)],
        "attack": [attack.trace(run, run, run.config), attack.progress([0.1, 0.5], 0.1, "%")],
        "history": [history.figure(MEASURED)],
        "league": of_league(),
        "marks": every_mark(),
    }
    found |= {folder.name: of_study(folder, whole) for folder in STUDIES}
    return {kind: list(figures) for kind, figures in found.items()}


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


def test_all_that_makes_a_figure_is_among_them(drawn, makers):
    """A new kind of figure fails here until it stands in `drawn`."""
    found = {
        (path, function.name)
        for path in PACKAGE.rglob("*.py")
        if path.parent.name != "gym"  # which draws an array by matplotlib, at each step
        for function in ast.walk(ast.parse(path.read_text()))
        if isinstance(function, ast.FunctionDef)
        for call in ast.walk(function)
        if isinstance(call, ast.Call) and getattr(call.func, "id", "") == "Figure"
    }
    assert len(found) > 30
    assert found - makers == set()
