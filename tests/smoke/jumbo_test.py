# SPDX-License-Identifier: BSD-3-Clause
"""Packets of 9000 bytes through the live programs (live.mtu), and those that do not fit."""

import json
import subprocess
import sys

import pytest
from lab import ADDRESS, CPUS, PEER, Lab, replay
from loopback_test import Loop
from weir.analysis.ring import open_ring

FORWARD, ENQUEUE = 0, 1
BYTES = 1_000_000
# Ethernet's header and FCS around headers of IP and TCP and its timestamps: 111 full ones, a rest.
PAYLOAD, HEADERS = 8948, 14 + 4 + 20 + 20 + 12
FULL, REST = PAYLOAD + HEADERS, BYTES - 111 * PAYLOAD + HEADERS
MEAN = (111 * FULL + REST) / 112
PATHS = """
  forward: [{link: {rate: 200Mbit, queue: {fifo: {limit: 4MB}}}}, {delay: {delay: 2ms}}]
  reverse: [{delay: {delay: 2ms}}]"""
MTU = ("-o", "live.mtu=9000B")
SENDER = """
seed: 1
duration: 60s
flows: [{count: 2, cc: cubic, mss: 8960B, source: {size: {bytes: %d}}}]
live:
  sender:
    lcores: [%d]
    prefix: %s
    answer: 60s # a busy machine may keep the switch from its CPU
    ports: [{name: a, role: sender, dev: "net_af_packet0,iface=eth0,framesz=9216,blocksz=36864"}]
"""


@pytest.fixture
def lab(tmp_path, build, weir_switch, weir_sender):
    with Lab(tmp_path, build) as lab:
        for where, link in ("sw", "left"), ("sw", "right"), ("a", "eth0"), ("b", "eth0"):
            lab.sh(where, "ip", "link", "set", link, "mtu", "9000")
        yield lab


def start(lab, *options):
    settings = [
        f'live.switch.ports.{number}.dev="net_af_packet{number},iface={link}"'
        for number, link in enumerate(("left", "right"))
    ]
    overrides = [arg for text in [*settings, "telemetry.level=3"] for arg in ("-o", text)]
    return lab.switch(PATHS, *overrides, *options)


def data_frames(switch):
    """Their sizes on the way forward, in a whole ledger without a drop."""
    ledger = switch.summary()["ledger"]
    assert ledger["balanced"]
    assert ledger["drops"] == {}
    packets = open_ring(switch.folder / "packets.ring").records
    sizes = packets["size_bytes"][(packets["path"] == FORWARD) & (packets["event"] == ENQUEUE)]
    return sizes[sizes > 100]


def test_kernels_send_jumbo_frames_through_the_switch(lab, build):
    """Virtual time decides about the recorded ones as the switch did."""
    switch = start(lab, *MTU, "-o", "telemetry.arrivals=yes")
    child = lab.sink(2)
    source = lab.host("a", sys.executable, PEER, "source", ADDRESS["b"], 5001, 2, BYTES)
    assert source.wait(60) == 0
    assert child.wait(60) == 0
    assert switch.stop() == 0
    assert json.loads(child.out[-1]) == {"bytes": [BYTES] * 2, "zeros": True}
    assert data_frames(switch).max() == FULL
    done = replay(switch.folder, build)
    assert done.stdout.startswith("identical: "), done.stdout + done.stderr


def test_a_sender_sends_jumbo_frames_into_a_kernel(lab):
    switch = start(lab, *MTU)
    child = lab.sink(2)
    lab.sh("a", "ip", "addr", "flush", "dev", "eth0")
    config = SENDER % (BYTES, CPUS[0], lab.prefix + "s")
    sender = lab.start("sender/weir-sender", config, *MTU, space="a")
    assert child.wait(60) == 0
    assert sender.stop() == 0
    assert switch.stop() == 0
    assert json.loads(child.out[-1]) == {"bytes": [BYTES] * 2, "zeros": True}
    summary = sender.summary()
    assert summary["ledger"]["balanced"]
    sizes = data_frames(switch)
    assert set(sizes.tolist()) == {FULL, REST}
    if summary["groups"][0]["retransmits"] == 0:
        assert sizes.mean() == MEAN


def test_jumbo_frames_cross_memifs(lab, root):
    """Sender, switch and receiver: buffers of the memifs' rings hold a whole frame."""
    flows = f"flows=[{{cc: cubic, mss: 8960B, source: {{size: {{bytes: {BYTES}}}}}}}]"
    slow = "paths.forward.0.link.rate=200Mbit"
    short = ("-o", "duration=1s", "-o", "warmup=0s", "-o", "telemetry.level=3", "-o", slow)
    loop = Loop(lab, root, "-o", flows, *short, *MTU)
    switch, sender = loop.switch(), loop.sender()
    assert sender.wait() == 0, sender.err
    assert switch.stop() == 0
    ledger, ended = switch.summary()["ledger"], sender.summary()
    assert ledger["balanced"]
    assert ended["ledger"]["balanced"]
    # The sender asks for the receiver's address again until the switch sees both rings connected.
    # A switch that had no CPU for a while finds more in its ring than the queue holds.
    assert set(ledger["drops"]) <= {"no_route", "queue_full"}
    assert ended["receivers"]["bytes"] == BYTES
    packets = open_ring(loop.folder / "packets.ring").records
    assert packets["size_bytes"].max() == FULL


def test_jumbo_frames_without_live_mtu_are_dropped_and_named(lab):
    """A buffer holds 2 kB: what is longer was dropped as `cut`, and nothing said what to do."""
    switch = start(lab)
    assert lab.ping(count=9, size=1400)
    assert lab.ping(count=3, size=8000, wait=1) == []
    assert switch.stop() == 0
    summary = switch.summary()
    assert summary["ledger"]["balanced"]
    assert summary["ledger"]["drops"] == {"cut": 3}
    assert {
        "cause": "cut",
        "count": 3,
        "sentence": "3 frames were longer than a port receives: at the hosts set the MTU to 1500,"
        " as live.mtu is, and tso, gso and gro off",
    } in summary["faults"]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ((), "flows: packets of 9000 bytes do not fit live.mtu, 1500 bytes: a larger mtu, up to"),
        (("-o", "live.mtu=8999B"), "do not fit live.mtu, 8999 bytes"),
        (("-o", "live.mtu=9001B"), "mtu: 9001B is not in [1280B, 9kB]"),
        (
            (*MTU, "-o", 'live.sender.ports.0.dev="net_af_xdp0,iface=eth0"'),
            "dev: 'net_af_xdp0' carries packets of at most 1500 bytes, and live.mtu is 9000",
        ),
    ],
)
def test_what_does_not_fit_is_refused(weir_sender, tmp_path, options, sentence):
    config = tmp_path / "jumbo.yaml"
    config.write_text(SENDER % (BYTES, CPUS[0], "weir-jumbo"))
    argv = [weir_sender, config, "--check", *options]
    done = subprocess.run(argv, capture_output=True, text=True)
    assert done.returncode == 2
    assert sentence in done.stderr
    assert done.stderr.count("\n") == 1
