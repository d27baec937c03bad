# SPDX-License-Identifier: BSD-3-Clause
"""Faults while running: programs survive, say so, recover; every packet is accounted for."""

import contextlib
import json
import os
import random
import re
import signal
import socket
import sys
import time
from pathlib import Path

import pytest
from lab import ADDRESS, MACHINES, Child, sh, times_ms, wait_for
from loopback_test import Loop
from sender_test import peer, sender
from weir.analysis import ring

PORT_EVENT = 8
PATHS = (
    "{forward: [{link: {rate: 10Mbit}}, {delay: {delay: 5ms}}], reverse: [{delay: {delay: 5ms}}]}"
)
LOAD = ("-o", "flows.0.count=100", "-o", "flows.0.cc=cubic", "-o", "telemetry.interval=10ms")
FLOOD = f"""
import socket
flood = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for i in range(20000):
    flood.sendto(bytes(18), ("{ADDRESS["b"]}", 9))
"""
READER = """
import sys, time
from weir.analysis.ring import tail
for records in tail(sys.argv[1]):
    print(len(records), flush=True)
"""


def balanced(child):
    """Its summary, after a good end."""
    assert child.stop() == 0, child.err
    summary = child.summary()
    assert summary["ledger"]["balanced"]
    return summary


def said(summary, pattern):
    """The fault that says this."""
    sentences = [fault["sentence"] for fault in summary["faults"]]
    found = [said for said in sentences if re.fullmatch(pattern, said)]
    assert len(found) == 1, summary["faults"]
    return re.fullmatch(pattern, found[0])


def port_events(child, name):
    records = ring.open_ring(child.folder / name).records
    return [bool(value) for value in records["value"][records["event"] == PORT_EVENT]]


def down(lab, program, *ports):
    """Waits until a program has seen that its ports are down."""

    def none_is_up():
        shown = lab.telemetry("/weir/ports", f"{lab.prefix}{program}")
        return not any(shown[name]["up"] for name in ports)

    wait_for(none_is_up, f"ports {ports} down")


# DPDK 22.11's memif driver dies of this by itself: see common/live/eal/memif_intr.h.
def test_memif_clients_are_killed_in_the_middle_of_bursts(lab, root):
    options = (*LOAD, "-o", "live.switch.start=now", "--duration", "300s")
    loop = Loop(lab, root, *options)
    switch, rng, kills = loop.switch(), random.Random(1), 6
    for visit in range(kills):
        child = loop.sender(out=lab.tmp / f"visit{visit}")
        assert child.ready(), child.err
        before = lab.telemetry("/weir/ports", f"{lab.prefix}switch")["right"]["tx_pkts"]
        more = before + rng.randrange(100, 20000)
        wait_for(
            lambda more=more: (
                lab.telemetry("/weir/ports", f"{lab.prefix}switch")["right"]["tx_pkts"] > more
            ),
            "traffic",
        )
        child.kill()
        down(lab, "switch", "left", "right")
        assert switch.running
    summary = balanced(switch)
    for name in ("left", "right"):
        said(summary, rf"port {name} went down {kills} times, first at .* s in all, and still is")
    # Not yet connected, then up and down each time, of two ports.
    assert sorted(port_events(switch, "events-switch.ring")) == sorted(
        2 * ([False] + kills * [True, False])
    )


# The packets under way fill the rings of the stopped peer, and the switch's queue for its port.
def test_a_full_port_behind_a_link_keeps_its_frames(lab, root):
    link = "{link: {rate: 1Gbit, queue: {codel: {limit: 30MB}}}}"
    paths = (
        f"{{forward: [{{delay: {{delay: 300ms}}}}, {link}], reverse: [{{delay: {{delay: 1ms}}}}]}}"
    )
    flows = ("-o", "flows.0.cc={fixed: {cwnd: 10}}", "-o", "flows.0.jitter=0s")
    times = ("-o", "live.switch.start=now", "-o", "warmup=0s", "--duration", "300s")
    loop = Loop(lab, root, "-o", f"paths={paths}", *flows, *times)
    switch, child = loop.switch(), loop.sender()
    assert child.ready(), child.err

    def forward():
        return lab.telemetry("/weir/paths", f"{lab.prefix}switch")["forward"]

    def stopped():
        """Whether more than the rings and the port's queue hold is under way as it stops."""
        child.send(signal.SIGSTOP)
        if forward()["inside_pkts"] > 4000:
            return True
        child.send(signal.SIGCONT)
        return False

    wait_for(stopped, "traffic when it stops")
    end_ns = forward()["now_ns"] + 500_000_000
    wait_for(lambda: forward()["now_ns"] > end_ns, "half a second of a full port")
    child.send(signal.SIGCONT)
    before = forward()["out_pkts"]
    wait_for(lambda: forward()["out_pkts"] > before + 10000, "traffic after it")
    balanced(child)
    balanced(switch)


HELLO = """
import socket, sys
client = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
client.connect(sys.argv[1])
"""


# The same driver panics over the socket of a client that did not wait for its first message.
def test_memif_client_dies_while_it_connects(lab, root):
    options = (*LOAD, "-o", "live.switch.start=now", "--duration", "300s")
    loop = Loop(lab, root, *options)
    switch = loop.switch()
    switch.send(signal.SIGSTOP)
    lab.sh("sw", sys.executable, "-c", HELLO, f"/var/run/dpdk/{lab.prefix}.memif")
    switch.send(signal.SIGCONT)
    child = loop.sender()
    assert child.ready(), child.err
    wait_for(
        lambda: lab.telemetry("/weir/ports", f"{lab.prefix}switch")["right"]["tx_pkts"] > 1000,
        "traffic of a client that stays",
    )
    balanced(child)
    balanced(switch)


def test_memif_server_may_take_its_time_to_answer(lab, root):
    """A client that gave up after 500 ms never met a server on a busy machine."""
    loop = Loop(lab, root)
    path = f"/var/run/dpdk/{lab.prefix}.memif"
    Path(path).parent.mkdir(exist_ok=True)
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as server:
        server.bind(path)
        server.listen()
        server.settimeout(60)
        child = loop.sender()
        both = [server.accept()[0] for _ in "ab"]  # a connection of each port
        server.settimeout(1)
        with pytest.raises(TimeoutError):
            server.accept()
        for connection in both:
            connection.close()
    Path(path).unlink()
    assert child.stop() == 0, child.err
    assert "interrupted before the first packet" in child.sentences()[-1]


def test_memif_server_is_killed_and_comes_back(lab, root):
    options = (*LOAD, "-o", "live.switch.start=now", "--duration", "300s")
    loop = Loop(lab, root, *options)
    switch = loop.switch()
    child = loop.sender()
    assert child.ready(), child.err
    for visit in range(2):
        wait_for(
            lambda: lab.telemetry("/weir/ports", f"{lab.prefix}switch")["right"]["tx_pkts"] > 5000,
            "traffic",
        )
        switch.kill()
        down(lab, "sender", "a", "b")
        switch = loop.start("switch/weir-switch", "server", lab.tmp / f"again{visit}")
        assert switch.ready(), switch.err
    wait_for(
        lambda: lab.telemetry("/weir/ports", f"{lab.prefix}switch")["right"]["tx_pkts"] > 5000,
        "traffic after the last one",
    )
    summary = balanced(child)
    balanced(switch)
    for name in ("a", "b"):
        said(summary, rf"port {name} went down 2 times, first at [\d.]+ s, for [\d.]+ s in all")
    assert summary["flows"]["failed"] == 0


class NoCopies(Loop):
    """The sender's rings and buffers are its own memory, which the switch maps."""

    def names(self, program, role):
        for name in super().names(program, role):
            yield name.replace('rsize=10"', 'rsize=10,zero-copy=yes"') if role == "client" else name


@pytest.fixture
def hugepages():
    """300 of 2 MB; where there are none, a driver without copies cannot be tried.

    Every program would use them: another worker has no lab meanwhile.
    """
    wanted, path = 300, Path("/proc/sys/vm/nr_hugepages")
    free = Path("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages")
    with contextlib.ExitStack() as stack:
        for machine in MACHINES.values():  # in this order, and before a lab of our own
            stack.enter_context(machine)
        before = path.read_text()
        stack.callback(path.write_text, before)
        path.write_text(str(int(before) + wanted))
        if int(free.read_text()) < wanted:
            pytest.skip(f"fewer than {wanted} hugepages")
        yield


def memory_of(child):
    """Descriptors of a program's own memory, by number."""
    found = {}
    for path in Path(f"/proc/{child.process.pid}/fd").iterdir():
        with contextlib.suppress(OSError):
            if "memfd:seg" in (name := str(path.readlink())):
                found[int(path.name)] = name
    return found


def test_a_memif_without_copies_comes_back(hugepages, lab, root):
    """The driver closed the EAL's own memory, and gave the next peer what then had its numbers."""
    options = (*LOAD, "-o", "live.switch.start=now", "--duration", "300s")
    loop = NoCopies(lab, root, *options)
    switch = loop.switch()
    child = loop.sender()
    assert child.ready(), child.err

    def traffic():
        return lab.telemetry("/weir/ports", f"{lab.prefix}switch")["right"]["tx_pkts"] > 3000

    wait_for(traffic, "traffic")
    own = memory_of(child)
    assert own
    for visit in range(2):
        switch.kill()
        down(lab, "sender", "a", "b")
        kept = memory_of(child)
        assert kept.items() <= own.items()
        switch = loop.start("switch/weir-switch", "server", lab.tmp / f"again{visit}")
        assert switch.ready(), switch.err
        wait_for(traffic, "traffic of the next peer")
        assert len(memory_of(child)) == len(own)
    balanced(child)
    balanced(switch)


@pytest.mark.parametrize("dev", ["net_af_packet", "net_af_xdp", "kernel"])
def test_veth_goes_down_and_up(lab, dev):
    switch = lab.switch(PATHS, dev=dev)
    sink = peer(lab, "b", "sink", 5001, 100)
    wait_for(lambda: sink.out, "the sink")
    child = sender(lab, "sender", "a", "-o", "flows.0.source=bulk")
    wait_for(lambda: lab.telemetry("/weir/ports")["right"]["tx_pkts"] > 200, "traffic")
    for direction, up in (("down", 0), ("up", 1)):
        lab.sh("sw", "ip", "link", "set", "left", direction)
        wait_for(lambda up=up: lab.telemetry("/weir/ports")["left"]["up"] == up, direction)
        wait_for(
            lambda up=up: lab.telemetry("/weir/ports", lab.prefix + "s")["a"]["up"] == up, direction
        )
    before = lab.telemetry("/weir/ports")["right"]["tx_pkts"]
    wait_for(
        lambda: lab.telemetry("/weir/ports")["right"]["tx_pkts"] > before + 200, "traffic again"
    )
    # The other end of a veth loses its carrier.
    said(balanced(child), r"port a went down once, first at [\d.]+ s, for [\d.]+ s in all")
    said(balanced(switch), r"port left went down once, first at [\d.]+ s, for [\d.]+ s in all")
    assert port_events(switch, "events-switch.ring") == [False, True]
    assert port_events(child, "events-sender.ring") == [False, True]


def test_disk_fills_up(lab, tmp_path):
    small = tmp_path / "small"
    small.mkdir()
    sh("mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs", small)
    filler = small / "filler"
    filler.write_bytes(bytes(200_000))
    try:
        config = f"telemetry.level=3 telemetry.interval=1ms live.switch.prefix={lab.prefix}"
        options = [arg for change in config.split() for arg in ("-o", change)]
        switch = lab.switch(PATHS, *options, "--out", small / "run")
        switch.folder = small / "run"
        flood = lab.host("a", sys.executable, "-c", FLOOD)
        wait_for(lambda: os.statvfs(small).f_bavail == 0, "a full disk")
        flood.wait()
        # The data path goes on.
        assert len(lab.ping(count=5)) >= 3
        filler.unlink()  # what is written at the end finds room
        assert switch.stop() == 1
        sentences, summary = switch.sentences(), switch.summary()
        packets = ring.open_ring(switch.folder / "packets.ring")
        packets.check()
        lost, produced, records = packets.lost, packets.produced, len(packets.column("event"))
    finally:
        lab.end_children()
        sh("umount", "--lazy", small)  # the ring is still mapped
    assert len(sentences) == 1
    assert "No space left on device" in sentences[0]
    assert summary["ledger"]["balanced"]
    assert lost > 0
    assert summary["telemetry"]["streams"]["packets"] == {"records": records, "lost": lost}
    count = said(summary, r"packets\.ring: (\d+) of (\d+) records were lost \(No space left .*\)")
    assert [int(n) for n in count.groups()] == [lost, produced]


def asks_and_dies(path):
    """A telemetry client that never reads its answer; False: there were too many clients."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as client:
        client.connect(path)
        return client.recv(1024) and client.send(b"/weir/links")


def test_readers_die(lab):
    switch = lab.switch(PATHS, "-o", "telemetry.level=3")
    path = f"/var/run/dpdk/{lab.prefix}/dpdk_telemetry.v2"
    source = Path(ring.__file__).parents[1]
    argv = ["env", f"PYTHONPATH={source}", sys.executable, "-c", READER]
    reader = Child([*argv, switch.folder / "packets.ring"])
    lab.children.append(reader)
    lab.ping(count=5)
    wait_for(lambda: reader.out, "records")
    reader.kill()
    for _ in range(50):
        wait_for(lambda: asks_and_dies(path), "an answer to a client that is gone")
    assert len(lab.ping(count=5)) >= 3
    assert lab.telemetry("/weir/info")["iterations"] > 0
    summary = balanced(switch)
    assert summary["faults"] == []
    assert summary["telemetry"]["streams"]["packets"]["lost"] == 0


def test_pool_runs_out_and_recovers(lab):
    paths = PATHS.replace("5ms}}], reverse", "500ms}}], reverse")
    small = ("-o", "live.switch.pool=300")
    with pytest.raises(RuntimeError, match=r"pool: 300 packets are fewer than .* force: yes"):
        lab.switch(paths, *small)
    switch = lab.switch(paths, *small, "-o", "live.switch.force=yes")
    assert lab.ping(count=2)
    lab.host("a", sys.executable, "-c", FLOOD).wait(60)
    wait_for(lambda: lab.telemetry("/weir/paths")["forward"]["inside_pkts"] < 50, "an empty path")
    assert len(lab.ping(count=3)) == 3
    summary = balanced(switch)
    dropped = summary["ledger"]["drops"]["no_mbuf"]
    assert dropped > 0
    count = said(summary, r"(\d+) packets were dropped because the pool was too small .*")
    assert int(count[1]) == dropped


def test_stopped_and_continued(lab):
    switch = lab.switch(PATHS.replace("5ms", "300ms"))
    pings = lab.host("a", "ping", "-n", "-i", "0.02", ADDRESS["b"])  # until it is told to end

    def inside_pkts():
        return lab.telemetry("/weir/paths")["forward"]["inside_pkts"]

    # What waits in the delay when it stops is due in 300 ms at most, so 700 ms late at least.
    wait_for(lambda: inside_pkts() > 5 and len(pings.out) > 20, "pings")
    # The program itself, of the process that nsenter became.
    switch.send(signal.SIGSTOP)
    status = Path(f"/proc/{switch.process.pid}/stat")
    wait_for(lambda: status.read_text().rpartition(")")[2].split()[0] == "T", "a stop")
    since = time.monotonic()
    wait_for(lambda: time.monotonic() > since + 1, "some time")
    switch.send(signal.SIGCONT)
    wait_for(lambda: max(times_ms(pings.out)) >= 600 + 700, "a late answer")
    wait_for(lambda: len(times_ms(pings.out)) >= 100, "answers")
    pings.send(signal.SIGINT)
    pings.wait()
    times = times_ms(pings.out)
    summary = balanced(switch)
    assert min(times) >= 600  # late, never early
    assert summary["emulation"]["delay_error_max_ns"] >= 700e6
    assert "host" in [found["cause"] for found in summary["verdicts"]]
    manifest = json.loads((switch.folder / "manifest-switch.json").read_text())
    assert manifest["exit"] == 128 + signal.SIGINT  # it was ended so, and not by the stop
