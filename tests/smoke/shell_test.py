# SPDX-License-Identifier: BSD-3-Clause
"""weir shell: programs of the user in it, and that nothing of it stays."""

import contextlib
import functools
import http.server
import json
import os
import pty
import re
import select
import shlex
import signal
import sys
import threading
import time
from pathlib import Path

import pytest
from lab import MACHINES, RUNTIME, WAIT_S, WORKER, Child, namespaces, processes, sh, wait_for

WEIR = [sys.executable, "-m", "weir"]
# A user that is root in no namespace but his own; the last is what maps root there.
USER = ["setpriv", "--bounding-set=-all,+setfcap", "--inh-caps=-all"]
RATE, DELAY = "50Mbit", "5ms"
LINK = ["--rate", RATE, "--delay", DELAY]
RATE_BPS = 50e6


@pytest.fixture(autouse=True)
def alone(build, weir_switch, monkeypatch):
    monkeypatch.setenv("WEIR_BUILD", str(build))
    with MACHINES[WORKER]:
        yield


@pytest.fixture
def page(tmp_path):
    """An HTTP server of this machine, with a page of 100 kB."""
    (tmp_path / "page").write_bytes(bytes(100_000))
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=tmp_path)
    handler.log_message = handler.func.log_message = lambda *_: None
    with http.server.ThreadingHTTPServer(("", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"{server.server_address[1]}/page"
        server.shutdown()


def shell(*words, as_user=False):
    """A `weir shell` that has ended."""
    child = Child([*(USER if as_user else []), *WEIR, "shell", *words])
    child.status = child.wait(WAIT_S)
    return child


def what_there_is():
    """Whatever could stay: processes, namespaces, interfaces, tables, files."""
    places = (Path("/run/netns"), RUNTIME)
    files = {path for place in places if place.is_dir() for path in place.iterdir()}
    shared = [path for path in (Path("/dev/shm/weir"),) if path.exists()]
    links = sh("ip", "-br", "link").splitlines()
    weirs = {line.split()[0] for line in links if line.startswith("weir")}
    tables = set(sh("nft", "list", "tables").splitlines())
    return {*processes(), *namespaces(), *files, *shared, *weirs, *tables}


def test_curl_through_a_shell_in_a_shell(page):
    """The inner one's host is the outer one, which forwards with its own address."""
    inner = [*WEIR, "shell", "--delay", "10ms", "--"]
    form = ["-sS", "-w", "%{size_download} %{time_connect}", "-o", "/dev/null"]
    curl = ["curl", *form, f"http://198.18.1.2:{page}"]
    child = shell(*LINK, "--", *inner, *curl)
    assert child.status == 0, child.err
    size, connect_s = child.out[-1].split()
    assert int(size) == 100_000
    assert float(connect_s) >= 0.030
    assert sum(line.startswith("down  ") for line in child.err) >= 2, child.err  # a report each


@pytest.mark.parametrize("as_user", [True, False])
def test_iperf3_without_root_and_with_super_frames_as_root(tmp_path, as_user):
    out = tmp_path / "run"
    script = "iperf3 -J -c $WEIR_SERVER -t 1; exit 7"
    options = [*LINK, "--server", "iperf3 -s", "--out", out]
    child = shell(*options, "--", "sh", "-c", script, as_user=as_user)
    assert child.status == 7, child.err
    result = json.loads("\n".join(child.out))["end"]
    assert 0 < result["sum_received"]["bits_per_second"] < 1.1 * RATE_BPS
    summary = json.loads((out / "summary.json").read_text())
    assert summary["ledger"]["balanced"]
    assert "interrupted" not in {fact["cause"] for fact in summary["verdicts"]}
    assert summary["links"]["forward"]["rate_bps"] == RATE_BPS
    assert summary["ledger"]["paths"]["forward"]["out"]["bytes"] > 1e5
    for port in summary["ports"]:
        assert ("kernel" in port) != as_user
    if not as_user:
        assert summary["ports"][0]["kernel"]["packets_per_frame_in"] > 1
    assert (out / "report.html").exists()


def test_the_way_out_of_a_user(page):
    """slirp4netns is the other side, and leads to this machine."""
    curl = f"curl -sS -o /dev/null -w %{{size_download}} http://$WEIR_SERVER:{page}"
    child = shell(*LINK, "--", "sh", "-c", curl, as_user=True)
    assert (child.status, child.out) == (0, ["100000"]), child.err


class Terminal:
    """A `weir shell` at a terminal of its own."""

    def __init__(self, *words):
        self.pid, self.file = pty.fork()
        if self.pid == 0:
            os.execv(WEIR[0], [*WEIR, "shell", *words])
        self.seen = ""

    def wait_for(self, text):
        deadline = time.monotonic() + WAIT_S
        while text not in self.seen:
            assert time.monotonic() < deadline, self.seen
            if select.select([self.file], [], [], 0.1)[0]:
                with contextlib.suppress(OSError):
                    self.seen += os.read(self.file, 4096).decode(errors="replace")
        self.seen = self.seen.partition(text)[2]

    def write(self, text):
        os.write(self.file, text.encode())

    def status(self):
        """Once it has ended."""
        while not (found := os.waitpid(self.pid, os.WNOHANG))[0]:
            if select.select([self.file], [], [], 0.1)[0]:
                with contextlib.suppress(OSError):
                    os.read(self.file, 4096)
        return os.waitstatus_to_exitcode(found[1])


def test_a_terminal():
    """Ctrl-C is for the command, not for the shell; what bash says, it ends with."""
    terminal = Terminal("--delay", "1ms", "--", "bash", "--norc")
    terminal.wait_for("[weir delay=1ms]")
    terminal.write("echo $((6 * 7)); sleep 1000\n")
    terminal.wait_for("42\r\n")
    wait_for(lambda: any("sleep 1000" in line for line in processes().values()), "sleep")
    terminal.write("\x03")
    terminal.wait_for("[weir delay=1ms]")
    terminal.write("echo status $?\n")
    terminal.wait_for("status 130\r\n")
    terminal.write("exit 3\n")
    assert terminal.status() == 3


@pytest.mark.parametrize("name", ["KILL", "TERM"])
def test_nothing_is_left(tmp_path, name):
    """The command follows no signal and leaves a process behind, as does its own child."""
    before = what_there_is()
    ready = tmp_path / "ready"
    script = f"trap '' TERM; setsid sleep 1000 & touch {shlex.quote(str(ready))}; sleep 1000"
    child = Child([*WEIR, "shell", *LINK, "--", "sh", "-c", script])
    wait_for(ready.exists, lambda: f"the command: {child.err}")
    assert re.search(r"\bsleep 1000\b", str(processes()))
    child.send(signal.Signals[f"SIG{name}"])
    assert child.wait(WAIT_S) != 0
    # What was there before may go: the kernel takes its time to remove the last shell's interfaces.
    wait_for(lambda: what_there_is() <= before, lambda: f"the end of {what_there_is() - before}")


def test_the_switch_ends():
    """The command has no network any more: it is ended, and the status says that this failed."""
    child = Child([*WEIR, "shell", *LINK, "--", "sleep", "1000"])
    wait_for(
        lambda: any(line.startswith("sleep 1000") for line in processes().values()),
        lambda: child.err,
    )
    switch = next(pid for pid, line in processes().items() if "weir-switch" in line.split()[0])
    os.kill(switch, signal.SIGKILL)
    assert child.wait(WAIT_S) == 1
    assert "weir: weir-switch ended: so does the shell" in child.err
