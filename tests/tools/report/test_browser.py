# SPDX-License-Identifier: BSD-3-Clause
"""Reports in headless Chromium: drawn, zoomed, switched, by keys, dark, in print, offline."""

import json
import re
import shutil

import pytest
from playwright.sync_api import sync_playwright
from synthetic import make_run
from weir.analysis import folder
from weir.report import comparison, page
from weir.study import find, study_page
from weir.study.claim import Checked, Found

pytestmark = pytest.mark.slow  # each starts a browser

WIDTHS = (1280, 390)
DRAWN = "() => [...document.querySelectorAll('.panel')].every(p => p.classList.contains('drawn'))"
WINDOW = "n => { const r = weir.plots[n].plot.x_range; return [r.start, r.end] }"
TIMES = (
    "() => weir.plots.filter(e => e.plot.tags.includes('time'))"
    ".map(e => [e.plot.x_range.start, e.plot.x_range.end].map(v => +v.toFixed(6)).join())"
)


@pytest.fixture(scope="module")
def chromium():
    program = shutil.which("chromium-headless-shell")
    assert program, "tests/check installs chromium-headless-shell"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
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
def test_every_figure_is_drawn_and_fits_the_screen(opened, report, width):
    shown = opened(report, width)
    assert shown.evaluate("document.documentElement.scrollWidth") <= width
    assert shown.locator("figure.failed").count() == 0
    for panel in shown.locator(".panel .canvas").all():
        box = panel.bounding_box()
        assert box["width"] > 300
        assert box["height"] >= 140
    assert not shown.locator("figure:has(.panel) .static").first.is_visible()


@pytest.mark.parametrize("width", WIDTHS)
def test_runs_side_by_side(opened, report, tmp_path, width):
    other = make_run(tmp_path / "other", rate_bps=2e8, seconds=10)
    loaded = [folder.load(report.parent), folder.load(other)]
    shown = opened(comparison.write(comparison.read(loaded), tmp_path / "c.html"), width)
    assert shown.evaluate("document.documentElement.scrollWidth") <= width
    assert shown.locator("figure.failed").count() == 0
    names = shown.locator("figure").first.locator(".legend button").all_text_contents()
    assert names == ["A: run", "B: other"]


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


def test_a_link_leads_to_each_figure(opened, report):
    shown = opened(report)
    links = shown.locator("nav a").all()
    assert len(links) == shown.locator("figure").count()
    for link in links:
        caption = shown.locator(f"{link.get_attribute('href')} figcaption b").text_content()
        assert link.text_content() in caption


def test_a_drag_zooms_all_time_axes_and_home_shows_all_again(opened, report):
    shown = opened(report)
    whole = shown.evaluate(TIMES)
    assert len(set(whole)) == 1
    assert len(whole) >= 5
    panel = shown.locator(".panel").first
    panel.scroll_into_view_if_needed()
    box = panel.locator(".canvas").bounding_box()
    y = box["y"] + box["height"] / 2
    shown.mouse.move(box["x"] + box["width"] * 0.4, y)
    shown.mouse.down()
    shown.mouse.move(box["x"] + box["width"] * 0.6, y + 40, steps=5)
    shown.mouse.up()
    shown.wait_for_function(f"[0].every(n => ({WINDOW})(n)[0] > 1)")
    assert len(set(shown.evaluate(TIMES))) == 1
    panel.press("Home")
    assert shown.evaluate(TIMES) == whole


def test_a_legend_button_hides_what_it_names(opened, report):
    shown = opened(report)
    figure = shown.locator("figure").first
    button = figure.locator(".legend button").first
    name = button.get_attribute("data-name")
    visible = (
        "name => weir.plots[0].plot.renderers.filter(r => r.name === name).map(r => r.visible)"
    )
    assert set(shown.evaluate(visible, name)) == {True}
    button.focus()
    shown.keyboard.press("Enter")
    assert button.get_attribute("aria-pressed") == "false"
    assert set(shown.evaluate(visible, name)) == {False}
    shown.keyboard.press("Enter")
    assert set(shown.evaluate(visible, name)) == {True}


def test_pointer_and_keys_show_values(opened, report):
    shown = opened(report)
    panel = shown.locator(".panel").nth(1)
    panel.scroll_into_view_if_needed()
    box = panel.locator(".canvas").bounding_box()
    shown.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2, steps=4)
    said = panel.locator("output")
    shown.wait_for_function("weir.plots.some(e => e.say.textContent)")
    assert re.match(r"time \(s\) [\d.]+: .*flow 0 [\d.]+", said.text_content())
    before = said.text_content()
    panel.press("ArrowRight")
    assert said.text_content() != before
    start, end = shown.evaluate(WINDOW, 1)
    panel.press("+")
    assert shown.evaluate(WINDOW, 1)[1] - shown.evaluate(WINDOW, 1)[0] == pytest.approx(
        (end - start) / 2
    )


def test_over_a_stack_the_total_is_shown(opened, report):
    shown = opened(report)
    panel = shown.locator(".panel").first
    panel.scroll_into_view_if_needed()
    panel.press("ArrowRight")
    said = panel.locator("output").text_content()
    found = dict(re.findall(r"(total|[ab], flow \d|link, \S+ \S+) ([\d.]+)", said))
    total = float(found.pop("total"))
    flows = [float(value) for name, value in found.items() if "flow" in name]
    assert len(flows) == 4
    assert total == pytest.approx(sum(flows), rel=0.01)


def test_a_finger_on_a_chart_scrolls_the_page(opened, report):
    shown = opened(report, 390, has_touch=True, is_mobile=True)
    assert shown.evaluate("matchMedia('(pointer: coarse)').matches")
    found = shown.evaluate(
        """() => {
          const found = [];
          const walk = (root) => root.querySelectorAll("*").forEach((e) => {
            if (e.classList.contains("bk-events")) found.push(getComputedStyle(e).touchAction);
            if (e.shadowRoot) walk(e.shadowRoot);
          });
          walk(document);
          return found;
        }"""
    )
    assert len(found) >= 10
    assert "none" not in found


def test_dark_and_print(opened, report):
    shown = opened(report, color_scheme="dark")
    paper = shown.evaluate("getComputedStyle(document.body).backgroundColor")
    ink = shown.evaluate("weir.plots[0].plot.below[0].major_label_text_color")
    assert sum(map(int, re.findall(r"\d+", paper)[:3])) < 150
    assert int(ink[1:3], 16) > 200
    shown.emulate_media(color_scheme="light")
    shown.wait_for_function("weir.plots[0].plot.below[0].major_label_text_color === '#222'")
    shown.emulate_media(media="print")
    assert shown.locator("figure .static").first.is_visible()
    assert not shown.locator(".panel").first.is_visible()


def test_without_a_script_the_figures_are_svg(chromium, report):
    context = chromium.new_context(java_script_enabled=False)
    shown = context.new_page()
    shown.goto(report.as_uri())
    assert all(box.is_visible() for box in shown.locator("figure .static").all())
    assert not shown.locator(".panel").first.is_visible()
    context.close()


A4_PX = 672  # between the margins of page.css: 210 mm less 2 × 16 mm, at 96 px per inch
SEEN_TABLES = """() => [...document.querySelectorAll('table')]
.filter(t => t.offsetWidth > 0).map(t => ({
  right: Math.max(...[...t.querySelectorAll('th, td')].map(c => c.getBoundingClientRect().right)),
  names: [...t.querySelectorAll('thead th')].map(c => c.textContent),
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
