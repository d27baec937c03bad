# SPDX-License-Identifier: BSD-3-Clause
"""Checks the host: what is there, what it means for Weir, and the command that mends it."""

from __future__ import annotations

import errno
import json
import os
import re
import resource
import shutil
import socket
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from weir.base import terminal, units
from weir.base.errors import UserError
from weir.base.programs import build_dir, find_program
from weir.cli.arguments import Json
from weir.cli.cards import cards
from weir.cli.host import BAD, OK, WARN, Check, Host, cpu_list, output
from weir.cli.usage import commands
from weir.guests import kernels

app = commands()
GIB = 1 << 30
AF_XDP = 44
DPDK_MIN = (22, 11)
LIVE_FIX = "weir setup live"
WAKE_US_MAX = 10
TCP_WANTED = ("reno", "cubic", "bbr")


def programs(_: Host) -> Iterator[Check]:
    """Checks that the C programs are built."""
    build = build_dir()
    for name in ("sim", "pcap", "switch", "sender"):
        try:
            path = find_program(name)
        except UserError:
            state = BAD if name == "sim" else WARN
            meaning = "nothing runs without it" if name == "sim" else "`weir run --live` needs it"
            live = name in ("switch", "sender")
            fix = LIVE_FIX if live else "tools/weir sim --version"
            yield Check(f"weir-{name}", state, "not built", meaning, fix)
        else:
            said = output([str(path), "--version"])
            state = OK if said is not None else BAD
            yield Check(
                f"weir-{name}",
                state,
                said or "does not start",
                "",
                "" if said else f"ninja -C {build}",
            )


def dpdk(_: Host) -> Iterator[Check]:
    """Checks DPDK's version."""
    found = output(["pkg-config", "--modversion", "libdpdk"])
    if found is None:
        yield Check(
            "DPDK",
            WARN,
            "not installed",
            "virtual time works; the live programs need it",
            LIVE_FIX,
        )
        return
    version = tuple(int(part) for part in re.findall(r"\d+", found)[:2])
    if version < DPDK_MIN:
        yield Check("DPDK", WARN, found, "the live programs need 22.11 or newer")
    else:
        yield Check("DPDK", OK, found)


def quiet_cores(host: Host, last: int) -> Check:
    """Checks for cores that the scheduler leaves alone, with ticks and RCU callbacks elsewhere."""
    isolated = host.read("sys/devices/system/cpu/isolated") or ""
    if not isolated:
        return Check(
            "isolated cores",
            WARN,
            "none",
            "live, the scheduler may interrupt a core for milliseconds; virtual time does not mind",
            f"boot with: isolcpus={last} nohz_full={last} rcu_nocbs={last}",
        )
    said = dict(
        word.partition("=")[::2]
        for word in (host.read("proc/cmdline") or "").split()
        if "=" in word
    )
    missing = [
        name
        for name in ("nohz_full", "rcu_nocbs")
        if cpu_list(isolated) - cpu_list(said.get(name, ""))
    ]
    if missing:
        return Check(
            "isolated cores",
            WARN,
            f"{isolated}, not in {' and '.join(missing)}",
            "the kernel's timer tick or callbacks still interrupt them",
            "boot with: " + " ".join(f"{name}={isolated}" for name in missing),
        )
    return Check("isolated cores", OK, isolated)


def cores(host: Host) -> Iterator[Check]:
    """Checks how many cores there are, and whether any is free of other work."""
    usable = os.sched_getaffinity(0)
    if len(usable) < 2:
        yield Check("cores", WARN, "1", "a live switch and sender share it and disturb each other")
    else:
        yield Check("cores", OK, str(len(usable)))
    yield quiet_cores(host, max(usable))
    governors = {
        host.read(str(p.relative_to(host.root)))
        for p in host.glob("sys/devices/system/cpu/cpu*/cpufreq/scaling_governor")
    }
    if governors - {"performance", None}:
        yield Check(
            "frequency governor",
            WARN,
            ", ".join(sorted(g for g in governors if g)),
            "cores slow down between bursts",
            "echo performance | tee /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor",
        )


def disturbances(host: Host) -> Iterator[Check]:
    """Checks what else makes a core late: deep sleep, a second thread, moved interrupts."""
    deep = sorted(
        {
            latency
            for path in host.glob("sys/devices/system/cpu/cpu0/cpuidle/state*/latency")
            if host.read(str(path.relative_to(host.root).with_name("disable"))) != "1"
            for latency in [int(host.read(str(path.relative_to(host.root))) or 0)]
        }
    )
    if deep and deep[-1] > WAKE_US_MAX:
        yield Check(
            "C-states",
            WARN,
            f"up to {deep[-1]} us to wake up",
            "cores that poll never sleep, but the one beside them is slow to answer",
            "cpupower idle-set -D 10, or boot with: intel_idle.max_cstate=1 processor.max_cstate=1",
        )
    elif deep:
        yield Check("C-states", OK, f"{deep[-1]} us to wake up")
    siblings = {
        host.read(str(path.relative_to(host.root))) or ""
        for path in host.glob("sys/devices/system/cpu/cpu*/topology/thread_siblings_list")
    }
    pairs = sorted(text for text in siblings if len(cpu_list(text)) > 1)
    if pairs:
        yield Check(
            "SMT",
            WARN,
            f"CPUs {' '.join(pairs)} share a core",
            "an lcore beside a busy sibling has half a core",
            "leave the siblings of lcores idle, or: echo off > /sys/devices/system/cpu/smt/control",
        )
    elif siblings:
        yield Check("SMT", OK, "one thread per core")
    names = (host.read(str(p.relative_to(host.root))) for p in host.glob("proc/[0-9]*/comm"))
    if "irqbalance" in names:
        yield Check(
            "irqbalance",
            WARN,
            "runs",
            "it moves interrupts to lcores",
            "systemctl stop irqbalance, or IRQBALANCE_BANNED_CPULIST in its settings",
        )


def memory(host: Host) -> Iterator[Check]:
    """Checks ordinary memory and hugepages."""
    fields = dict(re.findall(r"(\w+):\s+(\d+)", host.read("proc/meminfo") or ""))
    available = int(fields.get("MemAvailable", 0)) * 1024
    found = f"{available / GIB:.1f} GiB available"
    if available < GIB // 2:
        yield Check("memory", BAD, found, "thousands of flows at 10 Gbit/s need about 1 GiB")
    elif available < 2 * GIB:
        yield Check("memory", WARN, found, "enough for small runs; pools are refused if too large")
    else:
        yield Check("memory", OK, found)
    free = 0
    for path in host.glob("sys/kernel/mm/hugepages/hugepages-*kB"):
        pages = host.read(str(path.relative_to(host.root) / "free_hugepages"))
        kib = int(path.name.removeprefix("hugepages-").removesuffix("kB"))
        free += int(pages or 0) * kib * 1024
    if free >= GIB:
        yield Check("hugepages", OK, f"{free / GIB:.1f} GiB free")
    else:
        yield Check(
            "hugepages",
            WARN,
            f"{free / GIB:.1f} GiB free" if free else "none",
            "the live programs use ordinary memory, which is slower; network cards need hugepages",
            "sysctl -w vm.nr_hugepages=1024",
        )


def clock(host: Host) -> Iterator[Check]:
    """Checks whether the time stamp counter is a clock."""
    flags = re.search(r"^flags\s*:(.*)$", host.read("proc/cpuinfo") or "", re.M)
    invariant = flags is not None and {"constant_tsc", "nonstop_tsc"} <= set(flags[1].split())
    source = host.read("sys/devices/system/clocksource/clocksource0/current_clocksource")
    if invariant:
        yield Check("TSC", OK, "invariant")
    else:
        yield Check("TSC", WARN, "not invariant", "live timestamps drift with the core's frequency")
    if source is not None:
        state = OK if source == "tsc" else WARN
        meaning = "" if state == OK else "the kernel does not trust the TSC of this machine"
        yield Check("clock source", state, source, meaning)


def kernel(host: Host) -> Iterator[Check]:
    """Checks what live runs over veth, and tests against the kernel's TCP, need."""
    release = os.uname().release
    try:
        socket.socket(AF_XDP, socket.SOCK_RAW, 0).close()
        yield Check("AF_XDP", OK, f"in kernel {release}")
    except OSError as error:
        if error.errno == errno.EAFNOSUPPORT:
            yield Check(
                "AF_XDP",
                WARN,
                f"not in kernel {release}",
                "use net_af_packet ports instead of net_af_xdp",
            )
        else:
            yield Check("AF_XDP", WARN, f"refused: {error.strerror}", "needs root", "sudo -i")
    user = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    made = ["unshare", *user, "--net", "ip", "link", "add", "type", "veth"]
    if output(made) is not None:
        yield Check("namespaces, veth", OK, "work" if not user else "work (user namespaces)")
    elif shutil.which("ip") is None or shutil.which("unshare") is None:
        yield Check(
            "namespaces, veth",
            WARN,
            "cannot tell",
            "live runs on one machine use them",
            "apt-get install iproute2 util-linux",
        )
    else:
        yield Check(
            "namespaces, veth",
            WARN,
            "refused",
            "live runs on one machine use them",
            "sysctl -w user.max_user_namespaces=10000; modprobe veth",
        )
    offered = (host.read("proc/sys/net/ipv4/tcp_available_congestion_control") or "").split()
    missing = [name for name in TCP_WANTED if name not in offered]
    if missing:
        yield Check(
            "kernel TCP",
            WARN,
            " ".join(offered) or "unknown",
            f"experiments against the kernel's {', '.join(missing)} cannot run",
            "; ".join(f"modprobe tcp_{name}" for name in missing),
        )
    else:
        yield Check("kernel TCP", OK, " ".join(offered))


def guests(host: Host) -> Iterator[Check]:
    """Checks what `stack: linux` needs: a kernel for guests, and a place for their memory."""
    built = kernels.current()
    if built is None:
        yield Check(
            "guest kernel",
            WARN,
            "not built",
            "`stack: linux` needs it, a few minutes once",
            "tools/weir guests build (as any user)",
        )
    else:
        yield Check("guest kernel", OK, f"{built.release} ({built.package} {built.version})")
    mounts = (host.read("proc/mounts") or "").splitlines()
    options = [line.split()[3].split(",") for line in mounts if line.split()[1:2] == ["/dev/shm"]]
    if options and "noexec" in options[-1]:
        yield Check(
            "/dev/shm",
            WARN,
            "noexec",
            "`stack: linux` runs from memory there",
            "mount -o remount,exec /dev/shm",
        )


def limits(_: Host) -> Iterator[Check]:
    """Checks privileges, locked memory, open files, disk."""
    if os.geteuid() == 0:
        yield Check("privileges", OK, "root")
    else:
        yield Check(
            "privileges",
            WARN,
            "not root",
            "live ports on kernel interfaces need it",
            "sudo tools/weir run CONFIG --live",
        )
    locked = resource.getrlimit(resource.RLIMIT_MEMLOCK)[0]
    if locked == resource.RLIM_INFINITY or locked >= GIB or os.geteuid() == 0:
        found = "unlimited" if locked == resource.RLIM_INFINITY else units.size(locked)
        yield Check("locked memory", OK, found)
    else:
        yield Check(
            "locked memory",
            WARN,
            units.size(locked),
            "AF_XDP ports cannot pin their buffers",
            "ulimit -l unlimited",
        )
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if files >= 256:
        yield Check("open files", OK, units.count(files))
    else:
        yield Check(
            "open files", WARN, units.count(files), "few streams can be open", "ulimit -n 1024"
        )
    free = shutil.disk_usage(Path.cwd()).free
    state = OK if free >= 4 * GIB else WARN
    yield Check(
        "disk",
        state,
        f"{free / GIB:.1f} GiB free here",
        "" if state == OK else "telemetry level 3 writes 64 B per packet",
    )


def python(_: Host) -> Iterator[Check]:
    """Checks the interpreter that this runs in."""
    yield Check("Python", OK, sys.version.split()[0])


SECTIONS: tuple[Callable[[Host], Iterator[Check]], ...] = (
    python,
    programs,
    dpdk,
    cores,
    disturbances,
    memory,
    clock,
    kernel,
    guests,
    cards,
    limits,
)


def checks(host: Host | None = None) -> list[Check]:
    """Returns every check, in order."""
    return [check for section in SECTIONS for check in section(host or Host())]


def bad(rows: list[Check]) -> list[str]:
    """Returns the checks without which Weir cannot work here."""
    return [row.name for row in rows if row.state == BAD]


def show(rows: list[Check], out: Console) -> int:
    """Prints the rows, then the fixes; 1 if Weir cannot work here, else 0."""
    colours = {OK: "green", WARN: "yellow", BAD: "bold red"}
    table = Table(box=None, pad_edge=False, show_header=False, padding=(0, 2, 0, 0))
    for row in rows:
        table.add_row(
            Text(row.state, style=colours[row.state]),
            Text(row.name),
            Text(row.found),
            Text(row.meaning),
        )
    out.print(table)
    fixes = [row for row in rows if row.fix]
    if fixes:
        out.print("\nTo fix (as root), if you need it:")
    for row in fixes:
        out.print(f"  {row.name}: {row.fix}", markup=False, soft_wrap=True)
    missing = bad(rows)
    said = f"\nWeir cannot run: {', '.join(missing)}" if missing else "\nWeir can run here."
    out.print(said)
    return 1 if missing else 0


@app.add("doctor", "doctor", "doctor --json")
def doctor_(as_json: Json = False) -> None:
    """Checks this machine, and says what to fix and how."""
    found = checks()
    if as_json:
        print(json.dumps([asdict(check) for check in found], indent=1))
    else:
        show(found, terminal.console())
    raise typer.Exit(1 if bad(found) else 0)
