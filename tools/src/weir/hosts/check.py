# SPDX-License-Identifier: BSD-3-Clause
"""Checks on a host, beside agent.py: what it is like, and which ports its ports reach."""

from __future__ import annotations

import fcntl
import os
import re
import select
import shutil
import socket
import struct
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from typing import TypedDict

PROBE_ETHERTYPE = 0x88B5  # IEEE 802: for local experiments
PROBE_S = 0.2  # between two frames
HEARD_S = 1.0  # for as long after all were heard: others may not have been yet
PACKET_IGNORE_OUTGOING = 23
DRIVERS = ("vfio-pci", "uio_pci_generic", "igb_uio", "mlx5_core", "mlx4_core")


class Wanted(TypedDict):
    """A request to a host."""

    host: str
    id: str  # of the run
    place: str  # the run's folder on the host
    space_bytes: int  # that must be free there
    lease_s: float  # for which the program runs on without somebody who attends
    ports: dict[str, str]  # devices by names
    awaited: list[tuple[str, str, str]]  # our port, and the host and port that it should hear
    probe_s: float
    hugepages: bool
    environment: dict[str, str]
    output: bool  # whether standard output is kept
    ready: str | None  # what the program says when it is ready; None: at once
    program: str | None  # a program of Weir
    argv: list[str]


class Discipline(TypedDict):
    """The state of a host's clock."""

    by: str | None  # what disciplines it
    offset_ns: int | None
    error_ns: int | None


class Answer(TypedDict, total=False):
    """The answer of a host: of each request some of these."""

    problems: list[str]
    version: str
    clock: Discipline
    cpus: int | None
    heard: list[tuple[str, str, str]]  # our port, and the host and port that it heard
    silent: list[str]  # ports of which the kernel knows nothing
    ready: bool
    gone: bool  # nothing of the run is there
    ended: int | None  # exit status of the program
    lines: list[str]
    since: int  # byte up to which the lines go
    free_bytes: int
    packed: bool


def resolved(wanted: Wanted) -> Wanted:
    """Replaces devices given as mac:ADDRESS by their PCI addresses or interfaces."""
    known = {dev: by_mac(dev[4:]) for dev in wanted["ports"].values() if dev.startswith("mac:")}
    argv = wanted["argv"]
    for dev, found in known.items():
        argv = [word.replace(dev, found) for word in argv]
    ports = {name: known.get(dev, dev) for name, dev in wanted["ports"].items()}
    made = wanted.copy()
    made["argv"], made["ports"] = argv, ports
    return made


def by_mac(address: str) -> str:
    """Returns the device with a MAC address, or words that say that there is none."""
    for path in Path("/sys/class/net").glob("*/address"):
        if path.read_text().strip() == address.lower():
            device = path.parent / "device"
            is_pci = (device / "subsystem").resolve().name == "pci"
            name = path.parent.name
            return device.resolve().name if is_pci else f"net_af_packet0,iface={name}"
    return f"net_none,iface={address}"


def check(wanted: Wanted) -> Answer:
    """Returns version, clock and processors, and a sentence for each thing that is missing."""
    problems = [*ports(wanted), *hugepages(wanted)]
    said = ""
    if wanted["program"]:
        said, problem = version(wanted["program"])
        problems += [problem] if problem else []
    elif shutil.which(wanted["argv"][0]) is None:
        problems.append(f"there is no {wanted['argv'][0]}")
    return {"problems": problems, "version": said, "clock": clock(), "cpus": os.cpu_count()}


def version(program: str) -> tuple[str, str]:
    """Returns what `--version` prints, and what is wrong."""
    if not os.access(program, os.X_OK):
        return "", f"{program} was not built: run tools/weir once there, or set weir_dir"
    done = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=30)
    return done.stdout.strip(), "" if done.returncode == 0 else f"{program}: {done.stderr.strip()}"


def ports(wanted: Wanted) -> list[str]:
    """Finds ports that are not there, or down, or have a driver that DPDK does not take."""
    found = []
    for name, dev in wanted["ports"].items():
        if iface := interface(dev):
            flags = interface_flags(iface)
            if flags is None:
                found.append(f"port {name}: there is no interface {iface}")
            elif not flags & 1:
                found.append(f"port {name}: {iface} is down: ip link set {iface} up")
        elif address := pci(dev):
            path = Path("/sys/bus/pci/devices", address)
            driver = (path / "driver").resolve().name if (path / "driver").exists() else "none"
            if not path.exists():
                found.append(f"port {name}: there is no PCI device {address}")
            elif driver not in DRIVERS:
                found.append(
                    f"port {name}: the driver of {address} is {driver}: weir setup cards {address}"
                )
    return found


def interface_flags(iface: str) -> int | None:
    """Asks SIOCGIFFLAGS; None: no such interface. /sys may show another namespace's."""
    with socket.socket() as any_socket:
        try:
            wanted = struct.pack("16sH14x", iface.encode(), 0)
            return int(struct.unpack("16xH14x", fcntl.ioctl(any_socket, 0x8913, wanted))[0])
        except OSError:
            return None


def interface(dev: str) -> str:
    """Returns the kernel's interface behind a device, or an empty text."""
    if match := re.search(r"iface=([^,]+)", dev):
        return match[1]
    if address := pci(dev):  # bifurcated drivers leave it to the kernel too
        names = list(Path("/sys/bus/pci/devices", address, "net").glob("*"))
        return names[0].name if names else ""
    return ""


def pci(dev: str) -> str:
    match = re.match(r"(?:([0-9a-f]{4}):)?([0-9a-f]{2}:[0-9a-f]{2}\.[0-7])(,|$)", dev)
    return f"{match[1] or '0000'}:{match[2]}" if match else ""


def hugepages(wanted: Wanted) -> list[str]:
    """Says whether some are missing, if they are asked for."""
    if not wanted["hugepages"]:
        return []
    free = re.search(r"HugePages_Free:\s+(\d+)", Path("/proc/meminfo").read_text())
    if free and int(free[1]) > 0:
        return []
    return ["hugepages: yes, but none is free: sysctl -w vm.nr_hugepages=1024"]


def clock() -> Discipline:
    """Asks what disciplines the clock: chrony if it runs, else the kernel (adjtimex)."""
    if chronyc := shutil.which("chronyc"):
        done = subprocess.run(
            [chronyc, "-c", "tracking"], capture_output=True, text=True, timeout=5
        )
        fields = done.stdout.strip().split(",")
        if done.returncode == 0 and len(fields) > 11:
            offset, delay, spread = float(fields[4]), float(fields[10]), float(fields[11])
            error = round((abs(offset) + delay / 2 + spread) * 1e9)
            return {"by": "chrony", "offset_ns": round(offset * 1e9), "error_ns": error}
    return kernel_clock()


def kernel_clock() -> Discipline:
    """Asks adjtimex(2) for the largest error; it is None where nobody disciplines the clock."""
    import ctypes

    fields = (ctypes.c_long * 52)()  # struct timex: modes, offset, freq, maxerror, esterror, status
    state = ctypes.CDLL(None).adjtimex(ctypes.byref(fields))
    status = ctypes.c_int.from_buffer(fields, 5 * ctypes.sizeof(ctypes.c_long)).value
    synchronised = state not in (-1, 5) and not status & 0x40  # TIME_ERROR, STA_UNSYNC
    return {
        "by": "kernel" if synchronised else None,
        "offset_ns": None,
        "error_ns": fields[3] * 1000 if synchronised else None,
    }


def probe(wanted: Wanted) -> Answer:
    """Sends from each port and listens at each, until all awaited was heard, or for probe_s.

    heard: [our port, their host, their port] each; ports without an interface of the kernel's send
    and hear nothing, and are named in `silent`.
    """
    by_socket, silent = {}, []
    for name, dev in wanted["ports"].items():
        if iface := interface(dev):
            by_socket[listen(iface)] = name
        else:
            silent.append(name)
    awaited = {tuple(each) for each in wanted["awaited"]}
    heard: set[tuple[str, str, str]] = set()
    deadline, next_s, complete = time.monotonic() + wanted["probe_s"], 0.0, float("inf")
    while by_socket and (now := time.monotonic()) < min(deadline, complete + HEARD_S):
        if now >= next_s:
            for each, name in by_socket.items():
                send(each, wanted["id"], wanted["host"], name)
            next_s = now + PROBE_S
        for each in select.select(list(by_socket), [], [], max(0, next_s - now))[0]:
            if them := read(each.recv(2048), wanted["id"]):
                heard.add((by_socket[each], *them))
        if awaited and awaited <= heard:
            complete = min(complete, time.monotonic())
    for each in by_socket:
        each.close()
    return {"heard": sorted(heard), "silent": silent}


def listen(iface: str) -> socket.socket:
    """Opens a socket for probes at an interface, except those that we send."""
    made = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    made.setsockopt(263, PACKET_IGNORE_OUTGOING, 1)  # SOL_PACKET
    made.bind((iface, PROBE_ETHERTYPE))
    return made


def send(by: socket.socket, run: str, host: str, port: str) -> None:
    """Sends a broadcast frame that says who sends it."""
    mac = by.getsockname()[4][:6]
    text = "\0".join(("weir", run, host, port, "")).encode()
    frame = b"\xff" * 6 + mac + struct.pack("!H", PROBE_ETHERTYPE) + text
    with suppress(OSError):  # an interface that went down
        by.send(frame.ljust(60, b"\0"))


def read(frame: bytes, run: str) -> tuple[str, str] | None:
    """Returns host and port of a probe of this run."""
    parts = frame[14:].split(b"\0")
    if parts[0] != b"weir" or len(parts) < 4 or parts[1] != run.encode():
        return None
    return parts[2].decode(), parts[3].decode()
