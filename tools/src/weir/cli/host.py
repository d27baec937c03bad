# SPDX-License-Identifier: BSD-3-Clause
"""The host that `weir doctor` checks, and what it says of what it found."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

OK, WARN, BAD = "ok", "warn", "bad"
# What a check means for Weir that did not go well, and what mends it.
ADVICE = {
    "DPDK": ("virtual time works; the live programs need it", "weir setup live"),
    "isolated cores": (
        "live, the scheduler may interrupt a core for milliseconds; virtual time does not mind",
        "boot with: isolcpus={last} nohz_full={last} rcu_nocbs={last}",
    ),
    "ticks": (
        "the kernel's timer tick or callbacks still interrupt them",
        "boot with: {wanted}",
    ),
    "frequency governor": (
        "cores slow down between bursts",
        "echo performance | tee /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor",
    ),
    "C-states": (
        "cores that poll never sleep, but the one beside them is slow to answer",
        "cpupower idle-set -D 10, or boot with: intel_idle.max_cstate=1 processor.max_cstate=1",
    ),
    "SMT": (
        "an lcore beside a busy sibling has half a core",
        "leave the siblings of lcores idle, or: echo off > /sys/devices/system/cpu/smt/control",
    ),
    "irqbalance": (
        "it moves interrupts to lcores",
        "systemctl stop irqbalance, or IRQBALANCE_BANNED_CPULIST in its settings",
    ),
    "hugepages": (
        "the live programs use ordinary memory, which is slower; network cards need hugepages",
        "sysctl -w vm.nr_hugepages=1024",
    ),
    "namespaces, veth": (
        "live runs on one machine use them",
        "sysctl -w user.max_user_namespaces=10000; modprobe veth",
    ),
    "unshare": ("live runs on one machine use them", "apt-get install iproute2 util-linux"),
    "kernel TCP": ("experiments against the kernel's {missing} cannot run", "{modprobe}"),
    "guest kernel": (
        "`stack: linux` needs it, a few minutes once",
        "tools/weir guests build (as any user)",
    ),
    "/dev/shm": ("`stack: linux` runs from memory there", "mount -o remount,exec /dev/shm"),
    "privileges": ("live ports on kernel interfaces need it", "sudo tools/weir run CONFIG --live"),
    "locked memory": ("AF_XDP ports cannot pin their buffers", "ulimit -l unlimited"),
    "open files": ("few streams can be open", "ulimit -n 1024"),
    "IOMMU": (
        "vfio-pci gives no card to a program without it",
        "switch VT-d or AMD-Vi on in the firmware (a virtual machine needs an emulated IOMMU), "
        "and boot with: intel_iommu=on iommu=pt (AMD: iommu=pt)",
    ),
    "interrupt remapping": (
        "vfio-pci gives a card to a program only if told that this is no danger here",
        "modprobe vfio_iommu_type1; echo 1 > /{unsafe}",
    ),
    "card": (
        "the kernel's, not DPDK's",
        "weir setup cards {names}",
    ),
    "group": (
        "not usable while the kernel's drivers have others of its IOMMU group: {others}",
        "weir setup cards {names}",
    ),
    "near memory": (
        "buffers are on the other socket's memory",
        "echo 1024 > /sys/devices/system/node/node{node}/hugepages/hugepages-2048kB/nr_hugepages",
    ),
    "slot": (
        "packets cannot come or leave faster than the slot",
        "move it to a slot with {most}; lspci -vv -s {address} shows LnkCap and LnkSta",
    ),
    "NUMA": (
        "each packet crosses to the other socket",
        "isolate, and name in lcores, some of CPUs {near}",
    ),
    "pause frames": (
        "the other end can stop a sender, which then is not the queue that is measured",
        "ethtool -A {interface} autoneg off rx off tx off (and on the other end)",
    ),
    "RX ring": ("a short stall of the core loses packets", "ethtool -G {interface} rx {wanted}"),
}


@dataclass(frozen=True)
class Check:
    """A row: bad means that Weir cannot work, warn that something will be missing or worse."""

    name: str
    state: str
    found: str
    meaning: str = ""
    fix: str = ""


def warn(name: str, found: str, of: str = "", **values: object) -> Check:
    """Returns a check with the advice of its name, or of `of`, into which the values go."""
    meaning, fix = (text.format(**values) for text in ADVICE[of or name])
    return Check(name, WARN, found, meaning, fix)


class Host:
    """The host that checks look at; tests put a folder in place of /."""

    def __init__(self, root: Path = Path("/")) -> None:
        self.root = root

    def read(self, path: str | Path) -> str | None:
        """Returns a small file's text, or None."""
        try:
            return (self.root / path).read_text(encoding="utf-8", errors="replace").strip()
        except OSError:
            return None

    def texts(self, pattern: str) -> Iterator[str]:
        found = map(self.read, self.glob(pattern))
        return (text for text in found if text is not None)

    def ethtool(self, option: str, name: str) -> str:
        """Returns what `ethtool` says of an interface; "" if it says nothing."""
        return output(["ethtool", option, name]) or ""

    def glob(self, pattern: str) -> list[Path]:
        return sorted(self.root.glob(pattern))


def output(argv: list[str]) -> str | None:
    """Returns what a command prints; None if it fails or is missing."""
    try:
        done = subprocess.run(
            argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=10
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def cpu_list(text: str) -> set[int]:
    """Reads CPUs as the kernel writes them, "1-3,8"; what is no list of CPUs is empty."""
    ranges = (part.partition("-") for part in text.split(",") if re.fullmatch(r"\d+(-\d+)?", part))
    return {cpu for first, _, last in ranges for cpu in range(int(first), int(last or first) + 1)}
