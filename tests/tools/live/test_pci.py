# SPDX-License-Identifier: BSD-3-Clause
"""Network cards, as a made-up /sys has them. tests/cards binds those of a virtual machine."""

import pytest
from weir.base.errors import UserError
from weir.live import pci


@pytest.fixture
def sys_(tmp_path):
    """Two ports of a card in a group with a bridge, and a card of the kernel's with a route."""

    def add(address, kind, driver, group, interface=None):
        folder = tmp_path / "sys/bus/pci/devices" / address
        folder.mkdir(parents=True)
        (folder / "class").write_text(f"{kind}\n")
        home = tmp_path / "sys/bus/pci/drivers" / driver
        home.mkdir(parents=True, exist_ok=True)
        (folder / "driver").symlink_to(home)
        devices = tmp_path / f"sys/kernel/iommu_groups/{group}/devices"
        devices.mkdir(parents=True, exist_ok=True)
        (devices / address).symlink_to(folder)
        (folder / "iommu_group").symlink_to(devices.parent)
        if interface:
            (folder / "net" / interface).mkdir(parents=True)

    add("0000:3a:00.0", "0x060400", "pcieport", 5)
    add("0000:3b:00.0", "0x020000", "ice", 5, "ens1f0")
    add("0000:3b:00.1", "0x020000", "ice", 5, "ens1f1")
    add("0000:04:00.0", "0x020000", "igb", 6, "eno1")
    (tmp_path / "proc/net").mkdir(parents=True)
    (tmp_path / "proc/net/route").write_text("Iface\tDestination\neno1\t00000000\n")
    return tmp_path


def refusals(root, *names):
    chosen = [pci.find(name, root) for name in names]
    return [pci.refusal(card, chosen, root) for card in chosen]


def test_cards_are_found_by_address_and_interface(sys_):
    assert [card.address for card in pci.cards(sys_)] == [
        "0000:04:00.0",
        "0000:3b:00.0",
        "0000:3b:00.1",
    ]
    for name in ("0000:3b:00.1", "3b:00.1", "ens1f1"):
        assert pci.find(name, sys_).address == "0000:3b:00.1"
    with pytest.raises(
        UserError, match=r"'ens9' is no network card's .*; there is 0000:04:00\.0, "
    ):
        pci.find("ens9", sys_)


def test_a_group_goes_together(sys_):
    assert refusals(sys_, "ens1f0") == [
        "0000:3b:00.0: its IOMMU group has 0000:3b:00.1 (ice) too: name all of them"
    ]
    assert refusals(sys_, "ens1f0", "ens1f1") == [None, None]


def test_what_is_not_to_be_bound(sys_):
    assert refusals(sys_, "eno1") == [
        "0000:04:00.0: eno1 has routes, so this machine may be reached through it"
    ]
    (sys_ / "sys/bus/pci/devices/0000:3b:00.0/iommu_group").unlink()
    assert "no IOMMU" in refusals(sys_, "ens1f0")[0]
    (sys_ / "sys/bus/pci/devices/0000:3b:00.0/driver").unlink()
    (sys_ / "sys/bus/pci/drivers/mlx5_core").mkdir()
    (sys_ / "sys/bus/pci/devices/0000:3b:00.0/driver").symlink_to(
        sys_ / "sys/bus/pci/drivers/mlx5_core"
    )
    assert "nothing to bind" in refusals(sys_, "ens1f0")[0]


def test_what_is_not_to_be_given_back(sys_):
    card = pci.find("ens1f0", sys_)
    assert pci.refusal_back(card) == "0000:3b:00.0: the kernel's driver ice has it already"
    (card.folder / "driver").unlink()
    assert pci.refusal_back(card) is None


def test_the_steps_say_what_is_unsafe(sys_):
    cards = [pci.find("ens1f0", sys_)]
    unsafe, step = pci.steps(cards, sys_)
    assert "interrupt" in unsafe
    assert step == "give 0000:3b:00.0 (ens1f0, driver ice) to vfio-pci"
    (sys_ / "proc/interrupts").write_text("24: 0 IR-PCI-MSI 0-edge\n")
    assert list(pci.steps(cards, sys_)) == [step]
