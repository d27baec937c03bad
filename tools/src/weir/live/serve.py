# SPDX-License-Identifier: BSD-3-Clause
"""weir top --serve: what top shows, as a page in a browser, and for Prometheus.

/          the page, which loads nothing else and draws what /events sends
/events    a line of JSON per frame, as server-sent events; `end` when the run has ended
/metrics   the programs' counters in Prometheus's format

Who asks is never waited for: a thread answers each, with the newest frame that there is. Only this
machine may ask unless a token is given, which then is part of each request. The name that a request
is for must be an address or this machine's, as a page elsewhere could have its own name lead here.
"""

from __future__ import annotations

import contextlib
import hmac
import ipaddress
import json
import secrets
import socket
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

from weir.base.errors import UserError
from weir.live import frames, prometheus
from weir.live.frames import Watch
from weir.live.sample import Frame

if TYPE_CHECKING:
    from weir.many import progress

PAGE = Path(__file__).with_name("top.html")
CLIENTS_MAX = 32
CLIENT_TIMEOUT_S = 10.0  # for a client that does not read, or says half a request
WAIT_S = 1.0  # between two looks at whether a client is still there
END_S = 2.0  # for clients to hear of the end
TOKEN_CHARS_MIN = 8
POLICY = (
    "default-src 'none'; script-src 'nonce-{0}'; style-src 'nonce-{0}'; connect-src 'self';"
    " base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


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


class Server(ThreadingHTTPServer):
    """A server that answers until it is shut down; its threads end with the program."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, host: str, port: int, token: str | None, board: Board) -> None:
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self.token = token
        self.board = board
        self.room = threading.Semaphore(CLIENTS_MAX)
        super().__init__((host, port), Handler)

    def server_bind(self) -> None:
        """Binds without asking a name server, as the base class would."""
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignores clients that go away."""


class Handler(BaseHTTPRequestHandler):
    """Answers to one request, by its path."""

    server: Server
    timeout = CLIENT_TIMEOUT_S

    def log_message(self, format: str, *args: object) -> None:
        """Logs nothing: the terminal is not for requests."""

    def do_GET(self) -> None:
        """Answers if there is room, and the request may be answered."""
        if not self.server.room.acquire(blocking=False):
            self.say(503, f"more than {CLIENTS_MAX} clients")
            return
        try:
            self.answer()
        finally:
            self.server.room.release()

    def answer(self) -> None:
        """Answers a request that is for this machine and has the token."""
        asked = urlsplit(self.path)
        answers = {"/": self.page, "/events": self.events, "/metrics": self.metrics}
        if not ours(self.headers.get("Host", "")):
            self.say(403, "this name is not this machine's: use its address")
        elif not self.allowed(parse_qs(asked.query)):
            self.say(401, "a token is needed: ?token=TOKEN, or Authorization: Bearer TOKEN")
        elif asked.path not in answers:
            self.say(404, "there are /, /events and /metrics")
        else:
            answers[asked.path]()

    def allowed(self, query: dict[str, list[str]]) -> bool:
        """Returns whether the request has the token, compared in constant time."""
        if self.server.token is None:
            return True
        given = self.headers.get("Authorization", "").removeprefix("Bearer ")
        given = query.get("token", [given])[0]
        return hmac.compare_digest(given.encode(), self.server.token.encode())

    def say(self, status: int, sentence: str) -> None:
        self.head(status, "text/plain; charset=utf-8")
        self.wfile.write(f"{sentence}\n".encode())

    def head(self, status: int, kind: str, nonce: str = "") -> None:
        """Sends the status and all headers."""
        self.send_response(status)
        self.send_header("Content-Type", kind)
        if status == 401:
            self.send_header("WWW-Authenticate", "Bearer")
        self.send_header("Content-Security-Policy", POLICY.format(nonce))
        for name, value in (
            ("Cache-Control", "no-store"),
            ("Referrer-Policy", "no-referrer"),
            ("X-Content-Type-Options", "nosniff"),
        ):
            self.send_header(name, value)
        self.end_headers()

    def page(self) -> None:
        nonce = secrets.token_urlsafe(16)
        self.head(200, "text/html; charset=utf-8", nonce)
        self.wfile.write(PAGE.read_text(encoding="utf-8").replace("NONCE", nonce).encode())

    def events(self) -> None:
        """Sends each frame from now on; a client that reads slowly misses some."""
        self.head(200, "text/event-stream")
        board, number = self.server.board, 0
        while not (board.ended and number == board.number):
            number, text = board.after(number)
            self.wfile.write(b": still here\n\n" if text is None else f"data: {text}\n\n".encode())
        self.wfile.write(b"event: end\ndata: {}\n\n")

    def metrics(self) -> None:
        self.head(200, "text/plain; version=0.0.4; charset=utf-8")
        self.wfile.write(self.server.board.metrics.encode())


def ours(host: str) -> bool:
    """Returns whether the name in a request is an address, localhost or this machine's."""
    name = urlsplit(f"//{host}").hostname or ""
    with contextlib.suppress(ValueError):
        return bool(ipaddress.ip_address(name))
    return name in ("localhost", socket.gethostname().lower())


def address(text: str, token: str | None) -> tuple[str, int]:
    """Returns where to listen; UserError: no ADDR:PORT, or others reach it without a token."""
    host, _, port = text.rpartition(":")
    host = host.strip("[]") or "127.0.0.1"
    try:
        local = ipaddress.ip_address("127.0.0.1" if host == "localhost" else host).is_loopback
    except ValueError:
        local = None
    if local is None or not (port.isascii() and port.isdigit() and int(port) < 1 << 16):
        raise UserError(f"--serve: '{text}' is no address and port such as 127.0.0.1:8790")
    if token is not None and not (len(token) >= TOKEN_CHARS_MIN and token.isprintable()):
        raise UserError(f"--token: at least {TOKEN_CHARS_MIN} printable characters are wanted")
    if not local and token is None:
        raise UserError(f"--serve {text} can be reached from elsewhere: it wants a --token")
    return host, int(port)


def serve(
    text: str, token: str | None, watch: Watch | progress.Watch, frames: Iterator[Frame]
) -> None:
    """Shows frames to all who ask, until there are no more."""
    board = Board()
    host, port = address(text, token)
    try:
        server = Server(host, port, token, board)
    except OSError as error:
        raise UserError(f"--serve {text}: {error.strerror}", 1) from None
    with server:
        shown = f"[{host}]" if ":" in host else host
        said = f"http://{shown}:{server.server_address[1]}/ shows it; q or Ctrl-C ends that"
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


def heard(server: Server) -> None:
    """Waits until all clients have read the end, or one of them has not within END_S."""
    taken = 0
    while taken < CLIENTS_MAX and server.room.acquire(timeout=END_S):
        taken += 1


def as_text(frame: Frame) -> str:
    tables = [
        {"columns": made.columns, "left": made.left, "rows": made.rows}
        for made, _ in frames.tables(frame)
    ]
    return json.dumps({"tables": tables, "frame": frame})
