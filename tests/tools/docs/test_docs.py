# SPDX-License-Identifier: BSD-3-Clause
"""The pages as a site: complete, built without a warning, and without anything from elsewhere."""

from __future__ import annotations

import html
import importlib.util
import json
import shlex
import subprocess
import threading
from functools import partial
from html.parser import HTMLParser
from http.server import ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote

import pytest
from playwright.sync_api import Browser
from test_browser import chromium  # noqa: F401
from test_commands import LEAVES
from typer.main import get_command
from typer.testing import CliRunner
from weir.base import tables
from weir.base.errors import UserError
from weir.cli.app import app
from weir.docs import gallery, made, playground, site
from weir.league import entry as rows

GROUP = get_command(app)

ROOT = Path(__file__).resolve().parents[3]
FETCHED = {"script": "src", "img": "src", "link": "href", "iframe": "src", "source": "src"}
LOOKED_AT = (
    "index.html",
    "made/commands.html",
    "made/controls.html",
    "made/python.html",
    "tools/docs/how-to/sweeps.html",
    "tools/docs/reference/studies.html",
)


class Page(HTMLParser):
    """What a page loads, where it links, and what can be led to."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path
        self.loads: list[str] = []
        self.links: list[str] = []
        self.names = {""}
        self.feed(path.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag in FETCHED and given.get(FETCHED[tag]):
            self.loads.append(given[FETCHED[tag]] or "")
        if tag == "a" and given.get("href"):
            self.links.append(given["href"] or "")
        self.names.update(name for name in (given.get("id"), given.get("name")) if name)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory, weir_sim: Path) -> Path:
    """The site, built in the way of a user."""
    folder = tmp_path_factory.mktemp("docs") / "site"
    done = CliRunner().invoke(app, ["docs", "--build", str(folder)])
    assert done.exit_code == 0, done.exception
    assert done.stdout == f"{folder}/index.html\n"
    return folder


@pytest.fixture(scope="module")
def built_pages(built: Path) -> dict[Path, Page]:
    """All pages of it, without the playground, which is there where tools/web has made it."""
    pages = [path for path in built.rglob("*.html") if path.name != "404.html"]
    return {path: Page(path) for path in pages if path.parent.name != "playground"}


def test_every_page_is_in_the_menu() -> None:
    """Once; and what is made is made."""
    git = ["git", "ls-files", "*.md"]
    tracked = subprocess.run(git, cwd=ROOT, capture_output=True, text=True, check=True)
    there = {*tracked.stdout.split(), *(f"made/{name}.md" for name in made.PAGES)}
    assert sorted(site.pages()) == sorted(there)


@pytest.mark.slow
def test_nothing_is_loaded_from_elsewhere(built: Path, built_pages: dict[Path, Page]) -> None:
    """No fonts, scripts, pictures or styles: the site works without a network."""
    in_menu = [path for path in built_pages if path.parent.name != "league"]
    assert len(in_menu) == len(site.pages())
    assert len(built_pages) - len(in_menu) == 1 + len(rows.kept().rows)
    loads = [target for page in built_pages.values() for target in page.loads]
    assert len(loads) > 100
    assert [target for target in loads if "//" in target] == []
    for style in built.rglob("*.css"):
        text = style.read_text()
        assert "url(http" not in text.replace('"', "")
        assert "url(//" not in text.replace('"', "")


def test_every_link_leads_somewhere(built_pages: dict[Path, Page]) -> None:
    """To a file of the site, and to a heading on its page."""
    wrong = []
    for path, page in built_pages.items():
        for target in {*page.links, *page.loads}:
            file, _, name = unquote(target).partition("#")
            place = (path.parent / file).resolve() if file else path
            if "://" in target or target.startswith("mailto:"):
                continue
            if not place.exists() or (
                place in built_pages and name not in built_pages[place].names
            ):
                wrong.append(f"{path.name}: {target}")
    assert wrong == []


def test_the_reference_lacks_nothing(weir_sim: Path) -> None:
    """Each command, each part and each key; each stream and field."""
    listed = tables.read()
    pages = {name: make(listed, GROUP) for name, make in made.PAGES.items()}
    text = "".join(pages.values())
    for kind in ("run", "flows", "live", "path", "cc", "aqm", "stage", "source", "stack"):
        for name, entry in listed[kind].items():
            assert f"\n## {name}\n" in text
            for key in tables.keys(entry):
                assert f"\n| `{key}` | " in text
    for name, entry in listed["stream"].items():
        assert f"\n## {name}\n" in pages["streams"]
        for field in entry["fields"]:
            assert f"\n| `{field}` | " in pages["streams"]
    for words in LEAVES:
        assert f"\n## weir {' '.join(words)}\n" in pages["commands"]
    assert "\n```sh\ntools/weir run configs/quickstart.yaml\n" in pages["commands"]


def test_pages_have_what_is_made_for_them(built: Path) -> None:
    """In the site, where a page of the repository has a line."""
    listed = tables.read()
    places = {place[1] for page in site.own() for place in made.PLACE.finditer(page.read_text())}
    assert places == set(made.PARTS)
    pages = "".join(page.read_text() for page in built.rglob("*.html"))
    assert "<!-- made" not in pages
    for entry in listed["number"].values():
        assert html.escape(entry["summary"], quote=False) in pages


def test_other_files_are_not_replaced(tmp_path: Path) -> None:
    """A folder that is no site stays as it is."""
    (tmp_path / "mine").write_text("mine")
    with pytest.raises(UserError, match="it has other files") as raised:
        site.build(tmp_path, GROUP)
    assert raised.value.status == 2
    assert (tmp_path / "mine").read_text() == "mine"
    with pytest.raises(UserError, match="cannot be a folder: File exists"):
        site.build(tmp_path / "mine", GROUP)


def test_without_the_generator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One sentence with what to install."""
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    with pytest.raises(UserError, match=r"pip install 'weir-testbed\[docs\]'") as raised:
        site.build(tmp_path / "site", GROUP)
    assert raised.value.status == 1


def test_a_wheel_has_the_site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is shown as it is; an installation with neither says where the pages are."""
    monkeypatch.setattr(site, "SETTINGS", tmp_path / "none.toml")
    monkeypatch.setattr(site, "PACKAGED", tmp_path / "site")
    with pytest.raises(UserError, match="a clone of Weir has them"):
        site.find(GROUP)
    monkeypatch.setattr(gallery, "LIST", tmp_path / "none.yaml")
    with pytest.raises(UserError, match="a clone of Weir has it"):
        gallery.draw()
    (tmp_path / "site").mkdir()
    (tmp_path / "site/index.html").touch()
    assert site.find(GROUP) == tmp_path / "site"
    done = CliRunner().invoke(app, ["docs", "--where"])
    assert done.stdout == f"{tmp_path}/site/index.html\n"


@pytest.mark.slow
def test_the_site_in_a_browser(built: Path, chromium: Browser) -> None:  # noqa: F811
    """Six pages as wide as the screen, on a telephone too; search; nothing is asked of others."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(site.Quiet, directory=str(built)))
    address = f"http://127.0.0.1:{server.server_port}/"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    asked: list[str] = []
    wrong: list[str] = []
    for width in (1280, 390):
        page = chromium.new_page(viewport={"width": width, "height": 900})
        page.on("request", lambda request: asked.append(request.url))
        page.on("pageerror", lambda error: wrong.append(str(error)))
        for name in LOOKED_AT:
            page.goto(address + name)
            assert page.evaluate("document.documentElement.scrollWidth") <= width, name
    page.keyboard.press("/")
    page.keyboard.type("bufferbloat codel")
    page.get_by_text("codel").filter(visible=True).first.wait_for()
    server.shutdown()
    server.server_close()
    assert wrong == []
    assert [url for url in asked if not url.startswith((address, "data:", "blob:"))] == []


@pytest.mark.slow
@pytest.mark.parametrize("picture", gallery.pictures(), ids=lambda picture: picture.name)
def test_a_picture_of_the_gallery(
    picture: gallery.Picture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, weir_sim: Path
) -> None:
    """It is there and small; its commands are valid, and each plots what was run before."""
    file = gallery.PICTURES / f"{picture.name}.png"
    assert 1000 < file.stat().st_size <= 60_000
    (tmp_path / "configs").symlink_to(ROOT / "configs")
    monkeypatch.chdir(tmp_path)
    ran = set()
    for command in picture.commands:
        words = shlex.split(command)
        check = {"run": ["--check"], "sweep": ["--help"], "plot": ["--help"]}.get(words[0], [])
        done = CliRunner().invoke(app, [*words, *check])
        assert done.exit_code == 0, done.output
        ran |= {words[-1]} if words[0] in ("run", "sweep") else set()
        if words[0] == "plot":
            assert {word for word in words if word.startswith("runs/")} == ran
            assert "--figure" in words


def test_the_gallery_has_its_pictures_alone() -> None:
    """24 or more, each by its own name."""
    names = [picture.name for picture in gallery.pictures()]
    assert len(names) >= 24
    assert sorted(names) == sorted(path.stem for path in gallery.PICTURES.iterdir())


def test_a_command_of_the_gallery_that_fails(tmp_path: Path) -> None:
    """The sentence names it."""
    with pytest.raises(UserError, match=r"weir run none\.yaml: .*none\.yaml") as raised:
        gallery.run("run none.yaml", tmp_path)
    assert raised.value.status == 1


def test_runs_of_a_page_open_in_the_playground(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those whose config it offers, with their options; and what it says of a long one."""
    text = "\n".join([
        "```sh", "tools/weir run configs/a.yaml --out runs/a", "```", "then",
        "```sh", "tools/weir run configs/course/b.yaml -o x.y='{z: 1}'",
        "tools/weir run first.yaml", "tools/weir run configs/a.yaml --live", "```", "and",
        "```text", "tools/weir run configs/a.yaml", "```", "",
    ])  # fmt: skip
    monkeypatch.setattr(playground, "FOLDER", tmp_path)
    assert playground.with_links(text, "../") == text
    offered = [
        {"name": "a", "native": "It takes 9 s."},
        {"name": "course/b", "native": ""},
        {"name": "first", "native": ""},
    ]
    (tmp_path / "examples.json").write_text(json.dumps(offered))
    made = playground.with_links(text, "../").split("```")
    assert len(made) == len(text.split("```"))
    address = "../playground/index.html#example="
    alone, several = made[2], made[4]
    assert f'href="{address}a">Open it in the playground</a> It takes 9 s.' in alone
    assert f'href="{address}course%2Fb&amp;o=x.y%3D%7Bz%3A+1%7D">course/b, x.y={{z: 1}}' in several
    assert f'href="{address}first">first</a>' in several
    assert "It takes 9 s." not in several
    assert made[6] == "\n"


def test_what_the_gallery_opens() -> None:
    """Each picture has a run that the playground can do, or says why it has none."""
    for picture in gallery.pictures():
        runs = [one for one in map(playground.asked, picture.commands) if one]
        assert bool(runs) != bool(picture.note), picture.name
