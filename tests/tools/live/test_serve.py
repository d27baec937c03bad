# SPDX-License-Identifier: BSD-3-Clause
"""weir top --serve: who may ask, what the page and Prometheus get, and how it ends."""

import contextlib
import fcntl
import io
import json
import os
import queue
import re
import signal
import socket
import subprocess
import sys
import threading
import urllib.error
import urllib.request

import pytest
from command import one_line
from prometheus_client.parser import text_string_to_metric_families
from test_browser import chromium  # noqa: F401
from test_live import counting, fake, folder, sender_sample, switch, switch_sample  # noqa: F401
from waiting import WAIT_S, wait_for
from weir.base.errors import UserError
from weir.live import prometheus, sample, serve, web
from weir.many import progress

TOKEN = "a word that is long"
WIDTHS = (1280, 390)


class Served:
    """A server in a thread, whose frames a test gives."""

    def __init__(self, token=None):
        self.given, self.last = queue.Queue(), []
        frames = iter(self.given.get, None)
        words = ("127.0.0.1:0", token, self, frames)
        self.thread = threading.Thread(target=serve.serve, args=words, daemon=True)
        with contextlib.redirect_stderr(io.StringIO()) as said:
            self.thread.start()
            shown = r"(http://127.0.0.1:[0-9]+)/ shows it"
            self.url = wait_for(lambda: re.search(shown, said.getvalue()), said.getvalue)[1]

    def put(self, *samples):
        before, self.last = self.last, samples
        self.given.put(sample.frame(before, samples))

    def end(self):
        self.given.put(None)
        self.thread.join(WAIT_S)
        assert not self.thread.is_alive()


@pytest.fixture
def served():
    started = []

    def start(token=None):
        started.append(Served(token))
        second = (switch_sample(2, 5000), sender_sample(2, 5000, measured=0))
        started[-1].put(switch_sample(1, 1000), sender_sample(1, 1000))
        started[-1].put(*second)
        return started[-1]

    yield start
    for one in started:
        one.end()


def ask(url, **headers):
    """Status, headers and text of an answer."""
    request = urllib.request.Request(url, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, answer.headers, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.headers, error.read().decode()


def metrics(text):
    """By name and labels, but without the program's."""
    found = {}
    for family in text_string_to_metric_families(text):
        assert family.documentation
        assert family.type in ("counter", "gauge")
        for one in family.samples:
            found[one.name, *list(one.labels.values())[2:]] = one.value
    lines = [line.partition("} ")[0] for line in text.splitlines() if line[0] != "#"]
    assert len(lines) == len(set(lines))
    return found


def test_the_page_loads_nothing_from_elsewhere(served):
    status, headers, page = ask(served().url + "/")
    assert status == 200
    policy = headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; script-src 'nonce-")
    assert re.search("nonce-([^']+)'", policy)[1] in page
    assert "NONCE" not in page
    assert re.findall('https?://[^"]*', page) == ["http://www.w3.org/2000/svg"]


def test_who_may_ask(served):
    open_, closed = served(), served(TOKEN)
    quoted = TOKEN.replace(" ", "+")
    assert ask(closed.url + "/metrics")[0] == 401
    assert ask(closed.url + "/", Authorization="Bearer another word")[0] == 401
    assert ask(closed.url + "/?token=w%C3%B6rd")[0] == 401
    for status, headers, _ in (
        ask(f"{closed.url}/?token={quoted}"),
        ask(closed.url + "/", Authorization=f"Bearer {TOKEN}"),
        ask(open_.url + "/", Host="localhost:1"),
        ask(open_.url + "/", Host="[::1]"),
    ):
        assert (status, headers["Referrer-Policy"]) == (200, "no-referrer")
    # A page elsewhere whose name was made to lead here.
    assert ask(open_.url + "/", Host="evil.example")[0] == 403
    assert ask(f"{closed.url}/?token={quoted}", Host="evil.example:80")[0] == 403
    assert ask(open_.url + "/etc/passwd")[0] == 404


@pytest.mark.parametrize(
    ("text", "token", "says"),
    [
        ("8790", None, "--serve: '8790' is no address and port such as 127.0.0.1:8790"),
        ("127.0.0.1:x", None, "--serve: '127.0.0.1:x' is no address and port"),
        ("127.0.0.1:65536", None, "--serve: '127.0.0.1:65536' is no address and port"),
        ("here:80", None, "--serve: 'here:80' is no address and port"),
        ("0.0.0.0:80", None, "--serve 0.0.0.0:80 can be reached from elsewhere: it wants a --tok"),
        ("[::]:80", None, "--serve [::]:80 can be reached from elsewhere: it wants a --token"),
        ("127.0.0.1:80", "short", "--token: at least 8 printable characters are wanted"),
    ],
)
def test_addresses_that_cannot_be(text, token, says):
    if text == "8790":
        assert web.address(":8790", None) == ("127.0.0.1", 8790)
        assert web.address("[::1]:0", None) == ("::1", 0)
        assert web.address("0.0.0.0:80", TOKEN) == ("0.0.0.0", 80)
        text, says = "x8790", says.replace("'8790'", "'x8790'")
    with pytest.raises(UserError) as error:
        web.address(text, token)
    assert str(error.value).startswith(says)


def test_what_cannot_be_served_is_one_sentence(fake, weir, tmp_path):  # noqa: F811
    done = weir("top", "--serve", env={"RUNTIME_DIRECTORY": str(tmp_path)})
    assert (done.status, "no program of Weir runs" in one_line(done.err)) == (1, True)
    switch(fake, **counting())
    with socket.create_server(("127.0.0.1", 0)) as taken:
        where = f"127.0.0.1:{taken.getsockname()[1]}"
        done = weir("top", "--serve", where)
    said = f"weir: --serve {where}: Address already in use\n"
    assert (done.status, done.err) == (1, said)
    done = weir("top", "--serve", "--once")
    assert (done.status, "without --once and --json" in one_line(done.err)) == (2, True)
    for name, status, says in (("none", 2, "no such folder"), (".", 1, "no sweep runs there")):
        done = weir("top", "--sweep", name)
        assert (done.status, says in one_line(done.err)) == (status, True)


def test_prometheus_reads_what_is_known(served):
    one = served()
    one.put(switch_sample(3, 9000), sender_sample(3, 9000, measured=0))

    def asked():
        found = metrics(ask(one.url + "/metrics")[2])
        return found.get(("weir_port_received_packets_total", "left")) == 9000 and found

    found = wait_for(asked, "the sample")
    assert found["weir_path_dropped_packets_total", "forward", "queue_full"] == 4
    assert found["weir_link_rate_bytes_per_second", "forward.link"] == 125e6
    assert found["weir_group_flows", "ours", "open"] == 2
    assert found["weir_run_duration_seconds",] == pytest.approx(30)
    assert found["weir_port_dropped_packets_total", "left", "tx_dropped"] == 3
    # What is not known is not there: no_mbuf, and the round trip of flows that have none.
    assert ("weir_port_dropped_packets_total", "left", "no_mbuf") not in found
    assert ("weir_group_rtt_seconds", "ours") not in found
    text = prometheus.text([sender_sample(3, 9000)], {})
    assert metrics(text)["weir_group_rtt_seconds", "ours"] == pytest.approx(0.02)


def test_a_label_may_have_any_text():
    made = sender_sample(1, 10)
    made.groups["0"]["name"] = 'a"b\\c\nd'
    assert ("weir_group_timeouts_total", 'a"b\\c\nd') in metrics(prometheus.text([made], {}))


def test_a_client_that_does_not_read_holds_nothing(served):
    """Each has its place before the next one comes, and before the one that is refused asks."""
    one = served()
    port = int(one.url.rpartition(":")[2])
    with contextlib.ExitStack() as stack:
        for _ in range(web.CLIENTS_MAX):
            deaf = stack.enter_context(socket.create_connection(("127.0.0.1", port), WAIT_S))
            deaf.sendall(b"GET /events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            assert deaf.recv(1, socket.MSG_PEEK)
        assert ask(one.url + "/metrics")[0] == 503
        one.put(switch_sample(3, 9000))
        one.end()
    one.thread.join()


def test_it_ends_with_ctrl_c(fake, folder):  # noqa: F811
    switch(fake, **counting())
    argv = [sys.executable, "-m", "weir", "top", "--serve", "127.0.0.1:0", "--interval", "0.1"]
    with subprocess.Popen(argv, stderr=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL) as top:
        url = top.stderr.readline().split("/ shows")[0]
        with urllib.request.urlopen(url + "/events", timeout=60) as events:
            line = events.readline()
            while not line.startswith(b"data: "):
                line = events.readline()
            shown = json.loads(line.removeprefix(b"data: "))
            assert shown["tables"][0]["columns"][0] == "program"
            top.send_signal(signal.SIGINT)
            assert b"event: end" in events.read()
        assert top.wait(60) == 0
        assert top.stderr.read() == ""


def test_a_sweep_says_how_far_it_is(tmp_path):
    kept = progress.Progress(tmp_path, ["a", "b", "c"], here=True)
    (tmp_path / ".c.1.cell").mkdir()
    with (tmp_path / progress.LOCK).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        frames = progress.Watch(tmp_path).frames(0, lambda _: False)
        kept.add("a", "done")
        (row,) = next(frames)["sweeps"]
        assert row.pop("left_ns") > 0
        counts = {"cells": 3, "done": 1, "reused": 0, "failed": 0, "running": 1}
        assert row == {"name": str(tmp_path), **counts}
        text = prometheus.text((), {"sweeps": [{**row, "left_ns": None}]})
        assert f'weir_sweep_cells{{sweep="{tmp_path}",status="running"}} 1\n' in text
        assert ("weir_sweep_left_seconds",) not in metrics(text)
        kept.add("b", "failed")
        kept.add("c", "reused")
    (row,) = list(frames)[-1]["sweeps"]
    assert (row["done"], row["reused"], row["failed"], row["left_ns"]) == (1, 1, 1, None)


@pytest.mark.slow
def test_the_page_shows_what_the_terminal_does(served, chromium, monkeypatch):  # noqa: F811
    one, wrong, asked = served(TOKEN), [], []
    shown = []
    for width, scheme in zip(WIDTHS, ("light", "dark"), strict=True):
        size = {"width": width, "height": 900}
        page = chromium.new_page(viewport=size, color_scheme=scheme)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("console", lambda said: said.type == "error" and wrong.append(said.text))
        page.on("request", lambda request: asked.append(request.url))
        page.goto(f"{one.url}/?token={TOKEN.replace(' ', '+')}")
        page.wait_for_selector("table")
        shown.append(page)
    for second in range(3, 9):
        one.put(switch_sample(second, second**3 * 1000), sender_sample(second, second**3 * 900))
    for page, width in zip(shown, WIDTHS, strict=True):
        page.wait_for_selector("section:has-text('goodput of each group') polyline")
        assert "forward" in page.inner_text("#tables")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert "as of" in page.inner_text("#state")
    one.end()
    for page, width in zip(shown, WIDTHS, strict=True):
        page.wait_for_selector("#state:has-text('has ended')")
        if place := os.environ.get("WEIR_PICTURES"):
            page.screenshot(path=f"{place}/top-{width}.png", full_page=True)
        page.close()
    assert wrong == []
    assert all(url.startswith(one.url) for url in asked)
