# SPDX-License-Identifier: BSD-3-Clause
"""The model of a measurement, of numbers that a link of 12 Mbit/s and 40 ms would give."""

import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass

import msgspec
import numpy as np
import pytest
from command import one_line
from waiting import wait_for
from weir.analysis import measured
from weir.analysis.measured import Count, Measured, Sample, Trial
from weir.base import terminal
from weir.measure import far, fit, measure

RATE_BPS, RTT_NS, PACKET_NS = 12e6, 40e6, 1e6  # 1500 bytes of IP take 1 ms
PING_NS = 84 * 8e9 / RATE_BPS


def counts(seconds, received, lost, goodput_bps=RATE_BPS):
    """Intervals of 100 ms with so many datagrams each."""
    return [Count(n / 10, (n + 1) / 10, goodput_bps, received, lost) for n in range(10 * seconds)]


def measurement(
    queue_ns=0.0, full_ns=50e6, lost=0, retransmits=0, trials=True, goodput=0.9, burst=0
):
    """Pings each 50 ms: 2 s idle, 6 s of load, then UDP from 10 s (full) and from 14 s (half)."""
    waits = ((2, 0.0), (8, queue_ns), (10, 0.0), (14, full_ns), (20, 0.0))
    pings = []
    for n in range(360):
        wait = next(wait for end, wait in waits if n / 20 < end)
        pings.append((n / 20, RTT_NS + PING_NS + wait))
    full = Trial(1.6 * RATE_BPS, 10.0, 14.3, counts(4, 100, 60))
    half = Trial(0.5 * RATE_BPS, 14.5, 18.0, counts(3, 50, 0))
    for one in half.counted[7 : 7 + lost]:
        one.lost = 1
    half.counted[5].lost = burst
    return Measured(
        host="far", address="198.18.0.2", download=False, control="cubic", mtu_bytes=1500,
        load_s=(2.0, 8.0), pings=pings,
        samples=[Sample(3.0, RTT_NS + queue_ns, 30_000, retransmits)],
        counted=counts(6, None, None, goodput * RATE_BPS * 1448 / 1500),
        trials=[full, half] if trials else [], goodput_bps=9e6, retransmits=retransmits,
    )  # fmt: skip


def test_udp_shows_rate_rtt_buffer_and_loss():
    model = fit.fit(measurement(lost=3))
    assert model.rate_bps == pytest.approx(RATE_BPS)
    assert model.base_rtt_ns == pytest.approx(RTT_NS)
    assert model.buffer_bytes == pytest.approx((50 + 0.25) * 1518)  # 50 ms are 50 packets
    assert model.loss == 3 / 1503
    assert model.loss_low < 0.002 < model.loss_high
    assert [line.split(":")[0] for line in model.unknown] == ["Not known"]


def test_a_single_loss_is_no_rate():
    said = fit.fit(measurement(lost=1)).unknown
    assert said[0].startswith("Loss is not known below 0.37 %: 1 of 1,501 packets")


def test_a_burst_of_losses_is_no_random_loss():
    """A host that stood still sends all at once what was due."""
    model = fit.fit(measurement(lost=3, burst=20))
    assert model.loss == 3 / 1453  # without the 50 datagrams of that interval, and the 20
    assert "1 intervals" in model.unknown[0]


def test_a_delay_that_holds_is_found_among_those_of_a_busy_host():
    """Half of the pings met a queue that had run empty, or were late themselves."""
    waits = [50e6 + n * 1e4 for n in range(20)] + [n * 2.5e6 for n in range(10)]
    assert fit.densest(np.array([*waits, *(60e6 + n**2 * 1e6 for n in range(10))]), 1e6) == (
        pytest.approx(50e6, rel=0.01)
    )


def test_a_delay_that_holds_is_found_in_pings_of_whole_milliseconds():
    """Above 100 ms ping rounds: several values have many pings, the full queue's has most."""
    waits = np.repeat([36e6, 38e6, 39e6, 40e6, 41e6, 43e6, 44e6], [8, 9, 9, 9, 9, 24, 2])
    assert fit.densest(waits, 7e4) == 43e6


def test_a_full_queue_s_delay_is_the_middle_of_what_a_packet_s_time_makes_of_it():
    """A ping waits for the rest of the packet on the wire, too: all of it, or none."""
    waits = 10e6 + np.random.default_rng(1).uniform(0, 7e5, 140)
    assert fit.densest(waits, 7e5) == pytest.approx(10.35e6, abs=0.03e6)


def test_udp_is_sent_without_large_buffers_where_a_host_refuses_them(tmp_path, monkeypatch):
    fake = tmp_path / "iperf3"
    fake.write_text("""#!/bin/sh
echo "$@" >>"$0.asked"
case "$*" in *" -w "*) echo '{"error": "socket buffer size not set"}';; *) echo {};; esac
""")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    far.Client("far", "198.18.0.2", 5201, False).trial(1e6, 1.0, 1472, 0.0)
    first, second = (tmp_path / "iperf3.asked").read_text().splitlines()
    assert first == f"{second} -w {far.BUFFER}"


def test_a_buffer_of_few_packets_is_said_to_be_known_badly():
    assert "half a packet" in fit.fit(measurement(full_ns=5e6)).unknown[0]


def test_tcp_alone_shows_a_buffer_only_if_it_filled():
    filled = fit.fit(measurement(queue_ns=30e6, trials=False, retransmits=4, goodput=1.0))
    assert filled.rate_bps == pytest.approx(RATE_BPS)
    assert filled.buffer_bytes == pytest.approx(30 * 1518)
    assert filled.loss is None
    never = fit.fit(measurement(queue_ns=30e6, trials=False))
    assert never.buffer_bytes is None
    assert never.buffer_at_least_bytes == pytest.approx(0.9 * 30 * 1518)
    assert "never filled" in never.unknown[0]


def test_without_a_queue_neither_rate_nor_buffer_is_known():
    model = fit.fit(measurement(trials=False, goodput=0.5))
    assert (model.rate_bps, model.buffer_bytes) == (None, None)
    assert model.rate_at_least_bps == pytest.approx(0.5 * RATE_BPS)
    assert "kept no queue" in model.unknown[0]


def test_responsiveness_is_of_pings_and_of_the_flow():
    found = measurement(queue_ns=20e6)
    assert found.under_load.idle_ns == pytest.approx(RTT_NS + PING_NS)
    both_ns = (RTT_NS + PING_NS + 20e6 + RTT_NS + 20e6) / 2
    assert found.under_load.rpm == pytest.approx(60e9 / both_ns)
    assert found.queueing_ns == pytest.approx(20e6)


def test_what_was_not_measured_is_null():
    found = msgspec.structs.replace(measurement(), pings=[], samples=[], goodput_bps=None)
    assert found.table.rows[0][:6] == ["–"] * 6
    with pytest.raises(fit.UserError, match="no round trip"):
        fit.fit(found)


@dataclass
class Folder:
    """A run folder with a measurement."""

    path: object

    def write(self, found):
        (self.path / "summary.json").write_text('{"kind": "import", "program": "iperf3"}')
        (self.path / measured.FILE).write_bytes(msgspec.json.encode(found))


@pytest.fixture
def folder(tmp_path):
    return Folder(tmp_path)


def test_the_model_runs_and_is_compared(weir, folder):
    """CUBIC in the model, beside a measurement that was made up: only the idle RTT is equal."""
    folder.write(measurement(queue_ns=30e6, lost=3))
    done = weir("fit", folder.path, "--json")
    assert done.status == 0, done.err
    rows = {row["name"]: row for row in json.loads(done.out)["compared"]}
    assert rows["idle RTT"]["model"] == pytest.approx(rows["idle RTT"]["measured"], rel=0.02)
    assert all(row["model"] is not None for row in rows.values())
    assert "is there already" in one_line(weir("fit", folder.path).err)


# A program whose run folder is there when it says so, and whose starter is sent a signal.
BEGINS = """
OUT.mkdir()
(OUT / "new").write_text("{}")
(OUT / "new").rename(OUT / "manifest.json")  # whole, as soon as it is there
print("begins", file=sys.stderr, flush=True)
time.sleep(60)
"""
INTERRUPTS = "os.kill(os.getppid(), signal.%s)\ntime.sleep(60)"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_fit_that_is_ended_early_leaves_nothing(folder, programs, number):
    """So the next one needs no --force. What was there before stays, unless it is asked for."""
    folder.write(measurement(queue_ns=30e6))
    env = {**os.environ, **programs(sim=BEGINS)}
    before = {*folder.path.iterdir()}
    argv = [sys.executable, "-m", "weir", "fit", folder.path]
    with subprocess.Popen(argv, env=env, text=True, stderr=subprocess.PIPE) as process:
        began = folder.path / "fitted/manifest.json"
        wait_for(lambda: began.exists() or process.poll() is not None)
        process.send_signal(number)
        assert process.wait(60) == 128 + number
    assert {*folder.path.iterdir()} == before


def test_a_fit_replaces_nothing_unasked(weir, folder):
    folder.write(measurement(queue_ns=30e6))
    taken = folder.path / "fitted"
    taken.mkdir()
    (taken / "manifest.json").write_text("{}")
    assert "fitted is there already: --force" in one_line(weir("fit", folder.path).err)
    assert [path.name for path in taken.iterdir()] == ["manifest.json"]
    assert not taken.with_suffix(".yaml").exists()
    said = one_line(weir("fit", folder.path, "--out", folder.path / "home").err)
    assert said.endswith("home: write a name that ends with .yaml")


@pytest.mark.parametrize(
    ("name", "raised"), [("SIGINT", KeyboardInterrupt), ("SIGTERM", SystemExit)]
)
def test_an_interrupted_comparison_ends_the_measurement(
    programs, monkeypatch, tmp_path, name, raised
):
    """It is not one that could not be made, which is a note."""
    for key, value in programs(pcap=INTERRUPTS % name).items():
        monkeypatch.setenv(key, value)
    for file in measure.FILES:
        (tmp_path / file).touch()
    found = measurement()
    with pytest.raises(raised):
        measure.compared(found, tmp_path, terminal.console())
    assert found.notes == []


def test_only_a_measured_run_is_fitted(weir, folder):
    assert one_line(weir("fit", "nothing").err) == "weir: nothing: no such run folder"
    (folder.path / "summary.json").write_text("{}")
    done = weir("fit", folder.path)
    assert done.status == 2
    assert "weir measure HOST" in one_line(done.err)
    (folder.path / measured.FILE).write_text('{"host": 1}')
    assert "another shape" in one_line(weir("fit", folder.path).err)


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["-x"], "No such option"),
        (["far", "--most", "much"], "--most: 'much' is not a rate"),
        (["no-such-host.invalid", "--server"], "no such host"),
    ],
)
def test_bad_options_are_one_sentence(weir, tmp_path, words, why):
    done = weir("measure", *words, "--out", tmp_path / "run")
    assert done.status in (1, 2)
    assert why in one_line(done.err)
    assert not (tmp_path / "run").exists()
