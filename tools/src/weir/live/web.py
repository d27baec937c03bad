# SPDX-License-Identifier: BSD-3-Clause
"""A small web server of `weir top --serve` and `weir explore`, and who may ask it.

A thread answers each request. Only this machine may ask unless a token is given, which then is part
of each request. The name that a request is for must be an address or this machine's, as a page
elsewhere could have its own name lead here.
"""

from __future__ import annotations

import contextlib
import hmac
import ipaddress
import secrets
import socket
import threading
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

from weir.base.errors import UserError

CLIENTS_MAX = 32
CLIENT_TIMEOUT_S = 10.0  # for a client that does not read, or says half a request
TOKEN_CHARS_MIN = 8
HTML = "text/html; charset=utf-8"
POLICY = (
    "default-src 'none'; script-src 'nonce-{0}'; style-src 'nonce-{0}'; connect-src 'self';"
    " frame-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
Query = dict[str, list[str]]
Answers = Mapping[str, Callable[["Handler", Query], None]]  # by the path of a request


class Server(ThreadingHTTPServer):
    """A server that answers until it is shut down; its threads end with the program."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, host: str, port: int, token: str | None, answers: Answers) -> None:
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self.token = token
        self.answers = answers
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
        answers = self.server.answers
        try:
            query = parse_qs(asked.query, keep_blank_values=True)
        except ValueError:
            self.say(400, "too much was asked")
            return
        if not ours(self.headers.get("Host", "")):
            self.say(403, "this name is not this machine's: use its address")
        elif not self.allowed(query):
            self.say(401, "a token is needed: ?token=TOKEN, or Authorization: Bearer TOKEN")
        elif asked.path not in answers:
            *first, last = answers
            self.say(404, f"there are {', '.join(first)} and {last}")
        else:
            answers[asked.path](self, query)

    def allowed(self, query: Query) -> bool:
        """Returns whether the request has the token, compared in constant time."""
        if self.server.token is None:
            return True
        given = self.headers.get("Authorization", "").removeprefix("Bearer ")
        given = query.get("token", [given])[0]
        return hmac.compare_digest(given.encode(), self.server.token.encode())

    def say(self, status: int, sentence: str) -> None:
        self.head(status, "text/plain; charset=utf-8")
        self.wfile.write(f"{sentence}\n".encode())

    def page(self, text: str) -> None:
        """Sends a page; where it says NONCE, it gets what lets its own script and style be used."""
        nonce = secrets.token_urlsafe(16)
        self.head(200, HTML, POLICY.format(nonce))
        self.wfile.write(text.replace("NONCE", nonce).encode())

    def head(self, status: int, kind: str, policy: str = POLICY.format("")) -> None:
        """Sends the status and all headers."""
        self.send_response(status)
        self.send_header("Content-Type", kind)
        if status == 401:
            self.send_header("WWW-Authenticate", "Bearer")
        self.send_header("Content-Security-Policy", policy)
        for name, value in (
            ("Cache-Control", "no-store"),
            ("Referrer-Policy", "no-referrer"),
            ("X-Content-Type-Options", "nosniff"),
        ):
            self.send_header(name, value)
        self.end_headers()


def word(query: Query, name: str) -> str | None:
    """Returns a word of a request; None where it is empty, too."""
    return query.get(name, [""])[0] or None


def whole(text: str) -> int:
    """Returns the number of a run. UserError: the text is none."""
    if not (text.isascii() and text.isdigit() and len(text) < 9):
        raise UserError("a run is asked for by its number")
    return int(text)


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


def listen(text: str, token: str | None, answers: Answers) -> Server:
    """Returns a server at ADDR:PORT, which does not answer yet. UserError: it cannot be."""
    try:
        return Server(*address(text, token), token, answers)
    except OSError as error:
        raise UserError(f"--serve {text}: {error.strerror}", 1) from None


def url(server: Server) -> str:
    """Returns the address of a server's page."""
    host, port = server.server_address[:2]
    name = str(host)
    return f"http://{f'[{name}]' if ':' in name else name}:{port}/"
