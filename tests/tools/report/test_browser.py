# SPDX-License-Identifier: BSD-3-Clause
"""Pages in headless Chromium: drawn, zoomed, switched, by keys, dark, in print, offline."""

import json
import re
import shutil
from dataclasses import replace

import numpy as np
import pytest
import weir
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import sync_playwright
from synthetic import make_run
from waiting import WAIT_S
from weir.analysis import folder
from weir.base.errors import UserError
from weir.base.page import Figures, Page, section
from weir.report import browser, comparison, document, page, theme
from weir.report import figure as values
from weir.report.figure import Axis, Band, Bars, Box, Field, Figure, Line, Panel, beside, floats
from weir.study import find, study_page
from weir.study.claim import Checked, Found

pytestmark = pytest.mark.slow  # each starts a browser

WIDTHS = (1280, 390)
BAD = ("error", "warning")
DRAWN = "() => [...document.querySelectorAll('.panel')].every(p => p.classList.contains('drawn'))"
WINDOW = "n => { const { min, max } = weir.charts[n].plot.scales.x; return [min, max] }"
TIMES = (
    "() => weir.charts.filter(c => c.panel.x.is_time && c.plot)"
    ".map(c => [c.plot.scales.x.min, c.plot.scales.x.max].map(v => +v.toFixed(6)).join())"
)
PIXELS = """() => { const { canvas } = weir.charts[0].plot.ctx, { width, height } = canvas;
  const copy = new OffscreenCanvas(width, height).getContext("2d", { willReadFrequently: true });
  copy.drawImage(canvas, 0, 0); return [...copy.getImageData(0, 0, width, height).data]; }"""
PAINTED = f"() => ({PIXELS})().filter((v, i) => i % 4 === 3 && v > 0).length"
BLACK = "weir.seen('#000000')"  # on this page
COLUMNS = "() => weir.charts.map(c => c.panel.marks.map(m => m.refs.map(r => Array.from(m[r]))))"
HOSTILE = "CUBIC </script><script>alert(1)</script> \"x' & <b>"
STROKES = """async () => { const { plot } = weir.charts[0], { ctx } = plot, { lineTo } = ctx;
  let corners = 0, highest = Infinity;
  ctx.lineTo = (x, y) => { corners += 1; highest = Math.min(highest, y); lineTo.call(ctx, x, y); };
  plot.redraw(); await new Promise((done) => setTimeout(done)); delete ctx.lineTo;
  return { corners, highest }; }"""
SECONDS = Axis("time (s)", 0, 10, is_time=True)
NAMES = [(0.0, "one"), (1.0, "a rather long name of a control"), (2.0, "three")]


def every_mark() -> list[Figure]:
    """Returns figures with all kinds of mark and scale."""
    copa, cubic, bbr = theme.styles_of([("Copa", "copa"), (HOSTILE, "cubic"), ("BBR", "bbr")])
    time_s = np.arange(0, 10, 0.01)
    wave = 5 + np.sin(time_s)
    gap = np.where((time_s > 4) & (time_s < 5), np.nan, wave)
    places = floats([0, 1, 2])
    shape = np.linspace(0, 6.2, 40)
    kept = [values.Span(0, 2, cubic, upright=True), Band(time_s, wave - 1, wave + 1, copa)]
    kept += [Line(time_s, gap, copa), Line(time_s, wave / 2, cubic, steps="post"), values.Rule(4.0)]
    stack = [Band(time_s, 0 * wave, wave, copa, stacked=True)]
    stack += [Band(time_s, wave, wave + 3, cubic, stacked=True)]
    bars = [Bars(places, floats(0.6), 0 * places, floats([3, 5, 2]), copa)]
    bars += [
        values.Strokes(places, floats([2, 4, 1]), floats([4, 6, 3]), bbr),
        values.Label(0, 3, HOSTILE),
    ]
    lying = Bars(places, floats(0.6), places, floats([3, 5, 9]), cubic, lying=True)
    points = [values.Points(time_s[1:60], wave[1:60], bbr, hollow=True)]
    named, log = Axis("", -0.5, 2.5, ticks=NAMES), Axis("RTT (ms)", scale="log")
    steps = Line(np.linspace(-100, 100, 50), shape[:1] + np.arange(50), copa, markers=1)
    return [
        beside(Panel(SECONDS, Axis("rate (Mbit/s)", 0), kept), Panel(SECONDS, Axis("all"), stack)),
        beside(Panel(named, Axis("share"), bars), Panel(SECONDS, named, [lying])),
        beside(Panel(log, Axis("loss", reversed=True), points)),
        beside(Panel(Axis(scale="symlog"), Axis(), [steps])),
        beside(Panel(named, Axis("ms"), [Box(1.0, wave, bbr)]),
               Panel(Axis(), Axis(), [Field(np.arange(6.0).reshape(2, 3), "queue (ms)", 0, 5)])),
        beside(Panel(Axis(), Axis(), [values.Polygon(np.cos(shape), np.sin(shape), copa)])),
    ]  # fmt: skip


@pytest.fixture(scope="module")
def chromium():
    program = shutil.which("chromium-headless-shell")
    assert program, "tests/check installs chromium-headless-shell"
    with sync_playwright() as playwright:
        options = {"args": ["--no-sandbox"], "timeout": WAIT_S * 1e3}
        browser = playwright.chromium.launch(executable_path=program, **options)
        browser.on("context", lambda context: context.set_default_timeout(WAIT_S * 1e3))
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    run = make_run(
        tmp_path_factory.mktemp("browser") / "run",
        groups=(("a", "copa", 2), ("b", "newreno", 2)),
        level=3,
        seconds=10,
    )
    return page.write(folder.load(run))


@pytest.fixture(scope="module")
def marks(tmp_path_factory):
    path = tmp_path_factory.mktemp("marks") / "marks.html"
    drawn = document.figures(
        replace(one, caption=f"Figure & {HOSTILE}. All.") for one in every_mark()
    )
    path.write_text(document.render(Page("All marks", section("Figures", drawn))))
    return path


@pytest.fixture
def opened(chromium):
    """Opens a page and draws all of it; fails at the end if the console named a fault."""
    contexts, wrong = [], []

    def open_(path, width=1280, **options):
        context = chromium.new_context(viewport={"width": width, "height": 900}, **options)
        contexts.append(context)
        shown = context.new_page()
        shown.on("pageerror", lambda error: wrong.append(str(error)))
        shown.on(
            "console", lambda said: said.type in ("error", "warning") and wrong.append(said.text)
        )
        asked = []
        shown.on("request", lambda request: asked.append(request.url))
        shown.goto(path.as_uri())
        for panel in shown.locator(".panel").all():
            panel.scroll_into_view_if_needed()
        shown.wait_for_function(DRAWN)
        assert [url for url in asked if not url.startswith("blob:")] == [path.as_uri()]
        return shown

    yield open_
    for context in contexts:
        context.close()
    assert wrong == []


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", ["report", "marks"])
def test_every_figure_is_drawn_and_fits_the_screen(opened, request, name, width):
    shown = opened(request.getfixturevalue(name), width)
    assert shown.evaluate("document.documentElement.scrollWidth") <= width
    for panel in shown.locator(".panel .uplot").all():
        box = panel.bounding_box()
        assert box["width"] > 300
        assert box["height"] >= 140


def test_the_page_has_the_columns_of_the_figures(opened, marks):
    found = opened(marks).evaluate(COLUMNS)
    panels = [panel for figure in every_mark() for panel in figure.panels]
    assert len(found) == len(panels)
    for panel, columns in zip(panels, found, strict=True):
        for mark, own in zip(panel.marks, columns, strict=True):
            known = [v.ravel() for v in vars(mark).values() if isinstance(v, np.ndarray)]
            known = [mark.quartiles().outliers] if isinstance(mark, Box) else known
            assert len(own) == len(known)
            for column, wanted in zip(own, known, strict=True):
                numbers = [np.nan if v is None else v for v in column]
                np.testing.assert_allclose(numbers, wanted, rtol=1e-6, atol=1e-6)


def test_a_name_is_a_text(opened, marks):
    shown = opened(marks)
    assert shown.locator("figure").first.locator(".legend button").nth(0).text_content() == HOSTILE
    assert (
        shown.locator("figure figcaption b").first.text_content()
        == f"Figure 1. Figure & {HOSTILE}."
    )


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_barrier(opened, report, marks, scheme):
    for path in (report, marks):
        found = Axe().run(opened(path, color_scheme=scheme)).response["violations"]
        assert [(one["id"], one["nodes"][0]["html"]) for one in found] == []


@pytest.mark.parametrize("width", WIDTHS)
def test_runs_side_by_side(opened, report, tmp_path, width):
    other = make_run(tmp_path / "other", rate_bps=2e8, seconds=10)
    loaded = [folder.load(report.parent), folder.load(other)]
    shown = opened(comparison.write(comparison.read(loaded), tmp_path / "c.html"), width)
    names = shown.locator("figure").first.locator(".legend button").all_text_contents()
    assert names == ["A: run", "B: other"]
    assert shown.evaluate("document.documentElement.scrollWidth") <= width


def test_a_figure_is_a_cell_of_a_notebook(chromium, report):
    chosen = weir.open(report.parent).figure("rtt")
    assert len(chosen.paper().axes) == len(chosen.value.panels)
    assert chosen.frame().height > 0
    shown = chromium.new_page()
    shown.set_content(chosen._repr_html_())
    frame = shown.frame_locator("iframe")
    frame.locator(".panel.drawn").first.wait_for()
    assert frame.locator("figcaption").text_content().startswith("Figure 1. Round-trip time")
    shown.close()


def test_on_a_phone_the_names_of_rows_stay_and_long_cells_wrap(opened, report, tmp_path):
    loaded = [folder.load(make_run(tmp_path / name, seconds=5)) for name in "abcdef"]
    path = tmp_path / "a" / "summary.json"
    known = json.loads(path.read_text())
    path.write_text(json.dumps({**known, "verdict": "the host stole a CPU for long, " * 9}))
    loaded[0] = folder.load(tmp_path / "a")
    shown = opened(comparison.write(comparison.read(loaded), tmp_path / "c.html"), 390)
    table = shown.locator(".scroll").first
    name = table.locator("td").first
    left = name.bounding_box()["x"]
    table.evaluate("t => t.scrollLeft = 300")
    assert table.evaluate("t => t.scrollLeft") == 300
    assert name.bounding_box()["x"] == pytest.approx(left)
    assert shown.locator("td.long").first.bounding_box()["width"] < 390


def test_a_grid_has_its_rows_and_on_a_phone_a_name_for_each_panel(opened, tmp_path):
    """Queues stood below another control's rates, without a title, and began at another place."""
    [style] = theme.styles_of([("Copa", "copa")])
    names = [(title, row) for row in ("rate", "queue") for title in ("Copa", "CUBIC", "BBR")]
    largest = {"rate": 1, "queue": 1e5}
    figure = Figure(
        [Panel(Axis(), Axis(row if title == "Copa" else ""),
               [Line(np.arange(9.0), np.arange(9.0) * largest[row], style)],
               title if row == "rate" else "")
         for title, row in names],
        columns=3, caption="Grid.",
    )  # fmt: skip
    (tmp_path / "grid.html").write_text(
        document.render(Page("Grid", section("Figures", document.figures([figure]))))
    )
    page = opened(tmp_path / "grid.html")
    for part in (".panel", ".u-over"):
        places = [one.bounding_box() for one in page.locator(part).all()]
        assert len({place["y"] for place in places}) == 2
        assert [place["x"] for place in places[:3]] == [place["x"] for place in places[3:]]
    titles = opened(tmp_path / "grid.html", 390).locator(".u-title").all()
    found = [one.text_content() for one in sorted(titles, key=lambda one: one.bounding_box()["y"])]
    assert found == ["Copa", "Copa", "CUBIC, rate", "CUBIC, queue", "BBR, rate", "BBR, queue"]


def test_a_link_leads_to_each_figure(opened, report):
    shown = opened(report)
    links = shown.locator("nav a").all()
    assert len(links) == shown.locator("figure").count()
    for link in links:
        caption = shown.locator(f"{link.get_attribute('href')} figcaption b").text_content()
        assert link.text_content() in caption


def test_a_drag_zooms_all_time_axes_and_home_shows_all_again(opened, marks):
    shown = opened(marks)
    whole = shown.evaluate(TIMES)
    assert len(set(whole)) == 1
    assert len(whole) == 3
    panel = shown.locator(".panel").first
    panel.scroll_into_view_if_needed()
    box = panel.locator(".u-over").bounding_box()
    y = box["y"] + box["height"] / 2
    shown.mouse.move(box["x"] + box["width"] * 0.4, y)
    shown.mouse.down()
    shown.mouse.move(box["x"] + box["width"] * 0.6, y + 40, steps=5)
    shown.mouse.up()
    shown.wait_for_function(f"[0].every(n => ({WINDOW})(n)[0] > 1)")
    assert len(set(shown.evaluate(TIMES))) == 1
    panel.press("Home")
    assert shown.evaluate(TIMES) == whole


def test_the_key_hides_a_name_or_all_others(opened, marks):
    shown = opened(marks)
    buttons = shown.locator("figure").first.locator(".legend button")
    off = "() => [...weir.charts[0].figure.off]"
    names = [button.get_attribute("data-name") for button in buttons.all()]
    painted = shown.evaluate(PAINTED)
    buttons.nth(0).press("Enter")
    assert buttons.nth(0).get_attribute("aria-pressed") == "false"
    assert shown.evaluate(off) == names[:1]
    shown.wait_for_function(f"({PAINTED})() < {painted}")
    buttons.nth(0).press("Enter")
    assert shown.evaluate(off) == []
    buttons.nth(1).press("Shift+Enter")
    assert shown.evaluate(off) == [*names[:1], *names[2:]]
    buttons.nth(1).press("Shift+Enter")
    assert shown.evaluate(off) == []
    shown.wait_for_function(f"({PAINTED})() === {painted}")


def test_pointer_and_keys_show_values(opened, marks):
    shown = opened(marks)
    panel = shown.locator(".panel").first
    panel.scroll_into_view_if_needed()
    box = panel.locator(".u-over").bounding_box()
    shown.mouse.move(box["x"] + box["width"] * 0.25, box["y"] + box["height"] / 2, steps=4)
    said = panel.locator("output")
    x, copa = re.match(r"time \(s\) ([\d.]+): Copa ([\d.]+)", said.text_content()).groups()
    assert float(x) == pytest.approx(2.5, abs=0.1)
    assert float(copa) == pytest.approx(5 + np.sin(float(x)), abs=0.02)
    panel.press("ArrowRight")
    assert float(said.text_content().split()[2].rstrip(":")) == pytest.approx(
        float(x) + 0.2, abs=0.01
    )
    panel.press("+")
    start, end = shown.evaluate(WINDOW, 0)
    assert end - start == pytest.approx(5)
    panel.press("Shift+ArrowRight")
    assert shown.evaluate(WINDOW, 0) == pytest.approx([start + 0.5, end + 0.5])


def test_points_lead_to_their_runs(opened, tmp_path):
    def runs(*names):
        return [f"{name}%2Cseed%3D{n}/report.html" for name in names for n in range(2)]

    style = theme.style("", "", 0)
    hrefs = [runs("a"), runs("b"), [], ["c/"]]
    line = Line(floats([1, 2, 3, 4]), floats([1, 2, 3, 4]), style, markers=1, hrefs=hrefs)
    field = Field(np.arange(4.0).reshape(2, 2), "ms", 0, 3, hrefs=[*hrefs[:3], runs("a")])
    drawn = [Figure([Panel(Axis("x"), Axis("y"), [one])], caption="One.") for one in (line, field)]
    path = tmp_path / "runs.html"
    path.write_text(document.render(Page("Runs", section("Figures", document.figures(drawn)))))
    assert path.read_text().count('"b%2C"') == 1  # in both figures
    shown = opened(path)
    panel, squares = shown.locator(".panel").all()
    listed = panel.locator(".runs a")
    for key, count in (("ArrowRight", 2), ("ArrowRight", 2), ("ArrowRight", 1), ("ArrowLeft", 2)):
        panel.press(key)
        assert f"lists {count} run" in panel.locator("output").text_content()
    panel.press("Enter")
    assert listed.all_text_contents() == ["seed=0", "seed=1"]
    assert shown.evaluate("document.activeElement.getAttribute('href')") == runs("b")[0]
    box = panel.locator(".u-over").bounding_box()
    panel.locator(".u-over").click(position={"x": box["width"] - 20, "y": 20})
    assert listed.all_text_contents() == ["c"]
    for key in ("ArrowRight", "ArrowRight", "ArrowUp", "Enter"):
        squares.press(key)
    assert [one.get_attribute("href") for one in squares.locator(".runs a").all()] == runs("a")
    assert Axe().run(shown).response["violations"] == []


def test_a_million_points_are_drawn_as_few(opened, tmp_path):
    """Each column of pixels keeps its extremes."""
    y = np.random.default_rng(1).normal(0, 1, 100_000)
    y[50_000], y[70_000:75_000] = 100, np.nan
    figure = Figure(
        [Panel(Axis(), Axis(), [Line(floats(np.arange(y.size)), y, theme.style("", "", 0))])]
    )
    whole = replace(document.shown(figure), data=browser.embedded(figure))
    path = tmp_path / "many.html"
    path.write_text(document.render(Page("Many", [Figures([whole])])))
    shown = opened(path)
    drawn = shown.evaluate(STROKES)
    assert 100 < drawn["corners"] < 10_000
    highest = shown.evaluate("weir.charts[0].plot.valToPos(100, 'y', true)")
    assert drawn["highest"] == pytest.approx(highest, abs=1)


def test_over_a_stack_the_total_is_shown(opened, marks):
    shown = opened(marks)
    panel = shown.locator(".panel").nth(1)
    panel.press("ArrowRight")
    said = panel.locator("output").text_content()
    total, copa, cubic = map(float, re.findall(r"(?:total|Copa|<b>) ([\d.]+)", said))
    assert (cubic, total) == (3, pytest.approx(copa + 3, abs=0.01))


def test_a_finger_on_a_chart_scrolls_the_page(opened, report):
    shown = opened(report, 390, has_touch=True, is_mobile=True)
    found = "[...document.querySelectorAll('.uplot *')].map(e => getComputedStyle(e).touchAction)"
    assert set(shown.evaluate(found)) == {"auto"}


def test_two_fingers_zoom_around_their_middle(opened, marks):
    shown = opened(marks, 390, has_touch=True, is_mobile=True)
    shown.locator(".panel").first.scroll_into_view_if_needed()
    box = shown.locator(".panel .u-over").first.bounding_box()
    middle, y = box["x"] + box["width"] / 4, box["y"] + box["height"] / 2
    fingers = shown.context.new_cdp_session(shown)
    for kind, apart in (("touchStart", 20), ("touchMove", 40)):
        points = [{"x": middle + side * apart / 2, "y": y, "id": side + 1} for side in (-1, 1)]
        fingers.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
    fingers.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    # Of 0 to 10 s half; the middle of the fingers, 2.5 s, stays where it was.
    assert shown.evaluate(WINDOW, 0) == pytest.approx([1.25, 6.25], abs=0.1)


def test_pages_with_figures_twice_have_each_number_once(opened, tmp_path):
    drawn = document.figures(replace(one, caption="All.") for one in every_mark()[:2])
    (tmp_path / "twice.html").write_text(document.render(Page("Twice", [drawn, drawn])))
    shown = opened(tmp_path / "twice.html")
    ids = shown.evaluate("[...document.querySelectorAll('[id]')].map(e => e.id)")
    assert len(ids) == len(set(ids))
    assert shown.locator("nav a").last.get_attribute("href") == "#figure-4"


def test_dark_and_print(opened, marks):
    shown = opened(marks, color_scheme="dark")
    paper = shown.evaluate("getComputedStyle(document.body).backgroundColor")
    assert sum(map(int, re.findall(r"\d+", paper)[:3])) < 150
    assert int(shown.evaluate(BLACK)[1:3], 16) > 140
    shown.emulate_media(media="print")
    shown.wait_for_function("weir.charts.every(c => c.plot.ctx.canvas.width > 3.9 * c.plot.width)")
    sizes = shown.evaluate("weir.charts.flatMap(c => c.plot.axes.map(a => a.labelFont[1]))")
    assert min(sizes) >= 6  # uPlot scales whole numbers of pixels only
    assert shown.evaluate(BLACK) == "#000000"
    shown.emulate_media(media="screen")
    shown.wait_for_function("weir.charts.every(c => c.plot.ctx.canvas.width < 1.1 * c.plot.width)")


def test_print_has_figures_that_were_not_seen(chromium, marks):
    shown = chromium.new_page(viewport={"width": 1280, "height": 300})
    shown.goto(marks.as_uri())
    assert shown.locator(".panel:not(.drawn)").count() > 0
    assert b"/Subtype /Image" not in shown.pdf()  # Chromium prints a canvas as vectors
    assert shown.locator(".panel:not(.drawn)").count() == 0
    windows = "weir.charts.map(c => Object.values(c.plot.scales).map(s => s.max - s.min > 0))"
    assert {one for chart in shown.evaluate(windows) for one in chart} == {True}
    shown.close()


def test_without_a_script_the_page_says_so_and_has_the_numbers(chromium, report):
    context = chromium.new_context(java_script_enabled=False)
    shown = context.new_page()
    shown.goto(report.as_uri())
    assert "A script draws the figures" in shown.locator("noscript").first.text_content()
    shown.locator("noscript a").click()
    assert shown.url.endswith("#data")
    assert not shown.locator(".legend").first.is_visible()
    assert shown.locator("details.numbers").first.is_visible()
    context.close()


def test_another_script_than_the_known_one_is_refused(monkeypatch):
    monkeypatch.setitem(browser.SHA256, browser.SCRIPT, "0" * 64)
    browser.library.cache_clear()
    with pytest.raises(UserError, match="install metaflow-card-uplot"):
        browser.library(browser.SCRIPT)
    browser.library.cache_clear()


A4_PX = 672  # between the margins of page.css: 210 mm less 2 × 16 mm, at 96 px per inch
SEEN_TABLES = """() => [...document.querySelectorAll('table')]
.filter(t => t.offsetWidth > 0).map(t => ({
  right: Math.max(...[...t.querySelectorAll('th, td')].map(c => c.getBoundingClientRect().right)),
  names: [...t.querySelectorAll('thead :is(th, td)')].map(c => c.textContent),
  rows: t.querySelectorAll('tbody tr').length,
  type: parseFloat(getComputedStyle(t).fontSize),
  whole: getComputedStyle(t).breakInside,
}))"""


def test_no_column_is_cut_in_print(opened, tmp_path):
    """Of eight runs, three were printed."""
    loaded = [folder.load(make_run(tmp_path / f"{c}-{c * 14}", seconds=3)) for c in "abcdefgh"]
    shown = opened(comparison.write(comparison.read(loaded), tmp_path / "c.html"))
    shown.set_viewport_size({"width": A4_PX, "height": 900})
    on_screen = shown.evaluate(SEEN_TABLES)
    shown.emulate_media(media="print")
    printed = shown.evaluate(SEEN_TABLES)
    assert max(table["right"] for table in printed) <= A4_PX
    assert min(table["type"] for table in printed) >= 6.5 * 96 / 72 - 0.1  # points
    numbers = [table for table in printed if table["rows"] == on_screen[0]["rows"]]
    assert len(numbers) > 1  # too wide for one page
    assert {table["names"][0] for table in numbers} == {""}  # each has the names of its rows
    assert [n for table in numbers for n in table["names"][1:]] == on_screen[0]["names"][1:]


def test_the_pages_of_studies_fit_paper_and_phone(opened, tmp_path):
    (papers,) = find.chosen("papers")
    checked = [Checked(e, one, (1.0,)) for e in papers.experiments for one in e.claims]
    path = tmp_path / "papers.html"
    found = Found({}, True)
    path.write_text(study_page.html(papers, "quick", checked, found, {}, tmp_path))
    shown = opened(path, 390)
    table = shown.locator(".scroll").first
    name = table.locator("tbody td").first
    left = name.bounding_box()["x"]
    assert name.bounding_box()["width"] < 0.45 * 390  # room for the other columns
    table.evaluate("t => t.scrollLeft = 300")
    assert name.bounding_box()["x"] == pytest.approx(left)
    shown.set_viewport_size({"width": A4_PX, "height": 900})
    shown.emulate_media(media="print")
    printed = shown.evaluate(SEEN_TABLES)
    assert max(table["right"] for table in printed) <= A4_PX


def test_how_a_run_ended_is_on_top_and_coloured(opened, report, tmp_path):
    def colour(path):
        shown = opened(path)
        status = shown.locator("header .status")
        assert status.bounding_box()["y"] < shown.locator("dl").bounding_box()["y"]
        said = status.evaluate("e => getComputedStyle(e).color")
        return status.text_content(), [int(part) for part in re.findall(r"\d+", said)[:3]]

    text, (red, green, _) = colour(report)
    assert text == "ok: every packet is accounted for"
    assert green > red
    run = make_run(tmp_path / "run", seconds=5)
    known = json.loads((run / "summary.json").read_text())
    known["ledger"]["balanced"] = False
    (run / "summary.json").write_text(json.dumps(known))
    text, (red, green, _) = colour(page.write(folder.load(run)))
    assert text == "The ledger is not balanced: packets are missing from it."
    assert red > green
