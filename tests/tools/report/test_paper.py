# SPDX-License-Identifier: BSD-3-Clause
"""Figures for papers: widths, fonts in the file, grey print, the script that draws one again."""

import re
import subprocess
import sys

import numpy as np
import pytest
import synthetic
import weir
from matplotlib.figure import Figure
from PIL import Image
from test_sweep_page import write as write_sweep
from weir.base.errors import UserError
from weir.report import artists, data, grey, paper, script, sections, standalone, theme

GROUPS = (("copa", "copa", 2), ("cubic", "cubic", 2), ("newreno", "newreno", 2))


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return weir.open(
        synthetic.make_run(tmp_path_factory.mktemp("paper") / "run", groups=GROUPS, seconds=4)
    )


def drawn(run, name):
    paper.use()
    return paper.choose(sections.draw(data.read(run)), name)


@pytest.mark.parametrize(
    ("venue", "width", "inches"),
    [("ieee", "column", 3.48), ("usenix", "page", 7.0)],
)
def test_a_figure_is_as_wide_as_the_venues_column(run, tmp_path, venue, width, inches):
    figure = drawn(run, "rtt")
    paper.write(figure, tmp_path / "a.pdf", paper.Shape(width, venue=venue))
    [box] = re.findall(rb"/MediaBox \[([^\]]*)\]", (tmp_path / "a.pdf").read_bytes())
    assert float(box.split()[2]) / 72 == pytest.approx(inches, abs=0.01)


def test_every_font_of_a_pdf_is_true_type_and_in_it(run, tmp_path):
    """Type 3 fonts are refused by the publishers' checks."""
    paper.write(drawn(run, "goodput"), tmp_path / "a.pdf", paper.Shape())
    content = (tmp_path / "a.pdf").read_bytes()
    kinds = set(re.findall(rb"/Type /Font\s*/Subtype /(\w+)", content))
    assert kinds
    assert kinds <= {b"Type0", b"CIDFontType2", b"TrueType"}
    described = re.findall(rb"/Type /FontDescriptor", content)
    assert len(described) == len(re.findall(rb"/FontFile2 ", content)) >= 1


def test_lightness_is_that_of_cie():
    assert grey.lightness("white") == pytest.approx(1)
    assert grey.lightness("black") == 0
    assert grey.lightness("#777777") == pytest.approx(0.5003, abs=1e-3)


def test_lines_that_only_colour_tells_apart_get_another_form():
    figure = Figure()
    axes = figure.subplots()
    for n in range(12):
        axes.plot(range(40), np.arange(40) + n, color=["#ff0000", "#0000ff"][n % 2], label=str(n))
    axes.plot([0, 1], [0, 1], color="red", label="_not named")
    assert len(list(grey.alike(figure))) > 10
    grey.separate(figure)
    assert list(grey.alike(figure)) == []
    assert axes.lines[12].get_marker() == "None"


def test_areas_of_one_grey_get_hatches():
    figure = Figure()
    axes = figure.subplots()
    axes.stackplot([0, 1], [[1, 1], [1, 1], [1, 1]], colors=["#b00000", "#0050ff", "#efefef"],
                   labels=["a", "b", "c"])  # fmt: skip
    assert list(grey.alike(figure)) == [("a", "b")]
    grey.separate(figure)
    assert list(grey.alike(figure)) == []
    assert [area.get_hatch() for area in axes.collections] == [None, "////", None]


def test_every_figure_of_a_report_is_told_apart_in_grey(run):
    paper.use()
    for one in sections.draw(data.read(run)):
        figure = artists.drawn(one.figure)
        grey.separate(figure)
        assert list(grey.alike(figure)) == [], one.name


def test_every_pair_of_controls_is_told_apart_in_grey():
    figure = Figure()
    axes = figure.subplots()
    for cc in ("copa", "newreno", "cubic", "bbr", "prague", "vegas"):
        style = theme.style(cc)
        axes.plot([0, 1], [0, 1], color=style.colour, linestyle=style.dash, label=cc)
    grey.separate(figure)
    assert list(grey.alike(figure)) == []


def pixels(path):
    return np.asarray(Image.open(path).convert("RGB"), float)


@pytest.mark.parametrize("name", ["shares", "heat"])
def test_the_script_draws_the_same_picture(run, tmp_path, monkeypatch, name):
    monkeypatch.setattr(paper, "DPI", 100)
    if name == "heat":
        from test_sweep_page import made
        from weir.many import sweep_figures

        paper.use()
        path = write_sweep(tmp_path / "s")
        figure = sweep_figures.heat(*made(path, "delay", x="buffer", by="flows", facet="cc"))
    else:
        figure = drawn(run, name)
    out = tmp_path / f"{name}.png"
    picture, code, table = paper.write(figure, out, paper.Shape("page", code=True))
    assert (code.name, table.name) == (f"{name}.py", f"{name}.csv")
    repeated = tmp_path / "again.png"
    namespace = {"__name__": "script"}
    exec(compile(code.read_text(), str(code), "exec"), namespace)
    namespace["draw_figure"](namespace["FIGURE"], namespace["read_table"](table)).savefig(
        repeated, dpi=100
    )
    first, second = pixels(picture), pixels(repeated)
    assert first.shape == second.shape
    assert np.sqrt(np.mean((first - second) ** 2)) < 1  # of 255


@pytest.mark.slow
def test_the_script_runs_without_weir_and_shows_a_change_of_its_data(run, tmp_path):
    figure = drawn(run, "rtt")
    _, code, table = paper.write(figure, tmp_path / "rtt.pdf", paper.Shape(code=True))
    assert "weir" not in re.sub(r'"weir"|svg.hashsalt.*', "", code.read_text())
    before = (tmp_path / "rtt.pdf").read_bytes()
    done = subprocess.run([sys.executable, "-I", code], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert abs(len((tmp_path / "rtt.pdf").read_bytes()) - len(before)) < 0.02 * len(before)
    rows = standalone.read_table(table)
    assert list(rows) == sorted(rows)


@pytest.mark.slow
def test_the_command_names_all_files(weir_here, tmp_path):
    write_sweep(tmp_path / "s")
    words = ("plot", "s", "--x", "buffer", "--by", "cc", "--facet", "flows", "--venue", "ieee")
    done = weir_here(*words, "--code", "--out", "f.pdf")
    assert done.out == "f.pdf\nf.py\nf.csv\n"
    done = weir_here(*words, "--code", "--out", "f.csv")
    assert done.err == "weir: f.csv: --code is for a figure: .pdf, .png or .svg\n"
    with pytest.raises(UserError):
        script.check(tmp_path / "x.csv")
