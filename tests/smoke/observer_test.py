# SPDX-License-Identifier: BSD-3-Clause
"""Live programs outlive whatever watches them: readers of captures and progress, sessions, runners.

After each: traffic has gone on, the summary balances, the manifest says how it ended, and nothing
is left in DPDK's runtime folder.
"""

import contextlib
import fcntl
import json
import os
import signal
import sys
import threading
from pathlib import Path

import pytest
from lab import LCORE, RUNTIME, Child, Lab, Program, wait_for
from loopback_test import Loop
from pcapng import blocks

PATHS = (
    "{forward: [{link: {rate: 10Mbit}}, {delay: {delay: 1ms}}], reverse: [{delay: {delay: 1ms}}]}"
)
LOAD = ("-o", "flows.0.count=20", "-o", "flows.0.cc=cubic", "-o", "live.switch.start=now")
PACKET = 6  # an enhanced packet block


@pytest.fixture
def lab(tmp_path, build, weir_switch, weir_sender):
    with Lab(tmp_path, build) as lab:
        yield lab
        lab.end_children()
        assert [path.name for path in RUNTIME.iterdir()] == []


def manifest(folder, name="switch"):
    return json.loads((folder / f"manifest-{name}.json").read_text())


def ended_well(child, number=signal.SIGINT, name="switch"):
    """Its summary; the manifest has the status of the signal that ended it."""
    assert child.stop(number) == 0, child.err
    assert manifest(child.folder, name)["exit"] == 128 + number
    assert manifest(child.folder, name)["verdict"] != "running"
    summary = child.summary()
    assert summary["ledger"]["balanced"]
    return summary


def packet_blocks(data):
    """How many packets a capture has; its last block is whole."""
    return sum(kind == PACKET for kind, _ in blocks(data))


@pytest.fixture
def fifo(tmp_path):
    """A pipe with a name, and what was read from it until `close` is set."""

    class Fifo:
        path = tmp_path / "fifo"
        data = b""
        close = threading.Event()

        def read(self):
            with self.path.open("rb", buffering=0) as pipe:
                while not self.close.is_set() and (part := pipe.read(1 << 16)):
                    self.data += part

    made = Fifo()
    os.mkfifo(made.path)
    reader = threading.Thread(target=made.read)
    reader.start()
    yield made
    made.close.set()
    with contextlib.suppress(OSError):
        os.close(os.open(made.path, os.O_WRONLY | os.O_NONBLOCK))  # a reader that still waits
    reader.join(10)


def test_the_reader_of_a_capture_ends(lab, fifo):
    """Wireshark is closed: the capture ends with a sentence, the bottleneck stays."""
    switch = lab.switch(PATHS, "--pcap", fifo.path)
    assert lab.ping(count=5)
    wait_for(lambda: fifo.data, "packets, though far fewer than a buffer of them")
    fifo.close.set()
    said = f"--pcap {fifo.path}: its reader has ended: the capture ends here, the run goes on"

    def ended():
        lab.ping(count=2)
        return any(said in line for line in switch.err)

    wait_for(ended, "a sentence")
    assert len(lab.ping(count=5)) == 5
    summary = ended_well(switch)
    assert switch.sentences() == [f"weir-switch: warning: {said}"]
    capture = summary["capture"]
    assert capture["ended_by"] == "its reader has ended"
    assert (
        capture["packets"] >= packet_blocks(fifo.data[: fifo.data.rfind(b"\n\r\r\n") or None]) > 0
    )
    assert capture["lost"] > 0


def test_the_reader_of_a_senders_capture_ends(lab, root, fifo):
    loop = Loop(lab, root, *LOAD)
    switch = loop.switch()
    names = [arg for name in loop.names("weir-sender", "client") for arg in ("-o", name)]
    sender = lab.start(
        "sender/weir-sender", root / loop.config, *names, *LOAD, "--pcap", fifo.path,
        duration="60s",
    )  # fmt: skip
    assert sender.ready(), sender.err
    wait_for(lambda: fifo.data, "packets")
    fifo.close.set()
    wait_for(lambda: any("its reader has ended" in line for line in sender.err), "a sentence")

    def sent():
        return lab.telemetry("/weir/ports", f"{lab.prefix}switch")["right"]["tx_pkts"]

    before = sent()
    wait_for(lambda: sent() > before + 1000, "traffic after it")
    assert ended_well(sender, name="sender")["capture"]["ended_by"] == "its reader has ended"
    ended_well(switch)


def test_a_reader_of_a_capture_that_stops_reading(lab, tmp_path):
    """It fills the pipe: packets are lost and counted, and telemetry is written all the same."""
    path = tmp_path / "fifo"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    fcntl.fcntl(reader, fcntl.F_SETPIPE_SZ, 4096)
    switch = lab.switch(PATHS, "--pcap", path)
    ring = switch.folder / "links.ring"
    assert len(lab.ping(count=100, interval=0.01)) > 50
    size = ring.stat().st_size
    wait_for(lambda: ring.stat().st_size > size, "telemetry")
    assert switch.stop() == 0, switch.err
    data = os.read(reader, 1 << 16)
    os.close(reader)
    capture = switch.summary()["capture"]
    assert capture["packets"] == packet_blocks(data)
    assert capture["lost"] > 100


def switch_config(lab):
    return lab.config(f"""
paths: {PATHS}
live:
  switch:
    lcores: [{LCORE}]
    prefix: {lab.prefix}
    ports:
      - {{name: left, dev: "net_af_packet0,iface=left", path: reverse}}
      - {{name: right, dev: "net_af_packet1,iface=right", path: forward}}
""")


class Unwatched(Program):
    """A live program whose output nobody reads: `shell` starts it and says what it writes to."""

    def __init__(self, lab, config, shell, **options):
        out = lab.tmp / "unwatched"
        argv = [lab.build / "switch/weir-switch", config, "--out", out, "--progress"]
        super().__init__(lab.enter("sw", "bash", "-c", shell, "bash", *argv), out, **options)
        lab.children.append(self)

    def wait_running(self, lab):
        path = RUNTIME / lab.prefix / "dpdk_telemetry.v2"
        wait_for(path.exists, "its socket")
        wait_for(lambda: "iterations" in (lab.telemetry("/weir/info") or {}), "its lcore")


def test_all_its_streams_are_closed(lab):
    """No file takes their numbers: progress was written into the first ring."""
    switch = Unwatched(lab, switch_config(lab), 'exec "$@" 0<&- 1>&- 2>&-')
    switch.wait_running(lab)
    pid = switch.process.pid
    assert {str(Path(f"/proc/{pid}/fd/{fd}").readlink()) for fd in range(3)} == {"/dev/null"}
    assert len(lab.ping(count=5)) == 5
    wait_for(lambda: lab.telemetry("/weir/info")["elapsed_ns"] > 1.5e9, "progress to be due")
    ended_well(switch)


def test_the_reader_of_its_progress_ends(lab):
    switch = Unwatched(lab, switch_config(lab), 'exec "$@" 2>&1 | head -n 1')
    wait_for(lambda: switch.out, "ready")
    assert len(lab.ping(count=5)) == 5
    wait_for(lambda: lab.telemetry("/weir/info")["elapsed_ns"] > 1.5e9, "progress to be due")
    assert len(lab.ping(count=5)) == 5
    lab.telemetry("/weir/stop")
    switch.wait()
    assert manifest(switch.folder)["exit"] == 0
    assert switch.summary()["ledger"]["balanced"]


def test_the_reader_of_its_progress_stops_reading(lab):
    """A pipe that is full holds up neither telemetry nor the end."""
    ours, theirs = os.pipe()
    fcntl.fcntl(ours, fcntl.F_SETPIPE_SZ, 4096)
    os.write(theirs, bytes(4096))
    shell = f'exec "$@" 2>&{theirs}'
    switch = Unwatched(lab, switch_config(lab), shell, pass_fds=[theirs])
    os.close(theirs)
    switch.wait_running(lab)
    wait_for(lambda: lab.telemetry("/weir/info")["elapsed_ns"] > 1e9, "progress to be due")
    ring = switch.folder / "links.ring"
    size = ring.stat().st_size
    wait_for(lambda: ring.stat().st_size > size, "telemetry")
    ended_well(switch)
    os.close(ours)


def test_a_session_that_is_lost(lab):
    """SIGHUP is SIGTERM by another name; nohup is obeyed."""
    switch = lab.switch(PATHS)
    assert lab.ping(count=2)
    ended_well(switch, signal.SIGHUP)
    stays = Unwatched(lab, switch_config(lab), "trap '' HUP; exec \"$@\"")
    assert stays.ready(), stays.err
    stays.send(signal.SIGHUP)
    assert len(lab.ping(count=5)) == 5
    ended_well(stays, signal.SIGTERM)


@pytest.fixture
def runner(lab, root):
    """`weir run --live` of both programs, ready; its folder."""
    loop = Loop(lab, root, *LOAD)
    names = [*loop.names("weir-switch", "server"), *loop.names("weir-sender", "client")]
    overrides = [arg for name in names for arg in ("-o", name)]
    argv = [sys.executable, "-m", "weir", "run", root / loop.config, "--live"]
    argv += ["--out", loop.folder, "--duration", "60s", *overrides, *LOAD]
    env = os.environ | {"WEIR_BUILD": str(lab.build)}
    child = Child(lab.enter("sw", *argv), env=env)
    child.folder = loop.folder
    lab.children.append(child)
    wait_for(lambda: not child.running or (RUNTIME / f"{lab.prefix}switch").exists(), "the switch")
    wait_for(lambda: carried(lab) > 1000, lambda: f"traffic: {child.err}")
    return child


def carried(lab):
    with contextlib.suppress(RuntimeError, KeyError, TypeError):
        return lab.telemetry("/weir/ports", f"{lab.prefix}switch")["right"]["tx_pkts"]
    return 0


def test_its_runner_is_killed(lab, runner):
    """The programs end as by SIGTERM, each with its summary."""
    os.kill(runner.process.pid, signal.SIGKILL)
    wait_for(lambda: not list(RUNTIME.iterdir()), "the end of both")
    for name in ("switch", "sender"):
        wait_for(lambda name=name: manifest(runner.folder, name)["exit"] is not None, name)
        assert manifest(runner.folder, name)["exit"] == 128 + signal.SIGTERM
        summary = json.loads((runner.folder / f"summary-{name}.json").read_text())
        assert summary["ledger"]["balanced"]


def test_a_killed_program_leaves_nothing_behind(lab, runner):
    """DPDK's folder and the memif's socket of the switch stayed until the next boot."""
    assert sorted(path.name for path in RUNTIME.glob(f"{lab.prefix}*")) == [
        f"{lab.prefix}.memif", f"{lab.prefix}sender", f"{lab.prefix}switch"
    ]  # fmt: skip
    lock = (RUNTIME / f"{lab.prefix}switch/weir.lock").stat().st_ino
    os.kill(holder(lock), signal.SIGKILL)
    assert runner.wait() == 128 + signal.SIGKILL, runner.err
    assert list(RUNTIME.glob(f"{lab.prefix}*")) == []


def holder(inode):
    """The process that has locked a file."""
    locks = [line.split() for line in Path("/proc/locks").read_text().splitlines()]
    return next(int(lock[4]) for lock in locks if lock[5].endswith(f":{inode}"))


def test_its_runner_loses_its_session(lab, runner):
    """The run ends early, its folder whole, with a report."""
    runner.send(signal.SIGHUP)
    assert runner.wait() == 128 + signal.SIGHUP, runner.err
    summary = json.loads((runner.folder / "summary.json").read_text())
    assert summary["ledger"]["balanced"]
    assert summary["verdict"] == "interrupted"
    assert (runner.folder / "report.html").exists()
