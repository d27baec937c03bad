# SPDX-License-Identifier: BSD-3-Clause
"""weir explore: the runs of a folder in a page, which draws those that are chosen.

/          the page
/runs      lines of some runs from one on, as JSON; those from the first on have all names
/choices   of chosen runs: their figures, the keys in which they differ, numbers and commands
/figures   the figures as a page of their own
/paper     one of them as PDF

A run is asked for by its number in the list, so nothing outside the folder can be asked for. Runs
are only read, and again once a file of theirs was written: a page that is loaded again shows them.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import sys
import tempfile
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import msgspec

from weir.analysis import folder, listing, many
from weir.analysis.listing import Entry
from weir.base.errors import UserError
from weir.base.foreign import Json
from weir.base.page import Column, Page, Table
from weir.base.typed import program
from weir.live import web
from weir.live.web import Handler, Query
from weir.many import run_figures, sweep_table
from weir.many.run_figures import Wanted
from weir.report import comparison, document, many_figures, paper
from weir.report.figure import Figure

DEFAULT_ADDRESS = "127.0.0.1:8791"
ROWS_SENT = 500  # at most, in one answer
CHOSEN_MAX = 2000  # runs in one figure
KEPT = 4  # drawn choices
NAMED_MAX = 4  # runs in a title
OVER_TIME, NUMBERS = "time", "numbers"  # kinds of figure, beside many_figures.NAMES
Stamp = frozenset[tuple[str, int, int]]  # files: name, when it was written, size in bytes
PLAIN = web.POLICY.format("")
FIGURES_POLICY = (  # for a page that has no more than a report has, and is of no origin
    "sandbox allow-scripts allow-downloads; default-src 'none'; style-src 'unsafe-inline';"
    " script-src 'unsafe-inline' 'unsafe-eval'; img-src data:;"
    " base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
)
COLUMNS = (
    Column("began (UTC)", "date"),
    Column("goodput", "goodput_bps"),
    Column("delay", "delay_ns"),
    Column("flows", "flows"),
    Column("verdict"),
    Column("groups"),
    Column("title"),
    Column("tags", lambda one: " ".join(one.tags)),
    Column("note"),
)


@dataclass(frozen=True)
class Asked:
    """Runs, by their numbers, and what is to be drawn of them."""

    runs: tuple[int, ...]
    kind: str
    wanted: Wanted
    name: str  # of the one figure that is shown [all]


@dataclass(frozen=True)
class Chosen:
    """Runs with their figures."""

    paths: Sequence[Path]
    asked: Asked

    @cached_property
    def figures(self) -> list[Figure]:
        """All figures of the kind that was asked for. UserError: there can be none."""
        if self.asked.kind != OVER_TIME:
            return [run_figures.draw(many.paths([*self.paths]), self.asked.wanted)]
        return list(comparison.figures_of([folder.load(path) for path in self.paths]))

    @property
    def shown(self) -> list[Figure]:
        """The figure that was named, or all."""
        name = self.asked.name
        return [paper.choose(self.figures, name)] if name else self.figures

    @cached_property
    def choices(self) -> tuple[list[str], list[str]]:
        """The keys in which the runs differ, and the numbers that they have."""
        frame = many.open_many([*self.paths])
        if self.asked.kind == NUMBERS:
            return many.settings(frame), list(sweep_table.METRICS)
        return many.settings(frame), frame["metric"].unique(maintain_order=True).to_list()

    def command(self) -> str:
        """Returns the command that makes what is shown."""
        paths = [str(path) for path in self.paths]
        asked = self.asked
        if asked.kind == OVER_TIME and not asked.name:
            words = ["report", *paths] if len(paths) == 1 else ["compare", *paths]
            return shlex.join([program(), *words])
        wanted = asked.wanted
        figure = asked.name if asked.kind == OVER_TIME else wanted.figure
        words = ["plot", *paths, *([] if figure is None else ["--figure", figure])]
        for option in ("x", "y", "by", "facet"):
            value = getattr(wanted, option)
            words += [] if value is None else [f"--{option}", value]
        words += [f"--{axis}" for axis in ("logx", "logy") if getattr(wanted, axis)]
        return shlex.join([program(), *words])


@dataclass
class Shelf:
    """The runs of a folder, by their numbers, and what was read and drawn of them last."""

    top: Path
    paths: list[Path] = field(default_factory=list)
    present: set[Path] = field(default_factory=set)  # when they were last looked for
    entries: dict[Path, tuple[Stamp, Entry]] = field(default_factory=dict)
    kept: dict[tuple[Asked, tuple[Stamp, ...]], Chosen] = field(default_factory=dict)
    reading: threading.Lock = field(default_factory=threading.Lock)
    drawing: threading.Lock = field(default_factory=threading.Lock)

    def find(self) -> None:
        """Looks for runs. Each keeps its number, as a page that is open asks for it by that."""
        numbered = {*self.paths}
        found = list(listing.find(self.top))
        self.present = {*found}
        self.paths += [path for path in found if path not in numbered]

    def entry(self, path: Path) -> Entry | None:
        """Returns a run's line, read again if it was written to; None: the run has gone."""
        if path not in self.present:
            return None
        try:
            now = stamp(path)
            then, entry = self.entries.get(path, (None, None))
            if entry is None or then != now or entry.verdict == listing.WRITING:
                entry = listing.read(path)
                self.entries[path] = (now, entry)
        except (UserError, OSError):
            return None
        return entry

    def name(self, path: Path) -> str:
        """Returns how the page calls a run: its path below the folder."""
        return str(path.relative_to(self.top)) if path != self.top else self.top.resolve().name

    def runs(self, query: Query) -> Json:
        """Returns lines from one on, null where a run has gone; the first answer has all names."""
        first = number(query, "from")
        if first == 0:
            self.find()
        found = [self.entry(path) for path in self.paths[first : first + ROWS_SENT]]
        table = Table(COLUMNS, [one for one in found if one])
        rows = iter(table.rows)
        sent: Json = {"columns": table.columns, "rows": [one and next(rows) for one in found]}
        sent["sorts"] = [one and [one.goodput_bps, one.delay_ns, one.flows] for one in found]
        if first == 0:
            sent["names"] = [
                self.name(path) if path in self.present else None for path in self.paths
            ]
        return sent

    def chosen(self, query: Query) -> Chosen:
        """Returns what a request asks for. UserError: there is no such run, or too many."""
        asked = asked_for(query)
        if not 1 <= len(asked.runs) <= CHOSEN_MAX:
            raise UserError(f"choose 1 to {CHOSEN_MAX:,} runs")
        if max(asked.runs) >= len(self.paths):
            raise UserError(f"there is no run {max(asked.runs)}")
        paths = [self.paths[run] for run in asked.runs]
        key = (asked, tuple(map(stamp, paths)))
        if key not in self.kept:
            self.kept[key] = Chosen(paths, asked)
            for old in list(self.kept)[:-KEPT]:
                del self.kept[old]
        return self.kept[key]

    def choices(self, query: Query) -> Json:
        """Returns what can be drawn of runs; what cannot says why."""
        one = self.chosen(query)
        found: Json = {"figures": [], "keys": [], "numbers": [], "command": one.command()}
        if len(one.paths) > 1 or not folder.is_run(one.paths[0]):
            found["keys"], found["numbers"] = one.choices
        try:
            found["figures"] = [[figure.name, figure.title] for figure in one.figures]
            if not one.figures:
                raise UserError("these runs have no records yet that a figure could show")
        except UserError as error:
            found["error"] = str(error)
        return found

    def figures(self, query: Query) -> str:
        """Returns the figures as a page."""
        one = self.chosen(query)
        names = ", ".join(self.name(path) for path in one.paths[:NAMED_MAX])
        more = len(one.paths) > NAMED_MAX
        title = f"{len(one.paths):,} runs of {self.top}" if more else names
        return document.render(Page(title, [document.figures(one.shown)]))

    def paper(self, query: Query) -> bytes:
        """Returns one figure as PDF."""
        venue, width = word(query, "venue") or "acm", word(query, "width") or "column"
        if venue not in paper.VENUES or width not in paper.WIDTHS_IN:
            raise UserError(f"there is no venue '{venue}' with the width '{width}'")
        shown = self.chosen(query).shown
        if len(shown) != 1:
            raise UserError("choose one figure: a PDF has one")
        with tempfile.TemporaryDirectory() as place:
            out = Path(place) / "figure.pdf"
            paper.write(shown[0], out, paper.Shape(width, venue=venue))
            return out.read_bytes()


def stamp(path: Path) -> Stamp:
    """Returns what changes when a file in a folder is written. UserError: the folder has gone."""
    folder.check(path)
    found = set()
    with os.scandir(path) as files:
        for file in files:
            with contextlib.suppress(FileNotFoundError):  # a file that has got its name meanwhile
                about = file.stat(follow_symlinks=False)
                found.add((file.name, about.st_mtime_ns, about.st_size))
    return frozenset(found)


def word(query: Query, name: str) -> str | None:
    """Returns a word of a request; None where it is empty, too."""
    return query.get(name, [""])[0] or None


def number(query: Query, name: str) -> int:
    """Returns a whole number of a request [0]. UserError: it is none."""
    return whole(word(query, name) or "0")


def whole(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 9):
        raise UserError("a run is asked for by its number")
    return int(text)


def asked_for(query: Query) -> Asked:
    """Returns what a request asks for. UserError: there is no such kind of figure."""
    kind = word(query, "kind") or OVER_TIME
    if kind not in (OVER_TIME, NUMBERS, *many_figures.NAMES):
        raise UserError(f"there is no kind of figure '{kind}'")
    texts = (word(query, "runs") or "").split(",")
    runs = tuple(dict.fromkeys(whole(text) for text in texts if text))
    is_number = kind == NUMBERS
    wanted = Wanted(
        x=word(query, "x") if is_number else None,
        y=word(query, "y") if kind not in (OVER_TIME, "pantheon") else None,
        by=word(query, "by") if kind != OVER_TIME else None,
        facet=word(query, "facet") if is_number else None,
        logx=is_number and word(query, "logx") is not None,
        logy=is_number and word(query, "logy") is not None,
        figure=kind if kind in many_figures.NAMES else None,
    )
    return Asked(runs, kind, wanted, (word(query, "name") or "") if kind == OVER_TIME else "")


def answers(shelf: Shelf) -> web.Answers:
    """Returns what a server answers; it draws one thing at a time."""

    def page(client: Handler, query: Query) -> None:
        template = document.templates().get_template("explore.html.j2")
        kinds = {OVER_TIME: "over time, side by side", NUMBERS: "a number against a key"}
        kinds |= {name: says.partition(":")[0] for name, says in many_figures.NAMES.items()}
        venues = [(venue, width) for venue in paper.VENUES for width in paper.WIDTHS_IN]
        client.page(template.render(top=str(shelf.top), kinds=kinds, venues=venues))

    def sent(
        make: Callable[[Query], object],
        kind: str,
        lock: threading.Lock = shelf.drawing,
        policy: str = PLAIN,
    ) -> Callable[[Handler, Query], None]:
        def answer(client: Handler, query: Query) -> None:
            try:
                with lock:
                    made = make(query)
            except (UserError, OSError) as error:
                client.say(400, str(error))
                return
            client.head(200, kind, policy)
            data = made.encode() if isinstance(made, str) else made
            client.wfile.write(data if isinstance(data, bytes) else msgspec.json.encode(data))

        return answer

    return {
        "/": page,
        "/runs": sent(shelf.runs, "application/json", shelf.reading),
        "/choices": sent(shelf.choices, "application/json"),
        "/figures": sent(shelf.figures, web.HTML, policy=FIGURES_POLICY),
        "/paper": sent(shelf.paper, "application/pdf"),
    }


def serve(top: Path, text: str, token: str | None) -> None:
    """Shows the runs of a folder to all who may ask, until Ctrl-C. UserError: there is none."""
    if next(listing.find(top), None) is None:
        raise UserError(f"there is no run in {top}")
    with web.listen(text, token, answers(Shelf(top))) as server:
        print(f"{web.url(server)} shows {top}; Ctrl-C ends that", file=sys.stderr, flush=True)
        server.serve_forever(0.1)
