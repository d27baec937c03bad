# SPDX-License-Identifier: BSD-3-Clause
"""Programs of `weir bench live`: weir-switch, weir-sender, and what they are compared with.

Each function measures one program once, in a case; Skipped says why it cannot be done here.
"""

from __future__ import annotations

import json
import shutil
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from pyroute2 import netns

from weir import bootstrap
from weir.base import programs
from weir.base.errors import UserError
from weir.bench.lab import (
    FIRST,
    LAST,
    SIDES,
    WARM_S,
    Bench,
    Case,
    Measured,
    Sample,
    Skipped,
    eal,
    measure,
    memif,
    null_ports,
    traffic,
    veth,
    wait_started,
)
from weir.bootstrap import Need
from weir.live.laboratory import Laboratory, command

ROLES = ("sender", "receiver")
# Each way: what the links' rates and the delays' room are for; it must not be what limits.
RATE_MAX_PPS = {"null": 40e6, "memif": 15e6, "xdp": 5e6}
BUFFER_BYTES = 2600  # of a pool, per packet
FLOOR_MAX_PPMS = 60e3  # packets per millisecond that weir-live-floor has room for
OVS_PROGRAM = Path("/usr/lib/openvswitch-switch-dpdk/ovs-vswitchd-dpdk")
OVS_SCHEMA = Path("/usr/share/openvswitch/vswitch.ovsschema")
TESTPMD_NEED = Need("dpdk-dev", "command dpdk-testpmd")
OVS_NEED = Need("openvswitch-switch-dpdk", f"file {str(OVS_PROGRAM).lstrip('/')}")
AQM_PARAMS = {"step": ", threshold: 65pkt", "cake": ", buckets: 65536"}  # besides the limit
KERNEL_NEEDS = (Need("iperf3", "command iperf3"), Need("ethtool", "command ethtool"))


def memory_bytes(case: Case) -> int:
    """Returns the hugepages that the largest program of a case and its neighbours take."""
    if case.is_sender:
        return 2 << 30
    delayed = 2 * RATE_MAX_PPS[case.port] * case.delay_ms / 1e3
    if case.port == "null":
        delayed = max(delayed, FLOOR_MAX_PPMS * case.delay_ms)
    return (5 << 28) + round(delayed * BUFFER_BYTES)


@contextmanager
def fed(
    bench: Bench, case: Case, prefix: str, start: Callable[[list[str], str | None], Measured]
) -> Iterator[Measured]:
    """Starts a program between two ports of the case's kind, and what sends through them.

    `start` is called with the ports and the network namespace that they are in.
    """
    if case.port == "null":
        with start(null_ports(case.frame), None) as child:
            yield child
    elif case.port == "xdp":
        with veth() as wires:
            devs = [f"net_af_xdp{i},iface={name}" for i, name in enumerate(SIDES)]
            with start(devs, wires.space("sw")) as child, traffic(wires, FIRST):
                yield child
    else:
        socket = bench.socket()
        with start([memif("server", socket, i) for i in range(2)], None) as child:
            wait_started(child, prefix)
            devs = [memif("client", socket, i) for i in range(2)]
            with load(bench, load_text(case), devs):
                yield child


def load_text(case: Case) -> str:
    flows = f"/{case.flows}" if case.flows > 1 else ""
    rate = f"@{case.gbit}" if case.gbit else ""
    return f"{case.frame}{flows}{rate}"


def load(bench: Bench, frame: str, devs: Sequence[str]) -> Measured:
    """Starts weir-live-load on the neighbours' core."""
    prefix = bench.name("load")
    argv = [bench_program("load"), *eal(prefix, f"0@{FIRST}", 128), "--", frame, *devs]
    return Measured(argv)


def bench_program(name: str) -> Path:
    return programs.build_dir() / f"tools/bench/weir-live-{name}"


def floor(bench: Bench, case: Case) -> Sample:
    """Measures the bare loop, with as long a delay."""
    prefix = bench.name("floor")
    memory_mb = 160 + round(case.delay_ms * FLOOR_MAX_PPMS * BUFFER_BYTES / 1e6)
    argv = [bench_program("floor"), *eal(prefix, f"0@{LAST}", memory_mb), "--no-telemetry", "--"]
    argv += [*null_ports(case.frame), str(case.delay_ms), str(bench.seconds)]
    with Measured(argv) as child:
        child.wait_for(lambda: not child.running, "end")
        if child.process.returncode != 0:
            raise Skipped(f"weir-live-floor failed: {child.why()}")
    return floor_sample("\n".join(child.out), case.frame_bytes)


def floor_sample(text: str, frame_bytes: float) -> Sample:
    """Returns the sample that weir-live-floor printed, perhaps behind lines of DPDK's."""
    lines = [line for line in text.splitlines() if line.startswith("{")]
    if not lines:
        raise Skipped("weir-live-floor printed no figures")
    got = json.loads(lines[-1])
    pkts, cpu_ns, wall_ns = float(got["pkts"]), got["cpu_s"] * 1e9, got["wall_s"] * 1e9
    return Sample(pkts, pkts * frame_bytes * 8, cpu_ns, wall_ns, got["tsc_hz"])


def testpmd(mode: str, bench: Bench, case: Case) -> Sample:
    """Measures dpdk-testpmd, forwarding in a mode."""
    prefix = bench.name("testpmd")

    def start(devs: list[str], space: str | None) -> Measured:
        return Measured(testpmd_argv(prefix, mode, devs), space)

    with fed(bench, case, prefix, start) as child:
        return paced(case, measure(child, prefix, bench.seconds, case.frame_bytes))


def paced(case: Case, got: Sample) -> Sample:
    """Counts wall-clock time where what comes in has a rate: all of it comes through, or not."""
    return replace(got, cpu_ns=got.wall_ns) if case.gbit else got


def testpmd_argv(prefix: str, mode: str, devs: Sequence[str]) -> list[str]:
    """Returns a command that forwards on the last CPU; the lcore with the prompt sleeps."""
    vdevs = [arg for dev in devs for arg in ("--vdev", dev)]
    argv = [bootstrap.tool("dpdk-testpmd"), *eal(prefix, f"0@{FIRST},1@{LAST}", 256), *vdevs]
    argv += ["--", f"--forward-mode={mode}", "--nb-cores=1", "--burst=32"]
    # Without a terminal it would end at once: statistics keep it going.
    return [*argv, "--total-num-mbufs=32768", "--stats-period=3600"]


def txonly(bench: Bench, case: Case) -> Sample:
    """Measures dpdk-testpmd sending frames as large as weir-sender's, unpaced, into a sink."""
    prefix, socket = bench.name("testpmd"), bench.socket()
    argv = testpmd_argv(prefix, "txonly", [own_memory(socket, 0)])
    with load(bench, "sink", [memif("server", socket, 0)]) as sink:
        sink.wait_for(socket.exists, "socket")
        with Measured([*argv, "--txpkts=1514"]) as child:
            wait_started(child, prefix)
            return measure(child, prefix, bench.seconds, 1514)


def switch_config(prefix: str, case: Case, devs: Sequence[str], cpu: int) -> str:
    """Returns weir-switch's configuration for a case: the same path each way."""
    frame = round(case.frame_bytes)
    rate = f"{RATE_MAX_PPS[case.port] * 8 * (frame + 24) / 1e9:.0f}Gbit"
    queue = f"{{{case.aqm}: {{limit: 4MB{AQM_PARAMS.get(case.aqm, '')}}}}}"
    path = f"\n    - link: {{rate: {rate}, queue: {queue}}}"
    if case.delay_ms:
        path += f"\n    - delay: {{delay: {case.delay_ms}ms}}"
    listed = "".join(
        f'\n      - {{name: {name}, dev: "{dev}", path: {leaves}, min_packet: {frame}B}}'
        for name, leaves, dev in zip(SIDES, ("reverse", "forward"), devs, strict=True)
    )
    return (
        f"paths:\n  forward:{path}\n  reverse:{path}\n"
        f"telemetry: {{level: {case.level}}}\n"
        f"live:\n  switch:\n    lcores: [{cpu}]\n    prefix: {prefix}\n    hugepages: yes\n"
        f"    ports:{listed}\n"
    )


def weir_switch(bench: Bench, case: Case) -> Sample:
    """Measures weir-switch between two ports."""
    prefix = bench.name("switch")

    def start(devs: list[str], space: str | None) -> Measured:
        return weir_live(bench, "switch", prefix, switch_config(prefix, case, devs, LAST), space)

    with fed(bench, case, prefix, start) as child:
        got = paced(case, measure(child, prefix, bench.seconds, case.frame_bytes))
        return finished(child, bench.folder / prefix / "summary-switch.json", got)


def weir_live(
    bench: Bench, program: str, name: str, config: str, space: str | None = None
) -> Measured:
    """Starts a live program, and returns it when it is ready; `name` is its run folder's."""
    out, file = bench.folder / name, bench.folder / f"{name}.yaml"
    file.write_text(config)
    argv = [programs.find_program(program), file, "--out", out, "--duration", "1h", "--progress"]
    child = Measured(argv, space)
    try:
        child.wait_for(lambda: any('"ready"' in line for line in child.err), "ready line")
    except BaseException:
        child.stop()
        raise
    return child


def finished(child: Measured, summary: Path, got: Sample) -> Sample:
    """Returns the sample with figures of the summary, whose ledger has to balance."""
    # SIGINT is how a program without an end of its own is asked for its figures.
    if child.process.returncode not in (0, 128 + signal.SIGINT) or not summary.exists():
        raise UserError(f"{child.name} failed: {child.why()}", 1)
    data = json.loads(summary.read_text())
    if not data["ledger"]["balanced"]:
        raise UserError(f"{summary}: the ledger does not balance", 1)
    if bad := data["ledger"].get("drops", {}).get("malformed"):
        raise UserError(f"{child.name} dropped {bad:,} frames as malformed", 1)
    shutil.rmtree(summary.parent)  # level 3 writes hundreds of megabytes per second
    hz = data.get("lcore", data.get("sender_lcore", {})).get("tsc_hz")
    return replace(got, tsc_hz=hz, lost=lost_share(data["telemetry"]["streams"]))


def lost_share(streams: Mapping[str, Mapping[str, int]]) -> float:
    lost, kept = (sum(one[key] for one in streams.values()) for key in ("lost", "records"))
    return lost / max(1, lost + kept)


def own_memory(socket: Path, number: int) -> str:
    """Returns a memif in the client's memory: what a sender never writes is not copied."""
    return memif("client", socket, number) + ",zero-copy=yes"


def sender_config(prefix: str, case: Case, ports: Sequence[tuple[str, str]], cpu: int) -> str:
    """Returns weir-sender's configuration: so many paced Copa flows; ports as (role, dev).

    Checksums are a card's work, and between programs of one machine nobody's.
    """
    sink = case.port == "sender" and case.delay_ms > 0
    delay = {"receiver": f", delay: {case.delay_ms}ms" if sink else "", "sender": ""}
    listed = "".join(
        f'\n      - {{name: {role}, role: {role}, dev: "{dev}"{delay[role]}}}'
        for role, dev in ports
    )
    return (
        f"flows: [{{count: {case.frame}, cc: {{copa: {{delta: 0.5}}}}, jitter: 300ms}}]\n"
        "telemetry: {level: 0}\n"
        f"live:\n  sender:\n    lcores: [{cpu}]\n    prefix: {prefix}\n    hugepages: yes\n"
        f"    checksum: no\n    rate: 40Gbit\n    pipe: 50ms\n    ports:{listed}\n"
    )


def weir_sender(bench: Bench, case: Case) -> Sample:
    """Measures weir-sender, with a sink on the other core, or with weir-switch there.

    Behind weir-switch the sink is on the sender's core. Its packets are what its sending port sent:
    data. ACKs, if they are its own too, are their cost.
    """
    prefix, socket = bench.name("sender"), bench.socket()
    servers = [memif("server", socket, number) for number in range(2)]
    other = f"{prefix}o"
    if case.port == "sender-switch":
        path = Case("memif", "1500", "fifo", case.delay_ms)
        neighbour, text = "switch", switch_config(other, path, servers, FIRST)
        ports = [(role, own_memory(socket, number)) for number, role in enumerate(ROLES)]
    else:
        sink = [("receiver", servers[0])]
        neighbour, text = "sender", sender_config(other, case, sink, FIRST)
        ports = [("sender", own_memory(socket, 0))]
    with (
        weir_live(bench, neighbour, other, text),
        weir_live(bench, "sender", prefix, sender_config(prefix, case, ports, LAST)) as child,
    ):
        got = measure(child, prefix, bench.seconds, None, ports=1)
        return finished(child, bench.folder / prefix / "summary-sender.json", got)


def bridge(bench: Bench, case: Case) -> Sample:
    """Measures the kernel's bridge, its egress shaped by tbf at a rate it does not reach.

    It has no thread of its own: its cost is the time between two packets, on all CPUs.
    """
    with veth() as wires:
        wires.sh("sw", "ip", "link", "add", "br0", "type", "bridge")
        for side in SIDES:
            wires.sh("sw", "ip", "link", "set", side, "master", "br0")
            shape = ("rate", "100gbit", "burst", "1m", "limit", "4m")
            wires.sh("sw", "tc", "qdisc", "add", "dev", side, "root", "tbf", *shape)
        wires.sh("sw", "ip", "link", "set", "br0", "up")
        with traffic(wires, None) as client:
            client.wait_for(lambda: sent(wires, SIDES[1])[0] > 1000, "packet")
            time.sleep(WARM_S)
            (pkts, size), begin = sent(wires), time.monotonic_ns()
            time.sleep(bench.seconds)
            (pkts_after, size_after), end = sent(wires), time.monotonic_ns()
    return Sample(pkts_after - pkts, 8 * (size_after - size), end - begin, end - begin)


def sent(wires: Laboratory, *sides: str) -> tuple[int, int]:
    """Returns packets and bytes that left the bridge."""
    links = json.loads(wires.sh("sw", "ip", "-json", "-stats", "link", "show"))
    tx = [link["stats64"]["tx"] for link in links if link["ifname"] in (sides or SIDES)]
    return sum(one["packets"] for one in tx), sum(one["bytes"] for one in tx)


def ovs(policed: bool, bench: Bench, case: Case) -> Sample:
    """Measures Open vSwitch's userspace datapath in a namespace and with a database of its own."""
    prefix = bench.name("ovs")
    folder = bench.folder / prefix
    folder.mkdir()
    socket, control = folder / "db.sock", folder / "br0.mgmt"
    env = ["env", *(f"OVS_{what}DIR={folder}" for what in ("RUN", "DB", "LOG", "SYSCONF"))]
    ends = [f"--unixctl={folder}/ctl", "--no-chdir"]
    database, space = folder / "conf.db", f"{prefix}sw"
    command(bootstrap.tool("ovsdb-tool"), "create", database, OVS_SCHEMA)
    server = [bootstrap.tool("ovsdb-server"), database, f"--remote=punix:{socket}"]
    netns.create(space)  # br0 is a device too
    try:
        with Measured([*env, *server, f"--unixctl={folder}/db.ctl", "--no-chdir"]) as db:
            db.wait_for(socket.exists, "socket")
            vsctl = [*env, bootstrap.tool("ovs-vsctl"), f"--db=unix:{socket}", "--no-wait"]
            for words in ovs_config(prefix, null_ports(case.frame), policed):
                command(*vsctl, *words)
            with Measured([*env, OVS_PROGRAM, f"unix:{socket}", *ends], space) as child:
                child.wait_for(control.exists, "bridge")
                ofctl = bootstrap.tool("ovs-ofctl")
                command(ofctl, "del-flows", f"unix:{control}")
                for flow in ("in_port=1,actions=output:2", "in_port=2,actions=output:1"):
                    command(ofctl, "add-flow", f"unix:{control}", flow)
                return measure(child, prefix, bench.seconds, case.frame_bytes)
    finally:
        netns.remove(space)


def ovs_config(prefix: str, devs: Sequence[str], policed: bool) -> Iterator[Sequence[str]]:
    """Yields changes for ovs-vsctl: a bridge of two ports, with one polling thread."""
    yield ["init"]
    values = {
        "dpdk-init": "true",
        "dpdk-lcore-mask": hex(1 << FIRST),
        "pmd-cpu-mask": hex(1 << LAST),
        "dpdk-socket-mem": "1024",
        "dpdk-extra": f'"--no-pci --in-memory --file-prefix {prefix}"',
    }
    yield ["set", "Open_vSwitch", ".", *(f"other_config:{key}={v}" for key, v in values.items())]
    yield ["add-br", "br0", "--", "set", "bridge", "br0", "datapath_type=netdev"]
    for number, dev in enumerate(devs, 1):
        port, made = f"p{number}", (f'options:dpdk-devargs="{dev}"', f"ofport_request={number}")
        yield ["add-port", "br0", port, "--", "set", "Interface", port, "type=dpdk", *made]
        if policed:  # at a rate that it does not reach
            limits = ("other-config:cir=100000000000", "other-config:cbs=1000000000")
            create = ("create", "qos", "type=egress-policer", *limits)
            yield ["set", "port", port, "qos=@q", "--", "--id=@q", *create]
