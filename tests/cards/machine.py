# SPDX-License-Identifier: BSD-3-Clause
"""A virtual machine with emulated network cards: QEMU, Debian's kernel, this machine's files.

    [ card 1 ] -- hub 1 -- virtio-net of the kernel
    [ card 2 ] -- hub 2 -- virtio-net of the kernel

The machine sees this one's files through 9p, read-only, under a layer of memory: nothing is
copied or installed, and it needs neither root nor a network here. Its first process is init.sh; it
runs guest.py, which asks for what only the hypervisor can do (a link taken down, a card taken away)
by a line on the console.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from weir import bootstrap
from weir.runner.child import Child

HERE = Path(__file__).parent
FOLDER = bootstrap.ROOT / "build-cards"
QEMU = os.environ.get("WEIR_QEMU", "qemu-system-x86_64")
MEMORY_MB = 3072
HUGEPAGES = 320  # of 2 MB
# With what each needs, as modprobe finds. The kernel's own drivers get cards back from DPDK.
MODULES = (
    *("9p", "9pnet_virtio", "virtio_pci", "overlay", "virtio_net", "veth", "8021q"),
    *("vfio-pci", "vfio_iommu_type1", "e1000", "e1000e", "vmxnet3", "igb", "igbvf"),
)
# The kernel's driver of each, once the card is not DPDK's.
DRIVERS = {name: name for name in ("e1000e", "vmxnet3", "e1000", "igb")}
DRIVERS["virtio-net"] = "virtio-pci"
# What QEMU is told for one card of each kind. Virtio's goes through the IOMMU only if told to.
KINDS = {
    "e1000e": "e1000e",
    "vmxnet3": "vmxnet3",
    "virtio-net": "virtio-net-pci,disable-legacy=on,iommu_platform=on,ats=on",
    "e1000": "e1000",
    "igb": "igb",
}


def kernel_package() -> str:
    """Returns the name of the package that has Debian's kernel for servers."""
    shown = subprocess.run(
        ["apt-cache", "depends", "linux-image-amd64"], capture_output=True, text=True, check=True
    ).stdout
    return next(line.split()[1] for line in shown.splitlines() if "Depends: linux-image" in line)


def unpack(folder: Path) -> None:
    """Downloads Debian's kernel and unpacks it, without installing it."""
    package = kernel_package()
    subprocess.run(
        ["apt-get", "-q", "-o", "APT::Sandbox::User=root", "download", package],
        cwd=folder,
        check=True,
        stdout=sys.stderr,
    )
    (deb,) = folder.glob("*.deb")
    subprocess.run(["dpkg-deb", "-x", deb, folder / "all"], check=True)
    deb.unlink()
    version = package.removeprefix("linux-image-")
    (folder / "all/boot" / f"vmlinuz-{version}").rename(folder / "vmlinuz")
    wanted = folder / "root/lib/modules" / version
    wanted.mkdir(parents=True)
    found = folder / "all/lib/modules" / version
    for name in ("modules.builtin", "modules.order", "modules.builtin.modinfo"):
        shutil.copy(found / name, wanted)
    subprocess.run(["busybox", "depmod", "-b", folder / "all", version], check=True)
    needs = {}
    for line in (found / "modules.dep").read_text().splitlines():
        path, _, needed = line.partition(":")
        needs[path.removeprefix(f"/lib/modules/{version}/")] = needed.split()
    by_name = {Path(path).stem.replace("_", "-"): path for path in needs}
    left = [by_name[name.replace("_", "-")] for name in MODULES]
    while left:
        path = left.pop().removeprefix(f"/lib/modules/{version}/")
        if not (wanted / path).exists():
            (wanted / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(found / path, wanted / path)
            left += needs[path]
    subprocess.run(["busybox", "depmod", "-b", folder / "root", version], check=True)
    shutil.rmtree(folder / "all")


def initramfs(folder: Path) -> None:
    """Packs busybox, the modules and init.sh."""
    root = folder / "root"
    for name in ("bin", "proc", "sys", "dev", "host", "memory", "new"):
        (root / name).mkdir(parents=True, exist_ok=True)
    shutil.copy(bootstrap.tool("busybox"), root / "bin/busybox")
    shutil.copy(HERE / "init.sh", root / "init")
    (root / "init").chmod(0o755)
    names = "\n".join(str(path.relative_to(root)) for path in sorted(root.rglob("*")))
    with (folder / "initramfs").open("wb") as out:
        packed = ["busybox", "cpio", "-o", "-H", "newc"]
        subprocess.run(packed, cwd=root, input=names.encode(), stdout=out, check=True)


def kernel() -> Path:
    """Brings the folder with vmlinuz and initramfs up to date, and returns it."""
    with bootstrap.locked(FOLDER):
        if not (FOLDER / "vmlinuz").exists():
            shutil.rmtree(FOLDER / "new", ignore_errors=True)
            (FOLDER / "new").mkdir()
            unpack(FOLDER / "new")
            shutil.rmtree(FOLDER / "root", ignore_errors=True)
            for name in ("root", "vmlinuz"):
                (FOLDER / "new" / name).rename(FOLDER / name)
            shutil.rmtree(FOLDER / "new")
        initramfs(FOLDER)
    return FOLDER


def offered(kind: str) -> bool:
    """Returns whether this QEMU has such cards."""
    known = subprocess.run([QEMU, "-device", "help"], capture_output=True)
    return f'name "{KINDS[kind].split(",")[0]}"' in known.stdout.decode()


def cards(kind: str, iommu: bool = True) -> list[str]:
    """Returns the devices: four cards of a kind in slots of their own, four of the kernel."""
    words = ["-device intel-iommu,intremap=off,caching-mode=on,device-iotlb=on"] * iommu
    # The card's number, and what it is connected to.
    for number, hub in ((1, 1), (2, 2), (3, 3), (4, 3)):
        words += [
            f"-device pcie-root-port,id=slot{number},chassis={number},bus=pcie.0,addr=0x1{number}",
            f"-netdev hubport,id=wire{number},hubid={hub}",
            f"-device {card(kind, number)}",
        ]
    # A bridge of conventional PCI: the cards behind it are in one IOMMU group.
    words.append("-device pcie-pci-bridge,id=bridge,bus=pcie.0,addr=0x15")
    words += [f"-device e1000,bus=bridge,addr={slot}" for slot in (1, 2)]
    for number in (1, 2):
        words += [
            f"-netdev hubport,id=far{number},hubid={number}",
            f"-device e1000e,netdev=far{number},mac=02:00:00:00:00:1{number}",
        ]
    return words


def card(kind: str, number: int) -> str:
    """Returns QEMU's words for a card, as for its command line."""
    at = f"id=card{number},bus=slot{number},netdev=wire{number},mac=02:00:00:00:00:0{number}"
    return f"{KINDS[kind]},{at}"


def request(kind: str, checks: Sequence[str]) -> dict[str, object]:
    """Returns what guest.py is to do, and a card as it may be given back."""
    driver, *words = card(kind, 1).split(",")
    return {"checks": checks, "card1": {"driver": driver, **dict(w.split("=") for w in words)}}


class Machine(Child):
    """A virtual machine that runs guest.py with a request, and ends.

    `out` are lines of its console. A context manager.
    """

    def __init__(self, folder: Path, cards: list[str], request: dict[str, object]) -> None:
        """Starts it with devices in `folder`, which gets what it writes."""
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "request.json").write_text(json.dumps(request))
        files = kernel()
        self.monitor: socket.socket | None = None
        share = "local,security_model=none,multidevs=remap"
        argv = [
            *(QEMU, "-nodefaults", "-no-reboot", "-display", "none"),
            *(
                "-machine",
                "q35,accel=tcg,hpet=off",
                "-cpu",
                "max",
                "-smp",
                "2",
                "-m",
                str(MEMORY_MB),
            ),
            *("-serial", "stdio", "-qmp", f"unix:{folder}/monitor,server=on,wait=off"),
            *("-kernel", str(files / "vmlinuz"), "-initrd", str(files / "initramfs")),
            *(word for device in cards for word in device.split()),
            *("-fsdev", f"{share},id=host,path=/,readonly=on"),
            *("-device", "virtio-9p-pci,fsdev=host,mount_tag=host"),
            *("-fsdev", f"{share},id=out,path={folder}"),
            *("-device", "virtio-9p-pci,fsdev=out,mount_tag=out"),
        ]
        build = Path(os.environ.get("WEIR_BUILD") or bootstrap.ROOT / "build").resolve()
        words = (
            "console=ttyS0 quiet panic=-1 mitigations=off no_timer_check"
            # On a busy machine the kernel takes the TSC to be several times too slow. Timers of
            # QEMU 10's HPET come so late there that the kernel does not start.
            " clocksource=acpi_pm tsc=unstable intel_iommu=on iommu=pt"
            f" hugepages={HUGEPAGES} -- /usr/bin/env WEIR_BUILD={build}"
            f" WEIR_TESTS={HERE.parent} {sys.executable} {HERE}/guest.py"
        )
        super().__init__([*argv, "-append", words], first=False, stdin=subprocess.DEVNULL)
        threading.Thread(target=self._obey, daemon=True).start()

    def _obey(self) -> None:
        """Does what the guest asks for, until the machine ends."""
        done = 0
        while self.running:
            lines = self.out[done:]
            done += len(lines)
            for line in lines:
                if line.startswith("ask "):
                    self.ask(line.removeprefix("ask "))
            time.sleep(0.05)

    def ask(self, command: str) -> None:
        """Sends a command to QEMU's monitor; what it says goes to `err`."""
        with socket.socket(socket.AF_UNIX) as monitor:
            monitor.connect(str(self.folder / "monitor"))
            lines = monitor.makefile("rw")
            for text in ('{"execute": "qmp_capabilities"}', command):
                lines.write(f"{text}\n")
                lines.flush()
                while not (reply := json.loads(lines.readline())).keys() & {"return", "error"}:
                    pass
            if "error" in reply:
                self.err.append(f"{command}: {reply['error']['desc']}")
