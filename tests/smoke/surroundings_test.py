# SPDX-License-Identifier: BSD-3-Clause
"""Live programs in poor surroundings: full disks, odd names, other programs' folders and sockets.

After each nothing is left in DPDK's runtime folder but what was there before.
"""

import json
import socket
import struct
import subprocess
import sys

import pytest
from lab import CPUS, LCORE, RUNTIME, Lab, sh, wait_for
from loopback_test import Loop
from observer_test import PATHS, ended_well, packet_blocks, switch_config
from pcapng import blocks
from weir.live import client

FLOOD = """
import socket, sys
flood = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for i in range(int(sys.argv[2])):
    flood.sendto(bytes(18), (sys.argv[1], 9))
"""


@pytest.fixture
def lab(tmp_path, build, weir_switch, weir_sender):
    with Lab(tmp_path, build) as lab:
        yield lab
        lab.end_children()
        assert [path.name for path in RUNTIME.iterdir()] == []


def flood(lab, packets):
    lab.host("a", sys.executable, "-c", FLOOD, "198.19.0.1", packets).wait()


@pytest.fixture
def disk(tmp_path):
    """A disk of 400 kB."""
    small = tmp_path / "small"
    small.mkdir()
    sh("mount", "-t", "tmpfs", "-o", "size=400k", "tmpfs", small)
    yield small
    sh("umount", "--lazy", small)


def test_a_capture_fills_the_disk(lab, disk):
    """It ends with the last whole packet and says so then; the summary counts what is in it."""
    file = disk / "live.pcapng"
    switch = lab.switch(PATHS, "--pcap", file)
    said = f"--pcap {file}: No space left on device: the capture ends here, the run goes on"

    def ended():
        flood(lab, 500)
        return any(said in line for line in switch.err)

    wait_for(ended, "a sentence")
    assert len(lab.ping(count=5)) >= 3
    assert switch.stop() == 1
    assert switch.sentences() == [
        f"weir-switch: warning: {said}",
        f"weir-switch: --pcap {file}: No space left on device",
    ]
    summary = switch.summary()
    assert summary["ledger"]["balanced"]
    capture = summary["capture"]
    assert capture["ended_by"] == "No space left on device"
    assert capture["packets"] == packet_blocks(file.read_bytes()) > 100
    assert capture["bytes"] == file.stat().st_size
    carried = sum(path[way]["pkts"] for path in summary["ledger"]["paths"].values()
                  for way in ("in", "out"))  # fmt: skip
    assert capture["packets"] + capture["lost"] == carried


def test_a_capture_through_a_dangling_link(lab, tmp_path):
    """The link was removed, and an empty file stood where it had pointed to."""
    link, target = tmp_path / "link.pcapng", tmp_path / "target.pcapng"
    link.symlink_to(target)
    check = [lab.build / "switch/weir-switch", switch_config(lab), "--pcap", link, "--check"]
    subprocess.run([str(arg) for arg in check], check=True)
    assert link.is_symlink()
    assert not target.exists()
    switch = lab.switch(PATHS, "--pcap", link)
    assert lab.ping(count=5)
    summary = ended_well(switch)
    assert link.is_symlink()
    assert packet_blocks(target.read_bytes()) == summary["capture"]["packets"] > 0


NOT_STARTED = {
    "--nonsense": "DPDK refuses its arguments",
    "--vdev=net_null7": "DPDK brought up 'net_null7'",
    f"--lcores={LCORE}": "DPDK has 1 lcores",
}


@pytest.mark.parametrize("argument", NOT_STARTED)
def test_a_start_that_fails_leaves_nothing(lab, argument):
    switch = lab.start(
        "switch/weir-switch",
        switch_config(lab),
        *("-o", f"live.switch.lcores=[{CPUS[0]}, {LCORE}]"),
        *("--", argument),
    )
    assert switch.wait() != 0
    assert NOT_STARTED[argument] in switch.sentences()[-1]
    assert not switch.folder.exists()


def names_config(lab):
    ports = "\n".join(
        f'      - {{name: "{name}", dev: "net_{dev}"{path}}}'
        for name, dev, path in (
            ("l-1", "af_packet0,iface=left", ", path: reverse"),
            ("l_1", "af_packet1,iface=right", ", path: forward"),
            ("l 1", "null0,no-rx=1", ""),
            ("l_x2d1", "null1,no-rx=1", ""),
            ("\u00e9t\u00e9", "null2,no-rx=1", ""),
        )
    )
    config = lab.tmp / "caf\u00e9.yaml"
    config.write_text(f"""
paths: {PATHS}
live:
  switch:
    lcores: [{LCORE}]
    prefix: {lab.prefix}
    ports:
{ports}
""")
    return config


def weir(*argv):
    argv = [sys.executable, "-m", "weir", *argv]
    return subprocess.run(argv, capture_output=True, text=True, timeout=60)


def test_names_beyond_ascii(lab):
    """Answers were no JSON, ports that differ in a sign were one, a long folder's name was cut."""
    out = lab.tmp / ("\u00e9t\u00e9 100%41 " + 40 * "\u2713")
    switch = lab.start("switch/weir-switch", names_config(lab), out=out)
    assert switch.ready(), switch.err
    with client.named(lab.prefix) as program:
        assert program.run == str(out)
        ports = program.ask("/weir/ports")
        assert len(ports) == 5
        names = [port["name"] for port in ports.values()]
        assert names == ["l-1", "l_1", "l 1", "l_x2d1", "\u00e9t\u00e9"]
        refused = program.ask("/weir/set,\u00e9t\u00e9.link.rate=1Mbit")
        assert refused["error"].startswith("there is no path '\u00e9t\u00e9'")
    shown = weir("top", "--once", "--json")
    assert shown.returncode == 0, shown.stderr
    assert "\u00e9t\u00e9" in json.dumps(json.loads(shown.stdout), ensure_ascii=False)
    assert len(lab.ping(count=5)) == 5
    assert weir("ctl", "forward.link.rate=5Mbit").returncode == 0
    assert weir("ctl", "stop").returncode == 0
    assert switch.wait() == 0
    assert switch.summary()["ledger"]["balanced"]


def test_another_programs_prefix(lab):
    """DPDK lets programs share a folder; ours removed the other's socket at its end."""
    folder = RUNTIME / "foreign"
    folder.mkdir()
    path = folder / "dpdk_telemetry.v2"
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as server:
        server.bind(str(path))
        server.listen()
        prefix = ("--", "--file-prefix", "foreign")
        switch = lab.start("switch/weir-switch", switch_config(lab), *prefix)
        with server.accept()[0] as connection:
            connection.send(b'{"version":"DPDK 22.11","pid":1,"max_output_len":16384}')
            assert switch.wait() != 0
        said = "another program runs with the prefix 'foreign'; give this one a prefix of its own"
        assert said in switch.sentences()[-1]
        assert path.exists()
    path.unlink()
    folder.rmdir()


def test_a_memif_server_that_has_stopped(lab, root):
    """Its socket is asked whether it is alive: that waited for ever once others waited already."""
    path = RUNTIME / f"{lab.prefix}.memif"
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as server:
        server.bind(str(path))
        server.listen(0)
        waiting = []
        while not waiting or waiting[-1].connect_ex(str(path)) == 0:
            waiting.append(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET))
            waiting[-1].setblocking(False)
        switch = Loop(lab, root).start("switch/weir-switch", "server")
        assert switch.wait() == 1
        assert "did not start" in switch.sentences()[-1]
        assert path.exists()
        for connection in waiting:
            connection.close()
    path.unlink()


# A request of 1000 bytes, which the driver of the test gives to the sender in two buffers.
ASK = """
import socket, struct
port = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
port.bind(("eth0", 0x0806))
mac = port.getsockname()[4]
head = bytes(6 * [255]) + mac + b"\\x08\\x06\\x00\\x01\\x08\\x00\\x06\\x04\\x00\\x01"
ask = head + mac + socket.inet_aton("198.18.0.1") + bytes(6) + socket.inet_aton("198.18.0.9")
port.settimeout(1)
for _ in range(30):  # as a kernel asks again: the first may come before the port takes frames
    port.send(ask + bytes(1000 - len(ask)))
    try:
        while (frame := port.recv(2048))[20:22] != b"\\x00\\x02":
            pass
    except TimeoutError:
        continue
    print(len(frame))
    break
"""


def test_an_answer_to_a_request_in_two_buffers(lab, build, monkeypatch):
    """The answer had the request's second buffer behind it: 560 bytes for 60."""
    config = lab.config(f"""
paths: {PATHS}
flows: [{{count: 1, cc: cubic}}]
live:
  switch:
    lcores: [{LCORE}]
    prefix: {lab.prefix}
    ports:
      - {{name: left, dev: "net_af_packet0,iface=left", path: reverse}}
      - {{name: right, dev: "net_memif0,role=server,socket={lab.prefix}", path: forward}}
  sender:
    lcores: [{LCORE}]
    prefix: {lab.prefix}s
    ports:
      - name: b
        role: receiver
        dev: "net_memif0,role=client,socket={lab.prefix}"
        ip: 198.18.0.9
""")
    switch = lab.start("switch/weir-switch", config)
    assert switch.ready(), switch.err
    with monkeypatch.context() as patch:
        patch.setenv("LD_PRELOAD", str(build / "tests/smoke/foreign.so"))
        sender = lab.start("sender/weir-sender", config)
    assert sender.ready(), sender.err
    assert lab.telemetry("/test/segments", f"{lab.prefix}s") == {"split": 0}
    assert lab.sh("a", sys.executable, "-c", ASK, timeout=60).split() == ["60"]
    assert lab.telemetry("/test/segments", f"{lab.prefix}s")["split"] > 0
    assert sender.stop() == 0, sender.err
    assert switch.stop() == 0, switch.err


def times(data):
    """Of the packets of a capture, in nanoseconds, in their order."""
    for kind, block in blocks(data):
        if kind == 6:
            high, low = struct.unpack_from("<II", block, 12)
            yield high << 32 | low


@pytest.mark.skipif(len(CPUS) < 2, reason="one CPU")
def test_a_capture_of_two_lcores_is_in_order(lab):
    """Each lcore has its own ring; both on one CPU, each stands still while the other runs."""
    file = lab.tmp / "two.pcapng"
    two = ("-o", f"live.switch.lcores=[{CPUS[0]}, {LCORE}]", "--pcap", file)
    switch = lab.switch(
        PATHS.replace("10Mbit", "100Mbit"), *two, "--", "--lcores", f"0@{LCORE},1@{LCORE}"
    )
    flood(lab, 20000)
    assert lab.ping(count=5)
    summary = ended_well(switch)
    found = list(times(file.read_bytes()))
    # As many as two programs on one busy CPU come to: each stood still more than once.
    assert len(found) == summary["capture"]["packets"] > 1000
    assert summary["capture"]["lost"] == summary["capture"]["out_of_order"] == 0
    assert found == sorted(found)
