# SPDX-License-Identifier: BSD-3-Clause
"""Hops of another MTU in weir-switch: the answers of kernels' TCP and of weir-sender to them."""

import json
import os
import sys
import time

import numpy as np
import pytest
from lab import ADDRESS, CPUS, LCORE, PEER, SIX, Lab, quiet, sh, wait_for
from weir.analysis.ring import open_ring

BOTH = sorted({CPUS[0], LCORE})
BYTES = 300_000
PATH_MTU, CLOSE = 14, 2  # events
LINK = "{link: {rate: 50Mbit, queue: {fifo: {limit: 2MB}}}}, {delay: {delay: 10ms}}"
PATHS = f"""
  forward: [{LINK}, {{mtu: {{mtu: 1400B}}}}]
  reverse: [{{delay: {{delay: 10ms}}}}]"""
HOLE = f"[{LINK}, {{mtu: {{mtu: 1400B, black_hole: yes}}}}]"
BLACK_HOLES = f"{{forward: {HOLE}, reverse: {HOLE}}}"
LONG = 10_000_000
FLOWS = f"""
seed: 1
duration: 60s
paths: {PATHS}
flows:
  - {{count: 2, cc: cubic, source: {{size: {{bytes: {BYTES}}}}}}}
  - {{count: 2, cc: cubic, source: {{size: {{bytes: {BYTES}}}}}, ip: ipv6}}
telemetry: {{level: 1, interval: 100ms}}
"""
PROBING = f"""
seed: 1
duration: 60s
flows:
  - {{cc: cubic, source: {{size: {{bytes: {LONG}}}}}}}
  - {{cc: cubic, source: {{size: {{bytes: {LONG}}}}}, mtu_probing: black_hole}}
"""
SENDER = """
live:
  sender:
    lcores: %s
    prefix: %s
    answer: 60s # a busy machine may keep the switch from its CPU
    ports: [{name: a, role: sender, dev: "net_af_packet0,iface=eth0,framecnt=4096"}]
"""


@pytest.fixture
def lab(tmp_path, build, weir_switch, weir_sender):
    with Lab(tmp_path, build) as lab:
        lab.enable_ipv6("b")
        yield lab


def refused(switch):
    """Packets that were dropped as too big, in a whole ledger; each was answered."""
    ledger = switch.summary()["ledger"]
    assert ledger["balanced"]
    assert set(ledger["drops"]) == {"too_big"}
    assert ledger["duplicated"] == ledger["drops"]["too_big"]
    return ledger["drops"]["too_big"]


def test_a_kernel_learns_the_path_mtu(lab):
    """Its route cache has it, of IPv4 and of IPv6. Each port has an lcore, if there are two."""
    lab.enable_ipv6("a")
    switch = lab.switch(PATHS, "-o", f"live.switch.lcores={BOTH}")
    child = lab.sink(2, kind="sink6")
    addresses = [ADDRESS["b"], SIX["b"]]
    for address in addresses:
        source = lab.host("a", sys.executable, PEER, "source", address, 5001, 1, BYTES)
        assert source.wait(60) == 0
        assert "mtu 1400" in lab.sh("a", "ip", "route", "get", address)
    assert child.wait(60) == 0
    assert switch.stop() == 0
    assert json.loads(child.out[-1]) == {"bytes": [BYTES, BYTES], "zeros": True}
    assert refused(switch) >= 2


@pytest.mark.skipif(len(BOTH) < 2, reason="needs two CPUs")
def test_a_sender_on_two_lcores_does_as_in_virtual_time(lab, weir_sim):
    """Of two flows of a version each lcore has one, and one lcore receives for both."""
    virtual = sh(weir_sim, lab.config(FLOWS), "--out", lab.tmp / "virtual", "--json")
    switch = lab.switch(PATHS)
    child = lab.sink(4, kind="sink6")
    lab.sh("a", "ip", "addr", "flush", "dev", "eth0")
    config = FLOWS + SENDER % (BOTH, lab.prefix + "s")
    sender = lab.start("sender/weir-sender", config, space="a")
    assert child.wait(60) == 0
    assert sender.stop() == 0
    assert switch.stop() == 0

    assert json.loads(child.out[-1]) == {"bytes": [BYTES] * 4, "zeros": True}
    summary = sender.summary()
    assert summary["ledger"]["balanced"]
    for whole in summary, switch.summary():  # without a warm-up figures are of all of a run
        assert whole["measured_from_s"] == whole["start_s"]
    assert summary["sender_ports"][0]["handed_over"] > 0
    events = open_ring(sender.folder / "events-sender.ring").records
    changes = events[events["event"] == PATH_MTU]
    assert sorted(zip(changes["flow_id"].tolist(), changes["value"].tolist(), strict=True)) == [
        (0, 1348),
        (1, 1348),
        (2, 1328),
        (3, 1328),
    ]
    # Each first window was too large and was sent again, as in virtual time; what a busy machine
    # delays may be sent once more, and later than the message.
    resent = [group["retransmits"] for group in summary["groups"]]
    planned = [group["retransmits"] for group in json.loads(virtual)["groups"]]
    assert planned == [20, 20]
    assert sum(resent) >= refused(switch) >= quiet(40, 4)
    if quiet(True, False):
        assert resent == planned


def connection(lab, host):
    """What `ss` says of the connection that a host has opened; nothing: there is none."""
    shown = lab.sh(host, "ss", "-Htin", "state", "established", "dport", "=", ":5001")
    return dict(word.split(":", 1) for word in shown.split() if word.count(":") == 1)


@pytest.mark.skipif(os.environ.get("WEIR_BLACK_HOLES") != "1", reason="needs WEIR_BLACK_HOLES=1")
def test_a_black_hole_stops_whom_it_stops_in_linux(lab, capsys):
    """Kernel a does not probe and kernel b does; then a flow of weir-sender of each kind."""
    switch = lab.switch(BLACK_HOLES)
    for host, probing in ("a", 0), ("b", 1):
        lab.sh(host, "sysctl", "-qw", f"net.ipv4.tcp_mtu_probing={probing}")
    into_a, into_b = (lab.sink(1, host, kind="sink6") for host in "ab")
    stalls = lab.host("a", sys.executable, PEER, "source", ADDRESS["b"], 5001, 1, LONG)
    probes = lab.host("b", sys.executable, PEER, "source", ADDRESS["a"], 5001, 1, LONG)
    kernel, begin = {}, time.monotonic()  # when a size was first seen
    while probes.running:
        mss = int(connection(lab, "b").get("mss", 0))
        kernel.setdefault(mss, round(time.monotonic() - begin, 1))
    kernel_s = time.monotonic() - begin
    assert json.loads(into_a.out[-1])["bytes"] == [LONG]
    stalled = connection(lab, "a")
    assert (stalled["mss"], stalled["bytes_acked"]) == ("1448", "1")  # the SYN
    assert int(stalled["backoff"]) >= 4
    assert 1340 <= min(set(list(kernel)[-2:]) - {0}) <= 1348
    stalls.kill()
    into_b.kill()

    child = lab.sink(2, kind="sink6")
    lab.sh("a", "ip", "addr", "flush", "dev", "eth0")
    config = PROBING + SENDER % ([CPUS[0]], lab.prefix + "s")
    sender = lab.start("sender/weir-sender", config, "-o", "telemetry.level=1", space="a")
    assert sender.ready()
    info = "/weir/info", lab.prefix + "s"
    wait_for(lambda: (lab.telemetry(*info) or {}).get("flows_done") == 1, "the flow")
    assert sender.stop() == 0
    assert switch.stop() == 0
    child.kill()
    summary = sender.summary()
    assert [group["acked_bytes"] for group in summary["groups"]] == [0, LONG]
    assert [group["timeouts"] >= 4 for group in summary["groups"]] == [True, True]
    flows = open_ring(sender.folder / "flows.ring").records
    events = open_ring(sender.folder / "events-sender.ring").records
    changes = events[events["event"] == PATH_MTU]
    assert set(changes["flow_id"]) == {1}
    assert 1340 <= changes["value"][-1] <= 1348
    closed = flows["ts_ns"][flows["event"] == CLOSE]
    times = np.append(changes["ts_ns"], closed) / 1e9 - summary["start_s"]
    with capsys.disabled():
        print(f"kernel: {kernel}, done after {kernel_s:.1f} s")
        print(f"weir-sender: {changes['value']} and done after {times.round(1)} s")
