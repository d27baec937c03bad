# SPDX-License-Identifier: BSD-3-Clause
"""A laboratory for the smoke tests: namespaces, veth pairs, and the live programs as children.

    a ---- left [ weir-switch, in namespace sw ] right ---- b

Everything a lab makes has its own name and is gone when it closes; when the tests are killed, the
kernel does the same (tests/conftest.py). Machines are shared: all of a lab runs before
others, the switch's lcore on the last CPU, all else on the first. Two workers of pytest have a lab
each: their programs wait more than they compute. What a test asserts holds however
seldom they run; deadlines are there to end what hangs.
"""

from __future__ import annotations

import contextlib
import fcntl
import itertools
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

from processes import command_line, links, pids
from waiting import WAIT_S, wait_for
from weir.live.laboratory import ADDRESS, Laboratory
from weir.live.laboratory import command as sh
from weir.runner.child import Child

CPUS = sorted(os.sched_getaffinity(0))
LCORE = CPUS[-1]
HOST = ["taskset", "-c", str(CPUS[0])]
PEER = Path(__file__).with_name("peer.py")
RUNTIME = Path("/var/run/dpdk")
NUMBERS = itertools.count()
OPEN: list[Lab] = []  # labs that have not been closed
WORKERS = ("gw0", "gw1")
WORKER = os.environ.get("PYTEST_XDIST_WORKER", WORKERS[0])
SIX = {"a": "2001:2::c612:1", "b": "2001:2::c613:1"}


def processes():
    """Command lines by process id. What runs beside the tests is in another namespace."""
    lines = {pid: b" ".join(command_line(pid)).decode() for pid in pids()}
    return {pid: line for pid, line in lines.items() if line}


def namespaces():
    """The network namespaces that a process is in."""
    return {place for pid in pids() for place in links(pid, "ns/net")}


class Program(Child):
    """A live program: ready when it says so, summary in its run folder."""

    def __init__(self, argv, out, **kwargs):
        super().__init__(argv, **kwargs)
        self.folder = Path(out)

    def ready(self):
        """Waits for the ready line; False if the program ended instead."""
        wait_for(
            lambda: not self.running or any('"ready"' in line for line in self.err),
            f"{self.argv[0]} ready",
        )
        if not self.running:
            self.wait()  # for all that it said
        return any('"ready"' in line for line in self.err)

    def summary(self):
        name = Path(self.folder_program()).name.removeprefix("weir-")
        return json.loads((self.folder / f"summary-{name}.json").read_text())

    def folder_program(self):
        return next(arg for arg in self.argv if "weir-s" in Path(arg).name)

    def sentences(self):
        """What it said to the user."""
        return [line for line in self.err if line and not line.startswith("{")]

    def stop(self, number=signal.SIGINT):
        """Ends it the way a user does, returns its exit status: 0 if it is that of the signal."""
        self.send(number)
        status = self.wait()
        return 0 if status == 128 + number else status


class Machine:
    """One process per worker with labs at a time, also of other runs: a lab fills two CPUs."""

    def __init__(self, worker):
        path = f"/tmp/weir-lab-{worker}.lock"
        self.file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self.labs = 0

    def __enter__(self):
        fcntl.flock(self.file, fcntl.LOCK_EX)
        self.labs += 1

    def __exit__(self, *_):
        self.labs -= 1
        if self.labs == 0:
            fcntl.flock(self.file, fcntl.LOCK_UN)


MACHINES = {worker: Machine(worker) for worker in WORKERS}


class Lab(Laboratory):
    """Two hosts and a switch between them, and the programs in them. A context manager."""

    def __init__(self, tmp_path, build):
        super().__init__(
            f"weir{os.getpid()}{WORKER}n{next(NUMBERS)}x"
        )  # begins no other lab's name
        self.tmp = Path(tmp_path)
        self.build = Path(build)
        self.children: list[Child] = []
        self.server: Child | None = None
        self.client: Child | None = None

    def __enter__(self):
        MACHINES[WORKER].__enter__()
        OPEN.append(self)
        return super().__enter__()

    def __exit__(self, *_):
        self.end_children()
        super().__exit__()
        for left in RUNTIME.glob(f"{self.prefix}*"):  # by programs that were killed
            shutil.rmtree(left) if left.is_dir() else left.unlink()
        OPEN.remove(self)
        MACHINES[WORKER].__exit__()

    def cable(self, host, port, link="eth0"):
        """Hosts ask a minute for an address: of three seconds a switch may have no CPU."""
        super().cable(host, port, link)
        asks = [f"{which}_solicit=60" for which in ("mcast", "ucast")]
        self.sh(host, "sysctl", "-qw", *(f"net.ipv4.neigh.{link}.{one}" for one in asks))
        self.sh(host, "sysctl", "-qw", *(f"net.ipv6.neigh.{link}.{one}" for one in asks))

    def enable_ecn(self):
        """Also where the SYN is lost: Linux sends the second one without ECN otherwise."""
        for host in ("a", "b"):
            self.sh(host, "sysctl", "-qw", "net.ipv4.tcp_ecn=1", "net.ipv4.tcp_ecn_fallback=0")

    def enable_ipv6(self, host):
        """The kernel's IPv6 in a namespace, with its address."""
        self.sh(host, "sysctl", "-qw", "net.ipv6.conf.all.disable_ipv6=0")
        self.sh(host, "ip", "addr", "add", f"{SIX[host]}/96", "dev", "eth0", "nodad")
        self.sh(host, "ip", "route", "add", "2001:2::/96", "dev", "eth0", "metric", "1")

    def end_children(self):
        while self.children:
            self.children.pop().kill()

    def tap(self, port):
        """A bridge before a port: the link `tap`, which no program polls, sees all that passes."""
        for change in (
            f"link set {port} down name tap",
            f"link add {port} type veth peer name inner",
            "link add bridge type bridge",
            "link set tap master bridge",
            "link set inner master bridge",
            "link set bridge up",
        ):
            sh("ip", "-n", self.space("sw"), *change.split())
        for link in (port, "inner", "tap"):
            self.up("sw", link)

    def lost(self, where, link):
        """Frames that the kernel dropped behind a veth: it too may find no time for them."""
        shown = self.sh(where, "ip", "-j", "-s", "link", "show", link)
        return json.loads(shown)[0]["stats64"]["tx"]["dropped"]

    def mac(self, host):
        return json.loads(self.sh(host, "ip", "-j", "link", "show", "eth0"))[0]["address"]

    def know(self, addresses):
        """The hosts' addresses for good: they send no ARP."""
        for host, other in ("a", "b"), ("b", "a"):
            known = [addresses[other], "lladdr", self.mac(other), "dev", "eth0", "nud", "permanent"]
            self.sh(host, "ip", "neigh", "replace", *known)

    def wait_closed(self):
        """Until all FINs of the hosts are acknowledged: the next capture would have them too."""

        def unclosed():
            lines = "".join(self.sh(host, "ss", "-Htna") for host in "ab").splitlines()
            return [line for line in lines if not line.startswith(("LISTEN", "TIME-WAIT"))]

        wait_for(lambda: not unclosed(), lambda: f"all connections' ends: {unclosed()}")

    def host(self, name, *argv):
        """A child in a host's namespace, off the lcore's CPU."""
        child = Child(self.enter(name, *HOST, *argv))
        self.children.append(child)
        return child

    def sink(self, connections, host="b", port=5001, kind="sink"):
        """peer.py as a server that counts what so many connections bring; "sink6": IPv6 too."""
        child = self.host(host, sys.executable, PEER, kind, port, connections)
        wait_for(lambda: "listening" in child.out, "the sink")
        return child

    def config(self, text):
        path = self.tmp / f"config{next(NUMBERS)}.yaml"
        path.write_text(text)
        return path

    def start(self, program, config, *options, space="sw", duration=None, out=None):
        """Starts a live program without waiting; `config` is a file or its text."""
        if not isinstance(config, Path):
            config = self.config(config)
        out = out or self.tmp / f"run{next(NUMBERS)}"
        argv = [self.build / program, config]
        argv += ["--out", out, "--progress"]
        if duration is not None:
            argv += ["--duration", duration]
        argv += options  # what is for DPDK comes last
        child = Program(self.enter(space, *argv), out)
        self.children.append(child)
        return child

    def switch(self, paths, *options, dev="net_af_packet", duration="120s", live="", top=""):
        """weir-switch between left and right, ready."""
        # Room for what arrives while another process has the CPU.
        ring = ",framecnt=4096" if dev == "net_af_packet" else ""
        config = f"""
seed: 1
telemetry: {{level: 1, interval: 100ms}}
paths: {paths}
{top}
live:
  switch:
    lcores: [{LCORE}]
    prefix: {self.prefix}
    ports:
      - {{name: left, dev: "{dev}0,iface=left{ring}", path: reverse}}
      - {{name: right, dev: "{dev}1,iface=right{ring}", path: forward}}
{live}"""
        child = self.start("switch/weir-switch", config, *options, duration=duration)
        if not child.ready():
            raise RuntimeError(f"weir-switch did not start: {child.err}")
        # A busy kernel says late that a link is up, and frames for it have no route meanwhile.
        with contextlib.suppress(TimeoutError):  # a test may want it down
            wait_for(self.ports_are_up, "its ports", 5)
        return child

    def ports_are_up(self):
        ports = self.telemetry("/weir/ports")
        return "error" not in ports and all(port["up"] for port in ports.values())

    def telemetry(self, command, prefix=None):
        """Asks a live program, and again where its lcores had no CPU for all of five seconds."""

        reply = {}

        def answered():
            nonlocal reply
            reply = self.ask(command, prefix)
            why = reply.get("error", "") if isinstance(reply, dict) else ""
            return "did not answer" not in why and "is not running" not in why

        wait_for(answered, lambda: f"{command}: {reply}")
        return reply

    def ask(self, command, prefix=None):
        """Asks a live program once, through rte_telemetry's socket."""
        path = str(RUNTIME / (prefix or self.prefix) / "dpdk_telemetry.v2")
        with contextlib.closing(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)) as client:
            client.settimeout(WAIT_S)
            try:
                client.connect(path)
            except OSError as exc:
                said = [child.err[-5:] for child in self.children]
                raise RuntimeError(f"{path}: {exc}; the programs said {said}") from exc
            client.recv(1024)  # who is there
            client.send(command.encode())
            reply = json.loads(client.recv(16384))
        return reply[command.split(",")[0]]

    def runs(self, prefix):
        """Waits until a program's lcores run: a sender is ready earlier, to answer its peer."""
        wait_for(lambda: "now_ns" in (self.telemetry("/weir/info", prefix) or ()), "a run")

    def changed(self, param):
        """Waits for a scheduled change: its time counts from the start of the run, whose own time
        counts from the start of the program."""
        wait_for(lambda: param in self.telemetry("/weir/params"), param)

    def ping(self, count=40, interval=0.05, source="a", target="b", size=56, wait=None):
        """Round-trip times in ms, until so many answers came: for the last of a fixed number ping
        waits an interval at most. With `wait`: so many are sent, and so long for any answer."""
        until = f"-w {round(30 + count * interval)}" if wait is None else f"-W {wait}"
        argv = f"ping -n -i {interval} -c {count} -s {size} {until} {ADDRESS[target]}"
        child = self.host(source, *argv.split())
        child.wait(WAIT_S)
        return times_ms(child.out)[:count]

    def iperf_server(self, host="b"):
        """An iperf3 server for one client; the one before must have let go of the port."""
        if self.server is not None:
            self.server.wait()
        self.server = self.host(host, "iperf3", "-s", "-1", "--forceflush")
        wait_for(
            lambda: any("listening" in line for line in self.server.out),
            lambda: f"iperf3 -s {self.server.out} {self.server.err}",
        )

    def iperf(self, congestion, seconds, omit=1, source="a", target="b", connections=1):
        """Starts an iperf3 client; its result is in result(child)."""
        self.iperf_server(target)
        times = ("-t", seconds, "-O", omit)
        argv = ["iperf3", "-c", ADDRESS[target], "-C", congestion, *times, "-J"]
        argv += ["-P", connections]
        self.client = self.host(source, *argv)
        return self.client

    def end_traffic(self):
        """Of iperf, before its time."""
        self.client.kill()
        self.server.kill()


def replay(folder, build):
    """What `weir replay` says of a run, once it has ended."""
    return subprocess.run(
        [sys.executable, "-m", "weir", "replay", folder],
        env={**os.environ, "WEIR_BUILD": str(build)},
        capture_output=True,
        text=True,
        timeout=120,
    )


def times_ms(lines):
    """Round-trip times that ping printed."""
    return [float(line.split("time=")[1].split()[0]) for line in lines if "time=" in line]


def iperf_result(child):
    """The JSON of an iperf3 client that has ended."""
    status = child.wait(WAIT_S)
    result = json.loads("\n".join(child.out))
    assert status == 0, result.get("error")
    return result


# Causes of common/watch/watch.h: what the machine did to the run, not how it ended.
FELL_BEHIND = {"host", "port", "lcore", "pool", "missed", "telemetry", "clock"}


def outcome(summary):
    """The verdict, but for what fell behind: machines are shared, and a live run says so."""
    said = [found["sentence"] for found in summary["verdicts"]]
    assert summary["verdict"] == (said[0] if said else "ok")
    ends = [one["sentence"] for one in summary["verdicts"] if one["cause"] not in FELL_BEHIND]
    return ends[0] if ends else "ok"


def median(values):
    return sorted(values)[len(values) // 2]


# Rates and delays are what they should be only where the lcores have their CPUs to themselves,
# which no shared machine promises. WEIR_QUIET=1 says that this one does: then they are exact.
QUIET = os.environ.get("WEIR_QUIET") == "1"


def quiet(exact, loose):
    """A bound: the exact one on a quiet machine, else one that only a defect can break."""
    return exact if QUIET else loose


def best_of(attempts, good, once):
    """The first good result, or the last: other work on this machine can only make it worse."""
    for _ in range(attempts):
        result = once()
        if good(result):
            break
    return result
