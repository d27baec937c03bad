# SPDX-License-Identifier: BSD-3-Clause
"""What can go wrong on one of several hosts: one sentence with its name, and nothing left.

They take minutes: they run with WEIR_HOSTS_FAULTS=1, not in the gate.
"""

import json
import os
import signal

import pytest
from hosts_bed import CONFIG, Bed
from lab import processes, sh, wait_for

pytestmark = pytest.mark.skipif(
    os.environ.get("WEIR_HOSTS_FAULTS") != "1", reason="minutes: WEIR_HOSTS_FAULTS=1"
)
LONG = CONFIG.replace("duration: 3s", "duration: 60s").replace("stop: 2500ms", "stop: 59s")


@pytest.fixture
def bed(tmp_path, build, weir_switch, weir_sender):
    with Bed(tmp_path, build) as bed:
        yield bed


def ours(bed):
    """Programs and agents on hosts, and Ansible's, by their command lines."""
    words = ("weir-switch", "weir-sender", "agent.pyz", "ansible-playbook", "ControlPersist")
    return [line for line in processes().values() if any(word in line for word in words)]


def nothing_runs(bed, seconds=75):
    wait_for(lambda: not ours(bed), lambda: f"the end of {ours(bed)}", seconds)


def sentence(run, seconds=150):
    """The only line that the run wrote."""
    assert run.wait(seconds) == 1, (run.out, run.err)
    lines = [line for line in run.err if line.strip() and "warning" not in line]
    assert len(lines) == 1, run.err
    print(f"\n    {lines[0]}")
    return lines[0]


def refused(bed, expected, *options, **change):
    """A run that does not begin: all of its sentence, and nothing stays on any host."""
    run = bed.weir(*options, inventory=bed.inventory(**change))
    said = sentence(run)
    assert expected in said
    nothing_runs(bed)
    assert not list(bed.tmp.glob("weir-*"))
    assert not (run.folder / "summary.json").exists()


def running(bed, **change):
    """A long run, once its sender sends."""
    run = bed.weir(inventory=bed.inventory(**change), config=LONG)
    wait_for(lambda: not run.running or attended(bed), lambda: f"a run: {run.err}", 120)
    assert run.running, run.err
    return run


def attended(bed):
    """Since the sender started its host has been asked how it goes."""
    lease = [path.stat().st_mtime for path in bed.tmp.glob("weir-*-tx/lease")]
    keeper = [path.stat().st_mtime for path in bed.tmp.glob("weir-*-tx/keeper")]
    return lease and keeper and lease[0] > keeper[0] + 3


def keepers(bed):
    return {path.parent.name.rsplit("-", 1)[1]: path for path in bed.tmp.glob("weir-*/keeper")}


def test_programs_that_are_not_ours(bed):
    """iperf3 at both ends, started, ended and collected as ours are."""
    for name, address in (("tx", "198.18.0.1"), ("rx", "198.19.0.1")):
        bed.ip(name, f"addr add {address}/15 dev eth1")
    server = {"weir_command": "iperf3 -s -1 --forceflush", "weir_ready": "listening"}
    client = {"weir_command": "iperf3 -c 198.19.0.1 -t 2 -J", "weir_side": "sender"}
    kernel = {"group": "kernel", "weir_ports": {}}
    made = bed.inventory(tx=kernel | client, rx=kernel | server)
    run = bed.weir(inventory=made, config=CONFIG.replace("duration: 3s", "duration: 20s"))
    assert run.wait(150) == 0, run.err
    sent = json.loads((run.folder / "hosts/tx/said").read_text())
    assert sent["end"]["sum_received"]["bytes"] > 0
    assert "receiver" in (run.folder / "hosts/rx/said").read_text()
    summary = json.loads((run.folder / "summary.json").read_text())
    assert summary["ledger"]["balanced"]
    assert summary["ledger"]["received"] > 10
    assert summary["hosts"]["tx"]["command"].startswith("iperf3 -c")
    nothing_runs(bed)


def test_two_versions(bed):
    other = bed.tmp / "other/build/switch"
    other.mkdir(parents=True)
    fake = other / "weir-switch"
    fake.write_text("#!/bin/sh\necho 'weir-switch 0.9.0 (commit 0123456789ab)'\n")
    fake.chmod(0o755)
    refused(bed, "mid: its Weir is 0.9.0", mid={"weir_dir": str(bed.tmp / "other")})


def test_a_program_is_missing(bed):
    refused(
        bed, "mid: /nowhere/build/switch/weir-switch was not built", mid={"weir_dir": "/nowhere"}
    )


def test_a_port_is_missing(bed):
    refused(bed, "rx: port b: there is no interface eth7", rx={"weir_ports": {"b": "eth7"}})


def test_a_wrong_cable(bed):
    crossed = {"left": "right", "right": "left"}
    refused(bed, "should be connected to", mid={"weir_ports": crossed})


def test_no_hugepages(bed):
    refused(bed, "tx: hugepages: yes, but none is free", tx={"weir_hugepages": "yes"})


def test_no_python(bed):
    path = {"ansible_python_interpreter": "/usr/bin/python9"}
    refused(bed, "rx: ", rx=path)


def test_ssh_is_refused(bed):
    refused(bed, "tx: ", tx={"ansible_port": 2222})


def test_no_route(bed):
    bed.ip("mid", "link set eth0 down")
    refused(bed, "mid: ")


def test_a_full_disk_from_the_start(bed):
    with_tmpfs(bed, "200k")
    refused(bed, "rx: ", rx={"weir_tmp": str(bed.tmp / "small")})


def with_tmpfs(bed, size):
    """rx has a mount namespace of its own, with a small disk."""
    small = bed.tmp / "small"
    small.mkdir()
    pid = bed.home / "rx.pid"
    os.kill(int(pid.read_text()), signal.SIGKILL)
    pid.unlink()
    mount = f'mount -t tmpfs -o size={size} tmpfs {small} && exec "$@"'
    bed.sshd("rx", "unshare", "--mount", "sh", "-c", mount, "sh")


def test_a_disk_that_fills_up(bed):
    with_tmpfs(bed, "6m")
    tmp = {"weir_tmp": str(bed.tmp / "small")}
    run = running(bed, rx=tmp)
    pid = int((bed.home / "rx.pid").read_text())
    fill = f"dd if=/dev/zero of={bed.tmp}/small/full bs=64k"
    sh("nsenter", f"--mount=/proc/{pid}/ns/mnt", "sh", "-c", fill, check=False)
    assert "rx: the disk is full" in sentence(run)
    nothing_runs(bed)


def test_a_host_dies_in_the_middle(bed):
    run = running(bed)
    bed.ip("mid", "link set eth0 down")
    bed.end_host("mid")
    assert "mid: it does not answer any more" in sentence(run)
    assert json.loads((run.folder / "summary.json").read_text())["verdict"].startswith("mid: ")
    nothing_runs(bed)


def test_a_receiver_that_ends_early(bed):
    run = running(bed)
    place = str(keepers(bed)["rx"].parent)
    pids = [pid for pid, line in processes().items() if f"{place}/run" in line]
    os.kill(pids[0], signal.SIGKILL)
    assert "rx: its receiver ended early" in sentence(run)
    nothing_runs(bed)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_the_client_is_ended(bed, number):
    run = running(bed)
    os.kill(run.process.pid, number)
    status = run.wait(120)
    assert status == (130 if number == signal.SIGINT else -number)
    nothing_runs(bed)
    assert not list(bed.tmp.glob("weir-*"))
    if number == signal.SIGINT:
        assert (run.folder / "summary.json").exists()
