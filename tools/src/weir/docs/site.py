# SPDX-License-Identifier: BSD-3-Clause
"""The site: gathered from the pages of the repository, built by zensical, shown on this machine.

Every page keeps its path, so a link is the same in the repository and in the site. A wheel has the
built site beside this file; a clone builds it into build/site.
"""

from __future__ import annotations

import http.server
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
import webbrowser
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path

from typer.core import TyperGroup

from weir.base import tables
from weir.base.errors import UserError
from weir.base.tables import Tables
from weir.bootstrap import ROOT
from weir.docs import gallery, made, playground
from weir.league import page as league

Menu = Iterable[Mapping[str, "str | Menu"]]

SETTINGS = ROOT / "tools/docs/zensical.toml"
PACKAGED = Path(__file__).parent / "site"
STAMP = "weir-site"  # an empty file in what was built here
LINK = re.compile(r"\]\(\s*([^)\s#]+)")


def listed(nav: Menu) -> Iterator[str]:
    """Yields the pages of a menu, in order."""
    for entry in nav:
        for value in entry.values():
            yield from [value] if isinstance(value, str) else listed(value)


def pages() -> list[str]:
    return list(listed(tomllib.loads(SETTINGS.read_text(encoding="utf-8"))["project"]["nav"]))


def own() -> list[Path]:
    """Returns the pages that the repository has; the others are made."""
    return [ROOT / name for name in pages() if not name.startswith("made/")]


def linked(page: Path) -> Iterator[Path]:
    """Yields files that are no pages, and that a page leads to or shows."""
    for target in LINK.findall(re.sub(r"`[^`]*`", "", page.read_text(encoding="utf-8"))):
        place = Path(os.path.normpath(page.parent / target))
        if place.is_file() and place.suffix != ".md":
            yield place


def put(file: Path, into: Path, entries: Tables) -> None:
    """Copies a file of the repository to its own path, and adds what is made for a page."""
    place = into / file.relative_to(ROOT)
    place.parent.mkdir(parents=True, exist_ok=True)
    if file.suffix == ".md":
        text = file.read_text(encoding="utf-8")
        up = "../" * len(file.relative_to(ROOT).parents[:-1])
        whole = playground.with_links(made.whole(text, entries), up)
        place.write_text(whole, encoding="utf-8")
    else:
        shutil.copy2(file, place)


def gather(into: Path, group: TyperGroup) -> None:
    """Copies all that the site is built of: pages, what they lead to, and what is made."""
    (into / "made").mkdir(parents=True)
    entries = tables.read()
    for name, make in made.PAGES.items():
        (into / f"made/{name}.md").write_text(make(entries, group), encoding="utf-8")
    league.site(into / "made/league")
    pictures = gallery.PICTURES.glob("*.png")
    for file in {*own(), *pictures, *(other for page in own() for other in linked(page))}:
        put(file, into, entries)
    put(ROOT / "tools/docs/site.css", into, entries)


def build(site: Path, group: TyperGroup) -> None:
    """Builds the site into a folder: all of it or nothing; group has the commands to describe."""
    if not SETTINGS.exists():
        raise UserError("this installation has no pages; a clone of Weir has them", 1)
    if importlib.util.find_spec("zensical") is None:
        raise UserError("building the pages needs zensical: pip install 'weir-testbed[docs]'", 1)
    try:
        site.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"{site}: cannot be a folder: {error.strerror}", 1) from None
    if any(site.iterdir()) and not (site / STAMP).exists():
        raise UserError(f"{site}: it has other files; name a folder that is new or empty")
    print("weir: building the pages", file=sys.stderr)
    with tempfile.TemporaryDirectory(prefix="weir-docs-") as work:
        gather(Path(work) / "docs", group)
        shutil.copy(SETTINGS, work)
        argv = [sys.executable, "-m", "zensical", "build", "--strict"]
        done = subprocess.run(argv, cwd=work, capture_output=True, text=True)
        if done.returncode != 0:
            said = (done.stdout + done.stderr.partition("Traceback")[0]).strip()
            raise UserError(f"the pages cannot be built:\n{said}", 1)
        (Path(work) / "site" / STAMP).touch()
        if playground.FOLDER.exists():
            shutil.copytree(playground.FOLDER, Path(work) / "site/playground")
        shutil.rmtree(site)
        shutil.copytree(Path(work) / "site", site)


def stale(site: Path) -> bool:
    """Returns whether a page, or the package that pages are made of, is newer than the site."""
    if not (site / STAMP).exists():
        return True
    sources = [SETTINGS, *own(), *(ROOT / "tools/src/weir").rglob("*.py")]
    sources += [file for file in (playground.FOLDER / "examples.json",) if file.exists()]
    return max(file.stat().st_mtime for file in sources) > (site / STAMP).stat().st_mtime


def find(group: TyperGroup) -> Path:
    """Returns the folder of the site: the wheel's, or the clone's, built if it is not there."""
    if (PACKAGED / "index.html").exists():
        return PACKAGED
    site = ROOT / "build/site"
    if not SETTINGS.exists() or stale(site):
        build(site, group)
    return site


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves files and says nothing of it."""

    def log_message(self, *_: object) -> None:
        """Says nothing."""


def serve(site: Path) -> None:
    """Shows the site in a browser, to this machine only, until Ctrl-C."""
    handler = partial(Quiet, directory=str(site))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        address = f"http://127.0.0.1:{server.server_port}/"
        print(f"{address} has the pages; Ctrl-C ends", flush=True)
        webbrowser.open(address)
        server.serve_forever()
