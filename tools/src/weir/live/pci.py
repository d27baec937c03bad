# SPDX-License-Identifier: BSD-3-Clause
"""Network cards as /sys shows them: which driver has each, and how another one gets it."""

from __future__ import annotations

import contextlib
import re
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from weir.base.errors import UserError

ROOT = Path("/")
VFIO = "vfio-pci"
DPDK_DRIVERS = (VFIO, "igb_uio", "uio_pci_generic", "mlx4_core", "mlx5_core")
OWN_DRIVERS = ("mlx4_core", "mlx5_core")  # with which DPDK shares the card
UNSAFE = "sys/module/vfio_iommu_type1/parameters/allow_unsafe_interrupts"
NETWORK, BRIDGE = "0x02", "0x06"


@dataclass(frozen=True)
class Card:
    """A network card (or one of its ports), by its folder in /sys."""

    folder: Path

    @property
    def address(self) -> str:
        return self.folder.name

    @property
    def driver(self) -> str | None:
        link = self.folder / "driver"
        return link.resolve().name if link.exists() else None

    @property
    def interfaces(self) -> list[str]:
        """The kernel's names; virtio's are a level lower."""
        return [path.name for way in ("net/*", "*/net/*") for path in sorted(self.folder.glob(way))]

    @property
    def group(self) -> list[Path]:
        """The folders of all devices of its IOMMU group; none: there is no IOMMU."""
        return sorted((self.folder / "iommu_group/devices").glob("*"))


@dataclass(frozen=True)
class Link:
    """A card's connection to the machine: lanes, and 10^9 transfers per second on each."""

    lanes: int
    gt_s: float

    @property
    def gbit_s(self) -> float:
        """Line rate; packets have less, as each transfer of the card carries headers too."""
        coding = 8 / 10 if self.gt_s < 8 else 128 / 130
        return self.lanes * self.gt_s * coding

    def __str__(self) -> str:
        return f"{self.gt_s:g} GT/s x{self.lanes} ({self.gbit_s:.3g} Gbit/s)"

    @classmethod
    def read(cls, card: Card, which: str) -> Link | None:
        """Returns the "current" or the "max" one; None: the kernel does not know it."""
        speed = re.match(r"([\d.]+) GT/s", read(card.folder / f"{which}_link_speed"))
        lanes = read(card.folder / f"{which}_link_width")
        if speed is None or not lanes.isdecimal() or int(lanes) in (0, 63, 255):
            return None
        return cls(int(lanes), float(speed[1]))


def read(path: Path) -> str:
    """Returns a small file's text, or "" if there is none."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def cards(root: Path = ROOT) -> list[Card]:
    """Returns the network cards of this machine, by address."""
    found = sorted((root / "sys/bus/pci/devices").glob("*"))
    return [Card(path) for path in found if read(path / "class").startswith(NETWORK)]


def find(name: str, root: Path = ROOT) -> Card:
    """Returns the card with an address, or an interface's name. UserError: there is none."""
    known = cards(root)
    for card in known:
        if name in (card.address, card.address.removeprefix("0000:"), *card.interfaces):
            return card
    have = ", ".join(card.address for card in known) or "none"
    raise UserError(f"'{name}' is no network card's address or interface; there is {have}")


def routed(root: Path = ROOT) -> set[str]:
    """Returns the interfaces with an IPv4 route: this machine may be reached through them."""
    lines = read(root / "proc/net/route").splitlines()[1:]
    return {line.split()[0] for line in lines if line.strip()}


def remaps_interrupts(root: Path = ROOT) -> bool:
    """Returns whether the IOMMU keeps a card from raising interrupts that are not its own."""
    return "IR-" in read(root / "proc/interrupts")


def blocked_by(card: Card) -> list[str]:
    """Returns what else of the card's IOMMU group the kernel's drivers still have."""
    drivers = ((path, path / "driver") for path in card.group if path.name != card.address)
    return [
        f"{path.name} ({link.resolve().name})"
        for path, link in drivers
        if link.exists()
        and link.resolve().name not in (VFIO, "pcieport")
        and not read(path / "class").startswith(BRIDGE)
    ]


def refusal(card: Card, chosen: Iterable[Card], root: Path = ROOT) -> str | None:
    """Returns why a card cannot be DPDK's, if so, when all of the chosen ones become its own."""
    at = card.address
    if card.driver in OWN_DRIVERS:
        return f"{at}: DPDK uses it beside {card.driver}: there is nothing to bind"
    if names := sorted(routed(root).intersection(card.interfaces)):
        return f"{at}: {names[0]} has routes, so this machine may be reached through it"
    if not card.group:
        return f"{at}: there is no IOMMU; weir doctor says how to switch it on"
    together = {one.address for one in chosen}
    if others := [one for one in blocked_by(card) if one.split()[0] not in together]:
        return f"{at}: its IOMMU group has {', '.join(others)} too: name all of them"
    return None


def refusal_back(card: Card) -> str | None:
    """Returns why a card cannot be given back to the kernel, if so."""
    if card.driver in (None, VFIO):
        return None
    return f"{card.address}: the kernel's driver {card.driver} has it already"


def steps(chosen: list[Card], root: Path = ROOT) -> Iterator[str]:
    """Says what bind() will do."""
    if not remaps_interrupts(root) and read(root / UNSAFE) != "Y":
        yield (
            "allow cards without interrupt remapping, which this IOMMU lacks: a faulty card or "
            f"program could then raise any interrupt (1 into /{UNSAFE})"
        )
    for card in chosen:
        has = f"{', '.join(card.interfaces) or 'no interface'}, driver {card.driver or 'none'}"
        yield f"give {card.address} ({has}) to {VFIO}"


def write(path: Path, text: str) -> None:
    """Writes into a file of /sys. UserError: the kernel refuses."""
    try:
        path.write_text(text)
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}", 1) from None


def load() -> None:
    """Adds vfio-pci to the kernel. UserError: it has none."""
    for module in (VFIO, "vfio_iommu_type1"):
        try:
            done = subprocess.run(["modprobe", module], capture_output=True, text=True)
        except OSError as error:
            raise UserError(f"modprobe: {error.strerror}; apt-get install kmod", 1) from None
        if done.returncode != 0:
            raise UserError(f"modprobe {module}: {done.stderr.strip()}", 1)


def hand_over(card: Card, driver: str, root: Path = ROOT) -> None:
    """Takes a card from its driver and lets the kernel find another; "": the usual one."""
    write(card.folder / "driver_override", driver or "\n")
    if card.driver is not None:
        write(card.folder / "driver/unbind", card.address)
    write(root / "sys/bus/pci/drivers_probe", card.address)


def bind(chosen: list[Card], root: Path = ROOT) -> None:
    """Gives cards to vfio-pci. UserError: the kernel refuses."""
    load()
    if not remaps_interrupts(root):
        write(root / UNSAFE, "1")
    for card in chosen:
        if card.driver != VFIO:
            hand_over(card, VFIO, root)
        if card.driver != VFIO:
            with contextlib.suppress(UserError):
                hand_over(card, "", root)
            raise UserError(f"{card.address}: {VFIO} does not take it; dmesg says why", 1)


def unbind(chosen: list[Card], root: Path = ROOT) -> None:
    """Gives cards back to the kernel's own drivers. UserError: none takes one."""
    for card in chosen:
        hand_over(card, "", root)
        if card.driver in (None, VFIO):
            raise UserError(f"{card.address}: no driver of the kernel takes it back", 1)
