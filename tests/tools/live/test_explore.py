# SPDX-License-Identifier: BSD-3-Clause
"""weir explore: the page as a user works with it, and what a request may ask."""

import fcntl
import json
import re
import shlex
import shutil
import struct
import subprocess
import sys
import threading
import urllib.parse
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from synthetic import make_run
from test_browser import chromium  # noqa: F401
from test_serve import ask
from weir.analysis import folder, labels
from weir.base.errors import UserError
from weir.live import chosen as drawing
from weir.live import explore, shelf, web
from weir.report import many_figures, paper

CONTROLS = ("copa", "cubic", "newreno")
HOSTILE = (
    "a..\n<img src=x onerror=document.title='no'> \"x' & {{ 1 }} </script>".replace("/", "")
    + "x" * 60
)
TOKEN = "a word that is long"


@pytest.fixture(scope="module")
def top(tmp_path_factory):
    """Three controls, two seeds each; a folder with a hostile name; a run that has no telemetry."""
    found = tmp_path_factory.mktemp("explore") / "runs"
    for seed in (1, 2):
        for cc in CONTROLS:
            place = found / f"{cc}-{seed}"
            make_run(place, groups=(("", cc, 2),), seconds=6, seed=seed)
            config = f"seed: {seed}\nflows:\n  - {{cc: {cc}, count: 2}}\n"
            (place / "config.yaml").write_text(config)
    make_run(found / HOSTILE, groups=((HOSTILE, "copa", 1),), seconds=6)
    labels.tag(found / "copa-1", ["fig3"])
    labels.note(found / "cubic-2", f"the slow one {HOSTILE}")
    return found


@pytest.fixture
def served(top):
    """Serves a folder in threads; returns its address."""
    kept = []

    def start(token=None, folder=top):
        server = web.listen("127.0.0.1:0", token, explore.answers(shelf.Shelf(folder)))
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        kept.append(server)
        return web.url(server)

    yield start
    for server in kept:
        server.shutdown()
        server.server_close()


def answered(url, path, **values):
    status, _, text = ask(f"{url}{path}?{urllib.parse.urlencode(values)}")
    return status, json.loads(text) if status == 200 else text


def numbers(url, *wanted):
    names = answered(url, "runs")[1]["names"]
    return ",".join(str(names.index(name)) for name in wanted)


def test_a_request_gets_runs_of_the_folder_alone(served, top):
    url = served()
    found = answered(url, "runs")[1]
    assert sorted(found["names"]) == sorted(path.name for path in top.iterdir())
    assert len(found["rows"]) == 7
    for given, says in (
        ("7", "there is no run 7"),
        ("../../etc", "by its number"),
        ("-1", "by its number"),
        ("", "choose 1 to 2,000 runs"),
        (",".join(map(str, range(2001))), "choose 1 to 2,000 runs"),
    ):
        status, said = answered(url, "choices", runs=given)
        assert (status, says in said) == (400, True)
    assert answered(url, "figures", runs="0", kind="x")[0] == 400
    assert answered(url, "figures", runs="0", name="../x")[0] == 400
    assert answered(url, "paper", runs="0", venue="../x", name="rtt")[0] == 400
    assert "a PDF has one" in answered(url, "paper", runs="0")[1]
    assert ask(f"{url}etc/passwd")[0] == 404
    assert ask(url, Host="evil.example")[0] == 403


def test_the_page_offers_all_that_can_be_drawn(served):
    """It has them as they are: to import them takes longer than to show a table."""
    page = ask(served())[2]
    fields = dict(re.findall(r'<select id="(kind|paper)">(.*?)</select>', page, re.DOTALL))
    offered = {name: re.findall('value="(.*?)"', text) for name, text in fields.items()}
    assert offered == {
        "kind": [drawing.OVER_TIME, drawing.NUMBERS, *many_figures.NAMES],
        "paper": [f"{venue},{width}" for venue in paper.VENUES for width in paper.WIDTHS_IN],
    }


def test_the_table_needs_no_library_of_numbers():
    """They take longer to import than a table of runs to show."""
    code = (
        "import sys, weir.cli.explore; print({'numpy', 'polars', 'matplotlib'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


def listed(url):
    """Runs by their names: number, verdict and tags."""
    found = answered(url, "runs")[1]
    columns = [found["columns"].index(name) for name in ("verdict", "tags")]
    return {
        name: (number, *(found["rows"][number][n] for n in columns))
        for number, name in enumerate(found["names"])
        if name is not None
    }


def test_what_was_written_since_is_read_again(served, tmp_path):
    """Runs keep their numbers, as a page that was opened before asks by them."""
    top = tmp_path / "runs"
    make_run(top / "b", seconds=6)
    url = served(folder=top)
    assert listed(url) == {"b": (0, "ok", "")}
    make_run(top / "a", seconds=6, with_summary=False)  # is being written
    labels.tag(top / "b", ["fig3"])
    (top / "c").mkdir()
    (top / "c" / "manifest.json").write_text("{")
    found = listed(url)
    assert found["c"][1].startswith("unreadable: ")
    assert (found["b"], found["a"]) == ((0, "ok", "fig3"), (1, "did not end by itself", ""))
    with (top / "a" / folder.LOCK).open("wb") as lock:  # what weir-sim holds while it writes
        fcntl.fcntl(lock, fcntl.F_OFD_SETLK, struct.pack("hhqqi", fcntl.F_WRLCK, 0, 0, 1, 0))
        assert listed(url)["a"][1] == "is being written"
    assert listed(url)["a"][1] == "did not end by itself"
    before = ask(f"{url}figures?runs=1")
    assert (before[0], answered(url, "choices", runs="1")[1].get("error")) == (200, None)
    shutil.copytree(make_run(tmp_path / "longer", seconds=12), top / "a", dirs_exist_ok=True)
    assert ask(f"{url}figures?runs=1")[2] != before[2]
    shutil.rmtree(top / "b")
    assert {name: number for name, (number, *_) in listed(url).items()} == {"a": 1, "c": 2}
    status, said = answered(url, "choices", runs="0")
    assert (status, said) == (400, f"{top / 'b'}: no such run folder\n")


def test_a_token_is_asked_for_everywhere(served):
    url = served(TOKEN)
    for path in ("", "runs", "choices", "figures", "paper"):
        assert ask(url + path)[0] == 401
    assert ask(f"{url}?{urllib.parse.urlencode({'token': TOKEN})}")[0] == 200
    with pytest.raises(UserError, match="wants a --token"):
        web.listen("0.0.0.0:0", None, {})


@pytest.mark.slow
def test_each_command_makes_what_is_shown(served, weir):
    url = served()
    all_six = numbers(url, *(f"{cc}-{seed}" for cc in CONTROLS for seed in (1, 2)))
    for values, name in (
        ({"kind": "time", "name": "rtt", "runs": numbers(url, "copa-1")}, "rtt.csv"),
        ({"kind": "time", "name": "rtt", "runs": numbers(url, HOSTILE)}, "rtt.csv"),
        ({"kind": "time", "name": "rtt", "runs": numbers(url, "copa-1", "cubic-1")}, "rtt.csv"),
        ({"kind": "numbers", "x": "flows.0.cc", "y": "goodput", "runs": all_six}, "goodput.csv"),
        ({"kind": "box", "y": "rtt_mean_ns", "by": "flows.0.cc", "runs": all_six}, "box.csv"),
    ):
        status, found = answered(url, "choices", **values)
        assert (status, found.get("error")) == (200, None)
        done = weir(*shlex.split(found["command"])[1:], "--out", name)
        assert (done.status, done.out) == (0, f"{name}\n"), done.err
        status, _, page = ask(f"{url}figures?{urllib.parse.urlencode(values)}")
        assert (status, page.count("<figure id=")) == (200, 1)
    assert "flows.0.cc" in found["keys"]
    assert "rtt_mean_ns" in found["numbers"]
    assert not {"goodput", "goodput_bps"} & {*found["numbers"]}  # the page has it as the first


def chosen(page, *names):
    for name in names:
        page.get_by_label(name, exact=True).check()


def drawn(page, count, title=""):
    """Waits until the frame has so many figures, all of them drawn that are in sight.

    A title tells it from the frame before: where a test is slow, each choice is drawn.
    """
    frame = page.frame_locator("#figures")
    frame.locator("h1", has_text=title).wait_for()
    frame.locator("figure").nth(count - 1).wait_for(state="attached")
    page.locator("#figures").scroll_into_view_if_needed()  # what is out of sight is not drawn
    frame.locator(".panel.drawn").first.wait_for()
    return frame


def commanded(page, word):
    """Waits for a command with this word, and returns it: a draw begins with an empty one."""
    text = "word => { const t = document.getElementById('command').textContent;"
    return page.wait_for_function(f"{text} return t.includes(word) && t; }}", arg=word).json_value()


@pytest.mark.slow
def test_from_a_question_to_a_pdf(served, chromium):  # noqa: F811
    page = chromium.new_page(viewport={"width": 1280, "height": 900})
    said = []
    page.on("console", lambda one: said.append(one.text) if one.type == "error" else None)
    page.on("pageerror", lambda error: said.append(str(error)))
    page.goto(served())
    page.get_by_text("7 of 7 runs, 0 chosen").wait_for()
    page.get_by_label("search").fill("fig3")
    assert page.locator("tbody tr").count() == 1
    page.get_by_label("search").fill("SLOW one")
    assert page.locator("tbody tr td").nth(1).text_content() == "cubic-2"
    page.get_by_label("search").fill("")
    page.get_by_role("button", name="goodput").click()
    first = page.locator("tbody tr").first.text_content()
    page.get_by_role("button", name="goodput").click()
    assert page.locator("tbody tr").first.text_content() != first
    assert page.locator("th[aria-sort=descending]").text_content() == "goodput"

    # Side by side over time.
    chosen(page, "copa-1", "cubic-1", "newreno-1")
    drawn(page, 2, "copa-1, cubic-1, newreno-1")
    commanded(page, "weir compare")
    with page.expect_popup() as alone:
        page.locator("#alone").click()
    alone.value.locator(".panel.drawn").first.wait_for()
    assert alone.value.evaluate("() => self.origin") == "null"
    alone.value.close()
    assert page.locator("#pdf").get_attribute("href") is None
    page.locator("#name").select_option("rtt")
    page.locator("#pdf[href]").wait_for()
    with page.expect_download() as loaded:
        page.locator("#pdf").click()
    assert loaded.value.path().read_bytes().startswith(b"%PDF")
    commanded(page, "--figure rtt")

    # By a key in which they differ.
    page.get_by_role("button", name="choose none").click()
    chosen(page, *(f"{cc}-{seed}" for cc in CONTROLS for seed in (1, 2)))
    page.locator("#kind").select_option("box")
    page.locator("#y").select_option("rtt_mean_ns")
    page.locator("#by").select_option("flows.0.cc")
    commanded(page, "--by")
    drawn(page, 1)
    page.locator("#kind").select_option("numbers")
    page.locator("#x").select_option("flows.0.cc")
    commanded(page, "--x")
    drawn(page, 1)
    assert (page.locator("#error").text_content(), said) == ("", [])
    page.close()


def tab_to(page, which):
    """Goes on by the Tab key until an element is reached."""
    for _ in range(30):
        if page.evaluate("which => document.activeElement.matches(which)", which):
            return
        page.keyboard.press("Tab")
    pytest.fail(f"{which} is not reached by the Tab key")


@pytest.mark.slow
def test_by_keys_alone(served, chromium, monkeypatch):  # noqa: F811
    monkeypatch.setattr(shelf, "ROWS_SENT", 3)
    page = chromium.new_page()
    page.goto(served())
    page.get_by_text("7 of 7 runs, 0 chosen").wait_for()
    tab_to(page, "#search")
    page.keyboard.type("-2")
    tab_to(page, "[type=checkbox]")
    for key in ("Space", "ArrowDown", "ArrowDown", "ArrowUp", "Space"):
        page.keyboard.press(key)
    page.get_by_text("3 of 7 runs, 2 chosen").wait_for()
    page.locator("#name option").nth(1).wait_for(state="attached")
    tab_to(page, "#name")
    page.keyboard.press("ArrowDown")
    page.locator("#pdf[href]").wait_for()
    assert shlex.split(commanded(page, "cubic-2"))[2:4] == [
        str(Path(page.title()) / name) for name in ("copa-2", "cubic-2")
    ]
    tab_to(page, "#pdf")
    with page.expect_download():
        page.keyboard.press("Enter")
    page.close()


@pytest.mark.slow
def test_a_page_reads_again_what_was_written(served, chromium, tmp_path):  # noqa: F811
    make_run(tmp_path / "b", seconds=6)
    page = chromium.new_page()
    page.goto(served(folder=tmp_path))
    chosen(page, "b")
    page.get_by_text("1 of 1 runs, 1 chosen").wait_for()
    make_run(tmp_path / "a", seconds=6)
    page.get_by_role("button", name="read again").click()
    page.get_by_text("2 of 2 runs, 1 chosen").wait_for()
    assert page.get_by_label("b", exact=True).is_checked()
    shutil.rmtree(tmp_path / "b")
    page.get_by_role("button", name="read again").click()
    page.get_by_text("1 of 1 runs, 0 chosen").wait_for()
    page.close()


@pytest.mark.slow
@pytest.mark.parametrize(("width", "scheme"), [(1280, "dark"), (390, "light")])
def test_names_are_text_and_the_page_is_accessible(served, chromium, width, scheme):  # noqa: F811
    page = chromium.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page.goto(f"{served(TOKEN)}?{urllib.parse.urlencode({'token': TOKEN})}")
    page.get_by_text("7 of 7 runs, 0 chosen").wait_for()
    page.locator("tr").filter(has_text="onerror").get_by_role("checkbox").first.check()
    frame = drawn(page, 2)
    assert HOSTILE in frame.locator("h1").text_content()
    assert page.locator("img").count() == frame.locator("img").count() == 0
    assert page.title() != "no"
    assert page.evaluate("() => document.documentElement.scrollWidth") <= width
    assert frame.locator("html").evaluate("one => one.scrollWidth - one.clientWidth") <= 0
    assert Axe().run(page).response["violations"] == []
    page.emulate_media(media="print")
    assert not page.locator("#all").is_visible()
    assert (
        page.evaluate(
            "() => { const one = document.getElementById('runs');"
            " return one.scrollHeight - one.clientHeight; }"
        )
        <= 0
    )
    page.close()


def test_the_command_says_where_the_page_is(weir, tmp_path):
    (tmp_path / "none").mkdir()
    done = weir("explore", "none")
    assert (done.status, re.search("there is no run in none", done.err) is not None) == (2, True)
    done = weir("explore", "nowhere")
    assert (done.status, "no such run folder" in done.err) == (2, True)
