# SPDX-License-Identifier: BSD-3-Clause
"""Checks the network cards: which driver has each, and how the kernel has set it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from weir.cli.host import OK, Check, Host, cpu_list, warn
from weir.live import pci

RX_RING_WANTED = 4096


def cards(host: Host) -> Iterator[Check]:
    """Checks network cards: IOMMU, driver, whose memory is near, what the kernel still does."""
    found = pci.cards(host.root)
    if not found:
        yield Check("network cards", OK, "none: live runs use virtual devices")
        return
    yield from iommu(host)
    for one in found:
        yield from card(host, one)


def iommu(host: Host) -> Iterator[Check]:
    """Checks what stands between a card and the memory and interrupts of others."""
    groups = host.glob("sys/kernel/iommu_groups/*")
    if not groups:
        yield warn("IOMMU", "off")
        return
    yield Check("IOMMU", OK, f"{len(groups)} groups")
    name = "interrupt remapping"
    if pci.remaps_interrupts(host.root):
        yield Check(name, OK, "on")
    elif host.read(pci.UNSAFE) == "Y":
        yield Check(name, OK, "off, and vfio-pci hands cards out without it")
    else:
        yield warn(name, "off", unsafe=pci.UNSAFE)


def card(host: Host, one: pci.Card) -> Iterator[Check]:
    """Checks a card: bound for DPDK, or the kernel's and how it is set."""
    title, where = f"card {one.address}", one.folder
    node = int(host.read(where / "numa_node") or -1)
    near = (host.read(where / "local_cpulist") or "") if node >= 0 else ""
    driver = one.driver or "none"
    found = f"{driver}; NUMA node {node}, CPUs {near}" if near else f"{driver}; no NUMA node"
    routed = [name for name in one.interfaces if name in pci.routed(host.root)]
    others = pci.blocked_by(one)
    if driver in pci.DPDK_DRIVERS and others:
        yield warn(title, found, "group", others=", ".join(others), names=addresses(others))
    elif driver in pci.DPDK_DRIVERS:
        yield Check(title, OK, found)
    elif routed:
        yield Check(title, OK, found, f"{routed[0]} has routes: leave it to the kernel")
    else:
        yield warn(title, found, "card", names=" ".join([one.address, addresses(others)]).strip())
    yield from near_memory(host, title, node)
    isolated = cpu_list(host.read("sys/devices/system/cpu/isolated") or "")
    if near and isolated and not isolated & cpu_list(near):
        found = f"none of the isolated cores is on node {node}"
        yield warn(f"{title} NUMA", found, "NUMA", near=near)
    yield from slot(host, one)
    for path in sorted(where.glob("net/*")):
        yield from interface(host, path.name)


def addresses(found: list[str]) -> str:
    """Returns the addresses of what blocked_by() found."""
    return " ".join(text.split()[0] for text in found)


def near_memory(host: Host, title: str, node: int) -> Iterator[Check]:
    """Checks that hugepages, if there are any, are also on the card's NUMA node."""
    pages = "hugepages/hugepages-*kB/free_hugepages"
    anywhere = sum(map(int, host.texts(f"sys/kernel/mm/{pages}")))
    here = sum(map(int, host.texts(f"sys/devices/system/node/node{node}/{pages}")))
    if node >= 0 and anywhere > 0 and here == 0:
        yield warn(f"{title} memory", f"no free hugepages on node {node}", "near memory", node=node)


def slot(host: Host, one: pci.Card) -> Iterator[Check]:
    """Checks that the slot has the rate of the card: lanes, and transfers per second on each."""
    links = [pci.Link.read(one, which) for which in ("current", "max")]
    now, most = links
    if now is None or most is None:
        return
    title = f"card {one.address} slot"
    if now.gbit_s < most.gbit_s:
        found = f"{now}, where the card has {most}"
        yield warn(title, found, "slot", most=most, address=one.address)
    else:
        yield Check(title, OK, str(now))


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
