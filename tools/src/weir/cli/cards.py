# SPDX-License-Identifier: BSD-3-Clause
"""Checks the network cards: which driver has each, and how the kernel has set it."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from weir.cli.host import OK, WARN, Check, Host, cpu_list

DPDK_DRIVERS = ("vfio-pci", "igb_uio", "uio_pci_generic", "mlx4_core", "mlx5_core")
RX_RING_WANTED = 4096


def ethernet(host: Host) -> Iterator[Path]:
    """Yields PCI Ethernet controllers, as paths below the root."""
    for path in host.glob("sys/bus/pci/devices/*"):
        where = path.relative_to(host.root)
        if (host.read(str(where / "class")) or "").startswith("0x0200"):
            yield where


def cards(host: Host) -> Iterator[Check]:
    """Checks network cards: driver, whose memory is near, what the kernel still does."""
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
    """Checks a card: bound for DPDK, or the kernel's and how it is set."""
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
    """Returns the interfaces with an IPv4 route: this machine may be reached through them."""
    lines = (host.read("proc/net/route") or "").splitlines()[1:]
    return {line.split()[0] for line in lines if line.strip()}


def interface(host: Host, name: str) -> Iterator[Check]:
    """Checks a card's kernel interface: pause frames and rings, which DPDK may inherit."""
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
