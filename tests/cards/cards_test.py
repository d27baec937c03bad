# SPDX-License-Identifier: BSD-3-Clause
"""The live programs on network cards, which a virtual machine emulates (machine.py, guest.py).

A machine runs all checks of its kind of card; the tests judge its answers and run folders. Nothing
is said of times: emulation has a hundredth of a processor's speed, and its clock is no clock.
"""

import json
import os
import platform
import subprocess
import sys

import machine
import pytest
from weir.analysis.ring import open_ring

ALL = os.environ.get("WEIR_CARDS") == "1"
FIRST = "e1000e"
CHECKS = ["forward", "sender", "drivers", "lcores", "frames", "unplug"]
MORE = {FIRST: ["bench", "doctor"], "igb": ["sriov"]}
# What QEMU's cards cannot do, and the tests see that they do not.
ONE_QUEUE = {
    "vmxnet3": "QEMU's vmxnet3 puts all packets into its first receive queue",
    "e1000e": "DPDK's driver of e1000e offers two queues and no RSS",
    "e1000": "DPDK's driver of e1000 offers two queues and no RSS",
    "virtio-net": "QEMU's hubs, which join the cards here, have one queue",
}
UNTIMED = "times were not judged: live.test_any_tsc takes a TSC that need not be invariant"
SECONDS_MAX = 1500
PORT = 8  # TEL_EV_PORT

pytestmark = [
    pytest.mark.skipif(platform.machine() != "x86_64", reason="emulates x86-64"),
    pytest.mark.timeout(SECONDS_MAX + 100),
]


@pytest.fixture(scope="module", params=machine.KINDS if ALL else [FIRST])
def kind(request):
    return request.param


@pytest.fixture(scope="module")
def run(kind, build, tmp_path_factory):
    """The answers of a machine with cards of this kind, and the folder with what it wrote."""
    if not (build / "switch/weir-switch").exists():
        pytest.skip("weir-switch was not built")
    if not machine.offered(kind):
        pytest.skip(f"this QEMU has no {kind}")
    folder = tmp_path_factory.mktemp(kind)
    checks = CHECKS + MORE.get(kind, []) if ALL else CHECKS[:1]
    return answers(folder, kind, checks), folder


def answers(folder, kind, checks, **devices):
    """Runs a machine until it ends."""
    devices = machine.cards(kind, **devices)
    with machine.Machine(folder, devices, machine.request(kind, checks)) as one:
        status = one.wait(SECONDS_MAX)
    said = "\n".join([*one.out[-30:], *one.err])
    assert status == 0, said
    assert (folder / "answers.json").exists(), said
    return json.loads((folder / "answers.json").read_text())


@pytest.fixture
def answer(run):
    """answer(check): what a check found, and its run folder."""

    def of(check):
        found, folder = run
        if check not in found:
            pytest.skip("needs WEIR_CARDS=1")
        assert "failed" not in found[check], found[check]["trace"]
        return found[check], folder / check

    return of


def summary(folder, program="switch"):
    return json.loads((folder / f"summary-{program}.json").read_text())


def whole(folder, program="switch"):
    """The summary of a run that lost nothing unknown, and says that it has no times."""
    found = summary(folder, program)
    assert found["ledger"]["balanced"]
    assert UNTIMED in [fact["sentence"] for fact in found["verdicts"]]
    return found


def test_packets_pass_two_cards(answer):
    found, folder = answer("forward")
    assert found["status"] == 0, found["said"]
    assert found["pings"] == 10
    assert found["bytes"] == {"bytes": [400_000], "zeros": True}
    ledger = whole(folder)["ledger"]
    assert ledger["received"] >= 400_000 // 1448
    manifest = json.loads((folder / "manifest-switch.json").read_text())
    assert "test_any_tsc" in (folder / "config.yaml").read_text()
    assert manifest["verdict"] == UNTIMED


def test_a_link_that_was_off_is_recorded(answer):
    found, folder = answer("forward")
    assert found["again"] == 5
    (fault,) = [one for one in summary(folder)["faults"] if one["cause"] == "port_down"]
    assert (fault["port"], fault["count"]) == ("left", 1)
    assert fault["down_s"] > 0
    events = open_ring(folder / "events-switch.ring").records
    left = events["value"][(events["event"] == PORT) & (events["group"] == 0)]
    assert left.tolist()[-2:] == [0, 1]  # before them a slow card's link comes up


def test_its_decisions_are_made_again(answer, build):
    folder = answer("forward")[1]
    done = subprocess.run(
        [sys.executable, "-m", "weir", "replay", folder],
        env={**os.environ, "WEIR_BUILD": str(build)},
        capture_output=True,
        text=True,
    )
    assert done.stdout.startswith("identical: "), done.stdout + done.stderr


@pytest.mark.parametrize("check", ["sender", "sriov"])
def test_the_sender_has_a_cable_of_its_own(answer, kind, check):
    if ALL and check == "sriov" and kind != "igb":
        pytest.skip(f"QEMU's {kind} has no virtual functions")
    found, folder = answer(check)
    assert found["status"] == 0, found["said"]
    (group,) = whole(folder, "sender")["groups"]
    assert group["acked_bytes"] == 400_000
    assert group["retransmits"] == 0


def test_its_benchmark_runs(answer, kind):
    if ALL and kind != FIRST:
        pytest.skip(f"is tried with {FIRST}")
    found, _ = answer("bench")
    assert len(found["cards"]) == 2
    assert all(one.startswith("0000:") and "[8086:10d3" in one for one in found["cards"])
    assert len(found["rows"]) == 3
    for row in found["rows"]:
        assert row["goodput_bps"] > 0
        assert row["frames_per_s"] > 0
        assert UNTIMED in row["verdict"]


def test_cards_go_to_the_kernel_and_back(answer, kind):
    found, _ = answer("drivers")
    assert found["before"] == found["after"] == ["vfio-pci"] * 2
    assert found["back"] == [machine.DRIVERS[kind]] * 2
    assert found["interfaces"] == [1, 1]


def test_doctor_mends_each_wrong_state(answer, kind):
    """Each row warns, and does so no more once its own command was run."""
    if kind != FIRST:
        pytest.skip(f"is tried with {FIRST}")
    found, _ = answer("doctor")
    rows, said = found["rows"], found["said"]
    assert {
        state: (row[0], row[-1]) for state, row in rows.items() if state != "route"
    } == dict.fromkeys(
        ("hugepages", "interrupt remapping", "pause frames", "RX ring", "kernel", "group"),
        ("warn", "ok"),
    )
    assert rows["route"][0] == "ok"
    assert rows["route"][2].endswith("has routes: leave it to the kernel")
    assert "hugepages: " in said["hugepages"]
    assert "weir setup cards 0000:" in said["card"]
    assert "; weir doctor checks cards" in said["interrupt remapping"]
    assert said["route"][0] == said["half a group"][0] == 2
    assert "this machine may be reached through it" in said["route"][1]
    assert said["half a group"][1].endswith("too: name all of them\n")


def test_without_an_iommu(kind, build, tmp_path):
    if not ALL or kind != FIRST:
        pytest.skip(f"needs WEIR_CARDS=1, and is tried with {FIRST}")
    found = answers(tmp_path, kind, ["doctor"], iommu=False)["doctor"]
    state, what, fix = found["rows"]["IOMMU"]
    assert (state, what) == ("warn", "off")
    assert "boot with: intel_iommu=on" in fix
    assert found["said"]["setup"][1].endswith(
        "there is no IOMMU; weir doctor says how to switch it on\n"
    )


def test_frames_of_all_kinds(answer):
    found, folder = answer("frames")
    assert found["status"] == 0, found["said"]
    assert (found["vlan"], found["jumbo"]) == (5, 5)
    assert [found[state] for state in ("on", "off")] == [[True, [100_000]]] * 2
    whole(folder)


def test_two_lcores(answer, kind):
    """Both lcores receive from both cards, if the card can do that, and hand packets over."""
    found, folder = answer("lcores")
    assert found["status"] == 0, found["said"]
    assert (found["pings"], found["bytes"]) == (5, [10_000] * 10)
    of = whole(folder)
    given = [to["given"] for one in of["lcores"] for to in one["handover"]]
    assert len(given) == 2
    assert min(given) > 0
    by_lcore = sorted(one["received"] for one in of["lcores"])
    by_port = sorted(one["rx_pkts"] for one in of["ports"])
    assert (by_lcore == by_port) == (kind in ONE_QUEUE)
    no_rss = [one["cause"] for one in of["verdicts"]].count("no_rss")
    assert no_rss == (2 if kind in ("e1000", "e1000e") else 0)
    assert (found["refused"] is not None) == (kind == "virtio-net")
    assert found["refused"] is None or "has 1 receive and" in found["refused"]
    if kind in ONE_QUEUE:
        pytest.skip(ONE_QUEUE[kind])


def test_a_card_is_taken_away_and_given_back(answer):
    found, folder = answer("unplug")
    assert (found["pings"], found["again"]) == (3, 3)
    lost = [one for one in whole(folder)["verdicts"] if one["cause"] == "port_removed"]
    assert "port left lost its card" in lost[0]["sentence"]
