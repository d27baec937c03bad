# SPDX-License-Identifier: BSD-3-Clause
"""weir measure and fit over hidden paths; hidden.py measures twenty."""

import json
import shutil
import signal

import pytest
from hidden import Hidden, Network
from hosts_bed import netns_pids
from lab import NUMBERS, best_of, quiet, wait_for

# Slow enough that a machine with other work carries them.
NETWORKS = (
    Network("switch", 20e6, 40, 1.5, 0.002),
    Network("tbf", 10e6, 60, 1.0, 0.0),
    Network("switch", 6e6, 20, 4.0, 0.0, download=True),
)


@pytest.fixture
def hidden(tmp_path, build, weir_switch):
    def make(network, place=tmp_path):
        return Hidden(place, build, network)

    return make


@pytest.mark.slow
@pytest.mark.parametrize("network", NETWORKS, ids=lambda one: one.kind)
def test_a_hidden_network_is_found(hidden, tmp_path, network):
    def once():
        place = tmp_path / f"try{next(NUMBERS)}"
        place.mkdir()
        with hidden(network, place) as lab:
            model = lab.measure(place / "measured", "--seconds", "2")
            left = [child for child in lab.children if child.running]
        assert len(left) == 2  # switch and sshd: what weir measure started has ended
        return model, json.loads((place / "measured/measured.json").read_text())

    def is_found(seen):
        """Where a program stands still for much of the two seconds, the path was not full."""
        errors = network.errors(seen[0]).values()
        near = all(error is not None and abs(error) < quiet(0.05, 0.25) for error in errors)
        return near and seen[1]["notes"] == []

    model, found = seen = best_of(3, is_found, once)
    assert is_found(seen), (network.errors(model), found["notes"])
    assert network.loss / 4 < model["loss_high"]
    assert model["loss_low"] < 4 * network.loss + 0.05
    assert found["lost_by"] == "both captures"
    assert 0 < found["goodput_bps"] < 1.01 * network.ip_bps


@pytest.mark.slow
def test_what_cannot_be_measured_is_one_sentence(hidden, tmp_path):
    """And leaves neither a folder nor a process at either end."""
    out = tmp_path / "measured"

    def sentence(*options):
        child = lab.weir("measure", lab.to, "--out", out, "--no-report", *options)
        assert child.wait(120) == 1
        assert not out.exists()
        return child.err[-1]

    with hidden(NETWORKS[0]) as lab:
        assert "Connection refused" in sentence("--ssh", lab.ssh)
        said = sentence("--server")
        assert "unable to connect" in said
        assert "firewall" in said
        programs = tmp_path / "programs"
        programs.mkdir()
        for name in ("sh", "mktemp"):
            (programs / name).symlink_to(shutil.which(name))
        bare = lab.sshd(f"SetEnv PATH={programs}")
        assert "iperf3 is not there" in sentence("--ssh", lab.ssh)
        bare.kill()
        (lab.home / "pid").unlink()
        daemon = lab.sshd()
        assert "cannot be run" in sentence("--ssh", tmp_path / "none")
        child = lab.weir("measure", lab.to, "--out", out, "--ssh", lab.ssh, "--no-report")
        wait_for(lambda: any("TCP flow" in line for line in child.err), "the load")
        child.send(signal.SIGINT)
        assert child.wait(120) == 130
        assert child.err[-1] == "weir: interrupted"
        assert not out.exists()
        wait_for(
            lambda: netns_pids(lab.space("b")) == [daemon.process.pid],
            "the other end's programs to end",
        )


@pytest.mark.slow
def test_without_captures_and_udp_less_is_known(hidden, tmp_path):
    """A server runs there, and tcpdump is not installed: the folder is that of iperf3's result."""
    out, programs = tmp_path / "measured", tmp_path / "bin"
    programs.mkdir()
    for name in ("iperf3", "ping"):
        (programs / name).symlink_to(shutil.which(name))
    options = ("--server", "--tcp-only", "--seconds", "2", "--out", out)
    with hidden(NETWORKS[0]) as lab:
        server = lab.host("b", "iperf3", "-s", "--forceflush")
        wait_for(lambda: any("listening" in line for line in server.out), "the server")
        child = lab.weir("measure", lab.to, *options, PATH=programs)
        assert child.wait(120) == 0, child.err[-1]
    found = json.loads((out / "measured.json").read_text())
    assert (found["lost_segs"], found["identified"], found["trials"]) == (None, None, [])
    assert any("no capture here" in note for note in found["notes"])
    assert json.loads((out / "summary.json").read_text())["program"] == "iperf3"
    assert "no capture here" in (out / "report.html").read_text()
