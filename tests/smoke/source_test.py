# SPDX-License-Identifier: BSD-3-Clause
"""A capture as the arrivals of a live path: the same decisions as in virtual time."""

import json
import os
import threading

import numpy as np
from lab import LCORE, sh, wait_for
from pcapng import blocks, packets
from weir.analysis import ring
from weir.analysis.run_summary import decode
from weir.analysis.summary import ledger_lines

# Two directions of six flows, so that the capture of one run is the traffic of the next.
HOSTS = """
seed: 4
duration: 2s
paths:
  forward: [{link: {rate: 40Mbit, queue: {fifo: {limit: 100pkt}}}}, {delay: {delay: 10ms}}]
  reverse: [{delay: {delay: 10ms}}]
flows:
  - {count: 3, cc: newreno, ecn: ect0}
  - {count: 3, cc: newreno}
telemetry: {level: 0}
"""
CONFIG = f"""
seed: 5
duration: 60s
paths:
  forward:
    - source: {{pcap: in.pcapng, filter: "dst port 5001"}}
    - loss: {{rate: 1%}}
    - link: {{rate: 20Mbit, queue: {{codel: {{ecn: yes}}}}}}
    - delay: {{delay: 10ms}}
  reverse:
    - source: {{pcap: in.pcapng, filter: "src port 5001"}}
    - delay: {{delay: 5ms}}
telemetry: {{level: 3, arrivals: yes, capture: paths}}
live:
  switch:
    lcores: [{LCORE}]
    prefix: weirsource{os.getpid()}
    ports:
      - {{name: left, dev: "net_null0,no-rx=1", path: reverse}}
      - {{name: right, dev: "net_null1,no-rx=1", path: forward}}
"""
DEPART = 5  # only live: when a packet was handed to its port


def start(lab, *options):
    return lab.start("switch/weir-switch", lab.config(CONFIG), *options)


def fates(folder, path):
    """Of a path's packets, with times that count from its first arrival."""
    arrivals, records = (
        ring.open_ring(folder / f"{name}.ring").records for name in ("arrivals", "packets")
    )
    arrivals = arrivals[arrivals["path"] == path]
    records = records[(records["path"] == path) & (records["event"] != DEPART)].copy()
    records["ts_ns"] -= arrivals["ts_ns"][0]
    records = np.sort(records, order=["pkt_id", "ts_ns", "event"])
    return arrivals["ts_ns"][:-1] - arrivals["ts_ns"][0], records


def test_live_decides_as_virtual_time(lab, build, monkeypatch):
    monkeypatch.chdir(lab.tmp)
    hosts, config = lab.config(HOSTS), lab.config(CONFIG)
    sim = build / "tools/sim/weir-sim"
    sh(sim, hosts, "--out", "hosts", "--pcap", "in.pcapng")
    sh(sim, config, "--out", "sim", "--pcap", "sim.pcapng")
    switch = start(lab, "--pcap", "live.pcapng")
    assert switch.wait() == 0, switch.err
    live, virtual = switch.summary(), json.loads((lab.tmp / "sim/summary.json").read_text())

    assert live["ledger"]["balanced"]
    assert live["ledger"]["received"] == 0
    for path in ("forward", "reverse"):
        source = live["sources"][path]
        assert source["packets"] == virtual["sources"][path]["packets"] > 1000
        assert source["bytes"] == virtual["sources"][path]["bytes"]
        assert (source["ended"], source["late"], source["too_long"]) == (True, 0, 0)
        assert live["ledger"]["paths"][path] == virtual["ledger"]["paths"][path]
    ledger = "".join(ledger_lines(decode(live, "live").ledger))
    assert f"0 received + {live['ledger']['replayed']:,} replayed = " in ledger
    assert live["ledger"]["replayed"] == sum(s["packets"] for s in live["sources"].values())
    assert live["ledger"]["paths"]["forward"]["drops"]["loss"]["pkts"] > 10
    for path in (0, 1):
        arrived, decided = fates(switch.folder, path)
        times, expected = fates(lab.tmp / "sim", path)
        assert np.array_equal(arrived, times)
        for field in expected.dtype.names:
            assert np.array_equal(decided[field], expected[field]), field
    captured, departed = (
        packets((lab.tmp / f).read_bytes(), 1) for f in ("live.pcapng", "sim.pcapng")
    )
    assert len(captured) == live["ledger"]["paths"]["forward"]["out"]["pkts"]
    assert [data[:54] for _, data, *_ in captured] == [data[:54] for _, data, *_ in departed]


def test_what_comes_late_is_counted(lab, monkeypatch):
    """A pipe that gives the second half of its frames only when the first half has left."""
    monkeypatch.chdir(lab.tmp)
    sh(
        lab.build / "tools/sim/weir-sim",
        lab.config(HOSTS),
        "--out",
        "hosts",
        "--pcap",
        "all.pcapng",
    )
    data = (lab.tmp / "all.pcapng").read_bytes()
    half = sum(len(block) for _, block in list(blocks(data))[:2000])
    os.mkfifo(lab.tmp / "in.pcapng")
    go_on = threading.Event()

    def write():
        with (lab.tmp / "in.pcapng").open("wb") as pipe:
            pipe.write(data[:half])
            pipe.flush()
            go_on.wait(60)
            pipe.write(data[half:])

    writer = threading.Thread(target=write, daemon=True)
    writer.start()
    switch = start(
        lab, "-o", "paths.reverse=[{delay: {delay: 5ms}}]", "-o", "paths.forward.source.filter=tcp"
    )
    assert switch.ready(), switch.err
    prefix = f"weirsource{os.getpid()}"
    wait_for(lambda: lab.telemetry("/weir/info", prefix)["elapsed_ns"] > 1e9, "half of the frames")
    go_on.set()
    assert switch.wait() == 0, switch.err
    writer.join(60)
    summary = switch.summary()
    source = summary["sources"]["forward"]
    assert summary["ledger"]["balanced"]
    assert source["ended"]
    assert 0 < source["late"] < source["packets"]
    assert source["late_max_ns"] > 0
    sentence = f"forward: {source['late']} packets of the capture came late, by up to "
    assert any(fault["sentence"].startswith(sentence) for fault in summary["faults"])
    assert summary["verdict"].startswith(sentence)


def test_beside_traffic_of_the_kernel(lab, monkeypatch):
    """A capture is the cross traffic of an experiment: both pass one queue, and reach the host."""
    monkeypatch.chdir(lab.tmp)
    sim = lab.build / "tools/sim/weir-sim"
    sh(sim, lab.config(HOSTS), "--out", "hosts", "--pcap", "in.pcapng")
    switch = lab.switch(
        '{forward: [{source: {pcap: in.pcapng, filter: "dst port 5001", scale: 3}},'
        " {link: {rate: 100Mbit, queue: {fifo: {limit: 1000pkt}}}}, {delay: {delay: 5ms}}],"
        " reverse: [{delay: {delay: 5ms}}]}"
    )
    seen = lab.ping(count=20)
    assert switch.wait() == 0, switch.err
    summary = switch.summary()
    ledger = summary["ledger"]
    assert ledger["balanced"]
    assert ledger["received"] >= 2 * len(seen) > 20
    assert ledger["paths"]["forward"]["in"]["pkts"] > ledger["replayed"] > 1000
    received = lab.sh("b", "ip", "-j", "-s", "link", "show", "eth0")
    arrived = json.loads(received)[0]["stats64"]["rx"]["packets"]
    assert arrived >= ledger["transmitted"] - ledger["received"]
    assert summary["sources"]["forward"]["ended"]
