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

import sys
import threading
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from jinja2 import Environment, PackageLoader, StrictUndefined

from weir.analysis import listing
from weir.base.errors import UserError
from weir.base.foreign import Json
from weir.live import web
from weir.live.shelf import Shelf
from weir.live.web import Handler, Query

if TYPE_CHECKING:
    from weir.live.chosen import Desk

DEFAULT_ADDRESS = "127.0.0.1:8791"
PLAIN = web.POLICY.format("")
FIGURES_POLICY = (  # for a page that has no more than a report has, and is of no origin
    "sandbox allow-scripts allow-downloads; default-src 'none'; style-src 'unsafe-inline';"
    " script-src 'unsafe-inline' 'unsafe-eval'; img-src data:;"
    " base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
)


def answers(runs: Shelf) -> web.Answers:
    """Returns what a server answers; it draws one thing at a time."""
    drawing = threading.Lock()

    def page(client: Handler, query: Query) -> None:
        pages = Environment(
            loader=PackageLoader("weir.report"), autoescape=True, undefined=StrictUndefined
        )
        client.page(pages.get_template("explore.html.j2").render(top=str(runs.top)))

    @cache
    def desk() -> Desk:
        """Imports what draws: that takes longer than the table."""
        from weir.live import chosen

        return chosen.Desk(runs)

    def rows(query: Query) -> Json:
        """Returns lines of runs; after the last, what draws is imported before it is asked for."""
        first = web.whole(web.word(query, "from") or "0")
        found = runs.rows(first)
        if first + len(found["rows"]) >= len(runs.paths):
            threading.Thread(target=desk, daemon=True).start()
        return found

    def sent(
        make: Callable[[Query], object],
        kind: str,
        lock: threading.Lock = drawing,
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
        "/runs": sent(rows, "application/json", runs.reading),
        "/choices": sent(lambda query: desk().choices(query), "application/json"),
        "/figures": sent(lambda query: desk().figures(query), web.HTML, policy=FIGURES_POLICY),
        "/paper": sent(lambda query: desk().paper(query), "application/pdf"),
    }


def serve(top: Path, text: str, token: str | None) -> None:
    """Shows the runs of a folder to all who may ask, until Ctrl-C. UserError: there is none."""
    if next(listing.find(top), None) is None:
        raise UserError(f"there is no run in {top}")
    with web.listen(text, token, answers(Shelf(top))) as server:
        print(f"{web.url(server)} shows {top}; Ctrl-C ends that", file=sys.stderr, flush=True)
        server.serve_forever(0.1)
