# SPDX-License-Identifier: BSD-3-Clause
"""weir explore: the runs of a folder in a page, which draws those that are chosen.

/          the page
/runs      a line for each run from one on, as JSON: names at once, numbers when they are read
/choices   of chosen runs: their figures, the keys in which they differ, numbers and commands
/figures   the figures as a page of their own
/paper     one of them as PDF

A run is asked for by its number in the list, so nothing outside the folder can be asked for. The
runs are only read.
"""

from __future__ import annotations

import contextlib
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
ROWS_SENT = 2000  # at most, in one answer
CHOSEN_MAX = 2000  # runs in one figure
KEPT = 4  # drawn choices
OVER_TIME, NUMBERS = "time", "numbers"  # kinds of figure, beside many_figures.NAMES
PLAIN = web.POLICY.format("")
FIGURES_POLICY = (  # for a page that has no more than a report has
    "default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval'; style-src 'unsafe-inline';"
    " img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
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
    """The runs of a folder, by their numbers, and what was drawn of them last."""

    top: Path
    paths: list[Path]
    entries: list[Entry] = field(default_factory=list)  # of the first runs, those that were read
    kept: dict[Asked, Chosen] = field(default_factory=dict)
    drawing: threading.Lock = field(default_factory=threading.Lock)

    def read(self) -> None:
        """Reads the runs, one after the other; one that has gone since has a line that says so."""
        for path in self.paths:
            try:
                self.entries.append(listing.read(path))
            except (UserError, OSError) as error:
                self.entries.append(Entry(path, path.name, "", f"unreadable: {error}"))

    def name(self, path: Path) -> str:
        """Returns how the page calls a run: its path below the folder."""
        return str(path.relative_to(self.top)) if path != self.top else self.top.resolve().name

    def runs(self, query: Query) -> Json:
        """Returns lines from one on; the first answer has all names."""
        first = number(query, "from")
        entries = self.entries[first : first + ROWS_SENT]
        table = Table(COLUMNS, entries)
        found: Json = {"columns": table.columns, "total": len(self.paths), "rows": table.rows}
        found["sorts"] = [[one.goodput_bps, one.delay_ns, one.flows] for one in entries]
        if first == 0:
            found["names"] = [self.name(path) for path in self.paths]
        return found

    def chosen(self, query: Query) -> Chosen:
        """Returns what a request asks for. UserError: there is no such run, or too many."""
        asked = asked_for(query)
        if not 1 <= len(asked.runs) <= CHOSEN_MAX:
            raise UserError(f"choose 1 to {CHOSEN_MAX:,} runs")
        if max(asked.runs) >= len(self.paths):
            raise UserError(f"there is no run {max(asked.runs)}")
        if asked not in self.kept:
            self.kept[asked] = Chosen([self.paths[run] for run in asked.runs], asked)
            for old in list(self.kept)[:-KEPT]:
                del self.kept[old]
        return self.kept[asked]

    def choices(self, query: Query) -> Json:
        """Returns what can be drawn of runs; what cannot says why."""
        one = self.chosen(query)
        found: Json = {"figures": [], "keys": [], "numbers": [], "command": one.command()}
        if len(one.paths) > 1 or not folder.is_run(one.paths[0]):
            found["keys"], found["numbers"] = one.choices
        try:
            found["figures"] = [[figure.name, figure.title] for figure in one.figures]
        except UserError as error:
            found["error"] = str(error)
        return found

    def figures(self, query: Query) -> str:
        """Returns the figures as a page."""
        one = self.chosen(query)
        names = ", ".join(self.name(path) for path in one.paths[: comparison.RUNS_MAX])
        more = len(one.paths) - comparison.RUNS_MAX
        title = f"{names} and {more:,} more" if more > 0 else names
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
        make: Callable[[Query], object], kind: str, policy: str = PLAIN, waits: bool = True
    ) -> Callable[[Handler, Query], None]:
        def answer(client: Handler, query: Query) -> None:
            try:
                with shelf.drawing if waits else contextlib.nullcontext():
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
        "/runs": sent(shelf.runs, "application/json", waits=False),
        "/choices": sent(shelf.choices, "application/json"),
        "/figures": sent(shelf.figures, web.HTML, FIGURES_POLICY),
        "/paper": sent(shelf.paper, "application/pdf"),
    }


def serve(top: Path, text: str, token: str | None) -> None:
    """Shows the runs of a folder to all who may ask, until Ctrl-C. UserError: there is none."""
    shelf = Shelf(top, list(listing.find(top)))
    if not shelf.paths:
        raise UserError(f"there is no run in {top}")
    with web.listen(text, token, answers(shelf)) as server:
        threading.Thread(target=shelf.read, daemon=True).start()
        print(f"{web.url(server)} shows {top}; Ctrl-C ends that", file=sys.stderr, flush=True)
        server.serve_forever(0.1)
