# SPDX-License-Identifier: BSD-3-Clause
"""Figures for papers: widths, fonts in the file, grey print, the script that draws one again."""

import re
import subprocess
import sys

import numpy as np
import pytest
import synthetic
import weir
from PIL import Image
from test_sweep_page import write as write_sweep
from weir.base.errors import UserError
from weir.report import code, data, glance, grey, paper, sections
from weir.report.figure import Axis, Figure, Line, Panel, stacked
from weir.report.theme import Style

GROUPS = (("copa", "copa", 2), ("cubic", "cubic", 2), ("newreno", "newreno", 2))


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return weir.open(
        synthetic.make_run(tmp_path_factory.mktemp("paper") / "run", groups=GROUPS, seconds=4)
    )


def drawn(run, name):
    return paper.choose(sections.draw(data.read(run)), name)


@pytest.mark.parametrize(
    ("venue", "width", "inches"), [("ieee", "column", 3.48), ("usenix", "page", 7.0)]
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
    assert grey.lightness("#ffffff") == pytest.approx(1)
    assert grey.lightness("#000000") == 0
    assert grey.lightness("#777777") == pytest.approx(0.5003, abs=1e-3)


def one_panel(marks):
    return Figure([Panel(Axis(), Axis(), marks)])


def alike(figure):
    return [pair for panel in figure.panels for pair in grey.alike(panel)]


def test_marks_that_only_colour_tells_apart_get_another_form():
    x = np.arange(40.0)
    lines = [Line(x, x + n, Style(str(n), ("#ff0000", "#0000ff")[n % 2], "")) for n in range(12)]
    figure = one_panel([*lines, Line(x, x, Style("", "#ff0000", ""))])
    assert len(alike(figure)) > 10
    apart = grey.separate(figure)
    assert alike(apart) == []
    assert apart.panels[0].marks[12] == figure.panels[0].marks[12]  # it has no name
    colours = {"a": "#b00000", "b": "#0050ff", "c": "#efefef"}
    styles = [Style(label, colour, "") for label, colour in colours.items()]
    figure = one_panel(stacked(x, [x, x, x], styles))
    assert alike(figure) == [("a", "b")]
    apart = grey.separate(figure)
    assert alike(apart) == []
    assert [mark.style.hatch for mark in apart.panels[0].marks] == ["", "////", ""]


def test_every_figure_of_a_report_is_told_apart_in_grey(run):
    for one in sections.draw(data.read(run)):
        assert alike(grey.separate(one)) == [], one.name


def pixels(path):
    return np.asarray(Image.open(path).convert("RGB"), float)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["goodput", "queue", "shares", "heat"])
def test_the_script_draws_it_again_without_weir(run, tmp_path, name):
    if name == "heat":
        from test_sweep_page import made
        from weir.many import sweep_figures

        path = write_sweep(tmp_path / "s")
        figure = sweep_figures.heat(*made(path, "delay", x="buffer", by="flows", facet="cc"))
    else:
        figure = drawn(run, name)
    picture, script, csv = paper.write(figure, tmp_path / f"{name}.png", paper.Shape(code=True))
    assert (script.name, csv.name) == (f"{name}.py", f"{name}.csv")
    assert "import weir" not in script.read_text()
    if figure.name:
        assert glance.Chosen(figure).code() == script.read_text().replace(".png", ".pdf")
    repeated = tmp_path / "again.png"
    done = subprocess.run([sys.executable, "-I", script, repeated], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    first, second = (pixels(each) for each in (picture, repeated))
    assert (first < 250).mean() == pytest.approx((second < 250).mean(), rel=0.2)  # the ink


@pytest.mark.slow
def test_the_command_names_all_files(weir_here, tmp_path):
    write_sweep(tmp_path / "s")
    words = ("plot", "s", "--x", "buffer", "--by", "cc", "--facet", "flows", "--venue", "ieee")
    done = weir_here(*words, "--code", "--out", "f.pdf")
    assert done.out == "f.pdf\nf.py\nf.csv\n"
    done = weir_here(*words, "--code", "--out", "f.csv")
    assert done.err == "weir: f.csv: --code is for a figure: .pdf, .png or .svg\n"
    with pytest.raises(UserError):
        code.check(tmp_path / "x.csv")
