# SPDX-License-Identifier: BSD-3-Clause
"""Checks the host: what is there, what it means for Weir, and the command that mends it."""

from __future__ import annotations

import errno
import os
import re
import resource
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from weir import units
from weir.errors import UserError
from weir.run import PROGRAMS, build_dir, find_program

OK, WARN, BAD = "ok", "warn", "bad"
GIB = 1 << 30
AF_XDP = 44
DPDK_MIN = (22, 11)
DPDK_FIX = "apt-get install libdpdk-dev"
DPDK_DRIVERS = ("vfio-pci", "igb_uio", "uio_pci_generic", "mlx4_core", "mlx5_core")
RX_RING_WANTED = 4096
WAKE_US_MAX = 10
TCP_WANTED = ("reno", "cubic", "bbr")


@dataclass(frozen=True)
class Check:
    """One row: bad means that Weir cannot work, warn that something will be missing or worse."""

    name: str
    state: str
    found: str
    meaning: str = ""
    fix: str = ""


class Host:
    """What the checks look at; tests put a folder in place of /."""

    def __init__(self, root: Path = Path("/")) -> None:
        self.root = root

    def read(self, path: str) -> str | None:
        """A small file's text, or None."""
        try:
            return (self.root / path).read_text(encoding="utf-8", errors="replace").strip()
        except OSError:
            return None

    def ethtool(self, option: str, name: str) -> str:
        """What `ethtool` says of an interface; "" if it says nothing."""
        return output(["ethtool", option, name]) or ""

    def glob(self, pattern: str) -> list[Path]:
        """Paths below the root."""
        return sorted(self.root.glob(pattern))


def output(argv: list[str]) -> str | None:
    """What a command prints; None if it fails or is missing."""
    try:
        done = subprocess.run(
            argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=10
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def programs(_: Host) -> Iterator[Check]:
    """Are the C programs built?"""
    build = build_dir()
    for name in PROGRAMS:
        try:
            path = find_program(name)
        except UserError:
            state = BAD if name == "sim" else WARN
            meaning = "nothing runs without it" if name == "sim" else "`weir run --live` needs it"
            fix = "tools/weir sim --version"
            if name != "sim":
                fix = f"{DPDK_FIX} && meson setup --reconfigure {build} && ninja -C {build}"
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
    """DPDK's version."""
    found = output(["pkg-config", "--modversion", "libdpdk"])
    if found is None:
        yield Check(
            "DPDK",
            WARN,
            "not installed",
            "virtual time works; the live programs need it",
            DPDK_FIX,
        )
        return
    version = tuple(int(part) for part in re.findall(r"\d+", found)[:2])
    if version < DPDK_MIN:
        yield Check("DPDK", WARN, found, "the live programs need 22.11 or newer")
    else:
        yield Check("DPDK", OK, found)


def cpu_list(text: str) -> set[int]:
    """ "1-3,8" as the kernel writes CPUs; what is not a list of CPUs is none."""
    ranges = (part.partition("-") for part in text.split(",") if re.fullmatch(r"\d+(-\d+)?", part))
    return {cpu for first, _, last in ranges for cpu in range(int(first), int(last or first) + 1)}


def quiet_cores(host: Host, last: int) -> Check:
    """Cores the scheduler leaves alone, whose ticks and RCU callbacks are elsewhere."""
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
    """How many, and whether any is free of other work."""
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


def rest(host: Host) -> Iterator[Check]:
    """What else makes a core late: deep sleep, a second thread on it, interrupts moved about."""
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


def ethernet(host: Host) -> Iterator[Path]:
    """PCI Ethernet controllers, as paths below the root."""
    for path in host.glob("sys/bus/pci/devices/*"):
        where = path.relative_to(host.root)
        if (host.read(str(where / "class")) or "").startswith("0x0200"):
            yield where


def cards(host: Host) -> Iterator[Check]:
    """Network cards: which driver has each, whose memory is near, what the kernel still does."""
    found = list(ethernet(host))
    if not found:
        yield Check("network cards", OK, "none: live runs use virtual devices")
        return
    groups = host.glob("sys/kernel/iommu_groups/*")
    if groups:
        yield Check("IOMMU", OK, f"{len(groups)} groups")
    else:
        yield Check(
            "IOMMU",
            WARN,
            "off",
            "vfio-pci hands a card out only without protection of memory",
            "boot with: intel_iommu=on iommu=pt (AMD: iommu=pt); virtual machines: "
            "echo Y > /sys/module/vfio/parameters/enable_unsafe_noiommu_mode",
        )
    for where in found:
        yield from card(host, where)


def card(host: Host, where: Path) -> Iterator[Check]:
    """One card: bound for DPDK, or the kernel's and how it is set."""
    address = where.name
    link = host.root / where / "driver"
    driver = link.resolve().name if link.exists() else "none"
    node = int(host.read(str(where / "numa_node")) or -1)
    near = host.read(str(where / "local_cpulist")) or ""
    place = f"NUMA node {node}, CPUs {near}" if node >= 0 and near else "no NUMA node"
    names = [path.name for below in ("", "/*") for path in host.glob(f"{where}{below}/net/*")]
    routed = [name for name in names if name in routes(host)]
    if driver in DPDK_DRIVERS:
        yield Check(f"card {address}", OK, f"{driver}; {place}")
    elif routed:
        why = f"{routed[0]} has routes: leave it to the kernel"
        yield Check(f"card {address}", OK, f"{driver}; {place}", why)
    else:
        get = "" if shutil.which("dpdk-devbind.py") else "apt-get install dpdk; "
        yield Check(
            f"card {address}",
            WARN,
            f"{driver}; {place}",
            "the kernel's, not DPDK's",
            f"{get}modprobe vfio-pci; dpdk-devbind.py --bind=vfio-pci {address}",
        )
    isolated = cpu_list(host.read("sys/devices/system/cpu/isolated") or "")
    if node >= 0 and near and isolated and not isolated & cpu_list(near):
        yield Check(
            f"card {address} NUMA",
            WARN,
            f"none of the isolated cores is on node {node}",
            "each packet crosses to the other socket",
            f"isolate, and name in lcores, some of CPUs {near}",
        )
    for path in host.glob(f"{where}/net/*"):
        yield from interface(host, path.name)


def routes(host: Host) -> set[str]:
    """Interfaces with an IPv4 route: this machine may be reached through them."""
    lines = (host.read("proc/net/route") or "").splitlines()[1:]
    return {line.split()[0] for line in lines if line.strip()}


def interface(host: Host, name: str) -> Iterator[Check]:
    """A card's kernel interface: pause frames and ring sizes, which its DPDK driver may inherit."""
    pause = host.ethtool("-a", name)
    on = [way for way in ("RX", "TX") if re.search(rf"^{way}:\s+on", pause, re.M)]
    if on:
        yield Check(
            f"{name} pause frames",
            WARN,
            f"{' and '.join(on)} on",
            "the other end can stop a sender, which then is not the queue that is measured",
            f"ethtool -A {name} autoneg off rx off tx off (and on the other end)",
        )
    sizes = re.findall(r"^RX:\s+(\d+)", host.ethtool("-g", name), re.M)
    if len(sizes) == 2 and int(sizes[1]) < min(int(sizes[0]), RX_RING_WANTED):
        yield Check(
            f"{name} RX ring",
            WARN,
            f"{sizes[1]} of {sizes[0]}",
            "a short stall of the core loses packets",
            f"ethtool -G {name} rx {min(int(sizes[0]), RX_RING_WANTED)}",
        )


def memory(host: Host) -> Iterator[Check]:
    """Ordinary memory and hugepages."""
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
    """Is the time stamp counter a clock?"""
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
    """What live runs over veth, and tests against the kernel's TCP, need of it."""
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


def limits(_: Host) -> Iterator[Check]:
    """Privileges, locked memory, open files, disk."""
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
    """The interpreter this runs in."""
    yield Check("Python", OK, sys.version.split()[0])


SECTIONS: tuple[Callable[[Host], Iterator[Check]], ...] = (
    python,
    programs,
    dpdk,
    cores,
    rest,
    memory,
    clock,
    kernel,
    cards,
    limits,
)


def checks(host: Host | None = None) -> list[Check]:
    """Every check, in order."""
    return [check for section in SECTIONS for check in section(host or Host())]


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
    bad = [row.name for row in rows if row.state == BAD]
    out.print(f"\nWeir cannot run: {', '.join(bad)}" if bad else "\nWeir can run here.")
    return 1 if bad else 0
