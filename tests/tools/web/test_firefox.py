# SPDX-License-Identifier: BSD-3-Clause
"""The playground in Debian's Firefox: the native digests, and without a network.

Firefox is driven by its Marionette protocol: WebDriver's commands as JSON over a socket, each
message with its length before it.
"""

import json
import os
import signal
import socket
import subprocess
import time

import pytest
from test_playground import ROOT, SIM
from test_playground_page import SHORT, WAIT_MS, site

SAME = ["bbr3-cubic", "churn", "course/aimd", "dualpi2-l4s", "jitter", "lte-trace"]
PREFERENCES = {
    "marionette.port": 0,  # any; it is written to a file of the profile
    "app.update.enabled": False,
    "datareporting.policy.dataSubmissionEnabled": False,
    "toolkit.telemetry.reportingpolicy.firstRun": False,
    "network.captive-portal-service.enabled": False,
    "network.connectivity-service.enabled": False,
    "services.settings.server": "",
}
__all__ = ["site"]  # a fixture

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.environ.get("WEIR_WEB") != "1", reason="needs WEIR_WEB=1"),
]


class Firefox:
    """A connection to a browser."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=WAIT_MS / 1e3)
        self.stream = self.socket.makefile("rb")
        self.received()  # what it is
        self.sent = 0
        self.ask("WebDriver:NewSession", {})
        limits = {"script": WAIT_MS, "pageLoad": WAIT_MS, "implicit": 0}
        self.ask("WebDriver:SetTimeouts", limits)

    def received(self):
        length = b""
        while (byte := self.stream.read(1)) != b":":
            assert byte, "Firefox has ended"
            length += byte
        return json.loads(self.stream.read(int(length)))

    def ask(self, command, arguments):
        self.sent += 1
        message = json.dumps([0, self.sent, command, arguments]).encode()
        self.socket.sendall(b"%d:%s" % (len(message), message))
        _, number, error, value = self.received()
        assert number == self.sent
        assert error is None, error
        return value

    def open(self, address):
        """Opens an address, as if nothing had been open."""
        self.ask("WebDriver:Navigate", {"url": "about:blank"})
        self.ask("WebDriver:Navigate", {"url": address})
        self.until("document.querySelector('.ready')")

    def script(self, text):
        asked = {"script": f"return {text}", "args": [], "newSandbox": False}
        return self.ask("WebDriver:ExecuteScript", asked)["value"]

    def until(self, condition):
        """Waits for a condition in the page, and fails after WAIT_MS."""
        end = time.monotonic() + WAIT_MS / 1e3
        while not self.script(f"Boolean({condition})"):
            assert time.monotonic() < end, condition
            time.sleep(0.1)

    def run(self, options):
        """Runs what is in the page, and returns the text of its results."""
        self.script(f"(document.getElementById('options').value = {json.dumps(options)}, null)")
        self.script("(document.getElementById('results').replaceChildren(), null)")
        self.script("(document.getElementById('run').click(), null)")
        frame = "document.querySelector('#results iframe')"
        self.until(f"{frame}?.contentDocument.querySelector('.canvas')")
        self.script(f"({frame}.scrollIntoView(), null)")  # figures are drawn when they are near
        self.until(f"{frame}.contentDocument.querySelector('.drawn')")
        return self.script("document.getElementById('results').innerText")


@pytest.fixture(scope="module")
def firefox(tmp_path_factory):
    profile = tmp_path_factory.mktemp("firefox")
    lines = [f"user_pref({json.dumps(k)}, {json.dumps(v)});" for k, v in PREFERENCES.items()]
    (profile / "user.js").write_text("\n".join(lines))
    argv = ["firefox-esr", "--headless", "--marionette", "--no-remote", "--profile", profile]
    with subprocess.Popen(
        argv,
        env={**os.environ, "HOME": str(profile)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as browser:
        end, port = time.monotonic() + WAIT_MS / 1e3, profile / "MarionetteActivePort"
        while not port.exists() or not port.read_text():
            assert browser.poll() is None, "Firefox has ended"
            assert time.monotonic() < end, "Firefox does not begin"
            time.sleep(0.1)
        connection = Firefox(int(port.read_text()))
        yield connection
        connection.stream.close()
        connection.socket.close()
        os.killpg(browser.pid, signal.SIGKILL)


def test_firefox_has_the_native_digests(firefox, site, tmp_path):
    for name in SAME:
        firefox.open(f"http://127.0.0.1:{site.server_port}/index.html#example={name}")
        text = firefox.run("-o duration=3s -o warmup=1s")
        command = [SIM, f"configs/{name}.yaml", "-o", "duration=3s", "-o", "warmup=1s"]
        out = tmp_path / name.replace("/", "-")
        subprocess.run([*command, "--out", out], cwd=ROOT, check=True, capture_output=True)
        native = json.loads((out / "summary.json").read_text())
        assert f"telemetry digest {native['digest']}" in text, name
        assert "ledger: balanced" in text


def test_firefox_shows_the_commands_sentence(firefox, site):
    firefox.open(f"http://127.0.0.1:{site.server_port}/index.html")
    firefox.script("(document.getElementById('options').value = '-o duration=fast', null)")
    firefox.script("(document.getElementById('run').click(), null)")
    firefox.until("document.getElementById('error').textContent")
    text = firefox.script("document.getElementById('error').innerText")
    assert text == "-o duration=fast: duration: 'fast' is not a time such as 20ms"


def test_firefox_needs_no_network_once_the_page_was_loaded(firefox, site):
    """The server has ended: this test is the last."""
    address = f"http://127.0.0.1:{site.server_port}/index.html"
    firefox.open(address)
    firefox.until("navigator.serviceWorker.controller")
    site.shutdown()
    site.server_close()
    firefox.open(address)
    set_config = f"(document.getElementById('config').value = {json.dumps(SHORT)}, null)"
    firefox.script(set_config)
    assert "ledger: balanced" in firefox.run("")
