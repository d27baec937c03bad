# SPDX-License-Identifier: BSD-3-Clause
"""`weir run --live --hosts`: three hosts that are namespaces with an sshd each."""

import json
import os

import pytest
from hosts_bed import Bed
from lab import quiet
from weir.analysis import folder, model

OFFSET_NS, DRIFT_PPM, PLANT_NS = 5e6, 20, 1000e9  # clock_plant in common/live/base/clock.h
PLANTED = {"live.test_clock_offset": "5ms", "live.test_clock_drift": DRIFT_PPM}


@pytest.fixture
def bed(tmp_path, build, weir_switch, weir_sender):
    with Bed(tmp_path, build) as bed:
        yield bed


@pytest.mark.slow
def test_a_run_over_three_hosts_is_one_run(bed):
    """One ledger, and clocks whose bounds are true of what was planted in the sender's."""
    run = bed.weir(inventory=bed.inventory(tx={"weir_set": PLANTED}))
    assert run.wait(240) == 0, run.err
    text = (run.folder / "summary.json").read_text()
    model.decode(text)
    summary = json.loads(text)
    assert summary["ledger"]["balanced"]
    assert summary["ledger"]["programs"] == {"tx": True, "mid": True, "rx": True}
    between = summary["ledger"]["between_hosts"]
    assert {(one["from"], one["to"]) for one in between} == {
        ("tx/a", "mid/left"),
        ("mid/left", "tx/a"),
        ("rx/b", "mid/right"),
        ("mid/right", "rx/b"),
    }
    assert all(one["sent"] == one["received"] + one["lost"] > 0 for one in between)
    assert summary["groups"][0]["acked_bytes"] > 0
    planted, other = summary["hosts"]["tx"], summary["hosts"]["rx"]
    assert planted["offset_error_ns"] < quiet(OFFSET_NS / 10, OFFSET_NS)  # else it says nothing
    assert abs(planted["drift_ppm"] - DRIFT_PPM) <= planted["drift_error_ppm"]
    assert abs(other["offset_ns"]) <= other["offset_error_ns"]
    assert abs(other["drift_ppm"]) <= other["drift_error_ppm"]
    loaded = folder.load(run.folder)
    rings = {ring.path.name: ring for ring in loaded.rings("events")}
    assert {*rings} == {"events-tx.ring", "events-mid.ring", "events-rx.ring"}
    sender = rings["events-tx.ring"]
    ahead_ns = sender.header.utc_start_ns - loaded.started_ns(sender)  # where it was planted
    half_ns = abs(sender.header.utc_start_ns - planted["offset_utc_ns"])
    bound_ns = planted["offset_error_ns"] + planted["drift_error_ppm"] * 1e-6 * half_ns
    # Since the whole 1000 s in which it was planted, or those before if they have ended since.
    since_ns = loaded.started_ns(sender) % PLANT_NS
    right = [OFFSET_NS + DRIFT_PPM * 1e-6 * (since_ns + more) for more in (0, PLANT_NS)]
    assert min(abs(ahead_ns - each) for each in right) <= bound_ns
    assert not list(bed.tmp.glob("weir-*"))


@pytest.mark.skipif(os.environ.get("WEIR_HOSTS_FAULTS") != "1", reason="WEIR_HOSTS_FAULTS=1")
def test_ethernet_switches_join_senders_and_receivers(bed):
    """CoreScale's layout with two of each: the rows between hosts have the sums of all ports."""
    bed.join()
    addresses = {}
    for number, last in (("", 1), ("2", 2)):
        ours, theirs = f"198.18.{last}.1", f"198.19.{last}.1"
        sends = {"live.sender.ports.0.ip": ours, "live.sender.ports.0.peer": theirs}
        addresses[f"tx{number}"] = {"weir_set": sends}
        addresses[f"rx{number}"] = {"weir_set": {"live.receiver.ports.0.ip": theirs}}
    run = bed.weir(inventory=bed.inventory(**addresses))
    assert run.wait(240) == 0, run.err
    summary = json.loads((run.folder / "summary.json").read_text())
    model.decode(json.dumps(summary))
    assert summary["ledger"]["balanced"]
    between = {(one["from"], one["to"]): one for one in summary["ledger"]["between_hosts"]}
    assert {*between} == {
        ("mid/left", "tx/a, tx2/a"),
        ("tx/a, tx2/a", "mid/left"),
        ("mid/right", "rx/b, rx2/b"),
        ("rx/b, rx2/b", "mid/right"),
    }
    for one in between.values():
        assert one["lost"] is None
        assert one["sent"] > 500
        assert one["lost_at_least"] == max(one["sent"] - one["received"], 0)
    # They begin together, so that none sends after the switch has ended.
    assert not [one for one in summary["faults"] if one["cause"] == "between_hosts"], between
