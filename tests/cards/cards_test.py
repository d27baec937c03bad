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
CHECKS = ("forward",)
MORE = ("sender", "drivers", "doctor", "lcores", "queues", "jumbo", "vlan", "offloads", "unplug")
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
    checks = CHECKS + (MORE if ALL else ())
    with machine.Machine(folder, machine.cards(kind), machine.request(kind, checks)) as one:
        status = one.wait(SECONDS_MAX)
    said = "\n".join([*one.out[-30:], *one.err])
    assert status == 0, said
    assert (folder / "answers.json").exists(), said
    return json.loads((folder / "answers.json").read_text()), folder


@pytest.fixture
def answer(run):
    """answer(check): what a check found, and its run folder."""

    def of(check):
        answers, folder = run
        if check not in answers:
            pytest.skip("needs WEIR_CARDS=1")
        assert "failed" not in answers[check], answers[check]["trace"]
        return answers[check], folder / check

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


def test_the_sender_has_a_cable_of_its_own(answer):
    found, folder = answer("sender")
    assert found["status"] == 0, found["said"]
    (group,) = whole(folder, "sender")["groups"]
    assert group["acked_bytes"] == 400_000
    assert group["retransmits"] == 0


def test_cards_go_to_the_kernel_and_back(answer, kind):
    found, _ = answer("drivers")
    assert found["before"] == found["after"] == ["vfio-pci"] * 2
    assert found["back"] == [machine.DRIVERS[kind]] * 2
    assert found["interfaces"] == [1, 1]


def test_doctor_sees_each_wrong_state(answer, kind):
    found, _ = answer("doctor")
    assert found["bound"]["IOMMU"][0] == "ok"
    assert found["bound"]["interrupt remapping"][0] == "ok"
    assert found["safe"]["interrupt remapping"] == ["warn", "off"]
    assert found["bound"]["card 1"][0] == "ok"
    assert found["unbound"]["card 1"][0] == "warn"
    assert found["unbound"]["card 1"][1].startswith(machine.DRIVERS[kind])


@pytest.mark.parametrize("check", ["lcores", "jumbo", "vlan", "offloads"])
def test_more_of_a_card(answer, check):
    found, folder = answer(check)
    assert found["status"] == 0, found["said"]
    whole(folder)
    if check == "offloads":
        assert [found[state][1] for state in ("on", "off")] == [[400_000]] * 2
    else:
        assert found["pings"] >= 5


def test_two_queues(run):
    """Both lcores receive from both cards, or the program says how many queues a card has."""
    found = run[0].get("queues")
    if found is None:
        pytest.skip("needs WEIR_CARDS=1")
    refused = "receive and" in found.get("failed", "") and "are asked for" in found["failed"]
    assert refused or found.get("status") == 0, found


def test_a_card_is_taken_away_and_given_back(answer):
    found, folder = answer("unplug")
    assert (found["pings"], found["again"]) == (3, 3)
    lost = [one for one in whole(folder)["verdicts"] if one["cause"] == "port_removed"]
    assert "port left lost its card" in lost[0]["sentence"]
