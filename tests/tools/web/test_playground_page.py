# SPDX-License-Identifier: BSD-3-Clause
"""The playground in a browser: what a visitor does, at two widths, dark, and without a network."""

import functools
import http.server
import json
import os
import shutil
import subprocess
import sys
import threading
import zipfile
from pathlib import Path

import pytest
import test_course
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import sync_playwright
from weir.analysis import folder, summary
from weir.docs import playground

ROOT = Path(__file__).resolve().parents[3]
SIM = Path(os.environ.get("WEIR_BUILD", ROOT / "build")) / "tools/sim/weir-sim"
WAIT_MS = 120_000  # the machine is shared
LONG = """duration: 1000s
paths: {forward: [link: {rate: 100Mbit}, delay: {delay: 10ms}], reverse: [delay: {delay: 10ms}]}
flows: [{count: 4, cc: cubic}]
"""
SHORT = LONG.replace("1000s", "3s")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.environ.get("WEIR_WEB") != "1", reason="needs WEIR_WEB=1"),
]


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def site():
    for script in ("build.py", "assemble.py"):
        subprocess.run([sys.executable, ROOT / "tools/web" / script], check=True)
    handler = functools.partial(Quiet, directory=ROOT / "build-web/playground")
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def chromium():
    program = shutil.which("chromium-headless-shell")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def opened(chromium, site):
    """Opens the page; fails at the end if a script failed, or something else was asked for."""
    contexts, wrong = [], []
    address = f"http://127.0.0.1:{site.server_port}/index.html"

    def open_(fragment="", width=1280, **options):
        context = chromium.new_context(viewport={"width": width, "height": 900}, **options)
        context.set_default_timeout(WAIT_MS)
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on(
            "request",
            lambda asked: (
                None
                if asked.url.startswith((address.rpartition("/")[0], "data:", "blob:", "about:"))
                else wrong.append(asked.url)
            ),
        )
        page.goto(address + fragment)
        page.wait_for_selector(".ready")
        return page

    yield open_
    for context in contexts:
        context.close()
    assert wrong == []


def ran(page, text=SHORT, shown=1):
    page.fill("#config", text)
    page.click("#run")
    page.wait_for_selector(f"#results section:nth-child({shown}) iframe")
    page.wait_for_function("!document.getElementById('run').disabled")


def test_a_run_shows_what_the_command_shows_and_its_folder_is_a_run(opened, tmp_path):
    page = opened()
    ran(page)
    (tmp_path / "config.yaml").write_text(SHORT)
    command = [SIM, "config.yaml", "--out", "native"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    native = folder.load(tmp_path / "native").summary
    text = page.inner_text("#results")
    assert native.digest in text
    assert "ledger: balanced" in text
    assert summary.links(native).rows[0][2] in text
    page.frame_locator("iframe").locator(".panel.drawn").first.wait_for()
    assert page.frame_locator("iframe").locator("figure").count() == 7
    with page.expect_download() as got:
        page.click("text=Download the run folder")
    got.value.save_as(tmp_path / "run.zip")
    with zipfile.ZipFile(tmp_path / "run.zip") as packed:
        assert packed.testzip() is None
        packed.extractall(tmp_path)
    run = folder.load(tmp_path / "run")
    assert run.summary.digest == native.digest
    assert run.frame("interval").equals(folder.load(tmp_path / "native").frame("interval"))


def test_an_error_has_the_commands_sentence_and_its_line_is_chosen(opened):
    page = opened(width=390)  # a telephone's, whose page is longer than the window
    page.fill("#config", SHORT.replace("100Mbit", "fast"))
    page.wait_for_function("document.getElementById('error').textContent")
    said = page.inner_text("#error")
    assert said == "config.yaml:2:32: rate: 'fast' is not a rate such as 10Gbit"
    place = page.locator("#error").bounding_box()
    assert place["y"] + place["height"] <= page.viewport_size["height"]
    page.click("#run")
    page.wait_for_function("document.activeElement.id === 'config'")
    chosen = page.evaluate("getSelection().toString()")
    assert chosen.startswith("fast}")
    page.fill("#config", SHORT)
    page.wait_for_function("!document.getElementById('error').textContent")


def test_options_replace_values_and_have_the_commands_sentences(opened):
    page = opened()
    page.fill("#config", SHORT)
    page.fill("#options", "-o flows.0.cc=none")
    page.wait_for_function("document.getElementById('error').textContent")
    assert page.inner_text("#error").startswith(
        "-o flows.0.cc=none: cc: 'none' is not a congestion control; there is copa"
    )
    page.fill("#options", "-o flows.0.cc='{vegas: {alpha: 3}}' -o flows.0.count=2")
    ran(page)
    assert page.locator("#results td").all_inner_texts()[:2] == ["vegas", "2"]
    for options, sentence in (
        ("vegas", "-o vegas: write it as -o path.to.key=value"),
        ("-o --out=x", "-o --out=x: unknown key '--out'"),
    ):
        page.fill("#options", options)
        page.click("#run")
        page.wait_for_function(
            "(text) => document.getElementById('error').innerText === text", arg=sentence
        )


def test_a_run_that_is_stopped_leaves_a_whole_run(opened):
    page = opened()
    page.fill("#config", LONG)
    page.click("#run")
    page.wait_for_function("document.getElementById('state').textContent.includes(' of 1,000 s')")
    page.click("#stop")
    page.wait_for_selector("#results iframe")
    text = page.inner_text("#results")
    assert "ledger: balanced" in text
    assert "verdict: interrupted" in text


def test_a_second_run_stands_beside_the_first(opened):
    page = opened()
    ran(page)
    page.check("#beside")
    ran(page, SHORT.replace("cubic", "bbr"), shown=2)
    first, second = (page.locator("#results section").nth(n) for n in (0, 1))
    assert "cubic" in first.inner_text()
    assert "bbr" in second.inner_text()
    assert first.bounding_box()["y"] == second.bounding_box()["y"]
    page.fill("#options", "-o flows.0.count=2")
    ran(page, shown=2)
    assert page.locator("#results h2").all_inner_texts() == [
        "Run 2",
        "Run 3 -o flows.0.count=2",
    ]


def test_a_link_has_the_config(opened):
    page = opened()
    page.fill("#config", SHORT + "# µ\n")
    page.click("#link")
    page.wait_for_function("location.hash.startsWith('#config=')")
    fragment = page.evaluate("location.hash")
    other = opened(fragment)
    assert other.input_value("#config") == SHORT + "# µ\n"
    page = opened("#example=bbr3-cubic&o=duration%3D3s&o=flows.1.cc%3D{vegas:+{}}")
    assert "BBRv3" in page.input_value("#config")
    assert page.input_value("#options") == "-o duration=3s -o 'flows.1.cc={vegas: {}}'"
    page.click("#link")
    page.wait_for_function("location.hash.startsWith('#config=')")
    options = opened(page.evaluate("location.hash")).input_value("#options")
    assert options == "-o duration=3s -o 'flows.1.cc={vegas: {}}'"
    assert "no config" in opened("#config=x!").inner_text("#error")


@pytest.mark.parametrize("sheet", test_course.SHEETS)
def test_the_course_is_answered_here(opened, sheet):
    """Each link of a sheet's answers opens a run that shows the rows of the teacher's page."""
    shown = []
    for command in test_course.commands(sheet):
        page = opened(playground.asked(command).href("").partition("index.html")[2])
        page.click("#run")
        page.wait_for_selector("#results iframe")
        for row in page.locator("#results tbody tr").all():
            shown.append(" ".join(" ".join(row.locator("td").all_inner_texts()).split()))
        shown += page.locator("#results pre").inner_text().splitlines()
    left = iter(shown)
    assert [row for row in test_course.rows(sheet) if row not in left] == []


def test_keys_and_values_are_completed_by_the_schema_and_the_keyboard(opened):
    page = opened()
    page.fill("#config", "")
    page.focus("#config")
    page.keyboard.type("dur")
    page.keyboard.press("Control+ ")
    page.keyboard.press("Enter")
    page.keyboard.type("3s\nflows:\n  - cc: vega")
    page.keyboard.press("Control+ ")
    page.keyboard.press("Enter")
    page.keyboard.type("\n    rto_m")
    page.keyboard.press("Control+ ")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expected = "duration: 3s\nflows:\n  - cc: vegas\n    rto_max: "
    assert page.input_value("#config") == expected


def test_it_works_without_a_network_once_it_was_loaded(opened):
    page = opened()
    page.evaluate("navigator.serviceWorker.ready.then((it) => it.active.state)")
    page.wait_for_function("navigator.serviceWorker.controller")
    page.context.set_offline(True)
    page.reload()
    page.wait_for_selector(".ready")
    ran(page)
    assert "ledger: balanced" in page.inner_text("#results")


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_is_too_wide_or_unreadable(opened, width, scheme):
    page = opened(width=width, color_scheme=scheme)
    ran(page)
    page.locator("iframe").scroll_into_view_if_needed()
    page.frame_locator("iframe").locator(".panel.drawn").first.wait_for()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    found = Axe().run(page)
    assert found.violations_count == 0, found.generate_report()
    if place := os.environ.get("WEIR_PICTURES"):
        page.screenshot(path=f"{place}/playground-{scheme}-{width}.png", full_page=True)


def test_all_examples_are_accepted_or_say_why_not(site):
    command = ["node", ROOT / "tests/tools/web/checks.mjs", ROOT / "build-web"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    refused = json.loads(done.stdout)
    assert sorted(refused) == [
        "corescale-100g",
        "linux-iperf3",
        "linux-mix",
        "quic-go",
        "quic-ngtcp2",
    ]
    assert all("a browser" in said for said in refused.values())
