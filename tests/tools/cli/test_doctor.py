# SPDX-License-Identifier: BSD-3-Clause
"""weir doctor: what it sees of a host, made up here as a folder."""

import io

import pytest
from rich.console import Console
from weir.cli import doctor
from weir.cli.cards import cards
from weir.cli.host import BAD, OK, WARN, Check, Host


@pytest.fixture
def host(tmp_path):
    """A host whose files are the given ones."""

    def make(**files):
        for name, text in files.items():
            path = tmp_path / name.replace("__", "/")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return Host(tmp_path)

    return make


def states(checks):
    return {check.name: check.state for check in checks}


@pytest.mark.parametrize(
    ("available_kb", "state"), [(100_000, BAD), (1_000_000, WARN), (8_000_000, OK)]
)
def test_memory(host, available_kb, state):
    made = host(proc__meminfo=f"MemTotal: 9 kB\nMemAvailable:   {available_kb} kB\n")
    assert states(doctor.memory(made))["memory"] == state


@pytest.mark.parametrize(("pages", "state"), [("0", WARN), ("100", WARN), ("512", OK)])
def test_hugepages_count_what_is_free(host, tmp_path, pages, state):
    folder = tmp_path / "sys/kernel/mm/hugepages/hugepages-2048kB"
    folder.mkdir(parents=True)
    (folder / "free_hugepages").write_text(pages)
    made = host(proc__meminfo="MemAvailable: 8000000 kB\n")
    assert states(doctor.memory(made))["hugepages"] == state


@pytest.mark.parametrize(
    ("flags", "state"), [("fpu constant_tsc nonstop_tsc", OK), ("fpu constant_tsc", WARN)]
)
def test_tsc(host, flags, state):
    clock = host(
        proc__cpuinfo=f"flags\t\t: {flags}\n",
        sys__devices__system__clocksource__clocksource0__current_clocksource="hpet\n",
    )
    assert states(doctor.clock(clock)) == {"TSC": state, "clock source": WARN}


def test_the_generic_timer_of_arm64(host):
    clock = host(
        proc__cpuinfo="Features\t: fp asimd crc32\n",
        sys__devices__system__clocksource__clocksource0__current_clocksource="arch_sys_counter\n",
    )
    assert states(doctor.clock(clock)) == {"clock source": OK}


@pytest.mark.parametrize(
    ("isolated", "cmdline", "found"),
    [
        ("", "quiet", "none"),
        ("2-3", "isolcpus=2-3", "2-3, not in nohz_full and rcu_nocbs"),
        ("2-3", "nohz_full=2-3 rcu_nocbs=2", "2-3, not in rcu_nocbs"),
        ("2-3", "nohz_full=1-3 rcu_nocbs=2,3", "2-3"),
    ],
)
def test_isolated_cores_have_no_ticks(host, isolated, cmdline, found):
    made = host(sys__devices__system__cpu__isolated=isolated, proc__cmdline=cmdline)
    row = doctor.quiet_cores(made, 3)
    assert (row.found, row.state) == (found, OK if found == "2-3" else WARN)


def test_deep_sleep_siblings_and_irqbalance(host):
    cpu = "sys__devices__system__cpu__cpu"
    files = {
        f"{cpu}0__cpuidle__state0__latency": "2",
        f"{cpu}0__cpuidle__state1__latency": "133",
        f"{cpu}0__topology__thread_siblings_list": "0,2",
        "proc__17__comm": "irqbalance",
    }
    assert states(doctor.disturbances(host(**files))) == {
        "C-states": WARN,
        "SMT": WARN,
        "irqbalance": WARN,
    }
    # A state that is switched off is not slept in.
    files[f"{cpu}0__cpuidle__state1__disable"] = "1"
    files[f"{cpu}0__topology__thread_siblings_list"] = "0"
    files["proc__17__comm"] = "init"
    assert states(doctor.disturbances(host(**files))) == {"C-states": OK, "SMT": OK}


GROUPS = "sys/kernel/iommu_groups"


class Card(Host):
    """A host with one card; `ethtool` says what it is told to."""

    said = {  # noqa: RUF012
        "-a": "Pause parameters for x:\nAutonegotiate:\ton\nRX:\t\ton\nTX:\t\toff\n",
        "-g": "Pre-set maximums:\nRX:\t\t4096\nTX:\t\t4096\n"
        "Current hardware settings:\nRX:\t\t512\nTX:\t\t512\n",
    }

    def ethtool(self, option, name):
        return self.said[option] if name == "ens1" else ""

    def add(self, driver, interface=None, isolated="2", iommu=True):
        card = self.root / "sys/bus/pci/devices/0000:3b:00.0"
        card.mkdir(parents=True)
        files = {"class": "0x020000", "numa_node": "1", "local_cpulist": "4-7"}
        for name, text in files.items():
            (card / name).write_text(text)
        home = self.root / f"sys/bus/pci/drivers/{driver}"
        home.mkdir(parents=True)
        (card / "driver").symlink_to(home)
        if interface:
            (card / f"net/{interface}").mkdir(parents=True)
        cpu = self.root / "sys/devices/system/cpu"
        cpu.mkdir(parents=True)
        (cpu / "isolated").write_text(isolated)
        if iommu:
            group = self.root / GROUPS / "7"
            (group / "devices").mkdir(parents=True)
            (group / "devices" / card.name).symlink_to(card)
            (card / "iommu_group").symlink_to(group)
            self.write("proc/interrupts", " 24: 0 IR-PCI-MSI 1048576-edge ens1")
        return self

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def row(self, name):
        return {check.name: check for check in cards(self)}[name]


def test_a_card_of_the_kernel(tmp_path):
    rows = {check.name: check for check in cards(Card(tmp_path).add("ice", "ens1"))}
    assert {name: row.state for name, row in rows.items()} == {
        "IOMMU": OK,
        "interrupt remapping": OK,
        "card 0000:3b:00.0": WARN,
        "card 0000:3b:00.0 NUMA": WARN,
        "ens1 pause frames": WARN,
        "ens1 RX ring": WARN,
    }
    assert rows["card 0000:3b:00.0"].found == "ice; NUMA node 1, CPUs 4-7"
    assert rows["card 0000:3b:00.0"].fix == "weir setup cards 0000:3b:00.0"
    assert rows["card 0000:3b:00.0 NUMA"].fix == "isolate, and name in lcores, some of CPUs 4-7"
    assert rows["ens1 pause frames"].found == "RX on"
    assert rows["ens1 RX ring"].fix == "ethtool -G ens1 rx 4096"


def test_a_card_with_routes_is_not_for_dpdk(tmp_path):
    made = Card(tmp_path).add("virtio-pci", "virtio0/net/eth0")
    card = made.root / "sys/bus/pci/devices/0000:3b:00.0"
    (card / "net/virtio0").rename(card / "virtio0")
    (made.root / "proc/net").mkdir(parents=True)
    table = made.root / "proc/net/route"
    rows = "Iface\tDestination\tGateway\n{}\t00000000\t0102A8C0\n"
    for other, state in (("eth1", WARN), ("eth0", OK)):
        table.write_text(rows.format(other))
        row = {check.name: check for check in cards(made)}["card 0000:3b:00.0"]
        assert row.state == state
        assert ("setup cards" in row.fix) == (state == WARN)


def test_a_card_bound_for_dpdk(tmp_path):
    made = Card(tmp_path).add("vfio-pci", isolated="4,5", iommu=False)
    assert states(cards(made)) == {"IOMMU": WARN, "card 0000:3b:00.0": OK}


def test_an_iommu_without_interrupt_remapping(tmp_path):
    made = Card(tmp_path).add("vfio-pci", isolated="4,5")
    made.write("proc/interrupts", " 24: 0 PCI-MSI 1048576-edge ens1")
    row = made.row("interrupt remapping")
    assert row.state == WARN
    assert row.fix.endswith("> /sys/module/vfio_iommu_type1/parameters/allow_unsafe_interrupts")
    made.write("sys/module/vfio_iommu_type1/parameters/allow_unsafe_interrupts", "Y\n")
    assert made.row("interrupt remapping").state == OK


def test_others_of_a_group_keep_a_card_from_dpdk(tmp_path):
    made = Card(tmp_path).add("vfio-pci", isolated="4,5")
    other = tmp_path / "sys/bus/pci/devices/0000:3b:00.1"
    other.mkdir()
    (tmp_path / GROUPS / "7/devices/0000:3b:00.1").symlink_to(other)
    assert made.row("card 0000:3b:00.0").state == OK  # no driver has it
    (tmp_path / "sys/bus/pci/drivers/ice").mkdir()
    (other / "driver").symlink_to(tmp_path / "sys/bus/pci/drivers/ice")
    row = made.row("card 0000:3b:00.0")
    assert (row.state, row.fix) == (WARN, "weir setup cards 0000:3b:00.1")
    assert row.meaning.endswith("of its IOMMU group: 0000:3b:00.1 (ice)")
    (other / "class").write_text("0x060400")  # a bridge takes no part
    assert made.row("card 0000:3b:00.0").state == OK


@pytest.mark.parametrize(
    ("now", "most", "state", "found"),
    [
        (("8.0 GT/s PCIe", 8), ("8.0 GT/s PCIe", 8), OK, "8 GT/s x8 (63 Gbit/s)"),
        (
            ("8.0 GT/s PCIe", 4),
            ("16.0 GT/s PCIe", 16),
            WARN,
            "8 GT/s x4 (31.5 Gbit/s), where the card has 16 GT/s x16 (252 Gbit/s)",
        ),
        (("5.0 GT/s PCIe", 1), ("2.5 GT/s PCIe", 2), OK, "5 GT/s x1 (4 Gbit/s)"),
        (("Unknown", 0), ("Unknown", 255), None, ""),
    ],
)
def test_the_rate_of_a_slot(tmp_path, now, most, state, found):
    made = Card(tmp_path).add("vfio-pci", isolated="4,5")
    for which, (speed, lanes) in (("current", now), ("max", most)):
        made.write(f"sys/bus/pci/devices/0000:3b:00.0/{which}_link_speed", speed)
        made.write(f"sys/bus/pci/devices/0000:3b:00.0/{which}_link_width", f"{lanes}\n")
    rows = {check.name: check for check in cards(made)}
    row = rows.get("card 0000:3b:00.0 slot")
    assert (row and row.state, row.found if row else "") == (state, found)


def test_hugepages_on_the_other_node(tmp_path):
    made = Card(tmp_path).add("vfio-pci", isolated="4,5")
    pages = "hugepages/hugepages-2048kB/free_hugepages"
    made.write(f"sys/kernel/mm/{pages}", "512")
    made.write(f"sys/devices/system/node/node0/{pages}", "512")
    made.write(f"sys/devices/system/node/node1/{pages}", "0")
    assert "/node1/" in made.row("card 0000:3b:00.0 memory").fix
    made.write(f"sys/devices/system/node/node1/{pages}", "100")
    assert not [check for check in cards(made) if check.name.endswith("memory")]


def test_no_card(host):
    assert [check.found for check in cards(host())] == ["none: live runs use virtual devices"]


def test_congestion_controls_that_are_missing_are_named(host):
    made = host(proc__sys__net__ipv4__tcp_available_congestion_control="reno cubic\n")
    row = next(check for check in doctor.kernel(made) if check.name == "kernel TCP")
    assert (row.state, row.fix) == (WARN, "modprobe tcp_bbr")


def test_a_host_without_proc_and_sys_is_only_badly_known(host):
    assert all(check.name for check in doctor.checks(host()))


def test_what_is_not_good_says_what_it_means(host):
    for check in doctor.checks(host()):
        assert check.state in (OK, WARN, BAD)
        assert check.state == OK or check.meaning or check.fix


def test_weir_cannot_run_only_if_something_is_bad(host):
    def shown(*rows):
        out = io.StringIO()
        doctor.show(list(rows), Console(file=out, width=150))
        return out.getvalue()

    text = shown(Check("a", OK, "1"), Check("b", WARN, "2", "slower", "mend --b"))
    assert "b: mend --b" in text
    assert "Weir can run here" in text
    assert "cannot run: a" in shown(Check("a", BAD, "nothing", "no way"))


def test_the_command(weir):
    done = weir("doctor")
    assert done.err == ""
    assert "cores" in done.out


@pytest.mark.parametrize(
    ("options", "states_"),
    [
        ("rw,nosuid", {"guest kernel": WARN}),
        ("rw,noexec", {"guest kernel": WARN, "/dev/shm": WARN}),
    ],
)
def test_guests(host, tmp_path, monkeypatch, options, states_):
    monkeypatch.setenv("WEIR_GUESTS", str(tmp_path / "none"))
    made = host(proc__mounts=f"tmpfs / tmpfs rw 0 0\ntmpfs /dev/shm tmpfs {options} 0 0\n")
    rows = list(doctor.guests(made))
    assert states(rows) == states_
    assert rows[0].fix.startswith("tools/weir guests build")
