# SPDX-License-Identifier: BSD-3-Clause
"""weir-switch as a program: how it starts, is asked, is disturbed and ends."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from lab import ADDRESS, LCORE, Lab, outcome, sh, wait_for
from weir.analysis import ring

PATHS = (
    "{forward: [{link: {rate: 10Mbit}}, {delay: {delay: 5ms}}], reverse: [{delay: {delay: 5ms}}]}"
)
NULL = f"""
paths: {{forward: [{{link: {{rate: 10Mbit, queue: {{fifo: {{limit: 1MB}}}}}}}}]}}
live:
  switch:
    lcores: [{LCORE}]
    prefix: weirtest{os.getpid()}
    ports: [{{name: in, dev: net_null0}}, {{name: out, dev: net_null1, path: forward}}]
"""

FLOOD = f"""
import socket
flood = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for i in range(20000):
    flood.sendto(bytes(18), ("{ADDRESS["b"]}", 9))
"""

NO_FLOW = 1 << 31  # a kernel's ARP
# Six datagrams of two flows.
IPV6 = """
import socket, struct
port = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
port.bind(("eth0", 0))
macs = bytes([2, 0, 0, 0, 0, 9]) + port.getsockname()[4]
head = struct.pack("!IHBB", 6 << 28, 8, 17, 64) + bytes(15) + b"1" + bytes(15) + b"2"
for number in range(6):
    udp = struct.pack("!HHHH", 1000 + number % 2, 9, 8, 0)
    port.send(macs + bytes.fromhex("86dd") + head + udp)
"""


@pytest.fixture(scope="module")
def lab(weir_switch, tmp_path_factory, build):
    with Lab(tmp_path_factory.mktemp("lab"), build) as lab:
        yield lab


def fails(lab, config, *options):
    """Its exit status and the one sentence it said; it left no run folder."""
    child = lab.start("switch/weir-switch", config, *options, duration="1s")
    status = child.wait()
    assert len(child.sentences()) == 1, child.err
    assert not child.folder.exists()
    return status, child.sentences()[0]


@pytest.mark.parametrize(
    ("change", "status", "sentence"),
    [
        ("live.switch.colour=red", 2, r"colour"),
        ("live.switch.ports.0.speed=1", 2, r"speed"),
        ("live.switch.ports.0.dev=net_foo0", 1, r"'net_foo0' did not start: .* no such driver"),
        ('live.switch.ports.0.dev="net_pcap0,rx_pcap=/nope"', 1, r"'net_pcap0' .* open /nope"),
        ("live.switch.ports.0.dev=veth0", 2, r"neither a virtual device .* nor a PCI address"),
        ('live.switch.ports.0.dev="net_af_packet0,iface=nope0"', 1, r"no interface 'nope0'"),
        ("live.switch.ports.0.dev=0000:03:00.0", 2, r"physical port; set live.allow_nic"),
        ("live.switch.ports.1.path=sideways", 2, r"no path 'sideways'"),
        ("live.switch.ports.0.path=forward", 2, r"'forward' is used by port 'in' too"),
        ("live.switch.ports.1.path=''", 2, r"no port sends through path 'forward'"),
        ("live.switch.ports.0.name=out", 2, r"'out' is used twice"),
        ("live.switch.ports.1.dev=net_null0", 2, r"'net_null0' is used twice"),
        ("live.switch.lcores=[1, 1]", 2, r"CPU 1 is named twice"),
        ("live.switch.lcores=[999]", 2, r"CPU 999 is not among"),
        ("live.switch.static=[{mac: 02:00, port: in}]", 2, r"'02:00' is not a MAC address"),
        (
            "live.switch.hugepages=yes",
            2,
            r"MB are needed and .* MB are free.* forward \d+ packets, ports",
        ),
        ("paths.forward.link.rate=10Gbitt", 2, r"rate"),
        ("paths.forward.link.rate=1bit", 2, r"rate"),
        ("paths.forward.link.queue={fifo: {limit: 1TB}}", 2, r"packets, .* min_packet"),
    ],
)
def test_bad_config_is_one_sentence(lab, change, status, sentence):
    if (
        "hugepages" in change
        and "HugePages_Free:        0" not in Path("/proc/meminfo").read_text()
    ):
        pytest.skip("this machine has free hugepages")
    got, said = fails(lab, NULL, "-o", change)
    assert (got, bool(re.search(sentence, said))) == (status, True), said


def test_zero_copy_needs_hugepages(lab):
    change = ("-o", 'live.switch.ports.0.dev="net_memif0,role=client,zero-copy=yes"')
    status, said = fails(lab, NULL, *change, "-o", "live.switch.hugepages=no")
    assert (status, "zero-copy=yes of a memif needs hugepages: yes" in said) == (2, True), said
    # More than any machine has free; ordinary memory would have been tried.
    more = ("live.switch.force=yes", "paths.forward.link.queue={fifo: {limit: 1TB}}")
    status, said = fails(lab, NULL, *change, *(arg for one in more for arg in ("-o", one)))
    assert status == 2
    assert re.search(r"a memif needs hugepages: \d+ MB are needed and \d+ MB are free", said), said


def test_missing_device_behind_a_pci_address(lab):
    status, said = fails(
        lab, NULL, "-o", "live.allow_nic=yes", "-o", "live.switch.ports.0.dev=0000:1f:1f.7"
    )
    assert status == 1
    assert "0000:1f:1f.7" in said


def test_bad_eal_argument(lab):
    child = lab.start("switch/weir-switch", NULL, "--", "--bogus", duration="1s")
    assert child.wait() == 2
    assert child.sentences() == [
        "weir-switch: DPDK refuses its arguments, those after '--' (the first is '--bogus')"
    ]
    assert child.out == []
    assert not child.folder.exists()


def test_a_killed_server_leaves_a_socket(lab, tmp_path):
    path = tmp_path / "left.sock"
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as gone:
        gone.bind(str(path))
        gone.listen(1)
    assert path.exists()
    dev = f'"net_memif0,role=server,id=0,socket={path},socket-abstract=no"'
    child = lab.start("switch/weir-switch", NULL.replace("net_null0", dev), duration="200ms")
    assert child.wait() == 0, child.err


def test_a_socket_that_cannot_be(lab, tmp_path):
    path = tmp_path / "file.sock"
    path.write_text("of something else")
    dev = f'"net_memif0,role=server,id=0,socket={path},socket-abstract=no"'
    status, said = fails(lab, NULL.replace("net_null0", dev))
    assert status == 1
    assert f"'net_memif0' did not start: Failed to setup socket {path}: Address already" in said
    assert path.read_text() == "of something else"


def test_no_permission(lab, tmp_path):
    config = lab.config(NULL.replace("net_null0", '"net_af_packet0,iface=left"'))
    argv = [lab.build / "switch/weir-switch", config, "--out", tmp_path / "run", "--duration", "1s"]
    for path in (lab.tmp, *lab.tmp.parents[:3]):  # pytest's
        path.chmod(0o755)
    done = subprocess.run(
        lab.enter("sw", "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", *argv),
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    if "setpriv" in done.stderr:
        pytest.skip("the build directory is not readable for others")
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "permission" in done.stderr


def test_second_instance_with_the_same_prefix(lab):
    first = lab.start("switch/weir-switch", NULL, duration="60s")
    assert first.ready()
    status, said = fails(lab, NULL)
    assert first.stop() == 0
    assert status == 1
    assert "prefix" in said


@pytest.mark.parametrize("size", ["16k", "48k"])  # at the start, and while running
def test_full_disk(lab, tmp_path, size):
    small = tmp_path / "small"
    small.mkdir()
    sh("mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", small)
    try:
        options = ("-o", "telemetry.interval=1ms")
        child = lab.start("switch/weir-switch", NULL, *options, duration="2s", out=small / "run")
        assert child.wait() == 1
        assert len(child.sentences()) == 1
        assert "No space left on device" in child.sentences()[0]
    finally:
        sh("umount", small)


def test_ends_by_itself(lab):
    child = lab.start("switch/weir-switch", NULL, "--json", duration="1s")
    assert child.wait() == 0
    assert child.sentences() == []
    summary = child.summary()
    assert outcome(summary) == "ok"
    assert summary["ledger"]["balanced"]
    assert summary["virtual_s"] >= 1
    assert outcome(json.loads("\n".join(child.out))) == "ok"
    manifest = json.loads((child.folder / "manifest-switch.json").read_text())
    assert manifest["exit"] == 0
    # What it wrote is what it reads.
    second = lab.start("switch/weir-switch", child.folder / "config.yaml", "--check")
    assert second.wait() == 0


def test_a_run_whose_times_are_not_judged_says_so(lab):
    child = lab.start("switch/weir-switch", NULL, "-o", "live.test_any_tsc=yes", duration="200ms")
    assert child.wait() == 0, child.err
    said = "times were not judged: live.test_any_tsc takes a TSC that need not be invariant"
    assert child.summary()["verdict"] == said
    assert json.loads((child.folder / "manifest-switch.json").read_text())["verdict"] == said


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_leaves_a_whole_run_folder(lab, number):
    switch = lab.switch(PATHS)
    assert len(lab.ping(count=5)) >= 3
    switch.send(number)
    assert switch.wait() == 128 + number
    summary = switch.summary()
    assert summary["verdict"] == "interrupted"
    assert json.loads((switch.folder / "manifest-switch.json").read_text())["exit"] == 128 + number
    assert summary["ledger"]["balanced"]
    assert summary["ledger"]["received"] >= 6
    assert (switch.folder / "links.ring").stat().st_size > 4096


def test_asked_through_telemetry(lab):
    switch = lab.switch(PATHS)
    assert lab.telemetry("/weir/info")["cpu"] == LCORE
    wait_for(lambda: min(lab.ping(count=5)) < 60, "a round trip without the delay to come")
    before = lab.telemetry("/weir/paths")["forward"]
    assert before["in_pkts"] >= 3
    changed = lab.telemetry("/weir/set,forward.delay.delay=55ms")
    assert (float(changed["before"]), float(changed["after"])) == (5e6, 55e6)
    assert min(lab.ping(count=5)) >= 60
    assert "no path" in lab.telemetry("/weir/set,sideways.link.rate=1Mbit")["error"]
    assert "rate" in lab.telemetry("/weir/set,forward.link.rate=1Mbitt")["error"]
    lab.telemetry("/weir/stop")
    assert switch.wait() == 0
    summary = switch.summary()
    assert outcome(summary) == "ok"
    assert summary["telemetry"]["streams"]["events"]["records"] == 1


def test_ipv6_begins_a_run_and_has_flows(lab):
    switch = lab.switch(PATHS, "-o", "telemetry.level=3", live="    start: traffic")
    assert lab.telemetry("/weir/info")["elapsed_ns"] == 0
    lab.sh("a", sys.executable, "-c", IPV6)
    wait_for(lambda: lab.telemetry("/weir/paths")["forward"]["out_pkts"] >= 6, "the datagrams")
    assert lab.telemetry("/weir/info")["elapsed_ns"] > 0
    assert switch.stop() == 0
    flows = ring.open_ring(switch.folder / "packets.ring").records["flow_id"]
    assert len(set(flows.tolist()) - {NO_FLOW}) == 2


def test_follows_a_schedule(lab):
    switch = lab.switch(PATHS, top="schedule: [{at: 500ms, reverse.delay.delay: 105ms}]")
    wait_for(lambda: "reverse.delay.delay=105ms" in lab.telemetry("/weir/params"), "the change")
    assert min(lab.ping(count=5)) >= 110
    assert switch.stop() == 0
    (change,) = ring.open_ring(switch.folder / "events-switch.ring").records
    assert change["ts_ns"] >= 500_000_000
    assert (change["before"], change["value"]) == (5e6, 105e6)


def test_port_goes_down_and_up(lab):
    switch = lab.switch(PATHS)
    assert len(lab.ping(count=5)) >= 3
    lab.sh("sw", "ip", "link", "set", "right", "down")
    wait_for(lambda: lab.telemetry("/weir/ports")["right"]["up"] == 0, "port down")
    assert lab.ping(count=3, wait=1) == []
    lab.sh("sw", "ip", "link", "set", "right", "up")
    wait_for(lambda: lab.telemetry("/weir/ports")["right"]["up"] == 1, "port up")
    assert wait_for(lambda: lab.ping(count=3), "packets")
    assert switch.stop() == 0
    summary = switch.summary()
    assert summary["ledger"]["balanced"]
    assert summary["ledger"]["drops"].get("no_route", 0) > 0
    assert summary["telemetry"]["streams"]["events"]["records"] == 2


def test_pool_share_is_kept(lab):
    # 2 s of delay at 10 Mbit/s are 4800 packets of 512 B; four times as many small ones come.
    switch = lab.switch(PATHS, "-o", "paths.forward.delay.delay=2s")
    lab.sh("a", "ping", "-c", "1", "-W", "50", ADDRESS["b"])
    lab.host("a", sys.executable, "-c", FLOOD).wait()
    assert switch.stop() == 0
    summary = switch.summary()
    assert summary["ledger"]["balanced"]
    assert set(summary["ledger"]["drops"]) <= {"no_mbuf", "queue_full"}
    assert (
        summary["ledger"]["paths"]["forward"]["inside"]["pkts"]
        <= summary["pool"]["quotas"]["forward"]
    )


def test_three_ports_flood_learn_and_know(tmp_path, build):
    with Lab(tmp_path, build) as lab:
        lab.namespace("c")
        lab.cable("c", "third")
        mac = json.loads(lab.sh("c", "ip", "-j", "link", "show", "eth0"))[0]["address"]
        config = f"""
paths: {{forward: [{{delay: {{delay: 5ms}}}}]}}
live:
  switch:
    lcores: [{LCORE}]
    prefix: {lab.prefix}
    static: [{{mac: "{mac}", port: third}}]
    ports:
      - {{name: left, dev: "net_af_packet0,iface=left"}}
      - {{name: right, dev: "net_af_packet1,iface=right", path: forward}}
      - {{name: third, dev: "net_af_packet2,iface=third"}}"""
        switch = lab.start("switch/weir-switch", config, duration="60s")
        assert switch.ready(), switch.err
        assert min(lab.ping(count=5, wait=30)) >= 5  # the path to b, none back
        assert lab.ping(count=5, target="c", wait=30)
        assert switch.stop() == 0
        summary = switch.summary()
        seen = {port["name"]: port for port in summary["ports"]}
    ledger = summary["ledger"]
    assert ledger["balanced"]
    # Each broadcast is copied once; what b and c get of each other is only that. After a stall the
    # kernel may ask for an address again.
    assert 2 <= ledger["copied"] < 10
    assert seen["third"]["tx_pkts"] <= 5 + 2 * ledger["copied"]
    assert seen["right"]["tx_pkts"] <= 5 + 2 * ledger["copied"]
    assert ledger["paths"]["forward"]["out"]["pkts"] == seen["right"]["tx_pkts"]
    assert ledger["drops"] == {}


def test_records_every_packet(lab):
    switch = lab.switch(PATHS, "-o", "telemetry.level=3")
    lab.ping(count=20)
    assert switch.stop() == 0
    summary = switch.summary()
    packets = ring.open_ring(switch.folder / "packets.ring")
    events = packets.records["event"]
    late_ns = packets.records["sojourn_ns"][events == 5]
    link = summary["links"]["forward"]
    assert summary["telemetry"]["streams"]["packets"] == {"records": len(events), "lost": 0}
    assert (events == 1).sum() == summary["ledger"]["paths"]["forward"]["in"]["pkts"]
    assert (events == 2).sum() == link["out_pkts"]
    # Each departure with its own emulation error; the summary has the same.
    assert len(late_ns) == summary["emulation"]["packets"]
    assert late_ns.max() == summary["emulation"]["delay_error_max_ns"]
    cdf = summary["emulation"]["delay_error_cdf"]
    assert cdf[-1][1] == 1
    assert all((late_ns <= end).mean() == pytest.approx(share) for end, share in cdf)
