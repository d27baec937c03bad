# SPDX-License-Identifier: BSD-3-Clause
"""weir top --serve: what top shows, as a page in a browser, and for Prometheus.

/          the page, which loads nothing else and draws what /events sends
/events    a line of JSON per frame, as server-sent events; `end` when the run has ended
/metrics   the programs' counters in Prometheus's format

Who asks is never waited for: a thread answers each, with the newest frame that there is.
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from weir.live import frames, prometheus, web
from weir.live.frames import Watch
from weir.live.sample import Frame
from weir.live.web import Handler, Query

if TYPE_CHECKING:
    from weir.many import progress

PAGE = Path(__file__).with_name("top.html")
WAIT_S = 1.0  # between two looks at whether a client is still there
END_S = 2.0  # for clients to hear of the end


class Board:
    """The newest frame, for all who wait for it."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.number = 0
        self.text = ""
        self.metrics = ""
        self.ended = False

    def put(self, text: str, metrics: str) -> None:
        """Gives a new frame to all who wait."""
        with self.changed:
            self.text, self.metrics = text, metrics
            self.number += 1
            self.changed.notify_all()

    def end(self) -> None:
        """Ends all waiting, as no frame will come."""
        with self.changed:
            self.ended = True
            self.changed.notify_all()

    def after(self, number: int) -> tuple[int, str | None]:
        """Waits for a frame newer than that of a number; returns None after WAIT_S or at an end."""
        with self.changed:
            self.changed.wait_for(lambda: self.number > number or self.ended, WAIT_S)
            return self.number, self.text if self.number > number else None

    def page(self, client: Handler, query: Query) -> None:
        client.page(PAGE.read_text(encoding="utf-8"))

    def events(self, client: Handler, query: Query) -> None:
        """Sends each frame from now on; a client that reads slowly misses some."""
        client.head(200, "text/event-stream")
        number = 0
        while not (self.ended and number == self.number):
            number, text = self.after(number)
            said = b": still here\n\n" if text is None else f"data: {text}\n\n".encode()
            client.wfile.write(said)
        client.wfile.write(b"event: end\ndata: {}\n\n")

    def of_prometheus(self, client: Handler, query: Query) -> None:
        client.head(200, "text/plain; version=0.0.4; charset=utf-8")
        client.wfile.write(self.metrics.encode())


def serve(
    text: str, token: str | None, watch: Watch | progress.Watch, frames: Iterator[Frame]
) -> None:
    """Shows frames to all who ask, until there are no more."""
    board = Board()
    answers = {"/": board.page, "/events": board.events, "/metrics": board.of_prometheus}
    with web.listen(text, token, answers) as server:
        said = f"{web.url(server)} shows it; q or Ctrl-C ends that"
        print(said, file=sys.stderr, flush=True)
        thread = threading.Thread(target=server.serve_forever, args=(0.1,), daemon=True)
        try:
            for number, frame in enumerate(frames):
                board.put(as_text(frame), prometheus.text(watch.last, frame))
                if number == 0:
                    thread.start()  # who has asked before has waited in the queue
        finally:
            board.end()
            if thread.ident is not None:
                heard(server)
                server.shutdown()


def heard(server: web.Server) -> None:
    """Waits until all clients have read the end, or one of them has not within END_S."""
    taken = 0
    while taken < web.CLIENTS_MAX and server.room.acquire(timeout=END_S):
        taken += 1


def as_text(frame: Frame) -> str:
    tables = [
        {"columns": made.columns, "left": made.left, "rows": made.rows}
        for made, _ in frames.tables(frame)
    ]
    return json.dumps({"tables": tables, "frame": frame})
