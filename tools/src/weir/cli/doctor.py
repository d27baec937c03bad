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

import typer
from rich.console import Console

from weir.base import terminal, units
from weir.base.errors import UserError
from weir.base.page import Column, Table
from weir.base.programs import build_dir, find_program
from weir.cli.arguments import Json
from weir.cli.cards import cards
from weir.cli.host import BAD, OK, WARN, Check, Host, advice, cpu_list, output, warn
from weir.cli.usage import commands
from weir.guests import kernels

app = commands()
GIB = 1 << 30
AF_XDP = 44
DPDK_MIN = (22, 11)
WAKE_US_MAX = 10
TCP_WANTED = ("reno", "cubic", "bbr")
LIVE = ("`weir run --live` needs it", advice()["DPDK"][1])
PROGRAMS = {  # what is missing without each, and the command that builds it
    "sim": ("nothing runs without it", "tools/weir sim --version"),
    "pcap": ("captures are not analysed without it", "tools/weir sim --version"),
    "switch": LIVE,
    "sender": LIVE,
}
ROWS = (
    Column("", "state", words=True),
    Column("check", "name", words=True),
    Column("found", words=True),
    Column("meaning", words=True),
)


def programs(_: Host) -> Iterator[Check]:
    """Checks that the C programs are built."""
    for name, (meaning, fix) in PROGRAMS.items():
        try:
            said = output([str(find_program(name)), "--version"])
        except UserError:
            state = BAD if name == "sim" else WARN
            yield Check(f"weir-{name}", state, "not built", meaning, fix)
            continue
        if said:
            yield Check(f"weir-{name}", OK, said)
        else:
            yield Check(f"weir-{name}", BAD, "does not start", "", f"ninja -C {build_dir()}")


def dpdk(_: Host) -> Iterator[Check]:
    """Checks DPDK's version."""
    found = output(["pkg-config", "--modversion", "libdpdk"])
    if found is None:
        yield warn("DPDK", "not installed")
    elif tuple(int(part) for part in re.findall(r"\d+", found)[:2]) < DPDK_MIN:
        yield Check("DPDK", WARN, found, "the live programs need 22.11 or newer")
    else:
        yield Check("DPDK", OK, found)


def quiet_cores(host: Host, last: int) -> Check:
    """Checks for cores that the scheduler leaves alone, with ticks and RCU callbacks elsewhere."""
    name, isolated = "isolated cores", host.read("sys/devices/system/cpu/isolated") or ""
    if not isolated:
        return warn(name, "none", last=last)
    words = (host.read("proc/cmdline") or "").split()
    booted = dict(word.partition("=")[::2] for word in words)
    wanted = cpu_list(isolated)
    missing = [n for n in ("nohz_full", "rcu_nocbs") if wanted - cpu_list(booted.get(n, ""))]
    if missing:
        found, boot = f"{isolated}, not in {' and '.join(missing)}", f"={isolated} ".join(missing)
        return warn(name, found, "ticks", wanted=f"{boot}={isolated}")
    return Check(name, OK, isolated)


def cores(host: Host) -> Iterator[Check]:
    """Checks how many cores there are, and whether any is free of other work."""
    usable = os.sched_getaffinity(0)
    if len(usable) < 2:
        yield Check("cores", WARN, "1", "a live switch and sender share it and disturb each other")
    else:
        yield Check("cores", OK, str(len(usable)))
    yield quiet_cores(host, max(usable))
    governors = {*host.texts("sys/devices/system/cpu/cpu*/cpufreq/scaling_governor")}
    if slow := sorted(governors - {"performance"}):
        yield warn("frequency governor", ", ".join(slow))


def disturbances(host: Host) -> Iterator[Check]:
    """Checks what else makes a core late: deep sleep, a second thread, moved interrupts."""
    states = host.glob("sys/devices/system/cpu/cpu0/cpuidle/state*")
    slept_in = [state for state in states if host.read(state / "disable") != "1"]
    deepest = max((int(host.read(state / "latency") or 0) for state in slept_in), default=None)
    if deepest is not None and deepest > WAKE_US_MAX:
        yield warn("C-states", f"up to {deepest} us to wake up")
    elif deepest is not None:
        yield Check("C-states", OK, f"{deepest} us to wake up")
    siblings = {*host.texts("sys/devices/system/cpu/cpu*/topology/thread_siblings_list")}
    if pairs := sorted(text for text in siblings if len(cpu_list(text)) > 1):
        yield warn("SMT", f"CPUs {' '.join(pairs)} share a core")
    elif siblings:
        yield Check("SMT", OK, "one thread per core")
    if "irqbalance" in host.texts("proc/[0-9]*/comm"):
        yield warn("irqbalance", "runs")


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
        kib = int(path.name.removeprefix("hugepages-").removesuffix("kB"))
        free += int(host.read(path / "free_hugepages") or 0) * kib * 1024
    found = f"{free / GIB:.1f} GiB free" if free else "none"
    yield Check("hugepages", OK, found) if free >= GIB else warn("hugepages", found)


def clock(host: Host) -> Iterator[Check]:
    """Checks whether the processor's counter is a clock."""
    source = host.read("sys/devices/system/clocksource/clocksource0/current_clocksource")
    if source == "arch_sys_counter":  # arm64's generic timer: the architecture fixes its frequency
        yield Check("clock source", OK, source)
        return
    flags = re.search(r"^flags\s*:(.*)$", host.read("proc/cpuinfo") or "", re.M)
    if flags is not None and {"constant_tsc", "nonstop_tsc"} <= set(flags[1].split()):
        yield Check("TSC", OK, "invariant")
    else:
        yield Check("TSC", WARN, "not invariant", "live timestamps drift with the core's frequency")
    if source == "tsc":
        yield Check("clock source", OK, source)
    elif source is not None:
        meaning = "the kernel does not trust the TSC of this machine"
        yield Check("clock source", WARN, source, meaning)


def kernel(host: Host) -> Iterator[Check]:
    """Checks what live runs over veth, and tests against the kernel's TCP, need."""
    release = os.uname().release
    try:
        socket.socket(AF_XDP, socket.SOCK_RAW, 0).close()
        yield Check("AF_XDP", OK, f"in kernel {release}")
    except OSError as error:
        if error.errno == errno.EAFNOSUPPORT:
            instead = "use net_af_packet ports instead of net_af_xdp"
            yield Check("AF_XDP", WARN, f"not in kernel {release}", instead)
        else:
            yield Check("AF_XDP", WARN, f"refused: {error.strerror}", "needs root", "sudo -i")
    user = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    made = output(["unshare", *user, "--net", "ip", "link", "add", "type", "veth"])
    name = "namespaces, veth"
    if made is not None:
        yield Check(name, OK, "work (user namespaces)" if user else "work")
    elif shutil.which("ip") is None or shutil.which("unshare") is None:
        yield warn(name, "cannot tell", "unshare")
    else:
        yield warn(name, "refused")
    offered = (host.read("proc/sys/net/ipv4/tcp_available_congestion_control") or "").split()
    if missing := [control for control in TCP_WANTED if control not in offered]:
        modprobe = "; ".join(f"modprobe tcp_{control}" for control in missing)
        found = " ".join(offered) or "unknown"
        yield warn("kernel TCP", found, missing=", ".join(missing), modprobe=modprobe)
    else:
        yield Check("kernel TCP", OK, " ".join(offered))


def guests(host: Host) -> Iterator[Check]:
    """Checks what `stack: linux` needs: a kernel for guests, and a place for their memory."""
    built = kernels.current()
    if built is None:
        yield warn("guest kernel", "not built")
    else:
        yield Check("guest kernel", OK, f"{built.release} ({built.package} {built.version})")
    mounts = (host.read("proc/mounts") or "").splitlines()
    options = [line.split()[3].split(",") for line in mounts if line.split()[1:2] == ["/dev/shm"]]
    if options and "noexec" in options[-1]:
        yield warn("/dev/shm", "noexec")


def limits(_: Host) -> Iterator[Check]:
    """Checks privileges, locked memory, open files, disk."""
    root = os.geteuid() == 0
    yield Check("privileges", OK, "root") if root else warn("privileges", "not root")
    locked = resource.getrlimit(resource.RLIMIT_MEMLOCK)[0]
    unlimited = locked == resource.RLIM_INFINITY
    found = "unlimited" if unlimited else units.size(locked)
    enough = unlimited or locked >= GIB or root
    yield Check("locked memory", OK, found) if enough else warn("locked memory", found)
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    found = units.count(files)
    yield Check("open files", OK, found) if files >= 256 else warn("open files", found)
    free = shutil.disk_usage(".").free
    found = f"{free / GIB:.1f} GiB free here"
    if free >= 4 * GIB:
        yield Check("disk", OK, found)
    else:
        yield Check("disk", WARN, found, "telemetry level 3 writes 64 B per packet")


def python(_: Host) -> Iterator[Check]:
    yield Check("Python", OK, sys.version.split()[0])


SECTIONS: tuple[Callable[[Host], Iterator[Check]], ...] = (
    *(python, programs, dpdk, cores, disturbances, memory, clock, kernel, guests, cards, limits),
)


def checks(host: Host | None = None) -> list[Check]:
    return [check for section in SECTIONS for check in section(host or Host())]


def bad(rows: list[Check]) -> list[str]:
    """Returns the checks without which Weir cannot work here."""
    return [row.name for row in rows if row.state == BAD]


def show(rows: list[Check], out: Console) -> None:
    """Prints the rows, then the fixes, then whether Weir can run here."""
    terminal.print_table(out, Table(ROWS, rows), folded=("meaning",))
    fixes = [row for row in rows if row.fix]
    if fixes:
        out.print("\nTo fix (as root), if you need it:")
    for row in fixes:
        out.print(f"  {row.name}: {row.fix}", markup=False, soft_wrap=True)
    missing = ", ".join(bad(rows))
    out.print(f"\nWeir cannot run: {missing}" if missing else "\nWeir can run here.")


@app.add("doctor", "doctor", "doctor --json")
def doctor_(as_json: Json = False) -> None:
    """Checks this machine, and says what to fix and how."""
    found = checks()
    if as_json:
        print(json.dumps([asdict(check) for check in found], indent=1))
    else:
        show(found, terminal.console())
    raise typer.Exit(1 if bad(found) else 0)
