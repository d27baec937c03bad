# SPDX-License-Identifier: BSD-3-Clause
"""Checks the network cards: which driver has each, and how the kernel has set it."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from weir.cli.host import OK, Check, Host, cpu_list, warn

DPDK_DRIVERS = ("vfio-pci", "igb_uio", "uio_pci_generic", "mlx4_core", "mlx5_core")
RX_RING_WANTED = 4096


def cards(host: Host) -> Iterator[Check]:
    """Checks network cards: driver, whose memory is near, what the kernel still does."""
    devices = host.glob("sys/bus/pci/devices/*")
    found = [at for at in devices if (host.read(at / "class") or "").startswith("0x0200")]
    if not found:
        yield Check("network cards", OK, "none: live runs use virtual devices")
        return
    groups = host.glob("sys/kernel/iommu_groups/*")
    yield Check("IOMMU", OK, f"{len(groups)} groups") if groups else warn("IOMMU", "off")
    for where in found:
        yield from card(host, where)


def card(host: Host, where: Path) -> Iterator[Check]:
    """Checks a card: bound for DPDK, or the kernel's and how it is set."""
    title, address, link = f"card {where.name}", where.name, where / "driver"
    driver = link.resolve().name if link.exists() else "none"
    node = int(host.read(where / "numa_node") or -1)
    near = (host.read(where / "local_cpulist") or "") if node >= 0 else ""
    found = f"{driver}; NUMA node {node}, CPUs {near}" if near else f"{driver}; no NUMA node"
    names = [path.name for way in ("net/*", "*/net/*") for path in sorted(where.glob(way))]
    routed = [name for name in names if name in routes(host)]
    if driver in DPDK_DRIVERS:
        yield Check(title, OK, found)
    elif routed:
        yield Check(title, OK, found, f"{routed[0]} has routes: leave it to the kernel")
    else:
        get = "" if shutil.which("dpdk-devbind.py") else "apt-get install dpdk; "
        yield warn(title, found, "card", get=get, address=address)
    isolated = cpu_list(host.read("sys/devices/system/cpu/isolated") or "")
    if near and isolated and not isolated & cpu_list(near):
        found = f"none of the isolated cores is on node {node}"
        yield warn(f"{title} NUMA", found, "NUMA", near=near)
    for path in sorted(where.glob("net/*")):
        yield from interface(host, path.name)


def routes(host: Host) -> set[str]:
    """Returns the interfaces with an IPv4 route: this machine may be reached through them."""
    lines = (host.read("proc/net/route") or "").splitlines()[1:]
    return {line.split()[0] for line in lines if line.strip()}


def interface(host: Host, name: str) -> Iterator[Check]:
    """Checks a card's kernel interface: pause frames and rings, which DPDK may inherit."""
    pause = host.ethtool("-a", name)
    on = [way for way in ("RX", "TX") if re.search(rf"^{way}:\s+on", pause, re.M)]
    if on:
        found = f"{' and '.join(on)} on"
        yield warn(f"{name} pause frames", found, "pause frames", interface=name)
    sizes = [int(size) for size in re.findall(r"^RX:\s+(\d+)", host.ethtool("-g", name), re.M)]
    if len(sizes) == 2 and sizes[1] < (wanted := min(sizes[0], RX_RING_WANTED)):
        found = f"{sizes[1]} of {sizes[0]}"
        yield warn(f"{name} RX ring", found, "RX ring", interface=name, wanted=wanted)
