# SPDX-License-Identifier: BSD-3-Clause
"""weir-switch on several lcores: frames cross from one to another, all accounted for."""

import concurrent.futures
import ctypes
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from lab import CPUS, LCORE, QUIET, Lab, iperf_result, outcome, quiet
from replay_test import FLOOD, PATHS, RECORD, SCHEDULE, replay, wait_for

TWO = f"live.switch.lcores=[{CPUS[0]}, {LCORE}]"
# Both on one CPU, the lab's: two that poll would keep the hosts waiting.
SHARED = ("--", "--lcores", f"0@{LCORE},1@{LCORE}")
THROUGH = """
  forward: [{link: {rate: 50Mbit, queue: {fifo: {limit: 100pkt}}}}, {delay: {delay: 5ms}}]
  reverse: [{delay: {delay: 5ms}}]
"""

pytestmark = pytest.mark.skipif(len(CPUS) < 2, reason="one CPU")


@pytest.fixture(scope="module")
def lab(weir_switch, tmp_path_factory, build):
    with Lab(tmp_path_factory.mktemp("lcores"), build) as lab:
        yield lab


def test_a_connection_crosses_lcores(lab):
    """Data on one lcore, its acknowledgements on the other: as fast as the link."""
    switch = lab.switch(THROUGH, "-o", TWO, *SHARED)
    client = lab.iperf("cubic", quiet(3, 1), omit=quiet(1, 0))
    lcores = lab.telemetry("/weir/lcores")
    assert [lcores[i]["cpu"] for i in ("0", "1")] == [CPUS[0], LCORE]
    result = iperf_result(client)
    lab.wait_closed()  # or a frame may be in the ring between them
    assert switch.stop() == 0
    summary = switch.summary()
    ledger = summary["ledger"]
    assert ledger["balanced"]
    if QUIET:  # of 50 Mbit/s on the wire, 1448 of 1538 B are payload
        assert result["end"]["sum_received"]["bits_per_second"] > 45e6
    assert [row["ports"] for row in summary["lcores"]] == [["left"], ["right"]]
    given = [row["handover"][0] for row in summary["lcores"]]
    assert [row["to_cpu"] for row in given] == [LCORE, CPUS[0]]
    # left's lcore receives what goes forward, right's what goes back: all of it crosses.
    paths = ledger["paths"]
    assert given[0]["given"] == paths["forward"]["in"]["pkts"]
    assert given[1]["given"] == paths["reverse"]["in"]["pkts"]
    assert given[0]["dropped"] == given[1]["dropped"] == ledger["drops"].get("tx", 0) == 0
    assert summary["emulation"]["early"] == 0
    assert outcome(summary) == "interrupted"


def flooded(lab):
    """Floods two lcores with a ring of one packet between them; the summary, and their rows."""
    options = ("-o", TWO, "-o", "live.switch.handover=1", *SHARED)
    switch = lab.switch(THROUGH, *options)
    assert lab.host("a", sys.executable, "-c", FLOOD).wait() == 0
    assert switch.stop() == 0
    summary = switch.summary()
    return summary, [row["handover"][0] for row in summary["lcores"]]


def test_a_full_ring_is_counted(lab):
    for _ in range(3):  # a sender without a CPU is no flood
        summary, rows = flooded(lab)
        ledger = summary["ledger"]
        assert ledger["balanced"]
        if rows[0]["dropped"] > 0:
            break
    assert rows[0]["dropped"] > 0
    assert sum(row["dropped"] for row in rows) == ledger["drops"]["tx"]
    received = {port["name"]: port["rx_pkts"] for port in summary["ports"]}
    assert rows[0]["given"] + rows[0]["dropped"] == received["left"]
    # What was given has come into the path, or is in the ring; beside paths, ports keep frames too.
    elsewhere = ledger["inside"] - sum(path["inside"]["pkts"] for path in ledger["paths"].values())
    assert 0 <= rows[0]["given"] - ledger["paths"]["forward"]["in"]["pkts"] <= elsewhere


def test_what_two_lcores_decided_is_decided_again(lab, build):
    switch = lab.switch(
        PATHS.format(queue="codel: {limit: 200pkt}"), *RECORD, "-o", TWO, *SHARED, top=SCHEDULE
    )
    client = lab.iperf("cubic", 3, omit=0)
    lab.changed("forward.delay.delay=3ms")  # the last of the scheduled ones
    changed = lab.telemetry("/weir/set,reverse.loss.rate=2%")
    assert float(changed["after"]) == 0.02
    assert "error" not in lab.telemetry("/weir/set,forward.link.rate=15Mbit")
    params = lab.telemetry("/weir/params")
    assert "reverse.loss.rate=2%" in params
    assert "forward.link.rate=15Mbit" in params
    iperf_result(client)
    assert switch.stop() == 0
    summary = switch.summary()
    assert summary["ledger"]["balanced"]
    assert summary["telemetry"]["streams"]["packets"]["lost"] == 0
    done = replay(switch.folder, build)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "and 4 parameter changes replayed" in done.stdout
    arrived = sum(path["in"]["pkts"] for path in summary["ledger"]["paths"].values())
    assert done.stdout.startswith(f"identical: {arrived:,} arrivals")


def test_three_ports_two_paths_and_a_flood(tmp_path, build, weir_switch):
    with Lab(tmp_path, build) as lab:
        lab.namespace("c")
        lab.cable("c", "third")
        config = f"""
paths: {{forward: [{{delay: {{delay: 5ms}}}}], aside: [{{delay: {{delay: 20ms}}}}]}}
live:
  switch:
    lcores: [{CPUS[0]}, {LCORE}]
    prefix: {lab.prefix}
    ports:
      - {{name: left, dev: "net_af_packet0,iface=left"}}
      - {{name: right, dev: "net_af_packet1,iface=right", path: forward}}
      - {{name: third, dev: "net_af_packet2,iface=third", path: aside, lcore: {LCORE}}}"""
        switch = lab.start("switch/weir-switch", config, *SHARED, duration="60s")
        assert switch.ready(), switch.err
        assert min(lab.ping(count=10, wait=30)) >= 5
        assert min(lab.ping(count=10, target="c", wait=30)) >= 20
        assert min(lab.ping(count=10, source="b", target="c", wait=30)) >= 25
        assert switch.stop() == 0
        summary = switch.summary()
        seen = {port["name"]: port for port in summary["ports"]}
    ledger = summary["ledger"]
    assert ledger["balanced"]
    assert ledger["drops"] == {}
    assert [row["ports"] for row in summary["lcores"]] == [["left"], ["right", "third"]]
    # Only what nobody knew yet is copied: each lcore learns of the other's stations. Of 60 frames
    # of pings that is half at most, even if the kernel asks for addresses again after a stall.
    assert 3 <= ledger["copied"] <= 30
    # Each copy may be a question, and have an answer.
    assert seen["right"]["tx_pkts"] <= 2 * 10 + 2 * ledger["copied"]
    assert seen["third"]["tx_pkts"] <= 2 * 10 + 2 * ledger["copied"]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["live.switch.ports.0.lcore=999"], "lcore: '999' is not a CPU that live.switch.lcores"),
        (["live.switch.ports.0.rx_queues=3"], "rx_queues: 3 are more than the lcores, 2"),
        (
            [f"live.switch.ports.{i}.lcore={LCORE}" for i in (0, 1)],
            f"CPU {CPUS[0]} has nothing to do",
        ),
    ],
)
def test_bad_sharing_is_one_sentence(weir_switch, tmp_path, options, sentence):
    config = tmp_path / "config.yaml"
    config.write_text(
        json.dumps(
            {
                "paths": {"forward": [{"delay": {"delay": "1ms"}}]},
                "live": {
                    "switch": {
                        "lcores": [CPUS[0], LCORE],
                        "ports": [
                            {"name": "in", "dev": "net_null0"},
                            {"name": "out", "dev": "net_null1", "path": "forward"},
                        ],
                    }
                },
            }
        )
    )
    argv = [str(weir_switch), str(config), "--check"]
    for option in options:
        argv += ["-o", option]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert sentence in done.stderr


class Debugger:
    """Stops single threads of a process."""

    SEIZE, INTERRUPT, DETACH, ALL = 0x4206, 0x4207, 17, 0x40000000

    def __init__(self):
        self.libc = ctypes.CDLL(None, use_errno=True)
        self.libc.ptrace.argtypes = (ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p)

    def stop(self, thread):
        for request in (self.SEIZE, self.INTERRUPT):
            assert self.libc.ptrace(request, thread, None, None) == 0, ctypes.get_errno()
        os.waitpid(thread, self.ALL)

    def go_on(self, thread):
        assert self.libc.ptrace(self.DETACH, thread, None, None) == 0, ctypes.get_errno()


def test_a_late_answer_is_no_part_of_the_next(lab):
    """An lcore that answered after 5 s added its counters to the answer that was asked for next."""
    switch, debugger = lab.switch(THROUGH, "-o", TWO, *SHARED), Debugger()
    assert len(lab.ping(count=5)) == 5
    first = switch.process.pid
    tasks = Path(f"/proc/{first}/task").iterdir()
    (second,) = (int(task.name) for task in tasks if "worker" in (task / "comm").read_text())
    debugger.stop(second)
    assert "did not answer" in lab.ask("/weir/ports")["error"]
    debugger.stop(first)
    with concurrent.futures.ThreadPoolExecutor() as pool:
        answer = pool.submit(lab.ask, "/weir/ports")
        done, _ = concurrent.futures.wait([answer], 4)  # or it waits for the first lcore
        debugger.go_on(second)
        concurrent.futures.wait([answer], 0 if done else 0.5)
        debugger.go_on(first)
        assert "error" in answer.result(60)
    ports = wait_for(lambda: "left" in (found := lab.ask("/weir/ports")) and found, "an answer")
    assert switch.stop() == 0
    received = {port["name"]: port["rx_pkts"] for port in switch.summary()["ports"]}
    assert all(5 <= ports[name]["rx_pkts"] <= received[name] for name in ("left", "right"))


def test_receive_queues_are_shared_out(lab, tmp_path):
    """A port with two queues is received by both lcores; one it does not have is refused."""
    config = f"""
paths: {{forward: [{{link: {{rate: 10Mbit, queue: {{fifo: {{limit: 1MB}}}}}}}}]}}
live:
  switch:
    lcores: [{CPUS[0]}, {LCORE}]
    prefix: {lab.prefix}
    hugepages: no
    ports:
      - {{name: in, dev: "net_null0", rx_queues: 2}}
      - {{name: out, dev: "net_null1,no-rx=1", path: forward}}"""
    switch = lab.start("switch/weir-switch", config, *SHARED, duration="60s")
    assert switch.ready(), switch.err

    def both_ran():
        return all(row["iterations"] > 100 for row in lab.telemetry("/weir/lcores").values())

    wait_for(both_ran, "both lcores to receive")
    assert switch.stop() == 0, switch.err
    summary = switch.summary()
    assert summary["ledger"]["balanced"]
    received = [row["received"] for row in summary["lcores"]]
    assert min(received) > 0
    assert sum(received) == summary["ledger"]["received"]
    refused = lab.start(
        "switch/weir-switch", config, "-o",
        'live.switch.ports.0.dev="net_af_packet0,iface=left"', *SHARED, duration="1s",
    )  # fmt: skip
    assert refused.wait() == 1
    assert "receive" in refused.sentences()[0]
